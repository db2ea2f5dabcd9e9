//! Requests that the reference reader accepts, and those that it rejects.

use super::*;

fn fault(bytes: &[u8]) -> MessageFault {
    read_requests(bytes).expect_err("a violation").fault
}

fn with(fields: &str, body: &str) -> Vec<u8> {
    format!("POST /a HTTP/1.1\r\nHost: h\r\n{fields}\r\n{body}").into_bytes()
}

#[test]
fn pipelined_requests_are_separated() {
    let mut bytes = with("Content-Length: 3\r\n", "abc");
    bytes.extend(with("Transfer-Encoding: chunked\r\n", "3\r\nxyz\r\n0\r\nX-T: 1\r\n\r\n"));
    bytes.extend(b"GET /b?q HTTP/1.0\r\n\r\n");
    let requests = read_requests(&bytes).expect("three requests");
    let targets: Vec<&str> = requests.iter().map(|r| r.target.as_str()).collect();
    assert_eq!(targets, ["/a", "/a", "/b?q"]);
    assert_eq!(requests[0].body, b"abc");
    assert_eq!(requests[1].body, b"xyz");
    assert_eq!(requests[1].trailers, [("X-T".to_owned(), b"1".to_vec())]);
    assert!(requests[2].old);
}

#[test]
fn a_request_behind_a_short_length_is_found() {
    let bytes = with("Content-Length: 0\r\n", "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n");
    let requests = read_requests(&bytes).expect("two requests");
    assert_eq!(requests[1].target, "/smuggled");
}

#[test]
fn framing_doubts_are_violations() {
    let chunked = "Transfer-Encoding: chunked\r\n";
    let cases: &[(Vec<u8>, MessageFault)] = &[
        (
            with("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", ""),
            MessageFault::BothLengths,
        ),
        (with("Content-Length: 3\r\nContent-Length: 3\r\n", "abc"), MessageFault::ContentLength),
        (with("Content-Length: 3, 3\r\n", "abc"), MessageFault::ContentLength),
        (with("Content-Length: +3\r\n", "abc"), MessageFault::ContentLength),
        (with("Content-Length: \r\n", ""), MessageFault::ContentLength),
        (with("Content-Length: 99999999999999999999999\r\n", ""), MessageFault::ContentLength),
        (with("Transfer-Encoding: gzip, chunked\r\n", ""), MessageFault::TransferEncoding),
        (
            with("Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n", ""),
            MessageFault::TransferEncoding,
        ),
        (with(chunked, "3;a=b\r\nabc\r\n0\r\n\r\n"), MessageFault::ChunkExtension),
        (with(chunked, "0x3\r\nabc\r\n0\r\n\r\n"), MessageFault::ChunkSize),
        (with(chunked, "fffffffffffffffff\r\n"), MessageFault::ChunkSize),
        (with(chunked, "\r\n"), MessageFault::ChunkSize),
        (with(chunked, "3\r\nabcd\r\n"), MessageFault::ChunkEnd),
        (with(chunked, "3\nabc\r\n"), MessageFault::BareLf),
        (with(chunked, "0\r\nContent-Length: 1\r\n\r\n"), MessageFault::Trailer),
        (with("X: a\r\n b\r\n", ""), MessageFault::ObsFold),
        (with("X : a\r\n", ""), MessageFault::FieldName),
        (with("X\r\n", ""), MessageFault::NoColon),
        (with("X: a\rb\r\n", ""), MessageFault::BareCr),
        (with("X: a\nb: c\r\n", ""), MessageFault::BareLf),
        (with("X: a\0\r\n", ""), MessageFault::Control),
        (with("Host: h\r\n", ""), MessageFault::Host),
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), MessageFault::Host),
        (b"GET  / HTTP/1.1\r\nHost: h\r\n\r\n".to_vec(), MessageFault::StartLine),
        (b"GET / HTTP/2.0\r\nHost: h\r\n\r\n".to_vec(), MessageFault::StartLine),
        (b"GET a HTTP/1.1\r\nHost: h\r\n\r\n".to_vec(), MessageFault::Target),
        (b"GET * HTTP/1.1\r\nHost: h\r\n\r\n".to_vec(), MessageFault::Target),
        (b"\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n".to_vec(), MessageFault::StartLine),
        (
            b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec(),
            MessageFault::TransferEncoding,
        ),
    ];
    for (bytes, expected) in cases {
        assert_eq!(fault(bytes), *expected, "{}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn every_proper_prefix_is_incomplete_and_nothing_else() {
    let whole = with("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n");
    for end in 0..whole.len() {
        assert_eq!(read_first(&whole[..end]), Ok(None), "{end} bytes");
    }
    let (request, length) = read_first(&whole).expect("no fault").expect("whole");
    assert_eq!((request.body.as_slice(), length), (&b"abc"[..], whole.len()));
}

#[test]
fn a_violation_keeps_the_requests_before_it() {
    let bytes = b"GET /1 HTTP/1.1\r\nHost: h\r\n\r\nnonsense\r\n\r\n";
    let violation = read_requests(bytes).expect_err("nonsense");
    assert_eq!(violation.before.len(), 1);
    assert!(violation.offset >= 28);
}
