//! gzip (RFC 1952) by zlib-rs through flate2. An encoder never writes optional header fields.

use std::ops::Range;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use crate::error::Error;
use crate::step::{CodingProgress, DecoderPosition, FlushMode};

/// Windows of 512 bytes to 32 KiB (RFC 1951). The library makes no smaller ones.
pub(crate) const WINDOW_BITS: std::ops::RangeInclusive<u8> = 9..=15;

/// Bytes of an encoder besides four windows: hash heads, symbols, pending output.
const ENCODER_BYTES: usize = 244 << 10;
/// Bytes of a decoder: the window and its tables.
pub(crate) const DECODER_BYTES: usize = 56 << 10;
/// Most bytes that a flush can write: the library holds up to 64 KiB of output and 64 KiB of
/// pending input, to which a step's input is added.
const FLUSH_BYTES: usize = 160 << 10;

/// Upper bound of an encoder's memory in bytes.
pub(crate) const fn encoder_bytes(window_bits: u8) -> usize {
    (4 << window_bits) + ENCODER_BYTES + FLUSH_BYTES
}

pub(crate) struct GzipEncoder {
    deflate: Compress,
    window_bits: u8,
    flushed: FlushOutput,
    /// True if all input is taken and flushed, and only the end of the stream is left.
    is_ending: bool,
}

/// Output of a flush until it is taken. The library needs room for all of it: otherwise it does not
/// record that it has flushed, and flushes again.
#[derive(Default)]
struct FlushOutput {
    bytes: Vec<u8>,
    taken: usize,
    /// True if nothing was fed since the flush.
    is_latest: bool,
    /// True if a flush has happened.
    is_used: bool,
}

impl FlushOutput {
    /// Moves bytes to `output`, and returns their number.
    fn take(&mut self, output: &mut [u8]) -> usize {
        let rest = &self.bytes[self.taken..];
        let len = rest.len().min(output.len());
        output[..len].copy_from_slice(&rest[..len]);
        self.taken += len;
        if self.taken == self.bytes.len() {
            (self.bytes, self.taken) = (Vec::new(), 0);
        }
        len
    }
}

impl GzipEncoder {
    /// The library's header has neither time nor name, so equal input gives equal bytes.
    pub(crate) fn new(level: u8, window_bits: u8) -> Self {
        let deflate = Compress::new_gzip(Compression::new(u32::from(level)), window_bits);
        Self { deflate, window_bits, flushed: FlushOutput::default(), is_ending: false }
    }

    pub(crate) fn memory(&self) -> usize {
        encoder_bytes(self.window_bits) - if self.flushed.is_used { 0 } else { FLUSH_BYTES }
    }

    pub(crate) fn step(
        &mut self,
        input: &[u8],
        output: &mut [u8],
        goal: FlushMode,
    ) -> Result<CodingProgress, Error> {
        let mut step =
            CodingProgress { made: self.flushed.take(output), ..CodingProgress::default() };
        if !self.flushed.bytes.is_empty() {
            return Ok(step);
        }
        let output = &mut output[step.made..];
        // The stream is flushed before its end, so that `segment` can cut the blocks out.
        let is_flushed = self.flushed.is_latest && input.is_empty();
        let is_open = !self.is_ending && !is_flushed;
        if goal == FlushMode::Finish
            && is_open
            && (self.deflate.total_in() > 0 || !input.is_empty())
        {
            self.flush(input)?;
            step.taken = input.len();
            step.made += self.flushed.take(output);
            return Ok(step);
        }
        self.is_ending |= goal == FlushMode::Finish;
        if goal == FlushMode::Flush {
            if !(self.flushed.is_latest && input.is_empty()) {
                self.flush(input)?;
                step.taken = input.len();
            }
            step.made += self.flushed.take(output);
            step.done = self.flushed.bytes.is_empty();
            return Ok(step);
        }
        let flush =
            if goal == FlushMode::Finish { FlushCompress::Finish } else { FlushCompress::None };
        let (taken, made) = (self.deflate.total_in(), self.deflate.total_out());
        let status = self.deflate.compress(input, output, flush).map_err(|_| Error::Library)?;
        step.taken = (self.deflate.total_in() - taken) as usize;
        step.made += (self.deflate.total_out() - made) as usize;
        self.flushed.is_latest &= step.taken == 0;
        step.done = match goal {
            FlushMode::Finish => status == Status::StreamEnd,
            _ => step.taken == input.len(),
        };
        Ok(step)
    }

    /// Takes all of `input`, and flushes.
    fn flush(&mut self, input: &[u8]) -> Result<(), Error> {
        let start = self.deflate.total_in();
        loop {
            let taken = (self.deflate.total_in() - start) as usize;
            let bytes = &mut self.flushed.bytes;
            bytes.reserve(FLUSH_BYTES);
            self.deflate
                .compress_vec(&input[taken..], bytes, FlushCompress::Sync)
                .map_err(|_| Error::Library)?;
            let is_all = self.deflate.total_in() - start == input.len() as u64;
            if is_all && bytes.len() < bytes.capacity() {
                bytes.shrink_to_fit();
                (self.flushed.is_latest, self.flushed.is_used) = (true, true);
                return Ok(());
            }
        }
    }
}

/// The inside of a gzip stream made here: deflate blocks that end at a byte boundary, none of them
/// the last, so that several segments form one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The range of the blocks in the stream.
    pub blocks: Range<usize>,
    /// The CRC-32 of the content.
    pub crc: u32,
    /// The length of the content modulo 2^32.
    pub length: u32,
}

/// Bytes before the blocks: a header without optional fields.
const HEAD_BYTES: usize = 10;
/// An empty last block, in fixed codes.
pub(crate) const LAST_BLOCK: [u8; 2] = [0x03, 0x00];
/// The end of an empty stored block, which ends every flush.
const FLUSHED: [u8; 4] = [0x00, 0x00, 0xff, 0xff];

/// The segment of `stream`, which an [`Encoder`](crate::Encoder) has made; `None` if it has another
/// shape. For a stream from elsewhere the result has no meaning.
pub fn segment(stream: &[u8]) -> Option<Segment> {
    let (rest, length) = stream.split_last_chunk()?;
    let (rest, crc) = rest.split_last_chunk()?;
    let blocks = rest.strip_suffix(&LAST_BLOCK)?;
    let has_head = blocks.len() >= HEAD_BYTES && blocks.starts_with(&[0x1f, 0x8b, 0x08, 0x00]);
    let is_flushed = blocks.len() == HEAD_BYTES || blocks.ends_with(&FLUSHED);
    (has_head && is_flushed).then(|| Segment {
        blocks: HEAD_BYTES..blocks.len(),
        crc: u32::from_le_bytes(*crc),
        length: u32::from_le_bytes(*length),
    })
}

/// A decoder. Consecutive members are one stream (RFC 1952 2.2).
pub(crate) struct GzipDecoder {
    inflate: Decompress,
    position: DecoderPosition,
}

impl GzipDecoder {
    pub(crate) fn new() -> Self {
        let inflate = Decompress::new_gzip(*WINDOW_BITS.end());
        Self { inflate, position: DecoderPosition::Start }
    }

    pub(crate) fn step(
        &mut self,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<CodingProgress, Error> {
        let mut step = CodingProgress::default();
        while self.begin(&input[step.taken..])? {
            let (taken, made) = (self.inflate.total_in(), self.inflate.total_out());
            let status = self
                .inflate
                .decompress(&input[step.taken..], &mut output[step.made..], FlushDecompress::None)
                .map_err(|_| Error::Corrupt)?;
            step.taken += (self.inflate.total_in() - taken) as usize;
            step.made += (self.inflate.total_out() - made) as usize;
            if status != Status::StreamEnd {
                step.done = step.taken == input.len() && step.made < output.len();
                return Ok(step);
            }
            self.position = DecoderPosition::End;
        }
        step.done = true;
        Ok(step)
    }

    /// Begins the next member, if one follows. Returns false at the end of the input.
    fn begin(&mut self, input: &[u8]) -> Result<bool, Error> {
        match (self.position, input.first()) {
            (DecoderPosition::Inside, _) => {}
            (DecoderPosition::Start | DecoderPosition::End, None) => return Ok(false),
            (DecoderPosition::Start, Some(_)) => self.position = DecoderPosition::Inside,
            // First byte of the magic number.
            (DecoderPosition::End, Some(0x1f)) => {
                self.inflate.reset(true);
                self.position = DecoderPosition::Inside;
            }
            (DecoderPosition::End, Some(_)) => return Err(Error::Trailing),
        }
        Ok(true)
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.position == DecoderPosition::End
    }
}
