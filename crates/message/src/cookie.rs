//! Cookies of a request (RFC 6265 4.2.1 and 5.4): parses them, recognises tracking cookies, and
//! rewrites the field without some of them.

pub mod known_cookies;

pub use known_cookies::CookieReader;

use crate::header::{HeaderBlock, HeaderId};
use crate::list::trim;

/// One cookie of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CookiePair<'a> {
    /// Its name; empty for a value without a name.
    pub name: &'a [u8],
    /// Its value as sent, quotes included.
    pub value: &'a [u8],
}

/// The cookies in all lines of a Cookie field.
pub fn pairs<'a>(
    lines: impl IntoIterator<Item = &'a [u8]>,
) -> impl Iterator<Item = CookiePair<'a>> {
    crumbs(lines).map(pair)
}

/// Appends the lines of a Cookie field to `out`, as one line.
pub fn write_joined<'a>(lines: impl IntoIterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
    for (at, line) in lines.into_iter().enumerate() {
        if at > 0 {
            out.extend_from_slice(b"; ");
        }
        out.extend_from_slice(line);
    }
}

/// The cookies in all lines of a Cookie field, each as it was written.
fn crumbs<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> impl Iterator<Item = &'a [u8]> {
    lines.into_iter().flat_map(|l| l.split(|b| *b == b';')).map(trim).filter(|c| !c.is_empty())
}

fn pair(crumb: &[u8]) -> CookiePair<'_> {
    match memchr::memchr(b'=', crumb) {
        Some(at) => CookiePair { name: trim(&crumb[..at]), value: trim(&crumb[at + 1..]) },
        None => CookiePair { name: b"", value: crumb },
    }
}

/// Returns true if only scripts in the browser read a cookie of this name, for analytics,
/// advertising, chats or consent banners: no server's response depends on it.
pub fn is_tracking(name: &[u8]) -> bool {
    known_cookies::reader(name) == Some(CookieReader::Script)
}

/// Returns true if a cookie of this name belongs to a balancer or bot filter: no page depends on
/// it, but it may select the server that has a client's session.
pub fn is_of_way(name: &[u8]) -> bool {
    known_cookies::reader(name) == Some(CookieReader::Way)
}

/// Appends to `out` a Cookie field without the cookies whose names `drop` selects; returns true if
/// it selected any.
pub fn write_without<'a>(
    lines: impl IntoIterator<Item = &'a [u8]>,
    mut drop: impl FnMut(&[u8]) -> bool,
    out: &mut Vec<u8>,
) -> bool {
    let (mut dropped, mut first) = (false, true);
    for crumb in crumbs(lines) {
        if drop(pair(crumb).name) {
            dropped = true;
            continue;
        }
        if !first {
            out.extend_from_slice(b"; ");
        }
        out.extend_from_slice(crumb);
        first = false;
    }
    dropped
}

/// Removes the cookies whose names `drop` selects; with the last cookie, the field is removed.
/// Returns true if anything changed. `scratch` is overwritten.
pub fn remove(
    headers: &mut HeaderBlock,
    mut drop: impl FnMut(&[u8]) -> bool,
    scratch: &mut Vec<u8>,
) -> bool {
    if !pairs(headers.values(HeaderId::Cookie)).any(|p| drop(p.name)) {
        return false;
    }
    scratch.clear();
    write_without(headers.values(HeaderId::Cookie), drop, scratch);
    if scratch.is_empty() {
        headers.remove(HeaderId::Cookie);
    } else {
        headers.set(HeaderId::Cookie, scratch);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_found_in_all_lines() {
        let lines = [&b"a=1; b=\"x=y\";;c= "[..], b"", b" d ;=e"];
        let found: Vec<_> = pairs(lines).map(|p| (p.name, p.value)).collect();
        let expected: [(&[u8], &[u8]); 5] =
            [(b"a", b"1"), (b"b", b"\"x=y\""), (b"c", b""), (b"", b"d"), (b"", b"e")];
        assert_eq!(found, expected);
    }

    #[test]
    fn tracking_cookies_are_known_and_others_are_not() {
        for name in ["_ga", "_ga_ABC123", "_gat_gtag", "__utmz", "_hjid", "_pk_id.1.2", "has_js"] {
            assert!(is_tracking(name.as_bytes()), "{name}");
        }
        for name in ["", "_g", "_gab", "_GA", "session", "PHPSESSID", "csrftoken", "lang", "cart"] {
            assert!(!is_tracking(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn removing_keeps_the_others_as_they_are() {
        let mut headers = HeaderBlock::new();
        headers.push(HeaderId::Cookie, b"_ga=1; a=\"1 2\";b=2");
        headers.push(HeaderId::Cookie, b"_gid=3");
        let mut scratch = Vec::new();
        assert!(remove(&mut headers, is_tracking, &mut scratch));
        let left: Vec<_> = headers.values(HeaderId::Cookie).collect();
        assert_eq!(left, [b"a=\"1 2\"; b=2"]);
        assert!(!remove(&mut headers, is_tracking, &mut scratch));
        assert!(remove(&mut headers, |_| true, &mut scratch));
        assert!(!headers.contains(HeaderId::Cookie));
    }
}
