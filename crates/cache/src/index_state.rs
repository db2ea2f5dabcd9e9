//! The index state of an object: its hits, its place in the queues, its weight, and the ledger that
//! gets its bytes back. Only the shard changes the place and the weight, under its lock.

use std::sync::Arc;

use crate::ledger::Ledger;
use crate::sync::{AtomicU8, AtomicU32, Ordering};

/// The unit of an object's weight in bytes. Every size class is a multiple of it.
const WEIGHT_BYTES: u64 = 16;

/// [`IndexState::place`]: in the index.
pub(crate) const LIVE: u8 = 1;
/// [`IndexState::place`]: in the main queue, not the small one.
pub(crate) const MAIN: u8 = 2;
/// [`IndexState::place`]: the body will never be complete. No object with this body may enter the
/// index.
pub(crate) const BROKEN: u8 = 4;

/// The two frequency bits, and their highest value. The hits are counted above them.
const FREQUENCY: u32 = 3;
/// One more hit.
const HIT: u32 = FREQUENCY + 1;

/// The demotion of a response that is evicted from memory, as its maker sets it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum DemotionPolicy {
    /// The lower tier takes it if it is worth a write.
    #[default]
    ByMerit,
    /// It stays in memory alone.
    Never,
    /// The lower tier takes it if it has room.
    Always,
}

/// The layout is chosen by hand; see [`Object`](crate::Object).
#[derive(Debug)]
#[repr(C)]
pub(crate) struct IndexState {
    // A hit has just counted a reference, so this core owns the line, and a plain load and store
    // costs nothing more. Of two concurrent hits one may not be counted. A locked add on every hit
    // would cost more than the exact number is worth.
    hits: AtomicU32,
    /// The object's token in the queues.
    pub(crate) id: u32,
    /// The weight of the object for eviction, in units of [`WEIGHT_BYTES`].
    weight: AtomicU32,
    place: AtomicU8,
    /// A [`DemotionPolicy`].
    sinks: AtomicU8,
    /// The ledger that gets the bytes back; `None` if there was no memory to reserve.
    pub(crate) ledger: Option<Arc<Ledger>>,
}

impl IndexState {
    pub(crate) fn new(id: u32, ledger: Option<Arc<Ledger>>) -> Self {
        Self {
            hits: AtomicU32::new(0),
            id,
            weight: AtomicU32::new(0),
            place: AtomicU8::new(0),
            sinks: AtomicU8::new(0),
            ledger,
        }
    }

    /// Hits so far: approximate, and at most 2^30.
    pub(crate) fn hits(&self) -> u32 {
        self.hits.load(Ordering::Relaxed) / HIT
    }

    /// Counts a hit.
    pub(crate) fn touch(&self) {
        let before = self.hits.load(Ordering::Relaxed);
        let more = HIT + u32::from(before & FREQUENCY < FREQUENCY);
        self.hits.store(before.saturating_add(more), Ordering::Relaxed);
    }

    /// Adds the hits of another object.
    pub(crate) fn count_on(&self, other: &Self) {
        let own = self.hits.load(Ordering::Relaxed);
        let before = other.hits.load(Ordering::Relaxed) & !FREQUENCY;
        self.hits.store(own.saturating_add(before), Ordering::Relaxed);
    }

    /// Hits since eviction's last visit, at most three.
    pub(crate) fn frequency(&self) -> u8 {
        (self.hits.load(Ordering::Relaxed) & FREQUENCY) as u8
    }

    /// Sets the hits that eviction counts, at most three. A concurrent hit may be lost.
    pub(crate) fn set_frequency(&self, frequency: u8) {
        let hits = self.hits.load(Ordering::Relaxed) & !FREQUENCY;
        self.hits.store(hits | (u32::from(frequency) & FREQUENCY), Ordering::Relaxed);
    }

    pub(crate) fn set_sinks(&self, sinks: DemotionPolicy) {
        self.sinks.store(sinks as u8, Ordering::Relaxed);
    }

    pub(crate) fn sinks(&self) -> DemotionPolicy {
        match self.sinks.load(Ordering::Relaxed) {
            1 => DemotionPolicy::Never,
            2 => DemotionPolicy::Always,
            _ => DemotionPolicy::ByMerit,
        }
    }

    pub(crate) fn place(&self) -> u8 {
        self.place.load(Ordering::Relaxed)
    }

    pub(crate) fn is_live(&self) -> bool {
        self.place() & LIVE != 0
    }

    /// To be called only under the shard's lock.
    pub(crate) fn set_place(&self, place: u8) {
        self.place.store(place, Ordering::Relaxed);
    }

    /// Marks the object as removed from the index. To be called only under the shard's lock.
    pub(crate) fn set_out(&self) {
        self.set_place(self.place() & BROKEN);
    }

    /// Marks the body as incomplete for good. To be called only under the shard's lock, or before
    /// the object is shared.
    pub(crate) fn set_broken(&self) {
        self.set_place(self.place() | BROKEN);
    }

    pub(crate) fn weight(&self) -> u64 {
        u64::from(self.weight.load(Ordering::Relaxed)) * WEIGHT_BYTES
    }

    /// To be called only under the shard's lock. The weight is in whole units of [`WEIGHT_BYTES`],
    /// at most 64 GiB.
    pub(crate) fn set_weight(&self, weight: u64) {
        let units = u32::try_from(weight.div_ceil(WEIGHT_BYTES)).unwrap_or(u32::MAX);
        self.weight.store(units, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn hits_and_frequency_are_counted_apart() {
        let index_state = IndexState::new(7, None);
        for hits in 1..=5_u32 {
            index_state.touch();
            assert_eq!((index_state.hits(), index_state.frequency()), (hits, hits.min(3) as u8));
        }
        index_state.set_frequency(1);
        assert_eq!((index_state.hits(), index_state.frequency()), (5, 1));
        index_state.hits.store(u32::MAX - 5, Ordering::Relaxed);
        (0..3).for_each(|_| index_state.touch());
        assert_eq!((index_state.hits(), index_state.frequency()), (u32::MAX / 4, 3));
        index_state.set_frequency(0);
        index_state.touch();
        assert_eq!(index_state.hits(), u32::MAX / 4, "it stays");
        let (old, new) = (IndexState::new(8, None), IndexState::new(9, None));
        (0..5).for_each(|_| old.touch());
        new.touch();
        new.count_on(&old);
        assert_eq!((new.hits(), new.frequency()), (6, 1));
        new.count_on(&index_state);
        assert!(new.hits() >= u32::MAX / 4, "no overflow");
    }
}
