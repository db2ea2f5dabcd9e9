//! `purge::fuzz::htcp_datagram`: what it checks is said there.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| purge::fuzz::htcp_datagram(data));
