//! Requests: the canonical form of accepted ones, and the rejection of invalid ones.

use base::{Limit, Limits};
use h1::{FieldError, HeadLimits, ReadProgress, RequestError, RequestReader};
use message::{Framing, HeaderId, Method, Request, Scheme, Upgrade, Version};

fn limits() -> HeadLimits {
    HeadLimits::from(&Limits::default())
}

fn read_with(bytes: &[u8], limits: &HeadLimits, scheme: Scheme) -> Result<Request, RequestError> {
    let mut request = Request::new();
    match RequestReader::new().read(bytes, limits, scheme, &mut request)? {
        ReadProgress::Complete(len) => assert_eq!(len, bytes.len(), "bytes left over"),
        ReadProgress::Partial => panic!("the head has not ended"),
    }
    Ok(request)
}

fn read(text: &str) -> Request {
    read_with(text.as_bytes(), &limits(), Scheme::Http).expect("a well-formed head")
}

fn get(fields: &str) -> Request {
    read(&format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"))
}

#[test]
fn the_fields_of_a_plain_request_are_set() {
    let request = read("POST /a?b HTTP/1.1\r\nHOST: Example.COM:8080\r\nContent-Length: 5\r\n\r\n");
    assert_eq!(request.method, Method::Post);
    assert_eq!(request.version, Version::Http11);
    assert_eq!((&request.host[..], request.port), (&b"example.com"[..], Some(8080)));
    assert_eq!(request.target, b"/a?b");
    assert_eq!(request.framing, Framing::Length(5));
    assert_eq!(request.headers.len(), 2);
    assert_eq!(request.headers.value(HeaderId::Host), Some(&b"Example.COM:8080"[..]));
    assert!(request.keep_alive && !request.expect_continue && request.upgrade == Upgrade::None);
}

#[test]
fn an_absolute_target_overrules_host_everywhere() {
    let request = read("GET HTTP://Real.example:81/a HTTP/1.1\r\nHost: other.example\r\n\r\n");
    assert_eq!((&request.host[..], request.port), (&b"real.example"[..], Some(81)));
    assert_eq!(request.target, b"/a");
    let hosts: Vec<&[u8]> = request.headers.values(HeaderId::Host).collect();
    assert_eq!(hosts, [b"real.example:81"]);
}

#[test]
fn every_target_form_becomes_origin_form() {
    for (line, target) in [
        ("GET / HTTP/1.1", "/"),
        ("GET /a?b HTTP/1.1", "/a?b"),
        ("GET http://a HTTP/1.1", "/"),
        ("GET http://a/ HTTP/1.1", "/"),
        ("GET http://a?b HTTP/1.1", "/?b"),
        ("GET http://a/?b/c HTTP/1.1", "/?b/c"),
        ("GET http://a:80/b//c HTTP/1.1", "/b//c"),
        ("OPTIONS * HTTP/1.1", "*"),
        ("OPTIONS http://a HTTP/1.1", "*"),
        ("OPTIONS http://a/ HTTP/1.1", "/"),
        ("OPTIONS http://a?b HTTP/1.1", "/?b"),
    ] {
        let request = read(&format!("{line}\r\nHost: a\r\n\r\n"));
        assert_eq!(request.target, target.as_bytes(), "{line}");
        assert_eq!(request.port, None);
    }
}

#[test]
fn the_scheme_of_an_absolute_target_is_the_listeners() {
    let of = |scheme: &str, listener| {
        let text = format!("GET {scheme}://a/ HTTP/1.1\r\nHost: a\r\n\r\n");
        read_with(text.as_bytes(), &limits(), listener).map(|request| request.scheme)
    };
    assert_eq!(of("http", Scheme::Http), Ok(Scheme::Http));
    assert_eq!(of("https", Scheme::Https), Ok(Scheme::Https));
    assert_eq!(of("https", Scheme::Http), Err(RequestError::Target));
    assert_eq!(of("http", Scheme::Https), Err(RequestError::Target));
}

#[test]
fn connections_persist_by_version_and_option() {
    for (version, fields, keep_alive) in [
        ("1.1", "", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.1", "Connection: keep-alive, Close\r\n", false),
        ("1.1", "Connection: keep-alive\r\nConnection: close\r\n", false),
        ("1.1", "Proxy-Connection: close\r\n", true),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\r\n", true),
        ("1.0", "Connection: keep-alive, close\r\n", false),
    ] {
        let request = read(&format!("GET / HTTP/{version}\r\nHost: a\r\n{fields}\r\n"));
        assert_eq!(request.keep_alive, keep_alive, "HTTP/{version} {fields}");
    }
}

#[test]
fn an_upgrade_takes_both_fields_and_the_newer_version() {
    assert_eq!(get("Connection: a, UPGRADE\r\nUpgrade: websocket\r\n").upgrade, Upgrade::Asked);
    assert_eq!(get("Upgrade: websocket\r\n").upgrade, Upgrade::None);
    assert_eq!(get("Connection: upgrade\r\n").upgrade, Upgrade::None);
    let old = read("GET / HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
    assert_eq!(old.upgrade, Upgrade::None);
}

#[test]
fn a_100_is_awaited_only_with_a_body_in_the_newer_version() {
    let expects = |version: &str, fields: &str| {
        let head =
            format!("POST / HTTP/{version}\r\nHost: a\r\nExpect: 100-Continue\r\n{fields}\r\n");
        read(&head).expect_continue
    };
    assert!(expects("1.1", "Content-Length: 5\r\n"));
    assert!(expects("1.1", "Transfer-Encoding: chunked\r\n"));
    assert!(!expects("1.1", "Content-Length: 0\r\n"));
    assert!(!expects("1.1", ""));
    assert!(!expects("1.0", "Content-Length: 5\r\n"));
}

#[test]
fn fields_named_by_connection_are_gone() {
    let request = get("Connection: x-a, Cookie\r\nX-A: 1\r\nx-A: 2\r\nX-B: 3\r\nCookie: c=d\r\n");
    assert_eq!(request.headers.value_named(b"x-a"), None);
    assert_eq!(request.headers.value(HeaderId::Cookie), None);
    assert_eq!(request.headers.value_named(b"x-b"), Some(&b"3"[..]));
    // An option is not the name of a field.
    let request = get("Connection: close\r\nClose: no\r\n");
    assert!(request.headers.value_named(b"close").is_some());
}

#[test]
fn a_wrong_byte_is_refused_before_the_head_ends() {
    for (bytes, error) in [
        (&b"GET /\x01"[..], RequestError::TargetByte),
        (b"GET / HTTP/1.1 ", RequestError::RequestLine),
        (b"GET / HTTP/1.1\n", RequestError::Field(FieldError::BareLf)),
        (b"GET / HTTP/1.1\rH", RequestError::Field(FieldError::BareCr)),
        (b"GET / HTTP/2.0\r\n", RequestError::Version),
        (b"GET / HTTP/1.1\r\n ", RequestError::Field(FieldError::LeadingSpace)),
        (b"GET / HTTP/1.1\r\n:", RequestError::Field(FieldError::EmptyName)),
        (b"GET / HTTP/1.1\r\nHost ", RequestError::Field(FieldError::SpaceBeforeColon)),
        (b"GET / HTTP/1.1\r\nHo(", RequestError::Field(FieldError::Name)),
        (b"GET / HTTP/1.1\r\nHost: a\0", RequestError::Field(FieldError::Control)),
        (b"GET / HTTP/1.1\r\nHost: a\n", RequestError::Field(FieldError::BareLf)),
        (b"GET / HTTP/1.1\r\nHost: a\rb", RequestError::Field(FieldError::BareCr)),
        (b"GET / HTTP/1.1\r\nHost: a\r\n ", RequestError::Field(FieldError::ObsFold)),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n", RequestError::DuplicateHost),
        (b"GET / HTTP/1.1\r\nHost: a b\r\n", RequestError::Authority),
    ] {
        let refused = read_with(bytes, &limits(), Scheme::Http).map(|_| ());
        assert_eq!(refused, Err(error), "{}", bytes.escape_ascii());
    }
}

#[test]
fn each_limit_has_its_status() {
    let tight = HeadLimits {
        head_bytes: 50,
        field_bytes: 20,
        field_count: 2,
        target_bytes: 5,
        raw_utf8: true,
        tag_bytes: 0,
    };
    let status = |text: &str| {
        let refused = read_with(text.as_bytes(), &tight, Scheme::Http);
        refused.map_or_else(|e| (e.status().code(), e.limit()), |_| (200, None))
    };
    assert_eq!(status("GET /aaaa HTTP/1.1\r\nHost: a\r\n\r\n"), (200, None));
    assert_eq!(status("GET /aaaaa"), (414, Some(Limit::TargetBytes)));
    assert_eq!(
        status("GET / HTTP/1.1\r\nA: bcdefghijklmnopqrs"),
        (431, Some(Limit::HeaderFieldBytes))
    );
    assert_eq!(status("GET / HTTP/1.1\r\nA: b\r\nA: b\r\nA"), (431, Some(Limit::HeaderCount)));
    let long = "GET / HTTP/1.1\r\nA: 0123456789abcde\r\nB: 0123456789abcdef\r\n";
    assert_eq!(status(long), (431, Some(Limit::HeaderBytes)));
}

#[test]
fn statuses_fit_their_errors() {
    for (text, code) in [
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n", 417),
        ("GET / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n", 501),
        ("GET / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n", 400),
        ("CONNECT a:1 HTTP/1.1\r\n", 501),
        ("PRI * HTTP/2.0\r\n", 505),
    ] {
        let refused = read_with(text.as_bytes(), &limits(), Scheme::Http).expect_err(text);
        assert_eq!(refused.status().code(), code, "{text}");
        assert!(!refused.to_string().is_empty());
    }
}

#[test]
fn a_reader_tells_whether_a_head_has_begun() {
    let (limits, mut request) = (limits(), Request::new());
    let mut reader = RequestReader::new();
    let head = b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut feed = |reader: &mut RequestReader, len: usize| {
        reader.read(&head[..len], &limits, Scheme::Http, &mut request)
    };
    for len in 0..=2 {
        assert_eq!(feed(&mut reader, len), Ok(ReadProgress::Partial));
        assert!(!reader.started(), "{len}");
    }
    assert_eq!(feed(&mut reader, 3), Ok(ReadProgress::Partial));
    assert!(reader.started());
    assert_eq!(feed(&mut reader, head.len()), Ok(ReadProgress::Complete(head.len())));
    assert!(!reader.started());
}

#[test]
fn a_refused_head_can_be_logged() {
    let mut request = Request::new();
    let mut reader = RequestReader::new();
    let head = b"GET /a HTTP/1.1\r\nHost: a\r\nUser-Agent: x\r\n y";
    reader.read(head, &limits(), Scheme::Http, &mut request).expect_err("a folded line is refused");
    assert_eq!((&request.method, &request.target[..]), (&Method::Get, &b"/a"[..]));
    assert!(request.headers.is_empty());
    reader.reset();
    request.clear();
    let next = b"GET /b HTTP/1.1\r\nHost: b\r\n\r\n";
    let read = reader.read(next, &limits(), Scheme::Http, &mut request);
    assert_eq!(read, Ok(ReadProgress::Complete(next.len())));
    assert_eq!(request.headers.len(), 1);
}
