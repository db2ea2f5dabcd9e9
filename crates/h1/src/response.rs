//! Response heads of origins: an incremental reader. It must never accept a head whose body has an
//! ambiguous length.

use base::Limit;
use message::header::FieldSpan;
use message::{Framing, HeaderId, Method, Response, Status, Version, list, tags};

use crate::class;
use crate::error::{FieldError, FramingError, ResponseError};
use crate::fields::{self, Event, FieldLines, LineFeeds};
use crate::framing::FramingFacts;
use crate::limits::HeadLimits;
use crate::progress::ReadProgress;

/// `HTTP/1.1 200`
const STATUS_BYTES: usize = 12;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ResponseStage {
    /// Version and status code.
    #[default]
    Status,
    Reason,
    ReasonCr,
    Fields,
}

/// The part of a response head that the connection needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// Length of the head in the buffer.
    pub consumed: usize,
    /// The framing of the body that follows.
    pub framing: Framing,
    /// True if the connection may carry another request after this response.
    pub keep_alive: bool,
    /// True if the head's Connection names Upgrade.
    pub upgrade: bool,
    /// True if a line ended without CR; see [`ResponseReader::take_line_feeds`].
    pub line_feeds: bool,
}

/// Reads one response head after another, incrementally.
///
/// Interim responses (1xx) are returned one by one, with [`Framing::None`]; the caller continues
/// after each. So is a 101, which a caller that asked for no upgrade must reject.
#[derive(Debug, Default)]
pub struct ResponseReader {
    stage: ResponseStage,
    /// Next byte of the status line to parse.
    pos: usize,
    line: StatusLine,
    lines: FieldLines,
    facts: FramingFacts,
}

#[derive(Clone, Copy, Debug, Default)]
struct StatusLine {
    version: Version,
    code: u16,
    reason_at: usize,
    reason_end: usize,
}

impl ResponseReader {
    /// A reader at the start of a response.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether LF alone ends a line of the following heads (RFC 9112 2.2). The default, also
    /// after a [reset](Self::reset), is no.
    pub fn take_line_feeds(&mut self, taken: bool) {
        let line_feeds = if taken { LineFeeds::Accepted } else { LineFeeds::Rejected };
        self.lines.set_line_feeds(line_feeds);
    }

    /// Drops the partial head, and keeps the memory.
    pub fn reset(&mut self) {
        self.next_head();
        self.take_line_feeds(false);
    }

    fn next_head(&mut self) {
        self.stage = ResponseStage::Status;
        self.pos = 0;
        self.line = StatusLine::default();
        self.facts = FramingFacts::default();
        self.lines.start(0);
    }

    /// Continues a head. `buf` starts at the first byte of this response; each call must pass the
    /// same bytes again, with more behind them. `request_method` is that of the request: a HEAD has
    /// no body.
    ///
    /// `response` is overwritten when the head is complete; the reader is then ready for the next
    /// head.
    ///
    /// # Errors
    /// At the first byte that makes the head invalid. The connection must be closed.
    pub fn read(
        &mut self,
        buf: &[u8],
        limits: &HeadLimits,
        request_method: &Method,
        response: &mut Response,
    ) -> Result<ReadProgress<ResponseHead>, ResponseError> {
        // Spans have 32 bits.
        let most = limits.head_bytes.saturating_add(limits.tag_bytes).min(u32::MAX as usize);
        let window = &buf[..buf.len().min(most)];
        let complete = self.advance(window, limits)?;
        if self.lines.position() > limits.head_bytes
            && self.lines.position().saturating_sub(self.tag_bytes(window)) > limits.head_bytes
        {
            return Err(Limit::HeaderBytes.into());
        }
        if complete {
            return self.finish(window, request_method, response).map(ReadProgress::Complete);
        }
        if window.len() >= most {
            return Err(Limit::HeaderBytes.into());
        }
        Ok(ReadProgress::Partial)
    }

    /// Bytes of the lines with surrogate keys read so far, including the present one.
    fn tag_bytes(&self, buf: &[u8]) -> usize {
        let section = &buf[self.lines.base()..];
        let is_tags = |span: &&FieldSpan| tags::is_tag_field(fields::name(section, span));
        let spans = self.lines.spans().iter().filter(is_tags);
        // At least `name:value` and the line's end, with its CR if it has one.
        let whole = spans.map(|span| usize::from(span.name_len) + span.value_len as usize + 3);
        whole.sum::<usize>() + self.lines.open_tag_bytes(buf)
    }

    /// Continues a head; true if the blank line was reached.
    fn advance(&mut self, buf: &[u8], limits: &HeadLimits) -> Result<bool, ResponseError> {
        while self.stage != ResponseStage::Fields {
            if !self.status_line(buf, limits)? {
                return Ok(false);
            }
        }
        loop {
            match self.lines.next(buf, limits)? {
                Event::Partial => return Ok(false),
                Event::End => return Ok(true),
                Event::Field(span) => {
                    let section = &buf[self.lines.base()..];
                    if span.id != HeaderId::ContentLength {
                        self.facts.note(&span, section, self.line.version)?;
                        continue;
                    }
                    match self.facts.note_lengths(fields::value(section, &span))? {
                        Some(len) => self.lines.shorten_last(len),
                        None => self.lines.drop_last(),
                    }
                }
            }
        }
    }

    /// Continues the status line; true if it is complete.
    fn status_line(&mut self, buf: &[u8], limits: &HeadLimits) -> Result<bool, ResponseError> {
        match self.stage {
            ResponseStage::Status => {
                while self.pos < STATUS_BYTES {
                    let Some(b) = buf.get(self.pos) else { return Ok(false) };
                    self.status_byte(*b)?;
                    self.pos += 1;
                }
                match buf.get(self.pos) {
                    None => return Ok(false),
                    Some(b' ') => self.pos += 1,
                    Some(b'\r') => {}
                    // An empty reason ends with it.
                    Some(b'\n') if self.lines.line_feeds() != LineFeeds::Rejected => {}
                    Some(b'\n') => return Err(FieldError::BareLf.into()),
                    Some(_) => return Err(ResponseError::StatusLine),
                }
                self.line.reason_at = self.pos;
                self.stage = ResponseStage::Reason;
            }
            ResponseStage::Reason => {
                let stop = limits.field_bytes;
                self.pos = class::skip_value(&buf[..buf.len().min(stop)], self.pos);
                match buf.get(self.pos) {
                    None => return Ok(false),
                    Some(b'\r') => {}
                    Some(_) if self.pos >= stop => return Err(Limit::HeaderFieldBytes.into()),
                    Some(b'\n') => {
                        self.lines.bare_line_feed()?;
                        self.line.reason_end = self.pos;
                        // The LF is read next.
                        self.stage = ResponseStage::ReasonCr;
                        return Ok(true);
                    }
                    Some(_) => return Err(FieldError::Control.into()),
                }
                self.line.reason_end = self.pos;
                self.pos += 1;
                self.stage = ResponseStage::ReasonCr;
            }
            ResponseStage::ReasonCr => {
                match buf.get(self.pos) {
                    None => return Ok(false),
                    Some(b'\n') => self.lines.start(self.pos + 1),
                    Some(_) => return Err(FieldError::BareCr.into()),
                }
                self.stage = ResponseStage::Fields;
            }
            ResponseStage::Fields => {}
        }
        Ok(true)
    }

    /// Checks one byte of `HTTP/1.x SP 3DIGIT`.
    fn status_byte(&mut self, b: u8) -> Result<(), ResponseError> {
        let right = match self.pos {
            at @ 0..=6 => b == b"HTTP/1."[at],
            7 => {
                self.line.version = if b == b'0' { Version::Http10 } else { Version::Http11 };
                b.is_ascii_digit()
            }
            8 => b == b' ',
            at => {
                self.line.code = self.line.code * 10 + u16::from(b.wrapping_sub(b'0'));
                b.is_ascii_digit() && (at > 9 || b != b'0')
            }
        };
        if right { Ok(()) } else { Err(ResponseError::StatusLine) }
    }

    fn finish(
        &mut self,
        buf: &[u8],
        request_method: &Method,
        response: &mut Response,
    ) -> Result<ResponseHead, ResponseError> {
        let StatusLine { version, .. } = self.line;
        let status = Status::new(self.line.code).ok_or(ResponseError::StatusLine)?;
        let consumed = self.lines.position();
        let facts = self.facts;
        // Bytes behind a 1xx would be parsed as the next head, so its end must be certain (RFC 9112
        // 6.1).
        if status.is_interim() && (facts.chunked || facts.length.is_some_and(|n| n > 0)) {
            return Err(FramingError::TransferEncodingForbidden.into());
        }
        let framing = if status.has_no_body() || *request_method == Method::Head {
            Framing::None
        } else if facts.chunked {
            Framing::Chunked
        } else {
            facts.length.map_or(Framing::UntilClose, Framing::Length)
        };
        // A 204 that announces a body may send one.
        let surplus =
            status.code() == 204 && (facts.chunked || facts.length.is_some_and(|n| n > 0));
        let keep_alive = facts.persistent(version) && framing != Framing::UntilClose && !surplus;
        let section = &buf[self.lines.base()..consumed];
        // Known fields are for every recipient, so Connection must not name them (RFC 9110 7.6.1):
        // without its Cache-Control, Vary or Set-Cookie a private response would be stored.
        facts.drop_nominated(&mut self.lines, section, |id| id != HeaderId::Other);
        self.fill(buf, consumed, status, response);
        let line_feeds = self.lines.line_feeds() == LineFeeds::Found;
        if line_feeds {
            self.take_line_feeds(true);
        }
        self.next_head();
        Ok(ResponseHead { consumed, framing, keep_alive, upgrade: facts.upgrade, line_feeds })
    }

    fn fill(&self, buf: &[u8], end: usize, status: Status, response: &mut Response) {
        response.version = self.line.version;
        response.status = status;
        response.no_reason = false;
        response.reason.clear();
        response
            .reason
            .extend_from_slice(list::trim(&buf[self.line.reason_at..self.line.reason_end]));
        response.headers.clear();
        for span in self.lines.spans() {
            response.headers.push_span(*span);
        }
        response.headers.adopt(&buf[self.lines.base()..end]);
    }
}
