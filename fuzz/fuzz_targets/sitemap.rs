//! Sitemaps: lines ascend and lie within the text.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sitemap::fuzz::sitemap(data));
