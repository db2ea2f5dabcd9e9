//! The work counter of a shard: entries moved, examined or removed under one hold of its lock. It
//! exists in tests only.

#[cfg(test)]
use std::sync::atomic::{AtomicUsize, Ordering};

/// Entries moved, examined or removed since the lock was taken.
#[derive(Debug, Default)]
pub(crate) struct Work {
    #[cfg(test)]
    now: AtomicUsize,
    #[cfg(test)]
    most: AtomicUsize,
}

#[cfg(not(test))]
impl Work {
    /// Begins a new hold of the lock.
    pub(crate) fn begin(&self) {}

    /// Counts this many entries.
    pub(crate) fn add(&self, _entries: usize) {}
}

#[cfg(test)]
impl Work {
    pub(crate) fn begin(&self) {
        self.now.store(0, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, entries: usize) {
        let now = self.now.fetch_add(entries, Ordering::Relaxed) + entries;
        self.most.fetch_max(now, Ordering::Relaxed);
    }

    /// The most under one hold so far.
    pub(crate) fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }
}
