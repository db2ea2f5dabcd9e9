//! Reclamation: the segment of least value is emptied when free segments run short. Records that
//! were read since they were written move, within limits; the others are dropped. If all that is
//! left is within the limits, all of it moves, as in a segment that a crash ended early. It must
//! never write more than `move_percent` permits.

use std::sync::Arc;

use bytes::Bytes;

use crate::body::{Body, RecordPieces};
use crate::config::Config;
use crate::layout::{ASKED, Header, IS_LISTED, IS_PART, LISTED, LIVE, PART, Row};
use crate::part_record::PartRecord;
use crate::record_address::RecordAddress;
use crate::segment::{Segment, SegmentUse, Usage};
use crate::stats::add;
use crate::sync::Ordering;
use crate::volume::{Job, NewRecord, Volume};

/// The value of a byte that was read, in bytes that were not.
const ASKED_WORTH: u64 = 4;

/// The most free segments that a volume keeps ready.
const SPARED: usize = 4;

/// The values by which a segment is selected.
struct Victim {
    used: SegmentUse,
    worth: u64,
}

impl Victim {
    fn of(number: u32, segment: &Segment) -> Self {
        let worth = segment.live_bytes + segment.asked_bytes * (ASKED_WORTH - 1);
        Self { used: SegmentUse { segment: number, epoch: segment.epoch }, worth }
    }
}

impl Volume {
    /// Empties a segment if few are free, or if memory for rows is nearly used up. Returns true if
    /// it did.
    pub(crate) fn reclaim_turn(&self) -> bool {
        if !self.found.load(Ordering::Acquire) || !self.health.is_in() {
            return false;
        }
        let coming = self.segments.iter().filter(|slot| slot.lock().usage == Usage::Emptied);
        let coming = coming.count();
        let free = self.front.lock().free.len() + coming;
        // A small volume keeps fewer ready. One more is for records that move.
        let spare = self.shared.config.spare_segments as usize;
        let is_short = free <= spare.min(self.segments.len() / SPARED);
        let knows_much = self.knows_much();
        if !is_short && !knows_much {
            return false;
        }
        let Some(least) = self.least() else { return false };
        if !self.segments[least.segment as usize].lock().leave() {
            // A reader has just pinned it.
            return true;
        }
        let dropped = self.empty_segment(least, knows_much);
        add(&self.tallies.dropped, dropped);
        add(&self.tallies.dropped_index, if knows_much { dropped } else { 0 });
        true
    }

    /// Returns true if memory for rows is nearly used up, and this volume uses at least half of the
    /// average.
    fn knows_much(&self) -> bool {
        let Config { index, volumes, .. } = &self.shared.config;
        if !index.is_short() {
            return false;
        }
        let own: u64 = self.segments.iter().map(|segment| segment.lock().rows.bytes()).sum();
        own.saturating_mul(2 * volumes.len() as u64) >= index.used()
    }

    /// The segment of least value: the worth of its records, less for older segments.
    fn least(&self) -> Option<SegmentUse> {
        let sealed = (0..).zip(&self.segments).filter_map(|(number, slot)| {
            let segment = slot.lock();
            segment.may_leave().then(|| Victim::of(number, &segment))
        });
        let mut victims: Vec<Victim> = sealed.collect();
        victims.sort_unstable_by_key(|victim| victim.used.epoch);
        let count = victims.len() as u64;
        // The oldest segment counts for a fraction of its value as the newest.
        let value = |(age, victim): &(u64, &Victim)| victim.worth * (age + count / 4 + 1);
        let (_, least) = (0..).zip(&victims).min_by_key(value)?;
        Some(least.used)
    }

    /// Empties a segment and returns the number of records dropped. To free memory for rows, at
    /// least half of them are dropped, because moved records keep their rows.
    fn empty_segment(&self, from: SegmentUse, frees_memory: bool) -> u64 {
        let SegmentUse { segment, epoch } = from;
        let rows: Vec<Row> = {
            let known = self.segments[segment as usize].lock();
            known.rows.iter().filter(|row| row.is(LIVE)).copied().collect()
        };
        let mut budget = u64::from(self.segment_bytes())
            * u64::from(self.shared.config.move_percent.min(100))
            / 100;
        let now_s = self.shared.now().unix_ms / 1000;
        let is_good = |row: &&Row| row.is(PART) || u64::from(row.expires_s) > now_s;
        let good: u64 = rows.iter().filter(is_good).map(|row| u64::from(row.room())).sum();
        let is_little = good <= budget && !frees_memory;
        if frees_memory {
            budget = budget.min(good / 2);
        }
        for row in rows.iter().filter(is_good) {
            let place = self.place(segment, epoch, row);
            let wanted = (row.is(ASKED) || is_little) && !row.is(PART);
            if wanted && u64::from(row.room()) <= budget && self.move_record(place, row, None) {
                budget -= u64::from(row.room());
            }
        }
        let dropped = self.move_parts(from, &rows, is_little, &mut budget);
        let left: Vec<(RecordAddress, Row)> = {
            let mut known = self.segments[segment as usize].lock();
            let live = known.rows.iter().filter(|row| row.is(LIVE));
            let left = live.map(|row| (self.place(segment, epoch, row), *row)).collect();
            known.clear();
            left
        };
        for (place, row) in &left {
            if row.is(LISTED) {
                let parts = self.lists.lock().remove(place);
                self.end_parts(&parts.unwrap_or_default());
            }
            self.report_dropped(*place, row);
        }
        add(&self.tallies.reclaimed, 1);
        self.front.lock().jobs.push_back(Job::Release { segment, epoch });
        self.wake.notify_one();
        dropped + left.len() as u64
    }

    /// Writes a record again, with another list of parts if given. Returns false if it stays in
    /// place or is gone.
    fn move_record(&self, place: RecordAddress, row: &Row, parts: Option<&[PartRecord]>) -> bool {
        let Some((header, head, body)) = self.read_record(place) else { return false };
        let new = match parts {
            Some(parts) => again(&header, head, vec![PartRecord::encode(parts)]),
            None => again(&header, head, body),
        };
        let Some((moved, _)) = self.add(new) else { return false };
        let known = self.lists.lock().remove(&place);
        if row.is(LISTED)
            && let Some(parts) = parts.map(Box::from).or(known)
        {
            self.lists.lock().insert(moved, parts);
        }
        // The owner may have forgotten it meanwhile, and has no entry for the new place.
        let wanted =
            self.kill(place).is_some() && self.shared.owner.moved(header.hash, place, moved);
        if parts.is_some() {
            // Its segment may stay, so the journal must list the record as dead.
            self.front.lock().jobs.push_back(Job::Moved { place });
        }
        if wanted {
            add(&self.tallies.moved, 1);
            add(&self.tallies.moved_bytes, u64::from(row.len));
        } else {
            self.forget(moved);
        }
        true
    }

    /// Moves parts in the segment, of bodies that were read or of all, and writes their lists
    /// again: a body without a part is lost. Returns the number of bodies dropped.
    fn move_parts(&self, from: SegmentUse, rows: &[Row], every: bool, budget: &mut u64) -> u64 {
        let SegmentUse { segment, epoch } = from;
        let mut dropped = 0;
        if !rows.iter().any(|row| row.is(PART)) {
            return dropped;
        }
        let is_here = |part: &PartRecord| part.place.segment() == segment;
        let touched: Vec<(RecordAddress, Box<[PartRecord]>)> = {
            let lists = self.lists.lock();
            let touched = lists.iter().filter(|(_, parts)| parts.iter().any(is_here));
            touched.map(|(place, parts)| (*place, parts.clone())).collect()
        };
        for (place, parts) in touched {
            let row = self.segment(place).and_then(|slot| slot.lock().row(place).copied());
            let Some(row) = row else { continue };
            let bytes: u64 = parts.iter().filter(|part| is_here(part)).map(|part| part.len).sum();
            if (row.is(ASKED) || every)
                && bytes <= *budget
                && let Some(moved) = self.copy_parts(&parts, is_here)
            {
                *budget -= bytes;
                if self.move_record(place, &row, Some(&moved)) {
                    continue;
                }
                let fresh: Vec<PartRecord> =
                    moved.iter().filter(|part| !parts.contains(part)).copied().collect();
                self.end_parts(&fresh);
            }
            if let Some(row) = self.kill(place) {
                self.end_record(place, row);
                self.report_dropped(place, &row);
                dropped += 1;
            }
        }
        debug_assert_eq!(
            self.segments[segment as usize].lock().epoch,
            epoch,
            "no other thread opens it"
        );
        dropped
    }

    /// The parts, with copies of those selected by `moves`; `None` if one cannot be copied.
    fn copy_parts(
        &self,
        parts: &[PartRecord],
        moves: impl Fn(&PartRecord) -> bool,
    ) -> Option<Vec<PartRecord>> {
        let mut copied: Vec<PartRecord> = Vec::new();
        let mut fresh = Vec::new();
        for part in parts {
            if !moves(part) {
                copied.push(*part);
                continue;
            }
            let added = self.read_record(part.place).and_then(|(header, head, body)| {
                (header.seq == part.seq).then(|| self.add(again(&header, head, body)))?
            });
            add(&self.tallies.moved_bytes, part.len);
            let Some((place, seq)) = added else {
                self.end_parts(&fresh);
                return None;
            };
            let moved = PartRecord { place, seq, len: part.len };
            copied.push(moved);
            fresh.push(moved);
        }
        Some(copied)
    }
}

/// A record to be written again.
fn again(header: &Header, head: Bytes, body: Vec<Bytes>) -> NewRecord {
    let len = body.iter().map(|piece| piece.len() as u64).sum();
    NewRecord {
        flags: header.flags & (IS_PART | IS_LISTED),
        hash: header.hash,
        passed: header.passed,
        expires_ms: header.expires_ms,
        order: Some(header.order),
        head,
        body: Body::Lent(Arc::new(RecordPieces(body))),
        range: 0..len,
        total: header.total,
        moves: true,
    }
}
