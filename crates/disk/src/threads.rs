//! The store's threads: for each volume a writer, one for the journal, some readers and one for
//! discovery; and a sentinel for all volumes. A thread that hangs in a disk must not stop the
//! others.

use std::sync::Arc;
use std::time::Duration;

use crate::health::OperationFailure;
use crate::stats::add;
use crate::store::StoreCore;
use crate::sync::{MutexGuard, Ordering};
use crate::volume::Volume;

/// The interval of the sentinel's checks, if no read has an earlier deadline.
const LOOK_MS: u64 = 1000;

impl StoreCore {
    pub(crate) fn begin_threads(self: &Arc<Self>) {
        if !self.shared.config.threads {
            return;
        }
        self.volumes().for_each(|volume| self.serve_volume(&volume));
        let core = Arc::clone(self);
        self.threads.spawn("disk-sentinel", move || core.watch(), || ());
    }

    /// Starts the threads of one volume.
    pub(crate) fn serve_volume(&self, volume: &Arc<Volume>) {
        if !self.shared.config.threads {
            return;
        }
        let spawn = |name: &str, work: fn(&Volume), panicked: fn(&Volume)| {
            let (own, told) = (Arc::clone(volume), Arc::clone(volume));
            let panicked = move || {
                add(&told.tallies.panics, 1);
                panicked(&told);
            };
            self.threads.spawn(name, move || work(&own), panicked);
        };
        spawn("disk-write", Volume::write_loop, Volume::panicked);
        spawn("disk-journal", Volume::journal_loop, Volume::panicked);
        for _ in 0..self.shared.config.reader_threads.max(1) {
            spawn("disk-read", Volume::read_loop, |volume| volume.trouble(OperationFailure::Error));
        }
    }

    pub(crate) fn begin_finding(&self) {
        self.volumes().for_each(|volume| self.find_on(&volume));
    }

    pub(crate) fn find_on(&self, volume: &Arc<Volume>) {
        if self.shared.config.threads {
            let own = Arc::clone(volume);
            let told = Arc::clone(volume);
            let panicked = move || {
                add(&told.tallies.panics, 1);
                told.panicked();
            };
            self.threads.spawn("disk-find", move || while own.find_turn() {}, panicked);
        }
    }

    /// Rejects late reads, and tries volumes again.
    fn watch(self: &Arc<Self>) {
        let mut ending = self.threads.ending.lock();
        while !*ending {
            let now_ms = self.shared.now().mono_ms;
            // A read with a deadline wakes the sentinel from here on.
            self.planned_ms.store(u64::MAX, Ordering::Release);
            let earliest = self.volumes().filter_map(|volume| volume.reads.earliest()).min();
            let wait_ms =
                earliest.map_or(LOOK_MS, |at| at.saturating_sub(now_ms).clamp(1, LOOK_MS));
            self.planned_ms.store(now_ms + wait_ms, Ordering::Release);
            self.threads.bell.wait_for(&mut ending, Duration::from_millis(wait_ms));
            MutexGuard::unlocked(&mut ending, || self.tick());
        }
    }

    /// One step of all work that threads do.
    pub(crate) fn step(&self, force: bool) -> bool {
        let mut worked = false;
        for volume in self.volumes() {
            worked |= volume.find_turn();
            worked |= volume.write_turn(force);
            worked |= volume.housekeeping();
            worked |= volume.read_turn();
        }
        worked
    }

    /// Ends all threads but those that read.
    pub(crate) fn end_writing(&self) {
        *self.threads.ending.lock() = true;
        self.threads.bell.notify_all();
        self.volumes().for_each(|volume| volume.end_writing());
    }

    /// Ends all threads.
    pub(crate) fn end_threads(&self) {
        *self.threads.ending.lock() = true;
        self.threads.bell.notify_all();
        self.volumes().for_each(|volume| volume.end());
        self.threads.wait(Duration::from_millis(self.shared.config.append_ms));
    }
}

impl Volume {
    fn write_loop(&self) {
        let commit_ms = self.shared.config.commit_ms.max(1);
        while !self.is_ending() {
            if self.write_turn(false) | self.housekeeping() {
                continue;
            }
            let mut front = self.front.lock();
            if front.jobs.is_empty() && !self.is_ending() {
                // A commit is late by no more than this.
                self.wake.wait_for(&mut front, Duration::from_millis(commit_ms.div_ceil(4)));
            }
        }
    }

    fn journal_loop(&self) {
        let mut urgent = self.urgent.lock();
        while !self.is_ending() {
            if std::mem::take(&mut *urgent) {
                MutexGuard::unlocked(&mut urgent, || self.flush_journal());
            } else {
                self.ring.wait(&mut urgent);
            }
        }
    }

    /// Hurries the journal, because a caller waits for it.
    pub(crate) fn hurry(&self) {
        if self.shared.config.threads {
            *self.urgent.lock() = true;
            self.ring.notify_one();
        } else {
            self.flush_journal();
        }
    }

    /// Ends the threads of the volume, whatever their work.
    pub(crate) fn end(&self) {
        self.end_writing();
        self.reads.end();
        self.refuse_reads();
        self.reads.wake_all();
    }

    /// Ends the threads of the volume that write.
    pub(crate) fn end_writing(&self) {
        self.ending.store(true, Ordering::Release);
        self.stopping.store(true, Ordering::Release);
        // A thread that is about to wait holds the lock. Then it sees the end, or is woken.
        drop(self.front.lock());
        self.wake.notify_all();
        drop(self.urgent.lock());
        self.ring.notify_all();
    }
}
