//! The door: the one way by which invalidations reach the store.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use base::{Counters, HashSeed};
use parking_lot::Mutex;
use purge::{Applied, Journal, Level, Others};

/// State of the door.
#[derive(Default)]
pub(crate) struct Door {
    pub(crate) node: Node,
    pub(crate) sequence: AtomicU64,
    pub(crate) applied: Mutex<Applied>,
    pub(crate) journal: OnceLock<Arc<dyn Journal>>,
    pub(crate) others: OnceLock<Arc<dyn Others>>,
    /// Counters of what no core has counted.
    pub(crate) counters: OnceLock<Arc<Counters>>,
}

/// This process among those whose invalidations may meet in a journal.
pub(crate) struct Node(pub(crate) u64);

impl Default for Node {
    fn default() -> Self {
        Self(HashSeed::random().hash(b"node"))
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
    /// It is being recorded: whoever must know that it will outlive the process waits
    /// (`Shared::wait_for_records`).
    pub recorded: bool,
}

/// The things that an answer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Milliseconds until everything stored has been looked at.
    pub count_ms: u64,
    /// The word of other nodes; the one that the settings say if nothing is said.
    pub level: Option<Level>,
}

impl From<u64> for Patience {
    fn from(count_ms: u64) -> Self {
        Self { count_ms, level: None }
    }
}

/// Ways in which a thread that must not wait invalidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Haste {
    /// Described responses are looked at as they are found, or by a sweep beside the cores.
    Beside,
    /// They are counted: of a large store as many as can be looked at without holding others up.
    Counted,
    /// As `Beside`, and done when the journal refuses, too: an origin has changed already, and a
    /// cache must follow (RFC 9111 4.4).
    Regardless,
}
