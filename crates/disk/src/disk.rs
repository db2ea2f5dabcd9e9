//! The disk store: its volumes as one, and its threads. It must never return a byte that it has not
//! verified, or make [`Disk::put`], [`Disk::forget`] or [`Disk::read_now`] wait for a disk.

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

/// An invalidation that is still in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalidation {
    /// The invalidation's number: records with a lower order have not been tested against it.
    pub number: u64,
    /// The owner's bytes.
    pub bytes: Bytes,
}

/// The result of opening a store.
#[derive(Debug)]
pub struct OpenedStore {
    /// The store.
    pub disk: Disk,
    /// The bytes that the store keeps for its owner.
    pub owner: [u8; 32],
    /// The invalidations in force, in order.
    pub invalidations: Vec<Invalidation>,
    /// Numbers of the volumes that were emptied because their contents could not be trusted.
    pub emptied: Vec<usize>,
    /// Numbers of the volumes that cannot be used now, with the system's error. They are tried
    /// again, and begin empty.
    pub failed: Vec<(usize, Error)>,
}

/// A guard for a durable invalidation that is still to be carried out. Records put before the guard
/// is dropped count as older than the invalidation, which may have missed them.
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
        write!(f, "InvalidationGuard({})", self.number)
    }
}

/// An invalidation that is being written to the journals.
pub struct InvalidationWrite {
    core: Arc<StoreCore>,
    tickets: Vec<(Arc<Volume>, u64)>,
    /// True if no volume writes it, and a later start may find old records.
    is_lost: bool,
}

impl fmt::Debug for InvalidationWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InvalidationWrite({} volumes)", self.tickets.len())
    }
}

impl InvalidationWrite {
    /// Waits until the invalidation is durable, unless `append_waits` is off. A volume that cannot
    /// write it is taken out.
    ///
    /// # Errors
    /// [`Error::Journal`] if no volume could write it. The next start may nevertheless find it, or
    /// the records that it should remove.
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
        self.core.note_taken_out();
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
    /// Opens or creates the store. Records are found after [`Disk::find`].
    ///
    /// # Errors
    /// Invalid settings, a volume of another format, a volume in use by another process, or a
    /// directory with foreign files. A volume whose disk fails is taken out instead.
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
            taken_out: Mutex::default(),
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
        // From here on the journals have them.
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

    /// The first number of this session: records and invalidations of former sessions have lower
    /// ones.
    pub fn began(&self) -> u64 {
        self.core.shared.began
    }

    /// Begins to find the records of former sessions, which are reported to the owner in batches.
    /// To be called before the first put.
    pub fn find(&self) {
        self.core.begin_finding();
    }

    /// Segments that have been examined, and all that contain records.
    pub fn progress(&self) -> (u64, u64) {
        self.core.volumes().fold((0, 0), |(looked, all), volume| {
            let to_look = volume.to_look.load(Ordering::Relaxed);
            (looked + volume.looked.load(Ordering::Relaxed), all + to_look)
        })
    }

    /// Returns true when all records have been found.
    pub fn has_found(&self) -> bool {
        self.core.volumes().all(|volume| volume.found.load(Ordering::Acquire))
    }

    /// Stores a record, which can be read from now on, without waiting. `None` if the store rejects
    /// it.
    pub fn put(&self, entry: Entry) -> Option<RecordAddress> {
        self.core.volume_of(entry.hash)?.put(NewRecord::of(entry))
    }

    /// Replaces the record at `place` by one with another head and the same long body; `entry` has
    /// no body. `tell` is called with the new place while both exist, so that readers can continue.
    /// `None`, without effect, if the store rejects it, or has no body in parts there.
    pub fn replace_head(
        &self,
        place: RecordAddress,
        entry: Entry,
        tell: impl FnOnce(RecordAddress),
    ) -> Option<RecordAddress> {
        self.core.volume_at(place)?.rehead(place, NewRecord::of(entry), tell)
    }

    /// Pins the record at `place` for a reader: its segment is not reclaimed until the pin is
    /// dropped. `None` if the record is gone, or if pins would keep more than `percent` of the
    /// volume; it may then be reclaimed while it is read.
    pub fn hold(&self, place: RecordAddress, percent: u64) -> Option<SegmentPin> {
        self.core.volume_at(place)?.hold(place, percent)
    }

    /// Begins to store a body that is still arriving. `None` if the store accepts nothing.
    pub fn stream(&self, hash: u64) -> Option<Stream> {
        let volume = self.core.volume_of(hash)?;
        volume.takes().then(|| Stream::new(volume, hash))
    }

    /// Forgets the record at `place`, without waiting. Returns false if it is gone already. After a
    /// crash before the next commit the record may be found again.
    pub fn forget(&self, place: RecordAddress) -> bool {
        self.core.volume_at(place).is_some_and(|volume| volume.forget(place))
    }

    /// Reads bytes that are in memory, of the store or of the system. `None` if they are not, or
    /// cannot be read.
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

    /// Reads from the disk. `done` is called on another thread, or at once if nothing can be read,
    /// and by `deadline_ms` of the monotonic clock at the latest.
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

    /// Writes an invalidation. It is durable on return, unless `append_waits` is off. The caller
    /// must carry it out before it drops the guard.
    ///
    /// # Errors
    /// As [`Disk::begin_append`] and [`InvalidationWrite::wait`].
    pub fn append(&self, bytes: Bytes) -> Result<InvalidationGuard, Error> {
        let (effect, writing) = self.begin_append(bytes)?;
        writing.wait().map(|()| effect)
    }

    /// Begins to write an invalidation without waiting, so that many become durable together. The
    /// caller must carry it out before it drops the guard.
    ///
    /// If no volume writes it, [`InvalidationWrite::wait`] fails. If no start can find any old
    /// record, nothing needs to be written.
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

    /// A write whose wait covers all invalidations begun so far.
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

    /// Releases the invalidations up to this number: the store has no older record, or all of them
    /// have been tested.
    pub fn release(&self, up_to: u64) {
        // Those that are still being carried out stay.
        let order = &self.core.shared.order;
        let up_to = up_to.min(order.order_of(order.now()));
        for volume in self.core.volumes() {
            volume.journal.push(JournalItem::Released(up_to));
        }
    }

    /// The newest invalidation that the journals of all volumes in use contain.
    pub fn sealed(&self) -> u64 {
        let volumes = self.core.volumes().filter(|volume| !volume.health.is_out());
        volumes.map(|volume| volume.journal.sealed()).min().unwrap_or(u64::MAX)
    }

    /// Drops invalidations that are obsolete while older ones are in force: their matches have been
    /// forgotten, or newer invalidations match them too. They must be in all journals
    /// ([`Disk::sealed`]).
    pub fn drop_invalidations(&self, numbers: &[u64]) {
        let volumes = self.core.volumes().filter(|volume| !volume.health.is_out());
        volumes.for_each(|volume| volume.obsolete.lock().extend_from_slice(numbers));
    }

    /// Discards records of a lower order. This process treats them as gone; a later one will not
    /// find them, and needs no invalidations up to this number.
    pub fn discard_before(&self, order: u64) {
        for volume in self.core.volumes() {
            volume.journal.push(JournalItem::Discarded(order));
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

    /// The store's counters and gauges.
    pub fn stats(&self) -> Stats {
        let mut stats = self.core.past.lock().clone();
        self.core.volumes().for_each(|volume| volume.add_stats(&mut stats));
        stats
    }

    /// Bytes of the volumes that accept records now.
    pub fn takes_bytes(&self) -> u64 {
        self.core.volumes().map(|volume| volume.takes_bytes()).sum()
    }

    /// Returns true if a write queue may soon be full.
    pub fn is_behind(&self) -> bool {
        self.core.volumes().any(|volume| volume.is_behind())
    }

    /// The condition and the counters of one volume.
    pub fn volume_stats(&self, number: usize) -> Option<(VolumeCondition, Stats)> {
        let volume = self.core.slots.get(number)?.volume.read().clone()?;
        let mut stats = Stats::default();
        volume.add_stats(&mut stats);
        Some((volume.health.condition(), stats))
    }

    /// The reason why a volume could not be opened; `None` if it is open.
    pub fn absence(&self, number: usize) -> Option<String> {
        let slot = self.core.slots.get(number).filter(|slot| slot.volume.read().is_none())?;
        Some(slot.absence.lock().why.clone())
    }

    /// Runs one step of all work that threads would do. Returns false if there was none.
    pub fn step(&self) -> bool {
        self.core.step(false)
    }

    /// Examines one more segment for records. Returns false if none is left.
    pub fn find_step(&self) -> bool {
        self.core.volumes().any(|volume| volume.find_turn())
    }

    /// Runs all steps, and commits.
    pub fn settle(&self) {
        while self.core.step(true) {}
    }

    /// Checks volumes that pause or are out, and late reads.
    pub fn tick(&self) {
        self.core.tick();
    }

    /// Serves one waiting read. Returns false if none waits.
    pub fn serve(&self) -> bool {
        self.core.volumes().any(|volume| volume.read_turn())
    }

    /// Closes the store, so that the next start finds everything at once. It waits for a disk that
    /// hangs no longer than for an invalidation. The store accepts nothing afterwards.
    pub fn close(&self) {
        self.core.end_threads();
        self.core.volumes().for_each(|volume| volume.close());
    }

    /// Closes the store for another process, which may open it then. It accepts nothing afterwards,
    /// but reads until it is dropped.
    pub fn close_for_other(&self) {
        self.core.end_writing();
        self.core.volumes().for_each(|volume| volume.close());
    }

    /// [`Disk::close`], by value.
    pub fn stop(self) {
        self.close();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.core.end_threads();
    }
}

/// The baseline of all volumes together.
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
    // A lost superblock may have been a newer one.
    all.session += 2;
    all
}

/// A volume that cannot be used now.
struct UnavailableVolume {
    why: Error,
    /// True if no start can find anything in it.
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
    let purpose = if void { Purpose::Empty } else { Purpose::Serve };
    let valid_from = SequenceCounter::first(all.session);
    // It stays locked until its first files have been removed.
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
