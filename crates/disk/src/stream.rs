//! A body that is put into the store while it comes: in parts, which can be read at once, and then
//! the record that lists them. One that is dropped before its end leaves nothing that counts.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;

use crate::body::{Body, RecordPieces};
use crate::entry::Entry;
use crate::part_record::PartRecord;
use crate::record_address::RecordAddress;
use crate::volume::{NewRecord, Volume};

/// The fate of a part that was pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartOutcome {
    /// It is taken, and can be read.
    Taken(PartRecord),
    /// Too much waits to be written: nothing is taken, and it may be tried again later.
    Full,
    /// The store takes no more of this body.
    Refused,
}

/// A body on its way into the store.
pub struct Stream {
    volume: Arc<Volume>,
    hash: u64,
    parts: Vec<PartRecord>,
    /// Segments in which they are, and which stay as long as the body comes.
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

    /// Adds the next part of the body, in pieces.
    pub fn push(&mut self, pieces: Vec<Bytes>) -> PartOutcome {
        let body = Body::Lent(Arc::new(RecordPieces(pieces)));
        let len = body.size();
        if !self.volume.takes() || len > self.part_bytes() {
            return PartOutcome::Refused;
        }
        let Some(part) = self.volume.add_part(self.hash, body, 0..len) else {
            // Room comes back as the queue is written and segments are reclaimed.
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

    /// Ends the body: `entry` says what it is the body of, and has none itself. `None` if the store
    /// does not take that now; it may be tried again later.
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
        self.volume.bury_parts(&self.parts);
    }
}
