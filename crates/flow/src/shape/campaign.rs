//! Campaign parameters (`utm_*`, `gclid`): restored in redirects of the origin.
//!
//! They are removed before the lookup, so the origin does not see them and cannot repeat them when
//! it redirects. They are added on delivery, from the client's own request: a stored response must
//! never contain a client's.

use message::query::{name, params};
use message::{HeaderBlock, HeaderId, Request, Status};

/// Returns true if a response of `status` to `request` may lack removed parameters.
#[inline]
pub(super) fn is_due(request: &Request, status: Status) -> bool {
    !request.taken.is_empty() && matches!(status.code(), 301 | 302 | 303 | 307 | 308)
}

/// Adds the removed parameters of the request to a Location on its own site, unless they are
/// present.
pub(super) fn give_back(request: &Request, headers: &mut HeaderBlock) {
    if let Some(whole) = sole(headers).and_then(|location| with_taken(request, location)) {
        headers.set(HeaderId::Location, &whole);
    }
}

/// The Location, if there is exactly one.
fn sole(headers: &HeaderBlock) -> Option<&[u8]> {
    let mut locations = headers.values(HeaderId::Location);
    let first = locations.next()?;
    locations.next().is_none().then_some(first)
}

fn with_taken(request: &Request, location: &[u8]) -> Option<Vec<u8>> {
    if !is_of_site(&request.host, location) {
        return None;
    }
    let end = location.iter().position(|b| *b == b'#').unwrap_or(location.len());
    let (address, fragment) = location.split_at(end);
    let query = memchr::memchr(b'?', address).map(|at| &address[at + 1..]);
    let has = |wanted: &[u8]| params(query.unwrap_or_default()).any(|own| name(own) == wanted);
    let lacks = |param: &&[u8]| !param.is_empty() && !has(name(param));
    let lacking: Vec<&[u8]> = params(&request.taken).filter(lacks).collect();
    if lacking.is_empty() {
        return None;
    }
    let between: &[u8] = match query {
        None => b"?",
        Some(query) if query.is_empty() || query.ends_with(b"&") => b"",
        Some(_) => b"&",
    };
    Some([address, between, &lacking.join(&b'&'), fragment].concat())
}

/// Returns true if a Location leads to `host`, with or without `www.`, over HTTP or HTTPS, at any
/// port. Browsers read a backslash as a slash, so a Location with one counts as another host.
fn is_of_site(host: &[u8], location: &[u8]) -> bool {
    let end = location.iter().position(|b| matches!(b, b'?' | b'#')).unwrap_or(location.len());
    let address = &location[..end];
    if address.contains(&b'\\') || !location.iter().all(u8::is_ascii_graphic) {
        return false;
    }
    let slash = address.iter().position(|b| *b == b'/').unwrap_or(address.len());
    let rest = match address[..slash].iter().position(|b| *b == b':') {
        Some(colon) => {
            let scheme = &address[..colon];
            if !scheme.eq_ignore_ascii_case(b"http") && !scheme.eq_ignore_ascii_case(b"https") {
                return false;
            }
            match address[colon + 1..].strip_prefix(b"//") {
                Some(rest) => rest,
                None => return false,
            }
        }
        None => match address.strip_prefix(b"//") {
            Some(rest) => rest,
            None => return true,
        },
    };
    let authority = rest.split(|b| *b == b'/').next().unwrap_or_default();
    // No site would send a user name before the host.
    if authority.contains(&b'@') {
        return false;
    }
    let other = match authority.iter().rposition(|b| *b == b':') {
        Some(colon) if authority[colon + 1..].iter().all(u8::is_ascii_digit) => &authority[..colon],
        _ => authority,
    };
    let bare = |host: &[u8]| {
        let host = host.to_ascii_lowercase();
        host.strip_prefix(b"www.").map_or_else(|| host.clone(), <[u8]>::to_vec)
    };
    bare(other) == bare(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_brought_comes_back_into_its_own_site() {
        const BOTH: &str = "utm_source=mail&gclid=1";
        for (location, taken, expected) in [
            ("/offer/", BOTH, Some("/offer/?utm_source=mail&gclid=1")),
            ("offer", "gclid=1", Some("offer?gclid=1")),
            ("?a=b", "gclid=1", Some("?a=b&gclid=1")),
            ("/a?", "gclid=1", Some("/a?gclid=1")),
            ("/a?b&", "gclid=1", Some("/a?b&gclid=1")),
            ("/a#top", "gclid=1", Some("/a?gclid=1#top")),
            ("/a?x=1#top?y", "gclid=1", Some("/a?x=1&gclid=1#top?y")),
            ("/a?gclid=2", BOTH, Some("/a?gclid=2&utm_source=mail")),
            ("/a?utm_source=mail&gclid=1", BOTH, None),
            ("http://example.com/x", "gclid=1", Some("http://example.com/x?gclid=1")),
            ("https://example.com", "gclid=1", Some("https://example.com?gclid=1")),
            ("HTTPS://WWW.Example.com:8443/", "gclid", Some("HTTPS://WWW.Example.com:8443/?gclid")),
            ("//example.com/x", "gclid=1", Some("//example.com/x?gclid=1")),
            ("/a?next=http://evil.example/", "g=1", Some("/a?next=http://evil.example/&g=1")),
            ("https://partner.example/", "gclid=1", None),
            ("//partner.example/", "gclid=1", None),
            ("https://example.com.evil.example/", "gclid=1", None),
            ("https://example.com@evil.example/", "gclid=1", None),
            ("https:example.com/", "gclid=1", None),
            ("/\\evil.example/", "gclid=1", None),
            ("mailto:a@example.com", "gclid=1", None),
            ("android-app://example.com/", "gclid=1", None),
            ("/a b", "gclid=1", None),
            ("", "gclid=1", Some("?gclid=1")),
        ] {
            let mut request = Request::new();
            request.host = b"example.com".to_vec();
            request.taken = taken.as_bytes().to_vec();
            let whole = with_taken(&request, location.as_bytes());
            let whole = whole.map(|whole| String::from_utf8(whole).expect("text"));
            assert_eq!(whole.as_deref(), expected, "{location}");
        }
    }

    #[test]
    fn only_redirects_are_changed_and_two_locations_are_none() {
        let mut request = Request::new();
        let moved = Status::new(301).expect("three digits");
        assert!(!is_due(&request, moved));
        request.taken = b"gclid=1".to_vec();
        assert!(is_due(&request, moved) && !is_due(&request, Status::OK));
        let mut headers = HeaderBlock::new();
        headers.push(HeaderId::Location, b"/a");
        headers.push(HeaderId::Location, b"/b");
        give_back(&request, &mut headers);
        assert_eq!(headers.values(HeaderId::Location).next(), Some(&b"/a"[..]));
    }
}
