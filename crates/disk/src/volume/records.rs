//! The records of a volume: how they are added, forgotten and lost. A put must never wait for the
//! disk.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::new_record::NewRecord;
use super::record_queue::{Cursor, Job, QueuedRecord, RecordQueue};
use super::state::Volume;
use crate::body::Body;
use crate::config::Config;
use crate::journal::JournalItem;
use crate::layout::{
    FRAME_BYTES, HEADER_BYTES, Header, IS_LISTED, IS_PART, LISTED, ROW_BYTES, Row, UNIT,
};
use crate::part_record::PartRecord;
use crate::record_address::RecordAddress;
use crate::segment::Usage;
use crate::stats::add;

/// The longest head of a record: far longer than any response's.
const HEAD_BYTES_MAX: usize = 8 << 20;
/// The rows of a segment take at most one part in this many of the memory for rows.
const INDEX_PARTS: u64 = 16;

impl Volume {
    /// Adds a record. `None`, without effect, if there is no space.
    pub(crate) fn add(&self, new: NewRecord) -> Option<(RecordAddress, u64)> {
        let payload = new.head.len() as u64 + (new.range.end - new.range.start);
        let len = self.blocks.record_len(payload);
        if new.head.len() > HEAD_BYTES_MAX || len > u64::from(self.segment_bytes()) {
            add(&self.tallies.refused_length, 1);
            return None;
        }
        if !new.moves && self.shared.config.index.is_full() {
            add(&self.tallies.refused_index, 1);
            return None;
        }
        let mut front = self.front.lock();
        if !new.moves && front.queued_bytes + len > self.shared.config.queue_bytes {
            add(&self.tallies.refused_queue, 1);
            return None;
        }
        let Some(cursor) = self.reserve(&mut front, len as u32, new.moves) else {
            add(&self.tallies.refused_space, 1);
            return None;
        };
        let seq = self.shared.order.take();
        let header = Header {
            flags: new.flags,
            seq,
            hash: new.hash,
            order: new.order.unwrap_or(u64::MAX).min(self.shared.order.order_of(seq)),
            expires_ms: new.expires_ms,
            written_ms: self.shared.now().unix_ms,
            passed: new.passed,
            head_len: new.head.len() as u32,
            body_len: (new.range.end - new.range.start) as u32,
            sealed: self.journal.sealed(),
            total: new.total,
        };
        let Cursor { segment, epoch, offset, .. } = cursor;
        let place = RecordAddress::new(self.number, segment, epoch, offset);
        let queued = Arc::new(QueuedRecord {
            place,
            epoch,
            offset,
            len: len as u32,
            header,
            head: new.head,
            body: new.body,
            range: new.range,
        });
        let row = Row::new(&header, offset, len as u32);
        self.segments[segment as usize].lock().push(row);
        front.pending.insert(place, Arc::clone(&queued));
        front.queued_bytes += len;
        front.jobs.push_back(Job::Record(queued));
        drop(front);
        self.wake.notify_one();
        add(&self.tallies.puts, u64::from(!new.moves && new.flags & IS_PART == 0));
        add(&self.tallies.put_bytes, if new.moves { 0 } else { u64::from(row.room()) });
        Some((place, seq))
    }

    /// Space for a record in the open segment, or in the next one.
    fn reserve(&self, front: &mut RecordQueue, len: u32, moves: bool) -> Option<Cursor> {
        let room = len.next_multiple_of(UNIT);
        let fits = |cursor: &Cursor| {
            let table = (u64::from(cursor.rows) + 1) * ROW_BYTES as u64;
            u64::from(cursor.offset) + u64::from(room) + table + u64::from(FRAME_BYTES)
                <= u64::from(self.segment_bytes())
        };
        // A segment with the most rows continues if no other is free.
        let rows_most = self.rows_most();
        let goes_on = |cursor: &Cursor| cursor.rows < rows_most || front.free.len() <= 1;
        if !front.open.as_ref().is_some_and(|cursor| fits(cursor) && goes_on(cursor)) {
            let fresh = Cursor { segment: 0, epoch: 0, offset: FRAME_BYTES, rows: 0 };
            if !fits(&fresh) || !(moves || front.free.len() > 1) {
                return None;
            }
            let segment = front.free.pop_first()?;
            self.close_open(front);
            let epoch = self.shared.order.take();
            self.segments[segment as usize].lock().open(epoch);
            front.jobs.push_back(Job::Open { segment, epoch });
            front.open = Some(Cursor { segment, epoch, ..fresh });
        }
        let cursor = front.open.as_mut()?;
        let reserved = *cursor;
        cursor.offset += room;
        cursor.rows += 1;
        Some(reserved)
    }

    /// The most records of a segment. With little memory for rows, the least valuable segment must
    /// still be a small part of all.
    fn rows_most(&self) -> u32 {
        let Config { index, volumes, .. } = &self.shared.config;
        let bytes = index.most() / (volumes.len() as u64 * INDEX_PARTS);
        u32::try_from(bytes / ROW_BYTES as u64).unwrap_or(u32::MAX).max(1)
    }

    /// Closes the open segment.
    pub(crate) fn close_open(&self, front: &mut RecordQueue) {
        if let Some(Cursor { segment, epoch, .. }) = front.open.take() {
            self.segments[segment as usize].lock().usage = Usage::Full;
            front.jobs.push_back(Job::Seal { segment, epoch });
        }
    }

    /// Adds a record with its body, in parts if the body is long.
    pub(crate) fn put(&self, new: NewRecord) -> Option<RecordAddress> {
        if !self.takes() {
            add(&self.tallies.refused_out, 1);
            return None;
        }
        if new.range.end - new.range.start <= u64::from(self.part_bytes()) {
            return self.add(new).map(|(place, _)| place);
        }
        let mut parts = Vec::new();
        let mut at = new.range.start;
        while at < new.range.end {
            let end = new.range.end.min(at + u64::from(self.part_bytes()));
            match self.add_part(new.hash, new.body.clone(), at..end) {
                Some(part) => parts.push(part),
                None => {
                    self.end_parts(&parts);
                    return None;
                }
            }
            at = end;
        }
        let place = self.add_listed(new, &parts);
        if place.is_none() {
            self.end_parts(&parts);
        }
        place
    }

    /// Bytes of a part.
    pub(crate) fn part_bytes(&self) -> u32 {
        let most = self.segment_bytes() / 4 - HEADER_BYTES as u32;
        self.shared.config.part_bytes.min(most).max(1)
    }

    /// Adds a part of a body.
    pub(crate) fn add_part(&self, hash: u64, body: Body, range: Range<u64>) -> Option<PartRecord> {
        let len = range.end - range.start;
        let new = NewRecord {
            flags: IS_PART,
            hash,
            passed: u32::MAX,
            expires_ms: u64::MAX,
            order: None,
            head: Bytes::new(),
            body,
            range,
            total: len,
            moves: false,
        };
        let (place, seq) = self.add(new)?;
        Some(PartRecord { place, seq, len })
    }

    /// Adds a record with a body in these parts.
    pub(crate) fn add_listed(&self, new: NewRecord, parts: &[PartRecord]) -> Option<RecordAddress> {
        let body = PartRecord::encode(parts);
        let new = NewRecord {
            flags: IS_LISTED,
            range: 0..body.len() as u64,
            total: parts.iter().map(|part| part.len).sum(),
            body: Body::Bytes(body),
            ..new
        };
        let (place, _) = self.add(new)?;
        self.lists.lock().insert(place, parts.into());
        Some(place)
    }

    /// Adds a record with the parts of the one at `place`, which is dead once that is durable.
    pub(crate) fn rehead(
        &self,
        place: RecordAddress,
        new: NewRecord,
        tell: impl FnOnce(RecordAddress),
    ) -> Option<RecordAddress> {
        if !self.takes() {
            return None;
        }
        let parts = self.lists.lock().get(&place).cloned()?;
        let moved = self.add_listed(new, &parts)?;
        tell(moved);
        if self.kill(place).is_none() {
            // It was forgotten or dropped meanwhile, with its parts, so the new record is
            // withdrawn.
            self.forget(moved);
            return None;
        }
        self.lists.lock().remove(&place);
        self.front.lock().jobs.push_back(Job::Moved { place });
        self.wake.notify_one();
        Some(moved)
    }

    /// Drops parts that no record lists.
    pub(crate) fn end_parts(&self, parts: &[PartRecord]) {
        for part in parts {
            if let Some(row) = self.kill(part.place) {
                self.end_record(part.place, row);
            }
        }
    }

    /// Forgets a record on the owner's request. Returns false if it is gone already.
    pub(crate) fn forget(&self, place: RecordAddress) -> bool {
        let Some(row) = self.kill(place) else { return false };
        add(&self.tallies.forgotten, 1);
        self.end_record(place, row);
        true
    }

    /// Marks the record as dead in its segment.
    pub(crate) fn kill(&self, place: RecordAddress) -> Option<Row> {
        self.segment(place)?.lock().kill(place)
    }

    /// Makes the end of a dead record durable, and drops its parts.
    pub(crate) fn end_record(&self, place: RecordAddress, row: Row) {
        self.journal.push(JournalItem::Forget(place));
        if row.is(LISTED) {
            let parts = self.lists.lock().remove(&place);
            self.end_parts(&parts.unwrap_or_default());
        }
        if self.shared.config.erase
            && let Some(segment) = self.segment(place)
        {
            let epoch = segment.lock().epoch;
            let job = Job::Erase { place, epoch, room: row.room() };
            self.front.lock().jobs.push_back(job);
            self.wake.notify_one();
        }
    }

    /// Drops a record that could not be written, and reports it to the owner.
    pub(crate) fn drop_lost(&self, place: RecordAddress) {
        let Some(row) = self.kill(place) else { return };
        self.end_record(place, row);
        add(&self.tallies.lost, 1);
        self.report_dropped(place, &row);
    }

    /// Reports to the owner that a record is gone. A part is not reported, because the owner does
    /// not know it: a reader of its list finds it missing.
    pub(crate) fn report_dropped(&self, place: RecordAddress, row: &Row) {
        if row.flags() & IS_PART == 0 {
            self.shared.owner.dropped(row.hash, place);
        }
    }
}
