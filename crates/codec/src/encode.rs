//! Encoding: settings, and one encoder for all codings.

use std::ops::RangeInclusive;

use crate::br::{self, BrotliEncoder};
use crate::coding::Coding;
use crate::error::Error;
use crate::gz::{self, GzipEncoder};
use crate::step::{CodingProgress, FlushMode, STEP_BYTES};
use crate::zst::{self, ZstdEncoder};

/// A coding that changes bytes, at a level, with a window: only such values exist as an encoder can
/// be made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EncodeSettings {
    coding: Coding,
    level: u8,
    window_bits: u8,
    length: Option<u64>,
}

impl EncodeSettings {
    /// `coding` at `level`, one of [`EncodeSettings::levels`], with a window of
    /// [`EncodeSettings::default_window_bits`]. `None` if it has no such level, as the identity.
    pub fn new(coding: Coding, level: u8) -> Option<Self> {
        let window_bits = Self::default_window_bits(coding);
        let settings = Self { coding, level, window_bits, length: None };
        Self::levels(coding).contains(&level).then_some(settings)
    }

    /// The levels of `coding`, from fast to small. The identity has none.
    pub const fn levels(coding: Coding) -> RangeInclusive<u8> {
        match coding {
            Coding::Identity => RangeInclusive::new(1, 0),
            Coding::Gzip => 1..=9,
            Coding::Brotli => 0..=11,
            Coding::Zstd => 1..=19,
        }
    }

    /// The windows of `coding` at `level`, as logarithms of their bytes.
    pub const fn windows_bits(coding: Coding, level: u8) -> RangeInclusive<u8> {
        match coding {
            Coding::Identity => RangeInclusive::new(1, 0),
            Coding::Gzip => gz::WINDOW_BITS,
            Coding::Brotli => br::window_bits_at(level),
            Coding::Zstd => zst::WINDOW_BITS,
        }
    }

    /// The window of `coding` if nothing is said: for gzip the largest, for the others 512 KiB, as
    /// nginx's brotli module has it.
    pub const fn default_window_bits(coding: Coding) -> u8 {
        match coding {
            Coding::Identity => 0,
            Coding::Gzip => 15,
            Coding::Brotli | Coding::Zstd => 19,
        }
    }

    /// The same with a window of 2^`bits` bytes. `None` if the coding has no such window.
    #[must_use]
    pub fn with_window_bits(self, bits: u8) -> Option<Self> {
        let has = Self::windows_bits(self.coding, self.level).contains(&bits);
        has.then_some(Self { window_bits: bits, ..self })
    }

    /// The same for a body of `length` bytes, about: the window becomes no larger than that needs,
    /// and so does the memory. A wrong length makes the result longer, never wrong.
    #[must_use]
    pub fn for_length(self, length: u64) -> Self {
        let least = *Self::windows_bits(self.coding, self.level).start();
        // Brotli does not reach the last 16 bytes of its window.
        let needed = u64::BITS - length.saturating_add(16).leading_zeros();
        let window_bits = self.window_bits.min((needed as u8).max(least));
        Self { window_bits, length: Some(length), ..self }
    }

    /// The most bytes of memory that such an encoder ever takes: to be reserved before it is made.
    pub fn most_memory(&self) -> usize {
        let Self { coding, level, window_bits, length } = *self;
        let coder = match coding {
            Coding::Identity => 0,
            Coding::Gzip => gz::encoder_bytes(window_bits),
            Coding::Brotli => br::encoder_bytes(level, window_bits, length),
            Coding::Zstd => zst::encoder_bytes(level, window_bits),
        };
        coder + STEP_BYTES
    }

    /// The coding.
    pub const fn coding(&self) -> Coding {
        self.coding
    }

    /// The level.
    pub const fn level(&self) -> u8 {
        self.level
    }

    /// The logarithm of the window's bytes.
    pub const fn window_bits(&self) -> u8 {
        self.window_bits
    }
}

/// A stream that encodes.
///
/// [`Encoder::step`] with [`Goal::Gather`] for each piece of the body until the step is done; with
/// [`Goal::Flush`] where the body pauses; at last with [`Goal::Finish`] until that is done.
pub struct Encoder {
    coder: Encoding,
    coding: Coding,
    /// Input that waits until it is [`STEP_BYTES`] and more comes: what the libraries make depends
    /// on how their input is cut, and is poor for short pieces.
    gathered: Vec<u8>,
    /// Bytes of it that the coder has.
    fed: usize,
    is_feeding: bool,
    /// Something was taken and not flushed.
    is_dirty: bool,
    is_finished: bool,
}

enum Encoding {
    Gzip(GzipEncoder),
    Brotli(BrotliEncoder),
    Zstd(ZstdEncoder),
}

impl Encoder {
    /// An encoder at the beginning of its stream.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn new(settings: &EncodeSettings) -> Result<Self, Error> {
        let EncodeSettings { coding, level, window_bits, length } = *settings;
        let coder = match coding {
            // No settings have it.
            Coding::Identity => return Err(Error::Library),
            Coding::Gzip => Encoding::Gzip(GzipEncoder::new(level, window_bits)),
            Coding::Brotli => Encoding::Brotli(BrotliEncoder::new(level, window_bits, length)),
            Coding::Zstd => Encoding::Zstd(ZstdEncoder::new(level, window_bits, length)?),
        };
        Ok(Self {
            coder,
            coding,
            gathered: Vec::with_capacity(STEP_BYTES),
            fed: 0,
            is_feeding: false,
            is_dirty: false,
            is_finished: false,
        })
    }

    /// The coding.
    pub const fn coding(&self) -> Coding {
        self.coding
    }

    /// The most bytes of memory that it has taken so far.
    pub fn memory(&self) -> usize {
        let coder = match &self.coder {
            Encoding::Gzip(coder) => coder.memory(),
            Encoding::Brotli(coder) => coder.memory(),
            Encoding::Zstd(coder) => coder.memory(),
        };
        coder + STEP_BYTES
    }

    /// Takes at most [`STEP_BYTES`] of `input`, and writes to `output`, which has room. An input is
    /// given again from where it was not taken, with the same goal. Once the stream is finished,
    /// steps do nothing.
    ///
    /// What comes out depends on all that was fed and on where it was flushed, not on how it was
    /// cut.
    ///
    /// # Errors
    /// If the coder fails; the stream is of no use any more.
    pub fn step(
        &mut self,
        input: &[u8],
        output: &mut [u8],
        goal: FlushMode,
    ) -> Result<CodingProgress, Error> {
        if self.is_finished || (goal == FlushMode::Flush && input.is_empty() && !self.is_dirty) {
            return Ok(CodingProgress { done: true, ..CodingProgress::default() });
        }
        let mut step = CodingProgress::default();
        loop {
            step.taken += self.gather(&input[step.taken..]);
            let is_all = step.taken == input.len();
            self.is_feeding |= !is_all || goal > FlushMode::Gather;
            if self.is_feeding {
                let reached = if is_all { goal } else { FlushMode::Gather };
                step.made += self.feed(&mut output[step.made..], reached)?;
            }
            step.done = is_all && !self.is_feeding;
            if step.done && goal > FlushMode::Gather {
                self.is_dirty = false;
                self.is_finished = goal == FlushMode::Finish;
            }
            // Once more only for what was taken in another step.
            if step.done || step.taken > 0 || self.is_feeding {
                return Ok(step);
            }
        }
    }

    /// Takes input as far as there is room, and returns how much.
    fn gather(&mut self, input: &[u8]) -> usize {
        if self.is_feeding {
            return 0;
        }
        let len = input.len().min(STEP_BYTES - self.gathered.len());
        self.gathered.extend_from_slice(&input[..len]);
        self.is_dirty |= len > 0;
        len
    }

    /// Feeds the coder, until it has all that was gathered and has reached the goal. Returns how
    /// much came out.
    fn feed(&mut self, output: &mut [u8], goal: FlushMode) -> Result<usize, Error> {
        let piece = &self.gathered[self.fed..];
        let step = match &mut self.coder {
            Encoding::Gzip(coder) => coder.step(piece, output, goal)?,
            Encoding::Brotli(coder) => coder.step(piece, output, goal)?,
            Encoding::Zstd(coder) => coder.step(piece, output, goal)?,
        };
        self.fed += step.taken;
        if step.done {
            self.gathered.clear();
            (self.fed, self.is_feeding) = (0, false);
        }
        Ok(step.made)
    }
}
