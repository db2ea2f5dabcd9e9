//! Headers of messages and the parts of their first lines, as programs read and change them. Values
//! that a program sets are checked like received ones: a line end never gets into a head.

use bytes::Bytes;
use message::header::is_token_byte;
use message::{HeaderBlock, HeaderId, Method, Request, Response, Status, Version};

use crate::failure::ProgramFailure;
use crate::rules::status::reason;
use crate::state::ctx::Ctx;
use crate::state::value::{Header, Value, VclMessage};

/// Longest name of a header in bytes. Varnish stores the length with the colon in one byte that
/// must not look negative.
pub const NAME_MAX: usize = 125;

/// Checks that `name` is valid as a header's name.
///
/// # Errors
/// The reason why it is invalid.
pub fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("a header needs a name".into());
    }
    if name.len() > NAME_MAX {
        return Err(format!("a header's name has {NAME_MAX} bytes at most"));
    }
    match name.bytes().find(|b| !is_token_byte(*b)) {
        Some(b) => Err(format!("`{}` cannot stand in a header's name", b.escape_ascii())),
        None => Ok(()),
    }
}

impl Header {
    /// The header `name` of a message, interned.
    pub fn new(message: VclMessage, name: &str) -> Self {
        Self { message, id: HeaderId::of(name.as_bytes()), name: name.into() }
    }

    /// Returns true if both are one header of one message.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.message == other.message
            && self.id == other.id
            && (self.id != HeaderId::Other || self.name.eq_ignore_ascii_case(&other.name))
    }
}

/// First value of a header; `None` if the header is absent.
pub fn get<'c>(ctx: &'c Ctx<'_>, header: &Header) -> Option<&'c [u8]> {
    if header.message == VclMessage::Obj {
        return stored_value(ctx.obj?.head, header.name.as_bytes());
    }
    first(block(ctx, header.message)?, header)
}

/// First value of the header in `block`.
pub fn first<'b>(block: &'b HeaderBlock, header: &Header) -> Option<&'b [u8]> {
    block.value_as(header.id, header.name.as_bytes())
}

/// Replaces all lines of a header by one.
///
/// # Errors
/// The value contains a control character other than a tab.
pub fn set(ctx: &mut Ctx<'_>, header: &Header, value: &[u8]) -> Result<(), ProgramFailure> {
    let value = valid(header, value)?;
    if let Some(block) = block_mut(ctx, header.message) {
        block.set_as(header.id, header.name.as_bytes(), value);
    }
    Ok(())
}

/// Checks `value` as a value of `header`, and removes its leading blanks.
pub(crate) fn valid<'v>(header: &Header, value: &'v [u8]) -> Result<&'v [u8], ProgramFailure> {
    let blanks = value.iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
    let value = &value[blanks..];
    if is_valid(value) {
        return Ok(value);
    }
    let shown = String::from_utf8_lossy(value);
    Err(ProgramFailure::new(format!("Bad header {}: {shown}", header.name)))
}

/// Sets a header to its own value, if only the spelling of its name changes. Returns true if it
/// did.
pub(crate) fn replace_name_spelling(ctx: &mut Ctx<'_>, header: &Header) -> bool {
    let block = block_mut(ctx, header.message);
    block.is_some_and(|block| block.respell(header.id, header.name.as_bytes()))
}

/// Removes all lines of a header.
pub fn unset(ctx: &mut Ctx<'_>, header: &Header) {
    if let Some(block) = block_mut(ctx, header.message) {
        block.remove_as(header.id, header.name.as_bytes());
    }
}

/// The value of `req.filters` or `bereq.filters`, which is always empty: request bodies have no
/// filters.
///
/// # Errors
/// If `value` names a filter.
pub(crate) fn no_filters(variable: &str, value: Value) -> Result<Bytes, ProgramFailure> {
    let names = value.into_bytes().unwrap_or_default();
    match names.iter().find(|byte| !byte.is_ascii_whitespace()) {
        None => Ok(names),
        Some(_) => {
            let shown = String::from_utf8_lossy(&names);
            Err(ProgramFailure::new(format!("{variable}: there is no filter \"{}\"", shown.trim())))
        }
    }
}

/// Returns true if `value` is valid for a header: no control character other than a tab.
pub fn is_valid(value: &[u8]) -> bool {
    message::header::is_value(value)
}

/// Headers of a message; `None` if the message is absent, and for `obj`, whose head stays encoded.
pub fn block<'c>(ctx: &'c Ctx<'_>, message: VclMessage) -> Option<&'c HeaderBlock> {
    match message {
        VclMessage::Req => Some(&ctx.req.as_ref()?.head.headers),
        VclMessage::ReqTop => Some(&top(ctx)?.headers),
        VclMessage::Bereq => Some(&ctx.bereq.as_ref()?.head.headers),
        VclMessage::Beresp => Some(&ctx.beresp.as_ref()?.head.headers),
        VclMessage::Resp => Some(&ctx.resp.as_ref()?.head.headers),
        VclMessage::Obj => None,
    }
}

/// Headers of a message, for changes.
pub fn block_mut<'c>(ctx: &'c mut Ctx<'_>, message: VclMessage) -> Option<&'c mut HeaderBlock> {
    match message {
        VclMessage::Req => Some(&mut ctx.req.as_mut()?.head.headers),
        VclMessage::Bereq => Some(&mut ctx.bereq.as_mut()?.head.headers),
        VclMessage::Beresp => Some(&mut ctx.beresp.as_mut()?.head.headers),
        VclMessage::Resp => Some(&mut ctx.resp.as_mut()?.head.headers),
        VclMessage::ReqTop | VclMessage::Obj => None,
    }
}

/// `req_top`, which is `req` outside of ESI.
pub(crate) fn top<'c>(ctx: &'c Ctx<'_>) -> Option<&'c Request> {
    match ctx.req_top {
        Some(top) => Some(top),
        None => ctx.req.as_ref().map(|req| &*req.head),
    }
}

/// First value of the field `name` in a stored head.
pub fn stored_value<'h>(head: &'h [u8], name: &[u8]) -> Option<&'h [u8]> {
    stored_fields(head).find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// Fields of a stored head: the lines after the status line, each with CRLF.
pub fn stored_fields(head: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    lines(head).skip(1).filter_map(|line| {
        let colon = memchr::memchr(b':', line)?;
        Some((&line[..colon], line[colon + 1..].trim_ascii()))
    })
}

/// Protocol and reason of a stored head's status line.
pub fn stored_line(head: &[u8]) -> (&[u8], &[u8]) {
    let mut words = lines(head).next().unwrap_or_default().splitn(3, |b| *b == b' ');
    let proto = words.next().unwrap_or_default();
    (proto, words.nth(1).unwrap_or_default())
}

fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = head;
    std::iter::from_fn(move || {
        let end = memchr::memchr(b'\n', rest)?;
        let line = &rest[..end];
        rest = &rest[end + 1..];
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    })
}

/// Protocol version in VCL's spelling.
pub(crate) fn version(version: Version) -> &'static [u8] {
    match version {
        Version::Http10 => b"HTTP/1.0",
        Version::Http11 => b"HTTP/1.1",
        Version::Http2 => b"HTTP/2.0",
    }
}

/// Checks a string that becomes part of a first line.
pub(crate) fn line_part(what: &str, value: Value) -> Result<Box<[u8]>, ProgramFailure> {
    let bytes = value.into_bytes().unwrap_or_default();
    check_line_part(what, &bytes)?;
    Ok(bytes[..].into())
}

fn check_line_part(what: &str, bytes: &[u8]) -> Result<(), ProgramFailure> {
    if bytes.is_empty() {
        return Err(ProgramFailure::new(format!("Setting {what} to empty string")));
    }
    if !is_valid(bytes) {
        return Err(ProgramFailure::new(format!("{what} cannot have control characters")));
    }
    Ok(())
}

pub(crate) fn set_method(
    head: &mut Request,
    what: &str,
    value: Value,
) -> Result<(), ProgramFailure> {
    head.method = Method::from_token(&line_part(what, value)?);
    Ok(())
}

pub(crate) fn set_url(head: &mut Request, what: &str, value: Value) -> Result<(), ProgramFailure> {
    let url = value.into_bytes().unwrap_or_default();
    check_line_part(what, &url)?;
    head.target.clear();
    head.target.extend_from_slice(&url);
    Ok(())
}

/// Sets a status with its usual reason phrase. Returns the status that VCL reads from now on.
pub(crate) fn set_status(
    head: &mut Response,
    message: &str,
    status: i64,
) -> Result<u16, ProgramFailure> {
    let Some(full) = u16::try_from(status).ok() else {
        let why = if status < 0 { "is negative" } else { "> 65535" };
        return Err(ProgramFailure::new(format!("{message}.status ({status}) {why}")));
    };
    let Some(sent) = Status::new(full % 1000) else {
        return Err(ProgramFailure::new(format!("illegal {message}.status ({status}) (..0##)")));
    };
    head.status = sent;
    head.reason = reason(full).into();
    head.no_reason = false;
    Ok(full)
}
