//! The request target: whatever its form (RFC 9112 3.2), what comes out is the origin-form.

use std::fmt;

use crate::authority::{AuthorityError, parse_authority};
use crate::class;
use crate::request::{Method, Request, Scheme};

/// Why a request target was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetError {
    /// A byte that may not stand in a target.
    Byte,
    /// It is in no form that fits method and listener (RFC 9112 3.2).
    Form,
    /// `%00` in the path.
    EncodedNul,
    /// The authority in it is malformed.
    Authority,
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Byte => f.write_str("forbidden byte in the request target"),
            Self::Form => f.write_str("malformed request target"),
            Self::EncodedNul => f.write_str("encoded NUL in the path"),
            Self::Authority => AuthorityError.fmt(f),
        }
    }
}

impl std::error::Error for TargetError {}

impl From<AuthorityError> for TargetError {
    fn from(_: AuthorityError) -> Self {
        Self::Authority
    }
}

/// Reads `raw` in origin-form, absolute-form or, for OPTIONS, asterisk-form. Sets `request.target`,
/// and from an absolute target `request.host` and `request.port`. Returns whether it was absolute.
///
/// `request.method` must be there, and each byte of `raw` must be of [`class::TARGET`].
///
/// # Errors
/// [`TargetError`]; never [`TargetError::Byte`].
#[inline]
pub fn read(raw: &[u8], scheme: Scheme, request: &mut Request) -> Result<bool, TargetError> {
    debug_assert!(class::skip_target(raw, 0) == raw.len(), "a target's bytes are checked");
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
    refuse_nul(request)?;
    Ok(absolute)
}

/// Checks `request.target` where it is, as it came in `:path`: origin-form or, for OPTIONS,
/// asterisk-form (RFC 9113 8.3.1). Unlike [`read`], of any bytes.
///
/// # Errors
/// [`TargetError`]; never [`TargetError::Authority`].
#[inline]
pub fn check(request: &Request) -> Result<(), TargetError> {
    let target = &request.target;
    if class::skip_target(target, 0) != target.len() {
        return Err(TargetError::Byte);
    }
    match &target[..] {
        [b'/', ..] => refuse_nul(request),
        b"*" if request.method == Method::Options => Ok(()),
        _ => Err(TargetError::Form),
    }
}

/// Refuses `%00` in the path: servers that end their strings there read another path.
#[inline]
fn refuse_nul(request: &Request) -> Result<(), TargetError> {
    // Nearly every target is spared the second look.
    if memchr::memchr(b'%', &request.target).is_some()
        && memchr::memmem::find(request.path(), b"%00").is_some()
    {
        return Err(TargetError::EncodedNul);
    }
    Ok(())
}

/// `scheme "://" authority path [ "?" query ]`; returns path and query.
fn absolute_form<'a>(
    raw: &'a [u8],
    scheme: Scheme,
    request: &mut Request,
) -> Result<&'a [u8], TargetError> {
    let name = scheme.as_str().as_bytes();
    let (prefix, rest) = raw.split_at_checked(name.len()).ok_or(TargetError::Form)?;
    let rest = rest.strip_prefix(b"://").ok_or(TargetError::Form)?;
    // The scheme is that of the listener: what came in plain text cannot claim to have come by TLS.
    if !prefix.eq_ignore_ascii_case(name) {
        return Err(TargetError::Form);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: Method) -> Request {
        Request { method, ..Request::default() }
    }

    #[test]
    fn every_form_becomes_the_origin_form() {
        for (method, raw, target, host) in [
            (Method::Get, "/a?b", "/a?b", ""),
            (Method::Get, "http://A.example/b", "/b", "a.example"),
            (Method::Get, "http://a.example", "/", "a.example"),
            (Method::Get, "HTTP://a.example?q", "/?q", "a.example"),
            (Method::Options, "*", "*", ""),
            (Method::Options, "http://a.example", "*", "a.example"),
        ] {
            let mut request = request(method);
            let absolute = read(raw.as_bytes(), Scheme::Http, &mut request);
            assert_eq!(absolute, Ok(!host.is_empty()), "{raw}");
            assert_eq!(
                (&request.target[..], &request.host[..]),
                (target.as_bytes(), host.as_bytes())
            );
        }
    }

    #[test]
    fn other_forms_are_refused() {
        for (method, raw, error) in [
            (Method::Get, "*", TargetError::Form),
            (Method::Get, "a", TargetError::Form),
            (Method::Get, "a.example:80", TargetError::Form),
            (Method::Get, "https://a.example/", TargetError::Form),
            (Method::Get, "http://u@a.example/", TargetError::Authority),
            (Method::Get, "/a%00", TargetError::EncodedNul),
        ] {
            let read = read(raw.as_bytes(), Scheme::Http, &mut request(method));
            assert_eq!(read, Err(error), "{raw}");
        }
    }

    #[test]
    fn a_target_is_checked_in_its_place() {
        for (method, target, expected) in [
            (Method::Get, &b"/a?%00"[..], Ok(())),
            (Method::Options, b"*", Ok(())),
            (Method::Get, b"*", Err(TargetError::Form)),
            (Method::Get, b"", Err(TargetError::Form)),
            (Method::Get, b"a/b", Err(TargetError::Form)),
            (Method::Get, b"http://a.example/", Err(TargetError::Form)),
            (Method::Get, b"/a%00?b", Err(TargetError::EncodedNul)),
            (Method::Get, b"/a#b", Err(TargetError::Byte)),
            (Method::Get, b"/a b", Err(TargetError::Byte)),
            (Method::Get, b"/\x80", Err(TargetError::Byte)),
            (Method::Get, b"/a\r\nb", Err(TargetError::Byte)),
        ] {
            let mut request = request(method);
            request.target.extend_from_slice(target);
            assert_eq!(check(&request), expected, "{}", target.escape_ascii());
        }
    }
}
