//! A client that sends any frames, and a server that answers: what it says makes sense.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| h2::fuzz::client(data));
