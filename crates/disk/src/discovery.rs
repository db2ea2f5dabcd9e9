//! Discovery of the records at the start, in the background: newest segments first, by the tables
//! of full segments, and record by record in those that a crash left without a table. It must never
//! report a record that it has not verified.

use std::io;

use hashbrown::HashSet;

use crate::layout::{
    FRAME_BYTES, Footer, HEADER_BYTES, Header, LISTED, LIVE, PART, ROW_BYTES, Row, SegmentHeader,
    UNIT,
};
use crate::owner::{FoundRecord, Reason};
use crate::record_address::RecordAddress;
use crate::segment::{Segment, Usage};
use crate::stats::add;
use crate::sync::Ordering;
use crate::vfs::{File, read_all};
use crate::volume::{Finder, Job, RowVerdict, Volume};

/// Records that are reported to the owner in one call.
const BATCH: usize = 4096;

/// The records of a segment.
struct SegmentRecords {
    rows: Vec<Row>,
    /// The newest invalidation that was durable.
    sealed: u64,
    /// The segment has a table.
    full: bool,
    /// The segment could not be read completely.
    is_lost: bool,
}

/// Bytes of a segment that are read at once during the search.
const WINDOW_BYTES: u32 = 1 << 20;

/// A moving part of a segment in memory.
struct SegmentWindow<'a> {
    file: &'a dyn File,
    /// The offset of the segment in its file.
    base: u64,
    segment: u32,
    /// The end of possible records.
    end: u32,
    from: u32,
    bytes: Vec<u8>,
}

impl<'a> SegmentWindow<'a> {
    fn new(volume: &'a Volume, segment: u32) -> Self {
        let (file, base) = volume.file(segment);
        let end = volume.segment_bytes() - FRAME_BYTES;
        Self { file: &**file, base, segment, end, from: 0, bytes: Vec::new() }
    }

    /// This many bytes from `at` on; fewer at the end.
    fn bytes(&mut self, at: u32, len: u32) -> io::Result<&[u8]> {
        let end = self.end.min(at.saturating_add(len));
        if at < self.from || end as usize > self.from as usize + self.bytes.len() {
            let len = WINDOW_BYTES.max(end - at).min(self.end - at);
            self.bytes.clear();
            self.bytes.resize(len as usize, 0);
            self.from = at;
            read_all(self.file, &mut self.bytes, self.base + u64::from(at))?;
        }
        Ok(&self.bytes[(at - self.from) as usize..(end - self.from) as usize])
    }
}

impl Volume {
    /// Examines one more segment. Returns false when all have been examined.
    pub(crate) fn find_turn(&self) -> bool {
        let mut slot = self.finder.lock();
        if self.health.is_out() || self.is_ending() {
            *slot = None;
            self.found.store(true, Ordering::Release);
        }
        let Some(finder) = &mut *slot else { return false };
        let Some(left) = &mut finder.left else {
            let left = self.find_segments(finder);
            self.to_look.store(left.len() as u64, Ordering::Relaxed);
            finder.left = Some(left);
            self.ready.store(true, Ordering::Release);
            return true;
        };
        let Some((epoch, segment)) = left.pop() else {
            let listed = std::mem::take(&mut finder.listed);
            let looked = std::mem::take(&mut finder.looked);
            *slot = None;
            drop(slot);
            self.find_parts(&listed, &looked);
            self.found.store(true, Ordering::Release);
            return false;
        };
        let found = self.find_in(finder, segment, epoch);
        self.looked.fetch_add(1, Ordering::Relaxed);
        drop(slot);
        add(&self.tallies.found, found.len() as u64);
        for batch in found.chunks(BATCH) {
            self.shared.owner.found(batch);
        }
        true
    }

    /// Reads the headers of all segments. Free segments may be used from now on.
    fn find_segments(&self, finder: &Finder) -> Vec<(u64, u32)> {
        let mut left = Vec::new();
        let valid_from = self.superblock.valid_from;
        for (number, slot) in (0..).zip(&self.segments) {
            let mut bytes = [0; FRAME_BYTES as usize];
            let (file, base) = self.file(number);
            let read = read_all(&**file, &mut bytes, base);
            let header = SegmentHeader::decode(self.key, number, &bytes);
            let epoch = header.map(|header| header.epoch).filter(|epoch| *epoch >= valid_from);
            let bad = finder.keep.quarantined.contains(&number) || read.is_err();
            let mut segment = slot.lock();
            // The next snapshot lists free segments, too.
            segment.epoch = epoch.unwrap_or(0);
            if let Some(epoch) = epoch.filter(|epoch| finder.has(number, *epoch)) {
                left.push((epoch, number));
            } else if bad {
                segment.usage = Usage::Bad;
            } else {
                segment.usage = Usage::Free;
                drop(segment);
                self.front.lock().free.insert(number);
            }
        }
        left.sort_unstable();
        left
    }

    fn find_in(&self, finder: &mut Finder, segment: u32, epoch: u64) -> Vec<FoundRecord> {
        let mut looked = self.look(segment, epoch);
        if looked.sealed > finder.newest {
            // A durable invalidation is missing in the journal.
            add(&self.tallies.damaged_journal, 1);
            self.take_out(Reason::Journal, 0);
            return Vec::new();
        }
        let index = &self.shared.config.index;
        if index.is_full() {
            // Newer records have been found before.
            add(&self.tallies.dropped_index, looked.rows.len() as u64);
            looked = SegmentRecords { rows: Vec::new(), is_lost: true, ..looked };
        }
        let forgotten = finder.forgotten(segment);
        let known = finder.known.remove(&segment).filter(|known| known.epoch == epoch);
        let now_ms = self.shared.now().unix_ms;
        let (mut found, mut listed) = (Vec::new(), Vec::new());
        let mut fresh = Segment::new(Usage::Sealed, index);
        fresh.epoch = epoch;
        // The rows take most of a store's memory, so their capacity is exact.
        fresh.rows.reserve(looked.rows.len());
        for mut row in looked.rows {
            if let Some(known) = &known {
                known.mark(&mut row);
            }
            let place = self.place(segment, epoch, &row);
            match finder.judge(place, &mut row, &forgotten, now_ms) {
                RowVerdict::Alive(_) if row.is(PART) => {}
                RowVerdict::Alive(record) if row.is(LISTED) => listed.push(record),
                RowVerdict::Alive(record) => found.push(record),
                RowVerdict::Expired => add(&self.tallies.found_expired, 1),
                RowVerdict::Dead => {}
            }
            fresh.push(row);
        }
        finder.listed.extend(listed);
        finder.looked.push(segment);
        if finder.keep.quarantined.contains(&segment) {
            fresh.usage = Usage::Bad;
        } else if looked.is_lost {
            // A later start would read it without the invalidations that its records have missed.
            fresh.clear();
            self.front.lock().jobs.push_back(Job::Release { segment, epoch });
        } else if !looked.full {
            fresh.usage = Usage::Full;
            self.front.lock().jobs.push_back(Job::Seal { segment, epoch });
        }
        *self.segments[segment as usize].lock() = fresh;
        found
    }

    fn look(&self, segment: u32, epoch: u64) -> SegmentRecords {
        match self.read_table(segment, epoch) {
            Ok(Some(looked)) => looked,
            Ok(None) | Err(_) => self.walk(segment, epoch).unwrap_or_else(|_| {
                add(&self.tallies.errors_read, 1);
                SegmentRecords { rows: Vec::new(), sealed: 0, full: false, is_lost: true }
            }),
        }
    }

    /// The table of a segment; `None` if it has no intact one.
    fn read_table(&self, segment: u32, epoch: u64) -> io::Result<Option<SegmentRecords>> {
        let (file, base) = self.file(segment);
        let end = base + u64::from(self.segment_bytes() - FRAME_BYTES);
        let mut bytes = [0; FRAME_BYTES as usize];
        read_all(&**file, &mut bytes, end)?;
        let Some(footer) = Footer::decode(self.key, segment, epoch, &bytes) else {
            return Ok(None);
        };
        let table = u64::from(footer.rows) * ROW_BYTES as u64;
        if table > u64::from(self.segment_bytes()) {
            return Ok(None);
        }
        let mut bytes = vec![0; table as usize];
        read_all(&**file, &mut bytes, end - table)?;
        let Some(rows) = footer.table(self.key, segment, epoch, &bytes) else {
            add(&self.tallies.damaged_table, 1);
            return Ok(None);
        };
        Ok(Some(SegmentRecords { rows, sealed: footer.sealed, full: true, is_lost: false }))
    }

    /// Searches for records one by one, and verifies each in full. Damaged records and gaps are
    /// skipped.
    fn walk(&self, segment: u32, epoch: u64) -> io::Result<SegmentRecords> {
        let mut looked =
            SegmentRecords { rows: Vec::new(), sealed: 0, full: false, is_lost: false };
        let mut window = SegmentWindow::new(self, segment);
        let mut at = FRAME_BYTES;
        while at < window.end {
            let Some(header) = self.record_at(&mut window, epoch, at)? else {
                at += UNIT;
                continue;
            };
            let row = Row::new(&header, at, self.blocks.record_len(header.payload()) as u32);
            looked.sealed = looked.sealed.max(header.sealed);
            at += row.room();
            looked.rows.push(row);
        }
        looked.rows.shrink_to_fit();
        Ok(looked)
    }

    /// The header of the record at an offset of a segment; `None` if none is intact.
    fn record_at(
        &self,
        window: &mut SegmentWindow,
        epoch: u64,
        at: u32,
    ) -> io::Result<Option<Header>> {
        let Some(header) = Header::decode(window.bytes(at, HEADER_BYTES as u32)?) else {
            return Ok(None);
        };
        let len = self.blocks.record_len(header.payload());
        if len > u64::from(window.end - at) {
            return Ok(None);
        }
        let seed = self.binding(window.segment, epoch, at, &header).seed();
        // A length is checked before a supposed record is read to its end.
        let (len, block) = (len as u32, self.blocks.bytes);
        let first = window.bytes(at, len.min(block))?;
        if self.check_blocks(seed, 0, first).is_err() {
            return Ok(None);
        }
        let sound = len <= block || {
            let later = &window.bytes(at, len)?[block as usize..];
            self.check_blocks(seed, 1, later).is_ok()
        };
        Ok(sound.then_some(header))
    }

    /// Records in parts are reported when all parts are known. Parts without a list are dead.
    fn find_parts(&self, listed: &[FoundRecord], looked: &[u32]) {
        let mut whole = Vec::new();
        let mut wanted = HashSet::new();
        // A crash may have left the former copy of a moved record in parts. The newer one owns the
        // parts that both list.
        let mut listed = listed.to_vec();
        listed.sort_by_key(|record| {
            let epoch = self.segment(record.place).map_or(0, |segment| segment.lock().epoch);
            std::cmp::Reverse((epoch, record.place.unit()))
        });
        for record in &listed {
            let parts = self.read_list(record.place).unwrap_or_default();
            let there = |place: RecordAddress| {
                self.segment(place).is_some_and(|segment| {
                    segment.lock().row(place).is_some_and(|row| row.is(PART))
                })
            };
            let taken = parts.iter().any(|part| wanted.contains(&part.place));
            if parts.is_empty() || taken || !parts.iter().all(|part| there(part.place)) {
                self.drop_lost(record.place);
                continue;
            }
            wanted.extend(parts.iter().map(|part| part.place));
            self.lists.lock().insert(record.place, parts.into());
            whole.push(*record);
        }
        for number in looked {
            let mut segment = self.segments[*number as usize].lock();
            let epoch = segment.epoch;
            let parts = segment.rows.iter().filter(|row| row.is(PART) && row.is(LIVE));
            let places: Vec<RecordAddress> =
                parts.map(|row| self.place(*number, epoch, row)).collect();
            for place in places.iter().filter(|place| !wanted.contains(*place)) {
                segment.kill(*place);
            }
        }
        add(&self.tallies.found, whole.len() as u64);
        for batch in whole.chunks(BATCH) {
            self.shared.owner.found(batch);
        }
    }
}
