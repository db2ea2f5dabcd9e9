//! Heads of one transaction: the header fields of all its sides, as they follow its record.
//!
//! They are written only while a reader subscribes to them
//! ([`FieldSubscriptions`](crate::FieldSubscriptions)). The form of a field, with little-endian
//! numbers:
//!
//! | bytes | content |
//! |---|---|
//! | 1 | [`HeadSide`] |
//! | 2 | length of the name; 0: the value is the first line of a head |
//! | 2 | length of the value |
//! | | name and value |

use std::io::{self, Write};

use crate::text::{Printable, json_text};

/// The head that a field belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum HeadSide {
    /// The client's request.
    Req,
    /// The request to the origin.
    Bereq,
    /// The origin's response.
    Beresp,
    /// The response to the client.
    Resp,
}

impl HeadSide {
    /// All sides, in the order of a transaction.
    pub const ALL: [Self; 4] = [Self::Req, Self::Bereq, Self::Beresp, Self::Resp];

    /// The side's name in VCL.
    pub fn word(self) -> &'static str {
        match self {
            Self::Req => "req",
            Self::Bereq => "bereq",
            Self::Beresp => "beresp",
            Self::Resp => "resp",
        }
    }

    fn of(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

/// A header field, or the first line of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// The head that it belongs to.
    pub side: HeadSide,
    /// The field's name as it was spelled; empty for a first line.
    pub name: &'a [u8],
    /// The field's value.
    pub value: &'a [u8],
}

impl<'a> Field<'a> {
    /// Returns the label and the text of a line of `larder log --detail`.
    pub(crate) fn line(self) -> (&'static str, String) {
        let (name, value) = (Printable(self.name), Printable(self.value));
        match self.name {
            b"" => (self.side.word(), value.to_string()),
            _ => (self.side.word(), format!("{name}: {value}")),
        }
    }

    fn read(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (&[side, a, b, c, d], rest) = bytes.split_first_chunk()?;
        let lengths = [[a, b], [c, d]].map(|two| usize::from(u16::from_le_bytes(two)));
        let (name, rest) = rest.split_at_checked(lengths[0])?;
        let (value, rest) = rest.split_at_checked(lengths[1])?;
        Some((Self { side: HeadSide::of(side)?, name, value }, rest))
    }
}

/// Iterates over the fields in `heads`, up to the first malformed one.
pub fn fields(heads: &[u8]) -> impl Iterator<Item = Field<'_>> {
    let mut rest = heads;
    std::iter::from_fn(move || {
        let (field, after) = Field::read(rest)?;
        rest = after;
        Some(field)
    })
}

/// Returns the value of the last field `name` (in any case) of `side`, as `varnishncsa` does.
pub fn value<'a>(heads: &'a [u8], side: HeadSide, name: &[u8]) -> Option<&'a [u8]> {
    let own = |field: &Field<'_>| field.side == side && field.name.eq_ignore_ascii_case(name);
    fields(heads).filter(own).last().map(|field| field.value)
}

/// Appends a JSON member for each side that is present: the first line, then each field's name and
/// value in order.
pub(crate) fn json(heads: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    for side in HeadSide::ALL {
        let own = || fields(heads).filter(move |field| field.side == side);
        let line = own().filter(|field| field.name.is_empty()).last();
        if own().next().is_none() {
            continue;
        }
        write!(out, ",\"{}\":{{\"line\":\"", side.word())?;
        json_text(out, line.map_or(&b""[..], |field| field.value));
        out.extend_from_slice(b"\",\"fields\":[");
        for (n, field) in own().filter(|field| !field.name.is_empty()).enumerate() {
            out.extend_from_slice(if n == 0 { b"[\"" } else { b",[\"" });
            json_text(out, field.name);
            out.extend_from_slice(b"\",\"");
            json_text(out, field.value);
            out.extend_from_slice(b"\"]");
        }
        out.extend_from_slice(b"]}");
    }
    Ok(())
}

/// A writer of heads.
#[derive(Clone, Debug, Default)]
pub struct Heads {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Heads {
    /// Adds a field, or with an empty name the first line of a head, unless the total would exceed
    /// `most` bytes.
    pub fn add(&mut self, most: usize, Field { side, name, value }: Field<'_>) {
        let lengths = (u16::try_from(name.len()), u16::try_from(value.len()));
        let ((Ok(names), Ok(values)), true) =
            (lengths, self.bytes.len() + 5 + name.len() + value.len() <= most)
        else {
            self.is_cut = true;
            return;
        };
        self.bytes.push(side as u8);
        self.bytes.extend_from_slice(&names.to_le_bytes());
        self.bytes.extend_from_slice(&values.to_le_bytes());
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
    }

    /// Appends the fields of `other`, unless the total would exceed `most` bytes.
    pub fn append(&mut self, most: usize, other: &Self) {
        if self.bytes.len() + other.bytes.len() > most {
            self.is_cut = true;
            return;
        }
        self.is_cut |= other.is_cut;
        self.bytes.extend_from_slice(&other.bytes);
    }

    /// Removes all fields and keeps the allocation.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.is_cut = false;
    }

    /// The bytes written so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns true if a field was left out for its size.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field<'a>(side: HeadSide, name: &'a [u8], value: &'a [u8]) -> Field<'a> {
        Field { side, name, value }
    }

    #[test]
    fn fields_read_back_and_the_last_of_a_name_counts() {
        let mut heads = Heads::default();
        let all = [
            field(HeadSide::Req, b"", b"GET / HTTP/1.1"),
            field(HeadSide::Req, b"Host", b"a"),
            field(HeadSide::Resp, b"X-A", b"1"),
            field(HeadSide::Resp, b"x-a", b""),
        ];
        all.iter().for_each(|field| heads.add(100, *field));
        assert_eq!(fields(heads.bytes()).collect::<Vec<_>>(), all);
        assert_eq!(value(heads.bytes(), HeadSide::Resp, b"X-a"), Some(&b""[..]));
        assert_eq!(value(heads.bytes(), HeadSide::Beresp, b"X-A"), None);
        assert!(!heads.is_cut());
    }

    #[test]
    fn fields_that_do_not_fit_are_left_out_and_marked() {
        let (mut heads, mut other) = (Heads::default(), Heads::default());
        heads.add(12, field(HeadSide::Req, b"A", b"1"));
        heads.add(12, field(HeadSide::Req, b"B", b"2"));
        assert_eq!((fields(heads.bytes()).count(), heads.is_cut()), (1, true));
        other.clear();
        other.add(usize::MAX, field(HeadSide::Req, b"A", &vec![b'a'; 70_000]));
        assert_eq!((other.bytes().len(), other.is_cut()), (0, true));
        let mut both = Heads::default();
        both.append(6, &heads);
        assert_eq!((both.bytes().len(), both.is_cut()), (0, true));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_fail(bytes: Vec<u8>) {
            let total: usize = fields(&bytes).map(|f| 5 + f.name.len() + f.value.len()).sum();
            assert!(total <= bytes.len());
        }
    }
}
