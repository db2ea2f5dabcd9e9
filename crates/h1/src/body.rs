//! Body reader: separates the data of a body from its framing.
//!
//! Chunk extensions are checked, limited and dropped: an intermediary must never forward those that
//! it does not parse (RFC 9112 7.1.1). Trailer fields are checked and limited; those that may pass
//! are kept (RFC 9110 6.5.1).

use std::ops::Range;

use message::trailers::{Judgement, judge};
use message::{Framing, Trailers};

use crate::class;
use crate::error::{BodyError, FieldError};

/// Chunk extension bytes of one body, far beyond normal use.
const EXTENSION_BYTES: usize = 4096;
/// Digits of a chunk size: sixteen fill a `u64`.
const SIZE_DIGITS: u8 = 16;

/// The result of one [`BodyReader::read`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyStep {
    /// Bytes consumed; the caller continues behind them.
    pub consumed: usize,
    /// The consumed bytes that are body data; may be empty.
    pub data: Range<usize>,
    /// True if the body has ended.
    pub done: bool,
}

/// Reader of one body. Consumed bytes must not be passed to it again.
#[derive(Clone, Debug)]
pub struct BodyReader {
    state: BodyState,
    /// True if white space may follow a chunk's size.
    padded_sizes: bool,
    extension_left: usize,
    trailer_left: usize,
    /// The present trailer field: its name, followed by the part of its value received so far.
    line: Vec<u8>,
    name_len: usize,
    trailers: Trailers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyState {
    Length(u64),
    UntilClose,
    Size { size: u64, digits: u8 },
    Padding { size: u64 },
    Extension { size: u64, part: Extension },
    SizeLf { size: u64 },
    Data(u64),
    DataCr,
    DataLf,
    Trailer(Trailer),
    Done,
    Failed(BodyError),
}

/// The position in `*( BWS ";" BWS name [ BWS "=" BWS value ] )` (RFC 9112 7.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extension {
    BeforeName,
    Name,
    AfterName,
    BeforeValue,
    Token,
    Quoted,
    Escaped,
    QuoteEnd,
    AfterValue,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trailer {
    LineStart,
    Name,
    Value,
    LineCr,
    LastCr,
}

impl BodyReader {
    /// A reader for a request's body; its trailer fields may have `trailer_limit` bytes in all.
    pub fn new(framing: Framing, trailer_limit: usize) -> Self {
        let state = match framing {
            Framing::None | Framing::Length(0) => BodyState::Done,
            Framing::Length(length) => BodyState::Length(length),
            Framing::Chunked => BodyState::Size { size: 0, digits: 0 },
            Framing::UntilClose => BodyState::UntilClose,
        };
        Self {
            state,
            padded_sizes: false,
            extension_left: EXTENSION_BYTES,
            trailer_left: trailer_limit,
            line: Vec::new(),
            name_len: 0,
            trailers: Trailers::default(),
        }
    }

    /// A reader for a response's body: as [`BodyReader::new`], but white space may follow a chunk's
    /// size, as some origins pad it to a fixed width.
    pub fn for_response(framing: Framing, trailer_limit: usize) -> Self {
        Self { padded_sizes: true, ..Self::new(framing, trailer_limit) }
    }

    /// Consumes `buf` up to the end of the next run of body data or of `buf`. Call it again with
    /// the bytes behind until the step is done.
    ///
    /// # Errors
    /// If the chunked coding is malformed: the connection must be closed. Later calls return the
    /// same error.
    pub fn read(&mut self, buf: &[u8]) -> Result<BodyStep, BodyError> {
        let mut at = 0;
        loop {
            match self.state {
                BodyState::Done => return Ok(BodyStep { consumed: at, data: at..at, done: true }),
                BodyState::Failed(error) => return Err(error),
                BodyState::Length(_) | BodyState::UntilClose | BodyState::Data(_) => {
                    let end = self.take(at, buf.len());
                    let done = self.state == BodyState::Done;
                    return Ok(BodyStep { consumed: end, data: at..end, done });
                }
                _ => {}
            }
            let Some(b) = buf.get(at) else {
                return Ok(BodyStep { consumed: at, data: at..at, done: false });
            };
            match self.step(*b) {
                Ok(state) => self.state = state,
                Err(error) => self.state = BodyState::Failed(error),
            }
            at += 1;
        }
    }

    /// Consumes data between `at` and `end`; returns the end of the data.
    fn take(&mut self, at: usize, end: usize) -> usize {
        let (left, after) = match self.state {
            BodyState::Length(left) => (left, BodyState::Done),
            BodyState::Data(left) => (left, BodyState::DataCr),
            _ => return end,
        };
        let taken = usize::try_from(left).unwrap_or(usize::MAX).min(end - at);
        let left = left - taken as u64;
        self.state = match self.state {
            _ if left == 0 => after,
            BodyState::Length(_) => BodyState::Length(left),
            _ => BodyState::Data(left),
        };
        at + taken
    }

    /// The state after `b`, a byte of the chunked coding itself.
    fn step(&mut self, b: u8) -> Result<BodyState, BodyError> {
        match self.state {
            BodyState::Size { size, digits } => self.size(size, digits, b),
            BodyState::Padding { size } => match b {
                b' ' | b'\t' => self.extension_byte(BodyState::Padding { size }),
                b'\r' => Ok(BodyState::SizeLf { size }),
                b';' => {
                    self.extension_byte(BodyState::Extension { size, part: Extension::BeforeName })
                }
                _ => Err(BodyError::ChunkSize),
            },
            BodyState::Extension { size, part } if b == b'\r' && part.may_end() => {
                Ok(BodyState::SizeLf { size })
            }
            BodyState::Extension { size, part } => {
                let part = part.step(b)?;
                self.extension_byte(BodyState::Extension { size, part })
            }
            BodyState::SizeLf { size } => match (b, size) {
                (b'\n', 0) => Ok(BodyState::Trailer(Trailer::LineStart)),
                (b'\n', _) => Ok(BodyState::Data(size)),
                _ => Err(BodyError::ChunkEnd),
            },
            BodyState::DataCr if b == b'\r' => Ok(BodyState::DataLf),
            BodyState::DataLf if b == b'\n' => Ok(BodyState::Size { size: 0, digits: 0 }),
            BodyState::DataCr | BodyState::DataLf => Err(BodyError::ChunkEnd),
            BodyState::Trailer(part) => self.trailer(part, b),
            state => Ok(state),
        }
    }

    fn size(&mut self, size: u64, digits: u8, b: u8) -> Result<BodyState, BodyError> {
        match char::from(b).to_digit(16) {
            Some(digit) if digits < SIZE_DIGITS => {
                Ok(BodyState::Size { size: size << 4 | u64::from(digit), digits: digits + 1 })
            }
            None if digits > 0 => match b {
                b'\r' => Ok(BodyState::SizeLf { size }),
                b';' => {
                    self.extension_byte(BodyState::Extension { size, part: Extension::BeforeName })
                }
                b' ' | b'\t' if self.padded_sizes => {
                    self.extension_byte(BodyState::Padding { size })
                }
                b'\n' => Err(BodyError::ChunkEnd),
                _ => Err(BodyError::ChunkSize),
            },
            _ => Err(BodyError::ChunkSize),
        }
    }

    fn extension_byte(&mut self, next: BodyState) -> Result<BodyState, BodyError> {
        self.extension_left =
            self.extension_left.checked_sub(1).ok_or(BodyError::ChunkExtensionBytes)?;
        Ok(next)
    }

    fn trailer(&mut self, part: Trailer, b: u8) -> Result<BodyState, BodyError> {
        let error = |error| Err(BodyError::Trailer(error));
        let next = match (part, b) {
            // The blank line is not part of the trailer section.
            (Trailer::LineStart, b'\r') => return Ok(BodyState::Trailer(Trailer::LastCr)),
            (Trailer::LastCr, b'\n') => return Ok(BodyState::Done),
            (Trailer::LineStart, b' ' | b'\t') => return error(FieldError::ObsFold),
            (Trailer::LineStart, b':') => return error(FieldError::EmptyName),
            (Trailer::LineStart, b) if class::is(b, class::TOKEN) => {
                self.line.clear();
                self.line.push(b);
                Trailer::Name
            }
            (Trailer::Name, b) if class::is(b, class::TOKEN) => {
                self.line.push(b);
                Trailer::Name
            }
            (Trailer::Name, b':') => {
                self.name_len = self.line.len();
                if judge(&self.line) == Judgement::Refuse {
                    return Err(BodyError::TrailerForbidden);
                }
                Trailer::Value
            }
            (Trailer::Name, b' ' | b'\t') => return error(FieldError::SpaceBeforeColon),
            (Trailer::LineStart | Trailer::Name | Trailer::Value, b'\n') => {
                return error(FieldError::BareLf);
            }
            (Trailer::LineStart | Trailer::Name, _) => return error(FieldError::Name),
            (Trailer::Value, b'\r') => Trailer::LineCr,
            (Trailer::Value, b'\t' | 0x20..=0x7e | 0x80..) => {
                self.line.push(b);
                Trailer::Value
            }
            (Trailer::Value, _) => return error(FieldError::Control),
            (Trailer::LineCr, b'\n') => {
                let (name, value) = self.line.split_at(self.name_len);
                if judge(name) == Judgement::Pass {
                    self.trailers.push(name, value);
                }
                Trailer::LineStart
            }
            (Trailer::LineCr | Trailer::LastCr, _) => return error(FieldError::BareCr),
        };
        self.trailer_left = self.trailer_left.checked_sub(1).ok_or(BodyError::TrailerBytes)?;
        Ok(BodyState::Trailer(next))
    }

    /// Takes the trailer fields that may pass; `None` before the end of the body.
    pub fn take_trailers(&mut self) -> Option<Trailers> {
        if self.is_done() { std::mem::take(&mut self.trailers).non_empty() } else { None }
    }

    /// Checks that the connection may end here.
    ///
    /// # Errors
    /// [`BodyError::Truncated`] unless the body is complete or ends with the connection: the bytes
    /// received must not pass for a complete body. After a failed read, the error of that read.
    pub fn at_eof(&self) -> Result<(), BodyError> {
        match self.state {
            BodyState::Done | BodyState::UntilClose => Ok(()),
            BodyState::Failed(error) => Err(error),
            _ => Err(BodyError::Truncated),
        }
    }

    /// Returns true if the body was read to its end.
    pub fn is_done(&self) -> bool {
        self.state == BodyState::Done
    }

    /// Bytes of data still to come, if the framing declares them.
    pub fn remaining(&self) -> Option<u64> {
        match self.state {
            BodyState::Done => Some(0),
            BodyState::Length(left) => Some(left),
            _ => None,
        }
    }
}

impl Extension {
    /// Returns true if the chunk line may end here.
    fn may_end(self) -> bool {
        matches!(self, Self::Name | Self::Token | Self::QuoteEnd)
    }

    fn step(self, b: u8) -> Result<Self, BodyError> {
        let token = class::is(b, class::TOKEN);
        Ok(match (self, b) {
            (Self::BeforeName, b' ' | b'\t') => Self::BeforeName,
            (Self::BeforeName | Self::Name, _) if token => Self::Name,
            (Self::Name | Self::AfterName, b' ' | b'\t') => Self::AfterName,
            (Self::Name | Self::AfterName, b'=') => Self::BeforeValue,
            (Self::BeforeValue, b' ' | b'\t') => Self::BeforeValue,
            (Self::BeforeValue | Self::Token, _) if token => Self::Token,
            (Self::BeforeValue, b'"') => Self::Quoted,
            (Self::Quoted, b'"') => Self::QuoteEnd,
            (Self::Quoted, b'\\') => Self::Escaped,
            (Self::Quoted | Self::Escaped, b'\t' | 0x20..=0x7e | 0x80..) => Self::Quoted,
            (Self::Token | Self::QuoteEnd | Self::AfterValue, b' ' | b'\t') => Self::AfterValue,
            (
                Self::Name | Self::AfterName | Self::Token | Self::QuoteEnd | Self::AfterValue,
                b';',
            ) => Self::BeforeName,
            _ => return Err(BodyError::ChunkExtension),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measured_body_counts_down_to_its_end() {
        let mut body = BodyReader::new(Framing::Length(5), 0);
        assert_eq!(body.remaining(), Some(5));
        let step = body.read(b"hel");
        assert_eq!(step, Ok(BodyStep { consumed: 3, data: 0..3, done: false }));
        assert_eq!((body.remaining(), body.at_eof()), (Some(2), Err(BodyError::Truncated)));
        let step = body.read(b"loGET /");
        assert_eq!(step, Ok(BodyStep { consumed: 2, data: 0..2, done: true }));
        assert_eq!((body.remaining(), body.at_eof()), (Some(0), Ok(())));
        let step = body.read(b"GET /");
        assert_eq!(step, Ok(BodyStep { consumed: 0, data: 0..0, done: true }));
    }

    #[test]
    fn no_body_is_done_before_its_first_byte() {
        for framing in [Framing::None, Framing::Length(0)] {
            assert!(BodyReader::new(framing, 0).is_done());
        }
    }

    #[test]
    fn a_body_until_close_has_no_end_but_the_connections() {
        let mut body = BodyReader::for_response(Framing::UntilClose, 0);
        let step = body.read(b"0\r\n\r\n");
        assert_eq!(step, Ok(BodyStep { consumed: 5, data: 0..5, done: false }));
        assert_eq!((body.remaining(), body.at_eof(), body.is_done()), (None, Ok(()), false));
    }

    #[test]
    fn each_step_ends_with_the_data_of_one_chunk() {
        let mut body = BodyReader::new(Framing::Chunked, 0);
        let step = body.read(b"5;a=b\r\nhello\r\n2\r\n!!\r\n0\r\n\r\n");
        assert_eq!(step, Ok(BodyStep { consumed: 12, data: 7..12, done: false }));
        let step = body.read(b"\r\n2\r\n!!\r\n0\r\n\r\nGET");
        assert_eq!(step, Ok(BodyStep { consumed: 7, data: 5..7, done: false }));
        let step = body.read(b"\r\n0\r\n\r\nGET");
        assert_eq!(step, Ok(BodyStep { consumed: 7, data: 7..7, done: true }));
    }

    #[test]
    fn a_broken_body_stays_broken() {
        let mut body = BodyReader::new(Framing::Chunked, 0);
        assert_eq!(body.read(b"x"), Err(BodyError::ChunkSize));
        assert_eq!(body.read(b"0\r\n\r\n"), Err(BodyError::ChunkSize));
        assert_eq!(body.at_eof(), Err(BodyError::ChunkSize));
        assert!(!body.is_done());
    }

    #[test]
    fn trailers_are_there_when_the_body_is_whole_and_not_before() {
        let wire = b"0\r\nX-Sum:  a b\t\r\nSet-Cookie: c\r\nx_sum:\r\nDigest: \x80\r\n\r\n";
        for piece in 1..=wire.len() {
            let mut body = BodyReader::new(Framing::Chunked, 100);
            for part in wire[..wire.len() - 1].chunks(piece) {
                assert!(body.read(part).is_ok_and(|step| step.consumed == part.len()));
                assert_eq!(body.take_trailers(), None);
            }
            assert!(body.read(b"\n").is_ok_and(|step| step.done));
            let trailers = body.take_trailers().unwrap_or_default();
            assert_eq!(trailers.lines(), b"X-Sum: a b\r\nx_sum: \r\nDigest: \x80\r\n");
            assert_eq!(body.take_trailers(), None);
        }
    }

    #[test]
    fn trailers_of_a_broken_body_are_never_there() {
        let mut body = BodyReader::new(Framing::Chunked, 100);
        assert!(body.read(b"0\r\nA: b\r\nHost: c\r\n\r\n").is_err());
        assert_eq!(body.take_trailers(), None);
        let mut cut = BodyReader::for_response(Framing::Chunked, 100);
        assert!(cut.read(b"0\r\nA: b\r\n").is_ok_and(|step| !step.done));
        assert_eq!((cut.at_eof(), cut.take_trailers()), (Err(BodyError::Truncated), None));
    }

    #[test]
    fn a_trailer_section_may_fill_its_limit() {
        let read = |limit| BodyReader::new(Framing::Chunked, limit).read(b"0\r\nA: b\r\n\r\n");
        assert!(read(6).is_ok_and(|step| step.done));
        assert_eq!(read(5), Err(BodyError::TrailerBytes));
        assert_eq!(BodyError::TrailerBytes.limit(), Some(base::Limit::TrailerBytes));
    }
}
