//! Brotli (RFC 7932) by the `brotli` crate, which has no `unsafe` code. Its windows are never
//! "large".
//!
//! At levels 5 to 8 the crate finds few matches in a body longer than two windows: it stores
//! positions within its ring in place of positions within the body.

use brotli::enc::encode::{
    BrotliEncoderOperation as Operation, BrotliEncoderParameter as Parameter,
    BrotliEncoderStateStruct,
};
use brotli::{Allocator, BrotliDecompressStream, BrotliResult, BrotliState, SliceWrapperMut};

use crate::allocator::CountingAllocator;
use crate::error::{DecodeLimit, Error};
use crate::step::{CodingProgress, DecoderPosition, FlushMode};

/// Windows of 1 KiB to 16 MiB (RFC 7932 9.1).
pub(crate) const WINDOW_BITS: std::ops::RangeInclusive<u8> = 10..=24;

/// The windows of an encoder at `level`. Below 128 KiB the library has only the matcher of level 9
/// for the levels 5 to 8; that matcher takes 32 MiB.
pub(crate) const fn window_bits_at(level: u8) -> std::ops::RangeInclusive<u8> {
    let least = if matches!(level, 5..=8) { 17 } else { *WINDOW_BITS.start() };
    std::ops::RangeInclusive::new(least, *WINDOW_BITS.end())
}

/// Upper bound of an encoder's memory in bytes: a ring of two windows from level 2 on, ten windows
/// for the binary trees of levels 10 and 11, and the measured rest plus a quarter.
pub(crate) fn encoder_bytes(level: u8, window_bits: u8, length: Option<u64>) -> usize {
    let is_long = length.is_some_and(|length| length >= 1 << 20);
    let tables_kib = match (level, is_long) {
        (..=1, _) => 192,
        (2 | 3, _) => 1_200,
        (4, false) => 2_400,
        (4, true) => 6_500,
        (5, false) => 2_850,
        (5, true) => 4_100,
        (6, false) => 4_100,
        (6, true) => 6_600,
        (7, _) => 11_800,
        (8, _) => 22_000,
        (9, _) => 43_700,
        (10, _) => 7_700,
        _ => 13_500,
    };
    let windows = match level {
        ..=1 => 0,
        2..=9 => 2,
        _ => 10,
    };
    (windows << window_bits) + (tables_kib << 10)
}

/// Upper bound of a decoder's memory in bytes: the ring, and prefix codes for the 256 types each of
/// literals, commands and distances (RFC 7932 9.2).
pub(crate) const fn decoder_bytes(window_bits: u8) -> usize {
    (1 << window_bits) + (6 << 20)
}

/// Bytes of memory that a decoder takes before it knows its window; measured, rounded up.
pub(crate) const FIRST_BYTES: usize = 128 << 10;
/// Bytes of memory beside the window, for the number of types that pages use.
const BESIDE_BYTES: usize = 640 << 10;

/// Bytes after which an encoder ends a metablock. The library itself would go on to twice the
/// window and code all of it at once. The shorter metablock costs 0.2 % in size, and halves time
/// and memory.
const METABLOCK_BYTES: usize = 128 << 10;

pub(crate) struct BrotliEncoder {
    state: Box<BrotliEncoderStateStruct<CountingAllocator>>,
    /// Bytes left in the current metablock.
    room: usize,
}

impl BrotliEncoder {
    pub(crate) fn new(level: u8, window_bits: u8, length: Option<u64>) -> Self {
        let mut state = Box::new(BrotliEncoderStateStruct::new(CountingAllocator::default()));
        let hint = length.map_or(0, |length| u32::try_from(length).unwrap_or(u32::MAX));
        for (parameter, value) in [
            (Parameter::BROTLI_PARAM_QUALITY, u32::from(level)),
            (Parameter::BROTLI_PARAM_LGWIN, u32::from(window_bits)),
            (Parameter::BROTLI_PARAM_SIZE_HINT, hint),
        ] {
            state.set_parameter(parameter, value);
        }
        Self { state, room: METABLOCK_BYTES }
    }

    /// An encoder for a body of `length` bytes, with `dictionary` in its window.
    pub(crate) fn with_dictionary(
        level: u8,
        window_bits: u8,
        length: usize,
        dictionary: &[u8],
    ) -> Self {
        let all = (dictionary.len() + length) as u64;
        let mut encoder = Self::new(level, window_bits, Some(all));
        if !dictionary.is_empty() {
            encoder.state.set_custom_dictionary(dictionary.len(), dictionary);
        }
        encoder
    }

    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.state) + self.state.m8.peak()
    }

    pub(crate) fn step(
        &mut self,
        input: &[u8],
        output: &mut [u8],
        goal: FlushMode,
    ) -> Result<CodingProgress, Error> {
        let mut step = CodingProgress::default();
        while step.made < output.len() && !step.done {
            let left = &input[step.taken..];
            let piece = &left[..left.len().min(self.room)];
            // A full metablock is flushed before the next one begins.
            let is_all = piece.len() == left.len();
            let reached = if is_all { goal } else { FlushMode::Flush };
            let next = self.run(piece, &mut output[step.made..], reached)?;
            step.taken += next.taken;
            step.made += next.made;
            step.done = next.done && is_all;
            self.room -= next.taken;
            if next.done && reached > FlushMode::Gather {
                self.room = METABLOCK_BYTES;
            }
        }
        Ok(step)
    }

    fn run(
        &mut self,
        input: &[u8],
        output: &mut [u8],
        goal: FlushMode,
    ) -> Result<CodingProgress, Error> {
        let operation = match goal {
            FlushMode::Gather => Operation::BROTLI_OPERATION_PROCESS,
            FlushMode::Flush => Operation::BROTLI_OPERATION_FLUSH,
            FlushMode::Finish => Operation::BROTLI_OPERATION_FINISH,
        };
        let (mut left, mut room) = (input.len(), output.len());
        let (mut taken, mut made) = (0, 0);
        let ok = self.state.compress_stream(
            operation,
            &mut left,
            input,
            &mut taken,
            &mut room,
            output,
            &mut made,
            &mut None,
            &mut |_, _, _, _| (),
        );
        if !ok {
            return Err(Error::Library);
        }
        let done = left == 0
            && match goal {
                FlushMode::Gather => true,
                FlushMode::Flush => !self.state.has_more_output(),
                FlushMode::Finish => self.state.is_finished(),
            };
        Ok(CodingProgress { taken, made, done })
    }
}

pub(crate) struct BrotliDecoder {
    state: Box<BrotliState<CountingAllocator, CountingAllocator, CountingAllocator>>,
    window_bits: u8,
    position: DecoderPosition,
}

impl BrotliDecoder {
    /// A decoder for streams whose windows have at most `window_bits`.
    pub(crate) fn new(window_bits: u8) -> Self {
        let [a, b, c] = std::array::from_fn(|_| CountingAllocator::default());
        let state = Box::new(BrotliState::new_strict(a, b, c));
        Self { state, window_bits, position: DecoderPosition::Start }
    }

    /// A decoder for streams with a shared dictionary.
    pub(crate) fn with_dictionary(window_bits: u8, dictionary: &[u8]) -> Result<Self, Error> {
        let mut decoder = Self::new(window_bits);
        if !dictionary.is_empty() {
            let mut memory =
                Allocator::<u8>::alloc_cell(&mut decoder.state.alloc_u8, dictionary.len());
            memory.slice_mut().copy_from_slice(dictionary);
            if !decoder.state.attach_dictionary(memory) {
                return Err(Error::Library);
            }
        }
        Ok(decoder)
    }

    pub(crate) fn memory(&self) -> usize {
        let state = &self.state;
        let counted = [&state.alloc_u8, &state.alloc_u32, &state.alloc_hc];
        size_of_val(&**state) + counted.into_iter().map(CountingAllocator::peak).sum::<usize>()
    }

    /// Bytes of memory for the stream that begins with `input`; `None` if no stream begins here.
    pub(crate) fn frame_memory(&self, input: &[u8]) -> Option<usize> {
        let first = input.first().filter(|_| self.position == DecoderPosition::Start)?;
        let bits = window_bits(*first)?.min(self.window_bits);
        Some((1 << bits) + BESIDE_BYTES)
    }

    pub(crate) fn step(
        &mut self,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<CodingProgress, Error> {
        match (self.position, input.first()) {
            (DecoderPosition::Start | DecoderPosition::End, None) => {
                return Ok(CodingProgress { done: true, ..CodingProgress::default() });
            }
            (DecoderPosition::End, Some(_)) => return Err(Error::Trailing),
            (DecoderPosition::Start, Some(first)) => {
                if window_bits(*first).is_none_or(|bits| bits > self.window_bits) {
                    return Err(Error::Limit(DecodeLimit::Window));
                }
                self.position = DecoderPosition::Inside;
            }
            (DecoderPosition::Inside, _) => {}
        }
        let (mut left, mut room) = (input.len(), output.len());
        let (mut taken, mut made) = (0, 0);
        let result = BrotliDecompressStream(
            &mut left,
            &mut taken,
            input,
            &mut room,
            &mut made,
            output,
            &mut 0,
            &mut self.state,
        );
        let done = match result {
            BrotliResult::ResultFailure => return Err(Error::Corrupt),
            BrotliResult::NeedsMoreOutput => false,
            BrotliResult::NeedsMoreInput => left == 0,
            BrotliResult::ResultSuccess => {
                self.position = DecoderPosition::End;
                left == 0
            }
        };
        Ok(CodingProgress { taken, made, done })
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.position == DecoderPosition::End
    }
}

/// The window that a stream's first byte announces (RFC 7932 9.1); `None` for the reserved value,
/// which stands for larger windows than the RFC has.
const fn window_bits(first: u8) -> Option<u8> {
    match (first & 1, first >> 1 & 7, first >> 4 & 7) {
        (0, _, _) => Some(16),
        (_, 0, 0) => Some(17),
        (_, 0, 1) => None,
        (_, 0, more) => Some(8 + more),
        (_, more, _) => Some(17 + more),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_tells_the_window() {
        for bits in WINDOW_BITS {
            let mut encoder = BrotliEncoder::new(3, bits, None);
            let mut output = [0; 64];
            let step = encoder.step(b"x", &mut output, FlushMode::Finish).expect("memory");
            assert!(step.done && step.made > 0);
            assert_eq!(window_bits(output[0]), Some(bits));
        }
        assert_eq!(window_bits(0b001_0001), None);
    }
}
