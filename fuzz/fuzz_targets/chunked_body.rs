//! A chunked body, as described at `h1::fuzz::chunked_body`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| h1::fuzz::chunked_body(data));
