//! Forwarding rules of intermediaries (RFC 9110 7.6): Max-Forwards, Via, and loops.

use crate::header::{HeaderBlock, HeaderId};
use crate::request::{Method, Request, Version};

/// Returns the Max-Forwards of an OPTIONS (RFC 9110 7.6.2). The field also applies to TRACE, which
/// is rejected everywhere (nginx: 405); other methods ignore it. An invalid value is forwarded
/// unchanged; a number too large to be parsed counts as the largest.
pub fn hops_left(request: &Request) -> Option<u64> {
    if request.method != Method::Options {
        return None;
    }
    let mut values = request.headers.values(HeaderId::MaxForwards);
    let (value, None) = (values.next()?, values.next()) else { return None };
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    is_number.then(|| std::str::from_utf8(value).ok()?.parse().ok()).map(|n| n.unwrap_or(u64::MAX))
}

/// Returns true if the request must be answered here, since Max-Forwards is 0.
pub fn is_last_hop(request: &Request) -> bool {
    hops_left(request) == Some(0)
}

/// Returns how often a request has passed the proxy called `pseudonym`, according to Via.
pub fn passes(headers: &HeaderBlock, pseudonym: &str) -> usize {
    let name = pseudonym.as_bytes();
    let mine = |via: &[u8]| via.split(|b| *b == b',').filter(|m| m.ends_with(name)).count();
    headers.values(HeaderId::Via).map(mine).sum()
}

/// Adds this proxy to Via; `received` is the version of the received message (RFC 9110 7.6.3).
pub fn add_via(headers: &mut HeaderBlock, received: Version, pseudonym: &str) {
    let version: &[u8] = match received {
        Version::Http10 => b"1.0 ",
        Version::Http11 => b"1.1 ",
        Version::Http2 => b"2 ",
    };
    headers.push_with(HeaderId::Via, |out| {
        out.extend_from_slice(version);
        out.extend_from_slice(pseudonym.as_bytes());
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(method: Method, values: &[&str]) -> Option<u64> {
        let mut request = Request::new();
        request.method = method;
        for value in values {
            request.headers.push(HeaderId::MaxForwards, value.as_bytes());
        }
        hops_left(&request)
    }

    #[test]
    fn via_names_the_version_a_message_came_in() {
        for (version, expected) in
            [(Version::Http10, "1.0 me"), (Version::Http11, "1.1 me"), (Version::Http2, "2 me")]
        {
            let mut headers = HeaderBlock::new();
            add_via(&mut headers, version, "me");
            assert_eq!(headers.value(HeaderId::Via), Some(expected.as_bytes()));
        }
    }

    #[test]
    fn hops_are_counted_for_options_alone_and_only_where_they_are_a_number() {
        for (values, expected) in [
            (&["0"][..], Some(0)),
            (&["007"], Some(7)),
            (&["99999999999999999999999"], Some(u64::MAX)),
            (&[""], None),
            (&["-1"], None),
            (&["+1"], None),
            (&["1, 2"], None),
            (&["1", "2"], None),
            (&[], None),
        ] {
            assert_eq!(left(Method::Options, values), expected, "{values:?}");
            assert_eq!(left(Method::Get, values), None);
        }
    }
}
