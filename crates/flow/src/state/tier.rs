//! Tier below memory: a [`disk::Disk`] under the cache's index.
//!
//! Evicted responses are demoted to it, and valuable ones are copied before, so that they survive a
//! killed process. A request that finds nothing in memory but a candidate on disk leads a fetch
//! like any other; it reads the disk first, then looks up again. Policies know no more about it.
//!
//! Ban numbers are valid in one process; the disk numbers invalidations across processes. A record
//! stores its position in that sequence, which tells the invalidations it was tested against;
//! records of this process also store the ban's number.

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

/// The store of responses: memory, with a disk below if there is one.
pub type Cache = cache::Cache<Tier>;
/// The duty to fetch.
pub type Lead = cache::Lead<Tier>;
/// The next step of a request without a usable stored response.
pub(crate) type MissStep = cache::FetchDecision<Tier>;
/// The writer of a body.
pub(crate) type Filling = cache::ObjectWriter<Tier>;

/// A store without a disk.
pub fn memory_only(config: cache::Config) -> Arc<Cache> {
    Cache::with_lower(Arc::default(), config)
}

/// The tier below memory. It keeps nothing until a disk is attached.
#[derive(Debug, Default)]
pub struct Tier {
    pub(crate) store: OnceLock<Store>,
    pub(crate) found: DiskRecovery,
    /// Large bodies that are read from the disk, by address.
    pub(crate) lent: Mutex<HashMap<RecordAddress, Weak<DiskBody>>>,
    /// The number of `lent` bodies whose records are released by their last reader.
    parting: AtomicUsize,
    /// Lives of stored objects that bodies on disk consist of, by the bodies' addresses.
    pub(crate) sets: Mutex<HashMap<RecordAddress, Arc<dyn Any + Send + Sync>>>,
    /// Volumes out of use whose addresses are still in the index.
    lost: Mutex<Vec<usize>>,
    /// The process ends: all responses that may answer again are kept.
    is_resting: AtomicBool,
    /// The disk belongs to another process.
    is_handed_over: AtomicBool,
    /// State of the chores.
    chores: Arc<tokio::sync::Mutex<Chores>>,
}

impl Tier {
    /// Applies the disk's present limits.
    pub(crate) fn set_limits(&self, limits: &Limits) {
        if let Some(store) = self.store.get() {
            store.read_ms.store(limits.disk_read_timeout, Ordering::Relaxed);
            store.next_ms.store(limits.between_bytes_timeout, Ordering::Relaxed);
            store.read_share.store(limits.disk_read_share, Ordering::Relaxed);
        }
    }

    /// Returns true until the index contains all records found at the start.
    pub fn is_finding(&self) -> bool {
        self.found.goes_on() && self.disk().is_some_and(|disk| !disk.has_found())
    }

    /// The disk, if one is in use.
    pub fn disk(&self) -> Option<&Disk> {
        self.store.get().map(|store| &store.disk)
    }
}
