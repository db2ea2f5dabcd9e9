//! Recovery state: the search for the records that former processes left on disk.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

/// The state of the search at the start.
#[derive(Debug, Default)]
pub(crate) struct DiskRecovery {
    /// The search is in progress.
    pub(crate) goes_on: AtomicBool,
    /// The number of the former invalidation that is being replayed; 0 for none.
    pub(crate) replayed: AtomicU64,
    /// Hashes of keys, and the number of each one's newest invalidation: older records are void.
    pub(crate) struck: Mutex<HashMap<u32, u64>>,
    /// Older records are void.
    pub(crate) floor: AtomicU64,
}

impl DiskRecovery {
    pub(crate) fn goes_on(&self) -> bool {
        self.goes_on.load(Ordering::Acquire)
    }

    /// Makes older records of this hash void, if they are found from now on.
    pub(crate) fn strike(&self, h32: u32) {
        if !self.goes_on() {
            return;
        }
        let number = match self.replayed.load(Ordering::Relaxed) {
            0 => u64::MAX,
            number => number,
        };
        let mut struck = self.struck.lock();
        let newest = struck.entry(h32).or_default();
        *newest = number.max(*newest);
    }

    pub(crate) fn wants(&self, h32: u32, order: u64) -> bool {
        let is_struck = || self.struck.lock().get(&h32).is_some_and(|number| order < *number);
        order >= self.floor.load(Ordering::Relaxed) && !is_struck()
    }

    pub(crate) fn end(&self) {
        self.goes_on.store(false, Ordering::Release);
        *self.struck.lock() = HashMap::new();
    }
}
