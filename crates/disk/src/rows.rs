//! The rows of a segment's records in memory, reserved in the allowance of the index.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use base::Allowance;

use crate::layout::{ROW_BYTES, Row};

/// The least capacity, and the least growth.
const ROWS_MIN: usize = 16;
/// The capacity grows by one part in this many.
const GROWTH_PARTS: usize = 4;

/// Rows in the order of their records.
#[derive(Debug)]
pub(crate) struct Rows {
    rows: Vec<Row>,
    room: Arc<Allowance>,
}

impl Rows {
    pub(crate) fn new(room: &Arc<Allowance>) -> Self {
        Self { rows: Vec::new(), room: Arc::clone(room) }
    }

    pub(crate) fn room(&self) -> &Arc<Allowance> {
        &self.room
    }

    /// Bytes of memory that the rows take.
    pub(crate) fn bytes(&self) -> u64 {
        (self.rows.capacity() * ROW_BYTES) as u64
    }

    /// Reserves exactly this many more rows.
    pub(crate) fn reserve(&mut self, more: usize) {
        self.resize(|rows| rows.reserve_exact(more));
    }

    pub(crate) fn push(&mut self, row: Row) {
        if self.rows.len() == self.rows.capacity() {
            self.reserve((self.rows.len() / GROWTH_PARTS).max(ROWS_MIN));
        }
        self.rows.push(row);
    }

    /// Reduces the capacity to the rows.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.resize(Vec::shrink_to_fit);
    }

    fn resize(&mut self, resize: impl FnOnce(&mut Vec<Row>)) {
        let before = self.bytes();
        resize(&mut self.rows);
        self.room.take(self.bytes());
        self.room.give(before);
    }
}

impl Deref for Rows {
    type Target = [Row];

    fn deref(&self) -> &[Row] {
        &self.rows
    }
}

impl DerefMut for Rows {
    fn deref_mut(&mut self) -> &mut [Row] {
        &mut self.rows
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        self.room.give(self.bytes());
    }
}
