//! The head of a CGI response, as described at `fastcgi::fuzz::head`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fastcgi::fuzz::head(data));
