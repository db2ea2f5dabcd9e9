//! Base64 and hexadecimal as libvmod-digest reads and writes them: less strict than `blob`. Other
//! VMODs must not use them.

use crate::text::codec;

/// A variant of base64.
#[derive(Clone, Copy, Debug)]
pub(super) struct Base64Variant {
    /// Name of the variant in `blob`.
    name: &'static str,
    /// Characters for 62 and 63.
    last: [u8; 2],
    /// True if padding (`=`) is read, as zero bits.
    has_padding: bool,
}

impl Base64Variant {
    /// With `+`, `/` and padding.
    pub(super) const STANDARD: Self = Self { name: "BASE64", last: *b"+/", has_padding: true };
    /// With `-`, `_` and padding.
    pub(super) const URL: Self = Self { name: "BASE64URL", last: *b"-_", has_padding: true };
    /// With `-` and `_`, without padding.
    pub(super) const URL_NO_PADDING: Self =
        Self { name: "BASE64URLNOPAD", last: *b"-_", has_padding: false };

    /// Encodes `bytes`.
    pub(super) fn encode(self, bytes: &[u8]) -> Vec<u8> {
        codec::encode(self.name, false, bytes)
    }

    /// Decodes `text` up to the first zero byte; `None` for a character outside the alphabet.
    /// Missing characters of the last four count as zeros.
    pub(super) fn decode(self, text: &[u8]) -> Option<Vec<u8>> {
        let mut bytes = Vec::with_capacity(text.len().div_ceil(4) * 3);
        for four in text.chunks(4) {
            let mut bits = 0;
            for at in 0..4 {
                bits = bits << 6 | four.get(at).map_or(Some(0), |c| self.bits(*c))?;
            }
            bytes.extend_from_slice(&bits.to_be_bytes()[1..]);
        }
        bytes.truncate(memchr::memchr(0, &bytes).unwrap_or(bytes.len()));
        Some(bytes)
    }

    fn bits(self, character: u8) -> Option<u32> {
        Some(u32::from(match character {
            b'A'..=b'Z' => character - b'A',
            b'a'..=b'z' => character - b'a' + 26,
            b'0'..=b'9' => character - b'0' + 52,
            b'=' if self.has_padding => 0,
            other if other == self.last[0] => 62,
            other if other == self.last[1] => 63,
            _ => return None,
        }))
    }
}

/// `bytes` in hexadecimal, behind `prefix`.
pub(super) fn hex(prefix: &str, bytes: &[u8]) -> Vec<u8> {
    let mut text = prefix.as_bytes().to_vec();
    text.extend(codec::encode("HEX", false, bytes));
    text
}

/// Decodes hexadecimal `text`. A character other than a digit counts as 0; the last digit of an odd
/// number is dropped.
pub(super) fn unhex(text: &[u8]) -> Vec<u8> {
    let digits = match text.strip_prefix(b"0x") {
        Some(digits) if !digits.is_empty() => digits,
        _ => text,
    };
    let digit = |character: u8| char::from(character).to_digit(16).map_or(0, |digit| digit as u8);
    digits.as_chunks().0.iter().map(|[high, low]| digit(*high) << 4 | digit(*low)).collect()
}
