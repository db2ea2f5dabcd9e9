//! An object's standing with the index: how often it was hit, where it is queued, what it weighs,
//! and to whom it gives its bytes back.

use std::sync::Arc;

use crate::ledger::Ledger;
use crate::sync::{AtomicU8, AtomicU32, Ordering};

/// The unit of an object's weight, in bytes: every size class is a multiple of it.
const WEIGHT_BYTES: u64 = 16;

/// [`Standing::place`]: in the index.
pub(crate) const LIVE: u8 = 1;
/// [`Standing::place`]: in the main queue, not the small one.
pub(crate) const MAIN: u8 = 2;
/// [`Standing::place`]: the body will never be complete; nothing that delivers it may enter the
/// index.
pub(crate) const BROKEN: u8 = 4;

/// The two frequency bits, and their highest value. The hits are counted above them.
const FREQUENCY: u32 = 3;
/// One hit more.
const HIT: u32 = FREQUENCY + 1;

/// A response's way when it leaves memory, as far as its maker says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum DemotionPolicy {
    /// The lower tier takes it if it is worth that.
    #[default]
    ByMerit,
    /// It is for memory alone.
    Never,
    /// The lower tier takes it if it has room.
    Always,
}

/// Laid out by hand: [`Object`](crate::Object) says why.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct IndexState {
    // A hit has just counted a reference, so this core owns the line: a plain load and store costs
    // nothing more here. Two cores hitting at the very same time may count one hit; a locked add on
    // every hit would cost more than the number is worth.
    hits: AtomicU32,
    /// Its token in the queues.
    pub(crate) id: u32,
    /// The weight that eviction counts for the object, in units of [`WEIGHT_BYTES`].
    weight: AtomicU32,
    place: AtomicU8,
    /// A [`Sinks`].
    sinks: AtomicU8,
    /// To whom the bytes are given back; `None` if there was no room to reserve any.
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

    /// Hits so far: about, and no more than a thousand million.
    pub(crate) fn hits(&self) -> u32 {
        self.hits.load(Ordering::Relaxed) / HIT
    }

    /// Counts a hit.
    pub(crate) fn touch(&self) {
        let before = self.hits.load(Ordering::Relaxed);
        let more = HIT + u32::from(before & FREQUENCY < FREQUENCY);
        self.hits.store(before.saturating_add(more), Ordering::Relaxed);
    }

    /// Counts on from the hits of another.
    pub(crate) fn count_on(&self, other: &Self) {
        let own = self.hits.load(Ordering::Relaxed);
        let before = other.hits.load(Ordering::Relaxed) & !FREQUENCY;
        self.hits.store(own.saturating_add(before), Ordering::Relaxed);
    }

    /// Hits since eviction looked at it last: at most three.
    pub(crate) fn frequency(&self) -> u8 {
        (self.hits.load(Ordering::Relaxed) & FREQUENCY) as u8
    }

    /// Has at most three hits count with eviction. A hit meanwhile may not be counted.
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

    /// Only under the shard's lock.
    pub(crate) fn set_place(&self, place: u8) {
        self.place.store(place, Ordering::Relaxed);
    }

    /// Out of the index. Only under the shard's lock.
    pub(crate) fn set_out(&self) {
        self.set_place(self.place() & BROKEN);
    }

    /// The body will never be complete. Only under the shard's lock, or before anybody else has the
    /// object.
    pub(crate) fn set_broken(&self) {
        self.set_place(self.place() | BROKEN);
    }

    pub(crate) fn weight(&self) -> u64 {
        u64::from(self.weight.load(Ordering::Relaxed)) * WEIGHT_BYTES
    }

    /// Only under the shard's lock. The weight is in whole units of [`WEIGHT_BYTES`], and at most
    /// 64 GiB.
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
        let standing = IndexState::new(7, None);
        for hits in 1..=5_u32 {
            standing.touch();
            assert_eq!((standing.hits(), standing.frequency()), (hits, hits.min(3) as u8));
        }
        standing.set_frequency(1);
        assert_eq!((standing.hits(), standing.frequency()), (5, 1));
        standing.hits.store(u32::MAX - 5, Ordering::Relaxed);
        (0..3).for_each(|_| standing.touch());
        assert_eq!((standing.hits(), standing.frequency()), (u32::MAX / 4, 3));
        standing.set_frequency(0);
        standing.touch();
        assert_eq!(standing.hits(), u32::MAX / 4, "it stays");
        let (old, new) = (IndexState::new(8, None), IndexState::new(9, None));
        (0..5).for_each(|_| old.touch());
        new.touch();
        new.count_on(&old);
        assert_eq!((new.hits(), new.frequency()), (6, 1));
        new.count_on(&standing);
        assert!(new.hits() >= u32::MAX / 4, "no overflow");
    }
}
