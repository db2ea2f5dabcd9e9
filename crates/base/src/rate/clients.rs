//! The clients of one rate: a table of their debts, of fixed size and without locks. A client has a
//! slot in one bucket of eight. In a full bucket a new client replaces the one with the least debt
//! **and takes over that debt** (Space-Saving), so the debt of a slot never decreases. So no client
//! is ever admitted more often than its rate permits, and all together no more often than there are
//! slots.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Admission, Rate, RemainingQuota, moment_ns};

/// Slots of a bucket: their marks are one cache line, their debts another.
const PLACES: usize = 8;

/// Bytes of one slot.
const PLACE_BYTES: u64 = 16;

/// Attempts to find a slot while other threads take the selected ones. Then a slot is shared.
const TRIES: usize = 4;

#[derive(Default)]
#[repr(align(64))]
struct Marks([AtomicU64; PLACES]);

/// Eight slots.
#[derive(Default)]
struct Bucket {
    /// The clients' marks; 0 for a free slot.
    marks: Marks,
    /// The moments until which they are in debt.
    owed_ns: [AtomicU64; PLACES],
}

/// The debts of the clients of one rate.
///
/// A client without debt gives its slot up without loss. A replaced client finds at least its own
/// debt when it returns. The price is that a new client in a full bucket may begin with another's
/// debt. Two threads that insert one new client while its bucket changes may give it two slots; it
/// then gains what was counted in the second.
pub struct RateTable {
    buckets: Box<[Bucket]>,
    displaced: AtomicU64,
}

impl fmt::Debug for RateTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateTable").field("buckets", &self.buckets.len()).finish_non_exhaustive()
    }
}

/// The outcome of [`RateTable::admit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmissionResult {
    /// The decision.
    pub admission: Admission,
    /// True if the client replaced another that was in debt.
    pub displaced: bool,
}

impl RateTable {
    /// A table for at least `clients`, with a number of buckets that is a power of two.
    pub fn new(clients: usize) -> Self {
        let buckets = clients.div_ceil(PLACES).max(1).next_power_of_two();
        let buckets = std::iter::repeat_with(Bucket::default).take(buckets).collect();
        Self { buckets, displaced: AtomicU64::new(0) }
    }

    /// Bytes that a table for `clients` takes.
    pub fn bytes(clients: usize) -> u64 {
        let buckets = clients.div_ceil(PLACES).max(1).next_power_of_two() as u64;
        buckets * PLACES as u64 * PLACE_BYTES
    }

    /// Decides about a request at `now_ms` of the client with this `mark`, an even and secret hash.
    pub fn admit(&self, rate: &Rate, mark: u64, now_ms: u64) -> AdmissionResult {
        let now_ns = moment_ns(now_ms);
        let bucket = self.bucket(mark);
        let (place, displaced) = bucket.take_place(mark.max(1), now_ns);
        if displaced {
            self.displaced.fetch_add(1, Ordering::Relaxed);
        }
        let owed = &bucket.owed_ns[place];
        let mut before = owed.load(Ordering::Relaxed);
        let admission = loop {
            let (admission, next) = rate.admit(before, now_ns);
            if next == before {
                break admission;
            }
            match owed.compare_exchange_weak(before, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => break admission,
                Err(now) => before = now,
            }
        };
        AdmissionResult { admission, displaced }
    }

    /// Predicts the result of [`RateTable::admit`], and the remaining quota. Changes nothing.
    pub fn foresee(&self, rate: &Rate, mark: u64, now_ms: u64) -> (Admission, RemainingQuota) {
        let now_ns = moment_ns(now_ms);
        let bucket = self.bucket(mark);
        let place = bucket.find(mark.max(1)).unwrap_or_else(|| bucket.least(now_ns).0);
        let owed_ns = bucket.owed_ns[place].load(Ordering::Relaxed);
        (rate.admit(owed_ns, now_ns).0, rate.left(owed_ns, now_ns))
    }

    /// Clients that were replaced while they were in debt.
    pub fn displaced(&self) -> u64 {
        self.displaced.load(Ordering::Relaxed)
    }

    fn bucket(&self, mark: u64) -> &Bucket {
        // Their number is a power of two; all bits of a mark are equally good.
        &self.buckets[mark as usize & (self.buckets.len() - 1)]
    }
}

impl Bucket {
    fn find(&self, mark: u64) -> Option<usize> {
        self.marks.0.iter().position(|own| own.load(Ordering::Relaxed) == mark)
    }

    /// The slot with the least debt, and true if it has any.
    fn least(&self, now_ns: u64) -> (usize, bool) {
        let owed = |place: &usize| self.owed_ns[*place].load(Ordering::Relaxed);
        let place = (0..PLACES).min_by_key(owed).unwrap_or(0);
        (place, owed(&place) > now_ns)
    }

    /// The slot of `mark`, found or taken, and true if a client in debt had it.
    fn take_place(&self, mark: u64, now_ns: u64) -> (usize, bool) {
        let mut chosen = 0;
        for _ in 0..TRIES {
            if let Some(place) = self.find(mark) {
                return (place, false);
            }
            let (place, owes) = self.least(now_ns);
            let own = &self.marks.0[place];
            let before = own.load(Ordering::Relaxed);
            let taken = own.compare_exchange(before, mark, Ordering::Relaxed, Ordering::Relaxed);
            if taken.is_ok() {
                return (place, owes);
            }
            chosen = place;
        }
        (chosen, false)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::HashSeed;
    use crate::rate::RateQuota;

    fn mark(client: u64) -> u64 {
        HashSeed::from_u64(7).hash(&client.to_le_bytes())
    }

    fn is_in(admission: Admission) -> bool {
        !matches!(admission, Admission::Refused(_))
    }

    proptest! {
        /// With room for all clients it decides as if each had a table of its own. Without room it
        /// never favours a client.
        #[test]
        fn no_client_is_admitted_more_often_than_alone(
            burst in 0_u32..6,
            queue in 0_u32..6,
            clients in 1_u64..80,
            visits in prop::collection::vec((any::<u64>(), 0_u64..40), 1..600),
        ) {
            let rate = Rate::new(RateQuota { count: 10, per_ms: 1000 }, burst, queue);
            let (small, large) = (RateTable::new(16), RateTable::new(4096));
            let (mut alone, mut small_owed) = (HashMap::new(), HashMap::new());
            let mut now_ms = 0;
            for (who, step_ms) in visits {
                now_ms += step_ms;
                let who = who % clients;
                let owed = alone.entry(who).or_insert(0);
                let (said, next) = rate.admit(*owed, moment_ns(now_ms));
                *owed = next;
                let foreseen = large.foresee(&rate, mark(who), now_ms).0;
                let admitted = large.admit(&rate, mark(who), now_ms);
                prop_assert_eq!(admitted, AdmissionResult { admission: said, displaced: false });
                prop_assert_eq!(foreseen, said);
                // The admissions of the small table are counted by a model with room for every
                // client.
                let owed = small_owed.entry(who).or_insert(0);
                let (most, next) = rate.admit(*owed, moment_ns(now_ms));
                if is_in(small.admit(&rate, mark(who), now_ms).admission) {
                    prop_assert!(is_in(most), "client {} beyond its rate", who);
                    *owed = next;
                }
            }
        }

        /// Any number of clients is admitted no more often than the slots permit.
        #[test]
        fn any_number_of_clients_is_admitted_no_more_often_than_the_slots_permit(
            clients in 17_u64..5000,
            visits in 100_usize..3000,
        ) {
            let rate = Rate::new(RateQuota { count: 1, per_ms: 3_600_000 }, 3, 0);
            let table = RateTable::new(16);
            let visit = |n: usize| table.admit(&rate, mark(n as u64 % clients), 1).admission;
            let admitted = (0..visits).filter(|n| is_in(visit(*n))).count();
            prop_assert!(admitted <= 16 * 4, "{}", admitted);
            prop_assert!(visits <= 16 || table.displaced() > 0);
        }
    }

    #[test]
    fn a_limited_client_stays_limited_while_others_come_once() {
        let rate = Rate::new(RateQuota { count: 1, per_ms: 3_600_000 }, 3, 0);
        let table = RateTable::new(8);
        let come = |who| table.admit(&rate, mark(who), 1).admission;
        assert_eq!((0..4).filter(|_| is_in(come(0))).count(), 4);
        assert!(!is_in(come(0)));
        // Enough for each slot except the first client's to be replaced twice.
        (1..=21).for_each(|other| _ = come(other));
        assert!(!is_in(come(0)));
        assert!(table.bucket(mark(0)).find(mark(0)).is_some());
    }

    #[test]
    fn who_owes_nothing_gives_up_his_place_at_no_loss() {
        let rate = Rate::new(RateQuota { count: 1, per_ms: 1000 }, 0, 0);
        let table = RateTable::new(8);
        for second in 1..100 {
            for who in 0..8 {
                let client = second * 8 + who;
                let admitted = table.admit(&rate, mark(client), second * 1000);
                let expected = AdmissionResult { admission: Admission::Now, displaced: false };
                assert_eq!(admitted, expected);
            }
        }
        assert_eq!(table.displaced(), 0);
    }

    #[test]
    fn threads_together_admit_what_one_would() {
        let rate = Rate::new(RateQuota { count: 1, per_ms: 3_600_000 }, 99, 0);
        let table = RateTable::new(64);
        let come = || is_in(table.admit(&rate, mark(1), 1).admission);
        let admitted: usize = std::thread::scope(|scope| {
            let many = || (0..200).filter(|_| come()).count();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(many)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum()
        });
        assert_eq!(admitted, 100);
    }
}
