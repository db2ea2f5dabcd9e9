//! Decoders of all codings within limits: a stream never decodes to more than [`DecodeLimits`]
//! permit.

use crate::br::{self, BrotliDecoder};
use crate::coding::Coding;
use crate::error::{DecodeLimit, Error};
use crate::gz::{self, GzipDecoder};
use crate::step::{CodingProgress, STEP_BYTES};
use crate::zst::{self, ZstdDecoder};

/// Limits of decoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeLimits {
    /// Most bytes that a stream may decode to.
    pub size_bytes: u64,
    /// Most decoded bytes per coded byte, on average since the beginning.
    pub ratio: u64,
    /// Decoded bytes up to which the ratio is not checked.
    pub free_bytes: u64,
    /// Base-2 logarithm of the largest window of a brotli or zstd stream.
    pub window_bits: u8,
}

impl Default for DecodeLimits {
    /// 64 MiB, a ratio of 200 (Apache's `DeflateInflateRatioLimit`) beyond 1 MiB, and windows of
    /// 8 MiB (RFC 9659).
    fn default() -> Self {
        let window_bits = *zst::WINDOW_BITS.end();
        Self { size_bytes: 64 << 20, ratio: 200, free_bytes: 1 << 20, window_bits }
    }
}

impl DecodeLimits {
    /// Bytes of memory that a new decoder of `coding` takes; the caller reserves them first.
    pub fn first_memory(&self, coding: Coding) -> usize {
        match coding {
            Coding::Identity => 0,
            Coding::Gzip => gz::DECODER_BYTES,
            Coding::Brotli => br::FIRST_BYTES,
            Coding::Zstd => zst::FIRST_BYTES,
        }
    }

    /// Upper bound of the memory in bytes of a decoder of `coding`.
    pub fn most_memory(&self, coding: Coding) -> usize {
        match coding {
            Coding::Identity => 0,
            Coding::Gzip => gz::DECODER_BYTES,
            Coding::Brotli => br::decoder_bytes(self.brotli_bits()),
            Coding::Zstd => zst::decoder_bytes(self.zstd_bits()),
        }
    }

    fn brotli_bits(&self) -> u8 {
        self.window_bits.clamp(*br::WINDOW_BITS.start(), *br::WINDOW_BITS.end())
    }

    fn zstd_bits(&self) -> u8 {
        self.window_bits.clamp(*zst::WINDOW_BITS.start(), *zst::WINDOW_BITS.end())
    }
}

/// A decoder of one stream. Order of calls: [`Decoder::step`] for each piece of the body until the
/// step is done, then [`Decoder::finish`].
pub struct Decoder {
    coder: Decoding,
    limits: DecodeLimits,
    taken: u64,
    made: u64,
}

enum Decoding {
    Identity,
    Gzip(GzipDecoder),
    Brotli(BrotliDecoder),
    Zstd(ZstdDecoder),
}

impl Decoder {
    /// A decoder at the beginning of a stream in `coding`.
    ///
    /// # Errors
    /// If memory is exhausted.
    pub fn new(coding: Coding, limits: DecodeLimits) -> Result<Self, Error> {
        let coder = match coding {
            Coding::Identity => Decoding::Identity,
            Coding::Gzip => Decoding::Gzip(GzipDecoder::new()),
            Coding::Brotli => Decoding::Brotli(BrotliDecoder::new(limits.brotli_bits())),
            Coding::Zstd => Decoding::Zstd(ZstdDecoder::new(limits.zstd_bits())?),
        };
        Ok(Self { coder, limits, taken: 0, made: 0 })
    }

    /// The most bytes of memory that the decoder has taken so far.
    pub fn memory(&self) -> usize {
        match &self.coder {
            Decoding::Identity => 0,
            Decoding::Gzip(_) => gz::DECODER_BYTES,
            Decoding::Brotli(coder) => coder.memory(),
            Decoding::Zstd(coder) => coder.memory(),
        }
    }

    /// Bytes of memory that the decoder will have after a step on `input`, as far as the beginning
    /// of a stream shows; the caller reserves them before the step. Prefix codes of brotli may add
    /// to it later.
    pub fn wanted_memory(&self, input: &[u8]) -> usize {
        let begins = match &self.coder {
            Decoding::Identity | Decoding::Gzip(_) => None,
            Decoding::Brotli(coder) => coder.frame_memory(input),
            Decoding::Zstd(coder) => coder.begins_with(input),
        };
        self.memory().max(begins.unwrap_or(0))
    }

    /// Takes at most [`STEP_BYTES`] of `input`, and writes to `output`, which must not be empty.
    /// The next call continues at the first byte that was not taken.
    ///
    /// # Errors
    /// If the input is malformed, or exceeds a limit. The output of this step and the decoder must
    /// then not be used.
    pub fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<CodingProgress, Error> {
        let piece = &input[..input.len().min(STEP_BYTES)];
        let mut step = match &mut self.coder {
            Decoding::Identity => copy(piece, output),
            Decoding::Gzip(coder) => coder.step(piece, output)?,
            Decoding::Brotli(coder) => coder.step(piece, output)?,
            Decoding::Zstd(coder) => coder.step(piece, output)?,
        };
        step.done &= piece.len() == input.len();
        self.taken += step.taken as u64;
        self.made += step.made as u64;
        self.check()?;
        Ok(step)
    }

    /// Ends the input, when all steps are done.
    ///
    /// # Errors
    /// If the stream is incomplete; an empty input is.
    pub fn finish(&self) -> Result<(), Error> {
        let is_whole = match &self.coder {
            Decoding::Identity => true,
            Decoding::Gzip(coder) => coder.is_whole(),
            Decoding::Brotli(coder) => coder.is_whole(),
            Decoding::Zstd(coder) => coder.is_whole(),
        };
        if is_whole { Ok(()) } else { Err(Error::Truncated) }
    }

    fn check(&self) -> Result<(), Error> {
        let DecodeLimits { size_bytes, ratio, free_bytes, .. } = self.limits;
        if self.made > size_bytes {
            return Err(Error::Limit(DecodeLimit::Size));
        }
        if self.made > free_bytes && self.made > self.taken.saturating_mul(ratio) {
            return Err(Error::Limit(DecodeLimit::Ratio));
        }
        Ok(())
    }
}

fn copy(input: &[u8], output: &mut [u8]) -> CodingProgress {
    let len = input.len().min(output.len());
    output[..len].copy_from_slice(&input[..len]);
    CodingProgress { taken: len, made: len, done: len == input.len() }
}
