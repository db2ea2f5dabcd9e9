//! The cold entries of a shard: two words for each response in the tier below, copies of what is in
//! memory included. An entry has the likeness of its response, by which it is known for a copy.

use std::sync::Arc;

use super::{Position, Shard};
use crate::lower::Lower;
use crate::object::Object;
use crate::slot::{Likeness, Slot};

/// Responses of a key that are to leave the lower tier.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Leaving<'a, P> {
    All,
    /// The one that came up from this place.
    Raised(P),
    /// All that is not in memory, but these.
    AllBut(&'a [P]),
}

impl<L: Lower> Shard<L> {
    /// Returns true if the lower tier may have something, or take it.
    pub(super) fn has_lower(&self) -> bool {
        L::KEEPS && self.lower.is_open()
    }

    /// Lets the lower tier have `object` and enters its place, unless it has a copy. Memory is not
    /// reserved for another entry: without a free place in the table nothing sinks. Returns false
    /// if it has none afterwards.
    pub(super) fn sink_beside(&mut self, h32: u32, object: &Arc<Object>) -> bool {
        if !self.has_lower() {
            return false;
        }
        if self.copy_of(h32, object).is_some() {
            return true;
        }
        let place = if self.table.growth() == 0 { self.lower.sink(object) } else { None };
        let Some(place) = place else { return false };
        self.work.add(self.table.insert(Slot::Cold(Likeness::of(object), h32, place)));
        true
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
        let likeness = Likeness::of(object);
        self.entries(h32).find(|(other, _)| *other == likeness).map(|(_, place)| place)
    }

    /// Notes that what is at `place` is the copy of `object`.
    fn note_copy(&mut self, h32: u32, place: L::Place, object: &Object) {
        let is_it = |slot: &Slot<L::Place>| match slot {
            Slot::Cold(_, own, at) => *own == h32 && *at == place,
            _ => false,
        };
        if let Some(slot) = self.table.find_mut(h32, is_it) {
            *slot = Slot::Cold(Likeness::of(object), h32, place);
        }
    }

    /// Strikes out the copy of `object`, if there is one.
    pub(super) fn forget_copy(&mut self, h32: u32, object: &Object) {
        if self.has_lower()
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
            self.work.add(self.table.insert(Slot::Cold(Likeness::NONE, h32, place)));
            self.give_back();
        }
        has_room
    }

    /// Strikes out the entry of `place`, which the lower tier knows; false if it is absent.
    pub(crate) fn drop_cold(&mut self, h32: u32, place: L::Place) -> bool {
        let is_it = |slot: &Slot<L::Place>| match slot {
            Slot::Cold(_, own, at) => *own == h32 && *at == place,
            _ => false,
        };
        self.table.find_entry(h32, is_it).map(|entry| entry.remove()).is_some()
    }

    /// Notes that what was at `old` is at `new`; false if there is no entry.
    pub(crate) fn move_cold(&mut self, h32: u32, old: L::Place, new: L::Place) -> bool {
        let is_it = |slot: &Slot<L::Place>| match slot {
            Slot::Cold(_, own, at) => *own == h32 && *at == old,
            _ => false,
        };
        let Some(Slot::Cold(_, _, place)) = self.table.find_mut(h32, is_it) else { return false };
        *place = new;
        true
    }

    /// Strikes out entries, in the next `places` of the table, of what `is_gone`. False when these
    /// were the last.
    pub(crate) fn drop_cold_where(
        &mut self,
        cursor: &mut Position,
        places: usize,
        is_gone: &dyn Fn(L::Place) -> bool,
    ) -> bool {
        let mut gone = Vec::new();
        let more = self.table.walk(cursor, places, |slot| match slot {
            Slot::Cold(_, h32, place) if is_gone(*place) => gone.push((*h32, *place)),
            _ => {}
        });
        for (h32, place) in gone {
            self.drop_cold(h32, place);
        }
        more
    }

    fn entries(&self, h32: u32) -> impl Iterator<Item = (Likeness, L::Place)> {
        let entry = move |slot: &Slot<L::Place>| match slot {
            Slot::Cold(likeness, own, place) if *own == h32 => Some((*likeness, *place)),
            _ => None,
        };
        let slots = self.has_lower().then(|| self.table.of_hash(h32)).into_iter().flatten();
        slots.filter_map(entry)
    }

    /// Where the lower tier has responses of a key of this hash, those in memory included.
    pub(crate) fn places(&self, h32: u32) -> impl Iterator<Item = L::Place> {
        self.entries(h32).map(|(_, place)| place)
    }

    /// Where the lower tier has responses of a key of this hash that are not in memory.
    pub(crate) fn cold(&self, h32: u32) -> Box<[L::Place]> {
        let cold = self.entries(h32).filter(|(likeness, _)| !self.is_in_memory(h32, *likeness));
        cold.map(|(_, place)| place).collect()
    }

    fn is_in_memory(&self, h32: u32, likeness: Likeness) -> bool {
        let mut variants = self.table.of_hash(h32).flat_map(Slot::variants);
        variants.any(|object| Likeness::of(object) == likeness)
    }

    /// Has the lower tier forget what leaves as `object` comes into the index: the copies of what
    /// it supersedes, and what is `leaving`, but not what is its own copy from now on.
    pub(super) fn forget_for(
        &mut self,
        h32: u32,
        object: &Object,
        leaving: Leaving<'_, L::Place>,
        superseded: &[Arc<Object>],
    ) {
        superseded.iter().for_each(|old| self.forget_copy(h32, old));
        match leaving {
            Leaving::Raised(place) => self.note_copy(h32, place, object),
            leaving => _ = self.forget_cold(h32, leaving),
        }
    }

    /// Has the lower tier forget all of `gone` from `first` on, which has left the table. Of a
    /// response and its copy the response stays there.
    pub(super) fn forget_drained(&mut self, gone: &mut Vec<Slot<L::Place>>, first: usize) {
        if !self.has_lower() {
            return;
        }
        for slot in &gone[first..] {
            slot.variants().iter().for_each(|variant| self.forget_copy(slot.h32(), variant));
        }
        let drained = gone.split_off(first);
        let is_copy = |h32: u32, likeness: Likeness| {
            let mut variants =
                drained.iter().filter(|slot| slot.h32() == h32).flat_map(Slot::variants);
            variants.any(|object| Likeness::of(object) == likeness)
                || self.is_in_memory(h32, likeness)
        };
        let counts = |slot: &Slot<L::Place>| match slot {
            Slot::Cold(likeness, h32, place) => {
                self.lower.forget(*place);
                !is_copy(*h32, *likeness)
            }
            _ => true,
        };
        let stays: Vec<bool> = drained.iter().map(counts).collect();
        let stays = drained.into_iter().zip(stays).filter(|(_, stays)| *stays);
        gone.extend(stays.map(|(slot, _)| slot));
    }

    /// Strikes out what the lower tier has of a key of this hash and is `leaving`; returns how much
    /// of it was not in memory.
    pub(crate) fn forget_cold(&mut self, h32: u32, leaving: Leaving<'_, L::Place>) -> usize {
        if !self.has_lower() {
            return 0;
        }
        if !matches!(leaving, Leaving::Raised(_)) {
            self.lower.struck(h32);
        }
        let mut gone = 0;
        for (likeness, place) in self.entries(h32).collect::<Box<[_]>>() {
            let is_copy = self.is_in_memory(h32, likeness);
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
