//! `message::fuzz::forwarded_elements`: what it checks is said there.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| message::fuzz::forwarded_elements(data));
