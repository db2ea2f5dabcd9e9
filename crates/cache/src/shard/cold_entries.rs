//! The cold entries of a shard: two machine words for each response in the lower tier, including
//! copies of objects in memory. A copy is recognised by the fingerprint of its response. Nothing is
//! demoted without an entry.

use std::sync::Arc;

use super::lower_removals::LowerRemovals;
use super::{ColdEntry, Shard};
use crate::lower::Lower;
use crate::object::Object;
use crate::slot::{IndexSlot, ResponseFingerprint};

impl<L: Lower> Shard<L> {
    /// Returns true if the lower tier may have or accept responses.
    pub(super) fn has_lower(&self) -> bool {
        L::KEEPS && self.lower.is_open()
    }

    /// Demotes `object` and enters its place, unless it has a copy below. Returns false if it has
    /// none afterwards: the tier rejects it, or the index has no room for an entry.
    pub(super) fn demote_object(&mut self, h32: u32, object: &Arc<Object>) -> bool {
        if !self.has_lower() {
            return false;
        }
        if self.copy_of(h32, object).is_some() {
            return true;
        }
        if !self.cold_room(h32) {
            return false;
        }
        let Some(place) = self.lower.demote(object) else { return false };
        let cold = ColdEntry { likeness: ResponseFingerprint::of(object), h32, place };
        self.work.add(self.cold.insert(cold));
        true
    }

    /// Makes room for one more entry. Returns false if the index is full.
    fn cold_room(&mut self, h32: u32) -> bool {
        let has_room = self.cold.make_room(h32);
        if !has_room {
            self.charge.ledger().index().refuse();
        }
        has_room
    }

    /// Copies `object`, which is in the index, to the lower tier. Returns false if it has no copy
    /// afterwards.
    pub(crate) fn copy_down(&mut self, h32: u32, object: &Arc<Object>) -> bool {
        object.is_live() && !object.is_filling() && self.demote_object(h32, object)
    }

    /// The place of the copy of `object` in the lower tier.
    pub(crate) fn copy_of(&self, h32: u32, object: &Object) -> Option<L::Place> {
        let likeness = ResponseFingerprint::of(object);
        self.entries(h32).find(|(other, _)| *other == likeness).map(|(_, place)| place)
    }

    /// Notes that the response at `place` is the copy of `object`.
    fn note_copy(&mut self, h32: u32, place: L::Place, object: &Object) {
        if let Some(cold) = self.cold.find_mut(h32, |cold| cold.place == place) {
            cold.likeness = ResponseFingerprint::of(object);
        }
    }

    /// Removes the entry of `object`'s copy, if any.
    pub(super) fn forget_copy(&mut self, h32: u32, object: &Object) {
        if self.has_lower()
            && let Some(place) = self.copy_of(h32, object)
            && self.drop_cold(h32, place)
        {
            self.lower.forget(place);
        }
    }

    /// Enters the response at `place` in the lower tier. Returns false if the index is full.
    pub(crate) fn add_cold(&mut self, h32: u32, place: L::Place) -> bool {
        let has_room = self.cold_room(h32);
        if has_room {
            self.work.add(self.cold.insert(ColdEntry {
                likeness: ResponseFingerprint::NONE,
                h32,
                place,
            }));
        }
        has_room
    }

    /// Removes the entry of `place`, on the lower tier's request. Returns false if it is absent.
    pub(crate) fn drop_cold(&mut self, h32: u32, place: L::Place) -> bool {
        self.cold.remove(h32, |cold| cold.place == place).is_some()
    }

    /// Moves an entry from `old` to `new`. Returns false if it is absent.
    pub(crate) fn move_cold(&mut self, h32: u32, old: L::Place, new: L::Place) -> bool {
        let entry = self.cold.find_mut(h32, |cold| cold.place == old);
        entry.map(|cold| cold.place = new).is_some()
    }

    /// Removes, of about the next `entries` entries, those for whose place `is_gone` returns true.
    /// Returns false at the end.
    pub(crate) fn drop_cold_where(
        &mut self,
        cursor: &mut usize,
        entries: usize,
        is_gone: &dyn Fn(L::Place) -> bool,
    ) -> bool {
        let mut gone = Vec::new();
        let more = self.cold.walk(cursor, entries, |cold| {
            if is_gone(cold.place) {
                gone.push((cold.h32, cold.place));
            }
        });
        for (h32, place) in gone {
            self.drop_cold(h32, place);
        }
        more
    }

    fn entries(&self, h32: u32) -> impl Iterator<Item = (ResponseFingerprint, L::Place)> {
        let cold = self.has_lower().then(|| self.cold.of_hash(h32)).into_iter().flatten();
        cold.map(|cold| (cold.likeness, cold.place))
    }

    /// The places of a key of this hash in the lower tier, including copies of objects in memory.
    pub(crate) fn places(&self, h32: u32) -> impl Iterator<Item = L::Place> {
        self.entries(h32).map(|(_, place)| place)
    }

    /// The places of a key of this hash in the lower tier, without copies of objects in memory.
    pub(crate) fn cold(&self, h32: u32) -> Box<[L::Place]> {
        let cold = self.entries(h32).filter(|(likeness, _)| !self.is_in_memory(h32, *likeness));
        cold.map(|(_, place)| place).collect()
    }

    fn is_in_memory(&self, h32: u32, likeness: ResponseFingerprint) -> bool {
        let mut variants = self.table.of_hash(h32).flat_map(IndexSlot::variants);
        variants.any(|object| ResponseFingerprint::of(object) == likeness)
    }

    /// Removes the cold entries that become obsolete when `object` enters the index: copies of
    /// superseded objects and `leaving`, except the object's own copy.
    pub(super) fn forget_for(
        &mut self,
        h32: u32,
        object: &Object,
        leaving: LowerRemovals<'_, L::Place>,
        superseded: &[Arc<Object>],
    ) {
        superseded.iter().for_each(|old| self.forget_copy(h32, old));
        match leaving {
            LowerRemovals::Raised(place) => self.note_copy(h32, place, object),
            leaving => _ = self.forget_cold(h32, leaving),
        }
    }

    /// Removes about the next `entries` entries and their responses in the lower tier. Adds to
    /// `responses` the number of those that were not in memory. Returns false at the end.
    pub(crate) fn clear_cold(
        &mut self,
        cursor: &mut usize,
        entries: usize,
        responses: &mut usize,
    ) -> bool {
        let mut gone = Vec::new();
        let more = self.cold.drain(cursor, entries, &mut gone);
        for ColdEntry { likeness, h32, place } in gone {
            self.lower.forget(place);
            *responses += usize::from(!self.is_in_memory(h32, likeness));
        }
        more
    }

    /// Removes the entries of a key of this hash that are `leaving`. Returns the number of those
    /// that were not in memory.
    pub(crate) fn forget_cold(&mut self, h32: u32, leaving: LowerRemovals<'_, L::Place>) -> usize {
        if !self.has_lower() {
            return 0;
        }
        if !matches!(leaving, LowerRemovals::Raised(_)) {
            self.lower.discard_hash(h32);
        }
        let mut gone = 0;
        for (likeness, place) in self.entries(h32).collect::<Box<[_]>>() {
            let is_copy = self.is_in_memory(h32, likeness);
            let leaves = match leaving {
                LowerRemovals::All => true,
                LowerRemovals::Raised(one) => one == place,
                LowerRemovals::AllBut(spared) => !is_copy && !spared.contains(&place),
            };
            if leaves && self.drop_cold(h32, place) {
                self.lower.forget(place);
                gone += usize::from(!is_copy);
            }
        }
        gone
    }
}
