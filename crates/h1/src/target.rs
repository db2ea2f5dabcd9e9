//! The request target: whatever its form (RFC 9112 3.2), what comes out is the origin-form.

use message::{Method, Request, Scheme};

use crate::authority::parse_authority;
use crate::error::RequestError;

/// Sets `request.target`, and from an absolute target `request.host` and `request.port`. The bytes
/// of `raw` have been checked one by one. Returns whether the target was absolute.
pub(crate) fn read(
    raw: &[u8],
    scheme: Scheme,
    request: &mut Request,
) -> Result<bool, RequestError> {
    request.target.clear();
    let (path, absolute) = match raw {
        [b'/', ..] => (raw, false),
        b"*" if request.method == Method::Options => (raw, false),
        _ => (absolute_form(raw, scheme, request)?, true),
    };
    if !path.starts_with(b"/") && path != b"*" {
        request.target.push(b'/');
    }
    request.target.extend_from_slice(path);
    // Nearly every target is spared the second look.
    if memchr::memchr(b'%', path).is_some()
        && memchr::memmem::find(request.path(), b"%00").is_some()
    {
        return Err(RequestError::EncodedNul);
    }
    Ok(absolute)
}

/// `scheme "://" authority path [ "?" query ]`; returns path and query.
fn absolute_form<'a>(
    raw: &'a [u8],
    scheme: Scheme,
    request: &mut Request,
) -> Result<&'a [u8], RequestError> {
    let name = scheme.as_str().as_bytes();
    let (prefix, rest) = raw.split_at_checked(name.len()).ok_or(RequestError::Target)?;
    let rest = rest.strip_prefix(b"://").ok_or(RequestError::Target)?;
    // The scheme is that of the listener: what came in plain text cannot claim to have come by TLS.
    if !prefix.eq_ignore_ascii_case(name) {
        return Err(RequestError::Target);
    }
    let end = memchr::memchr2(b'/', b'?', rest).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    request.port = parse_authority(authority, scheme, &mut request.host)?;
    if path.is_empty() && request.method == Method::Options {
        // RFC 9112 3.2.4: an absolute OPTIONS target without path is the asterisk-form.
        return Ok(b"*");
    }
    Ok(path)
}
