//! The wire format of HTTP/1.1 for both oracles: lines, fields, lengths and chunks of RFC 9112,
//! without the leniency that the RFC permits.
//!
//! It must never share code with crate `h1`, whose mistakes it must not repeat. It is slow and
//! simple on purpose.

use std::fmt;

/// Field lines in order; names as sent.
pub type Fields = Vec<(String, Vec<u8>)>;

/// A fault of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageFault {
    /// The bytes end inside a message.
    Incomplete,
    /// A CR that no LF follows.
    BareCr,
    /// A LF that no CR precedes.
    BareLf,
    /// NUL or another control byte.
    Control,
    /// The first line is not a request line or status line of HTTP/1.0 or HTTP/1.1.
    StartLine,
    /// The request target has no form that its method permits.
    Target,
    /// A field line that continues the one before it (RFC 9112 5.2).
    ObsFold,
    /// A field name that is no token, or blanks before the colon.
    FieldName,
    /// A field line without a colon.
    NoColon,
    /// `Host` is missing, repeated or malformed.
    Host,
    /// `Content-Length` is not one plain decimal number.
    ContentLength,
    /// `Transfer-Encoding` is not exactly `chunked`, or comes in HTTP/1.0.
    TransferEncoding,
    /// `Content-Length` beside `Transfer-Encoding`.
    BothLengths,
    /// A chunk-size line that is not hexadecimal digits alone.
    ChunkSize,
    /// A chunk extension.
    ChunkExtension,
    /// Chunk data that no CRLF follows.
    ChunkEnd,
    /// A framing field among the trailers.
    Trailer,
}

impl fmt::Display for MessageFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// A reading position. Methods return `Err(MessageFault::Incomplete)` if more bytes could repair
/// the message.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    /// Offset of the next unread byte.
    pub(crate) at: usize,
}

/// The declared length of a message's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Not declared.
    Unsaid,
    /// `Content-Length`.
    Known(usize),
    /// `Transfer-Encoding: chunked`.
    Chunked,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes not yet read.
    pub(crate) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Reads a line without its CRLF.
    pub(crate) fn line(&mut self) -> Result<&'a [u8], MessageFault> {
        let rest = &self.bytes[self.at..];
        for (index, byte) in rest.iter().enumerate() {
            match byte {
                b'\n' => return Err(MessageFault::BareLf),
                b'\r' => {
                    return match rest.get(index + 1) {
                        Some(b'\n') => {
                            self.at += index + 2;
                            Ok(&rest[..index])
                        }
                        Some(_) => Err(MessageFault::BareCr),
                        None => Err(MessageFault::Incomplete),
                    };
                }
                b'\t' | b' '..=b'~' | 0x80..=0xff => {}
                _ => return Err(MessageFault::Control),
            }
        }
        Err(MessageFault::Incomplete)
    }

    /// Reads exactly `length` bytes.
    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], MessageFault> {
        let end = self.at.checked_add(length).ok_or(MessageFault::ContentLength)?;
        let taken = self.bytes.get(self.at..end).ok_or(MessageFault::Incomplete)?;
        self.at = end;
        Ok(taken)
    }

    /// Reads field lines and the empty line after them.
    pub(crate) fn fields(&mut self) -> Result<Fields, MessageFault> {
        let mut fields = Fields::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return Ok(fields);
            }
            if matches!(line[0], b' ' | b'\t') {
                return Err(MessageFault::ObsFold);
            }
            let colon = line.iter().position(|&b| b == b':').ok_or(MessageFault::NoColon)?;
            let name = token(&line[..colon]).ok_or(MessageFault::FieldName)?;
            fields.push((name.to_owned(), line[colon + 1..].trim_ascii().to_vec()));
        }
    }

    /// Reads a chunked body with its trailers (RFC 9112 7.1). Chunks before a fault stay in `body`.
    pub(crate) fn chunked(&mut self, body: &mut Vec<u8>) -> Result<Fields, MessageFault> {
        loop {
            let size = chunk_size(self.line()?)?;
            if size == 0 {
                let trailers = self.fields()?;
                return if trailers.iter().any(|(name, _)| is_framing(name)) {
                    Err(MessageFault::Trailer)
                } else {
                    Ok(trailers)
                };
            }
            let available = self.left();
            body.extend_from_slice(self.take(size.min(available))?);
            if available < size {
                return Err(MessageFault::Incomplete);
            }
            self.chunk_end()?;
        }
    }

    fn chunk_end(&mut self) -> Result<(), MessageFault> {
        let rest = &self.bytes[self.at..];
        if rest.starts_with(b"\r\n") {
            self.at += 2;
            Ok(())
        } else if b"\r\n".starts_with(rest) {
            Err(MessageFault::Incomplete)
        } else {
            Err(MessageFault::ChunkEnd)
        }
    }
}

/// The length that `fields` declare. `old` for HTTP/1.0, where a transfer coding is an error (RFC
/// 9112 6.1).
pub(crate) fn length(fields: &Fields, old: bool) -> Result<Length, MessageFault> {
    let lengths = values(fields, "content-length");
    let codings = values(fields, "transfer-encoding");
    match (lengths.as_slice(), codings.as_slice()) {
        ([], []) => Ok(Length::Unsaid),
        ([_, ..], [_, ..]) => Err(MessageFault::BothLengths),
        ([one], []) => decimal(one).map(Length::Known).ok_or(MessageFault::ContentLength),
        ([_, _, ..], []) => Err(MessageFault::ContentLength),
        ([], [one]) if one.eq_ignore_ascii_case(b"chunked") && !old => Ok(Length::Chunked),
        ([], _) => Err(MessageFault::TransferEncoding),
    }
}

/// Values of the fields called `name`, in any case.
pub(crate) fn values<'a>(fields: &'a Fields, name: &str) -> Vec<&'a [u8]> {
    fields
        .iter()
        .filter(|(own, _)| own.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_slice())
        .collect()
}

/// Returns `bytes` if they are a token (RFC 9110 5.6.2).
pub(crate) fn token(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let ok = |b: &u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b);
    (!bytes.is_empty() && bytes.iter().all(ok)).then_some(text)
}

fn decimal(bytes: &[u8]) -> Option<usize> {
    let digits = !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(bytes).ok().filter(|_| digits)?.parse().ok()
}

fn chunk_size(line: &[u8]) -> Result<usize, MessageFault> {
    if line.contains(&b';') {
        return Err(MessageFault::ChunkExtension);
    }
    if line.is_empty() || !line.iter().all(u8::is_ascii_hexdigit) {
        return Err(MessageFault::ChunkSize);
    }
    let text = std::str::from_utf8(line).map_err(|_| MessageFault::ChunkSize)?;
    usize::from_str_radix(text, 16).map_err(|_| MessageFault::ChunkSize)
}

fn is_framing(name: &str) -> bool {
    ["content-length", "transfer-encoding", "host"]
        .iter()
        .any(|framing| name.eq_ignore_ascii_case(framing))
}
