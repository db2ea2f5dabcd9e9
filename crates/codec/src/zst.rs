//! Zstandard (RFC 8878) by the reference library in C. A window never exceeds 8 MiB.

use zstd_safe::zstd_sys::{ZSTD_EndDirective as Directive, ZSTD_ErrorCode as Code};
use zstd_safe::{CCtx, CParameter, DCtx, DParameter, InBuffer, OutBuffer, is_error_kind};

use crate::error::{DecodeLimit, Error};
use crate::step::{CodingProgress, DecoderPosition, FlushMode};

/// Windows of 1 KiB to 8 MiB: decoders of HTTP content must take them, and may reject larger ones
/// (RFC 9659 3).
pub(crate) const WINDOW_BITS: std::ops::RangeInclusive<u8> = 10..=23;

/// Bytes of a block. The library's 128 KiB would save 1 % in size, and make a step four times as
/// long.
const BLOCK_BYTES: u32 = 32 << 10;

/// KiB that the tables of each level take at the largest window; measured.
const TABLES_KIB: [usize; 19] = [
    273, 465, 977, 2257, 2769, 2769, 5329, 5329, 10449, 20689, 20689, 41169, 32977, 49361, 65745,
    33122, 49506, 50048, 82816,
];

/// Upper bound of an encoder's memory in bytes. Tables take at most 19 windows; from level 11 on
/// the search takes more beside them.
pub(crate) fn encoder_bytes(level: u8, window_bits: u8) -> usize {
    let window = 1 << window_bits;
    let tables = TABLES_KIB.get(usize::from(level) - 1).map_or(usize::MAX, |kib| kib << 10);
    let rest = if level > 10 { 512 << 10 } else { 64 << 10 };
    window + tables.min(19 * window) + rest
}

/// Bytes of a decoder beside its window: two blocks of 128 KiB, and tables.
const BESIDE_BYTES: usize = 512 << 10;

/// Upper bound of a decoder's memory in bytes.
pub(crate) const fn decoder_bytes(window_bits: u8) -> usize {
    (1 << window_bits) + BESIDE_BYTES
}

/// Bytes of memory that a decoder takes before it has read a frame header.
pub(crate) const FIRST_BYTES: usize = 192 << 10;
/// The first bytes of a frame (RFC 8878 3.1.1).
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The window of the frame at the beginning of `input`; `None` if `input` is too short to show it,
/// or begins no frame.
fn window_bytes(input: &[u8]) -> Option<u64> {
    let (descriptor, rest) = input.strip_prefix(&MAGIC)?.split_first()?;
    if descriptor & 0x20 == 0 {
        let window = rest.first()?;
        let base = 1_u64 << (10 + (window >> 3));
        return Some(base + base / 8 * u64::from(window & 7));
    }
    // A single-segment frame: the window is its whole content.
    let rest = rest.get([0, 1, 2, 4][usize::from(descriptor & 3)]..)?;
    let length = 1 << (descriptor >> 6);
    let mut content = [0; 8];
    content[..length].copy_from_slice(rest.get(..length)?);
    let content = u64::from_le_bytes(content);
    Some(if length == 2 { content + 256 } else { content })
}

pub(crate) struct ZstdEncoder {
    context: CCtx<'static>,
}

impl ZstdEncoder {
    pub(crate) fn new(level: u8, window_bits: u8, length: Option<u64>) -> Result<Self, Error> {
        let mut context = CCtx::try_create().ok_or(Error::Library)?;
        // Without a size hint the tables are those of a long body, whatever the window.
        let window = 1 << window_bits;
        let hint = length.map_or(window, |length| length.clamp(1, u64::from(window)) as u32);
        for parameter in [
            CParameter::CompressionLevel(i32::from(level)),
            CParameter::WindowLog(u32::from(window_bits)),
            CParameter::SrcSizeHint(hint),
            CParameter::MaxBlockSize(BLOCK_BYTES),
        ] {
            context.set_parameter(parameter).map_err(|_| Error::Library)?;
        }
        Ok(Self { context })
    }

    pub(crate) fn memory(&self) -> usize {
        self.context.sizeof()
    }

    pub(crate) fn step(
        &mut self,
        input: &[u8],
        output: &mut [u8],
        goal: FlushMode,
    ) -> Result<CodingProgress, Error> {
        let directive = match goal {
            FlushMode::Gather => Directive::ZSTD_e_continue,
            FlushMode::Flush => Directive::ZSTD_e_flush,
            FlushMode::Finish => Directive::ZSTD_e_end,
        };
        let (mut from, mut to) = (InBuffer::around(input), OutBuffer::around(output));
        let left = self
            .context
            .compress_stream2(&mut to, &mut from, directive)
            .map_err(|_| Error::Library)?;
        let (taken, made) = (from.pos(), to.pos());
        let done = taken == input.len() && (goal == FlushMode::Gather || left == 0);
        Ok(CodingProgress { taken, made, done })
    }
}

/// A decoder. Consecutive frames are one stream (RFC 8878 3).
pub(crate) struct ZstdDecoder {
    context: DCtx<'static>,
    window_bits: u8,
    position: DecoderPosition,
}

impl ZstdDecoder {
    /// A decoder for frames whose windows have at most `window_bits`.
    pub(crate) fn new(window_bits: u8) -> Result<Self, Error> {
        let mut context = DCtx::try_create().ok_or(Error::Library)?;
        let largest = DParameter::WindowLogMax(u32::from(window_bits));
        context.set_parameter(largest).map_err(|_| Error::Library)?;
        Ok(Self { context, window_bits, position: DecoderPosition::Start })
    }

    pub(crate) fn memory(&self) -> usize {
        self.context.sizeof()
    }

    /// Bytes of memory for the frame at the beginning of `input`; `None` if no frame begins here.
    pub(crate) fn begins_with(&self, input: &[u8]) -> Option<usize> {
        if self.position == DecoderPosition::Inside || input.is_empty() {
            return None;
        }
        let most = decoder_bytes(self.window_bits);
        let announced = window_bytes(input).and_then(|window| usize::try_from(window).ok());
        Some(announced.map_or(most, |window| window.saturating_add(BESIDE_BYTES).min(most)))
    }

    pub(crate) fn step(
        &mut self,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<CodingProgress, Error> {
        if input.is_empty() && self.position != DecoderPosition::Inside {
            return Ok(CodingProgress { done: true, ..CodingProgress::default() });
        }
        let (mut from, mut to) = (InBuffer::around(input), OutBuffer::around(output));
        let after_one = self.position == DecoderPosition::End;
        let left = self.context.decompress_stream(&mut to, &mut from).map_err(|code| {
            let is = |kind| is_error_kind(code, kind);
            match () {
                () if is(Code::ZSTD_error_frameParameter_windowTooLarge) => {
                    Error::Limit(DecodeLimit::Window)
                }
                () if is(Code::ZSTD_error_memory_allocation) => Error::Library,
                () if after_one && is(Code::ZSTD_error_prefix_unknown) => Error::Trailing,
                () => Error::Corrupt,
            }
        })?;
        let (taken, made) = (from.pos(), to.pos());
        self.position = if left == 0 { DecoderPosition::End } else { DecoderPosition::Inside };
        let done = taken == input.len() && (left == 0 || made < to.capacity());
        Ok(CodingProgress { taken, made, done })
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.position == DecoderPosition::End
    }
}
