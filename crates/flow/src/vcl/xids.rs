//! The numbers of transactions: sessions, requests and fetches, as Varnish numbers them.

use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers wrap before this, as in Varnish 7.1 (30 bits).
const WRAP: u64 = 1 << 30;

/// Hands numbers out, each once until they wrap.
#[derive(Debug)]
pub struct Xids(AtomicU64);

impl Default for Xids {
    fn default() -> Self {
        Self(AtomicU64::new(1))
    }
}

impl Xids {
    /// The next number.
    pub fn next(&self) -> u64 {
        loop {
            let number = self.0.fetch_add(1, Ordering::Relaxed) % WRAP;
            // 0 is no transaction.
            if number != 0 {
                return number;
            }
        }
    }

    /// The last number that was handed out, or 0.
    pub fn last(&self) -> u64 {
        self.0.load(Ordering::Relaxed).saturating_sub(1) % WRAP
    }

    /// Has the next number be the one after `last` (`debug.xid`).
    pub fn set(&self, last: u64) {
        self.0.store(last + 1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_one_that_was_set_and_are_never_zero() {
        let xids = Xids::default();
        assert_eq!((xids.next(), xids.next()), (1, 2));
        xids.set(999);
        assert_eq!(xids.next(), 1000);
        xids.set(WRAP - 1);
        assert_eq!(xids.next(), 1);
    }
}
