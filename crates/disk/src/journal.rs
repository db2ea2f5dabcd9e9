//! The journal of a volume: forgotten records, invalidations, and the state for the next start.
//! Each commit is one frame, and a frame is written only when the one before it is durable. So an
//! intact frame behind a damaged one proves that durable data was lost.

mod carryover;
mod frame;
mod history;
mod item;
mod store_baseline;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use base::Now;
pub(crate) use carryover::JournalCarryover;
use frame::{encode_frame, file_name};
pub(crate) use history::{Chain, JournalHistory};
pub(crate) use item::JournalItem;
pub(crate) use store_baseline::StoreBaseline;

use crate::sync::{AtomicU64, Condvar, Mutex, Ordering};
use crate::vfs::{File, Vfs, write_all};

/// The name of a journal until its first frame is durable.
fn begun_name(generation: u64) -> String {
    format!("{}.new", file_name(generation))
}

/// The file that frames are appended to.
#[derive(Debug)]
struct JournalFile {
    file: Arc<dyn File>,
    generation: u64,
    at: u64,
}

/// The items to be written, and the counts of items.
#[derive(Debug, Default)]
struct JournalQueue {
    payload: Vec<u8>,
    /// The number of items added so far, and of those that are durable.
    added: u64,
    durable: u64,
    failed: Option<String>,
    keep: JournalCarryover,
    /// The newest invalidation added.
    newest: u64,
    wall_ms: u64,
}

/// Items that are being written.
struct JournalPayload {
    payload: Vec<u8>,
    /// The ticket of the last item.
    added: u64,
    /// The newest invalidation added so far.
    newest: u64,
}

/// The clocks and the next number at the time of a commit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommitMoment {
    pub(crate) now: Now,
    pub(crate) next: u64,
}

/// The journal of an open volume.
#[derive(Debug)]
pub(crate) struct Journal {
    vfs: Arc<dyn Vfs>,
    key: u64,
    /// `None` if nothing is to be written.
    writing: Mutex<Option<JournalFile>>,
    waiting: Mutex<JournalQueue>,
    done: Condvar,
    /// The newest durable invalidation.
    sealed: AtomicU64,
    /// The generation of the file in use, and its bytes; `u64::MAX` before the first file.
    generation: AtomicU64,
    bytes: AtomicU64,
}

/// The result of a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlushResult {
    pub(crate) bytes: u64,
}

impl Journal {
    /// The journal that continues `past` and takes over its carryover. It writes nothing before
    /// [`Journal::rotate`].
    pub(crate) fn new(vfs: Arc<dyn Vfs>, key: u64, past: &mut JournalHistory) -> Self {
        let sealed = past.newest();
        let waiting = JournalQueue {
            keep: std::mem::take(&mut past.keep),
            newest: sealed,
            wall_ms: past.wall_ms,
            ..JournalQueue::default()
        };
        let (writing, waiting) = (Mutex::new(None), Mutex::new(waiting));
        let sealed = AtomicU64::new(sealed);
        let (generation, bytes) = (AtomicU64::new(u64::MAX), AtomicU64::new(0));
        Self { vfs, key, writing, waiting, done: Condvar::new(), sealed, generation, bytes }
    }

    /// Takes over the baseline of all volumes, before anything is written.
    pub(crate) fn carry(&self, all: &StoreBaseline) {
        let mut waiting = self.waiting.lock();
        let known = all.invalidations.last_key_value().map_or(0, |(number, _)| *number);
        waiting.newest = waiting.newest.max(known).max(all.released).max(all.obsolete);
        let keep = &mut waiting.keep;
        keep.released = keep.released.max(all.released);
        keep.obsolete = keep.obsolete.max(all.obsolete);
        keep.discarded = keep.discarded.max(all.discarded);
        keep.invalidations = all.invalidations.clone();
    }

    /// Adds an item for the next commit, and returns its ticket. After a failure no item becomes
    /// durable, and the item serves only the successor of the volume.
    pub(crate) fn push(&self, item: JournalItem) -> u64 {
        let mut waiting = self.waiting.lock();
        if waiting.failed.is_some() {
            waiting.keep.apply(item);
            return u64::MAX;
        }
        item.encode(&mut waiting.payload);
        if let JournalItem::Invalidation(number, _) = &item {
            waiting.newest = waiting.newest.max(*number);
        }
        waiting.keep.apply(item);
        waiting.added += 1;
        waiting.added
    }

    /// The ticket of the newest item: when it is durable, all items are.
    pub(crate) fn ticket(&self) -> u64 {
        self.waiting.lock().added
    }

    /// The newest durable invalidation.
    pub(crate) fn sealed(&self) -> u64 {
        self.sealed.load(Ordering::Relaxed)
    }

    /// The milliseconds by which the clock has gone back since a record of this order was written.
    pub(crate) fn shift_of(&self, order: u64) -> u64 {
        self.waiting.lock().keep.shift_of(order)
    }

    /// The carryover for the next journal.
    pub(crate) fn keep(&self) -> JournalCarryover {
        self.waiting.lock().keep.clone()
    }

    /// The carryover without the invalidations.
    pub(crate) fn carryover_without_invalidations(&self) -> JournalCarryover {
        self.waiting.lock().keep.without_invalidations()
    }

    /// The number of invalidations in the carryover.
    pub(crate) fn kept(&self) -> u64 {
        self.waiting.lock().keep.invalidations.len() as u64
    }

    /// Bytes written and waiting.
    pub(crate) fn size(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed) + self.waiting.lock().payload.len() as u64
    }

    /// True if something waits to be written.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.lock().payload.is_empty()
    }

    /// Waits until the item of `ticket` is durable, for `most_ms` at most by the clock `now_ms`.
    ///
    /// # Errors
    /// The reason, if it fails or takes longer.
    pub(crate) fn wait(
        &self,
        ticket: u64,
        most_ms: u64,
        now_ms: impl Fn() -> u64,
    ) -> Result<(), String> {
        let until_ms = now_ms().saturating_add(most_ms);
        let mut waiting = self.waiting.lock();
        loop {
            if waiting.durable >= ticket {
                return Ok(());
            }
            if let Some(why) = &waiting.failed {
                return Err(why.clone());
            }
            // Other items that become durable also wake this wait.
            let left_ms = until_ms.saturating_sub(now_ms());
            let left = Duration::from_millis(left_ms);
            let is_late = left_ms == 0 || self.done.wait_for(&mut waiting, left).timed_out();
            if is_late && waiting.durable < ticket && waiting.failed.is_none() {
                return Err("the disk takes too long".to_owned());
            }
        }
    }

    /// Returns true after a failure: nothing is written any more.
    pub(crate) fn has_failed(&self) -> bool {
        self.waiting.lock().failed.is_some()
    }

    /// Ends all writing, and fails all waits with `why`.
    pub(crate) fn fail(&self, why: &str) {
        self.waiting.lock().failed.get_or_insert_with(|| why.to_owned());
        self.done.notify_all();
    }

    /// Makes all waiting items durable, and returns the bytes written.
    ///
    /// # Errors
    /// The reason. The journal has failed for good.
    pub(crate) fn flush(&self, moment: CommitMoment) -> Result<FlushResult, String> {
        let mut writing = self.writing.lock();
        match &mut *writing {
            Some(writing) => self.write(writing, moment, None),
            None => Ok(FlushResult { bytes: 0 }),
        }
    }

    fn write(
        &self,
        writing: &mut JournalFile,
        moment: CommitMoment,
        last: Option<&JournalItem>,
    ) -> Result<FlushResult, String> {
        let taken = {
            let mut waiting = self.waiting.lock();
            if let Some(why) = &waiting.failed {
                return Err(why.clone());
            }
            if waiting.payload.is_empty() && last.is_none() {
                return Ok(FlushResult { bytes: 0 });
            }
            waiting.take(moment)
        };
        self.write_taken(writing, moment, taken, last)
    }

    /// Writes a frame, and wakes the waits for it.
    fn write_taken(
        &self,
        writing: &mut JournalFile,
        moment: CommitMoment,
        mut taken: JournalPayload,
        last: Option<&JournalItem>,
    ) -> Result<FlushResult, String> {
        if let Some(last) = last {
            last.encode(&mut taken.payload);
        }
        let JournalFile { file, generation, at } = writing;
        let wall_ms = moment.now.unix_ms;
        let frame = encode_frame(self.key, *generation, *at, wall_ms, &taken.payload);
        let written = write_all(&**file, &frame, *at).and_then(|()| file.sync());
        let mut waiting = self.waiting.lock();
        let result = match written {
            Ok(()) => {
                *at += frame.len() as u64;
                self.bytes.store(*at, Ordering::Relaxed);
                waiting.durable = taken.added;
                self.sealed.store(taken.newest, Ordering::Relaxed);
                Ok(FlushResult { bytes: frame.len() as u64 })
            }
            Err(error) => {
                // The disk may have any part of the frame, so nothing may follow it.
                Err(waiting.failed.get_or_insert_with(|| error.to_string()).clone())
            }
        };
        drop(waiting);
        self.done.notify_all();
        result
    }

    /// Continues in a new file of generation `generation`, which is durable before use and reserves
    /// `room` bytes. Returns the bytes written.
    ///
    /// # Errors
    /// Those of the system. The old file stays in use.
    pub(crate) fn rotate(
        &self,
        moment: CommitMoment,
        generation: u64,
        room: u64,
    ) -> io::Result<u64> {
        let mut slot = self.writing.lock();
        let mut bytes = 0;
        if let Some(writing) = &mut *slot {
            bytes += self.write(writing, moment, None).map_err(io::Error::other)?.bytes;
        }
        let mut carried = Vec::new();
        // The new file continues where the old one ends: items added from here on wait for the new
        // file.
        let taken = {
            let mut waiting = self.waiting.lock();
            let taken = waiting.take(moment);
            waiting.keep.items().for_each(|item| item.encode(&mut carried));
            taken
        };
        let first = encode_frame(self.key, generation, 0, moment.now.unix_ms, &carried);
        let file = match self.begin_file(generation, &first, room) {
            Ok(file) => file,
            Err(error) => {
                if let Some(writing) = slot.as_mut().filter(|_| !taken.payload.is_empty()) {
                    let written = self.write_taken(writing, moment, taken, None);
                    written.map_err(io::Error::other)?;
                }
                return Err(error);
            }
        };
        let (added, newest) = (taken.added, taken.newest);
        if let Some(writing) = &mut *slot {
            let closed = self.write_taken(writing, moment, taken, Some(&JournalItem::Closed));
            bytes += closed.map_err(io::Error::other)?.bytes;
            // The reserved space is not needed any more, and does no harm.
            _ = writing.file.truncate(writing.at);
        }
        let named = self.vfs.rename(&begun_name(generation), &file_name(generation));
        if let Err(error) = named.and_then(|()| self.vfs.sync_names()) {
            // A start may find both files, and only one is right.
            self.fail(&error.to_string());
            return Err(error);
        }
        bytes += first.len() as u64;
        self.generation.store(generation, Ordering::Release);
        self.bytes.store(first.len() as u64, Ordering::Relaxed);
        // Without a former file, all items added are in the carryover.
        self.waiting.lock().durable = added;
        self.sealed.store(newest, Ordering::Relaxed);
        *slot = Some(JournalFile { file, generation, at: first.len() as u64 });
        Ok(bytes)
    }

    /// A new file with its first frame, durable under a name that no start reads.
    fn begin_file(&self, generation: u64, first: &[u8], room: u64) -> io::Result<Arc<dyn File>> {
        let file = self.vfs.open(&begun_name(generation), true)?;
        file.truncate(0)?;
        write_all(&*file, first, 0)?;
        // If there is no space to reserve, there may be when it is needed.
        _ = file.preallocate(first.len() as u64 + room);
        file.sync()?;
        Ok(file)
    }

    /// Ends the journal at a stop.
    ///
    /// # Errors
    /// The reason.
    pub(crate) fn close(&self, moment: CommitMoment) -> Result<FlushResult, String> {
        let mut writing = self.writing.lock();
        match &mut *writing {
            Some(writing) => {
                let closed = self.write(writing, moment, Some(&JournalItem::Closed))?;
                _ = writing.file.truncate(writing.at);
                Ok(closed)
            }
            None => Ok(FlushResult { bytes: 0 }),
        }
    }

    /// The generation of the file in use.
    pub(crate) fn generation(&self) -> Option<u64> {
        let generation = self.generation.load(Ordering::Acquire);
        (generation < u64::MAX).then_some(generation)
    }
}

impl JournalQueue {
    /// Takes all waiting items.
    fn take(&mut self, moment: CommitMoment) -> JournalPayload {
        self.look_at_the_clock(moment);
        let payload = std::mem::take(&mut self.payload);
        JournalPayload { payload, added: self.added, newest: self.newest }
    }

    /// Notes the time, and whether the clock went backwards.
    fn look_at_the_clock(&mut self, moment: CommitMoment) {
        let back_ms = self.wall_ms.saturating_sub(moment.now.unix_ms);
        if back_ms > 0 {
            let item = JournalItem::Shift(moment.next, back_ms);
            item.encode(&mut self.payload);
            self.keep.apply(item);
            self.added += 1;
        }
        self.wall_ms = moment.now.unix_ms;
    }
}
