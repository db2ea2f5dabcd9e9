//! The work done under one hold of a shard's lock. It is counted where tests can see it, and
//! nowhere else.

#[cfg(test)]
use std::sync::atomic::{AtomicUsize, Ordering};

/// Entries moved, judged or taken out since the lock was taken.
#[derive(Debug, Default)]
pub(crate) struct Work {
    #[cfg(test)]
    now: AtomicUsize,
    #[cfg(test)]
    most: AtomicUsize,
}

#[cfg(not(test))]
impl Work {
    /// The lock has just been taken.
    pub(crate) fn begin(&self) {}

    /// So many entries more.
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
