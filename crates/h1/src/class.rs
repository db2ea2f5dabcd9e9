//! Classes of bytes, with the one scan that only HTTP/1 needs.

use message::class::{HIGH_BITS, below, equal, find};
pub(crate) use message::class::{TOKEN, all, is, skip, skip_target, skip_value};

/// The first position from `at` on whose byte is a colon or not visible ASCII: the latest end of a
/// field name.
#[inline]
pub(crate) fn skip_to_colon(buf: &[u8], at: usize) -> usize {
    let stops = |w| below(w, 0x21) | equal(w, b':') | (w & HIGH_BITS);
    find(buf, at, stops, |b| b <= 0x20 || b == b':' || b >= 0x80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scan_stops_at_a_colon_or_what_is_not_visible() {
        for (byte, at) in (0..=255).flat_map(|byte: u8| (0..20).map(move |at| (byte, at))) {
            for fill in [b'a', b'~', b'!'] {
                let mut bytes = [fill; 20];
                bytes[at] = byte;
                let stops = |b: &u8| *b <= 0x20 || *b == b':' || *b >= 0x80;
                let expected = bytes.iter().position(stops).unwrap_or(20);
                assert_eq!(skip_to_colon(&bytes, 0), expected, "{byte:#x} at {at} in {fill:#x}");
                let later = bytes.iter().skip(at).position(stops).map_or(20, |n| at + n);
                assert_eq!(skip_to_colon(&bytes, at), later);
            }
        }
    }
}
