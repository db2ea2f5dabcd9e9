//! The writer of a volume: takes records from the queue in order, writes them in runs, and commits
//! them together. A failed write loses its records, and must have no other effect.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use rustix::io::Errno;

use crate::health::OperationFailure;
use crate::journal::JournalItem;
use crate::layout::{FRAME_BYTES, Footer, LIVE, Row, SegmentHeader, UNIT};
use crate::record_address::RecordAddress;
use crate::segment::Usage;
use crate::stats::add;
use crate::sync::Ordering;
use crate::vfs::write_all;
use crate::volume::{Job, ObsoleteInvalidations, QueuedRecord, Volume, WriterNotes};

/// Bytes of one write: larger writes are not faster.
const RUN_BYTES: usize = 4 << 20;

/// Consecutive bytes of one write.
#[derive(Default)]
struct WriteRun {
    segment: u32,
    epoch: u64,
    at: u32,
    bytes: Vec<u8>,
    records: Vec<Arc<QueuedRecord>>,
}

impl WriteRun {
    fn takes(&self, segment: u32, epoch: u64, at: u32) -> bool {
        self.bytes.is_empty()
            || (self.segment, self.epoch, self.at as usize + self.bytes.len())
                == (segment, epoch, at as usize)
    }
}

/// Returns true if the disk is full, which may pass.
pub(crate) fn is_full(error: &io::Error) -> bool {
    let errno = error.raw_os_error();
    [Errno::NOSPC, Errno::DQUOT].iter().any(|full| errno == Some(full.raw_os_error()))
}

impl Volume {
    /// Writes some of the queue, and commits if it is due or `force` is true. Returns true if there
    /// was work.
    pub(crate) fn write_turn(&self, force: bool) -> bool {
        let mut writer = self.writer.lock();
        if self.retired.load(Ordering::Acquire) {
            return false;
        }
        let mut run = WriteRun::default();
        let jobs = self.take_jobs();
        let worked = !jobs.is_empty();
        for job in jobs {
            self.work(&mut writer, &mut run, job);
        }
        self.write_run(&mut writer, &mut run);
        let now_ms = self.shared.now().mono_ms;
        let idle = [writer.dirty.is_empty(), writer.freeing.is_empty(), writer.moved.is_empty()];
        let is_needless = writer.obsolete.is_some() || !self.obsolete.lock().is_empty();
        let waits = idle.contains(&false) || is_needless;
        if !waits && (!self.journal.is_waiting() || self.health.is_out()) {
            writer.committed_ms = now_ms;
            return worked;
        }
        let due = now_ms.saturating_sub(writer.committed_ms) >= self.shared.config.commit_ms;
        if due || force {
            writer.committed_ms = now_ms;
            self.commit(&mut writer);
            return true;
        }
        worked
    }

    /// The jobs of one turn. Puts wait for the same lock.
    fn take_jobs(&self) -> Vec<Job> {
        let mut front = self.front.lock();
        let mut bytes = 0;
        let jobs = front.jobs.iter().take_while(|job| {
            let before = bytes;
            bytes += if let Job::Record(queued) = job { queued.len as usize } else { 0 };
            before < RUN_BYTES
        });
        let count = jobs.count();
        front.jobs.drain(..count).collect()
    }

    fn work(&self, writer: &mut WriterNotes, run: &mut WriteRun, job: Job) {
        match job {
            Job::Open { segment, epoch } => {
                self.write_run(writer, run);
                let bytes = SegmentHeader { epoch }.encode(self.key, segment);
                *run = WriteRun { segment, epoch, bytes, ..WriteRun::default() };
            }
            Job::Record(queued) => self.take(writer, run, queued),
            Job::Seal { segment, epoch } => {
                self.write_run(writer, run);
                self.seal(writer, segment, epoch);
            }
            Job::Erase { place, epoch, room } => {
                self.write_run(writer, run);
                let (segment, at) = (place.segment(), place.unit() * UNIT);
                let still = self.segments[segment as usize].lock().epoch == epoch;
                if still {
                    let bytes = vec![0; room as usize];
                    *run = WriteRun { segment, epoch, at, bytes, ..WriteRun::default() };
                    self.write_run(writer, run);
                }
            }
            Job::Moved { place } => writer.moved.push(place),
            Job::Release { segment, epoch } => {
                self.write_run(writer, run);
                if self.shared.config.erase {
                    let bytes = vec![0; self.segment_bytes() as usize];
                    *run = WriteRun { segment, epoch, bytes, ..WriteRun::default() };
                    self.write_run(writer, run);
                }
                writer.freeing.push((segment, epoch));
            }
        }
    }

    /// Adds a record to the run. A forgotten record leaves a gap.
    fn take(&self, writer: &mut WriterNotes, run: &mut WriteRun, queued: Arc<QueuedRecord>) {
        let segment = queued.place.segment();
        if !run.takes(segment, queued.epoch, queued.offset) {
            self.write_run(writer, run);
        }
        let (open, wanted) = {
            let known = self.segments[segment as usize].lock();
            let open =
                known.epoch == queued.epoch && matches!(known.usage, Usage::Open | Usage::Full);
            (open, known.row(queued.place).is_some())
        };
        if !open {
            self.drop_lost(queued.place);
            self.done_with(&[queued]);
            return;
        }
        if run.bytes.is_empty() {
            *run =
                WriteRun { segment, epoch: queued.epoch, at: queued.offset, ..WriteRun::default() };
        }
        if wanted {
            let binding = self.binding(segment, queued.epoch, queued.offset, &queued.header);
            self.blocks.encode(&mut run.bytes, &binding, &queued.header, |put| {
                put(&queued.head);
                queued.body.pieces(&queued.range, put);
            });
        }
        // A body that does not have its declared length is rejected.
        let end = (queued.offset - run.at) as usize + queued.len as usize;
        let end = end.next_multiple_of(UNIT as usize);
        run.bytes.resize(end, 0);
        run.records.push(queued);
    }

    /// Removes records from the queue.
    fn done_with(&self, records: &[Arc<QueuedRecord>]) {
        let bytes = records.iter().map(|queued| u64::from(queued.len)).sum();
        let mut front = self.front.lock();
        for queued in records {
            front.pending.remove(&queued.place);
        }
        front.queued_bytes -= bytes;
        drop(front);
        add(&self.tallies.written_records, bytes);
    }

    fn write_run(&self, writer: &mut WriterNotes, run: &mut WriteRun) {
        let run = std::mem::take(run);
        if run.bytes.is_empty() {
            return;
        }
        let (file, base) = self.file(run.segment);
        let written = write_all(&**file, &run.bytes, base + u64::from(run.at));
        if written.is_ok() {
            let end = run.at + run.bytes.len() as u32;
            let dirty = writer.dirty.entry(run.segment).or_insert((run.epoch, 0));
            // Erased bytes are before the end.
            let before = if dirty.0 == run.epoch { dirty.1 } else { 0 };
            *dirty = (run.epoch, end.max(before));
            add(&self.tallies.written_bytes, run.bytes.len() as u64);
        }
        if written.is_err() {
            run.records.iter().for_each(|queued| self.drop_lost(queued.place));
        }
        self.done_with(&run.records);
        let Err(error) = written else { return };
        if is_full(&error) {
            add(&self.tallies.errors_full, 1);
            self.trouble(OperationFailure::Full);
            return;
        }
        add(&self.tallies.errors_write, 1);
        self.abandon(run.segment, run.epoch, u32::MAX);
        self.trouble(OperationFailure::Error);
    }

    /// Ends the use of a failed segment: records from `from` on are lost.
    fn abandon(&self, segment: u32, epoch: u64, from: u32) {
        let mut front = self.front.lock();
        if front.open.as_ref().is_some_and(|open| open.segment == segment) {
            front.open = None;
        }
        let mut known = self.segments[segment as usize].lock();
        if known.epoch != epoch || !known.is_read() {
            return;
        }
        known.usage = Usage::Bad;
        let waits = |row: &Row| front.pending.contains_key(&self.place(segment, epoch, row));
        let lost = known.rows.iter().filter(|row| row.is(LIVE));
        let lost: Vec<RecordAddress> = lost
            .filter(|row| row.offset() >= from && !waits(row))
            .map(|row| self.place(segment, epoch, row))
            .collect();
        drop(known);
        drop(front);
        self.journal.push(JournalItem::Quarantine(segment));
        for place in lost {
            self.drop_lost(place);
        }
    }

    pub(crate) fn place(&self, segment: u32, epoch: u64, row: &Row) -> RecordAddress {
        RecordAddress::new(self.number, segment, epoch, row.offset())
    }

    /// Makes the bytes of all segments durable. A failure is final for its segments.
    fn sync(&self, writer: &mut WriterNotes) -> bool {
        let mut all = true;
        let mut files: BTreeMap<u32, Vec<(u32, u64, u32)>> = BTreeMap::new();
        for (segment, (epoch, end)) in std::mem::take(&mut writer.dirty) {
            let file = segment / self.superblock.segments_per_file;
            files.entry(file).or_default().push((segment, epoch, end));
        }
        for (file, segments) in files {
            let synced = self.files[file as usize].sync();
            add(&self.tallies.commits, 1);
            for (segment, epoch, end) in segments {
                let mut known = self.segments[segment as usize].lock();
                if known.epoch != epoch {
                    continue;
                }
                if synced.is_ok() {
                    known.synced = known.synced.max(end);
                    continue;
                }
                let from = known.synced;
                drop(known);
                self.abandon(segment, epoch, from);
            }
            if let Err(error) = synced {
                all = false;
                add(&self.tallies.errors_sync, 1);
                let trouble =
                    if is_full(&error) { OperationFailure::Full } else { OperationFailure::Error };
                self.trouble(trouble);
            }
        }
        all
    }

    /// Makes all written bytes durable: the records first, then the journal.
    fn commit(&self, writer: &mut WriterNotes) {
        let synced = self.sync(writer);
        let freed = if synced { std::mem::take(&mut writer.freeing) } else { Vec::new() };
        let moved = if synced { std::mem::take(&mut writer.moved) } else { Vec::new() };
        for place in moved {
            self.journal.push(JournalItem::Forget(place));
        }
        for (segment, epoch) in &freed {
            self.journal.push(JournalItem::Freed(*segment, *epoch));
        }
        for number in self.take_obsolete(writer, &freed, synced) {
            self.journal.push(JournalItem::Obsolete(number));
        }
        if !self.flush_journal() {
            return;
        }
        let mut front = self.front.lock();
        for (segment, epoch) in freed {
            let mut known = self.segments[segment as usize].lock();
            if known.epoch == epoch && known.usage == Usage::Emptied {
                known.usage = Usage::Free;
                front.free.insert(segment);
            }
        }
    }

    /// Numbers of obsolete invalidations. After a failure they stay for longer.
    fn take_obsolete(
        &self,
        writer: &mut WriterNotes,
        freed: &[(u32, u64)],
        synced: bool,
    ) -> Vec<u64> {
        if writer.obsolete.is_none() {
            let numbers = std::mem::take(&mut *self.obsolete.lock());
            // Taken after the numbers: the matches are in these segments, or have been forgotten.
            writer.obsolete = (!numbers.is_empty())
                .then(|| ObsoleteInvalidations { numbers, emptied: self.emptied().collect() });
        }
        if !synced {
            writer.obsolete = None;
        }
        let Some(waiting) = &mut writer.obsolete else { return Vec::new() };
        let still: BTreeSet<_> = self.emptied().filter(|own| !freed.contains(own)).collect();
        waiting.emptied.retain(|own| still.contains(own));
        match waiting.emptied.is_empty() {
            true => writer.obsolete.take().map(|ready| ready.numbers).unwrap_or_default(),
            false => Vec::new(),
        }
    }

    /// Segments that are being emptied, or are empty but not free yet, with their epochs.
    fn emptied(&self) -> impl Iterator<Item = (u32, u64)> {
        (0..).zip(&self.segments).filter_map(|(number, slot)| {
            let known = slot.lock();
            known.is_emptied().then_some((number, known.epoch))
        })
    }

    /// Makes the journal durable. Returns false after a failure, which takes the volume out.
    pub(crate) fn flush_journal(&self) -> bool {
        match self.journal.flush(self.shared.moment()) {
            Ok(flushed) => {
                add(&self.tallies.journal_commits, u64::from(flushed.bytes > 0));
                add(&self.tallies.journal_bytes, flushed.bytes);
                true
            }
            Err(_) => {
                self.trouble(OperationFailure::Journal);
                false
            }
        }
    }

    /// Writes the table of a full segment, once its records are durable.
    fn seal(&self, writer: &mut WriterNotes, segment: u32, epoch: u64) {
        let file = segment / self.superblock.segments_per_file;
        writer.dirty.entry(segment).or_insert((epoch, 0));
        self.sync(writer);
        let tail = {
            let mut known = self.segments[segment as usize].lock();
            if known.epoch != epoch || known.usage != Usage::Full {
                return;
            }
            known.usage = Usage::Sealed;
            known.rows.shrink_to_fit();
            Footer::encode(self.key, segment, epoch, self.journal.sealed(), &known.rows)
        };
        let (_, base) = self.file(segment);
        let at = self.segment_bytes() - tail.len() as u32;
        match write_all(&*self.files[file as usize], &tail, base + u64::from(at)) {
            Ok(()) => {
                writer.dirty.insert(segment, (epoch, FRAME_BYTES));
                add(&self.tallies.written_bytes, tail.len() as u64);
            }
            // The table only saves time: without it the records are searched one by one.
            Err(_) => add(&self.tallies.errors_write, 1),
        }
    }

    /// Writes and commits the queue. Records that arrive meanwhile may be left.
    pub(crate) fn drain(&self) {
        // Each turn takes this many bytes, and the queue is limited.
        let turns = self.shared.config.queue_bytes / RUN_BYTES as u64 + 2;
        for _ in 0..turns {
            if !self.write_turn(true) {
                return;
            }
        }
    }

    /// Ends all work, so that the next start finds everything at once.
    pub(crate) fn close(&self) {
        self.close_files();
        // A later wait would never end.
        self.journal.fail("the store is closed");
    }

    fn close_files(&self) {
        let most = std::time::Duration::from_millis(self.shared.config.append_ms);
        if self.health.is_out() {
            return self.unlock();
        }
        if self.writer.try_lock_for(most).is_none() {
            // A write that hangs may still arrive: the volume stays locked.
            return;
        }
        let mut front = self.front.lock();
        self.close_open(&mut front);
        drop(front);
        self.drain();
        self.checkpoint();
        if self.journal.close(self.shared.moment()).is_err() {
            self.trouble(OperationFailure::Journal);
        }
        self.unlock();
    }

    /// Leaves the volume to other processes.
    fn unlock(&self) {
        self.lock.lock().take();
    }
}
