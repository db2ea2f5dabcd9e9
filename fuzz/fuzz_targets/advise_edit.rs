//! `advise::fuzz::edit`: what it checks is said there.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| advise::fuzz::edit(data));
