//! `vcl::fuzz::database`: what it checks is said there.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| vcl::fuzz::database(data));
