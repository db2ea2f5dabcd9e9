//! `observe::fuzz::log_format`: what it checks is said there.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| observe::fuzz::log_format(data));
