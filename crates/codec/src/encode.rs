//! Encoders of all codings behind one type, and their settings. They never take more memory than
//! [`EncodeSettings::most_memory`].

use std::ops::RangeInclusive;

use crate::br::{self, BrotliEncoder};
use crate::coding::Coding;
use crate::error::Error;
use crate::gz::{self, GzipEncoder};
use crate::step::{CodingProgress, FlushMode, STEP_BYTES};
use crate::zst::{self, ZstdEncoder};

/// Coding, level and window of an encoder. Every value is valid for the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EncodeSettings {
    coding: Coding,
    level: u8,
    window_bits: u8,
    length: Option<u64>,
}

impl EncodeSettings {
    /// `coding` at `level`, one of [`EncodeSettings::levels`], with a window of
    /// [`EncodeSettings::default_window_bits`]. `None` if the coding has no such level; the
    /// identity has none at all.
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

    /// The windows of `coding` at `level`, as base-2 logarithms of their bytes.
    pub const fn windows_bits(coding: Coding, level: u8) -> RangeInclusive<u8> {
        match coding {
            Coding::Identity => RangeInclusive::new(1, 0),
            Coding::Gzip => gz::WINDOW_BITS,
            Coding::Brotli => br::window_bits_at(level),
            Coding::Zstd => zst::WINDOW_BITS,
        }
    }

    /// The default window of `coding`: the largest for gzip, 512 KiB for the others, as in nginx's
    /// brotli module.
    pub const fn default_window_bits(coding: Coding) -> u8 {
        match coding {
            Coding::Identity => 0,
            Coding::Gzip => 15,
            Coding::Brotli | Coding::Zstd => 19,
        }
    }

    /// The settings with a window of 2^`bits` bytes; `None` if the coding has no such window.
    #[must_use]
    pub fn with_window_bits(self, bits: u8) -> Option<Self> {
        let has = Self::windows_bits(self.coding, self.level).contains(&bits);
        has.then_some(Self { window_bits: bits, ..self })
    }

    /// The settings for a body of about `length` bytes: window and memory become no larger than
    /// needed. A wrong length costs compression, never correctness.
    #[must_use]
    pub fn for_length(self, length: u64) -> Self {
        let least = *Self::windows_bits(self.coding, self.level).start();
        // Brotli does not use the last 16 bytes of its window.
        let needed = u64::BITS - length.saturating_add(16).leading_zeros();
        let window_bits = self.window_bits.min((needed as u8).max(least));
        Self { window_bits, length: Some(length), ..self }
    }

    /// Upper bound of the encoder's memory in bytes; the caller reserves it before it makes the
    /// encoder.
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

    /// Base-2 logarithm of the window's bytes.
    pub const fn window_bits(&self) -> u8 {
        self.window_bits
    }
}

/// An encoder of one stream. Order of calls: [`Encoder::step`] with [`FlushMode::Gather`] for each
/// piece of the body until the step is done, with [`FlushMode::Flush`] where the body pauses, and
/// at last with [`FlushMode::Finish`] until the step is done.
pub struct Encoder {
    coder: Encoding,
    coding: Coding,
    /// Input that is held until it fills [`STEP_BYTES`]: the output of the libraries depends on how
    /// their input is cut, and is poor for short pieces.
    gathered: Vec<u8>,
    /// Bytes of `gathered` that the library has taken.
    fed: usize,
    is_feeding: bool,
    /// True if the library has taken input since the last flush.
    is_dirty: bool,
    is_finished: bool,
}

enum Encoding {
    Gzip(GzipEncoder),
    Brotli(BrotliEncoder),
    Zstd(ZstdEncoder),
}

impl Encoder {
    /// An encoder at the beginning of a stream.
    ///
    /// # Errors
    /// If memory is exhausted.
    pub fn new(settings: &EncodeSettings) -> Result<Self, Error> {
        let EncodeSettings { coding, level, window_bits, length } = *settings;
        let coder = match coding {
            // Settings never have the identity.
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

    /// The most bytes of memory that the encoder has taken so far.
    pub fn memory(&self) -> usize {
        let coder = match &self.coder {
            Encoding::Gzip(coder) => coder.memory(),
            Encoding::Brotli(coder) => coder.memory(),
            Encoding::Zstd(coder) => coder.memory(),
        };
        coder + STEP_BYTES
    }

    /// Takes at most [`STEP_BYTES`] of `input`, and writes to `output`, which must not be empty.
    /// The next call continues at the first byte that was not taken, with the same `goal`. After
    /// the stream's end steps do nothing.
    ///
    /// The output depends on the input and on the places of flushes, not on how the input is cut.
    ///
    /// # Errors
    /// If the library fails; the stream must then not be used.
    pub fn step(
        &mut self,
        input: &[u8],
        output: &mut [u8],
        mode: FlushMode,
    ) -> Result<CodingProgress, Error> {
        if self.is_finished || (mode == FlushMode::Flush && input.is_empty() && !self.is_dirty) {
            return Ok(CodingProgress { done: true, ..CodingProgress::default() });
        }
        let mut step = CodingProgress::default();
        loop {
            step.taken += self.gather(&input[step.taken..]);
            let is_all = step.taken == input.len();
            self.is_feeding |= !is_all || mode > FlushMode::Gather;
            if self.is_feeding {
                let reached = if is_all { mode } else { FlushMode::Gather };
                step.made += self.feed(&mut output[step.made..], reached)?;
            }
            step.done = is_all && !self.is_feeding;
            if step.done && mode > FlushMode::Gather {
                self.is_dirty = false;
                self.is_finished = mode == FlushMode::Finish;
            }
            // A step that took nothing is fed once more only for the input of an earlier step.
            if step.done || step.taken > 0 || self.is_feeding {
                return Ok(step);
            }
        }
    }

    /// Takes as much of `input` as fits, and returns its length.
    fn gather(&mut self, input: &[u8]) -> usize {
        if self.is_feeding {
            return 0;
        }
        let len = input.len().min(STEP_BYTES - self.gathered.len());
        self.gathered.extend_from_slice(&input[..len]);
        self.is_dirty |= len > 0;
        len
    }

    /// Feeds the library until it has all of `gathered` and has reached `goal`. Returns the bytes
    /// written.
    fn feed(&mut self, output: &mut [u8], mode: FlushMode) -> Result<usize, Error> {
        let piece = &self.gathered[self.fed..];
        let step = match &mut self.coder {
            Encoding::Gzip(coder) => coder.step(piece, output, mode)?,
            Encoding::Brotli(coder) => coder.step(piece, output, mode)?,
            Encoding::Zstd(coder) => coder.step(piece, output, mode)?,
        };
        self.fed += step.taken;
        if step.done {
            self.gathered.clear();
            (self.fed, self.is_feeding) = (0, false);
        }
        Ok(step.made)
    }
}
