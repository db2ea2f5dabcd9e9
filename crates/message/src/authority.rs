//! Authority: host and port, in the one form that routing, key and origin request use.

use std::fmt;
use std::io::Write as _;
use std::net::Ipv6Addr;

use crate::class;
use crate::header::is_value;
use crate::request::{Request, Scheme};

/// Error for an authority (Host, `:authority`, or in an absolute target) that is not a host with an
/// optional port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthorityError;

impl fmt::Display for AuthorityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("malformed host")
    }
}

impl std::error::Error for AuthorityError {}

/// Longest host name in DNS, in bytes (RFC 1035 2.3.4).
const HOST_BYTES: usize = 255;

/// Parses `host [ ":" port ]` (RFC 9110 7.2), writes the canonical host to `host` and returns the
/// port unless it is the default of `scheme`.
///
/// Canonical: lower case, no trailing dot, an IPv6 literal in its shortest form within brackets.
/// Rejected: user information, lists, percent-encoding, empty labels, port 0 or beyond 65535. An
/// empty port is the default port (RFC 9110 4.2.1).
///
/// # Errors
/// [`AuthorityError`] for any other `raw`; the content of `host` is then unspecified.
pub fn parse_authority(
    raw: &[u8],
    scheme: Scheme,
    host: &mut Vec<u8>,
) -> Result<Option<u16>, AuthorityError> {
    host.clear();
    let rest = match raw {
        [b'[', literal @ ..] => ipv6(literal, host)?,
        _ => registered_name(raw, host)?,
    };
    match rest {
        [] => Ok(None),
        [b':', digits @ ..] => port(digits, scheme),
        _ => Err(AuthorityError),
    }
}

/// Appends the host of `request` and, unless it is the default, `:port`: the value of its Host.
pub fn write_authority(out: &mut Vec<u8>, request: &Request) {
    debug_assert!(is_value(&request.host), "a host is checked when it is read");
    out.extend_from_slice(&request.host);
    if let Some(port) = request.port {
        out.push(b':');
        out.extend_from_slice(itoa::Buffer::new().format(port).as_bytes());
    }
}

fn ipv6<'a>(literal: &'a [u8], host: &mut Vec<u8>) -> Result<&'a [u8], AuthorityError> {
    let end = memchr::memchr(b']', literal).ok_or(AuthorityError)?;
    let text = std::str::from_utf8(&literal[..end]).map_err(|_| AuthorityError)?;
    let address: Ipv6Addr = text.parse().map_err(|_| AuthorityError)?;
    write!(host, "[{address}]").expect("writing to memory cannot fail");
    Ok(&literal[end + 1..])
}

fn registered_name<'a>(raw: &'a [u8], host: &mut Vec<u8>) -> Result<&'a [u8], AuthorityError> {
    let (name, rest) = raw.split_at(class::skip(raw, 0, class::HOST));
    let absolute = name.strip_suffix(b".").unwrap_or(name);
    host.extend_from_slice(absolute);
    let mut before = b'.';
    for b in host.iter_mut() {
        if before == b'.' && *b == b'.' {
            return Err(AuthorityError);
        }
        b.make_ascii_lowercase();
        before = *b;
    }
    if before == b'.' || host.len() > HOST_BYTES { Err(AuthorityError) } else { Ok(rest) }
}

fn port(digits: &[u8], scheme: Scheme) -> Result<Option<u16>, AuthorityError> {
    if digits.is_empty() {
        return Ok(None);
    }
    if digits.len() > 5 || !digits.iter().all(u8::is_ascii_digit) {
        return Err(AuthorityError);
    }
    let number = digits.iter().fold(0, |n, d| n * 10 + u32::from(d - b'0'));
    match u16::try_from(number) {
        Ok(0) | Err(_) => Err(AuthorityError),
        Ok(port) => Ok((port != scheme.default_port()).then_some(port)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_is_written_without_the_default_port() {
        for (raw, written) in [("A.example.:80", "a.example"), ("[::1]:8080", "[::1]:8080")] {
            let mut request = Request::new();
            let port = parse_authority(raw.as_bytes(), Scheme::Http, &mut request.host);
            request.port = port.expect("an authority");
            let mut out = Vec::new();
            write_authority(&mut out, &request);
            assert_eq!(out, written.as_bytes());
        }
    }

    fn read(raw: &str, scheme: Scheme) -> Option<(String, Option<u16>)> {
        let mut host = b"left over".to_vec();
        let port = parse_authority(raw.as_bytes(), scheme, &mut host).ok()?;
        Some((String::from_utf8(host).expect("a host is ASCII"), port))
    }

    #[test]
    fn one_host_has_one_form() {
        for (raw, host, port) in [
            ("example.com", "example.com", None),
            ("EXAMPLE.Com.", "example.com", None),
            ("example.com:80", "example.com", None),
            ("example.com:0080", "example.com", None),
            ("example.com.:8080", "example.com", Some(8080)),
            ("example.com:443", "example.com", Some(443)),
            ("example.com:", "example.com", None),
            ("a_b-c~d.1", "a_b-c~d.1", None),
            ("127.0.0.1:65535", "127.0.0.1", Some(65535)),
            ("[0:0:0:0:0:0:0:1]", "[::1]", None),
            ("[2001:DB8::1]:8443", "[2001:db8::1]", Some(8443)),
        ] {
            assert_eq!(read(raw, Scheme::Http), Some((host.to_owned(), port)), "{raw}");
        }
        assert_eq!(read("a:443", Scheme::Https), Some(("a".to_owned(), None)));
    }

    #[test]
    fn anything_else_is_refused() {
        for raw in [
            "",
            ".",
            "..",
            ":80",
            "a..b",
            ".a",
            "a..",
            "a,b",
            "a b",
            "user@a",
            "a/b",
            "a?b",
            "a#b",
            "a%2eb",
            "a:0",
            "a:65536",
            "a:99999",
            "a:000080",
            "a:+80",
            "a:8x",
            "a:80:80",
            "a:-1",
            "[::1",
            "[]",
            "[::1]x",
            "[::1%25eth0]",
            "[v1.a]",
            "::1",
            "a]",
            "a\\b",
            "é.example",
            "a\t",
            "a=b",
            "http://a",
        ] {
            assert_eq!(read(raw, Scheme::Http), None, "{raw}");
        }
        assert_eq!(read(&"a".repeat(256), Scheme::Http), None);
        assert!(read(&"a".repeat(255), Scheme::Http).is_some());
    }
}
