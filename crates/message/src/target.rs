//! Target of a request: converts every form (RFC 9112 3.2) to the origin-form in ASCII, and its
//! path to one spelling ([`canonical`]).

use std::fmt;

use crate::authority::{AuthorityError, parse_authority};
use crate::class;
use crate::percent::{escape, escaped};
use crate::request::{Method, Request, Scheme};

/// The reason why a request target was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetError {
    /// A byte that is invalid in a target.
    Byte,
    /// The form does not fit method and listener (RFC 9112 3.2).
    Form,
    /// `%00` in the path.
    EncodedNul,
    /// The authority is malformed.
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

/// Parses `raw` in origin-form, absolute-form or, for OPTIONS, asterisk-form. Sets
/// `request.target`, and from an absolute target `request.host` and `request.port`. Returns true if
/// it was absolute.
///
/// Bytes beyond ASCII are escaped. `request.method` must be set, and each other byte of `raw` must
/// be in [`class::TARGET`].
///
/// # Errors
/// [`TargetError`]; never [`TargetError::Byte`].
#[inline]
pub fn read(raw: &[u8], scheme: Scheme, request: &mut Request) -> Result<bool, TargetError> {
    debug_assert!(raw.iter().all(|b| !b.is_ascii() || class::is(*b, class::TARGET)), "checked");
    request.target.clear();
    request.respelt.clear();
    let (path, absolute) = match raw {
        [b'/', ..] => (raw, false),
        b"*" if request.method == Method::Options => (raw, false),
        _ => (absolute_form(raw, scheme, request)?, true),
    };
    if !path.starts_with(b"/") && path != b"*" {
        request.target.push(b'/');
    }
    push(path, &mut request.target);
    refuse_nul(request)?;
    Ok(absolute)
}

/// The length of `raw` after [`push`] has escaped it; `None` if it is not UTF-8.
pub fn escaped_len(raw: &[u8]) -> Option<usize> {
    if raw.is_ascii() {
        return Some(raw.len());
    }
    let text = std::str::from_utf8(raw).ok()?;
    Some(raw.len() + 2 * text.bytes().filter(|b| !b.is_ascii()).count())
}

/// Appends `raw` to a target, with each byte beyond ASCII escaped (RFC 3987 3.1).
#[inline]
pub fn push(raw: &[u8], target: &mut Vec<u8>) {
    if raw.is_ascii() {
        return target.extend_from_slice(raw);
    }
    for byte in raw {
        match byte {
            0..0x80 => target.push(*byte),
            _ => target.extend_from_slice(&escape(*byte)),
        }
    }
}

/// Rewrites the path of `request.target` in the spelling that RFC 3986 6.2.2 prefers: escapes in
/// capitals, and no escapes of unreserved bytes. Paths that differ in nothing else are one page.
///
/// An escaped dot stays escaped: servers disagree on whether `%2e%2e` is a parent. A path with a
/// malformed escape is unchanged, and so is the query, which applications may have signed. A
/// spelling that changes is kept in `request.respelt`.
#[inline]
pub fn canonical(request: &mut Request) {
    if memchr::memchr(b'%', &request.target).is_some() {
        spell(&mut request.target, &mut request.respelt);
    }
}

fn spell(target: &mut Vec<u8>, sent: &mut Vec<u8>) {
    let end = memchr::memchr(b'?', target).unwrap_or(target.len());
    let (mut from, mut to) = (0, 0);
    // The whole path must be checked first: a byte decoded beside a stray `%` might form an escape.
    let escapes = memchr::memchr_iter(b'%', &target[..end]);
    if escapes.into_iter().any(|at| escaped(&target[at..end]).is_none()) {
        return;
    }
    while from < end {
        let Some(byte) = escaped(&target[from..end]) else {
            target[to] = target[from];
            (from, to) = (from + 1, to + 1);
            continue;
        };
        let (plain, escaped) = ([byte], escape(byte));
        let is_plain = byte != b'.' && class::is(byte, class::HOST);
        let spelt = if is_plain { &plain[..] } else { &escaped[..] };
        if sent.is_empty() && target[from..from + 3] != *spelt {
            sent.extend_from_slice(target);
        }
        target[to..to + spelt.len()].copy_from_slice(spelt);
        (from, to) = (from + 3, to + spelt.len());
    }
    target.drain(to..end);
}

/// Checks `request.target` in place, as received in `:path`: origin-form or, for OPTIONS,
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

/// Rejects `%00` in the path: servers that end strings there would serve another path.
#[inline]
fn refuse_nul(request: &Request) -> Result<(), TargetError> {
    // Few targets need the second check.
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
    // The scheme must be the listener's: a plain-text request cannot claim TLS.
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
    fn bytes_beyond_ascii_are_escaped() {
        let mut request = request(Method::Get);
        let raw = "http://a.example/caf\u{e9}?q=\u{20ac}".as_bytes();
        assert_eq!(read(raw, Scheme::Http, &mut request), Ok(true));
        assert_eq!(request.target, b"/caf%C3%A9?q=%E2%82%AC");
        assert_eq!(escaped_len("/caf\u{e9}".as_bytes()), Some("/caf%C3%A9".len()));
        assert_eq!(escaped_len(b"/caf\xe9"), None);
    }

    #[test]
    fn a_path_has_one_spelling() {
        for (target, spelt) in [
            ("/caf%c3%a9", "/caf%C3%A9"),
            ("/%7euser/%61%2D%5f", "/~user/a-_"),
            ("/a%2fb%3b%5c", "/a%2Fb%3B%5C"),
            ("/a/%2e%2e/b", "/a/%2E%2E/b"),
            ("/%25%36%31", "/%2561"),
            ("/a?q=%c3%7e", "/a?q=%c3%7e"),
            ("/%7e?q=%c3", "/~?q=%c3"),
            // None of these may become an escape.
            ("/%%36%31", "/%%36%31"),
            ("/%7e%6", "/%7e%6"),
            ("/%7e%?61", "/%7e%?61"),
            ("/plain", "/plain"),
        ] {
            let mut request = request(Method::Get);
            request.target.extend_from_slice(target.as_bytes());
            canonical(&mut request);
            assert_eq!(request.target, spelt.as_bytes(), "{target}");
            assert_eq!(request.sent_target(), target.as_bytes());
            assert_eq!(request.respelt.is_empty(), target == spelt, "{target}");
            canonical(&mut request);
            assert_eq!(request.target, spelt.as_bytes(), "{target} again");
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
