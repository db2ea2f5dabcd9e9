//! A body to be stored: bytes of the caller, in whatever form they are until they are written.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

/// Bytes in the caller's memory, immutable while they are borrowed.
pub trait BorrowedBytes: Debug + Send + Sync {
    /// The number of bytes.
    fn size(&self) -> u64;
    /// Calls `each` with all bytes, in chunks and in order.
    fn pieces(&self, each: &mut dyn FnMut(&[u8]));
}

/// A body, in memory.
#[derive(Clone, Debug)]
pub enum Body {
    /// A body of one chunk.
    Bytes(Bytes),
    /// A body in the caller's own form.
    Lent(Arc<dyn BorrowedBytes>),
}

impl Body {
    /// The number of bytes.
    pub fn size(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Lent(lent) => lent.size(),
        }
    }

    /// Calls `each` with the bytes of `range`, in chunks.
    pub(crate) fn pieces(&self, range: &Range<u64>, each: &mut dyn FnMut(&[u8])) {
        let mut at = 0;
        let mut cut = |piece: &[u8]| {
            let part = within(range, at, piece.len() as u64);
            at += piece.len() as u64;
            if !part.is_empty() {
                each(&piece[part]);
            }
        };
        match self {
            Self::Bytes(bytes) => cut(bytes),
            Self::Lent(lent) => lent.pieces(&mut cut),
        }
    }

    /// The bytes of `range`.
    pub(crate) fn copy(&self, range: Range<u64>) -> Bytes {
        if let Self::Bytes(bytes) = self {
            return bytes.slice(within(&range, 0, bytes.len() as u64));
        }
        let mut copied = Vec::with_capacity((range.end - range.start) as usize);
        self.pieces(&range, &mut |piece| copied.extend_from_slice(piece));
        copied.into()
    }
}

/// The part of a chunk of `len` bytes at `at` that lies in `range`.
fn within(range: &Range<u64>, at: u64, len: u64) -> Range<usize> {
    let clip = |edge: u64| edge.saturating_sub(at).min(len) as usize;
    clip(range.start)..clip(range.end)
}

/// Chunks that the store has read and writes again.
#[derive(Debug)]
pub(crate) struct RecordPieces(pub(crate) Vec<Bytes>);

impl BorrowedBytes for RecordPieces {
    fn size(&self) -> u64 {
        self.0.iter().map(|piece| piece.len() as u64).sum()
    }

    fn pieces(&self, each: &mut dyn FnMut(&[u8])) {
        self.0.iter().for_each(|piece| each(piece));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_out_of_pieces() {
        let pieces = vec![Bytes::from_static(b"abc"), Bytes::new(), Bytes::from_static(b"defgh")];
        let lent = Body::Lent(Arc::new(RecordPieces(pieces)));
        let whole = Body::Bytes(Bytes::from_static(b"abcdefgh"));
        assert_eq!((lent.size(), whole.size()), (8, 8));
        for start in 0..8 {
            for end in start..=8 {
                let expected = whole.copy(start..end);
                assert_eq!(expected, &b"abcdefgh"[start as usize..end as usize]);
                assert_eq!(lent.copy(start..end), expected);
            }
        }
    }
}
