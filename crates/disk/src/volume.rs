//! One volume while it is in use: its segments, the one that is open, what waits to be written, and
//! its journal.
//!
//! Locks are taken in this order: writer, front, a segment, lists, journal. Only the writer's is
//! held while the owner is called.

use std::any::Any;
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use base::Now;
use bytes::Bytes;
use hashbrown::HashMap;

use crate::body::Body;
use crate::buffers::Buffers;
use crate::config::{Clock, Config, UNIT};
use crate::entry::Entry;
use crate::find::Finder;
use crate::health::Health;
use crate::journal::{Item, Journal, Moment};
use crate::layout::{
    Blocks, FRAME_BYTES, HEADER_BYTES, Header, IS_LISTED, IS_PART, LISTED, ROW_BYTES, Row,
    Superblock,
};
use crate::order::Order;
use crate::owner::Owner;
use crate::part::Part;
use crate::place::Place;
use crate::reads::ReadQueue;
use crate::segment::{Segment, Usage};
use crate::stats::{Stats, Tallies, add};
use crate::sum::Binding;
use crate::sync::{AtomicBool, AtomicU64, Condvar, Mutex, Ordering};
use crate::vfs::{File, Vfs};
use crate::writer::Writer;

/// The longest head of a record: far beyond any response's.
const HEAD_BYTES_MAX: usize = 8 << 20;
/// The rows of a segment take at most one such part of the memory for knowing what is where.
const INDEX_PARTS: u64 = 16;

/// Settings, clock and sequence, which all volumes of a store share.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) owner: Arc<dyn Owner>,
    pub(crate) clock: Clock,
    /// The first number of this session.
    pub(crate) began: u64,
    pub(crate) order: Order,
    /// Volumes that were taken out, with the number that was next: others are to remember them.
    pub(crate) fallen: Mutex<Vec<([u8; 16], u64)>>,
    pub(crate) buffers: Arc<Buffers>,
}

impl Shared {
    pub(crate) fn now(&self) -> Now {
        (self.clock)()
    }

    pub(crate) fn moment(&self) -> Moment {
        Moment { now: self.now(), next: self.order.now() }
    }
}

/// A record that waits to be written.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) place: Place,
    pub(crate) epoch: u64,
    pub(crate) offset: u32,
    pub(crate) len: u32,
    pub(crate) header: Header,
    pub(crate) head: Bytes,
    pub(crate) body: Body,
    /// The part of `body` that belongs to this record.
    pub(crate) range: Range<u64>,
}

/// Work for the writer, in its order.
#[derive(Debug)]
pub(crate) enum Job {
    /// A segment begins.
    Open { segment: u32, epoch: u64 },
    /// A record.
    Record(Arc<Queued>),
    /// A segment is full.
    Seal { segment: u32, epoch: u64 },
    /// A record is to be overwritten.
    Erase { place: Place, epoch: u64, room: u32 },
    /// The record at this place has been written anew before this.
    Moved { place: Place },
    /// All that moved on from a segment stands before this.
    Release { segment: u32, epoch: u64 },
}

/// Where the next record goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor {
    pub(crate) segment: u32,
    pub(crate) epoch: u64,
    offset: u32,
    rows: u32,
}

/// The side of the volume that puts and the writer share.
#[derive(Debug, Default)]
pub(crate) struct Front {
    pub(crate) open: Option<Cursor>,
    pub(crate) free: BTreeSet<u32>,
    pub(crate) jobs: VecDeque<Job>,
    pub(crate) queued_bytes: u64,
    pub(crate) pending: HashMap<Place, Arc<Queued>>,
}

/// A record to be added.
pub(crate) struct New {
    pub(crate) flags: u16,
    pub(crate) hash: u64,
    pub(crate) passed: u32,
    pub(crate) expires_ms: u64,
    /// Its order, if it has one from before.
    pub(crate) order: Option<u64>,
    pub(crate) head: Bytes,
    pub(crate) body: Body,
    pub(crate) range: Range<u64>,
    pub(crate) total: u64,
    /// The store moves it: it may take the last free segment, and is not measured by the queue.
    pub(crate) moves: bool,
}

impl New {
    /// A record of `entry`, whose body is all that is its own.
    pub(crate) fn of(entry: Entry) -> Self {
        let total = entry.body.size();
        Self {
            flags: 0,
            hash: entry.hash,
            passed: entry.passed,
            expires_ms: entry.expires_ms,
            order: entry.order,
            head: entry.head,
            body: entry.body,
            range: 0..total,
            total,
            moves: false,
        }
    }
}

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
    pub(crate) front: Mutex<Front>,
    /// The writer has something to do.
    pub(crate) wake: Condvar,
    pub(crate) writer: Mutex<Writer>,
    pub(crate) journal: Journal,
    /// Lists of parts, by the places of the records that have them.
    pub(crate) lists: Mutex<HashMap<Place, Box<[Part]>>>,
    /// Segments that are held for clients.
    pub(crate) held: AtomicU64,
    pub(crate) reads: ReadQueue,
    pub(crate) health: Health,
    pub(crate) tallies: Tallies,
    pub(crate) finder: Mutex<Option<Finder>>,
    /// It is known which segments are free.
    pub(crate) ready: AtomicBool,
    /// All that was there at the start has been found.
    pub(crate) found: AtomicBool,
    /// A snapshot was written since.
    pub(crate) settled: AtomicBool,
    /// The generation of the newest snapshot.
    pub(crate) snapshot_before: AtomicU64,
    /// Invalidations that are needed no more, which the writer tells the journal with a commit: it
    /// has moved nothing halfway then, and segments that were being emptied are free.
    pub(crate) needless: Mutex<Vec<u64>>,
    /// Bytes that the journal began with.
    pub(crate) carried: AtomicU64,
    /// Segments looked at, of those that had something.
    pub(crate) looked: AtomicU64,
    pub(crate) to_look: AtomicU64,
    /// Nothing is taken any more.
    pub(crate) stopping: AtomicBool,
    /// Another one has taken its place: it writes no more.
    pub(crate) retired: AtomicBool,
    /// Its threads are to end.
    pub(crate) ending: AtomicBool,
    /// Someone waits for the journal.
    pub(crate) urgent: Mutex<bool>,
    pub(crate) ring: Condvar,
    pub(crate) shared: Arc<Shared>,
    pub(crate) lock: Arc<dyn Any + Send + Sync>,
}

impl Volume {
    pub(crate) fn segment_bytes(&self) -> u32 {
        self.superblock.segment_bytes
    }

    /// The file of a segment, and where the segment begins in it.
    pub(crate) fn file(&self, segment: u32) -> (&Arc<dyn File>, u64) {
        let per_file = self.superblock.segments_per_file;
        let at = u64::from(segment % per_file) * u64::from(self.segment_bytes());
        (&self.files[(segment / per_file) as usize], at)
    }

    /// The segment of a place; `None` if it cannot be one of this volume.
    pub(crate) fn segment(&self, place: Place) -> Option<&Mutex<Segment>> {
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

    /// True if records are taken.
    pub(crate) fn takes(&self) -> bool {
        self.health.is_in()
            && self.ready.load(Ordering::Acquire)
            && !self.stopping.load(Ordering::Acquire)
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Acquire)
    }

    /// Adds a record; `None`, and nothing has changed, if there is no room for it.
    pub(crate) fn add(&self, new: New) -> Option<(Place, u64)> {
        let payload = new.head.len() as u64 + (new.range.end - new.range.start);
        let len = self.blocks.record_len(payload);
        if new.head.len() > HEAD_BYTES_MAX || len > u64::from(self.segment_bytes()) {
            add(&self.tallies.refused_length, 1);
            return None;
        }
        if !new.moves && self.shared.config.index.is_full() {
            add(&self.tallies.refused_index, 1);
            return None;
        }
        let mut front = self.front.lock();
        if !new.moves && front.queued_bytes + len > self.shared.config.queue_bytes {
            add(&self.tallies.refused_queue, 1);
            return None;
        }
        let Some(cursor) = self.reserve(&mut front, len as u32, new.moves) else {
            add(&self.tallies.refused_space, 1);
            return None;
        };
        let seq = self.shared.order.take();
        let header = Header {
            flags: new.flags,
            seq,
            hash: new.hash,
            order: new.order.unwrap_or(u64::MAX).min(self.shared.order.of(seq)),
            expires_ms: new.expires_ms,
            written_ms: self.shared.now().unix_ms,
            passed: new.passed,
            head_len: new.head.len() as u32,
            body_len: (new.range.end - new.range.start) as u32,
            sealed: self.journal.sealed(),
            total: new.total,
        };
        let Cursor { segment, epoch, offset, .. } = cursor;
        let place = Place::new(self.number, segment, epoch, offset);
        let queued = Arc::new(Queued {
            place,
            epoch,
            offset,
            len: len as u32,
            header,
            head: new.head,
            body: new.body,
            range: new.range,
        });
        let row = Row::new(&header, offset, len as u32);
        self.segments[segment as usize].lock().push(row);
        front.pending.insert(place, Arc::clone(&queued));
        front.queued_bytes += len;
        front.jobs.push_back(Job::Record(queued));
        drop(front);
        self.wake.notify_one();
        add(&self.tallies.puts, u64::from(!new.moves && new.flags & IS_PART == 0));
        add(&self.tallies.put_bytes, if new.moves { 0 } else { u64::from(row.room()) });
        Some((place, seq))
    }

    /// Room for a record in the open segment, or in the next one.
    fn reserve(&self, front: &mut Front, len: u32, moves: bool) -> Option<Cursor> {
        let room = len.next_multiple_of(UNIT);
        let fits = |cursor: &Cursor| {
            let table = (u64::from(cursor.rows) + 1) * ROW_BYTES as u64;
            u64::from(cursor.offset) + u64::from(room) + table + u64::from(FRAME_BYTES)
                <= u64::from(self.segment_bytes())
        };
        // One that its rows fill goes on where no other is free.
        let rows_most = self.rows_most();
        let goes_on = |cursor: &Cursor| cursor.rows < rows_most || front.free.len() <= 1;
        if !front.open.as_ref().is_some_and(|cursor| fits(cursor) && goes_on(cursor)) {
            let fresh = Cursor { segment: 0, epoch: 0, offset: FRAME_BYTES, rows: 0 };
            if !fits(&fresh) || !(moves || front.free.len() > 1) {
                return None;
            }
            let segment = front.free.pop_first()?;
            self.close_open(front);
            let epoch = self.shared.order.take();
            self.segments[segment as usize].lock().open(epoch);
            front.jobs.push_back(Job::Open { segment, epoch });
            front.open = Some(Cursor { segment, epoch, ..fresh });
        }
        let cursor = front.open.as_mut()?;
        let reserved = *cursor;
        cursor.offset += room;
        cursor.rows += 1;
        Some(reserved)
    }

    /// The most records of a segment: where few of their rows have room in memory, what is worth
    /// least must still be a small part of all.
    fn rows_most(&self) -> u32 {
        let Config { index, volumes, .. } = &self.shared.config;
        let bytes = index.most() / (volumes.len() as u64 * INDEX_PARTS);
        u32::try_from(bytes / ROW_BYTES as u64).unwrap_or(u32::MAX).max(1)
    }

    /// Ends the open segment.
    pub(crate) fn close_open(&self, front: &mut Front) {
        if let Some(Cursor { segment, epoch, .. }) = front.open.take() {
            self.segments[segment as usize].lock().usage = Usage::Full;
            front.jobs.push_back(Job::Seal { segment, epoch });
        }
    }

    /// Adds a record with its body, in parts if it is long.
    pub(crate) fn put(&self, new: New) -> Option<Place> {
        if !self.takes() {
            add(&self.tallies.refused_out, 1);
            return None;
        }
        if new.range.end - new.range.start <= u64::from(self.part_bytes()) {
            return self.add(new).map(|(place, _)| place);
        }
        let mut parts = Vec::new();
        let mut at = new.range.start;
        while at < new.range.end {
            let end = new.range.end.min(at + u64::from(self.part_bytes()));
            match self.add_part(new.hash, new.body.clone(), at..end) {
                Some(part) => parts.push(part),
                None => {
                    self.bury_parts(&parts);
                    return None;
                }
            }
            at = end;
        }
        let place = self.add_listed(new, &parts);
        if place.is_none() {
            self.bury_parts(&parts);
        }
        place
    }

    /// Bytes of a part.
    pub(crate) fn part_bytes(&self) -> u32 {
        let most = self.segment_bytes() / 4 - HEADER_BYTES as u32;
        self.shared.config.part_bytes.min(most).max(1)
    }

    /// Adds a part of a body.
    pub(crate) fn add_part(&self, hash: u64, body: Body, range: Range<u64>) -> Option<Part> {
        let len = range.end - range.start;
        let new = New {
            flags: IS_PART,
            hash,
            passed: u32::MAX,
            expires_ms: u64::MAX,
            order: None,
            head: Bytes::new(),
            body,
            range,
            total: len,
            moves: false,
        };
        let (place, seq) = self.add(new)?;
        Some(Part { place, seq, len })
    }

    /// Adds a record whose body is in these parts.
    pub(crate) fn add_listed(&self, new: New, parts: &[Part]) -> Option<Place> {
        let body = Part::encode(parts);
        let new = New {
            flags: IS_LISTED,
            range: 0..body.len() as u64,
            total: parts.iter().map(|part| part.len).sum(),
            body: Body::Bytes(body),
            ..new
        };
        let (place, _) = self.add(new)?;
        self.lists.lock().insert(place, parts.into());
        Some(place)
    }

    /// Adds a record of the parts that the one at `place` has, which is dead once that is durable.
    pub(crate) fn rehead(&self, place: Place, new: New, tell: impl FnOnce(Place)) -> Option<Place> {
        if !self.takes() {
            return None;
        }
        let parts = self.lists.lock().get(&place).cloned()?;
        let moved = self.add_listed(new, &parts)?;
        tell(moved);
        if self.kill(place).is_none() {
            // It was forgotten, or dropped to make room, and its parts with it: what has just been
            // said is not true.
            self.forget(moved);
            return None;
        }
        self.lists.lock().remove(&place);
        self.front.lock().jobs.push_back(Job::Moved { place });
        self.wake.notify_one();
        Some(moved)
    }

    /// Parts that no record lists.
    pub(crate) fn bury_parts(&self, parts: &[Part]) {
        for part in parts {
            if let Some(row) = self.kill(part.place) {
                self.bury(part.place, row);
            }
        }
    }

    /// The owner does not want a record any more; false where none is.
    pub(crate) fn forget(&self, place: Place) -> bool {
        let Some(row) = self.kill(place) else { return false };
        add(&self.tallies.forgotten, 1);
        self.bury(place, row);
        true
    }

    /// Takes the record out of its segment's live ones.
    pub(crate) fn kill(&self, place: Place) -> Option<Row> {
        self.segment(place)?.lock().kill(place)
    }

    /// Sees to it that a record that was killed stays dead, and takes its parts along.
    pub(crate) fn bury(&self, place: Place, row: Row) {
        self.journal.push(Item::Forget(place));
        if row.is(LISTED) {
            let parts = self.lists.lock().remove(&place);
            self.bury_parts(&parts.unwrap_or_default());
        }
        if self.shared.config.erase
            && let Some(segment) = self.segment(place)
        {
            let epoch = segment.lock().epoch;
            let job = Job::Erase { place, epoch, room: row.room() };
            self.front.lock().jobs.push_back(job);
            self.wake.notify_one();
        }
    }

    /// Kills a record that could not be kept, and tells its owner.
    pub(crate) fn lose(&self, place: Place) {
        let Some(row) = self.kill(place) else { return };
        self.bury(place, row);
        add(&self.tallies.lost, 1);
        self.tell_dropped(place, &row);
    }

    /// Tells the owner that a record is gone. Parts are nothing that the owner knows: whoever lists
    /// them finds them gone.
    pub(crate) fn tell_dropped(&self, place: Place, row: &Row) {
        if row.flags() & IS_PART == 0 {
            self.shared.owner.dropped(row.hash, place);
        }
    }

    /// Bytes that it has for records, if it takes any now.
    pub(crate) fn takes_bytes(&self) -> u64 {
        let bytes = self.segments.len() as u64 * u64::from(self.segment_bytes());
        if self.takes() { bytes } else { 0 }
    }

    /// True if so much waits to be written that the queue may soon be full.
    pub(crate) fn is_behind(&self) -> bool {
        self.front.lock().queued_bytes > self.shared.config.queue_bytes / 2
    }

    /// The volume in numbers.
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
