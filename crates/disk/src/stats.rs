//! Counters of a store, and their values at one moment.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Damage;

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// Counters that only grow, of one volume.
        #[derive(Debug, Default)]
        pub(crate) struct Tallies {
            $(pub(crate) $name: AtomicU64,)+
        }

        /// The store, or one volume, in numbers. What is not said to be of this moment has been
        /// counted since the start.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Stats {
            /// Live records at this moment.
            pub records: u64,
            /// Bytes of live records at this moment, as they lie on disk.
            pub live_bytes: u64,
            /// Bytes at this moment that are in use by segments and belong to no live record.
            pub dead_bytes: u64,
            /// Bytes of all segments at this moment.
            pub bytes: u64,
            /// Free segments at this moment.
            pub free_segments: u64,
            /// Segments at this moment that are out of use as they failed.
            pub bad_segments: u64,
            /// Bytes at this moment that wait to be written.
            pub queued_bytes: u64,
            /// Invalidations at this moment that are kept in the journal.
            pub invalidations: u64,
            /// Bytes of memory at this moment that know what is where.
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
            /// All that was counted since the start: names, meanings, values.
            pub fn counted(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                [$((stringify!($name), concat!($($doc),+).trim_ascii(), self.$name),)+].into_iter()
            }

            /// All that is of this moment: names, meanings, values.
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
    /// Records that were taken.
    puts,
    /// Bytes of them, as they lie on disk.
    put_bytes,
    /// Records that were not taken as too much waits to be written.
    refused_queue,
    /// Reads for clients that would keep more from being reclaimed than may be.
    refused_hold,
    /// Records that were not taken as no segment is free.
    refused_space,
    /// Records that were not taken as memory for knowing them was full.
    refused_index,
    /// Records that were not taken as the volume is out of use, or not ready yet.
    refused_out,
    /// Records that were not taken as they are too long.
    refused_length,
    /// Bytes of records that are written, or that were forgotten before.
    written_records,
    /// Bytes written to segments: records, headers, tables, padding.
    written_bytes,
    /// Bytes written to journals and snapshots.
    journal_bytes,
    /// Records that were forgotten by their owner.
    forgotten,
    /// Records that moved on as their segment was reclaimed.
    moved,
    /// Bytes of them.
    moved_bytes,
    /// Records that were dropped as their segment was reclaimed.
    dropped,
    /// Records that were dropped as memory for knowing them was full.
    dropped_index,
    /// Records that were lost as they could not be written.
    lost,
    /// Segments that were reclaimed.
    reclaimed,
    /// Times that segments were made durable.
    commits,
    /// Times that the journal was.
    journal_commits,
    /// Snapshots written.
    snapshots,
    /// Reads that brought what was asked for.
    reads,
    /// Reads that found it waiting to be written.
    reads_queued,
    /// Reads that found it in memory of the system.
    reads_now,
    /// Bytes of bodies that were read.
    read_bytes,
    /// Reads that found no record at the place.
    reads_gone,
    /// Reads that missed their deadline.
    reads_late,
    /// Reads that were refused as too many waited.
    reads_busy,
    /// Records found at the start.
    found,
    /// Records at the start that had expired.
    found_expired,
    /// Records whose header was damaged.
    damaged_header,
    /// Blocks with a wrong checksum.
    damaged_sum,
    /// Places with another record than they should have.
    damaged_other,
    /// Records cut off by the end of their file.
    damaged_cut,
    /// Segments whose table was damaged or cut off by a crash: each record was looked for.
    damaged_table,
    /// Journals that were damaged, which empties their volume.
    damaged_journal,
    /// Snapshots that were damaged.
    damaged_snapshot,
    /// Reads that the system failed.
    errors_read,
    /// Writes that the system failed.
    errors_write,
    /// Writes that found the disk full.
    errors_full,
    /// Syncs that the system failed.
    errors_sync,
    /// Panics of its threads, which go on.
    panics,
    /// Times that the volume was taken out.
    outs,
    /// Times that the volume paused.
    pauses,
}

impl Tallies {
    /// Counts a damage of this kind.
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
    /// Bytes written to segments for each byte that was put and written.
    pub fn amplification(&self) -> f64 {
        let own = self.written_records.saturating_sub(self.moved_bytes).max(1);
        self.written_bytes as f64 / own as f64
    }

    /// Operations that the system failed, of any kind.
    pub fn errors(&self) -> u64 {
        self.errors_read + self.errors_write + self.errors_full + self.errors_sync
    }

    /// Damage found, of any kind.
    pub fn damaged(&self) -> u64 {
        self.damaged_header + self.damaged_sum + self.damaged_other + self.damaged_cut
    }
}

/// Adds to a counter that others only read.
pub(crate) fn add(counter: &AtomicU64, number: u64) {
    counter.fetch_add(number, Ordering::Relaxed);
}
