//! The checkpoint: when the journal has grown, the writer begins a new one and writes a snapshot. A
//! journal or snapshot must never be removed while a start may need it.

use crate::health::OperationFailure;
use crate::segment::Usage;
use crate::snapshot::{self, SegmentMarks};
use crate::stats::add;
use crate::sync::Ordering;
use crate::volume::Volume;
use crate::writer::is_full;

impl Volume {
    /// Reclaims segments, and writes a checkpoint if it is due. Returns true if there was work.
    pub(crate) fn housekeeping(&self) -> bool {
        if self.health.is_out() {
            self.write_marker();
            return false;
        }
        let reclaimed = self.reclaim_turn();
        let grown = self.journal.size() >= self.shared.config.journal_bytes + self.carried();
        let first = !self.settled.load(Ordering::Acquire);
        if !self.found.load(Ordering::Acquire) || !(grown || first) {
            return reclaimed;
        }
        self.settled.store(true, Ordering::Release);
        self.drain();
        self.checkpoint();
        true
    }

    /// Bytes with which each new journal begins.
    fn carried(&self) -> u64 {
        self.carried.load(Ordering::Relaxed)
    }

    /// Begins a new journal and writes a snapshot, which makes older ones obsolete. Only the writer
    /// may call this, while its queue is empty.
    pub(crate) fn checkpoint(&self) {
        let all = self.segments.iter().all(|slot| slot.lock().usage != Usage::Emptied);
        if !self.found.load(Ordering::Acquire) || self.health.is_out() || !all {
            return;
        }
        let Some(generation) = self.journal.generation() else { return };
        let done = self.rotate(generation + 1).and_then(|()| self.write_snapshot(generation + 1));
        if done.is_err() {
            // It is tried again when the journal has grown by this much again.
            self.carried.store(self.journal.size(), Ordering::Relaxed);
        }
        match done {
            Ok(()) => add(&self.tallies.snapshots, 1),
            Err(error) if self.journal.has_failed() => {
                add(&self.tallies.errors_write, u64::from(!is_full(&error)));
                self.trouble(OperationFailure::Journal);
            }
            Err(error) if is_full(&error) => {
                add(&self.tallies.errors_full, 1);
                self.trouble(OperationFailure::Full);
            }
            Err(_) => {
                add(&self.tallies.errors_write, 1);
                self.trouble(OperationFailure::Error);
            }
        }
    }

    /// Continues in a new journal.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn rotate(&self, generation: u64) -> std::io::Result<()> {
        // Reserved, so that other files on the disk cannot take the space that a purge needs.
        let room = self.shared.config.journal_bytes * 3 / 2;
        let bytes = self.journal.rotate(self.shared.moment(), generation, room)?;
        self.carried.store(self.journal.size(), Ordering::Relaxed);
        add(&self.tallies.journal_bytes, bytes);
        Ok(())
    }

    fn write_snapshot(&self, generation: u64) -> std::io::Result<()> {
        let segments = (0..).zip(&self.segments).filter_map(|(number, slot)| {
            let segment = slot.lock();
            (segment.epoch != 0).then(|| (number, SegmentMarks::of(&segment)))
        });
        let sealed = self.journal.sealed();
        let bytes = snapshot::write(&*self.vfs, self.key, generation, sealed, segments)?;
        add(&self.tallies.journal_bytes, bytes);
        // The snapshot before it is kept, with all journals since, in case the new one is damaged.
        let before = self.snapshot_before.swap(generation, Ordering::Relaxed);
        snapshot::remove_before(&*self.vfs, before)
    }
}
