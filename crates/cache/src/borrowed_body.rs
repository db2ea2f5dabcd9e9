//! A borrowed body: a complete body in memory, lent by its object. Reading it copies, counts and
//! locks nothing.

use std::ops::Range;

use bytes::Bytes;

use crate::size;

/// Several chunks in order, none of them empty. A chunk is found by the number of bytes before it.
#[derive(Debug)]
pub struct BodyChunks {
    chunks: Box<[Bytes]>,
    /// The end of each chunk, counted from the beginning of the body.
    ends: Box<[u64]>,
}

impl BodyChunks {
    /// Bytes that one chunk takes in the lists.
    pub(crate) const OVERHEAD: u64 = size::class(size_of::<Bytes>() + size_of::<u64>());

    /// Makes a list of those `chunks` that are not empty.
    pub fn new(mut chunks: Vec<Bytes>) -> Self {
        chunks.retain(|chunk| !chunk.is_empty());
        let mut end = 0;
        let ends = chunks.iter().map(|chunk| {
            end += chunk.len() as u64;
            end
        });
        let ends = ends.collect();
        Self { chunks: chunks.into_boxed_slice(), ends }
    }

    /// The total length in bytes.
    pub fn len(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Returns true if there are no chunks.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// The chunks from the one that contains the byte at `offset`, and the offset at which that
    /// chunk begins.
    pub(crate) fn from(&self, offset: u64) -> (&[Bytes], u64) {
        let at = self.ends.partition_point(|end| *end <= offset);
        let begins = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        (&self.chunks[at..], begins)
    }
}

/// A complete body, borrowed from its object: without counting, lock or copy.
#[derive(Clone, Copy, Debug)]
pub enum BorrowedBody<'a> {
    /// A body of one chunk.
    One(&'a [u8]),
    /// A body of several chunks.
    Many(&'a BodyChunks),
}

impl<'a> BorrowedBody<'a> {
    /// The body's length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::One(bytes) => bytes.len() as u64,
            Self::Many(pieces) => pieces.len(),
        }
    }

    /// Returns true if the body has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if both bodies have the same bytes, in whatever chunks.
    pub fn has_bytes_of(&self, other: BorrowedBody<'_>) -> bool {
        if self.len() != other.len() {
            return false;
        }
        let (mut own, mut others) = (self.pieces(), other.pieces());
        let (mut left, mut right) = (&b""[..], &b""[..]);
        loop {
            left = if left.is_empty() { own.next().unwrap_or_default() } else { left };
            right = if right.is_empty() { others.next().unwrap_or_default() } else { right };
            let length = left.len().min(right.len());
            if length == 0 {
                return true;
            }
            if left[..length] != right[..length] {
                return false;
            }
            (left, right) = (&left[length..], &right[length..]);
        }
    }

    /// The chunks in order.
    pub fn pieces(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.range(0..self.len())
    }

    /// The non-empty parts of the chunks within `range`, clipped to the body's length. The first
    /// chunk is found without a walk over those before it.
    pub fn range(&self, range: Range<u64>) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let (one, (many, begins)) = match *self {
            Self::One(bytes) => (cut(bytes, 0, &range), (&[][..], 0)),
            Self::Many(pieces) => (None, pieces.from(range.start)),
        };
        let mut next = begins;
        let many = many.iter().map_while(move |chunk| {
            let begins = next;
            next += chunk.len() as u64;
            cut(chunk, begins, &range)
        });
        one.into_iter().chain(many)
    }
}

/// Returns the part of `bytes` within `range`, if it is not empty. `begins` is the offset of the
/// first byte.
fn cut<'a>(bytes: &'a [u8], begins: u64, range: &Range<u64>) -> Option<&'a [u8]> {
    let from = range.start.max(begins) - begins;
    let to = range.end.saturating_sub(begins).min(bytes.len() as u64);
    (from < to).then(|| &bytes[from as usize..to as usize])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compared with a plain slice: every range of every partition into chunks.
        #[test]
        fn a_range_is_found_in_pieces_of_any_length(
            lengths in proptest::collection::vec(0..40_usize, 0..12),
            (from, to) in (0..300_u64, 0..300_u64),
        ) {
            let mut plain = Vec::new();
            let chunks = lengths.iter().map(|length| {
                let at = plain.len();
                let bytes: Vec<u8> = (at..at + length).map(|at| at as u8).collect();
                plain.extend_from_slice(&bytes);
                Bytes::from(bytes)
            });
            let pieces = BodyChunks::new(chunks.collect());
            prop_assert_eq!(pieces.len(), plain.len() as u64);
            let end = (to as usize).min(plain.len());
            let wanted = plain.get(from as usize..end).unwrap_or_default();
            for whole in [BorrowedBody::One(&plain), BorrowedBody::Many(&pieces)] {
                let found: Vec<&[u8]> = whole.range(from..to).collect();
                prop_assert!(found.iter().all(|piece| !piece.is_empty()));
                prop_assert_eq!(found.concat(), wanted);
                prop_assert_eq!(whole.pieces().collect::<Vec<_>>().concat(), &plain[..]);
                prop_assert!(whole.has_bytes_of(BorrowedBody::Many(&pieces)));
                let mut other = plain.clone();
                other.get_mut(from as usize).into_iter().for_each(|byte| *byte ^= 1);
                let is_same = other == plain;
                prop_assert_eq!(whole.has_bytes_of(BorrowedBody::One(&other)), is_same);
                other.push(0);
                prop_assert!(!whole.has_bytes_of(BorrowedBody::One(&other)));
            }
        }
    }
}
