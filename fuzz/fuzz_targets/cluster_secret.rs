//! `cluster::fuzz::secret`: what it checks is said there.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cluster::fuzz::secret(data));
