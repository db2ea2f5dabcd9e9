//! The one sequence that records and invalidations share, over all volumes.

use std::collections::BTreeSet;

use crate::sync::{AtomicU64, Mutex, Ordering};

/// Bits for the numbers of one session: a million a second for twelve days, each second of it.
const SESSION_SHIFT: u32 = 40;

/// Gives numbers that only grow, from session to session, too.
#[derive(Debug)]
pub(crate) struct SequenceCounter {
    next: AtomicU64,
    /// The oldest invalidation that is still being carried out; `u64::MAX` without any.
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

    /// A number above all that were given.
    pub(crate) fn now(&self) -> u64 {
        self.next.load(Ordering::SeqCst)
    }

    /// The place in the order of a record that has number `seq`: before every invalidation that is
    /// still being carried out, as its effect may miss the record.
    pub(crate) fn order_of(&self, seq: u64) -> u64 {
        seq.min(self.oldest.load(Ordering::SeqCst).saturating_sub(1))
    }

    /// The number of an invalidation, which is carried out until [`Order::end`].
    pub(crate) fn begin(&self) -> u64 {
        let mut pending = self.pending.lock();
        // Whoever takes a number above this one's sees an invalidation that goes on.
        self.oldest.fetch_min(self.now(), Ordering::SeqCst);
        let number = self.take();
        pending.insert(number);
        number
    }

    /// The invalidation has had its effect.
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
    fn records_of_while_an_invalidation_goes_on_are_older_than_it() {
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
