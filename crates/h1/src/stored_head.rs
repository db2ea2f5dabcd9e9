//! Stored heads: parses the heads of stored responses.

use message::header::FieldSpan;
use message::{HeaderId, Response, Status, Version};

use crate::error::ResponseError;

/// `HTTP/1.1 200 `
const STATUS_BYTES: usize = 13;

/// Capacity reserved for fields that are added to a parsed head, in fields and in bytes.
const FIELDS_MORE: usize = 8;
const BYTES_MORE: usize = 256;

/// Parses the output of [`crate::encode::stored_head`]: a head without framing fields and without
/// its final blank line. Names and values were checked before they were stored.
///
/// # Errors
/// If `bytes` are damaged. The response has no fields then.
pub fn parse_stored_head(bytes: &[u8], response: &mut Response) -> Result<(), ResponseError> {
    let read = read(bytes, response);
    if read.is_err() {
        // The fields parsed so far point into bytes that were not adopted.
        response.headers.clear();
    }
    read
}

fn read(bytes: &[u8], response: &mut Response) -> Result<(), ResponseError> {
    let damaged = ResponseError::StatusLine;
    let (line, fields) = split_line(bytes).ok_or(damaged)?;
    // Spans have 32 bits.
    u32::try_from(fields.len()).map_err(|_| damaged)?;
    let (head, reason) = line.split_at_checked(STATUS_BYTES).ok_or(damaged)?;
    let code = std::str::from_utf8(&head[9..12]).ok().and_then(|code| code.parse().ok());
    response.status = code.and_then(Status::new).ok_or(damaged)?;
    response.version = Version::Http11;
    response.reason.clear();
    response.reason.extend_from_slice(reason);
    let headers = &mut response.headers;
    headers.clear();
    // A stored field has some thirty bytes; a wrong estimate costs a second allocation.
    headers.reserve(fields.len() / 32 + FIELDS_MORE, fields.len() + BYTES_MORE);
    let mut at = 0;
    while let Some((line, _)) = split_line(&fields[at..]) {
        let colon = memchr::memchr(b':', line).ok_or(damaged)?;
        let value_at = colon + ": ".len();
        headers.push_span(FieldSpan {
            id: HeaderId::of(&line[..colon]),
            name_at: at as u32,
            name_len: u16::try_from(colon).map_err(|_| damaged)?,
            value_at: (at + value_at) as u32,
            value_len: line.len().checked_sub(value_at).ok_or(damaged)? as u32,
        });
        at += line.len() + "\r\n".len();
    }
    if at != fields.len() {
        return Err(damaged);
    }
    headers.adopt(fields);
    Ok(())
}

/// The first line without its CRLF, and the rest.
fn split_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let cr = memchr::memchr(b'\r', bytes)?;
    let rest = bytes[cr..].strip_prefix(b"\r\n")?;
    Some((&bytes[..cr], rest))
}
