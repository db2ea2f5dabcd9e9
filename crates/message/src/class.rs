//! Classes of bytes and scans over them: the inner loops of the engines' parsers.
//!
//! The rules for bytes of a token, target, host or value are here only, for every version of HTTP.

use crate::token::is_token_byte;

/// Bytes of a token (RFC 9110 5.6.2).
pub const TOKEN: u8 = 1;
/// Bytes of a request target: visible ASCII without `#`, which clients may not send (RFC 9112 3.2).
pub const TARGET: u8 = 2;
/// Bytes of a registered name: the unreserved set of RFC 3986 2.3. Percent-encoding and
/// sub-delimiters are legal there, but servers interpret them differently.
pub const HOST: u8 = 4;
/// Bytes of a field name in HTTP/2: a token without capitals (RFC 9113 8.2.1).
pub const LOWER: u8 = 8;

static CLASSES: [u8; 256] = {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let b = at as u8;
        if is_token_byte(b) {
            table[at] |= if b.is_ascii_uppercase() { TOKEN } else { TOKEN | LOWER };
        }
        if b > 0x20 && b < 0x7f && b != b'#' {
            table[at] |= TARGET;
        }
        if b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~') {
            table[at] |= HOST;
        }
        at += 1;
    }
    table
};

/// Returns true if `b` is of `class`.
#[inline]
pub fn is(b: u8, class: u8) -> bool {
    CLASSES[usize::from(b)] & class != 0
}

/// Returns true if all of `bytes` are of `class`.
#[inline]
pub fn all(bytes: &[u8], class: u8) -> bool {
    // Without a branch for each byte: names are short, and nearly all are valid.
    bytes.iter().fold(class, |left, b| left & CLASSES[usize::from(*b)]) != 0
}

/// The first position from `at` on whose byte is not of `class`, or else the end.
#[inline]
pub fn skip(buf: &[u8], at: usize, class: u8) -> usize {
    let rest = buf.get(at..).unwrap_or_default();
    at + rest.iter().position(|b| !is(*b, class)).unwrap_or(rest.len())
}

/// The first position from `at` on whose byte is invalid in a field value: a control byte other
/// than HTAB (RFC 9110 5.5), or else the end.
#[inline]
pub fn skip_value(buf: &[u8], mut at: usize) -> usize {
    loop {
        at = find(buf, at, |w| below(w, 0x20) | equal(w, 0x7f), |b| b < 0x20 || b == 0x7f);
        if buf.get(at) != Some(&b'\t') {
            return at;
        }
        at += 1;
    }
}

/// Returns true if `value` is a valid field value: no control byte but HTAB (RFC 9110 5.5).
#[inline]
pub fn is_value(value: &[u8]) -> bool {
    let controls = |word: &[u8; 8]| {
        let word = u64::from_le_bytes(*word);
        below(word, 0x20) | equal(word, 0x7f)
    };
    // Without a branch for each group of eight bytes: nearly all values are valid, and have no HTAB
    // either. The last group overlaps the one before it.
    if let Some(last) = value.last_chunk()
        && value.as_chunks().0.iter().fold(controls(last), |found, word| found | controls(word))
            == 0
    {
        return true;
    }
    skip_value(value, 0) == value.len()
}

/// The first position from `at` on whose byte is invalid in a request target ([`TARGET`]).
#[inline]
pub fn skip_target(buf: &[u8], at: usize) -> usize {
    let stops = |w| below(w, 0x21) | equal(w, 0x7f) | equal(w, b'#') | (w & HIGH_BITS);
    find(buf, at, stops, |b| !is(b, TARGET))
}

/// The first position from `at` on whose byte `stops`, eight bytes at a time while there are as
/// many.
///
/// `lanes` does the same for eight bytes: it sets the highest bit of each such byte. It may be
/// wrong above the lowest bit set; only that bit is used.
#[inline(always)] // both closures must melt into the loop
pub fn find(
    buf: &[u8],
    mut at: usize,
    lanes: impl Fn(u64) -> u64,
    stops: impl Fn(u8) -> bool,
) -> usize {
    while let Some(word) = buf.get(at..).and_then(|rest| rest.first_chunk()) {
        let found = lanes(u64::from_le_bytes(*word));
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let rest = buf.get(at..).unwrap_or_default();
    at + rest.iter().position(|b| stops(*b)).unwrap_or(rest.len())
}

/// The highest bit of each of eight bytes.
pub const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
const LOW_BITS: u64 = 0x0101_0101_0101_0101;

/// Marks the bytes of `word` below `limit`, which is at most 0x80. A borrow may mark bytes above
/// the first one marked.
#[inline]
pub const fn below(word: u64, limit: u8) -> u64 {
    word.wrapping_sub(LOW_BITS * limit as u64) & !word & HIGH_BITS
}

/// Marks the bytes of `word` that equal `byte`; bytes above the first one marked may be wrong.
#[inline]
pub const fn equal(word: u64, byte: u8) -> u64 {
    below(word ^ (LOW_BITS * byte as u64), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares each fast scan with the plain one, for every byte at every position.
    #[test]
    fn scans_stop_at_the_first_byte_of_another_class() {
        type Scan = fn(&[u8], usize) -> usize;
        type Stops = fn(u8) -> bool;
        let scans: [(Scan, Stops, u8); 2] = [
            (skip_value, |b| b != b'\t' && (b < 0x20 || b == 0x7f), b'\t'),
            (skip_target, |b| !is(b, TARGET), b'a'),
        ];
        for (scan, stops, pad) in scans {
            for (byte, at) in (0..=255).flat_map(|byte| (0..20).map(move |at| (byte, at))) {
                for fill in [pad, b'~', b'!'] {
                    let mut bytes = [fill; 20];
                    bytes[at] = byte;
                    let expected = bytes.iter().position(|b| stops(*b)).unwrap_or(20);
                    assert_eq!(scan(&bytes, 0), expected, "{byte:#x} at {at} in {fill:#x}");
                    let later =
                        bytes.iter().skip(at).position(|b| stops(*b)).map_or(20, |n| at + n);
                    assert_eq!(scan(&bytes, at), later);
                }
            }
        }
    }

    #[test]
    fn a_value_is_looked_at_to_its_end() {
        for (byte, at, len) in (0..=255_u8)
            .flat_map(|byte| (0..20).map(move |at| (byte, at)))
            .flat_map(|(byte, at)| (at + 1..21).map(move |len| (byte, at, len)))
        {
            let mut bytes = [b'a'; 20];
            bytes[at] = byte;
            let expected = byte == b'\t' || (byte >= 0x20 && byte != 0x7f);
            assert_eq!(is_value(&bytes[..len]), expected, "{byte:#x} at {at} of {len}");
        }
        assert!(is_value(b""));
    }

    #[test]
    fn high_bytes_may_stand_in_values() {
        let value = [0xff; 40];
        assert_eq!(skip_value(&value, 0), 40);
        assert_eq!(skip_value(&[&value[..], b"\t\x80\r\xff"].concat(), 3), 42);
    }

    #[test]
    fn scans_start_where_told_and_stop_at_the_end() {
        assert_eq!(skip(b"ab cd", 3, TOKEN), 5);
        assert_eq!(skip(b"ab cd", 0, TOKEN), 2);
        assert_eq!(skip(b"ab", 2, TOKEN), 2);
        assert_eq!(skip_value(b"ab", 2), 2);
    }
}
