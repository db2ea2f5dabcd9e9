//! Range field as Varnish reads it: one range; anything else is never satisfiable.

use std::ops::Range;

/// The bytes of `bytes=first-last`, `bytes=first-` or `bytes=-count`, in Varnish's reading.
pub fn parse_range(wanted: &[u8], length: u64) -> Option<Range<u64>> {
    let (unit, range) = wanted.split_at_checked(6)?;
    if !unit.eq_ignore_ascii_case(b"bytes=") {
        return None;
    }
    let dash = range.iter().position(|b| *b == b'-')?;
    let number = |digits: &[u8]| -> Option<u64> {
        if !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        std::str::from_utf8(digits).ok()?.parse().ok()
    };
    let range = match (&range[..dash], &range[dash + 1..]) {
        (b"", count) => length.saturating_sub(number(count)?)..length,
        (first, b"") => number(first)?..length,
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            first..length.min(last.checked_add(1)?)
        }
    };
    (range.start < range.end).then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varnish_reads_one_range_and_everything_else_is_not_satisfiable() {
        for (wanted, range) in [
            (&b"bytes=1-2"[..], Some(1..3)),
            (b"bytes=1-", Some(1..5)),
            (b"bytes=-2", Some(3..5)),
            (b"bytes=-20", Some(0..5)),
            (b"bytes=0-99", Some(0..5)),
            (b"Bytes=0-0", Some(0..1)),
            (b"bytes=5-9", None),
            (b"bytes=3-1", None),
            (b"bytes=-0", None),
            (b"bytes=-", None),
            (b"bytes=", None),
            (b"bytes=0-1,3-4", None),
            (b"lines=1-2", None),
            (b"bytes=1-18446744073709551615", None),
        ] {
            assert_eq!(parse_range(wanted, 5), range, "{}", wanted.escape_ascii());
        }
    }
}
