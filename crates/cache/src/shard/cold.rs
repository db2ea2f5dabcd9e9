//! The cold entries of a shard: two words for each response in the tier below.

use std::sync::Arc;

use super::Shard;
use crate::lower::Lower;
use crate::object::Object;
use crate::slot::Slot;

/// Responses of a key that are to leave the lower tier.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Leaving<'a, P> {
    All,
    /// What came up from this place.
    Raised(P),
    /// All that is not in memory, but these.
    AllBut(&'a [P]),
}

impl<L: Lower> Shard<L> {
    /// Lets the lower tier have `object` and enters its place, unless it has a copy. Memory is not
    /// reserved for another entry: without a free place in the table nothing sinks. Returns false
    /// if it has none afterwards.
    pub(super) fn sink_beside(&mut self, h32: u32, object: &Arc<Object>) -> bool {
        if !L::KEEPS {
            return false;
        }
        if self.copy_of(h32, object).is_some() {
            return true;
        }
        let place = if self.table.growth() == 0 { self.lower.sink(object) } else { None };
        place.inspect(|place| self.work.add(self.table.insert(Slot::Cold(h32, *place)))).is_some()
    }

    /// Has the lower tier keep a copy of `object`, which is in the index; false if it has none
    /// afterwards.
    pub(crate) fn copy_down(&mut self, h32: u32, object: &Arc<Object>) -> bool {
        let is_here = object.is_live() && !object.is_filling();
        let copied = is_here && self.try_room() && self.sink_beside(h32, object);
        self.give_back();
        copied
    }

    /// Where the lower tier has a copy of `object`.
    pub(crate) fn copy_of(&self, h32: u32, object: &Object) -> Option<L::Place> {
        self.places(h32).find(|place| self.lower.is_copy(*place, object))
    }

    /// Strikes out the copy of `object`, if there is one.
    pub(super) fn forget_copy(&mut self, h32: u32, object: &Object) {
        if L::KEEPS
            && let Some(place) = self.copy_of(h32, object)
            && self.drop_cold(h32, place)
        {
            self.lower.forget(place);
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

    /// Where the lower tier has responses of a key of this hash, those in memory included.
    pub(crate) fn places(&self, h32: u32) -> impl Iterator<Item = L::Place> {
        let place = move |slot: &Slot<L::Place>| match slot {
            Slot::Cold(own, place) if *own == h32 => Some(*place),
            _ => None,
        };
        let slots = L::KEEPS.then(|| self.table.of_hash(h32)).into_iter().flatten();
        slots.filter_map(place)
    }

    /// Where the lower tier has responses of a key of this hash that are not in memory.
    pub(crate) fn cold(&self, h32: u32) -> Box<[L::Place]> {
        self.places(h32).filter(|place| !self.is_in_memory(h32, *place)).collect()
    }

    fn is_in_memory(&self, h32: u32, place: L::Place) -> bool {
        let mut variants = self.table.of_hash(h32).flat_map(Slot::variants);
        variants.any(|object| self.lower.is_copy(place, object))
    }

    /// Has the lower tier forget what leaves as `object` comes into the index: the copies of what it
    /// supersedes, and what is `leaving`, but not what is its own copy from now on.
    pub(super) fn forget_for(
        &mut self,
        h32: u32,
        object: &Object,
        leaving: Leaving<'_, L::Place>,
        superseded: &[Arc<Object>],
    ) {
        superseded.iter().for_each(|old| self.forget_copy(h32, old));
        let stays = matches!(leaving, Leaving::Raised(at) if self.lower.is_copy(at, object));
        if !stays {
            self.forget_cold(h32, leaving);
        }
    }

    /// Has the lower tier forget all of `gone` from `first` on, which has left the table. Of a
    /// response and its copy the response stays there.
    pub(super) fn forget_drained(&mut self, gone: &mut Vec<Slot<L::Place>>, first: usize) {
        if !L::KEEPS {
            return;
        }
        for at in first..gone.len() {
            for variant in gone[at].variants() {
                self.forget_copy(gone[at].h32(), variant);
            }
        }
        let drained = gone.split_off(first);
        let is_copy = |h32: u32, place: L::Place| {
            let mut variants =
                drained.iter().filter(|slot| slot.h32() == h32).flat_map(Slot::variants);
            variants.any(|object| self.lower.is_copy(place, object))
                || self.is_in_memory(h32, place)
        };
        let counts = |slot: &Slot<L::Place>| match slot {
            Slot::Cold(h32, place) => {
                let is_copy = is_copy(*h32, *place);
                self.lower.forget(*place);
                !is_copy
            }
            _ => true,
        };
        let stays: Vec<bool> = drained.iter().map(counts).collect();
        let stays = drained.into_iter().zip(stays).filter(|(_, stays)| *stays);
        gone.extend(stays.map(|(slot, _)| slot));
    }

    /// Strikes out what the lower tier has of a key of this hash and is `leaving`; returns how much
    /// of it was not in memory.
    pub(super) fn forget_cold(&mut self, h32: u32, leaving: Leaving<'_, L::Place>) -> usize {
        let mut gone = 0;
        for place in self.places(h32).collect::<Box<[_]>>() {
            let is_copy = self.is_in_memory(h32, place);
            let leaves = match leaving {
                Leaving::All => true,
                Leaving::Raised(one) => one == place,
                Leaving::AllBut(spared) => !is_copy && !spared.contains(&place),
            };
            if leaves && self.drop_cold(h32, place) {
                self.lower.forget(place);
                gone += usize::from(!is_copy);
            }
        }
        gone
    }
}
