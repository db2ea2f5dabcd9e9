//! Invalidator: the only entry point of invalidations to the store.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use base::{Counters, HashSeed};
use parking_lot::Mutex;
use purge::{AppliedInvalidations, Journal, Level, PeerCaches};

use super::recent_invalidations::RecentInvalidations;
use crate::state::configuration_holder::ConfigurationHolder;
use crate::state::tier::Cache;
use crate::state::warmth::SharedWarmth;
use crate::trust::Trust;

/// The entry point of invalidations to a store.
pub struct Invalidator {
    pub(crate) cache: Arc<Cache>,
    /// The secret seed of key hashes.
    pub(crate) seed: HashSeed,
    /// The configuration in which names of sites are looked up, unless a request has its own.
    pub(crate) in_force: Arc<ConfigurationHolder>,
    /// Trust in stored responses.
    pub trust: Arc<Trust>,
    /// The way back for pages that purges remove.
    pub(crate) warmth: Arc<SharedWarmth>,
    /// Counters of events that belong to no core.
    pub(crate) counters: Arc<Counters>,
    /// The identity of this process among those whose invalidations meet in a journal.
    pub(crate) node: u64,
    pub(crate) sequence: AtomicU64,
    pub(crate) applied: Mutex<AppliedInvalidations>,
    pub(crate) journal: OnceLock<Arc<dyn Journal>>,
    pub(crate) others: OnceLock<Arc<dyn PeerCaches>>,
    /// The latest invalidations.
    pub(crate) recent: RecentInvalidations,
    /// Locked by the sweep in progress.
    pub(crate) sweeping: Arc<tokio::sync::Mutex<()>>,
    /// Locked by the listing in progress.
    pub(crate) listing: Arc<tokio::sync::Mutex<()>>,
}

/// The parts of the state that an invalidator works on.
#[derive(Clone, Copy)]
pub(crate) struct InvalidatorParts<'a> {
    pub(crate) cache: &'a Arc<Cache>,
    pub(crate) in_force: &'a Arc<ConfigurationHolder>,
    pub(crate) warmth: &'a Arc<SharedWarmth>,
}

impl Invalidator {
    /// Leaves the record of invalidations to a process that is told of them from now on. Each one
    /// has been recorded here before, or is told to that process.
    pub fn hand_over_journal(&self) {
        let _order = self.applied.lock();
        self.cache.lower().note_handed_over();
    }

    /// The invalidator of a store.
    pub(crate) fn new(
        InvalidatorParts { cache, in_force, warmth }: InvalidatorParts<'_>,
        seed: HashSeed,
        trust: &Arc<Trust>,
        counters: Arc<Counters>,
    ) -> Arc<Self> {
        Arc::new(Self {
            cache: Arc::clone(cache),
            seed,
            in_force: Arc::clone(in_force),
            trust: Arc::clone(trust),
            warmth: Arc::clone(warmth),
            counters,
            node: HashSeed::random().hash(b"node"),
            sequence: AtomicU64::new(0),
            applied: Mutex::default(),
            journal: OnceLock::new(),
            others: OnceLock::new(),
            recent: RecentInvalidations::default(),
            sweeping: Arc::default(),
            listing: Arc::default(),
        })
    }
}

/// The result of an invalidation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Stored responses that it selected.
    pub objects: u64,
    /// The count of selected responses like Varnish's xkey ([`cache::Ban::finds`]).
    pub finds: u64,
    /// The count is incomplete. Uncounted responses are not used either.
    pub pending: bool,
    /// The journal is recording it: wait for that if the answer must survive a restart.
    pub recorded: bool,
}

/// The conditions that an answer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidationWait {
    /// Milliseconds to wait for the count.
    pub count_ms: u64,
    /// The required confirmation by other nodes; `None` for the configured one.
    pub level: Option<Level>,
}

impl From<u64> for InvalidationWait {
    fn from(count_ms: u64) -> Self {
        Self { count_ms, level: None }
    }
}

/// Modes of invalidation for a thread that must not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InvalidationMode {
    /// Described responses are examined when they are found, or by a sweep off the cores.
    Beside,
    /// Described responses are counted: in a large store as many as can be examined without
    /// delaying others.
    Counted,
    /// Like `Beside`, but in force even if the journal refuses: the origin has changed already, and
    /// a cache must follow (RFC 9111 4.4).
    Regardless,
}
