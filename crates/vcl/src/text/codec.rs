//! Codecs between bytes and text, by the names of VMOD `blob`. Base64 is accepted with and without
//! padding, as in Varnish; apart from bits behind the last byte, malformed text is never accepted.

/// An alphabet of base64 and its padding.
struct Base64 {
    /// Characters for 62 and 63.
    last: [u8; 2],
    pad: Option<u8>,
}

const BASE64: Base64 = Base64 { last: *b"+/", pad: Some(b'=') };
const BASE64URL: Base64 = Base64 { last: *b"-_", pad: Some(b'=') };
const BASE64URLNOPAD: Base64 = Base64 { last: *b"-_", pad: None };
const BASE64CF: Base64 = Base64 { last: *b"-~", pad: Some(b'_') };

/// Decodes `text`; `None` if it is malformed.
pub(crate) fn decode(code: &str, text: &[u8]) -> Option<Vec<u8>> {
    match code {
        "BASE64" => BASE64.decode(text),
        "BASE64URL" => BASE64URL.decode(text),
        "BASE64URLNOPAD" => BASE64URLNOPAD.decode(text),
        "BASE64CF" => BASE64CF.decode(text),
        "HEX" => decode_hex(text),
        "URL" => decode_url(text),
        _ => Some(text.to_vec()),
    }
}

/// Encodes `bytes`.
pub(crate) fn encode(code: &str, is_upper: bool, bytes: &[u8]) -> Vec<u8> {
    match code {
        "BASE64" => BASE64.encode(bytes),
        "BASE64URL" => BASE64URL.encode(bytes),
        "BASE64URLNOPAD" => BASE64URLNOPAD.encode(bytes),
        "BASE64CF" => BASE64CF.encode(bytes),
        "HEX" => bytes.iter().flat_map(|byte| hex(*byte, is_upper)).collect(),
        "URL" => encode_url(bytes, is_upper),
        // A string ends at a zero byte.
        _ => bytes.split(|byte| *byte == 0).next().unwrap_or_default().to_vec(),
    }
}

impl Base64 {
    fn character(&self, bits: u32) -> u8 {
        match (bits & 63) as u8 {
            n @ 0..26 => b'A' + n,
            n @ 26..52 => b'a' + n - 26,
            n @ 52..62 => b'0' + n - 52,
            n => self.last[usize::from(n) - 62],
        }
    }

    fn bits(&self, character: u8) -> Option<u32> {
        Some(u32::from(match character {
            b'A'..=b'Z' => character - b'A',
            b'a'..=b'z' => character - b'a' + 26,
            b'0'..=b'9' => character - b'0' + 52,
            _ => 62 + u8::try_from(self.last.iter().position(|c| *c == character)?).ok()?,
        }))
    }

    fn encode(&self, bytes: &[u8]) -> Vec<u8> {
        let mut text = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
        for three in bytes.chunks(3) {
            let byte = |at: usize| three.get(at).map_or(0, |byte| u32::from(*byte));
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            let characters = [18, 12, 6, 0].map(|shift| self.character(bits >> shift));
            text.extend_from_slice(&characters[..=three.len()]);
            let missing = 3 - three.len();
            text.extend(self.pad.into_iter().flat_map(|pad| std::iter::repeat_n(pad, missing)));
        }
        text
    }

    fn decode(&self, text: &[u8]) -> Option<Vec<u8>> {
        let is_pad = |b: &&u8| Some(**b) == self.pad;
        let pads = text.iter().rev().take_while(is_pad).count();
        let text = &text[..text.len() - pads];
        let most = match text.len() % 4 {
            0 => 0,
            2 => 2,
            3 => 1,
            // One character alone is less than a byte.
            _ => return None,
        };
        if pads > most {
            return None;
        }
        let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
        for four in text.chunks(4) {
            let mut bits = 0;
            for at in 0..4 {
                bits = bits << 6 | four.get(at).map_or(Some(0), |c| self.bits(*c))?;
            }
            bytes.extend_from_slice(&bits.to_be_bytes()[1..four.len()]);
        }
        Some(bytes)
    }
}

fn hex(byte: u8, is_upper: bool) -> [u8; 2] {
    let digits = if is_upper { b"0123456789ABCDEF" } else { b"0123456789abcdef" };
    [digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]
}

fn digit(character: u8) -> Option<u8> {
    char::from(character).to_digit(16).map(|digit| digit as u8)
}

fn decode_hex(text: &[u8]) -> Option<Vec<u8>> {
    // With an odd number of digits, the first one is a byte of its own.
    let (first, pairs) = text.split_at(text.len() % 2);
    let mut bytes = Vec::with_capacity(text.len().div_ceil(2));
    for character in first {
        bytes.push(digit(*character)?);
    }
    for pair in pairs.chunks(2) {
        bytes.push(digit(pair[0])? << 4 | digit(pair[1])?);
    }
    Some(bytes)
}

fn decode_url(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.iter();
    while let Some(byte) = rest.next() {
        bytes.push(if *byte == b'%' {
            digit(*rest.next()?)? << 4 | digit(*rest.next()?)?
        } else {
            *byte
        });
    }
    Some(bytes)
}

/// Unreserved characters of RFC 3986 2.3, which stay as they are.
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

fn encode_url(bytes: &[u8], is_upper: bool) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes.len());
    for byte in bytes {
        if is_unreserved(*byte) {
            text.push(*byte);
        } else {
            text.push(b'%');
            text.extend(hex(*byte, is_upper));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(code: &str, text: &str) -> Option<String> {
        let bytes = decode(code, text.as_bytes())?;
        Some(String::from_utf8(encode("HEX", false, &bytes)).expect("digits are ASCII"))
    }

    // Results of Varnish 7.1.1.
    #[test]
    fn texts_are_decoded_as_varnish_does() {
        for (code, text, expected) in [
            ("BASE64", "Zm9v", Some("666f6f")),
            ("BASE64", "Zm9", Some("666f")),
            ("BASE64", "Zm9=", Some("666f")),
            ("BASE64", "Zg==", Some("66")),
            ("BASE64", "Zg=", Some("66")),
            ("BASE64", "Zg", Some("66")),
            ("BASE64", "Z", None),
            ("BASE64", "Zm9v==", None),
            ("BASE64", "Zm 9v", None),
            ("BASE64", "=", None),
            ("BASE64", "-_-_", None),
            ("BASE64", "+/+/", Some("fbffbf")),
            ("BASE64", "Zm9vZ", None),
            ("BASE64URL", "-_-_", Some("fbffbf")),
            ("BASE64URL", "+/", None),
            ("BASE64URLNOPAD", "Zg", Some("66")),
            ("BASE64URLNOPAD", "Zg==", None),
            ("BASE64CF", "-~-~", Some("fbffbf")),
            ("BASE64CF", "Zg__", Some("66")),
            ("BASE64CF", "Zg==", None),
            ("HEX", "666f6F", Some("666f6f")),
            ("HEX", "6", Some("06")),
            ("HEX", "abc", Some("0abc")),
            ("HEX", "0x66", None),
            ("HEX", "", Some("")),
            ("URL", "a%20b", Some("612062")),
            ("URL", "a+b", Some("612b62")),
            ("URL", "%00a", Some("0061")),
            ("URL", "%", None),
            ("URL", "%2", None),
            ("URL", "%2g", None),
            ("URL", "%%20", None),
            ("IDENTITY", "abc", Some("616263")),
        ] {
            assert_eq!(decoded(code, text).as_deref(), expected, "{code} {text}");
        }
    }

    #[test]
    fn bytes_are_encoded_as_varnish_does() {
        let bytes = decode("HEX", b"00207e2d5f2e2b41e9ff2f").expect("digits");
        assert_eq!(encode("URL", false, &bytes), b"%00%20~-_.%2bA%e9%ff%2f");
        assert_eq!(encode("URL", true, b"\xff/"), b"%FF%2F");
        let bytes = [0xfb, 0xef, 0xff, 0x66];
        assert_eq!(encode("BASE64CF", false, &bytes), b"--~~Zg__");
        assert_eq!(encode("BASE64URL", false, &bytes), b"--__Zg==");
        assert_eq!(encode("BASE64URLNOPAD", false, &bytes), b"--__Zg");
        assert_eq!(encode("IDENTITY", false, b"foo\0bar"), b"foo");
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(
            bytes in prop::collection::vec(any::<u8>(), 0..60), is_upper: bool,
        ) {
            for code in ["BASE64", "BASE64URL", "BASE64URLNOPAD", "BASE64CF", "HEX", "URL"] {
                let text = encode(code, is_upper, &bytes);
                prop_assert_eq!(decode(code, &text), Some(bytes.clone()), "{}", code);
            }
        }

        #[test]
        fn any_text_is_taken(text in prop::collection::vec(any::<u8>(), 0..60)) {
            for code in ["BASE64", "BASE64URLNOPAD", "BASE64CF", "HEX", "URL", "IDENTITY"] {
                decode(code, &text);
            }
        }
    }
}
