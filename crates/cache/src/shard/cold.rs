//! The cold entries of a shard: two words for each response in the tier below.

use std::sync::Arc;

use super::Shard;
use crate::lower::Lower;
use crate::object::Object;
use crate::slot::Slot;

/// Responses of a key that are to leave the lower tier.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Leaving<'a, P> {
    One(P),
    AllBut(&'a [P]),
}

impl<L: Lower> Shard<L> {
    /// Lets the lower tier have `object`, which has just been evicted, while its key keeps its own
    /// entry. Memory is not reserved for another one: without a free place in the table nothing
    /// sinks.
    pub(super) fn sink_beside(&mut self, h32: u32, object: &Arc<Object>) {
        if L::KEEPS
            && self.table.growth() == 0
            && let Some(place) = self.lower.sink(object)
        {
            self.work.add(self.table.insert(Slot::Cold(h32, place)));
        }
    }

    /// Enters what the lower tier has at `place`; false when there is no memory for that.
    pub(crate) fn add_cold(&mut self, h32: u32, place: L::Place) -> bool {
        let has_room = self.try_room();
        if has_room {
            self.work.add(self.table.insert(Slot::Cold(h32, place)));
            self.give_back();
        }
        has_room
    }

    /// Strikes out the entry of `place`, which the lower tier knows; false if it is absent.
    pub(crate) fn drop_cold(&mut self, h32: u32, place: L::Place) -> bool {
        let is_it = |slot: &Slot<L::Place>| match slot {
            Slot::Cold(own, at) => *own == h32 && *at == place,
            _ => false,
        };
        self.table.find_entry(h32, is_it).map(|entry| entry.remove()).is_some()
    }

    /// Where the lower tier has responses of a key of this hash.
    pub(crate) fn cold(&self, h32: u32) -> Box<[L::Place]> {
        if !L::KEEPS {
            return Box::default();
        }
        let place = |slot: &Slot<L::Place>| match slot {
            Slot::Cold(own, place) if *own == h32 => Some(*place),
            _ => None,
        };
        self.table.of_hash(h32).filter_map(place).collect()
    }

    /// Strikes out what the lower tier has of a key of this hash and is `leaving`; returns how much
    /// that was.
    pub(super) fn forget_cold(&mut self, h32: u32, leaving: Leaving<'_, L::Place>) -> usize {
        let mut gone = 0;
        for place in self.cold(h32) {
            let leaves = match leaving {
                Leaving::One(one) => one == place,
                Leaving::AllBut(spared) => !spared.contains(&place),
            };
            if leaves && self.drop_cold(h32, place) {
                self.lower.forget(place);
                gone += 1;
            }
        }
        gone
    }
}
