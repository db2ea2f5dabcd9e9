//! Strict reading of responses: whether what a client received is one whole message, a message that
//! any client can tell to be cut short, or no HTTP at all.

use std::fmt;

use crate::wire::{self, Cursor, Fields, Length, MessageFault};

#[cfg(test)]
mod tests;

/// The sign by which a response's end was known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The status or the method allows no body.
    NoBody,
    /// `Content-Length` bytes came.
    Length,
    /// The last chunk came.
    LastChunk,
    /// The connection was closed: nothing shows whether that was all.
    Close,
}

/// A response as read.
#[derive(Clone, PartialEq, Eq)]
pub struct Reply {
    /// Status codes of the interim responses before it.
    pub interim: Vec<u16>,
    /// Its status code.
    pub status: u16,
    /// The version was HTTP/1.0.
    pub old: bool,
    /// Field lines in order.
    pub fields: Fields,
    /// The body without its framing, as far as it came.
    pub body: Vec<u8>,
    /// Fields that followed a chunked body.
    pub trailers: Fields,
    /// The sign by which the response's end is known.
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

/// Bytes of a body that a message shows.
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
    /// The values of the field lines called `name`, joined by `, `; `None` without such a line.
    pub fn field(&self, name: &str) -> Option<String> {
        let values = wire::values(&self.fields, name);
        let shown: Vec<_> = values.iter().map(|value| String::from_utf8_lossy(value)).collect();
        (!shown.is_empty()).then(|| shown.join(", "))
    }

    /// The body as text, for messages and comparisons.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Tells whether the sender announced that it closes the connection after this response.
    pub fn closes(&self) -> bool {
        let said = |option: &str| {
            self.field("connection").is_some_and(|list| {
                list.split(',').any(|own| own.trim().eq_ignore_ascii_case(option))
            })
        };
        said("close") || self.ending == Ending::Close || (self.old && !said("keep-alive"))
    }
}

/// The answer to one request, as a client saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyOutcome {
    /// One whole message.
    Complete(Reply),
    /// A head, and then less body than it promised: no client takes it for whole.
    Truncated(Reply),
    /// The connection ended before a whole head: not one byte, or part of a head.
    Nothing,
    /// Bytes that are no valid HTTP/1.1 response.
    Malformed(MessageFault),
    /// The answer was not there in time.
    TimedOut,
}

impl ReplyOutcome {
    /// The whole message, if it is one.
    pub fn complete(&self) -> Option<&Reply> {
        match self {
            Self::Complete(reply) => Some(reply),
            _ => None,
        }
    }
}

/// The end of the bytes at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// More may come.
    Open,
    /// The peer has finished in good order.
    Closed,
    /// The connection was reset.
    Reset,
}

/// Reads the answer to a request of `method` at the start of `bytes`; with it comes the number of
/// bytes that it takes. `None` while only further bytes can tell.
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
