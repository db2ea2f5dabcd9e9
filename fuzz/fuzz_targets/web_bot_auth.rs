//! `agents::fuzz::web_bot_auth`: what it checks is said there.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| agents::fuzz::web_bot_auth(data));
