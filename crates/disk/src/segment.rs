//! A segment in memory: its usage, and a row for each record. A segment in use must never be
//! overwritten while a reader pins it or a body is arriving in it.

use std::sync::Arc;

use base::Allowance;

use crate::layout::{ASKED, LIVE, Row};
use crate::record_address::{RecordAddress, tag};
use crate::rows::Rows;

/// The usage of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Usage {
    /// Not examined yet.
    Unknown,
    /// Without live records: it may be opened.
    Free,
    /// Records are added to it.
    Open,
    /// Full, with records that wait to be written.
    Full,
    /// Written completely.
    Sealed,
    /// Reclaimed. It becomes free when the moved records are durable.
    Emptied,
    /// Failed: its intact records are read, and nothing is written to it again.
    Bad,
}

/// A use of a segment, identified by its epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentUse {
    pub(crate) segment: u32,
    pub(crate) epoch: u64,
}

/// One segment.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) usage: Usage,
    /// The number of this use of the segment.
    pub(crate) epoch: u64,
    /// The records in order, including dead ones, which a record-by-record search must recognise.
    pub(crate) rows: Rows,
    pub(crate) live: u32,
    pub(crate) live_bytes: u64,
    /// Bytes of live records that were read since they were written.
    pub(crate) asked_bytes: u64,
    /// Records before this offset are durable.
    pub(crate) synced: u32,
    /// Failed reads of the segment.
    pub(crate) errors: u32,
    /// The least order of its records.
    pub(crate) least_order: u64,
    /// The oldest ban that all of its records have passed.
    pub(crate) least_passed: u32,
    /// Arriving bodies with parts in it, which keep it from being reclaimed.
    pub(crate) coming: u32,
    /// Pins of readers, which keep it from being reclaimed.
    pub(crate) held: u32,
    /// True while it is being reclaimed.
    pub(crate) leaves: bool,
}

impl Segment {
    /// A segment whose rows are reserved in `room`.
    pub(crate) fn new(usage: Usage, room: &Arc<Allowance>) -> Self {
        Self {
            usage,
            epoch: 0,
            rows: Rows::new(room),
            live: 0,
            live_bytes: 0,
            asked_bytes: 0,
            synced: 0,
            errors: 0,
            least_order: u64::MAX,
            least_passed: u32::MAX,
            coming: 0,
            held: 0,
            leaves: false,
        }
    }

    /// Opens the segment for new records.
    pub(crate) fn open(&mut self, epoch: u64) {
        let empty = Self::new(Usage::Open, self.rows.room());
        *self = Self { epoch, ..empty };
    }

    /// Returns true if its records can be read.
    pub(crate) fn is_read(&self) -> bool {
        matches!(self.usage, Usage::Open | Usage::Full | Usage::Sealed | Usage::Bad)
    }

    /// Appends a record.
    pub(crate) fn push(&mut self, row: Row) {
        if row.is(LIVE) {
            self.live += 1;
            self.live_bytes += u64::from(row.room());
            self.asked_bytes += if row.is(ASKED) { u64::from(row.room()) } else { 0 };
            self.least_order = self.least_order.min(row.order);
            self.least_passed = self.least_passed.min(row.passed);
        }
        self.rows.push(row);
    }

    /// The row of a live record; `None` if the address is of another epoch, or the record is dead.
    pub(crate) fn row(&self, place: RecordAddress) -> Option<&Row> {
        self.index(place).map(|index| &self.rows[index])
    }

    fn index(&self, place: RecordAddress) -> Option<usize> {
        if !self.is_read() || tag(self.epoch) != place.tag() {
            return None;
        }
        let index = find(&self.rows, place.unit())?;
        self.rows[index].is(LIVE).then_some(index)
    }

    /// Marks a live record as dead.
    pub(crate) fn kill(&mut self, place: RecordAddress) -> Option<Row> {
        let index = self.index(place)?;
        let row = self.rows[index];
        self.rows[index].set(LIVE, false);
        self.live -= 1;
        self.live_bytes -= u64::from(row.room());
        self.asked_bytes -= if row.is(ASKED) { u64::from(row.room()) } else { 0 };
        Some(row)
    }

    /// The row of a live record, which is marked as read.
    pub(crate) fn ask(&mut self, place: RecordAddress) -> Option<&Row> {
        let index = self.index(place)?;
        if !self.rows[index].is(ASKED) {
            self.rows[index].set(ASKED, true);
            self.asked_bytes += u64::from(self.rows[index].room());
        }
        Some(&self.rows[index])
    }

    /// Begins to reclaim the segment. Returns false if it is needed.
    pub(crate) fn leave(&mut self) -> bool {
        self.leaves = self.may_leave();
        self.leaves
    }

    /// Returns true if the segment is being emptied, or is empty but not durably so.
    pub(crate) fn is_emptied(&self) -> bool {
        self.leaves || self.usage == Usage::Emptied
    }

    /// Returns true if it may be reclaimed.
    pub(crate) fn may_leave(&self) -> bool {
        self.usage == Usage::Sealed && self.coming == 0 && self.held == 0
    }

    /// Drops all rows. Until that is durable a crash may bring the records back, so the least order
    /// and ban stay.
    pub(crate) fn clear(&mut self) {
        let &mut Self { epoch, errors, least_order, least_passed, .. } = self;
        let empty = Self::new(Usage::Emptied, self.rows.room());
        *self = Self { epoch, errors, least_order, least_passed, ..empty };
    }

    /// Returns true if a crash may leave a record of it to be found.
    pub(crate) fn counts(&self) -> bool {
        self.live > 0 || self.is_emptied() && self.least_order < u64::MAX
    }
}

/// The index of the row of the record at `unit`. The search starts where the row would be if all
/// records had one length, and doubles its steps. For nearly equal lengths it touches one or two
/// lines of memory, a twelfth of a binary search.
fn find(rows: &[Row], unit: u32) -> Option<usize> {
    let (first, last) = (rows.first()?.unit(), rows.last()?.unit());
    if !(first..=last).contains(&unit) {
        return None;
    }
    let per_row = u64::from(last - first).max(1);
    let guess = (u64::from(unit - first) * (rows.len() as u64 - 1) / per_row) as usize;
    let (mut low, mut high, mut step) = (guess, guess, 1);
    while low > 0 && rows[low].unit() > unit {
        low = low.saturating_sub(step);
        step *= 2;
    }
    while high + 1 < rows.len() && rows[high].unit() < unit {
        high = (high + step).min(rows.len() - 1);
        step *= 2;
    }
    let found = rows[low..=high].binary_search_by_key(&unit, Row::unit).ok()?;
    Some(low + found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::layout::Header;

    fn row(order: u64, offset: u32, passed: u32) -> Row {
        let header = Header {
            flags: 0,
            seq: order,
            hash: order,
            order,
            expires_ms: u64::MAX,
            written_ms: 0,
            passed,
            head_len: 0,
            body_len: 0,
            sealed: 0,
            total: 0,
        };
        Row::new(&header, offset, 100)
    }

    #[test]
    fn live_records_are_counted_and_found_by_their_place_alone() {
        let room = Allowance::new(u64::MAX);
        let mut segment = Segment::new(Usage::Free, &room);
        segment.open(7);
        let at = |offset| RecordAddress::new(0, 3, 7, offset);
        for (order, passed) in [(5, 2), (6, 1)] {
            segment.push(row(order, order as u32 * 128, passed));
        }
        assert_eq!((segment.live, segment.live_bytes), (2, 256));
        assert_eq!((segment.least_order, segment.least_passed), (5, 1));
        assert_eq!(segment.row(at(640)).unwrap().hash, 5);
        assert_eq!(segment.row(at(704)), None);
        assert_eq!(segment.row(RecordAddress::new(0, 3, 8, 640)), None);
        assert_eq!(segment.ask(at(640)).unwrap().hash, 5);
        assert!(segment.ask(at(640)).is_some() && segment.ask(at(704)).is_none());
        assert_eq!(segment.asked_bytes, 128);
        assert!(segment.kill(at(640)).is_some() && segment.kill(at(640)).is_none());
        assert_eq!((segment.live, segment.live_bytes, segment.asked_bytes), (1, 128, 0));
        assert_eq!(segment.row(at(768)).unwrap().order, 6);
        assert_eq!(size_of::<Row>(), crate::layout::ROW_BYTES);
    }

    proptest! {
        #[test]
        fn a_row_is_found_wherever_it_is(
            lengths in proptest::collection::vec(1..2000_u32, 0..200)
        ) {
            let mut rows = Vec::new();
            let mut at = 0;
            for length in &lengths {
                rows.push(row(u64::from(at), at * 64, 1));
                at += length;
            }
            let units = rows.iter().flat_map(|row| [row.unit(), row.unit() + 1]);
            for unit in units.chain([at, at + 1]) {
                let found = rows.iter().position(|row| row.unit() == unit);
                prop_assert_eq!(find(&rows, unit), found, "{}", unit);
            }
        }
    }
}
