//! A forwarded request reads as the request that was received.
#![no_main]

use base::Limits;
use h1::{HeadLimits, Progress, RequestReader};
use libfuzzer_sys::fuzz_target;
use message::{Request, Scheme};

fuzz_target!(|data: &[u8]| {
    // As loose as those that it is read by again.
    let limits = HeadLimits {
        head_bytes: 1 << 20,
        field_bytes: 1 << 20,
        field_count: 1 << 20,
        ..HeadLimits::from(&Limits::default())
    };
    let mut received = Request::new();
    let read = RequestReader::new().read(data, &limits, Scheme::Http, &mut received);
    // From HTTP/1.0 comes a request without a host; the origin's name is filled in before it is
    // sent.
    if matches!(read, Ok(Progress::Complete(_))) && !received.host.is_empty() {
        h1::fuzz::forward(&received);
    }
});
