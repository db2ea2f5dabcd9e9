//! The state of finding what was on disk at the start.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

/// The state of finding what was there at the start.
#[derive(Debug, Default)]
pub(crate) struct DiskRecovery {
    /// Not everything has been found.
    pub(crate) goes_on: AtomicBool,
    /// The number of the invalidation of a former process that is taking effect; 0 for none.
    pub(crate) replayed: AtomicU64,
    /// Hashes of keys, and the number of the newest invalidation of each: older records are void.
    pub(crate) struck: Mutex<HashMap<u32, u64>>,
    /// Records that are older are void.
    pub(crate) floor: AtomicU64,
}

impl DiskRecovery {
    pub(crate) fn goes_on(&self) -> bool {
        self.goes_on.load(Ordering::Acquire)
    }

    /// Whatever is found under this hash from now on is void, if it is older than this.
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
