//! Tags: fields with surrogate keys may be longer than others.

use base::{Limit, Limits};
use h1::{HeadLimits, ReadProgress, ResponseError, ResponseReader};
use message::{Method, Response, Status};

fn read(limits: &HeadLimits, bytes: &[u8], step: usize) -> Result<Response, ResponseError> {
    let mut response = Response::new(Status::OK);
    let mut reader = ResponseReader::new();
    let mut end = 0;
    loop {
        end = (end + step).min(bytes.len());
        match reader.read(&bytes[..end], limits, &Method::Get, &mut response)? {
            ReadProgress::Complete(_) => return Ok(response),
            ReadProgress::Partial => assert!(end < bytes.len(), "the head is not whole"),
        }
    }
}

#[test]
fn surrogate_keys_have_a_limit_of_their_own() {
    let limits = HeadLimits {
        head_bytes: 200,
        field_bytes: 60,
        tag_bytes: 500,
        ..HeadLimits::from(&Limits::default())
    };
    let line = |name: &str, bytes: usize| format!("{name}: {}\r\n", "y".repeat(bytes));
    let field = |name| line(name, 45);
    for (fields, error) in [
        (line("xkey", 450) + &field("X-A") + &field("X-B"), None),
        (line("Cache-Tags", 200) + &line("xkey", 200) + &field("X-A") + &field("X-B"), None),
        (line("xkey", 550), Some(Limit::HeaderFieldBytes)),
        (line("xkex", 100), Some(Limit::HeaderFieldBytes)),
        (line("xkey", 300) + &line("xkey", 300) + &line("xkey", 300), Some(Limit::HeaderBytes)),
        (
            line("xkey", 100) + &field("X-A") + &field("X-B") + &field("X-C") + &field("X-D"),
            Some(Limit::HeaderBytes),
        ),
    ] {
        let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        for step in [1, 7, 1000] {
            let read = read(&limits, head.as_bytes(), step).err();
            assert_eq!(read, error.map(ResponseError::from), "{head} by {step}");
        }
    }
}

#[test]
fn requests_have_one_limit_for_all_fields() {
    let limits = HeadLimits::from(&Limits::default());
    assert_eq!(limits.tag_bytes, 0);
    assert!(HeadLimits::of_origins(&Limits::default()).tag_bytes >= 1 << 20);
    let head = format!("HTTP/1.1 200 OK\r\nxkey: {}\r\n\r\n", "y".repeat(9000));
    assert_eq!(read(&limits, head.as_bytes(), 4096).err(), Some(Limit::HeaderFieldBytes.into()));
}

#[test]
fn responses_have_limits_of_their_own_where_these_are_set() {
    let common = Limits { header_bytes: 4000, header_field_bytes: 500, ..Limits::default() };
    let limits = HeadLimits::of_origins(&common);
    assert_eq!((limits.head_bytes, limits.field_bytes), (4000, 500));
    let own = Limits { response_header_bytes: 9000, response_field_bytes: 800, ..common };
    let limits = HeadLimits::of_origins(&own);
    assert_eq!((limits.head_bytes, limits.field_bytes), (9000, 800));
    let limits = HeadLimits::from(&own);
    assert_eq!((limits.head_bytes, limits.field_bytes), (4000, 500));
}
