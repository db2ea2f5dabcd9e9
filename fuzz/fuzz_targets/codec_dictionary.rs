//! `codec::fuzz::dictionary`: what it checks is said there.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| codec::fuzz::dictionary(data));
