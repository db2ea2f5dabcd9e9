//! A record that is being read for a client: the segments of its body are not reclaimed so long.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use crate::place::Place;
use crate::stats::add;
use crate::sync::Ordering;
use crate::volume::Volume;

/// Keeps a record's segments from being reclaimed until it is dropped.
pub struct Hold {
    volume: Weak<Volume>,
    segments: Vec<u32>,
}

impl std::fmt::Debug for Hold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hold").field("segments", &self.segments).finish_non_exhaustive()
    }
}

impl Volume {
    /// Holds the record at `place`; `None` if it is not there or is just leaving, or if more than
    /// `percent` of the segments would be held.
    pub(crate) fn hold(self: &Arc<Self>, place: Place, percent: u64) -> Option<Hold> {
        let mut numbers = BTreeSet::from([place.segment()]);
        if let Some(parts) = self.lists.lock().get(&place) {
            numbers.extend(parts.iter().map(|part| part.place.segment()));
        }
        let most = self.segments.len() as u64 * percent.min(100) / 100;
        let mut hold = Hold { volume: Arc::downgrade(self), segments: Vec::new() };
        for number in numbers {
            let mut segment = self.segments.get(number as usize)?.lock();
            if segment.leaves {
                return None;
            }
            if segment.held == 0 && self.held.fetch_add(1, Ordering::Relaxed) >= most {
                self.held.fetch_sub(1, Ordering::Relaxed);
                add(&self.tallies.refused_hold, 1);
                return None;
            }
            segment.held += 1;
            hold.segments.push(number);
        }
        // It may have moved before all were held.
        let is_there = self.segment(place).is_some_and(|slot| slot.lock().row(place).is_some());
        is_there.then_some(hold)
    }
}

impl Drop for Hold {
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
