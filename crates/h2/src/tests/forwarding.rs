//! Forwarding tests: requests accepted over HTTP/2 are sent over HTTP/1.1, where nothing in them
//! may become framing. They are compared by the HTTP/1 reader, which shares no scanning of lines
//! with this crate.

use h1::fuzz::forward;
use message::{HeaderId, Request, Scheme};
use proptest::prelude::*;

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

fn accepted(fields: &Fields, scheme: Scheme, ends: bool) -> Option<Request> {
    let fields = fields.iter().map(|(name, value)| (&name[..], &value[..]));
    crate::fuzz::request(fields, scheme, ends).ok()
}

/// Text that is mostly valid, and sometimes has a byte that may end a line.
fn spoilt(text: impl Strategy<Value = String>) -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![prop::sample::select(b"\r\n\0 \t:#\x7f\x80A_".to_vec()), any::<u8>()];
    let spot = prop::option::weighted(0.02, (byte, any::<prop::sample::Index>()));
    (text, spot).prop_map(|(text, spot)| {
        let mut text = text.into_bytes();
        if let Some((byte, at)) = spot {
            text.insert(at.index(text.len() + 1), byte);
        }
        text
    })
}

fn pseudo() -> impl Strategy<Value = Fields> {
    let methods = vec!["GET", "HEAD", "POST", "PUT", "OPTIONS", "CONNECT", "Odd!"];
    let method = spoilt(prop::sample::select(methods).prop_map(str::to_owned));
    let scheme = spoilt(
        prop::sample::select(&["https", "https", "https", "http"][..]).prop_map(str::to_owned),
    );
    let authority = spoilt("[a-zA-Z0-9_]{1,9}(\\.[a-z]{1,5}\\.?)?(:[0-9]{1,4})?|\\[::1\\]");
    let path = spoilt("/[!-\"$-&-~]{0,30}|/|\\*");
    let protocol = prop::option::weighted(
        0.05,
        spoilt(prop::sample::select(&["websocket", "x"][..]).prop_map(str::to_owned)),
    );
    (method, scheme, authority, path, protocol).prop_map(
        |(method, scheme, authority, path, protocol)| {
            let pair = |name: &str, value| (name.as_bytes().to_vec(), value);
            let mut fields = vec![
                pair(":method", method),
                pair(":scheme", scheme),
                pair(":authority", authority),
                pair(":path", path),
            ];
            fields.extend(protocol.map(|protocol| pair(":protocol", protocol)));
            fields
        },
    )
}

fn regular() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let special = prop::sample::select(vec![
        ("host", "a"),
        ("cookie", "a=1"),
        ("cookie", ""),
        ("content-length", "0"),
        ("content-length", "17"),
        ("content_length", "17"),
        ("transfer-encoding", "chunked"),
        ("connection", "x"),
        ("te", "trailers"),
        ("trailer", "x"),
        ("expect", "100-continue"),
        ("upgrade", "h2c"),
        ("accept", "*/*"),
        ("x", "a\r\n\r\nGET / HTTP/1.1\r\nHost: b"),
    ])
    .prop_map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()));
    let name = spoilt("[a-z!#-'*+.^`|~0-9-]{1,12}");
    let value = spoilt("([!-~][\t -~\u{80}-\u{fff}]{0,20}[!-~])?");
    prop_oneof![1 => special, 9 => (name, value)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn what_is_accepted_reads_the_same_in_http1(
        pseudo in pseudo(),
        regular in prop::collection::vec(regular(), 0..8),
        tls: bool,
        ends: bool,
    ) {
        let fields = [pseudo, regular].concat();
        let scheme = if tls { Scheme::Https } else { Scheme::Http };
        if let Some(request) = accepted(&fields, scheme, ends) {
            forward(&request);
        }
    }

    #[test]
    fn no_block_breaks_it(block in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Some(request) = crate::fuzz::block(&block) {
            forward(&request);
        }
    }
}

/// The strategies above do not produce rejected requests only.
#[test]
fn ordinary_requests_are_accepted_and_go_on() {
    let pair = |(name, value): (&str, &str)| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
    let fields: Fields = [
        (":method", "POST"),
        (":authority", "a.example"),
        (":scheme", "https"),
        (":path", "/a?b"),
        ("cookie", "a=1"),
        ("expect", "100-continue"),
        ("cookie", "b=2"),
        ("x-a", "é"),
    ]
    .map(pair)
    .to_vec();
    for ends in [false, true] {
        let request = accepted(&fields, Scheme::Https, ends).expect("an ordinary request");
        forward(&request);
        let cookie = request.headers.value(HeaderId::Cookie);
        assert_eq!(cookie, Some(&b"a=1; b=2"[..]));
    }
}
