//! The reference reader: a strict parser of the bytes that an origin received.
//!
//! It is the oracle of the smuggling tests: from all bytes of one connection it lists the requests,
//! or reports the first violation of HTTP/1.1. It must never tolerate a violation, and never use
//! crate `h1`.

use crate::wire::{self, Cursor, Fields, Length, MessageFault};

#[cfg(test)]
mod tests;

/// A parsed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedRequest {
    /// The method as sent.
    pub method: String,
    /// The target as sent.
    pub target: String,
    /// True for HTTP/1.0.
    pub old: bool,
    /// Field lines in order.
    pub fields: Fields,
    /// The body without its framing.
    pub body: Vec<u8>,
    /// Trailers of a chunked body.
    pub trailers: Fields,
}

impl ParsedRequest {
    /// Values of the fields called `name`, in any case.
    pub fn values(&self, name: &str) -> Vec<&[u8]> {
        wire::values(&self.fields, name)
    }
}

/// The violation for which bytes are not a sequence of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Offset of the violation.
    pub offset: usize,
    /// The kind of violation.
    pub fault: MessageFault,
    /// The whole requests before it.
    pub before: Vec<ParsedRequest>,
}

/// Parses all of `bytes` as one connection's requests.
///
/// # Errors
/// The first violation. A request that is cut off is [`MessageFault::Incomplete`]; the whole
/// requests before it are in [`Violation::before`].
pub fn read_requests(bytes: &[u8]) -> Result<Vec<ParsedRequest>, Violation> {
    let mut requests = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let mut cursor = Cursor::new(&bytes[at..]);
        match one(&mut cursor) {
            Ok(request) => requests.push(request),
            Err(fault) => {
                return Err(Violation { offset: at + cursor.at, fault, before: requests });
            }
        }
        at += cursor.at;
    }
    Ok(requests)
}

/// Parses the first request of `bytes`. Returns it with its length; `None` while it is incomplete.
///
/// # Errors
/// A violation that no further byte can repair.
pub fn read_first(bytes: &[u8]) -> Result<Option<(ParsedRequest, usize)>, MessageFault> {
    let mut cursor = Cursor::new(bytes);
    match one(&mut cursor) {
        Ok(request) => Ok(Some((request, cursor.at))),
        Err(MessageFault::Incomplete) => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// Parses the head alone. Returns it with its length; `None` while it is incomplete.
pub(crate) fn read_head(bytes: &[u8]) -> Result<Option<(ParsedRequest, usize)>, MessageFault> {
    let mut cursor = Cursor::new(bytes);
    match head(&mut cursor) {
        Ok((request, _)) => Ok(Some((request, cursor.at))),
        Err(MessageFault::Incomplete) => Ok(None),
        Err(fault) => Err(fault),
    }
}

fn one(cursor: &mut Cursor<'_>) -> Result<ParsedRequest, MessageFault> {
    let (mut request, length) = head(cursor)?;
    match length {
        Length::Unsaid => {}
        Length::Known(length) => request.body = cursor.take(length)?.to_vec(),
        Length::Chunked => request.trailers = cursor.chunked(&mut request.body)?,
    }
    Ok(request)
}

fn head(cursor: &mut Cursor<'_>) -> Result<(ParsedRequest, Length), MessageFault> {
    let line = std::str::from_utf8(cursor.line()?).map_err(|_| MessageFault::StartLine)?;
    let parts: Vec<&str> = line.split(' ').collect();
    let [method, target, version] = parts.as_slice() else { return Err(MessageFault::StartLine) };
    let old = match *version {
        "HTTP/1.1" => false,
        "HTTP/1.0" => true,
        _ => return Err(MessageFault::StartLine),
    };
    let method = wire::token(method.as_bytes()).ok_or(MessageFault::StartLine)?;
    if !target_fits(method, target) {
        return Err(MessageFault::Target);
    }
    let fields = cursor.fields()?;
    let length = wire::length(&fields, old)?;
    check_host(&fields, old)?;
    let (method, target) = (method.to_owned(), target.to_string());
    let request =
        ParsedRequest { method, target, old, fields, body: Vec::new(), trailers: Vec::new() };
    Ok((request, length))
}

/// RFC 9112 3.2: origin form, absolute form, authority form for CONNECT, asterisk for OPTIONS.
fn target_fits(method: &str, target: &str) -> bool {
    let visible = target.bytes().all(|b| b.is_ascii_graphic() && b != b'#');
    let form = match method {
        "CONNECT" => target.rsplit_once(':').is_some_and(|(host, port)| {
            !host.is_empty() && !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit())
        }),
        "OPTIONS" if target == "*" => true,
        _ => target.starts_with('/') || target.starts_with("http://"),
    };
    visible && form
}

/// RFC 9112 3.2: exactly one `Host` in HTTP/1.1, at most one in HTTP/1.0.
fn check_host(fields: &Fields, old: bool) -> Result<(), MessageFault> {
    let ok = |host: &[u8]| {
        host.iter().all(|b| b.is_ascii_alphanumeric() || b"-._~!$&'()*+;=:[]%".contains(b))
    };
    match wire::values(fields, "host").as_slice() {
        [] if old => Ok(()),
        [one] if ok(one) => Ok(()),
        _ => Err(MessageFault::Host),
    }
}
