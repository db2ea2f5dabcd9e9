//! Memory that all cores share about slices: numbers of sets, what ended sets have left behind, and
//! origins that send no ranges.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::{HashSeed, KeyBuf};
use parking_lot::Mutex;

use crate::key::slice_key;
use crate::state::term::Term;
use crate::state::tier::Cache;

/// Slices that one sweep of a core looks for.
const SWEPT: u64 = 16 * 1024;
/// Origins remembered at once.
const ORIGINS_MAX: usize = 1024;

/// The memory of all cores, and the store that slices lie in.
pub(crate) struct SliceMemory {
    pub(crate) cache: Arc<Cache>,
    /// The secret of the keys' hashes.
    pub(crate) seed: HashSeed,
    /// The next set's number. Slices of former processes may be on disk: it begins anywhere.
    next: AtomicU64,
    /// Sets that have ended, and the numbers of their slices.
    remains: Mutex<Vec<Remains>>,
    /// Origins that have answered a request for a first range with something else.
    pub(crate) unprobed: Origins,
    /// Origins that have answered a request for a slice with something else.
    pub(crate) unsliced: Origins,
}

/// Names of origins that something is not tried with for a time.
#[derive(Debug, Default)]
pub(crate) struct Origins(Mutex<HashMap<Arc<str>, u64>>);

/// Slices that nobody can reach any more.
#[derive(Debug)]
pub(crate) struct Remains {
    pub(crate) id: u64,
    pub(crate) next: u64,
    pub(crate) end: u64,
}

impl SliceMemory {
    /// No set yet.
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

    /// A number that no other set has.
    pub(crate) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn leave(&self, remains: Remains) {
        self.remains.lock().push(remains);
    }

    /// Removes slices that ended sets have left, a bounded number of them.
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
    /// Takes one in for `term`, which begins now.
    pub(crate) fn note(&self, origin: &Arc<str>, term: Term) {
        let mut names = self.0.lock();
        if names.len() >= ORIGINS_MAX {
            names.retain(|_, until_ms| *until_ms > term.from_ms);
        }
        if names.len() < ORIGINS_MAX {
            names.insert(Arc::clone(origin), term.until_ms);
        }
    }

    /// Returns true if the one of this name is among them.
    pub(crate) fn has(&self, origin: &str, now_ms: u64) -> bool {
        self.0.lock().get(origin).is_some_and(|until_ms| now_ms < *until_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_remembered_for_a_time_and_no_more_than_so_many() {
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
