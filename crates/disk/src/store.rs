//! The store's shared state: its volumes, in use or not, for its threads and its owner.

mod threads;

use std::sync::Arc;

pub(crate) use threads::Threads;

use crate::checksum::seed_of;
use crate::journal::{JournalItem, StoreBaseline};
use crate::record_address::RecordAddress;
use crate::segment::Segment;
use crate::stats::Stats;
use crate::sync::{AtomicU64, Mutex, RwLock};
use crate::volume::{StoreContext, Volume};

/// A volume's slot in the store, in use or not.
pub(crate) struct VolumeSlot {
    /// `None` if it could not be opened.
    pub(crate) volume: RwLock<Option<Arc<Volume>>>,
    pub(crate) weight: u32,
    /// True if the slot has no volume and no start can find records of it: it was taken out before
    /// this start, or could not be created.
    pub(crate) is_bare: bool,
    pub(crate) absence: Mutex<Absence>,
}

/// The state of a volume that could not be opened.
#[derive(Debug, Default)]
pub(crate) struct Absence {
    /// The reason.
    pub(crate) why: String,
    /// The time of the next attempt, on the monotonic clock.
    pub(crate) until_ms: u64,
    /// True while an attempt is under way.
    pub(crate) is_tried: bool,
}

impl VolumeSlot {
    /// Returns true if no start can find records of the volume.
    pub(crate) fn is_void(&self) -> bool {
        self.volume.read().as_ref().map_or(self.is_bare, |volume| volume.health.is_void())
    }
}

/// The part of a store that its threads and its owner share.
pub(crate) struct StoreCore {
    pub(crate) slots: Vec<VolumeSlot>,
    pub(crate) shared: Arc<StoreContext>,
    pub(crate) beginning: StoreBaseline,
    /// Counters of volumes that have been replaced.
    pub(crate) past: Mutex<Stats>,
    /// The time of the sentinel's next check, on the monotonic clock.
    pub(crate) planned_ms: AtomicU64,
    pub(crate) threads: Threads,
}

impl StoreCore {
    /// All volumes that are open.
    pub(crate) fn volumes(&self) -> impl Iterator<Item = Arc<Volume>> {
        self.slots.iter().filter_map(|slot| slot.volume.read().clone())
    }

    pub(crate) fn volume_at(&self, place: RecordAddress) -> Option<Arc<Volume>> {
        self.slots.get(place.volume())?.volume.read().clone()
    }

    /// The volume for a record. Each has a share by its weight, and a volume that is out leaves its
    /// share to the others without moving theirs (weighted rendezvous hashing).
    pub(crate) fn volume_of(&self, hash: u64) -> Option<Arc<Volume>> {
        let mut best: Option<(f64, Arc<Volume>)> = None;
        for (number, slot) in (0..).zip(&self.slots) {
            let Some(volume) = slot.volume.read().clone() else { continue };
            if !volume.health.is_in() {
                continue;
            }
            let drawn = seed_of(number, &[hash]) >> 11;
            let share = (drawn as f64 + 0.5) / (1_u64 << 53) as f64;
            let score = f64::from(slot.weight) / -share.ln();
            if best.as_ref().is_none_or(|(most, _)| score > *most) {
                best = Some((score, volume));
            }
        }
        best.map(|(_, volume)| volume)
    }

    pub(crate) fn live_segments(&self, value: impl Fn(&Segment) -> u64) -> Option<u64> {
        let mut least = None;
        for volume in self.volumes() {
            for segment in &volume.segments {
                let segment = segment.lock();
                if segment.counts() {
                    let value = value(&segment);
                    least = Some(least.map_or(value, |least: u64| least.min(value)));
                }
            }
        }
        least
    }

    /// Adds an item to all journals. Volumes that are out write nothing.
    pub(crate) fn push(&self, item: &JournalItem) -> Vec<(Arc<Volume>, u64)> {
        self.note_taken_out();
        // A volume that is out keeps it for its next beginning.
        let push = |volume: Arc<Volume>| {
            let is_out = volume.health.is_out();
            let ticket = volume.journal.push(item.clone());
            (!is_out).then_some((volume, ticket))
        };
        let tickets: Vec<(Arc<Volume>, u64)> = self.volumes().filter_map(push).collect();
        if self.shared.config.append_waits {
            tickets.iter().for_each(|(volume, _)| volume.hurry());
        }
        tickets
    }

    /// Notes in all journals the volumes that have been taken out.
    pub(crate) fn note_taken_out(&self) {
        let taken_out = std::mem::take(&mut *self.shared.taken_out.lock());
        if taken_out.is_empty() {
            return;
        }
        let volumes = self.volumes().filter(|volume| !volume.health.is_out());
        for volume in volumes {
            for (id, number) in &taken_out {
                volume.journal.push(JournalItem::Out(*id, *number));
            }
            volume.hurry();
        }
    }
}
