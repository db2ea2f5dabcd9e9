//! Forwarded (RFC 7239): the client of each proxy on the way, as those proxies report it.
//!
//! Must never guess: a malformed line counts as absent, since parsers would disagree on its parts.

use std::net::{IpAddr, Ipv6Addr};

use crate::header::is_token_byte;

/// The element of one proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Element<'a> {
    /// The address of its client; `None` if absent or obfuscated (`unknown`, `_secret`).
    pub client: Option<IpAddr>,
    /// The scheme of the request that the proxy received.
    pub proto: Option<&'a [u8]>,
}

/// Error for a line that is malformed or repeats a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedElement;

/// The elements of one field line, the first proxy's first. The iterator ends after
/// [`MalformedElement`].
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    rest: &'a [u8],
}

/// Parses one field line.
pub fn elements(line: &[u8]) -> Elements<'_> {
    Elements { rest: line }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<Element<'a>, MalformedElement>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            self.rest = skip_spaces(self.rest);
            match self.rest.split_first() {
                None => return None,
                Some((b',', rest)) => self.rest = rest,
                Some(_) => break,
            }
        }
        let element = self.element();
        if element.is_none() {
            self.rest = b"";
        }
        Some(element.ok_or(MalformedElement))
    }
}

impl<'a> Elements<'a> {
    fn element(&mut self) -> Option<Element<'a>> {
        let mut element = Element::default();
        // for, proto, host, by
        let mut seen = [false; 4];
        loop {
            self.rest = skip_spaces(self.rest);
            match self.rest.split_first() {
                None | Some((b',', _)) => return Some(element),
                Some((b';', rest)) => {
                    self.rest = rest;
                    continue;
                }
                Some(_) => {}
            }
            let (name, value) = self.pair()?;
            let known: [&[u8]; 4] = [b"for", b"proto", b"host", b"by"];
            let known = known.iter().position(|known| name.eq_ignore_ascii_case(known));
            if let Some(at) = known
                && std::mem::replace(&mut seen[at], true)
            {
                return None;
            }
            match known {
                Some(0) => element.client = node(value),
                Some(1) => element.proto = Some(value),
                _ => {}
            }
            self.rest = skip_spaces(self.rest);
            if !matches!(self.rest.first(), None | Some(b',' | b';')) {
                return None;
            }
        }
    }

    /// A name and its value; a quoted value without its quotes.
    fn pair(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let name = self.token()?;
        self.rest = self.rest.strip_prefix(b"=")?;
        let Some(quoted) = self.rest.strip_prefix(b"\"") else {
            return Some((name, self.token()?));
        };
        let mut escaped = false;
        let end = quoted.iter().position(|b| {
            let ends = *b == b'"' && !escaped;
            escaped = *b == b'\\' && !escaped;
            ends
        })?;
        self.rest = &quoted[end + 1..];
        Some((name, &quoted[..end]))
    }

    fn token(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest;
        let end = rest.iter().position(|b| !is_token_byte(*b)).unwrap_or(rest.len());
        let (token, rest) = rest.split_at(end);
        self.rest = rest;
        (!token.is_empty()).then_some(token)
    }
}

fn skip_spaces(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|b| !matches!(b, b' ' | b'\t')).unwrap_or(text.len());
    &text[end..]
}

/// The address of a node (RFC 7239 6): `192.0.2.1` or `[2001:db8::1]`, each with an optional port.
fn node(value: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(value).ok()?;
    let (address, port): (IpAddr, _) = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']')?;
            (address.parse::<Ipv6Addr>().ok()?.into(), port)
        }
        None => {
            let end = text.find(':').unwrap_or(text.len());
            (text[..end].parse::<std::net::Ipv4Addr>().ok()?.into(), &text[end..])
        }
    };
    let named = |port: &str| {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
        !port.is_empty() && port.bytes().all(allowed)
    };
    let is_port = match port.strip_prefix(':') {
        None => port.is_empty(),
        Some(hidden) if hidden.starts_with('_') => named(&hidden[1..]),
        Some(number) => !number.starts_with('+') && number.parse::<u16>().is_ok(),
    };
    is_port.then_some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn clients(line: &str) -> Vec<Result<Option<String>, MalformedElement>> {
        let client = |e: Element<'_>| e.client.map(|ip| ip.to_string());
        elements(line.as_bytes()).map(|e| e.map(client)).collect()
    }

    fn proto(line: &str) -> Option<&[u8]> {
        elements(line.as_bytes()).next()?.ok()?.proto
    }

    #[test]
    fn the_examples_of_rfc_7239_are_read() {
        let at = |ip: &str| Ok(Some(ip.to_owned()));
        for (line, expected) in [
            ("for=\"_gazonk\"", vec![Ok(None)]),
            ("For=\"[2001:db8:cafe::17]:4711\"", vec![at("2001:db8:cafe::17")]),
            ("for=192.0.2.60;proto=http;by=203.0.113.43", vec![at("192.0.2.60")]),
            ("for=192.0.2.43, for=198.51.100.17", vec![at("192.0.2.43"), at("198.51.100.17")]),
            ("for=_hidden, for=_SEVKISEK", vec![Ok(None), Ok(None)]),
            ("for=unknown", vec![Ok(None)]),
            ("for=\"192.0.2.43:_secret\"", vec![at("192.0.2.43")]),
            ("for=\"[::ffff:192.0.2.1]\"", vec![at("192.0.2.1")]),
            (" ,, for=192.0.2.1 ; proto=https ,", vec![at("192.0.2.1")]),
            ("proto=https", vec![Ok(None)]),
            ("host=\"a, b; \\\" c\";for=192.0.2.1", vec![at("192.0.2.1")]),
            ("", vec![]),
        ] {
            assert_eq!(clients(line), expected, "{line}");
        }
        assert_eq!(proto("for=192.0.2.1; Proto=https"), Some(&b"https"[..]));
        assert_eq!(proto("proto=\"https\""), Some(&b"https"[..]));
        assert_eq!(proto("for=192.0.2.1"), None);
    }

    #[test]
    fn lines_that_are_not_well_formed_end_at_once() {
        for line in [
            "for",
            "for=",
            "for =192.0.2.1",
            "for= 192.0.2.1",
            "for=192.0.2.1:80",
            "for=[2001:db8::1]",
            "for=\"192.0.2.1",
            "for=\"192.0.2.1\\\"",
            "for=\"192.0.2.1\"x",
            "for=192.0.2.1;for=192.0.2.2",
            "for=192.0.2.1 proto=https",
            "=192.0.2.1",
            "192.0.2.1",
        ] {
            assert_eq!(clients(line), [Err(MalformedElement)], "{line}");
        }
        let begun = clients("for=192.0.2.1, for=\"192.0.2.2, for=192.0.2.3");
        assert_eq!(begun, [Ok(Some("192.0.2.1".to_owned())), Err(MalformedElement)]);
    }

    #[test]
    fn what_is_no_address_names_nobody() {
        for value in [
            "2001:db8::1",
            "[192.0.2.1]",
            "[2001:db8::1]x",
            "[2001:db8::1]:",
            "[2001:db8::1",
            "192.0.2.1:",
            "192.0.2.1:65536",
            "192.0.2.1:+1",
            "192.0.2.1:_",
            "192.0.2",
            "",
        ] {
            assert_eq!(clients(&format!("for=\"{value}\"")), [Ok(None)], "{value}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_read_to_an_end(line in "[a-z=;,\"\\\\ .:\\[\\]0-9]{0,60}") {
            let read: Vec<_> = elements(line.as_bytes()).collect();
            prop_assert!(read.len() <= line.len());
            prop_assert!(read.iter().rev().skip(1).all(Result::is_ok));
        }

        #[test]
        fn addresses_that_are_written_are_read(
            ips in prop::collection::vec(any::<[u8; 16]>().prop_map(Ipv6Addr::from), 1..5),
        ) {
            let line: Vec<_> =
                ips.iter().map(|ip| format!("for=\"[{ip}]\";proto=https")).collect();
            let read: Vec<_> =
                elements(line.join(", ").as_bytes()).map(|e| e.expect("read").client).collect();
            let written: Vec<_> =
                ips.iter().map(|ip| Some(IpAddr::V6(*ip).to_canonical())).collect();
            prop_assert_eq!(read, written);
        }
    }
}
