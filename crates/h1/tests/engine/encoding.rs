//! Encoding: the encoder's output, byte for byte and parsed again.

use base::Limits;
use h1::encode::{self, BodyFraming, ConnectionHeader};
use h1::{HeadLimits, ReadProgress, RequestReader, parse_stored_head};
use message::{Framing, HeaderBlock, HeaderId, Request, Response, Scheme, Status, Upgrade};

fn status(code: u16) -> Status {
    Status::new(code).expect("a status of three digits")
}

fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).expect("these tests write ASCII")
}

fn request(head: &str) -> Request {
    let mut request = Request::new();
    let limits = HeadLimits::from(&Limits::default());
    let read = RequestReader::new().read(head.as_bytes(), &limits, Scheme::Http, &mut request);
    assert_eq!(read, Ok(ReadProgress::Complete(head.len())));
    request
}

fn forwarded(head: &str) -> String {
    text(|out| encode::request_head(out, &request(head)))
}

#[test]
fn a_request_is_forwarded_without_what_was_meant_for_us() {
    let sent = forwarded(
        "POST http://Example.com:81/a HTTP/1.1\r\nhost: b\r\nConnection: x-hop, upgrade\r\n\
         Upgrade: h2c\r\nX-Hop: 1\r\nKeep-Alive: 1\r\nProxy-Connection: close\r\nTE: trailers\r\n\
         Trailer: A\r\nExpect: 100-continue\r\naccept: */*\r\nContent-Length: 005\r\n\r\n",
    );
    let expected =
        "POST /a HTTP/1.1\r\nHost: example.com:81\r\naccept: */*\r\nContent-Length: 5\r\n\r\n";
    assert_eq!(sent, expected);
}

#[test]
fn a_wish_to_upgrade_is_forwarded_only_when_it_is_granted() {
    let mut request = request(
        "GET /a HTTP/1.1\r\nHost: a\r\nConnection: x-hop, upgrade\r\nX-Hop: 1\r\n\
         Upgrade: h2c, websocket\r\n\r\n",
    );
    assert_eq!(request.upgrade, Upgrade::Asked);
    let sent = text(|out| encode::request_head(out, &request));
    assert_eq!(sent, "GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
    request.headers.set(HeaderId::Upgrade, b"websocket");
    request.upgrade = Upgrade::Granted;
    let sent = text(|out| encode::request_head(out, &request));
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    assert_eq!(sent, format!("GET /a HTTP/1.1\r\nHost: a\r\n{upgrade}"));
    assert_eq!(text(|out| encode::switching_tail(out, b"websocket")), upgrade);
}

#[test]
fn a_field_added_later_cannot_be_named_away() {
    let mut request = request(
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: X-Forwarded-For\r\n\
              X-Forwarded-For: spoofed\r\n\r\n",
    );
    request.headers.push(HeaderId::XForwardedFor, b"192.0.2.1");
    let sent = text(|out| encode::request_head(out, &request));
    assert_eq!(sent, "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n");
}

#[test]
fn request_framing_comes_from_the_framing_alone() {
    let chunked = forwarded("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n");
    assert_eq!(chunked, "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    let none = forwarded("POST / HTTP/1.0\r\n\r\n");
    assert_eq!(none, "POST / HTTP/1.1\r\nHost: \r\nContent-Length: 0\r\n\r\n");
    let mut changed = request("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n");
    changed.framing = Framing::None;
    assert_eq!(
        text(|out| encode::request_head(out, &changed)),
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    );
}

fn fields() -> HeaderBlock {
    let mut headers = HeaderBlock::new();
    headers.push_named(b"ETag", b"\"a\"");
    headers.push_named(b"content-length", b"5");
    headers.push_named(b"transfer-encoding", b"chunked");
    headers.push_named(b"Connection", b"close");
    headers.push_named(b"Keep-Alive", b"timeout=5");
    headers.push_named(b"Set-Cookie", b"a=b");
    headers.push_named(b"X-Empty", b"");
    headers
}

#[test]
fn a_stored_head_has_no_framing_and_no_end() {
    let head = text(|out| encode::stored_head(out, Status::OK, b"", &fields()));
    assert_eq!(head, "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nSet-Cookie: a=b\r\nX-Empty: \r\n");
    let head =
        text(|out| encode::stored_head(out, status(299), b"Good enough", &HeaderBlock::new()));
    assert_eq!(head, "HTTP/1.1 299 Good enough\r\n");
    let head = text(|out| encode::stored_head(out, status(799), b"", &HeaderBlock::new()));
    assert_eq!(head, "HTTP/1.1 799 \r\n");
    let head = text(|out| encode::head_without_reason(out, Status::OK, &HeaderBlock::new()));
    assert_eq!(head, "HTTP/1.1 200 \r\n");
}

#[test]
fn a_stored_head_is_taken_apart_again() {
    let mut head = Vec::new();
    encode::stored_head(&mut head, status(203), b"Sort of", &fields());
    let mut response = Response::new(Status::OK);
    response.headers.push(HeaderId::Age, b"left over");
    parse_stored_head(&head, &mut response).expect("what was written is well-formed");
    assert_eq!((response.status, &response.reason[..]), (status(203), &b"Sort of"[..]));
    let read: Vec<_> =
        response.headers.iter().map(|f| (f.name.to_vec(), f.value.to_vec())).collect();
    assert_eq!(
        read,
        [
            (b"ETag".to_vec(), b"\"a\"".to_vec()),
            (b"Set-Cookie".to_vec(), b"a=b".to_vec()),
            (b"X-Empty".to_vec(), Vec::new()),
        ]
    );
}

#[test]
fn a_damaged_head_is_an_error_and_leaves_no_fields() {
    let mut response = Response::new(Status::OK);
    for damaged in [
        &b""[..],
        b"HTTP/1.1 200 OK",
        b"HTTP/1.1 200 OK\r\nA",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\r\nC",
        b"HTTP/1.1 200 OK\r\nA: b\r\nC:\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\r\n\xff\r\n",
    ] {
        response.headers.push(HeaderId::Age, b"left over");
        let shown = damaged.escape_ascii();
        assert!(parse_stored_head(damaged, &mut response).is_err(), "{shown}");
        let left: Vec<_> = response.headers.iter().map(|field| field.name.to_vec()).collect();
        assert!(left.is_empty(), "{shown}: {left:?}");
    }
}

#[test]
fn tails_say_how_the_body_goes_out() {
    use BodyFraming::{Chunked, HeadOf, Length, None, UntilClose};
    use ConnectionHeader::{Close, KeepAliveDefault, KeepAliveExplicit};
    for (framing, connection, expected) in [
        (None, KeepAliveDefault, "\r\n"),
        (Length(0), KeepAliveDefault, "Content-Length: 0\r\n\r\n"),
        (
            Length(u64::MAX),
            Close,
            "Content-Length: 18446744073709551615\r\nConnection: close\r\n\r\n",
        ),
        (Length(5), KeepAliveExplicit, "Content-Length: 5\r\nConnection: keep-alive\r\n\r\n"),
        (Chunked, KeepAliveDefault, "Transfer-Encoding: chunked\r\n\r\n"),
        (UntilClose, KeepAliveDefault, "Connection: close\r\n\r\n"),
        (UntilClose, Close, "Connection: close\r\n\r\n"),
        (HeadOf(Some(7)), KeepAliveDefault, "Content-Length: 7\r\n\r\n"),
        (HeadOf(Option::None), KeepAliveDefault, "\r\n"),
    ] {
        let tail = text(|out| encode::response_tail(out, framing, connection));
        assert_eq!(tail, expected, "{framing:?} {connection:?}");
    }
}

#[test]
fn interim_responses_end_at_once() {
    let mut headers = HeaderBlock::new();
    headers.push(HeaderId::Link, b"</a>; rel=preload");
    let hints = text(|out| encode::interim(out, status(103), &headers));
    assert_eq!(hints, "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n");
    let proceed = text(|out| encode::interim(out, status(100), &HeaderBlock::new()));
    assert_eq!(proceed, "HTTP/1.1 100 Continue\r\n\r\n");
}

#[test]
fn chunk_sizes_are_hexadecimal() {
    for (len, expected) in [(1, "1\r\n"), (15, "f\r\n"), (16, "10\r\n"), (65536, "10000\r\n")] {
        assert_eq!(text(|out| encode::chunk_start(out, len)), expected);
    }
    assert_eq!(text(|out| encode::chunk_start(out, usize::MAX)), format!("{:x}\r\n", usize::MAX));
}
