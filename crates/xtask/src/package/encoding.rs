//! Encodings of packages: compressed, and hexadecimal.

use std::fmt::Write as _;
use std::io::Write as _;

use flate2::{Compression, GzBuilder};

/// Compresses as `gzip -9n` does, without name and time.
pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut writer = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    writer
        .write_all(bytes)
        .and_then(|()| writer.finish())
        .expect("memory takes whatever is written to it")
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        put(&mut text, format_args!("{byte:02x}"));
        text
    })
}

pub(super) fn put(text: &mut String, part: std::fmt::Arguments<'_>) {
    text.write_fmt(part).expect("a string takes whatever is written to it");
}
