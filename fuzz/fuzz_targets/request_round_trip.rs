//! A forwarded request, as described at `h1::fuzz::round_trip`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| h1::fuzz::round_trip(data));
