//! The finder of a volume: what is known of its records before discovery, and what is left to
//! examine.

use hashbrown::HashMap;

use crate::journal::{Chain, JournalCarryover, JournalHistory};
use crate::layout::{LIVE, Row};
use crate::owner::FoundRecord;
use crate::record_address::RecordAddress;
use crate::snapshot::{SegmentMarks, Snapshot};

/// The knowledge before discovery, and the segments that are left.
#[derive(Debug)]
pub(crate) struct Finder {
    /// Segments with their epochs, newest last. `None` before their headers have been read.
    pub(crate) left: Option<Vec<(u64, u32)>>,
    pub(crate) known: HashMap<u32, SegmentMarks>,
    forgotten: HashMap<u32, Vec<RecordAddress>>,
    freed: HashMap<u32, u64>,
    pub(crate) keep: JournalCarryover,
    /// Records of a lower order are discarded, or may have been forgotten in a journal that is
    /// gone.
    floor: u64,
    /// The newest invalidation in the journal.
    pub(crate) newest: u64,
    /// Records in parts that wait for their parts to be found.
    pub(crate) listed: Vec<FoundRecord>,
    pub(crate) looked: Vec<u32>,
}

impl Finder {
    /// Takes from `past` what only discovery needs.
    pub(crate) fn new(past: &mut JournalHistory, snapshot: Option<Snapshot>, void: u64) -> Self {
        let cut = if past.chain == Chain::Cut { past.keep.dropped() + 1 } else { 0 };
        let floor = cut.max(void);
        let sealed = snapshot.as_ref().map_or(0, |snapshot| snapshot.sealed);
        Self {
            left: None,
            known: snapshot.map(|snapshot| snapshot.segments).unwrap_or_default(),
            forgotten: std::mem::take(&mut past.forgotten),
            freed: std::mem::take(&mut past.freed),
            keep: past.keep.without_invalidations(),
            floor,
            newest: past.newest().max(sealed),
            listed: Vec::new(),
            looked: Vec::new(),
        }
    }

    /// The finder of a new or emptied volume.
    pub(crate) fn of_nothing() -> Self {
        Self {
            left: None,
            known: HashMap::new(),
            forgotten: HashMap::new(),
            freed: HashMap::new(),
            keep: JournalCarryover::default(),
            floor: 0,
            newest: u64::MAX,
            listed: Vec::new(),
            looked: Vec::new(),
        }
    }

    /// Takes over the journal's present knowledge of records.
    pub(crate) fn know(&mut self, keep: JournalCarryover) {
        self.keep = keep;
    }

    /// Returns true if a segment of this epoch may have live records.
    pub(crate) fn has(&self, segment: u32, epoch: u64) -> bool {
        self.freed.get(&segment) != Some(&epoch)
            && !self.known.get(&segment).is_some_and(|known| known.epoch == epoch && known.freed)
    }

    /// The forgotten records of a segment, in order.
    pub(crate) fn forgotten(&mut self, segment: u32) -> Vec<RecordAddress> {
        let mut forgotten = self.forgotten.remove(&segment).unwrap_or_default();
        forgotten.sort_unstable();
        forgotten
    }

    /// Sets the marks of a row, and returns what to report to the owner.
    pub(crate) fn judge(
        &self,
        place: RecordAddress,
        row: &mut Row,
        forgotten: &[RecordAddress],
        now_ms: u64,
    ) -> RowVerdict {
        if forgotten.binary_search(&place.on(0)).is_ok() || row.order < self.floor {
            row.set(LIVE, false);
        }
        if !row.is(LIVE) {
            return RowVerdict::Dead;
        }
        let expires_ms = match row.expires_ms() {
            u64::MAX => u64::MAX,
            at => at.saturating_sub(self.keep.shift_of(row.order)),
        };
        if expires_ms <= now_ms {
            row.set(LIVE, false);
            return RowVerdict::Expired;
        }
        let Row { hash, passed, order, .. } = *row;
        RowVerdict::Alive(FoundRecord { hash, place, expires_ms, passed, order })
    }
}

/// The verdict on a row.
pub(crate) enum RowVerdict {
    Alive(FoundRecord),
    Expired,
    Dead,
}
