//! The ghost queue of S3-FIFO: which keys left the small queue a short while ago.

use std::sync::Arc;

use crate::ledger::{Charge, Ledger};
use crate::size;

const WAYS: usize = 4;
const SMALLEST: usize = 64;

/// Remembers the last so many hashes it was told: a table of four-way buckets with the time (a
/// count of insertions) beside each hash, so that what is too old simply does not count any more.
#[derive(Debug, Default)]
pub(crate) struct Ghost {
    /// Hash and time of insertion; time zero is an empty place. A power of two.
    entries: Box<[(u32, u32)]>,
    time: u32,
    charge: Option<Charge>,
}

impl Ghost {
    fn bucket(&self, h32: u32) -> std::ops::Range<usize> {
        // The low bits choose the place in the shard's table; these are others.
        let buckets = self.entries.len() / WAYS;
        let at = (h32.rotate_left(16) as usize & (buckets - 1)) * WAYS;
        at..at + WAYS
    }

    /// Remembers `h32` among the last `window` ones.
    pub(crate) fn insert(&mut self, h32: u32, window: usize, ledger: &Arc<Ledger>) {
        if self.entries.len() < window.max(SMALLEST) {
            self.grow(window, ledger);
        }
        if self.entries.is_empty() {
            return;
        }
        self.time = self.time.wrapping_add(1).max(1);
        let (time, bucket) = (self.time, self.bucket(h32));
        let age =
            |entry: &(u32, u32)| if entry.1 == 0 { u32::MAX } else { time.wrapping_sub(entry.1) };
        let oldest = self.entries[bucket].iter_mut().max_by_key(|entry| age(entry));
        if let Some(entry) = oldest {
            *entry = (h32, time);
        }
    }

    /// Whether `h32` is among the last `window` ones; it is forgotten.
    pub(crate) fn take(&mut self, h32: u32, window: usize) -> bool {
        if self.entries.is_empty() {
            return false;
        }
        let (time, bucket) = (self.time, self.bucket(h32));
        let window = window.max(SMALLEST) as u32;
        let found = self.entries[bucket]
            .iter_mut()
            .find(|entry| entry.0 == h32 && entry.1 != 0 && time.wrapping_sub(entry.1) < window);
        match found {
            Some(entry) => {
                *entry = (0, 0);
                true
            }
            None => false,
        }
    }

    /// A larger table if the budget has room for it beside the old one; the old one will do
    /// otherwise.
    fn grow(&mut self, window: usize, ledger: &Arc<Ledger>) {
        let places = window.max(SMALLEST).next_power_of_two();
        let Some(charge) = Charge::try_new(ledger, size::class(places * size_of::<(u32, u32)>()))
        else {
            return;
        };
        let old = std::mem::replace(&mut self.entries, vec![(0, 0); places].into_boxed_slice());
        for entry in old.iter().filter(|entry| entry.1 != 0) {
            let bucket = self.bucket(entry.0);
            if let Some(free) = self.entries[bucket].iter_mut().find(|place| place.1 == 0) {
                *free = *entry;
            }
        }
        drop(old);
        self.charge = Some(charge);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_left_recently_is_known_once() {
        let ledger = Arc::new(Ledger::new(base::Memory::new(1 << 20, 0)));
        let mut ghost = Ghost::default();
        assert!(!ghost.take(7, 100));
        ghost.insert(7, 100, &ledger);
        assert!(ghost.take(7, 100));
        assert!(!ghost.take(7, 100));
    }

    #[test]
    fn what_left_long_ago_is_forgotten() {
        let ledger = Arc::new(Ledger::new(base::Memory::new(1 << 20, 0)));
        let mut ghost = Ghost::default();
        ghost.insert(7, 100, &ledger);
        for other in 0..100_u32 {
            ghost.insert((other + 1).wrapping_mul(0x9e37_79b9), 100, &ledger);
        }
        assert!(!ghost.take(7, 100));
    }

    #[test]
    fn memory_is_bounded_by_the_window_and_given_back() {
        let ledger = Arc::new(Ledger::new(base::Memory::new(4096, 0)));
        let mut ghost = Ghost::default();
        for h32 in 0..10_000 {
            ghost.insert(h32, 1_000_000, &ledger);
        }
        assert_eq!(ledger.stats().bytes, 0, "no room, no memory");
        for h32 in 0..10_000 {
            ghost.insert(h32, 256, &ledger);
        }
        assert_eq!(ledger.stats().bytes, 256 * 8);
        drop(ghost);
        assert_eq!(ledger.stats().bytes, 0);
    }
}
