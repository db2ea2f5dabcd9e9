//! A hold: the segments of a record that is read for a client are pinned, so they are not
//! reclaimed. Readers that can fetch again respect a limit of pinned segments. Other readers always
//! get their pin, and if no segment is left, new records are rejected.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use crate::record_address::RecordAddress;
use crate::stats::add;
use crate::sync::Ordering;
use crate::volume::Volume;

/// Pins a record's segments until it is dropped.
pub struct SegmentPin {
    volume: Weak<Volume>,
    segments: Vec<u32>,
    is_within: bool,
}

impl std::fmt::Debug for SegmentPin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { segments, is_within, .. } = self;
        let mut shown = f.debug_struct("Hold");
        shown.field("segments", segments).field("is_within", is_within).finish_non_exhaustive()
    }
}

impl SegmentPin {
    /// Returns true if the pins were within the limit when this one began.
    pub fn is_within(&self) -> bool {
        self.is_within
    }
}

impl Volume {
    /// Pins the record at `place`. The pin is within the limit if no more than `percent` of the
    /// segments are pinned, or if others pin these segments already. `None` if the record is gone
    /// or is being reclaimed.
    pub(crate) fn hold(self: &Arc<Self>, place: RecordAddress, percent: u64) -> Option<SegmentPin> {
        let mut numbers = BTreeSet::from([place.segment()]);
        if let Some(parts) = self.lists.lock().get(&place) {
            numbers.extend(parts.iter().map(|part| part.place.segment()));
        }
        let most = self.segments.len() as u64 * percent.min(100) / 100;
        let volume = Arc::downgrade(self);
        let mut hold = SegmentPin { volume, segments: Vec::new(), is_within: true };
        for number in numbers {
            let mut segment = self.segments.get(number as usize)?.lock();
            if segment.leaves {
                return None;
            }
            if segment.held == 0 {
                hold.is_within &= self.held.fetch_add(1, Ordering::Relaxed) < most;
            }
            segment.held += 1;
            hold.segments.push(number);
        }
        // It may have moved before all segments were pinned.
        let is_there = self.segment(place).is_some_and(|slot| slot.lock().row(place).is_some());
        if is_there && !hold.is_within {
            add(&self.tallies.refused_hold, 1);
        }
        is_there.then_some(hold)
    }
}

impl Drop for SegmentPin {
    fn drop(&mut self) {
        let Some(volume) = self.volume.upgrade() else { return };
        for number in &self.segments {
            let mut segment = volume.segments[*number as usize].lock();
            segment.held = segment.held.saturating_sub(1);
            if segment.held == 0 {
                volume.held.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
}
