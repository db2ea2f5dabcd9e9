//! An allowance: bytes of memory for one purpose, with a limit of their own beside the budget. It
//! counts and rejects; it frees nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The last part of an allowance, one in this many. When it is reached, its users begin to return
/// bytes.
const LAST_PARTS: u64 = 16;

/// Bytes in use against a limit.
#[derive(Debug)]
pub struct Allowance {
    used: AtomicU64,
    most: AtomicU64,
    refused: AtomicU64,
}

impl Allowance {
    /// An allowance of `most` bytes.
    pub fn new(most: u64) -> Arc<Self> {
        let (used, most, refused) = (AtomicU64::new(0), AtomicU64::new(most), AtomicU64::new(0));
        Arc::new(Self { used, most, refused })
    }

    /// Changes the limit. Bytes in use beyond a smaller one stay until they are returned.
    pub fn set_most(&self, most: u64) {
        self.most.store(most, Ordering::Relaxed);
    }

    /// The limit.
    pub fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }

    /// Bytes in use.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Counts `bytes` as used. Returns false, without effect, if fewer are left.
    pub fn try_take(&self, bytes: u64) -> bool {
        let most = self.most();
        let more = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= most);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Counts `bytes` as used, even beyond the limit.
    pub fn take(&self, bytes: u64) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns `bytes`.
    pub fn give(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Returns true if nothing is left.
    pub fn is_full(&self) -> bool {
        self.used() >= self.most()
    }

    /// Returns true if so little is left that users should return some.
    pub fn is_short(&self) -> bool {
        let most = self.most();
        self.used() > most - most / LAST_PARTS
    }

    /// Counts a rejection for lack of these bytes.
    pub fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Rejections for lack of these bytes.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowance_rejects_at_its_limit_and_is_short_before() {
        let allowance = Allowance::new(160);
        assert!(allowance.try_take(150) && !allowance.is_short());
        assert!(!allowance.try_take(11) && allowance.try_take(10));
        assert!(allowance.is_full() && allowance.is_short());
        allowance.take(40);
        assert_eq!(allowance.used(), 200);
        allowance.give(100);
        assert!(!allowance.is_short() && !allowance.try_take(u64::MAX));
        allowance.set_most(100);
        assert!(allowance.is_full());
    }
}
