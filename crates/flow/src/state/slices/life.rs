//! Life of a set's slices.

use std::sync::{Arc, Weak};

use super::memory::{Remains, SliceMemory};

/// The life of a set's slices: they are removed once neither memory nor disk has the set.
pub(crate) struct SliceLife {
    pub(crate) id: u64,
    /// The number of slices.
    pub(crate) count: u64,
    pub(crate) memory: Weak<SliceMemory>,
}

impl SliceLife {
    /// The life of `count` slices.
    pub(crate) fn new(memory: &Arc<SliceMemory>, id: u64, count: u64) -> Arc<Self> {
        Arc::new(Self { id, count, memory: Arc::downgrade(memory) })
    }
}

impl std::fmt::Debug for SliceLife {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SliceLife").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Drop for SliceLife {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.upgrade() {
            // The store may be locked here: a sweep removes the slices.
            memory.leave(Remains { id: self.id, next: 0, end: self.count });
        }
    }
}
