//! Forwarding fields: the client of a request as trusted proxies report it, and the fields for the
//! origin.
//!
//! Fields are read from their end: the last address that is not a trusted proxy's is the client.
//! The client may have sent everything before it, which must never be trusted or forwarded.

use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};

use message::forwarded::{Element, elements};
use message::{HeaderBlock, HeaderId, Request, Scheme};
use smallvec::SmallVec;

use crate::acl::CidrSet;
use crate::headers::FieldName;
use crate::peer::ConnectionPeer;

/// The field in which trusted proxies name their clients. Only one is trusted: a proxy writes the
/// one it knows, and forwards the others as clients sent them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ClientField {
    /// X-Forwarded-For, and X-Forwarded-Proto for the scheme.
    #[default]
    XForwardedFor,
    /// Forwarded (RFC 7239), including the scheme.
    Forwarded,
    /// A field with one address (nginx's `real_ip_header`), and X-Forwarded-Proto for the scheme.
    Named(FieldName),
}

impl ClientField {
    /// The field of this name.
    pub fn of(name: FieldName) -> Self {
        match HeaderId::of(name.as_bytes()) {
            HeaderId::XForwardedFor => Self::XForwardedFor,
            HeaderId::Forwarded => Self::Forwarded,
            _ => Self::Named(name),
        }
    }

    /// The field's name, if it is a custom field.
    pub fn named(&self) -> Option<&FieldName> {
        match self {
            Self::Named(name) => Some(name),
            _ => None,
        }
    }
}

/// Addresses, outermost first, joined by commas as they are forwarded. Long enough for most
/// requests without allocation.
type Chain = SmallVec<[u8; 256]>;

/// The result of parsing a forwarding field.
#[derive(Default)]
struct Entries {
    /// The last address that is not a trusted proxy's.
    stranger: Option<IpAddr>,
    /// The first trusted proxy behind it.
    outermost_proxy: Option<IpAddr>,
    /// The client's entry hides its address.
    hidden: bool,
    /// The number of entries behind the client's, one per proxy.
    behind: usize,
    chain: Chain,
    scheme: Option<Scheme>,
}

impl Entries {
    /// Adds the next entry.
    fn add(&mut self, address: Option<IpAddr>, trusted: &CidrSet) {
        let Some(address) = address else {
            // Entries before a hidden one come from an unknown proxy.
            *self = Self { hidden: true, scheme: self.scheme, ..Self::default() };
            return;
        };
        let is_first = self.chain.is_empty() && !self.hidden;
        if trusted.contains(address) {
            self.behind += usize::from(!is_first);
            self.outermost_proxy = self.outermost_proxy.or(Some(address));
        } else {
            self.stranger = Some(address);
            (self.hidden, self.behind) = (false, 0);
            self.chain.clear();
        }
        append(&mut self.chain, address);
    }

    /// Adds the next element of Forwarded; `None` for a malformed one.
    fn add_element(&mut self, element: Option<Element<'_>>, trusted: &CidrSet) {
        let client = element.and_then(|element| element.client);
        let is_proxy = client.is_some_and(|client| trusted.contains(client));
        let is_first = self.chain.is_empty() && !self.hidden;
        if !is_proxy || is_first {
            self.scheme = element.and_then(|element| scheme_of(element.proto?));
        }
        self.add(client, trusted);
    }

    /// The client's scheme, as reported by proxies that write `field`.
    fn scheme_by(
        &self,
        field: &ClientField,
        headers: &HeaderBlock,
        trusted: &CidrSet,
    ) -> Option<Scheme> {
        let behind = match field {
            ClientField::Forwarded => return self.scheme,
            ClientField::XForwardedFor => self.behind,
            ClientField::Named(_) => listed(headers, trusted).behind,
        };
        // Each proxy adds its client's scheme beside its client's address, so the two have equal
        // positions from the end. If there are fewer schemes, some proxy has forwarded the one it
        // received.
        let schemes: SmallVec<[&[u8]; 4]> =
            entries_of(headers, HeaderId::XForwardedProto).collect();
        let last = schemes.len().checked_sub(1)?;
        scheme_of(schemes[last.saturating_sub(behind)])
    }

    fn client(&self, peer: ConnectionPeer) -> ConnectionPeer {
        let proxy = self.outermost_proxy;
        match self.stranger {
            Some(address) => ConnectionPeer::Host(address),
            None if self.hidden => ConnectionPeer::Unnamed(proxy.or_else(|| peer.address())),
            None => proxy.map_or(peer, ConnectionPeer::Host),
        }
    }
}

fn append(chain: &mut Chain, address: IpAddr) {
    let comma = if chain.is_empty() { "" } else { ", " };
    write!(chain, "{comma}{address}").expect("a vector takes whatever is written to it");
}

/// The client on whose behalf `peer` sends the request. If `peer` is trusted and names one,
/// `request` gets the client's scheme, and the X-Forwarded-For for the origin; otherwise all
/// forwarding fields are removed.
#[inline(always)]
pub(crate) fn client_of(
    peer: ConnectionPeer,
    trusted: &CidrSet,
    field: &ClientField,
    request: &mut Request,
) -> ConnectionPeer {
    match trusted.is_empty() || !trusted.has(peer) {
        true => peer,
        false => client_behind(peer, trusted, field, request),
    }
}

/// The client, if `peer` is trusted.
#[inline(never)]
fn client_behind(
    peer: ConnectionPeer,
    trusted: &CidrSet,
    field: &ClientField,
    request: &mut Request,
) -> ConnectionPeer {
    let mut entries = entries_in(&request.headers, field, trusted);
    if let Some(scheme) = entries.scheme_by(field, &request.headers, trusted)
        && scheme != request.scheme
    {
        request.scheme = scheme;
        request.port = request.port.filter(|port| *port != scheme.default_port());
    }
    let client = entries.client(peer);
    request.headers.remove(HeaderId::XForwardedFor);
    if client != peer {
        if let Some(address) = peer.address() {
            append(&mut entries.chain, address);
        }
        if !entries.chain.is_empty() {
            request.headers.push(HeaderId::XForwardedFor, &entries.chain);
        }
    }
    client
}

/// The client that [`client_of`] returns, without changing the request.
pub(crate) fn client_named(
    peer: ConnectionPeer,
    trusted: &CidrSet,
    field: &ClientField,
    headers: &HeaderBlock,
) -> ConnectionPeer {
    if trusted.is_empty() || !trusted.has(peer) {
        return peer;
    }
    entries_in(headers, field, trusted).client(peer)
}

/// The scheme that [`client_of`] finds, without changing the request.
pub(crate) fn scheme_named(
    peer: ConnectionPeer,
    trusted: &CidrSet,
    field: &ClientField,
    request: &Request,
) -> Scheme {
    if trusted.is_empty() || !trusted.has(peer) {
        return request.scheme;
    }
    let entries = entries_in(&request.headers, field, trusted);
    entries.scheme_by(field, &request.headers, trusted).unwrap_or(request.scheme)
}

/// The entries of the field that proxies write.
fn entries_in(headers: &HeaderBlock, field: &ClientField, trusted: &CidrSet) -> Entries {
    match field {
        ClientField::XForwardedFor => listed(headers, trusted),
        ClientField::Forwarded => forwarded(headers, trusted),
        ClientField::Named(name) => named(headers, name, trusted),
    }
}

fn scheme_of(text: &[u8]) -> Option<Scheme> {
    [Scheme::Http, Scheme::Https]
        .into_iter()
        .find(|scheme| text.eq_ignore_ascii_case(scheme.as_str().as_bytes()))
}

/// The texts between the commas of a field. Quotes are ignored: a client's unpaired quote would
/// hide entries of proxies.
fn entries_of(headers: &HeaderBlock, id: HeaderId) -> impl Iterator<Item = &[u8]> {
    let entries = headers.values(id).flat_map(|value| value.split(|b| *b == b','));
    entries.map(<[u8]>::trim_ascii).filter(|entry| !entry.is_empty())
}

/// Parses X-Forwarded-For.
fn listed(headers: &HeaderBlock, trusted: &CidrSet) -> Entries {
    let mut entries = Entries::default();
    for entry in entries_of(headers, HeaderId::XForwardedFor) {
        entries.add(parse_address(entry), trusted);
    }
    entries
}

/// Parses Forwarded. The scheme is that of the request to the outermost trusted proxy.
fn forwarded(headers: &HeaderBlock, trusted: &CidrSet) -> Entries {
    let mut entries = Entries::default();
    for line in headers.values(HeaderId::Forwarded) {
        if elements(line).all(|element| element.is_ok()) {
            elements(line).for_each(|element| entries.add_element(element.ok(), trusted));
            continue;
        }
        // A client may have sent an unpaired quote before valid entries of a proxy.
        for part in line.split(|b| *b == b',') {
            elements(part).for_each(|element| entries.add_element(element.ok(), trusted));
        }
    }
    entries
}

/// Parses a field with one address. Of several lines, the last is the proxy's.
fn named(headers: &HeaderBlock, name: &FieldName, trusted: &CidrSet) -> Entries {
    let mut entries = Entries::default();
    if let Some(value) = name.values(headers).last() {
        entries.add(parse_address(value.trim_ascii()), trusted);
    }
    entries
}

/// An address with an optional port, as some balancers write it.
fn parse_address(entry: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(entry).ok()?;
    let address = text.parse().ok().or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()))?;
    Some(IpAddr::to_canonical(&address))
}

/// Fields of [`tell`] that identify the client, and are in no key.
const PERSONAL: [&[u8]; 3] = [b"x-forwarded-for", b"x-real-ip", b"forwarded"];

/// Returns true if a response declares that it depends on the client's address. The address is
/// added after the store, so the store could not select a variant by it.
pub(crate) fn is_varied_by(response: &HeaderBlock, field: &ClientField) -> bool {
    if !response.contains(HeaderId::Vary) {
        return false;
    }
    let own = field.named().map(FieldName::as_bytes);
    entries_of(response, HeaderId::Vary)
        .any(|name| PERSONAL.iter().copied().chain(own).any(|told| name.eq_ignore_ascii_case(told)))
}

/// Adds the fields for the origin to `request`: X-Forwarded-For, -Proto, -Host and -Port,
/// X-Real-IP, the field of the proxies in front, and optionally Forwarded (RFC 7239).
pub(crate) fn tell(
    request: &mut Request,
    client: Option<ConnectionPeer>,
    field: &ClientField,
    rfc: bool,
) {
    let mut value = Vec::with_capacity(request.host.len() + 32);
    let text = |value: &mut Vec<u8>, what: &dyn std::fmt::Display| {
        value.clear();
        write!(value, "{what}").expect("a vector takes whatever is written to it");
    };
    let (scheme, port) = (request.scheme, request.port);
    let headers = &mut request.headers;
    if let Some(address) = client.and_then(ConnectionPeer::address) {
        text(&mut value, &address);
        if !headers.contains(HeaderId::XForwardedFor) {
            headers.push(HeaderId::XForwardedFor, &value);
        }
        headers.set_named(b"X-Real-IP", &value);
        if let Some(name) = field.named() {
            headers.set_named(name.as_bytes(), &value);
        }
    }
    headers.set(HeaderId::XForwardedProto, scheme.as_str().as_bytes());
    text(&mut value, &port.unwrap_or_else(|| scheme.default_port()));
    headers.set_named(b"X-Forwarded-Port", &value);
    value.clear();
    if !request.host.is_empty() {
        value.extend_from_slice(&request.host);
        if let Some(port) = port {
            write!(value, ":{port}").expect("a vector takes whatever is written to it");
        }
        headers.set(HeaderId::XForwardedHost, &value);
    }
    if rfc {
        let line = forwarded_line(headers, scheme, &value);
        headers.set(HeaderId::Forwarded, &line);
    }
}

/// Forwarded, made from X-Forwarded-For.
fn forwarded_line(headers: &HeaderBlock, scheme: Scheme, host: &[u8]) -> Vec<u8> {
    let mut line = Vec::new();
    let mut nodes = entries_of(headers, HeaderId::XForwardedFor);
    node(&mut line, nodes.next().unwrap_or(b"unknown"));
    if !host.is_empty() {
        // Quoted, since it may have a colon or brackets; it has no quotes itself.
        line.extend_from_slice(b";host=\"");
        line.extend_from_slice(host);
        line.push(b'"');
    }
    line.extend_from_slice(b";proto=");
    line.extend_from_slice(scheme.as_str().as_bytes());
    for next in nodes {
        line.extend_from_slice(b", ");
        node(&mut line, next);
    }
    line
}

fn node(line: &mut Vec<u8>, address: &[u8]) {
    line.extend_from_slice(b"for=");
    if address.contains(&b':') {
        line.extend_from_slice(b"\"[");
        line.extend_from_slice(address);
        line.extend_from_slice(b"]\"");
    } else {
        line.extend_from_slice(address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acl::parse_net;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn trusted() -> CidrSet {
        CidrSet::new(&["10.0.0.0/8", "fd00::/8"].map(|net| parse_net(net).expect("a block")))
    }

    fn field(name: &str) -> ClientField {
        ClientField::of(FieldName::parse(name).expect("a name"))
    }

    /// The client, its scheme, and the X-Forwarded-For for the origin.
    fn asked(
        peer: ConnectionPeer,
        name: &str,
        fields: &[(&str, &str)],
    ) -> (ConnectionPeer, Scheme, String) {
        let mut request = Request::new();
        for (name, value) in fields {
            request.headers.push_named(name.as_bytes(), value.as_bytes());
        }
        let scheme = scheme_named(peer, &trusted(), &field(name), &request);
        let client = client_of(peer, &trusted(), &field(name), &mut request);
        assert_eq!(scheme, request.scheme);
        let told = request.headers.value(HeaderId::XForwardedFor).unwrap_or_default();
        (client, request.scheme, String::from_utf8_lossy(told).into_owned())
    }

    fn listed(peer: &str, values: &[&str]) -> (ConnectionPeer, String) {
        let fields: Vec<_> = values.iter().map(|value| ("X-Forwarded-For", *value)).collect();
        let (client, _, told) = asked(ConnectionPeer::Host(ip(peer)), "x-forwarded-for", &fields);
        (client, told)
    }

    #[test]
    fn a_stranger_is_who_he_is_whatever_he_says() {
        let said = [
            ("X-Forwarded-For", "198.51.100.1"),
            ("X-Forwarded-Proto", "https"),
            ("Forwarded", "for=198.51.100.1;proto=https"),
            ("X-Real-IP", "198.51.100.1"),
        ];
        for name in ["X-Forwarded-For", "Forwarded", "X-Real-IP"] {
            for peer in [
                ConnectionPeer::Host(ip("192.0.2.1")),
                ConnectionPeer::Unnamed(Some(ip("10.0.0.1"))),
            ] {
                let (client, scheme, _) = asked(peer, name, &said);
                assert_eq!((client, scheme), (peer, Scheme::Http), "{name}");
            }
        }
    }

    #[test]
    fn behind_trusted_proxies_the_last_stranger_is_the_client() {
        let host = |text| ConnectionPeer::Host(ip(text));
        for (values, client, told) in [
            (&["198.51.100.1"][..], host("198.51.100.1"), "198.51.100.1, 10.0.0.1"),
            (&["203.0.113.9, 198.51.100.1"], host("198.51.100.1"), "198.51.100.1, 10.0.0.1"),
            (
                &["203.0.113.9", "198.51.100.1, 10.0.0.2"],
                host("198.51.100.1"),
                "198.51.100.1, 10.0.0.2, 10.0.0.1",
            ),
            (&["10.0.0.3, 10.0.0.2"], host("10.0.0.3"), "10.0.0.3, 10.0.0.2, 10.0.0.1"),
            (&["fd00::1,10.0.0.2"], host("fd00::1"), "fd00::1, 10.0.0.2, 10.0.0.1"),
            (&["[2001:db8::1]:4711"], host("2001:db8::1"), "2001:db8::1, 10.0.0.1"),
            (&["198.51.100.1:80"], host("198.51.100.1"), "198.51.100.1, 10.0.0.1"),
            (&["::ffff:198.51.100.1"], host("198.51.100.1"), "198.51.100.1, 10.0.0.1"),
            (&["\"", "198.51.100.1"], host("198.51.100.1"), "198.51.100.1, 10.0.0.1"),
            (&["\", 198.51.100.1"], host("198.51.100.1"), "198.51.100.1, 10.0.0.1"),
            (&["198.51.100.1, ,"], host("198.51.100.1"), "198.51.100.1, 10.0.0.1"),
            (&[""], host("10.0.0.1"), ""),
            (&[], host("10.0.0.1"), ""),
        ] {
            assert_eq!(listed("10.0.0.1", values), (client, told.to_owned()), "{values:?}");
        }
    }

    #[test]
    fn whom_a_trusted_proxy_does_not_name_is_nobody() {
        let nobody = |text| ConnectionPeer::Unnamed(Some(ip(text)));
        for (values, client, told) in [
            (&["unknown"][..], nobody("10.0.0.1"), "10.0.0.1"),
            (&["203.0.113.9, _hidden, 10.0.0.2"], nobody("10.0.0.2"), "10.0.0.2, 10.0.0.1"),
            (&["203.0.113.9", "198.51.100.1 198.51.100.2"], nobody("10.0.0.1"), "10.0.0.1"),
        ] {
            assert_eq!(listed("10.0.0.1", values), (client, told.to_owned()), "{values:?}");
        }
    }

    #[test]
    fn forwarded_is_read_from_its_end_with_the_clients_scheme() {
        let host = |text| ConnectionPeer::Host(ip(text));
        let nobody = |text| ConnectionPeer::Unnamed(Some(ip(text)));
        for (lines, client, scheme) in [
            (&["for=198.51.100.1;proto=https"][..], host("198.51.100.1"), Scheme::Https),
            (
                &["for=203.0.113.9;proto=http, for=198.51.100.1;proto=https", "for=10.0.0.2"],
                host("198.51.100.1"),
                Scheme::Https,
            ),
            (&["for=10.0.0.3;proto=https, for=10.0.0.2"], host("10.0.0.3"), Scheme::Https),
            (&["for=\"[2001:db8::1]:1\";proto=HTTPS"], host("2001:db8::1"), Scheme::Https),
            (&["for=198.51.100.1"], host("198.51.100.1"), Scheme::Http),
            (&["for=203.0.113.9, for=unknown;proto=https"], nobody("10.0.0.1"), Scheme::Https),
            (&["for=203.0.113.9, for=_x, for=10.0.0.2"], nobody("10.0.0.2"), Scheme::Http),
            (&["for=203.0.113.9;proto"], nobody("10.0.0.1"), Scheme::Http),
            (
                &["for=\"203.0.113.9, for=198.51.100.1;proto=https, for=10.0.0.2"],
                host("198.51.100.1"),
                Scheme::Https,
            ),
        ] {
            let mut fields: Vec<_> = lines.iter().map(|line| ("Forwarded", *line)).collect();
            // Fields that proxies forward unchanged are ignored.
            fields.extend([("X-Forwarded-For", "192.0.2.66"), ("X-Forwarded-Proto", "https")]);
            let (found, found_scheme, _) = asked(host("10.0.0.1"), "Forwarded", &fields);
            assert_eq!((found, found_scheme), (client, scheme), "{lines:?}");
        }
    }

    #[test]
    fn a_field_of_ones_own_has_one_address() {
        let peer = ConnectionPeer::Host(ip("10.0.0.1"));
        let one = |value| asked(peer, "X-Real-IP", &[("x-real-ip", value)]).0;
        assert_eq!(one("198.51.100.1"), ConnectionPeer::Host(ip("198.51.100.1")));
        assert_eq!(
            one("198.51.100.1, 198.51.100.2"),
            ConnectionPeer::Unnamed(Some(ip("10.0.0.1")))
        );
        let both = [("X-Real-IP", "203.0.113.9"), ("X-Real-IP", "198.51.100.1")];
        let (client, _, told) = asked(peer, "X-Real-IP", &both);
        assert_eq!(client, ConnectionPeer::Host(ip("198.51.100.1")));
        assert_eq!(told, "198.51.100.1, 10.0.0.1");
        let (client, ..) = asked(peer, "X-Real-IP", &[("X-Forwarded-For", "198.51.100.1")]);
        assert_eq!(client, peer);
    }

    #[test]
    fn the_last_word_on_the_scheme_counts_and_its_port_is_no_longer_said() {
        for (values, expected) in [
            (&["https"][..], Scheme::Https),
            (&["HTTPS"], Scheme::Https),
            (&["http, https"], Scheme::Https),
            (&["https", "http"], Scheme::Http),
            (&["gopher"], Scheme::Http),
            (&["https, gopher"], Scheme::Http),
        ] {
            let fields: Vec<_> = values.iter().map(|value| ("X-Forwarded-Proto", *value)).collect();
            let (_, scheme, _) =
                asked(ConnectionPeer::Host(ip("10.0.0.1")), "X-Forwarded-For", &fields);
            assert_eq!(scheme, expected, "{values:?}");
        }
        let mut request = Request::new();
        request.port = Some(443);
        request.headers.push(HeaderId::XForwardedProto, b"https");
        let peer = ConnectionPeer::Host(ip("10.0.0.1"));
        client_of(peer, &trusted(), &ClientField::default(), &mut request);
        assert_eq!(request.port, None);
    }

    #[test]
    fn the_scheme_is_the_one_that_the_client_asked_with_in_either_field() {
        for (listed, schemes, rfc, expected) in [
            // A CDN, and a balancer behind it that gets plain HTTP.
            (
                "198.51.100.1, 10.0.0.2",
                "https, http",
                "for=198.51.100.1;proto=https, for=10.0.0.2;proto=http",
                Scheme::Https,
            ),
            (
                "203.0.113.9, 198.51.100.1, 10.0.0.2",
                "https, http, https",
                "for=203.0.113.9;proto=https, for=198.51.100.1;proto=http, \
                 for=10.0.0.2;proto=https",
                Scheme::Http,
            ),
            (
                "10.0.0.3, 10.0.0.2",
                "https, http",
                "for=10.0.0.3;proto=https, for=10.0.0.2;proto=http",
                Scheme::Https,
            ),
            (
                "unknown, 10.0.0.2",
                "https, http",
                "for=unknown;proto=https, for=10.0.0.2;proto=http",
                Scheme::Https,
            ),
            // Only the CDN reports it.
            (
                "198.51.100.1, 10.0.0.2",
                "https",
                "for=198.51.100.1;proto=https, for=10.0.0.2",
                Scheme::Https,
            ),
            // The client sends it, too.
            ("198.51.100.1", "https, http", "for=198.51.100.1;proto=http", Scheme::Http),
        ] {
            let fields = [
                ("X-Forwarded-For", listed),
                ("X-Forwarded-Proto", schemes),
                ("CF-Connecting-IP", "198.51.100.1"),
                ("Forwarded", rfc),
            ];
            for name in ["X-Forwarded-For", "Forwarded", "CF-Connecting-IP"] {
                let (_, scheme, _) = asked(ConnectionPeer::Host(ip("10.0.0.1")), name, &fields);
                assert_eq!(scheme, expected, "{name}: {listed} {schemes}");
            }
        }
    }

    #[test]
    fn origins_are_told_in_every_custom() {
        let mut request = Request::new();
        request.host = b"[2001:db8::5]".to_vec();
        request.port = Some(8443);
        request.scheme = Scheme::Https;
        request.headers.push(HeaderId::XForwardedFor, b"2001:db8::1, 10.0.0.1");
        let client = Some(ConnectionPeer::Host(ip("2001:db8::1")));
        tell(&mut request, client, &field("CF-Connecting-IP"), true);
        let fields: Vec<String> = request
            .headers
            .iter()
            .map(|f| {
                let text = String::from_utf8_lossy;
                format!("{}: {}", text(f.name), text(f.value))
            })
            .collect();
        assert_eq!(
            fields,
            [
                "X-Forwarded-For: 2001:db8::1, 10.0.0.1",
                "X-Real-IP: 2001:db8::1",
                "CF-Connecting-IP: 2001:db8::1",
                "X-Forwarded-Proto: https",
                "X-Forwarded-Port: 8443",
                "X-Forwarded-Host: [2001:db8::5]:8443",
                "Forwarded: for=\"[2001:db8::1]\";host=\"[2001:db8::5]:8443\";proto=https, \
                 for=10.0.0.1",
            ]
        );
    }

    #[test]
    fn what_varies_by_the_client_is_known() {
        for (vary, expected) in [
            ("Accept, x-forwarded-FOR", true),
            ("Forwarded", true),
            ("X-Real-Ip", true),
            ("True-Client-IP", true),
            ("X-Forwarded-Proto, Accept", false),
        ] {
            let mut response = HeaderBlock::new();
            response.push(HeaderId::Vary, vary.as_bytes());
            assert_eq!(is_varied_by(&response, &field("true-client-ip")), expected, "{vary}");
        }
    }
}
