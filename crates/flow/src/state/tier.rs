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
mod journal_batches;
mod lower;
mod record;
mod recovery;
mod store;

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use base::Limits;
use disk::{Disk, RecordAddress};
use parking_lot::Mutex;

pub(crate) use self::body::{BodyPrefix, DiskBody};
use self::chores::Chores;
pub use self::chores::ShutdownOutcome;
pub(crate) use self::chores::look_after;
pub(crate) use self::intake::Intake;
pub(crate) use self::journal_batches::JournalBatches;
pub(crate) use self::lower::limit_hits;
pub(crate) use self::record::{Content, DiskResponse, content};
pub use self::store::DiskRules;
pub(crate) use self::store::Store;

use self::recovery::DiskRecovery;

/// The store of responses: memory, over a disk where there is one.
pub type Cache = cache::Cache<Tier>;
/// The duty to fetch.
pub type Lead = cache::Lead<Tier>;
/// The next step of a request without a usable stored response.
pub(crate) type MissStep = cache::FetchDecision<Tier>;
/// The writing end of a body.
pub(crate) type Filling = cache::ObjectWriter<Tier>;

/// A store with nothing below its memory.
pub fn memory_only(config: cache::Config) -> Arc<Cache> {
    Cache::with_lower(Arc::default(), config)
}

/// The tier below memory; it keeps nothing until a disk has been taken up.
#[derive(Debug, Default)]
pub struct Tier {
    pub(crate) store: OnceLock<Store>,
    pub(crate) found: DiskRecovery,
    /// Large bodies that are read from where they lie, by place.
    pub(crate) lent: Mutex<HashMap<RecordAddress, Weak<DiskBody>>>,
    /// Those of them whose records go when nobody reads them any more.
    parting: AtomicUsize,
    /// The lives of stored objects that bodies on disk are made of, by the bodies' places.
    pub(crate) sets: Mutex<HashMap<RecordAddress, Arc<dyn Any + Send + Sync>>>,
    /// Volumes that were taken out of use, and whose places are still in the index.
    lost: Mutex<Vec<usize>>,
    /// Everything that may answer again is kept: the process ends.
    is_resting: AtomicBool,
    /// Chores behind requests.
    chores: Arc<tokio::sync::Mutex<Chores>>,
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
