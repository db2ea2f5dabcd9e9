//! The sequence of numbers that records and invalidations of all volumes share. A record put during
//! an invalidation must count as older than the invalidation.

use std::collections::BTreeSet;

use crate::sync::{AtomicU64, Mutex, Ordering};

/// Bits for the numbers of one session: a million a second for twelve days.
const SESSION_SHIFT: u32 = 40;

/// A counter of increasing numbers, also over sessions.
#[derive(Debug)]
pub(crate) struct SequenceCounter {
    next: AtomicU64,
    /// The oldest invalidation that is being carried out; `u64::MAX` without one.
    oldest: AtomicU64,
    pending: Mutex<BTreeSet<u64>>,
}

impl SequenceCounter {
    pub(crate) fn of_session(session: u64) -> Self {
        let next = AtomicU64::new((session << SESSION_SHIFT) + 1);
        Self { next, oldest: AtomicU64::new(u64::MAX), pending: Mutex::default() }
    }

    /// The first number of a session.
    pub(crate) fn first(session: u64) -> u64 {
        session << SESSION_SHIFT
    }

    /// The next number.
    pub(crate) fn take(&self) -> u64 {
        self.next.fetch_add(1, Ordering::SeqCst)
    }

    /// A number above all numbers taken so far.
    pub(crate) fn now(&self) -> u64 {
        self.next.load(Ordering::SeqCst)
    }

    /// The order of the record with number `seq`: before every invalidation that is being carried
    /// out, because it may have missed the record.
    pub(crate) fn order_of(&self, seq: u64) -> u64 {
        seq.min(self.oldest.load(Ordering::SeqCst).saturating_sub(1))
    }

    /// Takes the number of an invalidation, which is being carried out until
    /// [`SequenceCounter::end`].
    pub(crate) fn begin(&self) -> u64 {
        let mut pending = self.pending.lock();
        // A record with a higher number sees that the invalidation is being carried out.
        self.oldest.fetch_min(self.now(), Ordering::SeqCst);
        let number = self.take();
        pending.insert(number);
        number
    }

    /// Ends an invalidation that has been carried out.
    pub(crate) fn end(&self, number: u64) {
        let mut pending = self.pending.lock();
        pending.remove(&number);
        self.oldest.store(pending.first().copied().unwrap_or(u64::MAX), Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_put_during_an_invalidation_are_older_than_it() {
        let order = SequenceCounter::of_session(3);
        let before = order.take();
        assert_eq!(order.order_of(before), before);
        let (first, second) = (order.begin(), order.begin());
        let during = order.take();
        assert!(during > second && order.order_of(during) < first);
        order.end(first);
        let later = order.order_of(order.take());
        assert!(later < second && later >= first);
        order.end(second);
        let after = order.take();
        assert_eq!(order.order_of(after), after);
        assert_eq!(after >> SESSION_SHIFT, 3);
        assert!(
            SequenceCounter::first(4) > after
                && SequenceCounter::of_session(4).take() > SequenceCounter::first(4)
        );
    }
}
