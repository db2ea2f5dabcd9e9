//! The store baseline: the common state that all volumes of a store begin with.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::carryover::JournalCarryover;

/// The state that all volumes of a store begin with.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoreBaseline {
    pub(crate) session: u64,
    pub(crate) owner: [u8; 32],
    pub(crate) invalidations: BTreeMap<u64, Bytes>,
    pub(crate) released: u64,
    /// See [`JournalCarryover`].
    pub(crate) obsolete: u64,
    pub(crate) discarded: u64,
    pub(crate) outs: BTreeMap<[u8; 16], u64>,
}

impl StoreBaseline {
    /// Adds the carryover of a journal.
    pub(crate) fn add(&mut self, keep: &JournalCarryover) {
        // Both are in order, and long.
        self.invalidations.append(&mut keep.invalidations.clone());
        self.released = self.released.max(keep.released);
        self.obsolete = self.obsolete.max(keep.obsolete);
        self.discarded = self.discarded.max(keep.discarded);
        self.invalidations = self.invalidations.split_off(&(self.released + 1));
        for (id, number) in &keep.outs {
            let known = self.outs.entry(*id).or_default();
            *known = number.max(known).to_owned();
        }
    }
}
