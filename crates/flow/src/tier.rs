//! The tier below memory: a [`disk::Disk`] under the cache's index.
//!
//! What leaves memory sinks, and what is worth it is copied before that, so that a process which is
//! killed leaves it to the next one. A request that finds nothing in memory, and something below,
//! leads a fetch like any other; it reads the disk first, and then looks up again.
//! Neither policy knows more of it than that.
//!
//! Bans have numbers of one process; the disk has a sequence of its own that goes on from process
//! to process. So a record tells which invalidations it has been tested against by its place in
//! that sequence. For records of this process the number of the ban stands beside it.

mod body;
mod chores;
mod intake;
mod journal;
mod kept;
mod raise;
mod record;
mod shown;
mod spool;
mod start;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use base::{HashSeed, Limits};
use cache::{Lower, Object};
use disk::{Disk, Place};
use parking_lot::Mutex;

pub use chores::Resting;
pub use shown::Shown;
pub use start::{OpenedDisk, TakenUp, open};

pub(crate) use chores::{Chores, look_after};
pub(crate) use raise::raise;
pub(crate) use spool::Spool;

use crate::slices::{self, SliceLife};
use body::OnDisk;
use kept::KeptBatches;

/// The store of responses: memory, over a disk where there is one.
pub type Cache = cache::Cache<Tier>;
/// The duty to fetch.
pub type Lead = cache::Lead<Tier>;
/// The next step of a request without a usable stored response.
pub(crate) type Begin = cache::Begin<Tier>;
/// The writing end of a body.
pub(crate) type Filling = cache::Filling<Tier>;

/// A store with nothing below its memory.
pub fn memory_only(config: cache::Config) -> Arc<Cache> {
    Cache::over(Arc::default(), config)
}

/// Rules for what goes to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskRules {
    /// Everything that leaves memory is kept, asked for again or not.
    pub admit_all: bool,
}

/// The tier below memory; it keeps nothing until a disk has been taken up.
#[derive(Debug, Default)]
pub struct Tier {
    store: OnceLock<Store>,
    found: Found,
    /// Large bodies that are read from where they lie, by place.
    lent: Mutex<HashMap<Place, Weak<OnDisk>>>,
    /// Those of them whose records go when nobody reads them any more.
    parting: AtomicUsize,
    /// The slices of each set on disk, by the set's place.
    sets: Mutex<HashMap<Place, Arc<SliceLife>>>,
    /// Volumes that were taken out of use, and whose places are still in the index.
    lost: Mutex<Vec<usize>>,
    /// Everything that may answer again is kept: the process ends.
    is_resting: AtomicBool,
}

/// A disk in use.
#[derive(Debug)]
struct Store {
    disk: Disk,
    rules: DiskRules,
    /// Milliseconds that a request waits for the disk, before it asks an origin.
    read_ms: AtomicU64,
    /// Milliseconds that a body which has begun waits for its next bytes, as for an origin's.
    next_ms: AtomicU64,
    /// Share of a volume that readers keep from being reclaimed, in percent.
    read_share: AtomicU64,
    /// The seed of hashes that the disk keeps.
    seed: HashSeed,
    /// For each invalidation of former processes, in their order: its number in the disk's
    /// sequence, and the newest ban once it had taken effect here.
    former: Vec<(u64, u32)>,
    /// For bans made here that something in memory may not have passed yet: the newest of one
    /// invalidation, and the number of that.
    bans: Mutex<VecDeque<(u32, u64)>>,
    /// Invalidations that the journal has.
    kept: Mutex<KeptBatches>,
}

/// The state of finding what was there at the start.
#[derive(Debug, Default)]
struct Found {
    /// Not everything has been found.
    goes_on: AtomicBool,
    /// The number of the invalidation of a former process that is taking effect; 0 for none.
    replayed: AtomicU64,
    /// Hashes of keys, and the number of the newest invalidation of each: older records are void.
    struck: Mutex<HashMap<u32, u64>>,
    /// Records that are older are void.
    floor: AtomicU64,
}

impl Found {
    fn goes_on(&self) -> bool {
        self.goes_on.load(Ordering::Acquire)
    }

    /// Whatever is found under this hash from now on is void, if it is older than this.
    fn strike(&self, h32: u32) {
        if !self.goes_on() {
            return;
        }
        let number = match self.replayed.load(Ordering::Relaxed) {
            0 => u64::MAX,
            number => number,
        };
        let mut struck = self.struck.lock();
        let newest = struck.entry(h32).or_default();
        *newest = number.max(*newest);
    }

    fn wants(&self, h32: u32, order: u64) -> bool {
        let is_struck = || self.struck.lock().get(&h32).is_some_and(|number| order < *number);
        order >= self.floor.load(Ordering::Relaxed) && !is_struck()
    }

    fn end(&self) {
        self.goes_on.store(false, Ordering::Release);
        *self.struck.lock() = HashMap::new();
    }
}

impl Tier {
    /// Takes over the limits that the disk has now.
    pub(crate) fn set_limits(&self, limits: &Limits) {
        if let Some(store) = self.store.get() {
            store.read_ms.store(limits.disk_read_timeout, Ordering::Relaxed);
            store.next_ms.store(limits.between_bytes_timeout, Ordering::Relaxed);
            store.read_share.store(limits.disk_read_share, Ordering::Relaxed);
        }
    }

    /// True while not everything that was there at the start is in the index yet.
    pub fn is_finding(&self) -> bool {
        self.found.goes_on() && self.disk().is_some_and(|disk| !disk.has_found())
    }

    /// The disk, where one is in use.
    pub fn disk(&self) -> Option<&Disk> {
        self.store.get().map(|store| &store.disk)
    }
}

impl Store {
    /// The newest ban that a record has passed, by its place in the disk's sequence and by what
    /// stands beside it.
    fn passed(&self, order: u64, passed: u32) -> u32 {
        if order >= self.disk.began() {
            return passed;
        }
        let later = self.former.partition_point(|(number, _)| *number <= order);
        self.former[..later].last().map_or(0, |(_, ban)| *ban)
    }

    /// The newest invalidation that `object` has been tested against; `None` for all that there
    /// are.
    fn order(&self, object: &Object) -> Option<u64> {
        let passed = object.passed();
        let bans = self.bans.lock();
        let untested = bans.iter().find(|(ban, _)| *ban > passed);
        untested.map(|(_, number)| number - 1)
    }
}

impl Lower for Tier {
    type Place = Place;

    fn is_open(&self) -> bool {
        self.store.get().is_some() || self.found.goes_on()
    }

    fn sink(&self, object: &Arc<Object>) -> Option<Place> {
        if let Some(place) = OnDisk::to_enter(object) {
            return Some(place);
        }
        if let Some(body) = OnDisk::left(object) {
            return body.rehead(self, self.store.get()?, object);
        }
        let place = self.store.get()?.keep(object, self.is_resting.load(Ordering::Relaxed))?;
        if let Some(set) = slices::of_object(object) {
            self.sets.lock().insert(place, set.life());
        }
        Some(place)
    }

    fn forget(&self, place: Place) {
        _ = self.sets.lock().remove(&place);
        if !self.forget_later(place)
            && let Some(disk) = self.disk()
        {
            disk.forget(place);
        }
    }

    fn struck(&self, h32: u32) {
        self.found.strike(h32);
    }

    fn passed(&self) -> Option<u32> {
        if self.found.goes_on() {
            return Some(0);
        }
        let store = self.store.get()?;
        let oldest = store.disk.oldest()?;
        if oldest >= store.disk.began() {
            store.disk.passed()
        } else {
            Some(store.passed(oldest, 0))
        }
    }
}
