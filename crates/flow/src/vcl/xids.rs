//! The numbers of transactions: sessions, requests and fetches, as Varnish numbers them. Each core
//! takes them from a chunk of its own, as each of Varnish's workers does, so that requests write no
//! number that all cores write.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::live::Shared;

/// Numbers wrap before this, as in Varnish 7.1 (30 bits).
const WRAP: u64 = 1 << 30;

/// Numbers of one chunk, as in Varnish 7.1.
const CHUNK: u64 = 32_768;

/// Numbers from which chunks are known: where each begins that has been set anew.
static EPOCHS: AtomicU64 = AtomicU64::new(1);

/// What is left of a core's chunk.
#[derive(Clone, Copy, Debug, Default)]
struct Chunk {
    /// Chunks of another epoch are of another [`Xids`], or were taken before the numbers were set.
    epoch: u64,
    next: u64,
    end: u64,
}

thread_local! {
    static MINE: Cell<Chunk> = const { Cell::new(Chunk { epoch: 0, next: 0, end: 0 }) };
}

/// Hands numbers out, each once until they wrap.
#[derive(Debug)]
pub struct Xids {
    /// Where the next chunk begins.
    next: AtomicU64,
    chunk: AtomicU64,
    epoch: AtomicU64,
    /// Those of requests that are with a backend, with the key of the object that is fetched.
    out: Mutex<BTreeMap<u64, Option<u64>>>,
}

impl Default for Xids {
    fn default() -> Self {
        Self {
            next: AtomicU64::new(1),
            chunk: AtomicU64::new(CHUNK),
            epoch: AtomicU64::new(EPOCHS.fetch_add(1, Ordering::Relaxed)),
            out: Mutex::default(),
        }
    }
}

/// A request that is with a backend, until this is dropped.
pub(crate) struct Sent {
    shared: Arc<Shared>,
    number: u64,
}

impl Sent {
    /// One with this number, which leads the fetch of the object whose key has the hash `led`.
    pub(crate) fn new(shared: &Arc<Shared>, number: u64, led: Option<u64>) -> Self {
        shared.vcl.xids.out.lock().insert(number, led);
        Self { shared: Arc::clone(shared), number }
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        self.shared.vcl.xids.out.lock().remove(&self.number);
    }
}

impl Xids {
    /// The next number of this core.
    pub fn next(&self) -> u64 {
        let mut mine = MINE.get();
        loop {
            let epoch = self.epoch.load(Ordering::Acquire);
            if mine.epoch != epoch || mine.next == mine.end {
                let chunk = self.chunk.load(Ordering::Relaxed);
                let next = self.next.fetch_add(chunk, Ordering::Relaxed);
                mine = Chunk { epoch, next, end: next + chunk };
            }
            let number = mine.next % WRAP;
            mine.next += 1;
            // 0 is no transaction.
            if number != 0 {
                MINE.set(mine);
                return number;
            }
        }
    }

    /// The number before the next chunk, or 0.
    pub fn last(&self) -> u64 {
        self.next.load(Ordering::Relaxed).saturating_sub(1) % WRAP
    }

    /// Whether a request with this number is with a backend.
    pub(crate) fn is_sent(&self, number: u64) -> bool {
        self.out.lock().contains_key(&number)
    }

    /// Whether it is the fetch of the object whose key has this hash.
    pub(crate) fn leads(&self, number: u64, key_hash: u64) -> bool {
        self.out.lock().get(&number) == Some(&Some(key_hash))
    }

    /// Has the next number be the one after `last`, and chunks have so many numbers (`debug.xid`).
    pub fn set(&self, last: u64, chunk: u64) {
        self.chunk.store(chunk.clamp(1, CHUNK), Ordering::Relaxed);
        self.next.store(last.saturating_add(1) % WRAP, Ordering::Relaxed);
        self.epoch.store(EPOCHS.fetch_add(1, Ordering::Relaxed), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_one_that_was_set_and_are_never_zero() {
        let xids = Xids::default();
        assert_eq!((xids.next(), xids.next()), (1, 2));
        xids.set(999, 1);
        assert_eq!((xids.next(), xids.last()), (1000, 1000));
        xids.set(WRAP - 1, 1);
        assert_eq!(xids.next(), 1);
    }

    #[test]
    fn each_core_has_a_chunk_of_its_own() {
        let (xids, others) = (Xids::default(), Xids::default());
        let elsewhere = || {
            let take = || (xids.next(), xids.next());
            std::thread::scope(|scope| scope.spawn(take).join()).expect("no panic")
        };
        assert_eq!(xids.next(), 1);
        assert_eq!(elsewhere(), (CHUNK + 1, CHUNK + 2));
        assert_eq!((xids.next(), others.next()), (2, 1));
        xids.set(10, 2);
        assert_eq!((xids.next(), elsewhere(), xids.next()), (11, (13, 14), 12));
        assert_eq!(xids.next(), 15);
    }
}
