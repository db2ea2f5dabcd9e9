//! `bench::fuzz::condition`: what it checks is said there.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| bench::fuzz::condition(data));
