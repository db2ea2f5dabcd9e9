//! `agents::fuzz::key_directory`: what it checks is said there.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| agents::fuzz::key_directory(data));
