//! The ledger: the bytes that the store reserves of the budget ([`base::memory`]), and the store's
//! counters. It counts and rejects. It never evicts, which [`crate::Cache`] does.

use std::sync::Arc;

use base::{Allowance, MemoryBudget};

use crate::sync::{AtomicU64, Ordering};

/// A snapshot of the cache's counters and gauges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Stored responses, counting each variant.
    pub objects: u64,
    /// Hit-for-miss markers, including expired ones that no lookup has found yet.
    pub markers: u64,
    /// Bytes in use: heads, keys, index, bodies (including bodies of evicted objects that are still
    /// read), waiters and held bytes.
    pub bytes: u64,
    /// The part of them that is held for clients.
    pub held: u64,
    /// The part of the held bytes that open connections take.
    pub opened: u64,
    /// The limit of bytes held for clients.
    pub held_max: u64,
    /// The limit of bytes in use.
    pub budget: u64,
    /// Responses evicted for memory, or because their key had too many variants.
    pub evictions: u64,
    /// Responses stored, including those renewed by a 304.
    pub stores: u64,
    /// Responses not stored, or not to their end, for lack of memory.
    pub refused: u64,
    /// Responses that entered the main queue at once because their key was evicted a short while
    /// ago.
    pub ghosts: u64,
    /// These by the share of the main queue's responses that were evicted between: up to a quarter,
    /// a half, three quarters, more. With as much more memory they would have stayed, about.
    pub returned: [u64; 4],
    /// Responses removed by invalidation.
    pub invalidated: u64,
    /// Responses removed because they had expired.
    pub expired: u64,
    /// Bans added.
    pub bans: u64,
    /// The part of the bans that replaced one with the same text.
    pub ban_repeats: u64,
    /// Tests of responses against bans by lookups.
    pub ban_lookups: u64,
    /// The part of these tests that found a banned response.
    pub ban_lookups_met: u64,
    /// Tests of responses against bans by sweeps.
    pub ban_sweeps: u64,
    /// The part of these tests that found a banned response.
    pub ban_sweeps_met: u64,
    /// Responses not stored because their bodies were too large.
    pub too_large: u64,
    /// Bodies stored for some requests for their key only, which `Vary` selects.
    pub variants: u64,
    /// The part of them whose bytes another variant of the key has in common.
    pub variants_equal: u64,
    /// Responses evicted because their key had too many variants.
    pub variants_over: u64,
    /// Bans added beyond the limit of bans.
    pub bans_over: u64,
}

/// The distance between a key's eviction and its return: the share of the main queue by which
/// memory would have to be larger for the key to have stayed, about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReturnDistance {
    Quarter,
    Half,
    ThreeQuarters,
    Whole,
}

impl ReturnDistance {
    pub(crate) fn of(evictions: u32, window: u32) -> Self {
        match u64::from(evictions) * 4 / u64::from(window.max(1)) {
            0 => Self::Quarter,
            1 => Self::Half,
            2 => Self::ThreeQuarters,
            _ => Self::Whole,
        }
    }
}

/// The store's reservations in the budget, and its counters.
#[derive(Debug)]
pub(crate) struct Ledger {
    memory: Arc<MemoryBudget>,
    /// The bytes for the index of the lower tier, beside the budget.
    index: Arc<Allowance>,
    pub(crate) objects: AtomicU64,
    pub(crate) markers: AtomicU64,
    pub(crate) evictions: AtomicU64,
    pub(crate) stores: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) returned: [AtomicU64; 4],
    pub(crate) invalidated: AtomicU64,
    pub(crate) bans: AtomicU64,
    pub(crate) expired: AtomicU64,
    pub(crate) ban_repeats: AtomicU64,
    pub(crate) ban_lookups: AtomicU64,
    pub(crate) ban_lookups_met: AtomicU64,
    pub(crate) ban_sweeps: AtomicU64,
    pub(crate) ban_sweeps_met: AtomicU64,
    pub(crate) too_large: AtomicU64,
    pub(crate) variants: AtomicU64,
    pub(crate) variants_equal: AtomicU64,
    pub(crate) variants_over: AtomicU64,
    pub(crate) bans_over: AtomicU64,
}

impl Ledger {
    pub(crate) fn new(memory: Arc<MemoryBudget>, index: Arc<Allowance>) -> Self {
        Self {
            memory,
            index,
            objects: AtomicU64::new(0),
            markers: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
            stores: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            returned: [0; 4].map(AtomicU64::new),
            invalidated: AtomicU64::new(0),
            bans: AtomicU64::new(0),
            expired: AtomicU64::new(0),
            ban_repeats: AtomicU64::new(0),
            ban_lookups: AtomicU64::new(0),
            ban_lookups_met: AtomicU64::new(0),
            ban_sweeps: AtomicU64::new(0),
            ban_sweeps_met: AtomicU64::new(0),
            too_large: AtomicU64::new(0),
            variants: AtomicU64::new(0),
            variants_equal: AtomicU64::new(0),
            variants_over: AtomicU64::new(0),
            bans_over: AtomicU64::new(0),
        }
    }

    pub(crate) fn memory(&self) -> &Arc<MemoryBudget> {
        &self.memory
    }

    pub(crate) fn index(&self) -> &Arc<Allowance> {
        &self.index
    }

    /// Entries that eviction could remove.
    pub(crate) fn entries(&self) -> u64 {
        self.objects.load(Ordering::Relaxed) + self.markers.load(Ordering::Relaxed)
    }

    /// Reserves `bytes` if the budget permits it.
    pub(crate) fn try_reserve(&self, bytes: u64) -> bool {
        self.memory.try_store(bytes)
    }

    pub(crate) fn release(&self, bytes: u64) {
        self.memory.release(bytes);
    }

    /// Counts a response that has come back.
    pub(crate) fn count_returned(&self, distance: ReturnDistance) {
        count(&self.returned[distance as usize], 1);
    }

    pub(crate) fn stats(&self) -> Stats {
        let read = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        Stats {
            objects: read(&self.objects),
            markers: read(&self.markers),
            bytes: self.memory.used(),
            held: self.memory.held(),
            opened: self.memory.opened(),
            held_max: self.memory.held_max(),
            budget: self.memory.budget(),
            evictions: read(&self.evictions),
            stores: read(&self.stores),
            refused: read(&self.refused),
            ghosts: self.returned.iter().map(read).sum(),
            returned: self.returned.each_ref().map(read),
            invalidated: read(&self.invalidated),
            bans: read(&self.bans),
            expired: read(&self.expired),
            ban_repeats: read(&self.ban_repeats),
            ban_lookups: read(&self.ban_lookups),
            ban_lookups_met: read(&self.ban_lookups_met),
            ban_sweeps: read(&self.ban_sweeps),
            ban_sweeps_met: read(&self.ban_sweeps_met),
            too_large: read(&self.too_large),
            variants: read(&self.variants),
            variants_equal: read(&self.variants_equal),
            variants_over: read(&self.variants_over),
            bans_over: read(&self.bans_over),
        }
    }
}

/// Adds to one of the ledger's counters.
pub(crate) fn count(cell: &AtomicU64, n: u64) {
    cell.fetch_add(n, Ordering::Relaxed);
}

/// Subtracts from one of the ledger's gauges.
pub(crate) fn discount(cell: &AtomicU64, n: u64) {
    cell.fetch_sub(n, Ordering::Relaxed);
}

/// Reserved bytes, returned when dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    ledger: Arc<Ledger>,
    bytes: u64,
}

impl Charge {
    /// Reserves `bytes` without evicting anything.
    pub(crate) fn try_new(ledger: &Arc<Ledger>, bytes: u64) -> Option<Self> {
        ledger.try_reserve(bytes).then(|| Self { ledger: Arc::clone(ledger), bytes })
    }

    /// An empty charge, to be grown.
    pub(crate) fn empty(ledger: &Arc<Ledger>) -> Self {
        Self { ledger: Arc::clone(ledger), bytes: 0 }
    }

    pub(crate) fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Splits `bytes` off into a charge of their own.
    ///
    /// # Panics
    /// If the charge has fewer bytes.
    pub(crate) fn split(&mut self, bytes: u64) -> Self {
        self.bytes = self.bytes.checked_sub(bytes).expect("a part is not larger than the whole");
        Self { ledger: Arc::clone(&self.ledger), bytes }
    }

    /// Adds another charge of the same ledger to this one.
    pub(crate) fn join(&mut self, mut other: Self) {
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Reserves `bytes` more, without evicting anything.
    pub(crate) fn grow(&mut self, bytes: u64) -> bool {
        let reserved = self.ledger.try_reserve(bytes);
        if reserved {
            self.bytes += bytes;
        }
        reserved
    }

    /// Returns the bytes beyond `bytes`.
    pub(crate) fn shrink_to(&mut self, bytes: u64) {
        self.ledger.release(self.bytes.saturating_sub(bytes));
        self.bytes = self.bytes.min(bytes);
    }

    /// Leaves the bytes reserved. The caller returns them to the ledger later.
    pub(crate) fn into_ledger(mut self) -> Arc<Ledger> {
        self.bytes = 0;
        Arc::clone(&self.ledger)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.ledger.release(self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charge_never_exceeds_the_budget_and_is_given_back() {
        let ledger = Arc::new(Ledger::new(MemoryBudget::new(100, 0), Allowance::new(0)));
        let mut a = Charge::try_new(&ledger, 60).expect("there is room");
        assert!(Charge::try_new(&ledger, 41).is_none());
        let b = a.split(20);
        assert_eq!((a.bytes(), b.bytes()), (40, 20));
        drop(b);
        a.shrink_to(10);
        assert_eq!(ledger.stats().bytes, 10);
        let c = Charge::try_new(&ledger, 90).expect("there is room");
        a.join(c);
        assert!(!ledger.try_reserve(1));
        drop(a);
        assert_eq!(ledger.stats().bytes, 0);
        assert!(!ledger.try_reserve(u64::MAX));
    }
}
