//! The store: its volumes as one, and the threads that serve them.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::config::{Clock, Config, INVALIDATION_BYTES_MAX};
use crate::entry::Entry;
use crate::error::Error;
use crate::hold::SegmentPin;
use crate::journal::{JournalItem, StoreBaseline};
use crate::opening::{Candidate, Purpose, look, remove_all};
use crate::owner::{Owner, Reason, VolumeCondition};
use crate::record_address::RecordAddress;
use crate::record_reading::ReadMode;
use crate::record_request::{ReadCallback, RecordData, RecordRequest};
use crate::sequence::SequenceCounter;
use crate::stats::Stats;
use crate::store::{Absence, StoreCore, Threads, VolumeSlot};
use crate::stream::Stream;
use crate::sync::{AtomicU64, Mutex, Ordering, RwLock};
use crate::volume::{NewRecord, StoreContext, Volume};

/// An invalidation that is still needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalidation {
    /// Its number: records with a lower order have not been tested against it.
    pub number: u64,
    /// Its bytes.
    pub bytes: Bytes,
}

/// A store that was opened.
#[derive(Debug)]
pub struct OpenedStore {
    /// The store.
    pub disk: Disk,
    /// The bytes that the store keeps for its owner.
    pub owner: [u8; 32],
    /// Invalidations that are still needed, in their order.
    pub invalidations: Vec<Invalidation>,
    /// Numbers of volumes that had something that was not to be trusted, and were emptied.
    pub emptied: Vec<usize>,
    /// Numbers of volumes that cannot be used now, and the system's word on it. They are tried
    /// again, and begin with nothing.
    pub failed: Vec<(usize, Error)>,
}

/// The duty to carry out an invalidation that is durable. What is put before this is dropped counts
/// as older than the invalidation, as its effect may have missed it.
pub struct InvalidationGuard {
    number: u64,
    core: Arc<StoreCore>,
}

impl InvalidationGuard {
    /// The invalidation's number.
    pub fn number(&self) -> u64 {
        self.number
    }
}

impl fmt::Debug for InvalidationGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Effect({})", self.number)
    }
}

/// An invalidation on its way to the journals.
pub struct InvalidationWrite {
    core: Arc<StoreCore>,
    tickets: Vec<(Arc<Volume>, u64)>,
    /// No volume writes it down, and what some of them have may be found by a later start.
    is_lost: bool,
}

impl fmt::Debug for InvalidationWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Durability({} volumes)", self.tickets.len())
    }
}

impl InvalidationWrite {
    /// Waits until it is durable, unless the settings say that nobody waits. A volume that cannot
    /// write it is taken out.
    ///
    /// # Errors
    /// [`Error::Journal`] if no volume could write it. It may be found at the next start all the
    /// same, or what it was to remove may.
    pub fn wait(self) -> Result<(), Error> {
        let config = &self.core.shared.config;
        if self.is_lost {
            return Err(no_volume());
        }
        if !config.append_waits || self.tickets.is_empty() {
            return Ok(());
        }
        let mut result = Err(no_volume());
        for (volume, ticket) in &self.tickets {
            let now_ms = || self.core.shared.now().mono_ms;
            match volume.journal.wait(*ticket, config.append_ms, now_ms) {
                Ok(()) => result = Ok(()),
                Err(why) => {
                    if !volume.is_ending() {
                        let until_ms = self.core.shared.now().mono_ms + config.retry_ms;
                        volume.take_out(Reason::Journal, until_ms);
                    }
                    if result.is_err() {
                        result = Err(Error::Journal { why: format!("{}: {why}", volume.name) });
                    }
                }
            }
        }
        self.core.note_fallen();
        result
    }
}

impl Drop for InvalidationGuard {
    fn drop(&mut self) {
        self.core.shared.order.end(self.number);
    }
}

/// A persistent store of records.
pub struct Disk {
    core: Arc<StoreCore>,
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Disk").field("volumes", &self.core.slots.len()).finish_non_exhaustive()
    }
}

impl Disk {
    /// Opens the store, or makes it. Nothing is found before [`Disk::find`].
    ///
    /// # Errors
    /// Settings that cannot be, a volume of another format, one that another process has, and a
    /// directory of something else. A volume that the system fails is out of use, and no error.
    pub fn open(config: Config, owner: Arc<dyn Owner>, clock: Clock) -> Result<OpenedStore, Error> {
        config.check()?;
        let looked = config.volumes.iter().map(|volume| match look(volume, None) {
            Ok(found) => Ok(Ok(found)),
            Err(error @ Error::Io { .. }) => Ok(Err(error)),
            Err(error) => Err(error),
        });
        let looked = looked.collect::<Result<Vec<Result<Candidate, Error>>, Error>>()?;
        let mut all = beginning(&looked, config.owner);
        let shared = Arc::new(StoreContext {
            config,
            owner,
            clock,
            began: SequenceCounter::first(all.session),
            order: SequenceCounter::of_session(all.session),
            fallen: Mutex::default(),
            buffers: Arc::default(),
        });
        let (mut emptied, mut failed, mut slots) = (Vec::new(), Vec::new(), Vec::new());
        for ((number, found), settings) in
            looked.into_iter().enumerate().zip(&shared.config.volumes)
        {
            let (mut volume, mut absence, mut is_bare) = (None, Absence::default(), false);
            match begin(number, found, &all, &shared, &mut emptied) {
                Ok(begun) => volume = Some(Arc::new(begun)),
                Err(UnavailableVolume { why, is_bare: bare }) => {
                    let until_ms = shared.now().mono_ms + shared.config.retry_ms;
                    absence = Absence { why: why.to_string(), until_ms, is_tried: false };
                    is_bare = bare;
                    failed.push((number, why));
                }
            }
            let (volume, absence) = (RwLock::new(volume), Mutex::new(absence));
            slots.push(VolumeSlot { volume, weight: settings.weight.max(1), is_bare, absence });
        }
        // From here on the journals know them.
        let invalidations = std::mem::take(&mut all.invalidations).into_iter();
        let invalidations =
            invalidations.map(|(number, bytes)| Invalidation { number, bytes }).collect();
        let owner = all.owner;
        let core = Arc::new(StoreCore {
            slots,
            shared,
            beginning: all,
            past: Mutex::default(),
            planned_ms: AtomicU64::new(0),
            threads: Threads::default(),
        });
        core.begin_threads();
        Ok(OpenedStore { disk: Self { core }, owner, invalidations, emptied, failed })
    }

    /// Numbers of this session begin here: those of records and invalidations of former ones are
    /// below.
    pub fn began(&self) -> u64 {
        self.core.shared.began
    }

    /// Begins to find what was there at the start; the owner is told in batches. Nothing is put
    /// before.
    pub fn find(&self) {
        self.core.begin_finding();
    }

    /// Segments that have been looked at, and all that had something.
    pub fn progress(&self) -> (u64, u64) {
        self.core.volumes().fold((0, 0), |(looked, all), volume| {
            let to_look = volume.to_look.load(Ordering::Relaxed);
            (looked + volume.looked.load(Ordering::Relaxed), all + to_look)
        })
    }

    /// True when all that was there has been found.
    pub fn has_found(&self) -> bool {
        self.core.volumes().all(|volume| volume.found.load(Ordering::Acquire))
    }

    /// Keeps a record, which can be read from now on; `None` if the store does not take it. It
    /// waits for nothing.
    pub fn put(&self, entry: Entry) -> Option<RecordAddress> {
        self.core.volume_of(entry.hash)?.put(NewRecord::of(entry))
    }

    /// Keeps the long body of the record at `place` under another head, in that record's stead:
    /// `entry` has no body itself. `tell` is called with the new place while both are there, so
    /// that whoever reads goes on. `None`, and nothing has changed, if the store does not take it,
    /// or has no body in parts there.
    pub fn replace_head(
        &self,
        place: RecordAddress,
        entry: Entry,
        tell: impl FnOnce(RecordAddress),
    ) -> Option<RecordAddress> {
        self.core.volume_at(place)?.rehead(place, NewRecord::of(entry), tell)
    }

    /// Keeps the record at `place` from being reclaimed as long as what is returned is there:
    /// somebody reads it. `None` if it is not there, or if more than `percent` of its volume would
    /// be kept so; then it may go while it is read.
    pub fn hold(&self, place: RecordAddress, percent: u64) -> Option<SegmentPin> {
        self.core.volume_at(place)?.hold(place, percent)
    }

    /// Begins to keep a body that is still coming; `None` if the store takes nothing.
    pub fn stream(&self, hash: u64) -> Option<Stream> {
        let volume = self.core.volume_of(hash)?;
        volume.takes().then(|| Stream::new(volume, hash))
    }

    /// The record at `place` is not wanted any more; false if none is there. It waits for nothing;
    /// after a crash within the time of a commit the record may be found again.
    pub fn forget(&self, place: RecordAddress) -> bool {
        self.core.volume_at(place).is_some_and(|volume| volume.forget(place))
    }

    /// Reads what is there at once, in memory of the store or of the system; `None` if it is not,
    /// or cannot be read.
    pub fn read_now(
        &self,
        place: RecordAddress,
        hash: u64,
        ask: &RecordRequest,
    ) -> Option<RecordData> {
        let volume = self.core.volume_at(place).filter(|volume| volume.health.serves(ask))?;
        let answer = volume.load(ReadMode::Now, place, hash, ask).ok()??;
        volume.tallies.reads_now.fetch_add(1, Ordering::Relaxed);
        Some(answer)
    }

    /// Reads from the disk; `done` is called on another thread, or at once if nothing can be read.
    /// It is called by `deadline_ms` of the monotonic clock.
    pub fn read(
        &self,
        place: RecordAddress,
        hash: u64,
        ask: RecordRequest,
        deadline_ms: u64,
        done: ReadCallback,
    ) {
        let Some(volume) = self.core.volume_at(place) else { return done(Err(Error::Out)) };
        volume.read(place, hash, ask, deadline_ms, done);
        if deadline_ms < self.core.planned_ms.load(Ordering::Relaxed) {
            self.core.threads.wake();
        }
    }

    /// Writes an invalidation down. It is durable when this returns, unless the settings say that
    /// nobody waits. Its effect is to be carried out before what is returned is dropped.
    ///
    /// # Errors
    /// As [`Disk::begin_append`] and [`Durability::wait`].
    pub fn append(&self, bytes: Bytes) -> Result<InvalidationGuard, Error> {
        let (effect, writing) = self.begin_append(bytes)?;
        writing.wait().map(|()| effect)
    }

    /// Begins to write an invalidation down, and waits for nothing: many that are written at once
    /// are made durable together. Its effect is to be carried out before the first of what is
    /// returned is dropped.
    ///
    /// If no volume takes it, the one who waits is told so. If nothing that they have will ever be
    /// found, there is no need to write.
    ///
    /// # Errors
    /// [`Error::Journal`] if it is too long.
    pub fn begin_append(
        &self,
        bytes: Bytes,
    ) -> Result<(InvalidationGuard, InvalidationWrite), Error> {
        if bytes.len() > INVALIDATION_BYTES_MAX {
            let why = format!(
                "an invalidation of {} bytes: {INVALIDATION_BYTES_MAX} at most",
                bytes.len()
            );
            return Err(Error::Journal { why });
        }
        let number = self.core.shared.order.begin();
        let effect = InvalidationGuard { number, core: Arc::clone(&self.core) };
        let tickets = self.core.push(&JournalItem::Invalidation(number, bytes));
        let is_lost = tickets.is_empty() && !self.core.slots.iter().all(VolumeSlot::is_void);
        Ok((effect, InvalidationWrite { core: Arc::clone(&self.core), tickets, is_lost }))
    }

    /// Waits, where that is called, for all that has been begun.
    pub fn begun(&self) -> InvalidationWrite {
        let core = Arc::clone(&self.core);
        let volumes = core.volumes().filter(|volume| !volume.health.is_out());
        let tickets = volumes
            .map(|volume| {
                let ticket = volume.journal.ticket();
                (volume, ticket)
            })
            .collect();
        InvalidationWrite { core, tickets, is_lost: false }
    }

    /// Invalidations up to this number are needed no more: nothing that the store has is older, or
    /// all of it has been tested.
    pub fn release(&self, up_to: u64) {
        // Those that are still being carried out are needed.
        let order = &self.core.shared.order;
        let up_to = up_to.min(order.order_of(order.now()));
        for volume in self.core.volumes() {
            volume.journal.push(JournalItem::Released(up_to));
        }
    }

    /// The newest invalidation that all volumes in use have in their journals.
    pub fn sealed(&self) -> u64 {
        let volumes = self.core.volumes().filter(|volume| !volume.health.is_out());
        volumes.map(|volume| volume.journal.sealed()).min().unwrap_or(u64::MAX)
    }

    /// Invalidations that are needed no more, though older ones may be: whatever each of them has
    /// met has been forgotten, or newer ones meet that, too. They are in all journals
    /// ([`Disk::sealed`]).
    pub fn drop_invalidations(&self, numbers: &[u64]) {
        let volumes = self.core.volumes().filter(|volume| !volume.health.is_out());
        volumes.for_each(|volume| volume.needless.lock().extend_from_slice(numbers));
    }

    /// Records of a lower order are of no use. This process knows; no later one finds them, or
    /// needs invalidations up to this number.
    pub fn discard_before(&self, order: u64) {
        for volume in self.core.volumes() {
            volume.journal.push(JournalItem::Void(order));
        }
    }

    /// The newest ban that all records have passed; `None` if there are none.
    pub fn passed(&self) -> Option<u32> {
        let all = self.core.live_segments(|segment| u64::from(segment.least_passed));
        all.map(|passed| u32::try_from(passed).unwrap_or(u32::MAX))
    }

    /// The order of the oldest record; `None` if there are none.
    pub fn oldest(&self) -> Option<u64> {
        self.core.live_segments(|segment| segment.least_order)
    }

    /// The store in numbers.
    pub fn stats(&self) -> Stats {
        let mut stats = self.core.past.lock().clone();
        self.core.volumes().for_each(|volume| volume.add_stats(&mut stats));
        stats
    }

    /// Bytes of the volumes that take records at this moment.
    pub fn takes_bytes(&self) -> u64 {
        self.core.volumes().map(|volume| volume.takes_bytes()).sum()
    }

    /// True if so much waits to be written that some queue may soon be full.
    pub fn is_behind(&self) -> bool {
        self.core.volumes().any(|volume| volume.is_behind())
    }

    /// One volume in numbers, and its state.
    pub fn volume_stats(&self, number: usize) -> Option<(VolumeCondition, Stats)> {
        let volume = self.core.slots.get(number)?.volume.read().clone()?;
        let mut stats = Stats::default();
        volume.add_stats(&mut stats);
        Some((volume.health.condition(), stats))
    }

    /// The reason for which a volume could not be opened, in words; `None` if it is open.
    pub fn absence(&self, number: usize) -> Option<String> {
        let slot = self.core.slots.get(number).filter(|slot| slot.volume.read().is_none())?;
        Some(slot.absence.lock().why.clone())
    }

    /// Takes one step of everything that threads would do; false if there was nothing to do.
    pub fn step(&self) -> bool {
        self.core.step(false)
    }

    /// Looks at one more segment for what was there at the start; false if none is left.
    pub fn find_step(&self) -> bool {
        self.core.volumes().any(|volume| volume.find_turn())
    }

    /// Takes all steps that there are, and commits.
    pub fn settle(&self) {
        while self.core.step(true) {}
    }

    /// Looks after volumes that pause or are out, and reads that are late.
    pub fn tick(&self) {
        self.core.tick();
    }

    /// Serves one read that waits; false if none does.
    pub fn serve(&self) -> bool {
        self.core.volumes().any(|volume| volume.read_turn())
    }

    /// Ends everything, so that the next start finds all of it at once. A disk that hangs is not
    /// waited for longer than for an invalidation. Nothing is taken any more.
    pub fn close(&self) {
        self.core.end_threads();
        self.core.volumes().for_each(|volume| volume.close());
    }

    /// As [`Disk::close`].
    pub fn stop(self) {
        self.close();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.core.end_threads();
    }
}

/// The knowledge of all volumes together.
fn beginning(looked: &[Result<Candidate, Error>], owner: [u8; 32]) -> StoreBaseline {
    let mut all = StoreBaseline { owner, ..StoreBaseline::default() };
    for found in looked.iter().flatten() {
        if let Some(superblock) = &found.superblock
            && superblock.session > all.session
        {
            all.session = superblock.session;
            all.owner = superblock.owner;
        }
        all.add(&found.past.keep);
    }
    // A superblock that was lost may have been a newer one.
    all.session += 2;
    all
}

/// A volume that cannot be used now.
struct UnavailableVolume {
    why: Error,
    /// Nothing that is there will ever be found.
    is_bare: bool,
}

fn begin(
    number: usize,
    found: Result<Candidate, Error>,
    all: &StoreBaseline,
    shared: &Arc<StoreContext>,
    emptied: &mut Vec<usize>,
) -> Result<Volume, UnavailableVolume> {
    let found = found.map_err(|why| UnavailableVolume { why, is_bare: false })?;
    let (new, marked) = (found.superblock.is_none(), found.marker.is_some());
    let void = found.is_void(all);
    if void && !new {
        emptied.push(number);
    }
    let purpose = if void { Purpose::Void } else { Purpose::Serve };
    let valid_from = SequenceCounter::first(all.session);
    // It stays locked until what was begun of it is gone again.
    let (vfs, _lock) = (Arc::clone(&found.config.vfs), Arc::clone(&found.lock));
    found.start(number as u8, all, purpose, valid_from, shared).map_err(|why| {
        if new {
            _ = remove_all(&*vfs);
        }
        UnavailableVolume { why, is_bare: new || marked }
    })
}

fn no_volume() -> Error {
    Error::Journal { why: "no volume is in use".to_owned() }
}
