//! Addresses of fragments, and the requests that they resolve to. An address never carries a line
//! end or a blank into a request.

use message::percent;

/// The dialect's rules for resolving an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum AddressRules {
    /// Varnish's: an address other than `http://` or a path is appended to the page's directory.
    Varnish,
    /// RFC 3986 5.2.
    #[default]
    Uri,
    /// nginx's: a path; anything else is appended to the page's directory.
    Ssi,
}

/// The request for a fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FragmentTarget {
    /// The scheme, in lower case, if the address has one.
    pub scheme: Option<Vec<u8>>,
    /// The host with its port, if the address names one; otherwise the page's host is meant.
    pub host: Option<Vec<u8>>,
    /// Path and query, without the address's `#` part. It begins with `/`, except for an address
    /// without a path (`mailto:`).
    pub url: Vec<u8>,
}

pub(crate) fn target(src: &[u8], base: &[u8], rules: AddressRules) -> FragmentTarget {
    match rules {
        AddressRules::Varnish => varnish(src, base),
        AddressRules::Uri => uri(src, base),
        AddressRules::Ssi => joined(src, base),
    }
}

/// Varnish's rules: a host is recognised after lower-case `http://` only, and nothing is
/// normalised. With the feature `esi_ignore_https` the scheme says that the address had `https://`.
fn varnish(src: &[u8], base: &[u8]) -> FragmentTarget {
    for scheme in [&b"http"[..], b"https"] {
        if let Some(rest) = src.strip_prefix(scheme)
            && let Some(rest) = rest.strip_prefix(b"://")
            && let Some(slash) = memchr::memchr(b'/', rest)
        {
            let (host, url) = rest.split_at(slash);
            let (scheme, host) = (Some(scheme.to_vec()), Some(host.to_vec()));
            return FragmentTarget { scheme, host, url: url.to_vec() };
        }
    }
    joined(src, base)
}

fn joined(src: &[u8], base: &[u8]) -> FragmentTarget {
    let directory = if src.starts_with(b"/") { &b""[..] } else { directory(base) };
    FragmentTarget { scheme: None, host: None, url: [directory, src].concat() }
}

/// Percent-encodes the bytes of an address that would end a line or split a request line.
pub(crate) fn safe(src: &[u8]) -> Vec<u8> {
    percent::encode(src, |byte| byte <= b' ' || byte == 0x7f)
}

/// Resolves an address of nginx: the path is escaped as nginx does, the query is made safe. `None`
/// for a path that nginx rejects as unsafe.
pub(crate) fn ssi(src: &[u8]) -> Option<Vec<u8>> {
    const UP: [&[u8]; 4] = [b"..", b".%2e", b"%2e.", b"%2e%2e"];
    let is_up = |segment: &[u8]| UP.iter().any(|up| segment.eq_ignore_ascii_case(up));
    let length = memchr::memchr(b'?', src).unwrap_or(src.len());
    let (path, query) = src.split_at(length);
    if path.split(|byte| *byte == b'/').any(is_up) {
        return None;
    }
    let mut out = percent::encode(path, |byte| {
        byte <= b' ' || byte >= 0x7f || b"#\"<>\\^`{|}".contains(&byte)
    });
    out.extend_from_slice(&safe(query));
    Some(out)
}

/// The directory of a path: all up to its last `/`, included.
fn directory(base: &[u8]) -> &[u8] {
    let path = path(base);
    &path[..memchr::memrchr(b'/', path).map_or(0, |at| at + 1)]
}

fn path(url: &[u8]) -> &[u8] {
    &url[..memchr::memchr2(b'?', b'#', url).unwrap_or(url.len())]
}

fn uri(src: &[u8], base: &[u8]) -> FragmentTarget {
    let src = &src[..memchr::memchr(b'#', src).unwrap_or(src.len())];
    let (scheme, rest) = match scheme(src) {
        Some(length) => (Some(src[..length].to_ascii_lowercase()), &src[length + 1..]),
        None => (None, src),
    };
    let (host, rest) = match rest.strip_prefix(b"//") {
        Some(rest) => {
            let end = memchr::memchr2(b'/', b'?', rest).unwrap_or(rest.len());
            (Some(rest[..end].to_vec()), &rest[end..])
        }
        None => (None, rest),
    };
    if scheme.is_some() && host.is_none() {
        return FragmentTarget { scheme, host, url: rest.to_vec() };
    }
    let length = path(rest).len();
    let (own, query) = rest.split_at(length);
    let url = match (own, query, &host) {
        ([], _, Some(_)) => [b"/", query].concat(),
        ([], [], None) => base[..memchr::memchr(b'#', base).unwrap_or(base.len())].to_vec(),
        ([], _, None) => [path(base), query].concat(),
        ([b'/', ..], ..) => [&without_dots(own)[..], query].concat(),
        _ => {
            let joined = [directory(base), own].concat();
            [&without_dots(&joined)[..], query].concat()
        }
    };
    FragmentTarget { scheme, host, url }
}

/// The length of the scheme before `:`.
fn scheme(src: &[u8]) -> Option<usize> {
    let end = src.iter().position(|b| !(b.is_ascii_alphanumeric() || b"+-.".contains(b)))?;
    (end > 0 && src[end] == b':' && src[0].is_ascii_alphabetic()).then_some(end)
}

/// The path without `.` and `..` segments (RFC 3986 5.2.4).
fn without_dots(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    let mut segments = path.split(|b| *b == b'/').peekable();
    // The text before the first slash is empty, unless the path begins without one.
    if let Some(first) = segments.next() {
        out.extend_from_slice(first);
    }
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            b"." | b".." => {
                if segment == b".." {
                    out.truncate(memchr::memrchr(b'/', &out).unwrap_or(0));
                }
                if is_last {
                    out.push(b'/');
                }
            }
            _ => {
                out.push(b'/');
                out.extend_from_slice(segment);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(src: &str, rules: AddressRules) -> String {
        let target = target(src.as_bytes(), b"/b/c/d;p?q", rules);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        let scheme = target.scheme.map_or(String::new(), |s| text(s) + ":");
        let host = target.host.map_or(String::new(), |h| format!("//{}", text(h)));
        format!("{scheme}{host}{}", text(target.url))
    }

    /// The examples of RFC 3986 5.4 for `http://a/b/c/d;p?q`, without those that name no server.
    #[test]
    fn references_are_resolved_as_the_standard_has_it() {
        for (src, url) in [
            ("g", "/b/c/g"),
            ("./g", "/b/c/g"),
            ("g/", "/b/c/g/"),
            ("/g", "/g"),
            ("//g", "//g/"),
            ("?y", "/b/c/d;p?y"),
            ("g?y", "/b/c/g?y"),
            ("#s", "/b/c/d;p?q"),
            ("g#s", "/b/c/g"),
            ("g?y#s", "/b/c/g?y"),
            (";x", "/b/c/;x"),
            ("", "/b/c/d;p?q"),
            (".", "/b/c/"),
            ("./", "/b/c/"),
            ("..", "/b/"),
            ("../", "/b/"),
            ("../g", "/b/g"),
            ("../..", "/"),
            ("../../g", "/g"),
            ("../../../g", "/g"),
            ("/./g", "/g"),
            ("/../g", "/g"),
            ("g.", "/b/c/g."),
            ("..g", "/b/c/..g"),
            ("./g/.", "/b/c/g/"),
            ("g/../h", "/b/c/h"),
            ("g?y/../x", "/b/c/g?y/../x"),
            ("HTTP://other:81?q", "http://other:81/?q"),
            ("https://other/x/../y", "https://other/y"),
            ("mailto:x", "mailto:x"),
        ] {
            assert_eq!(shown(src, AddressRules::Uri), url, "{src}");
        }
    }

    #[test]
    fn varnish_joins_and_does_not_normalise() {
        for (src, url) in [
            ("", "/b/c/"),
            ("../g", "/b/c/../g"),
            ("//g/h", "//g/h"),
            ("http://g", "/b/c/http://g"),
            ("HTTP://g/h", "/b/c/HTTP://g/h"),
            ("http://g:81/h?i", "http://g:81/h?i"),
            ("https://g/h", "https://g/h"),
        ] {
            assert_eq!(shown(src, AddressRules::Varnish), url, "{src}");
        }
    }
}
