//! The entry point for fuzzing; nothing else calls it but tests of engines whose requests go on
//! over HTTP/1.

use base::Limits;
use message::{Framing, HeaderId, Method, Request, Upgrade};

use crate::{HeadLimits, ReadProgress, RequestReader, encode};

/// The fields that an origin gets, framing apart.
fn end_to_end(request: &Request) -> Vec<(&[u8], &[u8])> {
    let ours = |id: HeaderId| {
        id.is_hop_by_hop()
            || matches!(id, HeaderId::ContentLength | HeaderId::Host | HeaderId::Expect)
    };
    request.headers.iter().filter(|f| !ours(f.id)).map(|f| (f.name, f.value)).collect()
}

/// Sends `received` on as the origin's side does, and holds what was sent against it.
pub fn forward(received: &Request) {
    let mut sent = Vec::new();
    encode::request_head(&mut sent, received);
    // `A: b` takes two bytes that the fields do not have, and there are lines more.
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
