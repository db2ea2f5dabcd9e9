//! What is accepted over HTTP/2 reads as the same request in HTTP/1. The input is a field block;
//! its first byte says whether there is a body, and what the connection is.
#![no_main]

use base::Limits;
use h1::{HeadLimits, Progress, RequestReader, encode};
use libfuzzer_sys::fuzz_target;
use message::{Framing, HeaderId, Method, Request};

fn end_to_end(request: &Request) -> Vec<(&[u8], &[u8])> {
    let ours = |id: HeaderId| {
        id.is_hop_by_hop()
            || matches!(id, HeaderId::ContentLength | HeaderId::Host | HeaderId::Expect)
    };
    request.headers.iter().filter(|f| !ours(f.id)).map(|f| (f.name, f.value)).collect()
}

fuzz_target!(|data: &[u8]| {
    let Some(received) = h2::fuzz::block(data) else { return };
    let mut sent = Vec::new();
    encode::request_head(&mut sent, &received);
    // Lines are longer than what the fields counted for, so the limits are out of the way.
    let limits = HeadLimits {
        head_bytes: 1 << 20,
        field_bytes: 1 << 20,
        field_count: 1 << 20,
        ..HeadLimits::from(&Limits::default())
    };
    let mut again = Request::new();
    let read = RequestReader::new().read(&sent, &limits, received.scheme, &mut again);
    assert_eq!(read, Ok(Progress::Complete(sent.len())), "{}", sent.escape_ascii());
    assert_eq!(again.method, received.method);
    assert_eq!(again.target, received.target);
    assert_eq!((&again.host, again.port), (&received.host, received.port));
    let awaits_body = matches!(received.method, Method::Post | Method::Put | Method::Patch);
    match received.framing {
        Framing::None if awaits_body => assert_eq!(again.framing, Framing::Length(0)),
        framing => assert_eq!(again.framing, framing),
    }
    assert_eq!(end_to_end(&again), end_to_end(&received));
});
