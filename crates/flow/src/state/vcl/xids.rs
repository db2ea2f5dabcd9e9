//! Transaction numbers (XIDs) of sessions, requests and fetches, as in Varnish.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// Numbers wrap before this, as in Varnish 7.1 (30 bits).
const WRAP: u64 = 1 << 30;

/// Numbers of requests that are sent to a backend.
type OutstandingNumbers = Mutex<BTreeMap<u64, Option<u64>>>;

/// A source of numbers, each unique until they wrap.
#[derive(Debug)]
pub struct Xids {
    next: AtomicU64,
    /// The numbers of requests at a backend, with the key hash of the object fetched.
    out: Arc<OutstandingNumbers>,
}

impl Default for Xids {
    fn default() -> Self {
        Self { next: AtomicU64::new(1), out: Arc::default() }
    }
}

/// A request at a backend; removed on drop.
pub(crate) struct OutstandingRequest {
    out: Arc<OutstandingNumbers>,
    number: u64,
}

impl OutstandingRequest {
    /// The request of this number; `led` is the key hash of the object that it fetches.
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

    /// The last number, or 0.
    pub fn last(&self) -> u64 {
        self.next.load(Ordering::Relaxed).saturating_sub(1) % WRAP
    }

    /// Returns true if the request of this number is at a backend.
    pub(crate) fn is_sent(&self, number: u64) -> bool {
        self.out.lock().contains_key(&number)
    }

    /// Returns true if the request of this number fetches the object with this key hash.
    pub(crate) fn leads(&self, number: u64, key_hash: u64) -> bool {
        self.out.lock().get(&number) == Some(&Some(key_hash))
    }

    /// Sets the next number to the one after `last` (`debug.xid`).
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
