//! Properties that hold for every input.

use base::Limits;
use h1::{BodyReader, HeadLimits, ReadProgress, RequestReader, encode};
use message::{Framing, Method, Request, Scheme};
use proptest::prelude::*;
use testkit::framing_cases::cases;

use crate::support::{Cuts, describe, read_requests, read_responses};

fn reread(head: &[u8]) -> Request {
    let mut request = Request::new();
    let limits = HeadLimits::from(&Limits::default());
    let read = RequestReader::new().read(head, &limits, Scheme::Http, &mut request);
    assert_eq!(read, Ok(ReadProgress::Complete(head.len())), "{}", head.escape_ascii());
    request
}

/// A well-formed request head of any shape that the grammar permits.
fn heads() -> impl Strategy<Value = String> {
    let method =
        prop::sample::select(vec!["GET", "HEAD", "POST", "PUT", "DELETE", "PURGE", "Odd!"]);
    let target = "(http://[a-zA-Z0-9.-]{0,9}[a-zA-Z0-9](:[1-9][0-9]{0,3})?)?(/[!-\"$-$&-~]{0,40})";
    let host = "[a-zA-Z0-9]([a-z.]{0,9}[a-z])?(:[1-9][0-9]{0,3})?";
    let framing = prop::sample::select(vec![
        "",
        "Content-Length: 0\r\n",
        "content-length: 17\r\n",
        "Transfer-Encoding:\tChunked\r\n",
        "Content-Length: 5\r\nExpect: 100-continue\r\n",
    ]);
    let connection = prop::sample::select(vec![
        "",
        "Connection: close\r\n",
        "Connection: X-A, keep-alive\r\nX-A: 1\r\n",
        "Connection: upgrade\r\nUpgrade: websocket\r\n",
    ]);
    let fields = prop::collection::vec(
        ("[XYZ][!#-'*+.^_`|~a-z0-9-]{0,12}", "[!-~][\t -~\u{80}-\u{fff}]{0,30}"),
        0..6,
    );
    (method, target, host, framing, connection, fields)
        .prop_map(|(method, target, host, framing, connection, fields)| {
            let mut head = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{connection}");
            for (name, value) in fields {
                head.push_str(&format!("{name}:{value}\t \r\n"));
            }
            head + framing + "\r\n"
        })
        .prop_filter("an empty label", |head| !head.contains("..") && !head.contains("//."))
}

/// Bytes similar to HTTP: significant pieces, cut and joined at random.
fn near_http() -> impl Strategy<Value = Vec<u8>> {
    let corpus: Vec<Vec<u8>> =
        cases().into_iter().filter(|case| case.bytes.len() < 600).map(|case| case.bytes).collect();
    let cut =
        (prop::sample::select(corpus), any::<prop::sample::Index>(), any::<u8>(), any::<bool>());
    prop::collection::vec(cut, 1..4).prop_map(|parts| {
        let mut bytes = Vec::new();
        for (mut part, at, byte, replace) in parts {
            let at = at.index(part.len());
            if replace {
                part[at] = byte;
            } else {
                part.truncate(at);
            }
            bytes.extend_from_slice(&part);
        }
        bytes
    })
}

fn cuts(len: usize) -> impl Strategy<Value = Vec<usize>> {
    prop::collection::btree_set(0..=len, 0..12).prop_map(|set| set.into_iter().collect())
}

fn with_cuts(
    bytes: impl Strategy<Value = Vec<u8>>,
) -> impl Strategy<Value = (Vec<u8>, Vec<usize>)> {
    bytes.prop_flat_map(|bytes| {
        let cuts = cuts(bytes.len());
        (Just(bytes), cuts)
    })
}

const STATUS_LINES: &[&str] = &["HTTP/1.1 200 OK\r\n", "HTTP/1.0 404\r\n", "HTTP/1.1 103 \r\n", ""];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_forwarded_reads_as_the_same_request(head in heads()) {
        let received = reread(head.as_bytes());
        let mut sent = Vec::new();
        encode::request_head(&mut sent, &received);
        let again = reread(&sent);
        prop_assert_eq!(&again.method, &received.method);
        prop_assert_eq!(&again.target, &received.target);
        prop_assert_eq!((&again.host, again.port), (&received.host, received.port));
        let awaits_body = matches!(received.method, Method::Post | Method::Put | Method::Patch);
        match received.framing {
            Framing::None if awaits_body => prop_assert_eq!(again.framing, Framing::Length(0)),
            framing => prop_assert_eq!(again.framing, framing),
        }
        let others = |request: &Request| -> Vec<(Vec<u8>, Vec<u8>)> {
            let fields = request.headers.iter();
            fields
                .filter(|f| f.name.starts_with(b"X") || f.name.starts_with(b"Y"))
                .map(|f| (f.name.to_vec(), f.value.to_vec()))
                .collect()
        };
        prop_assert_eq!(others(&again), others(&received));
        let mut third = Vec::new();
        encode::request_head(&mut third, &again);
        prop_assert_eq!(sent, third);
    }

    #[test]
    fn requests_read_the_same_however_they_are_cut((bytes, cuts) in with_cuts(near_http())) {
        let whole = read_requests(&bytes, Cuts::None);
        prop_assert_eq!(&read_requests(&bytes, Cuts::At(&cuts)), &whole);
        prop_assert_eq!(&read_requests(&bytes, Cuts::EveryByte), &whole);
    }

    #[test]
    fn responses_read_the_same_however_they_are_cut(
        (rest, cuts) in with_cuts(near_http()),
        line in prop::sample::select(STATUS_LINES),
    ) {
        // The fields and bodies of the requests are also valid in responses.
        let fields_at = rest.iter().position(|b| *b == b'\n').map_or(0, |at| at + 1);
        let bytes = [line.as_bytes(), &rest[fields_at..]].concat();
        let whole = read_responses(&bytes, Cuts::None, &Method::Get);
        prop_assert_eq!(&read_responses(&bytes, Cuts::At(&cuts), &Method::Get), &whole);
        prop_assert_eq!(&read_responses(&bytes, Cuts::EveryByte, &Method::Get), &whole);
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let requests = read_requests(&bytes, Cuts::None);
        prop_assert_eq!(&read_requests(&bytes, Cuts::EveryByte), &requests);
        let responses = read_responses(&bytes, Cuts::None, &Method::Get);
        prop_assert_eq!(&read_responses(&bytes, Cuts::EveryByte, &Method::Get), &responses);
        let mut body = BodyReader::new(Framing::Chunked, 100);
        let mut at = 0;
        while at < bytes.len() {
            let Ok(step) = body.read(&bytes[at..]) else { break };
            prop_assert!(step.data.start <= step.data.end && step.data.end <= step.consumed);
            if step.done || step.consumed == 0 {
                break;
            }
            at += step.consumed;
        }
    }

    #[test]
    fn what_is_written_in_chunks_is_read_back(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..80), 0..6),
        every in 1usize..9,
    ) {
        let mut sent = Vec::new();
        for piece in &pieces {
            encode::chunk_start(&mut sent, piece.len());
            sent.extend_from_slice(piece);
            sent.extend_from_slice(encode::CHUNK_END);
        }
        sent.extend_from_slice(encode::LAST_CHUNK);
        let (mut body, mut read) = (BodyReader::new(Framing::Chunked, 0), Vec::new());
        for part in sent.chunks(every) {
            let mut at = 0;
            while at < part.len() {
                let step = body.read(&part[at..]).expect("what was written is well-formed");
                read.extend_from_slice(&part[at..][step.data]);
                at += step.consumed;
            }
        }
        prop_assert!(body.is_done());
        prop_assert_eq!(body.remaining(), Some(0));
        prop_assert_eq!(read, pieces.concat());
    }
}

#[test]
fn a_reused_request_reads_as_a_new_one() {
    let limits = HeadLimits::from(&Limits::default());
    let mut reader = RequestReader::new();
    let mut reused = Request::new();
    for case in cases() {
        reused.clear();
        reader.reset();
        let mut fresh = Request::new();
        let expected = RequestReader::new().read(&case.bytes, &limits, Scheme::Http, &mut fresh);
        let read = reader.read(&case.bytes, &limits, Scheme::Http, &mut reused);
        assert_eq!(read, expected, "{}", case.name);
        assert_eq!(describe(&reused), describe(&fresh), "{}", case.name);
    }
}
