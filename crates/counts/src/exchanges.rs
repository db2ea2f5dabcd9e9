//! Exchanges of the HTTP/2 engine: a request read and a stored response's head written, with both
//! in the connection's tables.

use std::hint::black_box;

use base::{HashSeed, Limits};
use h2::{Connection, EncodedFields, Event, Settings};
use message::{HeaderId, Request, Scheme};

use crate::samples::BROWSER_REQUEST;

const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

fn headers(stream: u32, block: &[u8], out: &mut Vec<u8>) {
    let [_, a, b, c] = (block.len() as u32).to_be_bytes();
    out.extend_from_slice(&[a, b, c, 1, 5]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(block);
}

/// A browser's fields, as HTTP/2 spells them.
fn fields() -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut fields = vec![(b":authority".to_vec(), b"shop.example.com".to_vec())];
    fields.push((b":path".to_vec(), b"/products/kettles?page=2".to_vec()));
    for line in BROWSER_REQUEST.split(|byte| *byte == b'\n').skip(1) {
        let Some((name, value)) = line.strip_suffix(b"\r").and_then(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            Some((line[..colon].to_ascii_lowercase(), line[colon + 2..].to_vec()))
        }) else {
            continue;
        };
        let own = [&b"host"[..], b"connection", b"keep-alive", b"upgrade-insecure-requests"];
        if !own.contains(&&name[..]) {
            fields.push((name, value));
        }
    }
    fields
}

fn string(text: &[u8], out: &mut Vec<u8>) {
    match text.len() {
        short @ 0..127 => out.push(short as u8),
        long => {
            assert!(long < 127 + 128, "a field of two length bytes");
            out.extend_from_slice(&[127, (long - 127) as u8]);
        }
    }
    out.extend_from_slice(text);
}

/// Two field blocks of one request: literals with indexing, and then indexes only.
fn blocks() -> (Vec<u8>, Vec<u8>) {
    let (mut first, mut later) = (vec![0x82, 0x87], vec![0x82, 0x87]);
    let fields = fields();
    for (at, (name, value)) in fields.iter().enumerate() {
        first.push(0x40);
        string(name, &mut first);
        string(value, &mut first);
        later.push(0x80 | (62 + fields.len() - 1 - at) as u8);
    }
    (first, later)
}

/// A request of indexed fields and its response with a stored head.
pub(crate) fn exchange(rounds: u32) {
    let seed = HashSeed::from_u64(1);
    let stored = EncodedFields::new(
        &seed,
        [
            (HeaderId::ContentType, &b"content-type"[..], &b"text/html; charset=utf-8"[..]),
            (HeaderId::CacheControl, b"cache-control", b"public, max-age=600"),
            (HeaderId::Etag, b"etag", b"\"5f3e-61a8\""),
            (HeaderId::LastModified, b"last-modified", b"Sat, 21 Nov 2026 08:00:00 GMT"),
            (HeaderId::Date, b"date", b"Sun, 22 Nov 2026 08:00:00 GMT"),
            (HeaderId::Server, b"server", b"Apache"),
        ]
        .into_iter(),
    );
    let (mut out, mut request) = (Vec::with_capacity(4096), Request::new());
    let settings = Settings::from(&Limits::default());
    let mut engine = Connection::new(settings, Scheme::Https, seed, 0, &mut out);
    let (first, later) = blocks();
    let mut sent = [Connection::PREFACE, &SETTINGS[..]].concat();
    for round in 0..=rounds {
        headers(round * 2 + 1, if round == 0 { &first } else { &later }, &mut sent);
        let mut input = black_box(&sent[..]);
        let read = engine.next(&mut input, &mut request, &mut out, 0);
        let Ok(Some(Event::Request { stream, ends: true })) = read else {
            panic!("a request");
        };
        out.clear();
        engine.begin_head(200, &mut out);
        engine.block(&stored, &mut out);
        engine.field(HeaderId::Via, b"Via", b"1.1 larder", &mut out);
        engine.field(HeaderId::Age, b"Age", b"17", &mut out);
        engine.field(HeaderId::CacheStatus, b"Cache-Status", b"larder; hit; ttl=583", &mut out);
        engine.field(HeaderId::ContentLength, b"Content-Length", b"1024", &mut out);
        assert!(engine.take(stream, 1024));
        engine.end_head(stream, false, &mut out);
        engine.data_head(stream, 1024, true, &mut out);
        engine.sent_all(stream, &mut out);
        // The client opens its flow-control window again.
        sent.clear();
        sent.extend_from_slice(&[0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 4, 0]);
        black_box(&mut out);
    }
}
