//! The stats of a store: the counters of each volume, and a snapshot of them with the gauges.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Damage;

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// The counters of one volume, which only grow.
        #[derive(Debug, Default)]
        pub(crate) struct Tallies {
            $(pub(crate) $name: AtomicU64,)+
        }

        /// Counters and gauges of the store or of one volume. Counters start with the process; the
        /// comments of gauges say "now".
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Stats {
            /// Live records now.
            pub records: u64,
            /// Bytes of live records on disk now.
            pub live_bytes: u64,
            /// Bytes of segments in use that belong to no live record, now.
            pub dead_bytes: u64,
            /// Bytes of all segments now.
            pub bytes: u64,
            /// Free segments now.
            pub free_segments: u64,
            /// Segments out of use after a failure, now.
            pub bad_segments: u64,
            /// Bytes in the write queue now.
            pub queued_bytes: u64,
            /// Invalidations in the journal now.
            pub invalidations: u64,
            /// Bytes of memory for the rows of records now.
            pub index_bytes: u64,
            $($(#[doc = $doc])+ pub $name: u64,)+
        }

        impl Tallies {
            /// Adds the counters to `stats`.
            pub(crate) fn add_to(&self, stats: &mut Stats) {
                $(stats.$name += self.$name.load(Ordering::Relaxed);)+
            }
        }

        impl Stats {
            /// All counters: names, help texts, values.
            pub fn counted(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                [$((stringify!($name), concat!($($doc),+).trim_ascii(), self.$name),)+].into_iter()
            }

            /// All gauges: names, help texts, values.
            pub fn gauges(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                [
                    ("records", "Records on disk.", self.records),
                    ("live_bytes", "Bytes of records, as they lie on disk.", self.live_bytes),
                    ("dead_bytes", "Bytes that belong to no record any more.", self.dead_bytes),
                    ("bytes", "Bytes of all segments.", self.bytes),
                    ("free_segments", "Segments that are free.", self.free_segments),
                    ("bad_segments", "Segments that failed, and are not used.", self.bad_segments),
                    ("queued_bytes", "Bytes that wait to be written.", self.queued_bytes),
                    ("invalidations", "Invalidations kept in the journal.", self.invalidations),
                    ("index_bytes", "Bytes of memory that know what is where.", self.index_bytes),
                ]
                .into_iter()
            }
        }
    };
}

counters! {
    /// Records accepted.
    puts,
    /// Bytes of accepted records, as stored on disk.
    put_bytes,
    /// Records rejected because the write queue was full.
    refused_queue,
    /// Reads for clients that would exceed the limit of pinned segments.
    refused_hold,
    /// Records rejected because no segment was free.
    refused_space,
    /// Records rejected because memory for rows was full.
    refused_index,
    /// Records rejected because the volume was out or not ready.
    refused_out,
    /// Records rejected because they were too long.
    refused_length,
    /// Bytes of records that were written, or forgotten before that.
    written_records,
    /// Bytes written to segments: records, headers, tables, padding.
    written_bytes,
    /// Bytes written to journals and snapshots.
    journal_bytes,
    /// Records forgotten by their owner.
    forgotten,
    /// Records moved out of reclaimed segments.
    moved,
    /// Bytes of moved records.
    moved_bytes,
    /// Records dropped with reclaimed segments.
    dropped,
    /// Records dropped because memory for rows was full.
    dropped_index,
    /// Records lost because they could not be written.
    lost,
    /// Segments reclaimed.
    reclaimed,
    /// Commits of segments.
    commits,
    /// Commits of the journal.
    journal_commits,
    /// Snapshots written.
    snapshots,
    /// Reads that returned data.
    reads,
    /// Reads answered from the write queue.
    reads_queued,
    /// Reads answered from the system's memory.
    reads_now,
    /// Bytes of bodies read.
    read_bytes,
    /// Reads that found no record at the place.
    reads_gone,
    /// Reads that missed their deadline.
    reads_late,
    /// Reads rejected because the queue was full.
    reads_busy,
    /// Records found at the start.
    found,
    /// Records found at the start that had expired.
    found_expired,
    /// Records with a damaged header.
    damaged_header,
    /// Blocks with a wrong checksum.
    damaged_sum,
    /// Places with another record than expected.
    damaged_other,
    /// Records truncated by the end of their file.
    damaged_cut,
    /// Segments whose table was damaged or cut off by a crash, and that were searched record by
    /// record.
    damaged_table,
    /// Damaged journals, which empty their volume.
    damaged_journal,
    /// Damaged snapshots.
    damaged_snapshot,
    /// Reads failed by the system.
    errors_read,
    /// Writes failed by the system.
    errors_write,
    /// Writes that found the disk full.
    errors_full,
    /// Syncs failed by the system.
    errors_sync,
    /// Panics of the store's threads, which continue.
    panics,
    /// Times the volume was taken out.
    outs,
    /// Times the volume was paused.
    pauses,
}

impl Tallies {
    /// Counts damage of this kind.
    pub(crate) fn damaged(&self, damage: Damage) {
        let counter = match damage {
            Damage::Header => &self.damaged_header,
            Damage::Sum => &self.damaged_sum,
            Damage::Other => &self.damaged_other,
            Damage::Cut => &self.damaged_cut,
        };
        add(counter, 1);
    }
}

impl Stats {
    /// Bytes written to segments for each byte of a record put and written.
    pub fn amplification(&self) -> f64 {
        let own = self.written_records.saturating_sub(self.moved_bytes).max(1);
        self.written_bytes as f64 / own as f64
    }

    /// Operations failed by the system, of any kind.
    pub fn errors(&self) -> u64 {
        self.errors_read + self.errors_write + self.errors_full + self.errors_sync
    }

    /// Damage found, of any kind.
    pub fn damaged(&self) -> u64 {
        self.damaged_header + self.damaged_sum + self.damaged_other + self.damaged_cut
    }
}

/// Adds to a counter.
pub(crate) fn add(counter: &AtomicU64, number: u64) {
    counter.fetch_add(number, Ordering::Relaxed);
}
