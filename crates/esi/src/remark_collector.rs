//! Lines of a page that comes in pieces.

use crate::remark::{Remark, RemarkKind, Remarks};

/// Remarks on a page, and where in it the parser stands.
#[derive(Debug, Default)]
pub(crate) struct RemarkCollector {
    /// Offset of the piece, and the number of lines that have ended before it.
    begin: u64,
    ended: u64,
    remarks: Remarks,
    /// Remarks that have their lines. The others have the offset where they were noticed instead.
    numbered: usize,
    most: usize,
}

impl RemarkCollector {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// The offset of the piece that is being read.
    pub(crate) const fn offset(&self) -> u64 {
        self.begin
    }

    /// Remarks on what is `from` an offset on, noticed at `at`.
    pub(crate) fn remark(&mut self, what: RemarkKind, from: u64, at: u64) {
        self.remarks.add(Remark { offset: from, line: at, what }, self.most);
    }

    /// Ends a piece.
    pub(crate) fn end(&mut self, bytes: &[u8]) {
        let mut counted = 0;
        for remark in self.remarks.list_mut().iter_mut().skip(self.numbered) {
            let at = usize::try_from(remark.line - self.begin).unwrap_or(usize::MAX);
            let at = at.clamp(counted, bytes.len());
            self.ended += ends(&bytes[counted..at]);
            counted = at;
            remark.line = self.ended + 1;
        }
        self.numbered = self.remarks.list().len();
        self.ended += ends(&bytes[counted..]);
        self.begin += bytes.len() as u64;
    }

    pub(crate) fn finish(mut self) -> Remarks {
        self.end(b"");
        self.remarks
    }
}

fn ends(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}
