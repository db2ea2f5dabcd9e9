//! The carryover: the part of a journal that the next one begins with. Nothing that a start still
//! needs may be missing in it.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::item::JournalItem;

/// Clock jumps that are kept apart. More are added up, so some records may expire early.
const SHIFTS_MAX: usize = 64;

/// The state that a journal takes over from the one before.
#[derive(Clone, Debug, Default)]
pub(crate) struct JournalCarryover {
    pub(crate) invalidations: BTreeMap<u64, Bytes>,
    pub(crate) released: u64,
    /// The newest obsolete invalidation.
    pub(crate) obsolete: u64,
    /// Records of a lower order are discarded.
    pub(crate) discarded: u64,
    /// For each time that the clock went back: the next number then, and the milliseconds.
    pub(crate) shifts: Vec<(u64, u64)>,
    pub(crate) quarantined: BTreeSet<u32>,
    pub(crate) outs: BTreeMap<[u8; 16], u64>,
}

impl JournalCarryover {
    pub(super) fn items(&self) -> impl Iterator<Item = JournalItem> {
        let outs = self.outs.iter().map(|(id, number)| JournalItem::Out(*id, *number));
        let marks = [
            JournalItem::Released(self.released),
            JournalItem::Obsolete(self.obsolete),
            JournalItem::Discarded(self.discarded),
        ];
        marks
            .into_iter()
            .chain(self.shifts.iter().map(|(number, ms)| JournalItem::Shift(*number, *ms)))
            .chain(self.quarantined.iter().copied().map(JournalItem::Quarantine))
            .chain(outs)
            .chain(
                self.invalidations
                    .iter()
                    .map(|(n, encoded)| JournalItem::Invalidation(*n, encoded.clone())),
            )
    }

    /// This carryover without the invalidations.
    pub(crate) fn without_invalidations(&self) -> Self {
        Self {
            invalidations: BTreeMap::new(),
            released: self.released,
            obsolete: self.obsolete,
            discarded: self.discarded,
            shifts: self.shifts.clone(),
            quarantined: self.quarantined.clone(),
            outs: self.outs.clone(),
        }
    }

    pub(crate) fn apply(&mut self, item: JournalItem) {
        match item {
            JournalItem::Invalidation(number, bytes) if number > self.released => {
                self.invalidations.insert(number, bytes);
            }
            JournalItem::Released(number) => self.release(number),
            JournalItem::Obsolete(number) => {
                self.obsolete = self.obsolete.max(number);
                self.invalidations.remove(&number);
            }
            JournalItem::Discarded(number) => {
                self.discarded = self.discarded.max(number);
                self.release(number);
            }
            JournalItem::Shift(number, ms) => self.shift(number, ms),
            JournalItem::Quarantine(segment) => drop(self.quarantined.insert(segment)),
            JournalItem::Out(id, number) => {
                let known = self.outs.entry(id).or_default();
                *known = number.max(*known);
            }
            JournalItem::Invalidation(..)
            | JournalItem::Forget(_)
            | JournalItem::Freed(..)
            | JournalItem::Closed => {}
        }
    }

    fn release(&mut self, number: u64) {
        self.released = self.released.max(number);
        while let Some(first) = self.invalidations.first_entry()
            && *first.key() <= self.released
        {
            first.remove();
        }
    }

    /// The newest invalidation that may be missing here although it has matched records. Without a
    /// journal or snapshot that lists these records, all older ones are void.
    pub(crate) fn dropped(&self) -> u64 {
        self.released.max(self.obsolete)
    }

    fn shift(&mut self, number: u64, ms: u64) {
        if self.shifts.contains(&(number, ms)) {
            return;
        }
        self.shifts.push((number, ms));
        self.shifts.sort_unstable();
        if self.shifts.len() > SHIFTS_MAX {
            let (_, ms) = self.shifts.remove(0);
            self.shifts[0].1 = self.shifts[0].1.saturating_add(ms);
        }
    }

    /// The milliseconds by which the clock has gone back since a record of this order was written.
    pub(crate) fn shift_of(&self, order: u64) -> u64 {
        let later = self.shifts.iter().filter(|(number, _)| *number > order);
        later.fold(0, |sum, (_, ms)| sum.saturating_add(*ms))
    }
}
