//! Who asks, and what of a head only a proxy in front of us may say.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use message::header::{Field, HeaderBlock, HeaderId};
use message::{Request, Scheme};

use crate::acl::CidrSet;

/// Who is at the other end of a client's connection, as far as the connection tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A host at this address.
    Host(IpAddr),
    /// Somebody behind the trusted proxy at this address, which does not say who (UNKNOWN of the
    /// PROXY protocol). What such a client says of others is never believed, and no list of
    /// addresses has it.
    Unnamed(IpAddr),
}

impl Peer {
    /// Its address, or that of the proxy in front of it.
    pub fn address(self) -> IpAddr {
        match self {
            Self::Host(address) | Self::Unnamed(address) => address,
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address().fmt(f)
    }
}

/// What one look over a head finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// A Cookie field is there.
    pub(crate) cookie: bool,
    /// An Authorization field is there.
    pub(crate) authorization: bool,
    /// A field is there that clients must not bring along.
    pub(crate) forged: bool,
}

impl Seen {
    pub(crate) fn of(headers: &HeaderBlock) -> Self {
        let unknown = || headers.iter().filter(|field| field.id == HeaderId::Other);
        Self {
            cookie: headers.contains(HeaderId::Cookie),
            authorization: headers.contains(HeaderId::Authorization),
            forged: headers.contains_any(&FORGED)
                || headers.contains(HeaderId::Other)
                    && unknown().any(|field| is_forged_name(field.name)),
        }
    }
}

/// Removes every field that speaks for a proxy: origins believe them and reflect them, and they are
/// in no key, so one client's value would be served to all (web cache poisoning).
pub(crate) fn remove_forged(headers: &mut HeaderBlock) {
    headers.retain(|field| !is_forged(field));
}

fn is_forged(field: Field<'_>) -> bool {
    match field.id {
        HeaderId::Other => is_forged_name(field.name),
        id => FORGED.contains(&id),
    }
}

/// Known fields that speak for a proxy.
const FORGED: [HeaderId; 4] = [
    HeaderId::XForwardedFor,
    HeaderId::XForwardedHost,
    HeaderId::XForwardedProto,
    HeaderId::Forwarded,
];

/// Beginnings of names that speak for a proxy. Client-Cert: RFC 9440 2.4.
const PREFIXES: [&[u8]; 3] = [b"x-forwarded-", b"client-cert", b"x-original-"];

/// Names that change the route, the method or the environment (Proxy: CVE-2016-5385) at an origin.
const NAMES: [&[u8]; 6] = [
    b"proxy",
    b"x-host",
    b"x-http-method",
    b"x-http-method-override",
    b"x-method-override",
    b"x-rewrite-url",
];

fn is_forged_name(name: &[u8]) -> bool {
    // Few names begin with these letters: the lists are not looked at for the others.
    if !matches!(name.first().map(u8::to_ascii_lowercase), Some(b'x' | b'c' | b'p')) {
        return false;
    }
    let begins = |prefix: &[u8]| name.len() >= prefix.len() && same(&name[..prefix.len()], prefix);
    PREFIXES.iter().any(|prefix| begins(prefix))
        || NAMES.iter().any(|known| name.len() == known.len() && same(name, known))
}

/// Equal but for case and `_` for `-`: CGI and what descends from it cannot tell those apart.
fn same(name: &[u8], known: &[u8]) -> bool {
    name.iter().zip(known).all(|(a, b)| a.to_ascii_lowercase() == *b || (*a == b'_' && *b == b'-'))
}

/// The client on whose behalf `peer` asks, and what `peer` says of the scheme, if it is believed.
///
/// X-Forwarded-For is read from its end: the last address that is no trusted proxy's is the client,
/// since everything before it may have been sent by the client itself.
pub(crate) fn client_of(peer: Peer, trusted: &CidrSet, request: &mut Request) -> Peer {
    if trusted.is_empty() || !trusted.has(peer) {
        return peer;
    }
    match request.headers.values(HeaderId::XForwardedProto).last() {
        Some(proto) if proto.eq_ignore_ascii_case(b"https") => request.scheme = Scheme::Https,
        Some(proto) if proto.eq_ignore_ascii_case(b"http") => request.scheme = Scheme::Http,
        _ => {}
    }
    let mut stranger = None;
    let mut outermost_proxy = None;
    let entries =
        request.headers.values(HeaderId::XForwardedFor).flat_map(|v| v.split(|b| *b == b','));
    for entry in entries {
        match parse_address(entry.trim_ascii()) {
            Some(address) if trusted.contains(address) => {
                outermost_proxy = outermost_proxy.or(Some(address));
            }
            Some(address) => stranger = Some(address),
            // What stands before an unreadable entry was passed on by nobody we know.
            None => (stranger, outermost_proxy) = (None, None),
        }
    }
    stranger.or(outermost_proxy).map_or(peer, Peer::Host)
}

/// An address, perhaps with a port, as some balancers write it.
fn parse_address(entry: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(entry).ok()?;
    let address = text.parse().ok().or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()))?;
    Some(IpAddr::to_canonical(&address))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acl::parse_net;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn client(peer: &str, forwarded_for: &[&str]) -> IpAddr {
        let trusted = CidrSet::new(&[parse_net("10.0.0.0/8").expect("a block")]);
        let mut request = Request::new();
        for value in forwarded_for {
            request.headers.push(HeaderId::XForwardedFor, value.as_bytes());
        }
        client_of(Peer::Host(ip(peer)), &trusted, &mut request).address()
    }

    #[test]
    fn a_stranger_is_who_he_is_whatever_he_says() {
        assert_eq!(client("192.0.2.1", &["198.51.100.1"]), ip("192.0.2.1"));
    }

    #[test]
    fn whom_a_proxy_does_not_name_is_not_believed() {
        let trusted = CidrSet::new(&[parse_net("10.0.0.0/8").expect("a block")]);
        let mut request = Request::new();
        request.headers.push(HeaderId::XForwardedFor, b"198.51.100.1");
        request.headers.push(HeaderId::XForwardedProto, b"https");
        let peer = Peer::Unnamed(ip("10.0.0.1"));
        assert_eq!(client_of(peer, &trusted, &mut request), peer);
        assert_eq!(request.scheme, Scheme::Http);
    }

    #[test]
    fn behind_trusted_proxies_the_last_stranger_is_the_client() {
        for (forwarded_for, expected) in [
            (&["198.51.100.1"][..], "198.51.100.1"),
            (&["203.0.113.9, 198.51.100.1"], "198.51.100.1"),
            (&["203.0.113.9", "198.51.100.1, 10.0.0.2"], "198.51.100.1"),
            (&["203.0.113.9, nonsense, 10.0.0.2"], "10.0.0.2"),
            (&["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
            (&["[2001:db8::1]:4711"], "2001:db8::1"),
            (&["198.51.100.1:80"], "198.51.100.1"),
            (&[""], "10.0.0.1"),
            (&[], "10.0.0.1"),
        ] {
            assert_eq!(client("10.0.0.1", forwarded_for), ip(expected), "{forwarded_for:?}");
        }
    }

    #[test]
    fn only_a_trusted_proxy_says_that_the_client_used_tls() {
        let trusted = CidrSet::new(&[parse_net("10.0.0.1").expect("a block")]);
        for (peer, proto, expected) in [
            ("10.0.0.1", "https", Scheme::Https),
            ("10.0.0.1", "HTTPS", Scheme::Https),
            ("10.0.0.1", "gopher", Scheme::Http),
            ("192.0.2.1", "https", Scheme::Http),
        ] {
            let mut request = Request::new();
            request.headers.push(HeaderId::XForwardedProto, proto.as_bytes());
            client_of(Peer::Host(ip(peer)), &trusted, &mut request);
            assert_eq!(request.scheme, expected, "{peer} {proto}");
        }
    }

    #[test]
    fn p1_fields_that_speak_for_a_proxy_are_removed_however_spelt() {
        let forged = [
            "X-Forwarded-For",
            "X-Forwarded-Host",
            "x-forwarded-proto",
            "X-Forwarded-Server",
            "X-Forwarded-Scheme",
            "X-Forwarded-Port",
            "X-Forwarded-Prefix",
            "Forwarded",
            "X-Host",
            "X-Original-URL",
            "X-Rewrite-URL",
            "X-HTTP-Method-Override",
            "X-HTTP-Method",
            "X-Method-Override",
            "Client-Cert",
            "Client-Cert-Chain",
            "Proxy",
            "PROXY",
            "X_Forwarded_Host",
            "x_original-url",
        ];
        let innocent =
            ["Accept", "X-Hosts", "X-Requested-With", "Proxies", "X", "Client", "X-Forward"];
        let mut headers = HeaderBlock::new();
        for name in forged.iter().chain(&innocent) {
            headers.push_named(name.as_bytes(), b"evil");
        }
        assert!(Seen::of(&headers).forged);
        remove_forged(&mut headers);
        assert_eq!(Seen::of(&headers), Seen::default());
        let left: Vec<_> = headers.iter().map(|f| f.name).collect();
        assert_eq!(left, innocent.map(str::as_bytes));
    }
}
