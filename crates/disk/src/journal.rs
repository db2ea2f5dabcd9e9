//! The journal of a volume: what is forgotten, what was invalidated, and what the next start has to
//! know. Each commit is one frame, and none is written before the one before it is durable. So a
//! frame that is whole behind one that is not shows that something durable was lost.

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

/// The name of a journal before all of its first frame is durable.
fn begun_name(generation: u64) -> String {
    format!("{}.new", file_name(generation))
}

/// The file that frames are added to.
#[derive(Debug)]
struct JournalFile {
    file: Arc<dyn File>,
    generation: u64,
    at: u64,
}

/// Items that are to be written, and the count of those that are.
#[derive(Debug, Default)]
struct JournalQueue {
    payload: Vec<u8>,
    /// Items that were ever added, and those of them that are durable.
    added: u64,
    durable: u64,
    failed: Option<String>,
    keep: JournalCarryover,
    /// The newest invalidation that was added.
    newest: u64,
    wall_ms: u64,
}

/// Items on their way to a file.
struct JournalPayload {
    payload: Vec<u8>,
    /// The ticket of the last one.
    added: u64,
    /// The newest invalidation of those that were ever added.
    newest: u64,
}

/// The moment of a commit: the clocks, and the number that is next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommitMoment {
    pub(crate) now: Now,
    pub(crate) next: u64,
}

/// The journal of a volume that is open.
#[derive(Debug)]
pub(crate) struct Journal {
    vfs: Arc<dyn Vfs>,
    key: u64,
    /// `None` where nothing is to be written.
    writing: Mutex<Option<JournalFile>>,
    waiting: Mutex<JournalQueue>,
    done: Condvar,
    /// The newest invalidation that is durable.
    sealed: AtomicU64,
    /// The generation of the file in use, and its bytes; all ones before there is one.
    generation: AtomicU64,
    bytes: AtomicU64,
}

/// The work of a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlushResult {
    pub(crate) bytes: u64,
}

impl Journal {
    /// The journal that goes on from `past`, and takes over what it keeps; it writes nothing before
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

    /// Takes over what all volumes know together, before anything is written.
    pub(crate) fn carry(&self, all: &StoreBaseline) {
        let mut waiting = self.waiting.lock();
        let known = all.invalidations.last_key_value().map_or(0, |(number, _)| *number);
        waiting.newest = waiting.newest.max(known).max(all.released).max(all.needless);
        let keep = &mut waiting.keep;
        keep.released = keep.released.max(all.released);
        keep.needless = keep.needless.max(all.needless);
        keep.void = keep.void.max(all.void);
        keep.invalidations = all.invalidations.clone();
    }

    /// Adds an item, to be written with the next commit; returns its ticket. After a failure it
    /// is one that never comes, and the item is known only to what takes the volume's place.
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

    /// The ticket of the newest item: all that were added are durable with it.
    pub(crate) fn ticket(&self) -> u64 {
        self.waiting.lock().added
    }

    /// The newest invalidation that is durable.
    pub(crate) fn sealed(&self) -> u64 {
        self.sealed.load(Ordering::Relaxed)
    }

    /// By how much the clock has gone back since a record of this order was written.
    pub(crate) fn shift_of(&self, order: u64) -> u64 {
        self.waiting.lock().keep.shift_of(order)
    }

    /// All that the next journal carries on.
    pub(crate) fn keep(&self) -> JournalCarryover {
        self.waiting.lock().keep.clone()
    }

    /// All of it that says something of records by their places and times.
    pub(crate) fn keep_but_invalidations(&self) -> JournalCarryover {
        self.waiting.lock().keep.without_invalidations()
    }

    /// The number of invalidations kept.
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

    /// Waits until the item of `ticket` is durable, at most for `most_ms` by the clock `now_ms`.
    ///
    /// # Errors
    /// The reason, in words, when it cannot be, or is not in that time.
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
            // Others' items that become durable meanwhile wake it, too.
            let left_ms = until_ms.saturating_sub(now_ms());
            let left = Duration::from_millis(left_ms);
            let is_late = left_ms == 0 || self.done.wait_for(&mut waiting, left).timed_out();
            if is_late && waiting.durable < ticket && waiting.failed.is_none() {
                return Err("the disk takes too long".to_owned());
            }
        }
    }

    /// True if nothing is written any more.
    pub(crate) fn has_failed(&self) -> bool {
        self.waiting.lock().failed.is_some()
    }

    /// Nothing is written any more: whoever waits is told `why`.
    pub(crate) fn fail(&self, why: &str) {
        self.waiting.lock().failed.get_or_insert_with(|| why.to_owned());
        self.done.notify_all();
    }

    /// Makes all that waits durable; returns the bytes written.
    ///
    /// # Errors
    /// The reason, in words. It is final.
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

    /// Writes a frame, and tells those who wait for it.
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
                // What the disk has of the frame is not known: nothing may follow it.
                Err(waiting.failed.get_or_insert_with(|| error.to_string()).clone())
            }
        };
        drop(waiting);
        self.done.notify_all();
        result
    }

    /// Goes on in a new file of generation `generation`, which is durable before it is used, and
    /// has room for so many bytes more; returns the bytes written.
    ///
    /// # Errors
    /// Those of the system; the old file goes on then.
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
        // The new file carries on what the old one ends with, and nothing comes in between: what
        // is added from here on waits for the new file.
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
            // The room ahead is not needed any more; where it stays, it does no harm.
            _ = writing.file.truncate(writing.at);
        }
        let named = self.vfs.rename(&begun_name(generation), &file_name(generation));
        if let Err(error) = named.and_then(|()| self.vfs.sync_names()) {
            // Both files may be found now, and only one would be right.
            self.fail(&error.to_string());
            return Err(error);
        }
        bytes += first.len() as u64;
        self.generation.store(generation, Ordering::Release);
        self.bytes.store(first.len() as u64, Ordering::Relaxed);
        // Where there was no file before, all that was added is what is carried on.
        self.waiting.lock().durable = added;
        self.sealed.store(newest, Ordering::Relaxed);
        *slot = Some(JournalFile { file, generation, at: first.len() as u64 });
        Ok(bytes)
    }

    /// A new file with its first frame, durable under a name that it is not found by.
    fn begin_file(&self, generation: u64, first: &[u8], room: u64) -> io::Result<Arc<dyn File>> {
        let file = self.vfs.open(&begun_name(generation), true)?;
        file.truncate(0)?;
        write_all(&*file, first, 0)?;
        // Where there is no room ahead, there may be when it is needed.
        _ = file.preallocate(first.len() as u64 + room);
        file.sync()?;
        Ok(file)
    }

    /// Ends the journal at a stop.
    ///
    /// # Errors
    /// The reason, in words.
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
    /// Takes all that waits.
    fn take(&mut self, moment: CommitMoment) -> JournalPayload {
        self.look_at_the_clock(moment);
        let payload = std::mem::take(&mut self.payload);
        JournalPayload { payload, added: self.added, newest: self.newest }
    }

    /// Notes the time, and that it went backwards.
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
