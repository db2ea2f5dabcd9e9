//! Fuzz target: forwards an accepted request over HTTP/1 and compares. Only tests of engines and
//! fuzzers may call it.

use base::Limits;
use message::{Framing, HeaderId, Method, Request, Upgrade};

use crate::{HeadLimits, ReadProgress, RequestReader, encode};

/// The fields that an origin gets, without framing.
fn end_to_end(request: &Request) -> Vec<(&[u8], &[u8])> {
    let ours = |id: HeaderId| {
        id.is_hop_by_hop()
            || matches!(id, HeaderId::ContentLength | HeaderId::Host | HeaderId::Expect)
    };
    request.headers.iter().filter(|f| !ours(f.id)).map(|f| (f.name, f.value)).collect()
}

/// Encodes `received` as for an origin, parses it again, and compares both.
pub fn forward(received: &Request) {
    let mut sent = Vec::new();
    encode::request_head(&mut sent, received);
    // `A: b` takes two bytes that are not in the fields, and there are additional lines.
    let limits = HeadLimits {
        head_bytes: 1 << 20,
        field_bytes: 1 << 20,
        field_count: 1 << 20,
        ..HeadLimits::from(&Limits::default())
    };
    let mut again = Request::new();
    let read = RequestReader::new().read(&sent, &limits, received.scheme, &mut again);
    assert_eq!(read, Ok(ReadProgress::Complete(sent.len())), "{}", sent.escape_ascii());
    assert_eq!(again.method, received.method);
    assert_eq!(again.target, received.target);
    assert_eq!((&again.host, again.port), (&received.host, received.port));
    let awaits_body = matches!(received.method, Method::Post | Method::Put | Method::Patch);
    match received.framing {
        Framing::None if awaits_body => assert_eq!(again.framing, Framing::Length(0)),
        framing => assert_eq!(again.framing, framing),
    }
    assert_eq!(end_to_end(&again), end_to_end(received));
    assert!(again.keep_alive && again.upgrade == Upgrade::None);
}
