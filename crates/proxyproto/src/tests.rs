//! Tests of headers, accepted and rejected, for every split.

use std::net::{IpAddr, SocketAddr};

use proptest::prelude::*;

use super::*;
use crate::header::canonical;

const MAX: usize = 4096;

fn at(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn proxied(source: &str, destination: &str) -> Header {
    Header::Proxied { source: at(source), destination: at(destination) }
}

/// A version 2 header of a connection with `family`, and `body` behind the fixed part.
fn v2(kind: u8, family: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len()).expect("a short body").to_be_bytes();
    [&v2::SIGNATURE[..], &[kind, family], &length, body].concat()
}

const TCP4_BLOCK: [u8; 12] = [192, 0, 2, 1, 198, 51, 100, 2, 0x12, 0x67, 0, 80];

/// A header with a checksum, changed by `spoil`.
fn with_crc(spoil: u32) -> Vec<u8> {
    let mut header =
        v2(0x21, 0x11, &[&TCP4_BLOCK[..], &[3, 0, 4, 0, 0, 0, 0, 5, 0, 1, 9]].concat());
    let sum = crc::crc32c(&[&header]) ^ spoil;
    header[31..35].copy_from_slice(&sum.to_be_bytes());
    header
}

#[test]
fn lines_of_version_1_are_read() {
    let long = "PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff \
                ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n";
    assert_eq!(long.len(), 107);
    for (line, header) in [
        (
            "PROXY TCP4 192.0.2.1 198.51.100.2 4711 80\r\n",
            proxied("192.0.2.1:4711", "198.51.100.2:80"),
        ),
        (
            "PROXY TCP6 2001:db8::1 2001:db8::2 0 443\r\n",
            proxied("[2001:db8::1]:0", "[2001:db8::2]:443"),
        ),
        (
            "PROXY TCP6 ::ffff:192.0.2.1 ::ffff:c633:6402 1 2\r\n",
            proxied("192.0.2.1:1", "198.51.100.2:2"),
        ),
        ("PROXY UNKNOWN\r\n", Header::Unnamed),
        ("PROXY UNKNOWN whatever this is\r\n", Header::Unnamed),
        (long, Header::Unnamed),
    ] {
        let expected = Ok(HeaderProgress::Complete(header, line.len()));
        assert_eq!(read(line.as_bytes(), MAX), expected, "{line}");
        let followed = format!("{line}GET / HTTP/1.1\r\n");
        assert_eq!(read(followed.as_bytes(), MAX), expected, "{line}");
    }
}

/// An additional value.
fn value(kind: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).expect("a short value").to_be_bytes();
    [&[kind][..], &length, bytes].concat()
}

#[test]
fn what_a_header_tells_of_tls_is_read() {
    let parts = [(0x21, "TLSv1.3"), (0x22, "ann"), (0x23, "a suite"), (0x24, "sig"), (0x25, "key")];
    let parts = parts.map(|(kind, text)| value(kind, text.as_bytes())).concat();
    let tls = [&[7, 0, 0, 0, 9][..], &parts].concat();
    let all = [value(4, b"padding"), value(1, b"h2"), value(2, b"a.test"), value(0x20, &tls)];
    let expected = TlsValues {
        alpn: Some(b"h2"),
        authority: Some(b"a.test"),
        is_tls: true,
        has_cert_connection: true,
        has_cert_session: true,
        verify_result: 9,
        version: Some(b"TLSv1.3"),
        client_cert_cn: Some(b"ann"),
        cipher: Some(b"a suite"),
        cert_sign: Some(b"sig"),
        cert_key: Some(b"key"),
    };
    for (family, block) in [(0x11, 12), (0x21, 36), (0x31, 216), (0x00, 0)] {
        let header = v2(0x21, family, &[vec![0; block], all.concat()].concat());
        assert_eq!(secured(&header), Some(expected), "{family:x}");
        // The balancer's own connection has no client.
        assert_eq!(secured(&v2(0x20, family, &header[16..])), None);
    }
    // Without TLS but with other values; truncated values; none at all.
    let after = |values: &[u8]| v2(0x21, 0x11, &[&TCP4_BLOCK[..], values].concat());
    let named = TlsValues { authority: Some(b"b.test"), ..TlsValues::default() };
    assert_eq!(secured(&after(&value(2, b"b.test"))), Some(named));
    assert_eq!(secured(&after(&value(0x20, &[1, 0, 0]))), None);
    assert_eq!(secured(&after(&value(5, b"id"))), None);
    assert_eq!(secured(&after(&[])), None);
    assert_eq!(secured(b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n"), None);
}

#[test]
fn lines_that_are_not_well_formed_are_refused() {
    for line in [
        "PROXY TCP4 192.0.2.1 198.51.100.2 4711 80\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 4711 80\rX",
        "PROXY TCP4  192.0.2.1 198.51.100.2 4711 80\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 4711 80 \r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 4711\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 4711 65536\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 4711 +80\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 4711 080\r\n",
        "PROXY TCP4 192.0.2.01 198.51.100.2 4711 80\r\n",
        "PROXY TCP4 192.0.2 198.51.100.2 4711 80\r\n",
        "PROXY TCP4 2001:db8::1 2001:db8::2 4711 80\r\n",
        "PROXY TCP6 192.0.2.1 198.51.100.2 4711 80\r\n",
        "PROXY TCP6 fe80::1%eth0 2001:db8::2 4711 80\r\n",
        "PROXY UDP4 192.0.2.1 198.51.100.2 4711 80\r\n",
        "PROXY UNKNOWN\n",
        "PROXY UNKNOWN \r\r\n",
        "PROXY \r\n",
    ] {
        assert_eq!(read(line.as_bytes(), MAX), Err(Error::Line), "{line:?}");
    }
    assert_eq!(read(&[b"PROXY UNKNOWN ", &[b'x'; 93][..]].concat(), MAX), Err(Error::Line));
}

#[test]
fn what_is_no_header_is_refused_at_its_first_byte() {
    for bytes in [&b"G"[..], b"POST / HTTP/1.1\r\n", b"PROXX", b"\r\nGET", b"\x16\x03\x01", b"\0"] {
        assert_eq!(read(bytes, MAX), Err(Error::Signature), "{bytes:?}");
    }
    assert_eq!(read(b"", MAX), Ok(HeaderProgress::Partial));
}

#[test]
fn headers_of_version_2_are_read() {
    let six: [u8; 36] = std::array::from_fn(|at| if at < 32 { 0x20 } else { 1 });
    let mapped = [&[0; 10][..], &[255; 2], &TCP4_BLOCK[..4], &six[16..]].concat();
    let values = [&TCP4_BLOCK[..], &[4, 0, 0, 0xe0, 0, 2, 1, 2]].concat();
    let local = proxied("192.0.2.1:4711", "198.51.100.2:80");
    for (header, expected) in [
        (v2(0x21, 0x11, &TCP4_BLOCK), local),
        (v2(0x21, 0x11, &values), local),
        (with_crc(0), local),
        (
            v2(0x21, 0x21, &six),
            proxied(
                "[2020:2020:2020:2020:2020:2020:2020:2020]:257",
                "[2020:2020:2020:2020:2020:2020:2020:2020]:257",
            ),
        ),
        (
            v2(0x21, 0x21, &mapped),
            proxied("192.0.2.1:257", "[2020:2020:2020:2020:2020:2020:2020:2020]:257"),
        ),
        (v2(0x21, 0x31, &[b'/'; 216]), Header::Unnamed),
        (v2(0x21, 0x00, b"ignored"), Header::Unnamed),
        (v2(0x20, 0x00, b""), Header::Local),
        (v2(0x20, 0x11, &TCP4_BLOCK), Header::Local),
        (v2(0x20, 0xff, b"ignored"), Header::Local),
    ] {
        let complete = Ok(HeaderProgress::Complete(expected, header.len()));
        assert_eq!(read(&header, MAX), complete, "{header:?}");
        assert_eq!(read(&[&header[..], b"\x16\x03"].concat(), MAX), complete, "{header:?}");
    }
}

#[test]
fn headers_whose_parts_do_not_fit_are_refused() {
    let values = |values: &[u8]| v2(0x21, 0x11, &[&TCP4_BLOCK[..], values].concat());
    let twice = {
        let mut header = values(&[3, 0, 4, 0, 0, 0, 0, 3, 0, 4, 0, 0, 0, 0]);
        let sum = crc::crc32c(&[&header]);
        header[31..35].copy_from_slice(&sum.to_be_bytes());
        header
    };
    for (header, error) in [
        (v2(0x11, 0x11, &TCP4_BLOCK), Error::Kind),
        (v2(0x22, 0x11, &TCP4_BLOCK), Error::Kind),
        (v2(0x21, 0x12, &TCP4_BLOCK), Error::Kind),
        (v2(0x21, 0x10, &TCP4_BLOCK), Error::Kind),
        (v2(0x21, 0x41, &TCP4_BLOCK), Error::Kind),
        (v2(0x21, 0x11, &TCP4_BLOCK[..11]), Error::Length),
        (v2(0x21, 0x21, &[0; 35]), Error::Length),
        (v2(0x21, 0x31, &[0; 215]), Error::Length),
        (values(&[4]), Error::Length),
        (values(&[4, 0, 1]), Error::Length),
        (values(&[4, 0, 2, 0]), Error::Length),
        (values(&[3, 0, 3, 0, 0, 0]), Error::Length),
        (with_crc(1), Error::Checksum),
        (twice, Error::Checksum),
        (v2(0x21, 0x11, &[0; MAX - 15]), Error::TooLong),
    ] {
        assert_eq!(read(&header, MAX), Err(error), "{header:?}");
    }
    // The length alone is enough to reject it, without waiting for the rest.
    assert_eq!(read(&v2(0x21, 0x11, &[0; MAX])[..16], MAX), Err(Error::TooLong));
    let whole = v2(0x21, 0x00, &[0; MAX - 16]);
    assert_eq!(read(&whole, MAX), Ok(HeaderProgress::Complete(Header::Unnamed, MAX)));
}

#[test]
fn what_is_written_for_two_families_is_ipv6() {
    let (v4, v6) = (at("192.0.2.1:1"), at("[2001:db8::1]:2"));
    let mut line = Vec::new();
    write_v1(&mut line, v4, v6);
    assert_eq!(line, b"PROXY TCP6 ::ffff:c000:201 2001:db8::1 1 2\r\n");
    let mut local = Vec::new();
    write_local(&mut local);
    assert_eq!(read(&local, MAX), Ok(HeaderProgress::Complete(Header::Local, 16)));
}

fn address() -> impl Strategy<Value = SocketAddr> {
    let ip = prop_oneof![
        any::<[u8; 4]>().prop_map(IpAddr::from),
        any::<[u8; 16]>().prop_map(IpAddr::from),
        any::<[u8; 4]>().prop_map(|v4| std::net::Ipv4Addr::from(v4).to_ipv6_mapped().into()),
    ];
    (ip, any::<u16>()).prop_map(|(ip, port)| SocketAddr::new(ip, port))
}

proptest! {
    #[test]
    fn what_is_written_is_read_again_and_partial_until_whole(
        source in address(),
        destination in address(),
        version in 1..=2,
        rest in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let mut bytes = Vec::new();
        match version {
            1 => write_v1(&mut bytes, source, destination),
            _ => write_v2(&mut bytes, source, destination),
        }
        let length = bytes.len();
        prop_assert!(version == 2 || length <= 107);
        bytes.extend_from_slice(&rest);
        for cut in 0..length {
            prop_assert_eq!(read(&bytes[..cut], MAX), Ok(HeaderProgress::Partial), "{}", cut);
        }
        let header = Header::Proxied {
            source: canonical(source),
            destination: canonical(destination),
        };
        for cut in length..=bytes.len() {
            prop_assert_eq!(read(&bytes[..cut], MAX), Ok(HeaderProgress::Complete(header, length)));
        }
    }

    #[test]
    fn any_bytes_come_to_the_same_however_they_are_cut(
        begin in prop_oneof![
            Just(b"PROXY TCP4 ".to_vec()),
            Just(b"PROXY UNKNOWN".to_vec()),
            Just([&v2::SIGNATURE[..], &[0x21, 0x11, 0]].concat()),
            Just([&v2::SIGNATURE[..], &[0x21]].concat()),
            Just(Vec::new()),
        ],
        rest in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let bytes = [begin, rest].concat();
        let mut cuts = (0..=bytes.len()).map(|cut| read(&bytes[..cut], 200));
        let first = cuts.find(|read| *read != Ok(HeaderProgress::Partial));
        prop_assert!(cuts.all(|read| Some(read) == first));
        if let Some(Ok(HeaderProgress::Complete(_, length))) = first {
            prop_assert!(length <= bytes.len().min(200));
        }
    }
}
