//! FastCGI records, as described at `fastcgi::fuzz::records`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fastcgi::fuzz::records(data));
