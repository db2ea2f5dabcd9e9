//! Collector of remarks that numbers their lines, while a page comes in pieces. It never counts a
//! byte twice.

use crate::remark::{Remark, RemarkKind, Remarks};

/// Remarks so far, and the parser's position.
#[derive(Debug, Default)]
pub(crate) struct RemarkCollector {
    /// Offset of the current piece; `ended` counts the lines that ended before it.
    begin: u64,
    ended: u64,
    remarks: Remarks,
    /// Number of remarks with a line. The others hold an offset in `line` until the piece ends.
    numbered: usize,
    most: usize,
}

impl RemarkCollector {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// Offset of the current piece.
    pub(crate) const fn offset(&self) -> u64 {
        self.begin
    }

    /// Adds a remark on the text at offset `from`, found at offset `at`.
    pub(crate) fn remark(&mut self, kind: RemarkKind, from: u64, at: u64) {
        self.remarks.add(Remark { offset: from, line: at, kind }, self.most);
    }

    /// Ends a piece: numbers the lines of its remarks.
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
