//! Framing fields: the length of a body, in the one interpretation that all engines share.
//!
//! Must never guess: a value that two implementations could interpret differently is an error.

use crate::header::HeaderId;

/// The value of a Content-Length: `1*DIGIT` up to 2^63-1, no sign, no list, no white space (RFC
/// 9110 8.6); `None` for any other value.
#[inline]
pub fn content_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    let mut length = 0_u64;
    for b in value {
        let digit = b.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        length = length
            .checked_mul(10)
            .and_then(|n| n.checked_add(u64::from(digit)))
            .filter(|n| *n <= i64::MAX as u64)?;
    }
    Some(length)
}

/// Returns true if `name` is Content-Length or Transfer-Encoding with a `_` for the `-`. Servers
/// that map names to variables (CGI) do not distinguish the two, and honest clients never send it.
#[inline]
pub fn is_lookalike(name: &[u8]) -> bool {
    let same = |real: &str| {
        name.len() == real.len()
            && name.iter().zip(real.bytes()).all(|(b, r)| {
                let b = if *b == b'_' { b'-' } else { *b };
                b.eq_ignore_ascii_case(&r)
            })
    };
    same(HeaderId::ContentLength.name()) || same(HeaderId::TransferEncoding.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_digits_up_to_the_largest_offset() {
        for (value, length) in [
            ("0", Some(0)),
            ("007", Some(7)),
            ("9223372036854775807", Some(i64::MAX as u64)),
            ("9223372036854775808", None),
            ("99999999999999999999", None),
            ("", None),
            ("+1", None),
            ("-1", None),
            ("1,1", None),
            ("1 ", None),
            ("0x1", None),
        ] {
            assert_eq!(content_length(value.as_bytes()), length, "{value}");
        }
    }

    #[test]
    fn underscores_do_not_hide_a_framing_field() {
        for name in ["Content_Length", "content_length", "transfer_encoding", "Transfer_Encoding"] {
            assert!(is_lookalike(name.as_bytes()), "{name}");
        }
        for name in ["content_type", "content_lengths", "x_content_length", ""] {
            assert!(!is_lookalike(name.as_bytes()), "{name}");
        }
    }
}
