//! Request heads of clients: an incremental reader. It must never accept a head that another
//! implementation could interpret differently.

use base::Limit;
use message::authority::{parse_authority, write_authority};
use message::header::FieldSpan;
use message::{Framing, HeaderId, Method, Request, Scheme, Upgrade, Version, target};

use crate::class;
use crate::error::{FieldError, RequestError};
use crate::fields::{self, Event, FieldLines};
use crate::framing::FramingFacts;
use crate::limits::HeadLimits;
use crate::progress::ReadProgress;

/// Longest method, in bytes; the longest registered one has 16 (UPDATEREDIRECTREF has 17).
const METHOD_BYTES: usize = 32;
/// `HTTP/1.1`
const VERSION_BYTES: usize = 8;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum RequestStage {
    /// Before the request line; empty lines are permitted here (RFC 9112 2.2).
    #[default]
    Start,
    StartCr,
    Method,
    Target,
    Version,
    VersionCr,
    Fields,
}

/// Reads one request head after another, incrementally.
///
/// It belongs to one head from the first [`RequestReader::read`] until that returns
/// [`ReadProgress::Complete`], and is then ready for the next. After an error it must be
/// [reset](RequestReader::reset).
#[derive(Debug, Default)]
pub struct RequestReader {
    stage: RequestStage,
    /// Next byte of the request line to parse.
    pos: usize,
    /// Start of the method, and later of the target.
    part_at: usize,
    target_end: usize,
    /// True if the target has bytes beyond ASCII.
    target_is_raw: bool,
    lines: FieldLines,
    facts: FramingFacts,
    absolute: bool,
    host_seen: bool,
    upgrade_seen: bool,
    expect: Expect,
    /// Buffer for checking a Host that an absolute target overrides.
    overruled_host: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Expect {
    #[default]
    None,
    Continue,
    Other,
}

impl RequestReader {
    /// A reader at the start of a connection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Drops the partial head and keeps the memory.
    pub fn reset(&mut self) {
        self.stage = RequestStage::Start;
        self.pos = 0;
        self.part_at = 0;
        self.target_end = 0;
        self.target_is_raw = false;
        self.facts = FramingFacts::default();
        self.absolute = false;
        self.host_seen = false;
        self.upgrade_seen = false;
        self.expect = Expect::None;
        self.lines.start(0);
    }

    /// Returns true if a byte of a head was received. A CRLF before the request line does not
    /// count: old clients send one after a body and then stay idle.
    pub fn started(&self) -> bool {
        !matches!(self.stage, RequestStage::Start | RequestStage::StartCr)
    }

    /// Continues a head. `buf` starts at the first byte of this request; each call must pass the
    /// same bytes again, with more behind them. [`ReadProgress::Complete`] has the length of the
    /// head.
    ///
    /// `request` must have been cleared before the first call. Its header fields are set when the
    /// head is complete; method and target already after the request line, so that a rejected
    /// request can be logged.
    ///
    /// # Errors
    /// At the first byte that makes the head invalid. The connection must be closed after the
    /// reply.
    pub fn read(
        &mut self,
        buf: &[u8],
        limits: &HeadLimits,
        scheme: Scheme,
        request: &mut Request,
    ) -> Result<ReadProgress<usize>, RequestError> {
        // Spans have 32 bits.
        let most = limits.head_bytes.min(u32::MAX as usize);
        let window = &buf[..buf.len().min(most)];
        if self.stage != RequestStage::Fields
            && !self.request_line(window, limits, scheme, request)?
        {
            return self.partial(window, most);
        }
        loop {
            match self.lines.next(window, limits)? {
                Event::Partial => return self.partial(window, most),
                Event::Field(span) => {
                    self.field(&window[self.lines.base()..], &span, scheme, request)?;
                }
                Event::End => return self.finish(window, request).map(ReadProgress::Complete),
            }
        }
    }

    fn partial(&self, window: &[u8], most: usize) -> Result<ReadProgress<usize>, RequestError> {
        if window.len() >= most {
            return Err(Limit::HeaderBytes.into());
        }
        Ok(ReadProgress::Partial)
    }

    /// Continues the request line; true if it is complete.
    fn request_line(
        &mut self,
        buf: &[u8],
        limits: &HeadLimits,
        scheme: Scheme,
        request: &mut Request,
    ) -> Result<bool, RequestError> {
        while self.stage != RequestStage::Fields {
            let more = match self.stage {
                RequestStage::Start | RequestStage::StartCr => self.start(buf)?,
                RequestStage::Method => self.method(buf, request)?,
                RequestStage::Target => self.target(buf, limits)?,
                RequestStage::Version => self.version(buf)?,
                RequestStage::VersionCr => self.line_end(buf, scheme, request)?,
                RequestStage::Fields => true,
            };
            if !more {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn start(&mut self, buf: &[u8]) -> Result<bool, RequestError> {
        let Some(b) = buf.get(self.pos) else { return Ok(false) };
        match (self.stage, b) {
            (RequestStage::StartCr, b'\n') => {
                self.pos += 1;
                self.stage = RequestStage::Start;
            }
            (RequestStage::StartCr, _) => return Err(FieldError::BareCr.into()),
            (_, b'\r') => {
                self.pos += 1;
                self.stage = RequestStage::StartCr;
            }
            (_, b'\n') => return Err(FieldError::BareLf.into()),
            (_, b) if class::is(*b, class::TOKEN) => {
                self.part_at = self.pos;
                self.stage = RequestStage::Method;
            }
            _ => return Err(RequestError::RequestLine),
        }
        Ok(true)
    }

    fn method(&mut self, buf: &[u8], request: &mut Request) -> Result<bool, RequestError> {
        let stop = self.part_at + METHOD_BYTES;
        self.pos = class::skip(&buf[..buf.len().min(stop)], self.pos, class::TOKEN);
        match buf.get(self.pos) {
            None => Ok(false),
            Some(b' ') => {
                request.method = Method::from_token(&buf[self.part_at..self.pos]);
                self.pos += 1;
                self.part_at = self.pos;
                self.stage = RequestStage::Target;
                Ok(true)
            }
            Some(_) if self.pos >= stop => Err(RequestError::MethodTooLong),
            Some(b'\n') => Err(FieldError::BareLf.into()),
            Some(_) => Err(RequestError::RequestLine),
        }
    }

    fn target(&mut self, buf: &[u8], limits: &HeadLimits) -> Result<bool, RequestError> {
        let stop = self.part_at.saturating_add(limits.target_bytes);
        let window = &buf[..buf.len().min(stop)];
        self.pos = class::skip_target(window, self.pos);
        while limits.raw_utf8 && window.get(self.pos).is_some_and(|b| !b.is_ascii()) {
            self.target_is_raw = true;
            self.pos = class::skip_target(window, self.pos + 1);
        }
        match buf.get(self.pos) {
            None => Ok(false),
            Some(b' ') if self.pos > self.part_at => {
                if self.target_is_raw {
                    let escaped = target::escaped_len(&buf[self.part_at..self.pos]);
                    if escaped.ok_or(RequestError::TargetByte)? > limits.target_bytes {
                        return Err(Limit::TargetBytes.into());
                    }
                }
                self.target_end = self.pos;
                self.pos += 1;
                self.stage = RequestStage::Version;
                Ok(true)
            }
            Some(_) if self.pos >= stop => Err(Limit::TargetBytes.into()),
            Some(b'\n') => Err(FieldError::BareLf.into()),
            Some(b' ' | b'\r') => Err(RequestError::RequestLine),
            Some(_) => Err(RequestError::TargetByte),
        }
    }

    fn version(&mut self, buf: &[u8]) -> Result<bool, RequestError> {
        let start = self.target_end + 1;
        let stop = start + VERSION_BYTES;
        if self.pos == start && buf.get(start..=stop) == Some(b"HTTP/1.1\r") {
            self.pos = stop;
        }
        loop {
            let Some(b) = buf.get(self.pos) else { return Ok(false) };
            match b {
                b'\r' => break,
                b'\n' => return Err(FieldError::BareLf.into()),
                b' ' | b'\t' => return Err(RequestError::RequestLine),
                _ if self.pos >= stop => return Err(RequestError::RequestLine),
                _ => self.pos += 1,
            }
        }
        self.pos += 1;
        self.stage = RequestStage::VersionCr;
        Ok(true)
    }

    fn line_end(
        &mut self,
        buf: &[u8],
        scheme: Scheme,
        request: &mut Request,
    ) -> Result<bool, RequestError> {
        match buf.get(self.pos) {
            None => return Ok(false),
            Some(b'\n') => {}
            Some(_) => return Err(FieldError::BareCr.into()),
        }
        request.version = match &buf[self.target_end + 1..self.pos - 1] {
            b"HTTP/1.1" => Version::Http11,
            b"HTTP/1.0" => Version::Http10,
            // A later minor version is compatible with 1.1 (RFC 9110 2.5).
            [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'2'..=b'9'] => Version::Http11,
            [b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9'] => {
                return Err(RequestError::Version);
            }
            _ => return Err(RequestError::RequestLine),
        };
        if request.method == Method::Connect {
            return Err(RequestError::Connect);
        }
        request.scheme = scheme;
        self.absolute = target::read(&buf[self.part_at..self.target_end], scheme, request)?;
        self.lines.start(self.pos + 1);
        self.stage = RequestStage::Fields;
        Ok(true)
    }

    fn field(
        &mut self,
        section: &[u8],
        span: &FieldSpan,
        scheme: Scheme,
        request: &mut Request,
    ) -> Result<(), RequestError> {
        let value = fields::value(section, span);
        match span.id {
            HeaderId::Host => {
                if std::mem::replace(&mut self.host_seen, true) {
                    return Err(RequestError::DuplicateHost);
                }
                if self.absolute {
                    parse_authority(value, scheme, &mut self.overruled_host)?;
                } else if !value.is_empty() || request.version == Version::Http11 {
                    request.port = parse_authority(value, scheme, &mut request.host)?;
                }
            }
            HeaderId::Expect => {
                let usual = value.eq_ignore_ascii_case(b"100-continue");
                self.expect = match self.expect {
                    Expect::None | Expect::Continue if usual => Expect::Continue,
                    _ => Expect::Other,
                };
            }
            HeaderId::Upgrade => self.upgrade_seen = true,
            HeaderId::ContentLength
            | HeaderId::TransferEncoding
            | HeaderId::Connection
            | HeaderId::Other => self.facts.note(span, section, request.version)?,
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self, buf: &[u8], request: &mut Request) -> Result<usize, RequestError> {
        let version = request.version;
        if !self.host_seen && version == Version::Http11 {
            return Err(RequestError::MissingHost);
        }
        if self.expect == Expect::Other {
            return Err(RequestError::Expectation);
        }
        let end = self.lines.position();
        let section = &buf[self.lines.base()..end];
        self.facts.drop_nominated(&mut self.lines, section, |_| false);
        for span in self.lines.spans() {
            request.headers.push_span(*span);
        }
        request.headers.adopt(section);
        if self.absolute {
            // RFC 9112 3.2.2: the received Host is ignored and replaced.
            let mut authority = Vec::with_capacity(request.host.len() + 6);
            write_authority(&mut authority, request);
            request.headers.set(HeaderId::Host, &authority);
        }
        request.framing = match self.facts.length {
            _ if self.facts.chunked => Framing::Chunked,
            Some(length) => Framing::Length(length),
            None => Framing::None,
        };
        request.keep_alive = self.facts.persistent(version);
        let newer = version == Version::Http11;
        request.upgrade = match newer && self.facts.upgrade && self.upgrade_seen {
            true => Upgrade::Asked,
            false => Upgrade::None,
        };
        request.expect_continue = newer
            && self.expect == Expect::Continue
            && !matches!(request.framing, Framing::None | Framing::Length(0));
        self.reset();
        Ok(end)
    }
}
