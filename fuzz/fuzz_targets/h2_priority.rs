//! `h2::fuzz::priority_field`: what it checks is said there.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| h2::fuzz::priority_field(data));
