//! A reply, parsed strictly: one whole message, a recognisably truncated one, or no HTTP.

use std::fmt;

use crate::wire::{self, Cursor, Fields, Length, MessageFault};

#[cfg(test)]
mod tests;

/// The way in which the end of a response is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Status or method allow no body.
    NoBody,
    /// By `Content-Length`.
    Length,
    /// By the last chunk.
    LastChunk,
    /// By the closed connection, which does not prove that it is whole.
    Close,
}

/// A parsed response.
#[derive(Clone, PartialEq, Eq)]
pub struct Reply {
    /// Status codes of the interim responses before it.
    pub interim: Vec<u16>,
    /// The status code.
    pub status: u16,
    /// True for HTTP/1.0.
    pub old: bool,
    /// Field lines in order.
    pub fields: Fields,
    /// The body without its framing, as far as it was received.
    pub body: Vec<u8>,
    /// Trailers of a chunked body.
    pub trailers: Fields,
    /// The way in which the end is known.
    pub ending: Ending,
}

/// Field lines as text.
struct FieldListing<'a>(&'a Fields);

impl fmt::Debug for FieldListing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |(name, value): &(String, Vec<u8>)| {
            format!("{name}: {}", String::from_utf8_lossy(value))
        };
        f.debug_list().entries(self.0.iter().map(line)).finish()
    }
}

/// Bytes of a body that messages show.
const SHOWN_BYTES: usize = 1024;

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.body[..self.body.len().min(SHOWN_BYTES)];
        f.debug_struct("Reply")
            .field("interim", &self.interim)
            .field("status", &self.status)
            .field("old", &self.old)
            .field("fields", &FieldListing(&self.fields))
            .field("body_bytes", &self.body.len())
            .field("body", &String::from_utf8_lossy(shown))
            .field("trailers", &FieldListing(&self.trailers))
            .field("ending", &self.ending)
            .finish()
    }
}

impl Reply {
    /// The values of the fields called `name`, joined by `, `; `None` if absent.
    pub fn field(&self, name: &str) -> Option<String> {
        let values = wire::values(&self.fields, name);
        let shown: Vec<_> = values.iter().map(|value| String::from_utf8_lossy(value)).collect();
        (!shown.is_empty()).then(|| shown.join(", "))
    }

    /// The body as text, for messages and comparisons.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns true if the sender announced that it closes the connection.
    pub fn closes(&self) -> bool {
        let said = |option: &str| {
            self.field("connection").is_some_and(|list| {
                list.split(',').any(|own| own.trim().eq_ignore_ascii_case(option))
            })
        };
        said("close") || self.ending == Ending::Close || (self.old && !said("keep-alive"))
    }
}

/// The outcome of one request, as its client sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyOutcome {
    /// A whole message.
    Complete(Reply),
    /// A head with less body than announced, which every client recognises.
    Truncated(Reply),
    /// The connection ended before a complete head.
    Nothing,
    /// Bytes that are no valid HTTP/1.1 response.
    Malformed(MessageFault),
    /// No reply in time.
    TimedOut,
}

impl ReplyOutcome {
    /// The whole message; `None` for other outcomes.
    pub fn complete(&self) -> Option<&Reply> {
        match self {
            Self::Complete(reply) => Some(reply),
            _ => None,
        }
    }
}

/// The state of a connection after its last byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// Open: more may come.
    Open,
    /// Closed in order.
    Closed,
    /// Reset.
    Reset,
}

/// Parses the reply to a request of `method` at the start of `bytes`. Returns it with its length;
/// `None` while it depends on further bytes.
pub fn read_reply(bytes: &[u8], method: &str, end: ConnectionEnd) -> Option<(ReplyOutcome, usize)> {
    let mut interim = Vec::new();
    let mut at = 0;
    loop {
        let mut cursor = Cursor::new(&bytes[at..]);
        let (mut reply, length) = match head(&mut cursor, method) {
            Ok(found) => found,
            Err(MessageFault::Incomplete) if end == ConnectionEnd::Open => return None,
            Err(MessageFault::Incomplete) => return Some((ReplyOutcome::Nothing, bytes.len())),
            Err(fault) => return Some((ReplyOutcome::Malformed(fault), bytes.len())),
        };
        if (100..200).contains(&reply.status) && reply.status != 101 {
            interim.push(reply.status);
            at += cursor.at;
            continue;
        }
        reply.interim = interim;
        let whole = body(&mut cursor, &mut reply, length, end);
        let seen = match whole {
            Ok(()) => ReplyOutcome::Complete(reply),
            Err(MessageFault::Incomplete) if end == ConnectionEnd::Open => return None,
            Err(MessageFault::Incomplete) => ReplyOutcome::Truncated(reply),
            Err(fault) => ReplyOutcome::Malformed(fault),
        };
        return Some((seen, at + cursor.at));
    }
}

fn head(cursor: &mut Cursor<'_>, method: &str) -> Result<(Reply, Length), MessageFault> {
    let (old, status) = status_line(cursor.line()?)?;
    let fields = cursor.fields()?;
    let bodiless = method == "HEAD" || matches!(status, 100..200 | 204 | 304);
    // RFC 9112 6.1: no transfer coding in 1xx and 204.
    let declared = wire::length(&fields, old)?;
    if declared == Length::Chunked && matches!(status, 100..200 | 204) {
        return Err(MessageFault::TransferEncoding);
    }
    let (length, ending) = match declared {
        _ if bodiless => (Length::Known(0), Ending::NoBody),
        Length::Known(_) => (declared, Ending::Length),
        Length::Chunked => (declared, Ending::LastChunk),
        Length::Unsaid => (declared, Ending::Close),
    };
    let (body, trailers, interim) = (Vec::new(), Fields::new(), Vec::new());
    Ok((Reply { interim, status, old, fields, body, trailers, ending }, length))
}

fn body(
    cursor: &mut Cursor<'_>,
    reply: &mut Reply,
    length: Length,
    end: ConnectionEnd,
) -> Result<(), MessageFault> {
    match length {
        Length::Known(length) => {
            let have = length.min(cursor.left());
            reply.body = cursor.take(have)?.to_vec();
            if have < length { Err(MessageFault::Incomplete) } else { Ok(()) }
        }
        Length::Chunked => {
            reply.trailers = cursor.chunked(&mut reply.body)?;
            Ok(())
        }
        Length::Unsaid => {
            reply.body = cursor.take(cursor.left())?.to_vec();
            if end == ConnectionEnd::Closed { Ok(()) } else { Err(MessageFault::Incomplete) }
        }
    }
}

/// RFC 9112 4: version, three digits, and a reason that may be empty.
fn status_line(line: &[u8]) -> Result<(bool, u16), MessageFault> {
    let (version, rest) = line.split_at_checked(8).ok_or(MessageFault::StartLine)?;
    let old = match version {
        b"HTTP/1.1" => false,
        b"HTTP/1.0" => true,
        _ => return Err(MessageFault::StartLine),
    };
    let [b' ', a @ b'1'..=b'5', b @ b'0'..=b'9', c @ b'0'..=b'9', b' ', ..] = rest else {
        return Err(MessageFault::StartLine);
    };
    let digit = |byte: &u8| u16::from(byte - b'0');
    Ok((old, digit(a) * 100 + digit(b) * 10 + digit(c)))
}
