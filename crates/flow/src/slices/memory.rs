//! What all cores remember of slices: numbers of sets, what ended sets have left behind, and
//! origins that send no ranges.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::{HashSeed, KeyBuf};
use cache::Cache;
use parking_lot::Mutex;

use super::set::slice_key;

/// Slices that one sweep of a core looks for.
const SWEPT: u64 = 16 * 1024;
/// Origins remembered at once.
const ORIGINS_MAX: usize = 1024;

/// The memory of all cores.
#[derive(Debug, Default)]
pub(crate) struct SliceMemory {
    next: AtomicU64,
    /// Sets that have ended, and the numbers of their slices.
    remains: Mutex<Vec<Remains>>,
    /// Until when origins are not asked for ranges, by name.
    rangeless: Mutex<HashMap<Arc<str>, u64>>,
}

/// Slices that nobody can reach any more.
#[derive(Debug)]
pub(super) struct Remains {
    pub(super) id: u64,
    pub(super) next: u64,
    pub(super) end: u64,
}

impl SliceMemory {
    /// A number that no other set has.
    pub(super) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn leave(&self, remains: Remains) {
        self.remains.lock().push(remains);
    }

    /// Removes slices that ended sets have left, a bounded number of them.
    pub(crate) fn sweep(&self, cache: &Cache, seed: &HashSeed) {
        let mut left = SWEPT;
        let mut key = KeyBuf::new();
        while left > 0 {
            let Some(mut remains) = self.remains.lock().pop() else { return };
            let end = remains.end.min(remains.next.saturating_add(left));
            for number in remains.next..end {
                slice_key(seed, remains.id, number, &mut key);
                cache.forget(&key);
            }
            left -= end - remains.next;
            remains.next = end;
            if end < remains.end {
                self.leave(remains);
            }
        }
    }

    /// Remembers until `until_ms` that the origin of this name sends no ranges.
    pub(crate) fn note_rangeless(&self, origin: &Arc<str>, (now_ms, until_ms): (u64, u64)) {
        let mut rangeless = self.rangeless.lock();
        if rangeless.len() >= ORIGINS_MAX {
            rangeless.retain(|_, until_ms| *until_ms > now_ms);
        }
        if rangeless.len() < ORIGINS_MAX {
            rangeless.insert(Arc::clone(origin), until_ms);
        }
    }

    /// Returns true if the origin of this name is not to be asked for ranges now.
    pub(crate) fn is_rangeless(&self, origin: &str, now_ms: u64) -> bool {
        self.rangeless.lock().get(origin).is_some_and(|until_ms| now_ms < *until_ms)
    }
}
