//! Heads read and written by the HTTP/1 engine.

use std::hint::black_box;

use h1::{ReadProgress, RequestReader, ResponseReader};
use message::{Method, Request, Response, Scheme, Status};

use crate::samples::{self, BROWSER_REQUEST, PLAIN_REQUEST, RESPONSE};

/// Parses a head of four fields.
pub(crate) fn parse(rounds: u32) {
    requests(PLAIN_REQUEST, rounds);
}

/// Parses a head of fourteen fields.
pub(crate) fn parse_browser(rounds: u32) {
    requests(BROWSER_REQUEST, rounds);
}

fn requests(wire: &[u8], rounds: u32) {
    let limits = samples::head_limits();
    let mut reader = RequestReader::new();
    let mut request = Request::new();
    for _ in 0..rounds {
        reader.reset();
        request.clear();
        let read = reader.read(black_box(wire), &limits, Scheme::Http, &mut request);
        assert_eq!(read, Ok(ReadProgress::Complete(wire.len())));
        black_box(&mut request);
    }
}

/// Parses an origin's head of eight fields.
pub(crate) fn response(rounds: u32) {
    let limits = samples::head_limits();
    let mut reader = ResponseReader::new();
    let mut response = Response::new(Status::OK);
    for _ in 0..rounds {
        let read = reader.read(black_box(RESPONSE), &limits, &Method::Get, &mut response);
        assert!(matches!(read, Ok(ReadProgress::Complete(_))));
        black_box(&mut response);
    }
}

/// Writes such a head as it is stored.
pub(crate) fn serialise(rounds: u32) {
    let response = samples::response();
    let mut out = Vec::with_capacity(1024);
    for _ in 0..rounds {
        out.clear();
        let Response { status, reason, headers, .. } = black_box(&response);
        h1::encode::stored_head(&mut out, *status, reason, headers);
        black_box(&mut out);
    }
}
