//! `disk::fuzz::recovery`: what it checks is said there.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| disk::fuzz::recovery(data));
