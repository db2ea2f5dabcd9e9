//! JSON of Varnish's replies: an array that begins with version, request and time. It never parses
//! JSON.

use std::fmt::Write as _;

/// `text` as a JSON string. Bytes that are not UTF-8 are replaced.
pub fn string(text: &[u8]) -> String {
    serde_json::Value::from(String::from_utf8_lossy(text)).to_string()
}

/// The beginning of a reply's array: the version of the format, the words of the request, and the
/// time in milliseconds since 1970. The caller appends a blank, the other elements and `]`.
pub fn begin(version: u32, words: &[Vec<u8>], unix_ms: u64) -> String {
    let words: Vec<_> = words.iter().map(|word| string(word)).collect();
    let mut out = String::new();
    // Writing to a String cannot fail.
    _ = write!(
        out,
        "[ {version}, [{}], {}.{:03},",
        words.join(", "),
        unix_ms / 1000,
        unix_ms % 1000
    );
    out
}
