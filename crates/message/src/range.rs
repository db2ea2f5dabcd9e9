//! Ranges of bytes (RFC 9110 14): from a Range field to resolved ranges, Content-Range, and the
//! framing of multipart/byteranges.

use std::ops::Range;

use smallvec::SmallVec;

use crate::list::{members, trim};

/// Resolved ranges: not empty, within the length, not overlapping. End-exclusive.
pub type Ranges = SmallVec<[Range<u64>; 4]>;

/// The part of a representation to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RangePlan {
    /// All of it, with 200: the field is invalid or unknown.
    Whole,
    /// All of it, with 200: the field has too many ranges.
    TooMany,
    /// These ranges, with 206, in the requested order.
    Ranges(Ranges),
    /// 416: no range is within the representation.
    NotSatisfiable,
}

/// Resolves `header`, the value of Range, for a representation of `length` bytes.
///
/// Overlapping ranges are merged into the first of them. More than `max_ranges` ranges are
/// [`RangePlan::TooMany`]; an unknown unit, or a malformed range before that, is
/// [`RangePlan::Whole`] (RFC 9110 14.2). Numbers too large for 64 bits are clamped.
pub fn plan(header: &[u8], length: u64, max_ranges: usize) -> RangePlan {
    let Some(specs) = byte_ranges(header) else { return RangePlan::Whole };
    let mut ranges = Ranges::new();
    let mut asked = 0;
    let mut suffix_of_nothing = false;
    for spec in members([specs]) {
        asked += 1;
        if asked > max_ranges {
            return RangePlan::TooMany;
        }
        match parse(spec) {
            None => return RangePlan::Whole,
            Some(Spec::Suffix(0)) => {}
            Some(Spec::Suffix(_)) if length == 0 => suffix_of_nothing = true,
            Some(Spec::Suffix(len)) => merge(&mut ranges, length.saturating_sub(len)..length),
            Some(Spec::From(first, last)) if first < length => {
                let end = last.map_or(length, |last| length.min(last.saturating_add(1)));
                merge(&mut ranges, first..end);
            }
            Some(Spec::From(..)) => {}
        }
    }
    match (ranges.is_empty(), asked) {
        (false, _) => RangePlan::Ranges(ranges),
        (true, 0) => RangePlan::Whole,
        // A suffix range of an empty representation is satisfiable (RFC 9110 14.1.2), but no 206
        // can express it.
        (true, _) if suffix_of_nothing => RangePlan::Whole,
        (true, _) => RangePlan::NotSatisfiable,
    }
}

/// The first byte requested by `header`, the value of Range, if the length of the representation is
/// not known; 0 for suffix ranges only. `None` if [`plan`] would have no range for any length.
pub fn first_wanted(header: &[u8], max_ranges: usize) -> Option<u64> {
    let (mut first, mut has_suffix) = (None, false);
    for (before, spec) in members([byte_ranges(header)?]).enumerate() {
        if before == max_ranges {
            return None;
        }
        match parse(spec)? {
            Spec::Suffix(bytes) => has_suffix |= bytes > 0,
            Spec::From(u64::MAX, _) => {}
            Spec::From(from, _) => first = Some(first.map_or(from, |other: u64| other.min(from))),
        }
    }
    first.or_else(|| has_suffix.then_some(0))
}

fn byte_ranges(header: &[u8]) -> Option<&[u8]> {
    let (unit, rest) = header.split_at_checked(5)?;
    if unit.eq_ignore_ascii_case(b"bytes") { rest.strip_prefix(b"=") } else { None }
}

enum Spec {
    /// First byte and optional last byte.
    From(u64, Option<u64>),
    /// The length of a suffix.
    Suffix(u64),
}

fn parse(spec: &[u8]) -> Option<Spec> {
    let dash = memchr::memchr(b'-', spec)?;
    let (first, last) = (trim(&spec[..dash]), trim(&spec[dash + 1..]));
    if first.is_empty() {
        return number(last).map(Spec::Suffix);
    }
    let first = number(first)?;
    if last.is_empty() {
        return Some(Spec::From(first, None));
    }
    let last = number(last)?;
    (first <= last).then_some(Spec::From(first, Some(last)))
}

fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0, |sum: u64, b| {
        b.is_ascii_digit().then(|| sum.saturating_mul(10).saturating_add(u64::from(b - b'0')))
    })
}

/// Adds a range, merging those that overlap it at the position of the first of them.
fn merge(ranges: &mut Ranges, mut new: Range<u64>) {
    let mut place = ranges.len();
    // One pass is enough: the part of a merged range beyond `new` overlaps no other one.
    for at in (0..ranges.len()).rev() {
        let old = &ranges[at];
        if old.start < new.end && new.start < old.end {
            new = old.start.min(new.start)..old.end.max(new.end);
            ranges.remove(at);
            place = at;
        }
    }
    ranges.insert(place, new);
}

/// A Content-Range with a range: the part of a representation in a 206 (RFC 9110 14.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentRange {
    /// The bytes; not empty, within the length. End-exclusive.
    pub range: Range<u64>,
    /// Length of the whole representation; `None` if the sender does not know it.
    pub length: Option<u64>,
}

impl ContentRange {
    /// Parses a field's value; `None` for another unit, for a 416's value, and for a malformed
    /// value or a part beyond the whole.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let (unit, rest) = value.split_at_checked(5)?;
        let rest = rest.strip_prefix(b" ").filter(|_| unit.eq_ignore_ascii_case(b"bytes"))?;
        let slash = memchr::memchr(b'/', rest)?;
        let (range, length) = (&rest[..slash], &rest[slash + 1..]);
        let dash = memchr::memchr(b'-', range)?;
        let (first, last) = (exact(&range[..dash])?, exact(&range[dash + 1..])?);
        let length = if length == b"*" { None } else { Some(exact(length)?) };
        let end = last.checked_add(1)?;
        let is_true = first <= last && length.is_none_or(|length| end <= length);
        is_true.then_some(Self { range: first..end, length })
    }
}

/// A number of digits only that fits 64 bits.
fn exact(digits: &[u8]) -> Option<u64> {
    number(digits).filter(|number| *number < u64::MAX)
}

/// Appends the value of Content-Range for `range`: `bytes 0-4/10`.
pub fn write_content_range(range: &Range<u64>, length: u64, out: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    out.extend_from_slice(b"bytes ");
    out.extend_from_slice(digits.format(range.start).as_bytes());
    out.push(b'-');
    out.extend_from_slice(digits.format(range.end.saturating_sub(1)).as_bytes());
    out.push(b'/');
    out.extend_from_slice(digits.format(length).as_bytes());
}

/// Appends the value of Content-Range for a 416: `bytes */10`.
pub fn write_unsatisfied(length: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"bytes */");
    out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
}

/// The framing of a multipart/byteranges body (RFC 9110 14.6), for more than one range.
#[derive(Clone, Copy, Debug)]
pub struct Multipart<'a> {
    /// The separator of the parts; must not occur in the body.
    pub boundary: &'a [u8],
    /// Content-Type of the whole representation, if it has one.
    pub content_type: Option<&'a [u8]>,
    /// Length of the whole representation.
    pub length: u64,
}

impl Multipart<'_> {
    /// Appends the part header of `range`.
    pub fn write_part_head(&self, range: &Range<u64>, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\r\n--");
        out.extend_from_slice(self.boundary);
        if let Some(kind) = self.content_type {
            out.extend_from_slice(b"\r\nContent-Type: ");
            out.extend_from_slice(kind);
        }
        out.extend_from_slice(b"\r\nContent-Range: ");
        write_content_range(range, self.length, out);
        out.extend_from_slice(b"\r\n\r\n");
    }

    /// Appends the closing delimiter.
    pub fn write_end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\r\n--");
        out.extend_from_slice(self.boundary);
        out.extend_from_slice(b"--\r\n");
    }

    /// Length of the whole body: the ranges and their framing.
    pub fn body_length(&self, ranges: &[Range<u64>]) -> u64 {
        let kind = self.content_type.map_or(0, |k| b"\r\nContent-Type: ".len() + k.len());
        let fixed = b"\r\n--\r\nContent-Range: bytes -/\r\n\r\n".len() + self.boundary.len() + kind;
        let end = b"\r\n----\r\n".len() + self.boundary.len();
        let parts = ranges.iter().map(|r| {
            let numbers = digits(r.start) + digits(r.end.saturating_sub(1)) + digits(self.length);
            fixed as u64 + numbers + r.end.saturating_sub(r.start)
        });
        parts.sum::<u64>() + end as u64
    }
}

fn digits(n: u64) -> u64 {
    u64::from(n.checked_ilog10().unwrap_or(0)) + 1
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Start and end of each range.
    fn ranges(header: &str, length: u64) -> Vec<(u64, u64)> {
        match plan(header.as_bytes(), length, 32) {
            RangePlan::Ranges(ranges) => ranges.iter().map(|r| (r.start, r.end)).collect(),
            other => panic!("{header}: {other:?}"),
        }
    }

    #[test]
    fn the_three_forms_resolve() {
        assert_eq!(ranges("bytes=0-4", 10), [(0, 5)]);
        assert_eq!(ranges("BYTES=5-", 10), [(5, 10)]);
        assert_eq!(ranges("bytes=-3", 10), [(7, 10)]);
        assert_eq!(ranges("bytes=-30", 10), [(0, 10)]);
        assert_eq!(ranges("bytes=5-99999999999999999999999", 10), [(5, 10)]);
        assert_eq!(ranges("bytes=8-9, 0-1,,-1", 10), [(8, 10), (0, 2)]);
    }

    #[test]
    fn overlapping_ranges_become_one_in_the_place_of_the_first() {
        assert_eq!(ranges("bytes=6-7,0-3,2-4", 10), [(6, 8), (0, 5)]);
        assert_eq!(ranges("bytes=0-1,4-5,8-9,1-8", 10), [(0, 10)]);
        assert_eq!(ranges("bytes=0-1,2-3", 10), [(0, 2), (2, 4)]);
    }

    #[test]
    fn what_is_not_understood_means_the_whole() {
        for header in [
            "",
            "bytes",
            "bytes=",
            "bytes=,",
            "items=0-1",
            "bytes=a-b",
            "bytes=4-2",
            "bytes=--1",
            "bytes=1",
            "bytes=-",
            "bytes=0-1,x",
            "bytes=+1-2",
            "bytes 0-1",
        ] {
            assert_eq!(plan(header.as_bytes(), 10, 32), RangePlan::Whole, "{header}");
        }
        assert_eq!(plan(b"bytes=0-0,2-2,4-4", 10, 2), RangePlan::TooMany);
        assert_eq!(plan(b"bytes=-5", 0, 32), RangePlan::Whole);
    }

    #[test]
    fn ranges_beyond_the_end_are_not_satisfiable() {
        for header in ["bytes=10-", "bytes=10-20", "bytes=-0", "bytes=99999999999999999999-"] {
            assert_eq!(plan(header.as_bytes(), 10, 32), RangePlan::NotSatisfiable, "{header}");
        }
        assert_eq!(plan(b"bytes=0-", 0, 32), RangePlan::NotSatisfiable);
        assert_eq!(ranges("bytes=10-,0-0", 10), [(0, 1)]);
        assert_eq!(plan(b"bytes=18446744073709551615-", u64::MAX, 2), RangePlan::NotSatisfiable);
    }

    #[test]
    fn content_range_is_inclusive() {
        let mut out = Vec::new();
        write_content_range(&(0..5), 10, &mut out);
        out.push(b' ');
        write_unsatisfied(10, &mut out);
        assert_eq!(out, b"bytes 0-4/10 bytes */10");
    }

    #[test]
    fn the_first_byte_of_one_range_is_known_before_the_length_is() {
        let first = |value: &str| first_wanted(value.as_bytes(), 3);
        assert_eq!(first("bytes=7-"), Some(7));
        assert_eq!(first("bytes=7-9"), Some(7));
        assert_eq!(first("bytes=-7"), Some(0));
        assert_eq!(first("bytes=9-, -7, 4-5"), Some(4));
        let beyond = format!("bytes={}-", u64::MAX);
        for value in
            ["bytes=", "bytes=-0", "bytes=x-", "items=1-", "bytes=9-7", "bytes=0-1,x", &beyond]
        {
            assert_eq!(first(value), None, "{value}");
        }
        assert_eq!(first("bytes=0-1,4-5,8-9,12-13"), None, "too many");
    }

    #[test]
    fn a_content_range_is_read_where_it_says_what_can_be() {
        let read = |value: &str| {
            ContentRange::parse(value.as_bytes())
                .map(|it| (it.range.start, it.range.end, it.length))
        };
        assert_eq!(read("bytes 0-4/10"), Some((0, 5, Some(10))));
        assert_eq!(read("Bytes 9-9/10"), Some((9, 10, Some(10))));
        assert_eq!(read("bytes 5-9/*"), Some((5, 10, None)));
        for value in [
            "",
            "bytes",
            "bytes */10",
            "bytes 0-10/10",
            "bytes 4-3/10",
            "bytes 0-4/",
            "bytes 0-4",
            "bytes=0-4/10",
            "bytes 0-4/10, bytes 5-6/10",
            "bytes -4/10",
            "bytes 0-/10",
            "bytes +0-4/10",
            "bytes 0 - 4/10",
            "bytes 0-4/1x",
            "bytes 0-18446744073709551615/*",
            "bytes 0-4/99999999999999999999",
            "items 0-4/10",
        ] {
            assert_eq!(read(value), None, "{value}");
        }
    }

    #[derive(Clone, Debug)]
    enum Asked {
        Closed(u64, u64),
        Open(u64),
        Suffix(u64),
    }

    impl Asked {
        fn text(&self) -> String {
            match self {
                Self::Closed(first, more) => format!("{first}-{}", first + more),
                Self::Open(first) => format!("{first}-"),
                Self::Suffix(len) => format!("-{len}"),
            }
        }

        fn has(&self, byte: u64, length: u64) -> bool {
            match self {
                Self::Closed(first, more) => (*first..=first + more).contains(&byte),
                Self::Open(first) => byte >= *first,
                Self::Suffix(len) => byte + len >= length,
            }
        }
    }

    fn asked() -> impl Strategy<Value = Asked> {
        prop_oneof![
            (0..80_u64, 0..20_u64).prop_map(|(first, more)| Asked::Closed(first, more)),
            (0..80_u64).prop_map(Asked::Open),
            (0..80_u64).prop_map(Asked::Suffix),
        ]
    }

    proptest! {
        #[test]
        fn a_content_range_reads_as_it_was_written(
            start in 0..u64::MAX / 2, len in 1..u64::MAX / 4, more in 0..u64::MAX / 4,
        ) {
            let (range, length) = (start..start + len, start + len + more);
            let mut value = Vec::new();
            write_content_range(&range, length, &mut value);
            let read = ContentRange::parse(&value);
            prop_assert_eq!(read, Some(ContentRange { range, length: Some(length) }));
        }

        #[test]
        fn the_bytes_are_those_asked_for(
            length in 1..64_u64,
            specs in prop::collection::vec(asked(), 1..8),
        ) {
            let header =
                format!("bytes={}", specs.iter().map(Asked::text).collect::<Vec<_>>().join(", "));
            let wanted: BTreeSet<u64> =
                (0..length).filter(|b| specs.iter().any(|s| s.has(*b, length))).collect();
            let planned = match plan(header.as_bytes(), length, 8) {
                RangePlan::Whole | RangePlan::TooMany => {
                    return Err(TestCaseError::fail("they are well-formed, and few"));
                }
                RangePlan::NotSatisfiable => Ranges::new(),
                RangePlan::Ranges(ranges) => {
                    prop_assert!(!ranges.is_empty());
                    ranges
                }
            };
            prop_assert!(planned.iter().all(|r| r.start < r.end && r.end <= length));
            let bytes: Vec<u64> = planned.iter().cloned().flatten().collect();
            prop_assert_eq!(bytes.len(), wanted.len(), "no byte comes twice");
            prop_assert_eq!(bytes.into_iter().collect::<BTreeSet<_>>(), wanted);
            // The order is that of the first requested byte range in each.
            let place = |r: &Range<u64>| {
                specs.iter().position(|s| r.clone().any(|b| s.has(b, length)))
            };
            prop_assert!(planned.iter().map(place).is_sorted());
        }

        #[test]
        fn multipart_length_is_what_is_written(
            bounds in prop::collection::vec((0..2000_u64, 1..2000_u64), 1..5),
            content_type in prop::option::of("[a-z]{1,9}/[a-z]{1,9}"),
            boundary in "[a-z0-9]{1,30}",
        ) {
            let ranges: Vec<_> = bounds.iter().map(|(start, len)| *start..start + len).collect();
            let multipart = Multipart {
                boundary: boundary.as_bytes(),
                content_type: content_type.as_deref().map(str::as_bytes),
                length: 4000,
            };
            let mut body = Vec::new();
            for range in &ranges {
                multipart.write_part_head(range, &mut body);
                body.resize(body.len() + (range.end - range.start) as usize, b'x');
            }
            multipart.write_end(&mut body);
            prop_assert_eq!(multipart.body_length(&ranges), body.len() as u64);
        }
    }
}
