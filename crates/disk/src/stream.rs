//! A stream: a body that is stored while it arrives, as part records that can be read at once, and
//! a last record that lists them. A stream that is dropped before its end leaves no live record.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;

use crate::body::{Body, RecordPieces};
use crate::entry::Entry;
use crate::part_record::PartRecord;
use crate::record_address::RecordAddress;
use crate::volume::{NewRecord, Volume};

/// The outcome of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartOutcome {
    /// The part is accepted, and can be read.
    Taken(PartRecord),
    /// The write queue is full: the push may be repeated later.
    Full,
    /// The store accepts no more of this body.
    Refused,
}

/// A body that is being stored while it arrives.
pub struct Stream {
    volume: Arc<Volume>,
    hash: u64,
    parts: Vec<PartRecord>,
    /// Segments with the parts, which are not reclaimed while the body arrives.
    segments: BTreeSet<u32>,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("parts", &self.parts.len()).finish_non_exhaustive()
    }
}

impl Stream {
    pub(crate) fn new(volume: Arc<Volume>, hash: u64) -> Self {
        Self { volume, hash, parts: Vec::new(), segments: BTreeSet::new() }
    }

    /// Bytes of a part; the last one may have fewer.
    pub fn part_bytes(&self) -> u64 {
        u64::from(self.volume.part_bytes())
    }

    /// Adds the next part of the body, in chunks.
    pub fn push(&mut self, pieces: Vec<Bytes>) -> PartOutcome {
        let body = Body::Lent(Arc::new(RecordPieces(pieces)));
        let len = body.size();
        if !self.volume.takes() || len > self.part_bytes() {
            return PartOutcome::Refused;
        }
        let Some(part) = self.volume.add_part(self.hash, body, 0..len) else {
            // Space returns as the queue is written and segments are reclaimed.
            return PartOutcome::Full;
        };
        if self.segments.insert(part.place.segment())
            && let Some(segment) = self.volume.segment(part.place)
        {
            segment.lock().coming += 1;
        }
        self.parts.push(part);
        PartOutcome::Taken(part)
    }

    /// Ends the body with `entry`, which has no body itself. `None` if the store rejects it now;
    /// the call may be repeated later.
    pub fn finish(&mut self, entry: Entry) -> Option<RecordAddress> {
        let new = NewRecord { hash: self.hash, ..NewRecord::of(entry) };
        let place = self.volume.add_listed(new, &self.parts)?;
        self.parts = Vec::new();
        Some(place)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        for number in &self.segments {
            let mut segment = self.volume.segments[*number as usize].lock();
            segment.coming = segment.coming.saturating_sub(1);
        }
        self.volume.end_parts(&self.parts);
    }
}
