//! The state of a volume in use, and its counters.

use std::any::Any;
use std::sync::Arc;

use hashbrown::HashMap;

use super::finder::Finder;
use super::health::Health;
use super::queue::ReadQueue;
use super::record_queue::RecordQueue;
use super::store_context::StoreContext;
use super::writer_notes::WriterNotes;
use crate::checksum::Binding;
use crate::journal::Journal;
use crate::layout::{Blocks, Header, Superblock};
use crate::part_record::PartRecord;
use crate::record_address::RecordAddress;
use crate::segment::{Segment, Usage};
use crate::stats::{Stats, Tallies};
use crate::sync::{AtomicBool, AtomicU64, Condvar, Mutex, Ordering};
use crate::vfs::{File, Vfs};

/// A volume in use.
pub(crate) struct Volume {
    pub(crate) number: u8,
    pub(crate) name: String,
    pub(crate) vfs: Arc<dyn Vfs>,
    pub(crate) superblock: Superblock,
    pub(crate) key: u64,
    pub(crate) blocks: Blocks,
    pub(crate) files: Vec<Arc<dyn File>>,
    pub(crate) segments: Vec<Mutex<Segment>>,
    pub(crate) front: Mutex<RecordQueue>,
    /// Wakes the writer.
    pub(crate) wake: Condvar,
    pub(crate) writer: Mutex<WriterNotes>,
    pub(crate) journal: Journal,
    /// Lists of parts, by the addresses of their records.
    pub(crate) lists: Mutex<HashMap<RecordAddress, Box<[PartRecord]>>>,
    /// Segments that readers pin.
    pub(crate) held: AtomicU64,
    pub(crate) reads: ReadQueue,
    pub(crate) health: Health,
    pub(crate) tallies: Tallies,
    pub(crate) finder: Mutex<Option<Finder>>,
    /// True once the free segments are known.
    pub(crate) ready: AtomicBool,
    /// True once all records of former sessions have been found.
    pub(crate) found: AtomicBool,
    /// True once a snapshot was written after that.
    pub(crate) settled: AtomicBool,
    /// The generation of the newest snapshot.
    pub(crate) snapshot_before: AtomicU64,
    /// Obsolete invalidations. The writer adds them to the journal with a commit, when no record is
    /// half moved and emptied segments are free.
    pub(crate) obsolete: Mutex<Vec<u64>>,
    /// Bytes with which the journal began.
    pub(crate) carried: AtomicU64,
    /// Segments examined, of those with records.
    pub(crate) looked: AtomicU64,
    pub(crate) to_look: AtomicU64,
    /// True once nothing is accepted any more.
    pub(crate) stopping: AtomicBool,
    /// True once another volume has replaced it, so that it writes nothing.
    pub(crate) retired: AtomicBool,
    /// True once its threads are to end.
    pub(crate) ending: AtomicBool,
    /// True if a caller waits for the journal.
    pub(crate) urgent: Mutex<bool>,
    pub(crate) ring: Condvar,
    pub(crate) shared: Arc<StoreContext>,
    pub(crate) lock: Mutex<Option<Arc<dyn Any + Send + Sync>>>,
}

impl Volume {
    pub(crate) fn segment_bytes(&self) -> u32 {
        self.superblock.segment_bytes
    }

    /// The file of a segment, and the segment's offset in it.
    pub(crate) fn file(&self, segment: u32) -> (&Arc<dyn File>, u64) {
        let per_file = self.superblock.segments_per_file;
        let at = u64::from(segment % per_file) * u64::from(self.segment_bytes());
        (&self.files[(segment / per_file) as usize], at)
    }

    /// The segment of an address; `None` if the address is not valid on this volume.
    pub(crate) fn segment(&self, place: RecordAddress) -> Option<&Mutex<Segment>> {
        self.segments.get(place.segment() as usize)
    }

    pub(crate) fn binding(
        &self,
        segment: u32,
        epoch: u64,
        offset: u32,
        header: &Header,
    ) -> Binding {
        Binding { key: self.key, segment, epoch, offset, seq: header.seq, hash: header.hash }
    }

    /// Returns true if records are accepted.
    pub(crate) fn takes(&self) -> bool {
        self.health.is_in()
            && self.ready.load(Ordering::Acquire)
            && !self.stopping.load(Ordering::Acquire)
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Acquire)
    }

    /// Its bytes for records, if it accepts any now.
    pub(crate) fn takes_bytes(&self) -> u64 {
        let bytes = self.segments.len() as u64 * u64::from(self.segment_bytes());
        if self.takes() { bytes } else { 0 }
    }

    /// Returns true if the write queue may soon be full.
    pub(crate) fn is_behind(&self) -> bool {
        self.front.lock().queued_bytes > self.shared.config.queue_bytes / 2
    }

    /// Adds the volume's counters and gauges.
    pub(crate) fn add_stats(&self, stats: &mut Stats) {
        self.tallies.add_to(stats);
        let front = self.front.lock();
        stats.queued_bytes += front.queued_bytes;
        stats.free_segments += front.free.len() as u64;
        drop(front);
        for segment in &self.segments {
            let segment = segment.lock();
            stats.records += u64::from(segment.live);
            stats.live_bytes += segment.live_bytes;
            let used: u64 = segment
                .rows
                .last()
                .map_or(0, |last| u64::from(last.offset()) + u64::from(last.room()));
            stats.dead_bytes += used.saturating_sub(segment.live_bytes);
            stats.bad_segments += u64::from(segment.usage == Usage::Bad);
            stats.index_bytes += segment.rows.bytes();
        }
        stats.index_bytes += (self.segments.len() * size_of::<Mutex<Segment>>()) as u64;
        stats.bytes += self.segments.len() as u64 * u64::from(self.segment_bytes());
        stats.invalidations = stats.invalidations.max(self.journal.kept());
    }
}
