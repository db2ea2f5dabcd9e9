//! A forwarded request reads as the request that was received.
#![no_main]

use base::Limits;
use h1::{HeadLimits, Progress, RequestReader, encode};
use libfuzzer_sys::fuzz_target;
use message::{Framing, HeaderId, Method, Request, Scheme};

fn read(data: &[u8]) -> Option<(usize, Request)> {
    // Forwarding may make a head longer (`A:b` becomes `A: b`), so the limits are out of the way.
    let limits = HeadLimits {
        head_bytes: 1 << 20,
        field_bytes: 1 << 20,
        field_count: 1 << 20,
        ..HeadLimits::from(&Limits::default())
    };
    let mut request = Request::new();
    match RequestReader::new().read(data, &limits, Scheme::Http, &mut request) {
        Ok(Progress::Complete(len)) => Some((len, request)),
        _ => None,
    }
}

fn end_to_end(request: &Request) -> Vec<(&[u8], &[u8])> {
    let ours = |id: HeaderId| {
        id.is_hop_by_hop()
            || matches!(id, HeaderId::ContentLength | HeaderId::Host | HeaderId::Expect)
    };
    request.headers.iter().filter(|f| !ours(f.id)).map(|f| (f.name, f.value)).collect()
}

fuzz_target!(|data: &[u8]| {
    let Some((_, received)) = read(data) else { return };
    let mut sent = Vec::new();
    encode::request_head(&mut sent, &received);
    if received.host.is_empty() {
        // From HTTP/1.0; the origin's name is filled in before it is sent.
        return;
    }
    let Some((len, again)) = read(&sent) else {
        panic!("refused what was sent: {}", sent.escape_ascii());
    };
    assert_eq!(len, sent.len());
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
