//! `message::fuzz::trace_contexts`: what it checks is said there.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| message::fuzz::trace_contexts(data));
