//! The door: the one way by which invalidations reach the store.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use base::{Counters, HashSeed};
use parking_lot::Mutex;
use purge::{AppliedInvalidations, Journal, Level, PeerCaches};

use crate::state::configuration_holder::ConfigurationHolder;
use crate::state::tier::Cache;
use crate::trust::Trust;

/// The way of invalidations to a store.
pub struct Invalidator {
    pub(crate) cache: Arc<Cache>,
    /// The secret of the keys' hashes.
    pub(crate) seed: HashSeed,
    /// The configuration that names of sites are of, if they are of no request's.
    pub(crate) in_force: Arc<ConfigurationHolder>,
    /// Trust in what is stored.
    pub trust: Arc<Trust>,
    /// Counters of what no core counts.
    pub(crate) counters: Arc<Counters>,
    /// This process among those whose invalidations may meet in a journal.
    pub(crate) node: u64,
    pub(crate) sequence: AtomicU64,
    pub(crate) applied: Mutex<AppliedInvalidations>,
    pub(crate) journal: OnceLock<Arc<dyn Journal>>,
    pub(crate) others: OnceLock<Arc<dyn PeerCaches>>,
    /// Held by the sweep of the store that is under way.
    pub(crate) sweeping: Arc<tokio::sync::Mutex<()>>,
    /// Held by the look at all that is stored that is under way.
    pub(crate) listing: Arc<tokio::sync::Mutex<()>>,
}

impl Invalidator {
    /// The door to `cache`, which nothing has come by yet.
    pub(crate) fn new(
        cache: &Arc<Cache>,
        seed: HashSeed,
        in_force: &Arc<ConfigurationHolder>,
        trust: &Arc<Trust>,
        counters: Arc<Counters>,
    ) -> Arc<Self> {
        Arc::new(Self {
            cache: Arc::clone(cache),
            seed,
            in_force: Arc::clone(in_force),
            trust: Arc::clone(trust),
            counters,
            node: HashSeed::random().hash(b"node"),
            sequence: AtomicU64::new(0),
            applied: Mutex::default(),
            journal: OnceLock::new(),
            others: OnceLock::new(),
            sweeping: Arc::default(),
            listing: Arc::default(),
        })
    }
}

/// The outcome of an invalidation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Stored responses that it selected.
    pub objects: u64,
    /// The same as Varnish's xkey counts ([`cache::Ban::finds`]).
    pub finds: u64,
    /// Not everything has been looked at yet. What is still there is not used any more.
    pub pending: bool,
    /// It is being recorded: who must know that it will outlive the process waits for that.
    pub recorded: bool,
}

/// The things that an answer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidationWait {
    /// Milliseconds until everything stored has been looked at.
    pub count_ms: u64,
    /// The word of other nodes; the one that the settings say if nothing is said.
    pub level: Option<Level>,
}

impl From<u64> for InvalidationWait {
    fn from(count_ms: u64) -> Self {
        Self { count_ms, level: None }
    }
}

/// Ways in which a thread that must not wait invalidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InvalidationMode {
    /// Described responses are looked at as they are found, or by a sweep beside the cores.
    Beside,
    /// They are counted: of a large store as many as can be looked at without holding others up.
    Counted,
    /// As `Beside`, and done when the journal refuses, too: an origin has changed already, and a
    /// cache must follow (RFC 9111 4.4).
    Regardless,
}
