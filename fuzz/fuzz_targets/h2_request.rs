//! A request accepted over HTTP/2 reads as the same request in HTTP/1. The input is a field block;
//! its first byte says whether there is a body, and what the connection is.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Some(received) = h2::fuzz::block(data) {
        h1::fuzz::forward(&received);
    }
});
