//! Slice memory of all cores: numbers of sets, slices of ended sets, and origins without ranges.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::{HashSeed, KeyBuf};
use parking_lot::Mutex;

use crate::key::slice_key;
use crate::state::term::Term;
use crate::state::tier::Cache;

/// Slices that one sweep looks up.
const SWEPT: u64 = 16 * 1024;
/// Origins that are remembered.
const ORIGINS_MAX: usize = 1024;

/// The slice memory of all cores, and the store of the slices.
pub(crate) struct SliceMemory {
    pub(crate) cache: Arc<Cache>,
    /// The secret seed of key hashes.
    pub(crate) seed: HashSeed,
    /// The number of the next set. It starts at random: slices of former processes may be on disk.
    next: AtomicU64,
    /// Ended sets, and the numbers of their slices.
    remains: Mutex<Vec<Remains>>,
    /// Origins that did not send a first range.
    pub(crate) unprobed: Origins,
    /// Origins that did not send a slice.
    pub(crate) unsliced: Origins,
}

/// Names of origins that are not asked for ranges for a time.
#[derive(Debug, Default)]
pub(crate) struct Origins(Mutex<HashMap<Arc<str>, u64>>);

/// Slices that no set contains any more.
#[derive(Debug)]
pub(crate) struct Remains {
    pub(crate) id: u64,
    pub(crate) next: u64,
    pub(crate) end: u64,
}

impl SliceMemory {
    /// An empty memory.
    pub(crate) fn new(cache: &Arc<Cache>, seed: HashSeed) -> Self {
        Self {
            cache: Arc::clone(cache),
            seed,
            next: AtomicU64::new(HashSeed::draw()),
            remains: Mutex::default(),
            unprobed: Origins::default(),
            unsliced: Origins::default(),
        }
    }

    /// A unique number for a set.
    pub(crate) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn leave(&self, remains: Remains) {
        self.remains.lock().push(remains);
    }

    /// Removes slices of ended sets, a bounded number of them.
    pub(crate) fn sweep(&self) {
        let mut left = SWEPT;
        let mut key = KeyBuf::new();
        while left > 0 {
            let Some(mut remains) = self.remains.lock().pop() else { return };
            let end = remains.end.min(remains.next.saturating_add(left));
            for number in remains.next..end {
                slice_key(&self.seed, remains.id, number, &mut key);
                self.cache.forget(&key);
            }
            left -= end - remains.next;
            remains.next = end;
            if end < remains.end {
                self.leave(remains);
            }
        }
    }
}

impl Origins {
    /// Adds an origin for `term`.
    pub(crate) fn note(&self, origin: &Arc<str>, term: Term) {
        let mut names = self.0.lock();
        if names.len() >= ORIGINS_MAX {
            names.retain(|_, until_ms| *until_ms > term.from_ms);
        }
        if names.len() < ORIGINS_MAX {
            names.insert(Arc::clone(origin), term.until_ms);
        }
    }

    /// Returns true if the origin is contained.
    pub(crate) fn has(&self, origin: &str, now_ms: u64) -> bool {
        self.0.lock().get(origin).is_some_and(|until_ms| now_ms < *until_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_remembered_for_a_time_and_in_bounded_number() {
        let origins = Origins::default();
        for number in 0..2 * ORIGINS_MAX {
            let term = Term { from_ms: 1000, until_ms: 2000 };
            origins.note(&format!("o{number}").into(), term);
        }
        assert!(origins.has("o0", 1999) && !origins.has("o0", 2000));
        assert!(!origins.has(&format!("o{ORIGINS_MAX}"), 1999), "there is no room");
        origins.note(&"late".into(), Term { from_ms: 2000, until_ms: 3000 });
        assert!(origins.has("late", 2000), "what is over makes room");
    }
}
