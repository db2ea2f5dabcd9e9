//! The concurrency limiter: what each client has under way at once, in a table of fixed size
//! without locks. A slot's mark and count are one machine word, so that no thread sees one without
//! the other. If all eight slots of a bucket are in use by others, a client shares the one with the
//! least under way: both reach the limit early, but never exceed it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Slots of a bucket: one cache line.
const PLACES: usize = 8;

/// Bits of the count in a machine word; the others are the client's mark.
const COUNT_BITS: u32 = 20;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

/// The largest count.
const MOST: u64 = COUNT_MASK - 1;

#[derive(Default)]
#[repr(align(64))]
struct LimiterBucket([AtomicU64; PLACES]);

/// The limiter of one kind of work.
///
/// A slot with count 0 is free. Work that began in a shared slot counts there until its end, even
/// if the client has got a slot of its own meanwhile.
pub struct ConcurrencyLimiter {
    buckets: Box<[LimiterBucket]>,
}

impl fmt::Debug for ConcurrencyLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crowd").field("buckets", &self.buckets.len()).finish()
    }
}

/// A permit for work under way, until it is dropped. It is small, because replies are moved with
/// it.
#[derive(Debug)]
pub struct ConcurrencyPermit(
    #[expect(dead_code, reason = "all that is done with it is to drop it")] PermitCount,
);

#[derive(Debug)]
enum PermitCount {
    /// A permit of the slot with this number.
    Once { limiter: Arc<ConcurrencyLimiter>, place: u32 },
    /// Permits of two limiters.
    #[expect(dead_code, reason = "the two are only dropped")]
    Both(Box<(ConcurrencyPermit, ConcurrencyPermit)>),
}

impl ConcurrencyPermit {
    /// This permit and that of another limiter, if any.
    #[must_use]
    pub fn with(self, other: Option<Self>) -> Self {
        match other {
            Some(other) => Self(PermitCount::Both(Box::new((self, other)))),
            None => self,
        }
    }
}

impl Drop for PermitCount {
    fn drop(&mut self) {
        if let Self::Once { limiter, place } = self {
            let place = *place as usize;
            // The count includes this permit, so it is not 0.
            limiter.buckets[place / PLACES].0[place % PLACES].fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl ConcurrencyLimiter {
    /// A table for at least `clients`, with a number of buckets that is a power of two.
    pub fn new(clients: usize) -> Arc<Self> {
        let buckets = clients.div_ceil(PLACES).clamp(1, 1 << 24).next_power_of_two();
        Arc::new(Self {
            buckets: std::iter::repeat_with(LimiterBucket::default).take(buckets).collect(),
        })
    }

    /// Bytes that a table for `clients` takes.
    pub fn bytes(clients: usize) -> u64 {
        let buckets = clients.div_ceil(PLACES).max(1).next_power_of_two() as u64;
        buckets * PLACES as u64 * 8
    }

    /// Returns a permit for the client with this `mark`, an even and secret hash, if it has fewer
    /// than `most` under way.
    pub fn acquire(self: &Arc<Self>, mark: u64, most: u32) -> Option<ConcurrencyPermit> {
        let (bucket, mark) = self.place_of(mark);
        let most = u64::from(most).min(MOST);
        loop {
            let (place, word) = self.buckets[bucket].choose(mark);
            let count = word & COUNT_MASK;
            if count >= most {
                return None;
            }
            let next = match count {
                0 => mark | 1,
                _ => word + 1,
            };
            let own = &self.buckets[bucket].0[place];
            let taken = own.compare_exchange_weak(word, next, Ordering::Relaxed, Ordering::Relaxed);
            if taken.is_ok() {
                // There are fewer than 2^32 slots.
                let place = (bucket * PLACES + place) as u32;
                return Some(ConcurrencyPermit(PermitCount::Once {
                    limiter: Arc::clone(self),
                    place,
                }));
            }
        }
    }

    /// The count under way for the client with this `mark`.
    pub fn under_way(&self, mark: u64) -> u64 {
        let (bucket, mark) = self.place_of(mark);
        self.buckets[bucket].choose(mark).1 & COUNT_MASK
    }

    /// The bucket of a mark, and the mark's bits in the word.
    fn place_of(&self, mark: u64) -> (usize, u64) {
        // The bits that the word leaves out are those that select the bucket.
        (mark as usize & (self.buckets.len() - 1), mark & !COUNT_MASK)
    }
}

impl LimiterBucket {
    /// The slot for `mark` and its word: its own, a free one, or the one with the least under way.
    fn choose(&self, mark: u64) -> (usize, u64) {
        let words = || self.0.iter().map(|own| own.load(Ordering::Relaxed)).enumerate();
        let is_own = |(_, word): &(usize, u64)| word & COUNT_MASK > 0 && word & !COUNT_MASK == mark;
        let least = || words().min_by_key(|(_, word)| word & COUNT_MASK);
        words().find(is_own).or_else(least).unwrap_or((0, 0))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::HashSeed;

    fn mark(client: u64) -> u64 {
        HashSeed::from_u64(7).hash(&client.to_le_bytes())
    }

    proptest! {
        #[test]
        fn it_counts_as_a_map_would(
            most in 1_u32..5,
            clients in 1_u64..40,
            steps in prop::collection::vec((any::<u64>(), any::<bool>()), 1..400),
        ) {
            let (large, small) = (ConcurrencyLimiter::new(4096), ConcurrencyLimiter::new(8));
            let mut permits: HashMap<u64, Vec<ConcurrencyPermit>> = HashMap::new();
            let mut few: HashMap<u64, Vec<ConcurrencyPermit>> = HashMap::new();
            for (who, comes) in steps {
                let who = who % clients;
                let (own, own_few) = (permits.entry(who).or_default(), few.entry(who).or_default());
                if comes {
                    let before = own.len();
                    prop_assert_eq!(large.under_way(mark(who)), before as u64);
                    own.extend(large.acquire(mark(who), most));
                    prop_assert_eq!(own.len(), (before + 1).min(most as usize));
                    own_few.extend(small.acquire(mark(who), most));
                } else {
                    own.pop();
                    own_few.pop();
                }
            }
            drop((permits, few));
            for table in [&large, &small] {
                let words = table.buckets.iter().flat_map(|bucket| &bucket.0);
                let left: u64 = words.map(|own| own.load(Ordering::Relaxed) & COUNT_MASK).sum();
                prop_assert_eq!(left, 0);
            }
        }
    }

    #[test]
    fn permits_of_several_limiters_end_together() {
        let limiters = [1, 2, 3].map(|_| ConcurrencyLimiter::new(8));
        let permit = limiters.iter().fold(None, |before, limiter| {
            let own = limiter.acquire(mark(1), 1).expect("there is room");
            Some(own.with(before))
        });
        assert!(limiters.iter().all(|limiter| limiter.acquire(mark(1), 1).is_none()));
        drop(permit);
        assert!(limiters.iter().all(|limiter| limiter.acquire(mark(1), 1).is_some()));
        assert_eq!(size_of::<Option<ConcurrencyPermit>>(), 16);
    }

    #[test]
    fn a_full_bucket_is_shared() {
        let limiter = ConcurrencyLimiter::new(8);
        let permits: Vec<_> = (0..8).filter_map(|who| limiter.acquire(mark(who), 2)).collect();
        let more: Vec<_> = (100..200).filter_map(|who| limiter.acquire(mark(who), 2)).collect();
        assert_eq!((permits.len(), more.len()), (8, 8));
        drop(more);
        assert!(limiter.acquire(mark(0), 2).is_some());
    }

    #[test]
    fn threads_together_let_in_as_many_as_may() {
        let limiter = ConcurrencyLimiter::new(64);
        let come = || (0..50).filter_map(|_| limiter.acquire(mark(1), 70)).collect::<Vec<_>>();
        let permits: Vec<ConcurrencyPermit> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(come)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
        });
        assert_eq!((permits.len(), limiter.under_way(mark(1))), (70, 70));
        drop(permits);
        assert_eq!(limiter.under_way(mark(1)), 0);
    }
}
