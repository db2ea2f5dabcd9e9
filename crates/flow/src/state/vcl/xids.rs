//! The numbers of transactions: sessions, requests and fetches, as Varnish numbers them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// Numbers wrap before this, as in Varnish 7.1 (30 bits).
const WRAP: u64 = 1 << 30;

/// The numbers of requests that are with a backend.
type OutstandingNumbers = Mutex<BTreeMap<u64, Option<u64>>>;

/// Hands numbers out, each once until they wrap.
#[derive(Debug)]
pub struct Xids {
    next: AtomicU64,
    /// Those of requests that are with a backend, with the key of the object that is fetched.
    out: Arc<OutstandingNumbers>,
}

impl Default for Xids {
    fn default() -> Self {
        Self { next: AtomicU64::new(1), out: Arc::default() }
    }
}

/// A request that is with a backend, until this is dropped.
pub(crate) struct OutstandingRequest {
    out: Arc<OutstandingNumbers>,
    number: u64,
}

impl OutstandingRequest {
    /// One with this number, which leads the fetch of the object whose key has the hash `led`.
    pub(crate) fn new(xids: &Xids, number: u64, led: Option<u64>) -> Self {
        xids.out.lock().insert(number, led);
        Self { out: Arc::clone(&xids.out), number }
    }
}

impl Drop for OutstandingRequest {
    fn drop(&mut self) {
        self.out.lock().remove(&self.number);
    }
}

impl Xids {
    /// The next number.
    pub fn next(&self) -> u64 {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed) % WRAP;
            // 0 is no transaction.
            if number != 0 {
                return number;
            }
        }
    }

    /// The last number that was handed out, or 0.
    pub fn last(&self) -> u64 {
        self.next.load(Ordering::Relaxed).saturating_sub(1) % WRAP
    }

    /// Returns true if a request with this number is with a backend.
    pub(crate) fn is_sent(&self, number: u64) -> bool {
        self.out.lock().contains_key(&number)
    }

    /// Returns true if the request with this number is the fetch of the object whose key has this
    /// hash.
    pub(crate) fn leads(&self, number: u64, key_hash: u64) -> bool {
        self.out.lock().get(&number) == Some(&Some(key_hash))
    }

    /// Has the next number be the one after `last` (`debug.xid`).
    pub fn set(&self, last: u64) {
        self.next.store(last + 1, Ordering::Relaxed);
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
