//! The ghost queue of S3-FIFO: hashes of the keys that were evicted from the small queue lately. It
//! stores no keys and no objects.

use std::sync::Arc;

use crate::ledger::{Charge, Ledger, ReturnDistance};
use crate::size;

const WAYS: usize = 4;
const SMALLEST: usize = 64;

/// The last so many hashes: a table of four-way buckets with the time (a count of insertions)
/// beside each hash, so that old entries expire without being removed. A larger table does not copy
/// the former one, which is looked up as well until all its entries have expired.
#[derive(Debug, Default)]
pub(crate) struct Ghost {
    current: GhostTable,
    former: GhostTable,
    /// The time at which the former table was replaced.
    left: u32,
    time: u32,
}

#[derive(Debug, Default)]
struct GhostTable {
    /// Hash and time of insertion; time zero is an empty entry. The number is a power of two.
    entries: Box<[(u32, u32)]>,
    /// Returned with the entries.
    _charge: Option<Charge>,
}

impl GhostTable {
    fn bucket(&mut self, h32: u32) -> &mut [(u32, u32)] {
        if self.entries.is_empty() {
            return &mut [];
        }
        // The low bits select the place in the shard's table, so other bits are used here.
        let buckets = self.entries.len() / WAYS;
        let at = (h32.rotate_left(16) as usize & (buckets - 1)) * WAYS;
        &mut self.entries[at..at + WAYS]
    }
}

impl Ghost {
    /// Inserts `h32`, among the last `window` hashes.
    pub(crate) fn insert(&mut self, h32: u32, window: usize, ledger: &Arc<Ledger>) {
        let window = window.max(SMALLEST);
        if self.current.entries.len() < window {
            self.grow(window, ledger);
        }
        self.time = self.time.wrapping_add(1).max(1);
        let time = self.time;
        if !self.former.entries.is_empty() && time.wrapping_sub(self.left) as usize >= window {
            self.former = GhostTable::default();
        }
        let age =
            |entry: &(u32, u32)| if entry.1 == 0 { u32::MAX } else { time.wrapping_sub(entry.1) };
        let oldest = self.current.bucket(h32).iter_mut().max_by_key(|entry| age(entry));
        if let Some(entry) = oldest {
            *entry = (h32, time);
        }
    }

    /// Removes `h32`, and returns its distance if it was among the last `window` hashes.
    pub(crate) fn take(&mut self, h32: u32, window: usize) -> Option<ReturnDistance> {
        let (time, window) = (self.time, window.max(SMALLEST) as u32);
        let is_it = |entry: &&mut (u32, u32)| {
            entry.0 == h32 && entry.1 != 0 && time.wrapping_sub(entry.1) < window
        };
        let mut tables = [&mut self.current, &mut self.former].into_iter();
        let entry = tables.find_map(|table| table.bucket(h32).iter_mut().find(is_it))?;
        let (_, then) = std::mem::take(entry);
        Some(ReturnDistance::of(time.wrapping_sub(then), window))
    }

    /// Returns true if `h32` is among the last `window` hashes; otherwise inserts it.
    pub(crate) fn contains_or_insert(
        &mut self,
        h32: u32,
        window: usize,
        ledger: &Arc<Ledger>,
    ) -> bool {
        let time = self.time;
        let is_it = |entry: &&mut (u32, u32)| {
            entry.0 == h32 && entry.1 != 0 && time.wrapping_sub(entry.1) as usize <= window
        };
        let is_in = |table: &mut GhostTable| table.bucket(h32).iter_mut().any(|it| is_it(&it));
        let is_known = is_in(&mut self.current) || is_in(&mut self.former);
        if !is_known {
            self.insert(h32, window, ledger);
        }
        is_known
    }

    /// Begins a larger table if the budget has room for both. Otherwise the old table goes on.
    fn grow(&mut self, window: usize, ledger: &Arc<Ledger>) {
        let places = window.next_power_of_two();
        let Some(charge) = Charge::try_new(ledger, size::class(places * size_of::<(u32, u32)>()))
        else {
            return;
        };
        let entries = vec![(0, 0); places].into_boxed_slice();
        let larger = GhostTable { entries, _charge: Some(charge) };
        self.former = std::mem::replace(&mut self.current, larger);
        self.left = self.time;
    }
}

#[cfg(test)]
mod tests {
    use base::Allowance;

    use super::*;

    #[test]
    fn what_left_recently_is_known_once() {
        let ledger = Arc::new(Ledger::new(base::MemoryBudget::new(1 << 20, 0), Allowance::new(0)));
        let mut ghost = Ghost::default();
        assert!(ghost.take(7, 100).is_none());
        ghost.insert(7, 100, &ledger);
        assert!(ghost.take(7, 100).is_some());
        assert!(ghost.take(7, 100).is_none());
    }

    #[test]
    fn what_left_long_ago_is_forgotten() {
        let ledger = Arc::new(Ledger::new(base::MemoryBudget::new(1 << 20, 0), Allowance::new(0)));
        let mut ghost = Ghost::default();
        ghost.insert(7, 100, &ledger);
        for other in 0..100_u32 {
            ghost.insert((other + 1).wrapping_mul(0x9e37_79b9), 100, &ledger);
        }
        assert!(ghost.take(7, 100).is_none());
    }

    #[test]
    fn what_is_met_twice_among_so_many_is_known() {
        let ledger = Arc::new(Ledger::new(base::MemoryBudget::new(1 << 20, 0), Allowance::new(0)));
        let mut ghost = Ghost::default();
        assert!(!ghost.contains_or_insert(7, 2, &ledger));
        assert!(
            ghost.contains_or_insert(7, 2, &ledger) && ghost.contains_or_insert(7, 2, &ledger),
            "it stays"
        );
        assert!(
            !ghost.contains_or_insert(8, 2, &ledger) && ghost.contains_or_insert(7, 2, &ledger)
        );
        assert!(
            !ghost.contains_or_insert(9, 2, &ledger) && !ghost.contains_or_insert(10, 2, &ledger)
        );
        assert!(!ghost.contains_or_insert(7, 2, &ledger), "three others came since");
        assert!(ghost.take(7, 2).is_some(), "it comes back as what has left");
    }

    #[test]
    fn a_larger_table_forgets_nothing_and_the_former_one_is_given_back() {
        let ledger = Arc::new(Ledger::new(base::MemoryBudget::new(1 << 20, 0), Allowance::new(0)));
        let mut ghost = Ghost::default();
        let hash = |n: u32| n.wrapping_mul(0x9e37_79b9);
        (0..60).for_each(|n| ghost.insert(hash(n), 64, &ledger));
        ghost.insert(hash(60), 256, &ledger);
        assert_eq!(ledger.stats().bytes, (64 + 256) * 8);
        assert!(ghost.take(hash(59), 256).is_some() && ghost.take(hash(60), 256).is_some());
        assert!(ghost.take(hash(59), 256).is_none(), "it is forgotten");
        (61..320).for_each(|n| ghost.insert(hash(n), 256, &ledger));
        assert_eq!(ledger.stats().bytes, 256 * 8);
        assert!(ghost.take(hash(58), 256).is_none() && ghost.take(hash(319), 256).is_some());
    }

    #[test]
    fn the_distance_of_a_return_is_its_share_of_the_window() {
        let ledger = Arc::new(Ledger::new(base::MemoryBudget::new(1 << 20, 0), Allowance::new(0)));
        for (others, distance) in [
            (0, ReturnDistance::Quarter),
            (99, ReturnDistance::Quarter),
            (100, ReturnDistance::Half),
            (250, ReturnDistance::ThreeQuarters),
            (399, ReturnDistance::Whole),
        ] {
            let mut ghost = Ghost::default();
            ghost.insert(7, 400, &ledger);
            (0..others).for_each(|_| ghost.insert(1 << 16, 400, &ledger));
            assert_eq!(ghost.take(7, 400), Some(distance), "{others}");
        }
    }

    #[test]
    fn memory_is_bounded_by_the_window_and_given_back() {
        let ledger = Arc::new(Ledger::new(base::MemoryBudget::new(4096, 0), Allowance::new(0)));
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
