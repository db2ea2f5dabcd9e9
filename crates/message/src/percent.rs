//! Percent-encoding (RFC 3986 2.1): single escapes, and texts in both directions.
//!
//! Decodes once, never twice. A `%` that starts no escape is unchanged: a caller that must reject
//! it checks each `%` with [`escaped`].

/// The byte of the escape at the start of `text`; `None` without an escape.
pub fn escaped(text: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = text else { return None };
    let digit = |digit: u8| char::from(digit).to_digit(16);
    Some((digit(*high)? << 4 | digit(*low)?) as u8)
}

/// The escape of `byte`, in capitals (RFC 3986 6.2.2.1).
pub fn escape(byte: u8) -> [u8; 3] {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    [b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]
}

/// `text` with its escapes decoded.
pub fn decode(text: &[u8]) -> Vec<u8> {
    decode_selected(text, |_| true)
}

/// `text` with its escapes decoded, limited to bytes for which `is_meant` returns true.
pub fn decode_selected(text: &[u8], is_meant: impl Fn(u8) -> bool) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        match escaped(rest).filter(|byte| is_meant(*byte)) {
            Some(byte) => {
                decoded.push(byte);
                rest = &rest[3..];
            }
            None => {
                decoded.push(*first);
                rest = after;
            }
        }
    }
    decoded
}

/// `text` with each byte escaped for which `is_meant` returns true, which may include `%`.
pub fn encode(text: &[u8], is_meant: impl Fn(u8) -> bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        match is_meant(*byte) {
            true => out.extend_from_slice(&escape(*byte)),
            false => out.push(*byte),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_escape_stays_and_nothing_is_decoded_twice() {
        for (text, decoded) in [
            ("", ""),
            ("%41%6a%6A", "Ajj"),
            ("%2541", "%41"),
            ("%", "%"),
            ("%4", "%4"),
            ("%zz%4g%+1", "%zz%4g%+1"),
            ("%%41", "%A"),
        ] {
            assert_eq!(decode(text.as_bytes()), decoded.as_bytes(), "{text}");
        }
        assert_eq!(decode_selected(b"%41%42%2f", |byte| byte != b'B'), b"A%42/");
        assert_eq!(encode(b"a b/\xff", |byte| byte <= b' ' || byte > b'~'), b"a%20b/%FF");
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(
            text in prop::collection::vec(any::<u8>(), 0..40),
            odd: bool,
        ) {
            let encoded = encode(&text, |byte| byte == b'%' || odd == (byte % 2 == 1));
            prop_assert_eq!(decode(&encoded), text);
        }
    }
}
