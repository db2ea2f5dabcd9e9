//! `import::fuzz::others`: what it checks is said there.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| import::fuzz::others(data));
