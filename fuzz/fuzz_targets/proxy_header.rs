//! PROXY headers, as described at `proxyproto::fuzz::header`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| proxyproto::fuzz::header(data));
