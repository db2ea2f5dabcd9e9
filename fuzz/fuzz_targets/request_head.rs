//! A request head, as described at `h1::fuzz::request_head`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| h1::fuzz::request_head(data));
