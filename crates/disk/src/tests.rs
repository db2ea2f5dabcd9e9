//! The store as a whole: what it keeps, what must never come back, and the effects of a failing
//! disk.

mod basics;
mod crash;
mod damage;
mod faults;
mod journal;
mod many_records;
mod model;
mod reclamation;
#[cfg(shuttle)]
mod schedules;
mod streams;
mod threads;
mod tools;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::Now;
use bytes::Bytes;
use parking_lot::Mutex;

use crate::vfs::Vfs;
use crate::*;

/// The wall clock at the start of all tests, in milliseconds.
pub(super) const START_MS: u64 = 1_700_000_000_000;

/// Clocks that a test sets.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    mono_ms: AtomicU64,
    unix_ms: AtomicU64,
}

impl Clocks {
    pub(super) fn new() -> Arc<Self> {
        let clocks = Self::default();
        clocks.mono_ms.store(1_000_000, Ordering::Relaxed);
        clocks.unix_ms.store(START_MS, Ordering::Relaxed);
        Arc::new(clocks)
    }

    pub(super) fn pass(&self, ms: u64) {
        self.mono_ms.fetch_add(ms, Ordering::Relaxed);
        self.unix_ms.fetch_add(ms, Ordering::Relaxed);
    }

    pub(super) fn set_back(&self, ms: u64) {
        self.unix_ms.fetch_sub(ms, Ordering::Relaxed);
    }

    pub(super) fn now(&self) -> Now {
        let mono_ms = self.mono_ms.load(Ordering::Relaxed);
        Now { mono_ms, unix_ms: self.unix_ms.load(Ordering::Relaxed) }
    }

    fn clock(self: &Arc<Self>) -> Clock {
        let own = Arc::clone(self);
        Arc::new(move || own.now())
    }
}

/// An owner with an index: places by hash, and all reports of the store.
#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) places: Mutex<BTreeMap<u64, Vec<RecordAddress>>>,
    pub(super) found: Mutex<Vec<FoundRecord>>,
    pub(super) dropped: Mutex<Vec<(u64, RecordAddress)>>,
    pub(super) moved: Mutex<Vec<(u64, RecordAddress, RecordAddress)>>,
    pub(super) changes: Mutex<Vec<(usize, VolumeCondition)>>,
}

impl Index {
    pub(super) fn add(&self, hash: u64, place: RecordAddress) {
        self.places.lock().entry(hash).or_default().push(place);
    }

    /// The newest place of a hash.
    pub(super) fn place(&self, hash: u64) -> Option<RecordAddress> {
        self.places.lock().get(&hash)?.last().copied()
    }

    pub(super) fn remove(&self, hash: u64, place: RecordAddress) -> bool {
        let mut places = self.places.lock();
        let Some(known) = places.get_mut(&hash) else { return false };
        let before = known.len();
        known.retain(|own| *own != place);
        let removed = known.len() < before;
        if known.is_empty() {
            places.remove(&hash);
        }
        removed
    }

    pub(super) fn len(&self) -> usize {
        self.places.lock().values().map(Vec::len).sum()
    }
}

impl Owner for Index {
    fn found(&self, records: &[FoundRecord]) {
        for record in records {
            // Newest first, in the order of the reports.
            self.places.lock().entry(record.hash).or_default().insert(0, record.place);
        }
        self.found.lock().extend_from_slice(records);
    }

    fn moved(&self, hash: u64, old: RecordAddress, new: RecordAddress) -> bool {
        self.moved.lock().push((hash, old, new));
        let mut places = self.places.lock();
        let Some(known) = places.get_mut(&hash) else { return false };
        let Some(place) = known.iter_mut().find(|place| **place == old) else { return false };
        *place = new;
        true
    }

    fn dropped(&self, hash: u64, place: RecordAddress) {
        self.dropped.lock().push((hash, place));
        self.remove(hash, place);
    }

    fn changed(&self, volume: usize, condition: VolumeCondition) {
        self.changes.lock().push((volume, condition));
        if matches!(condition, VolumeCondition::Out(_)) {
            for places in self.places.lock().values_mut() {
                places.retain(|place| place.volume() != volume);
            }
        }
    }
}

/// A store for tests: small segments, and steps run by the test.
pub(super) struct Lab {
    pub(super) disk: Disk,
    pub(super) index: Arc<Index>,
    pub(super) clocks: Arc<Clocks>,
    pub(super) invalidations: Vec<Invalidation>,
    pub(super) emptied: Vec<usize>,
    pub(super) failed: Vec<(usize, Error)>,
    pub(super) owner: [u8; 32],
}

pub(super) const SEGMENT: u32 = 16 << 10;

pub(super) fn volume(vfs: Arc<dyn Vfs>, segments: u64) -> VolumeConfig {
    VolumeConfig {
        segment_bytes: SEGMENT,
        block_bytes: 1024,
        ..VolumeConfig::new(vfs, segments * u64::from(SEGMENT))
    }
}

pub(super) fn settings(volumes: Vec<VolumeConfig>) -> Config {
    Config {
        threads: false,
        queue_bytes: 1 << 20,
        part_bytes: 2000,
        read_bytes: 64 << 10,
        journal_bytes: 4 << 10,
        ..Config::new(volumes)
    }
}

impl Lab {
    pub(super) fn open(config: Config, clocks: &Arc<Clocks>) -> Result<Self, Error> {
        let index = Arc::new(Index::default());
        let owner: Arc<dyn Owner> = Arc::clone(&index) as _;
        let OpenedStore { disk, owner, invalidations, emptied, failed } =
            Disk::open(config, owner, clocks.clock())?;
        let clocks = Arc::clone(clocks);
        Ok(Self { disk, index, clocks, invalidations, emptied, failed, owner })
    }

    /// One volume over `vfs`, with all records found.
    pub(super) fn over(vfs: impl Vfs, clocks: &Arc<Clocks>) -> Self {
        let lab = Self::open(settings(vec![volume(Arc::new(vfs), 8)]), clocks).unwrap();
        lab.find();
        lab
    }

    pub(super) fn find(&self) {
        self.disk.find();
        self.disk.settle();
        assert!(self.disk.has_found());
    }

    /// Puts a record, which replaces the one of the same hash.
    pub(super) fn put(&self, hash: u64, version: u64, len: usize) -> Option<RecordAddress> {
        let place = self.disk.put(entry(hash, version, len))?;
        if let Some(old) = self.index.place(hash) {
            self.index.remove(hash, old);
            self.disk.forget(old);
        }
        self.index.add(hash, place);
        Some(place)
    }

    /// Reads from the disk.
    pub(super) fn read(
        &self,
        place: RecordAddress,
        hash: u64,
        ask: RecordRequest,
    ) -> Result<RecordData, Error> {
        let (tell, told) = std::sync::mpsc::channel();
        let done = Box::new(move |answer| tell.send(answer).unwrap());
        self.disk.read(place, hash, ask, u64::MAX, done);
        self.disk.serve();
        told.try_recv().unwrap()
    }

    pub(super) fn whole(&self, hash: u64) -> Option<RecordData> {
        self.read(self.index.place(hash)?, hash, RecordRequest::whole()).ok()
    }

    /// The version of a record that is intact. Fails on bytes other than those put.
    pub(super) fn version(&self, hash: u64) -> Option<u64> {
        let answer = self.whole(hash)?;
        Some(check(hash, &answer))
    }

    pub(super) fn stats(&self) -> Stats {
        self.disk.stats()
    }
}

pub(super) fn head(hash: u64, version: u64, len: usize) -> Bytes {
    let numbers = [hash, version, len as u64];
    numbers.into_iter().flat_map(u64::to_le_bytes).collect::<Vec<u8>>().into()
}

pub(super) fn body(hash: u64, version: u64, len: usize) -> Bytes {
    let mut rng = fastrand::Rng::with_seed(hash << 20 ^ version);
    let mut bytes = vec![0; len];
    rng.fill(&mut bytes);
    bytes.into()
}

pub(super) fn entry(hash: u64, version: u64, len: usize) -> Entry {
    Entry {
        hash,
        passed: version as u32,
        expires_ms: u64::MAX,
        order: None,
        head: head(hash, version, len),
        body: Body::Bytes(body(hash, version, len)),
    }
}

/// Fails unless the data is what was put under this hash. Returns the version.
pub(super) fn check(hash: u64, answer: &RecordData) -> u64 {
    let number = |at: usize| u64::from_le_bytes(answer.head[at..at + 8].try_into().unwrap());
    let (found, version, len) = (number(0), number(8), number(16));
    assert_eq!(found, hash, "a record of another key");
    assert_eq!((answer.head.len(), answer.length), (24, len));
    assert!(answer.body.concat() == body(hash, version, len as usize), "wrong bytes of {hash}");
    version
}
