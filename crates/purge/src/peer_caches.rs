//! Peer caches: the interface by which invalidations in force here are propagated to the nodes of a
//! cluster and to neighbours. Propagation must begin only after the invalidation has taken effect
//! here.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use message::Request;
use serde::{Deserialize, Serialize};

use crate::invalidation::Invalidation;

/// The field in which a purge request sets its consistency level.
pub const WAIT_FIELD: &[u8] = b"larder-wait";

/// The consistency level: the confirmation that a purge's response waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Level {
    /// This node has applied it.
    Local,
    /// The stream has stored it durably.
    Quorum,
    /// Every live node has applied it.
    All,
}

impl Level {
    /// All levels, by number.
    pub const ALL: [Self; 3] = [Self::Local, Self::Quorum, Self::All];

    /// Its name in settings and requests.
    pub fn word(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Quorum => "quorum",
            Self::All => "all",
        }
    }

    /// The level with this name.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.word() == word)
    }

    /// The level of a purge request; `None` without the field.
    ///
    /// # Errors
    /// An unknown level.
    pub fn of_request(request: &Request) -> Result<Option<Self>, &'static str> {
        let Some(value) = request.headers.values_named(WAIT_FIELD).next() else { return Ok(None) };
        let level = std::str::from_utf8(value).ok().and_then(Self::named);
        level.map(Some).ok_or("Larder-Wait is `local`, `quorum` or `all`.")
    }
}

/// An encoded batch for each kind of peer.
pub type PropagationBatch = Vec<Vec<Vec<u8>>>;

/// A propagation under way.
pub trait Propagation: Send {
    /// Waits for the confirmation of the level.
    ///
    /// # Errors
    /// A sentence with what is missing. The invalidation is in force here.
    fn wait(self: Box<Self>) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;
}

/// A batch that is ready to be propagated.
pub trait PreparedPropagation {
    /// Begins the propagation after the batch has taken effect, without waiting. The calls come one
    /// at a time and in the order of effects. Without a level the configured one applies.
    fn tell(self: Box<Self>, level: Option<Level>) -> Box<dyn Propagation>;
}

/// Other caches.
pub trait PeerCaches: Send + Sync {
    /// Prepares the propagation of a batch; `None` if it does not concern the peers.
    ///
    /// # Errors
    /// A sentence with the reason why it cannot be propagated. It does not take effect then.
    fn prepare(
        &self,
        batch: &[&Invalidation],
    ) -> Result<Option<Box<dyn PreparedPropagation>>, String>;

    /// All propagations so far, at the configured level; `None` if that waits for no peer.
    fn outstanding(&self) -> Option<Box<dyn Propagation>>;

    /// Notes an effect that is not propagated from here.
    fn note_local_effect(&self) {}
}

/// Several kinds of peers: all get each propagation.
pub struct AllPeerCaches(pub Vec<Arc<dyn PeerCaches>>);

struct PreparedForAll(Vec<Box<dyn PreparedPropagation>>);

struct TellingAll(Vec<Box<dyn Propagation>>);

impl PeerCaches for AllPeerCaches {
    fn prepare(
        &self,
        batch: &[&Invalidation],
    ) -> Result<Option<Box<dyn PreparedPropagation>>, String> {
        let all = self.0.iter().filter_map(|others| others.prepare(batch).transpose());
        let all = all.collect::<Result<Vec<_>, _>>()?;
        Ok((!all.is_empty()).then(|| Box::new(PreparedForAll(all)) as Box<dyn PreparedPropagation>))
    }

    fn outstanding(&self) -> Option<Box<dyn Propagation>> {
        let all: Vec<_> = self.0.iter().filter_map(|others| others.outstanding()).collect();
        (!all.is_empty()).then(|| Box::new(TellingAll(all)) as Box<dyn Propagation>)
    }

    fn note_local_effect(&self) {
        self.0.iter().for_each(|others| others.note_local_effect());
    }
}

impl PreparedPropagation for PreparedForAll {
    fn tell(self: Box<Self>, level: Option<Level>) -> Box<dyn Propagation> {
        Box::new(TellingAll(self.0.into_iter().map(|one| one.tell(level)).collect()))
    }
}

impl Propagation for TellingAll {
    fn wait(self: Box<Self>) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> {
        Box::pin(async move {
            // All are under way at once, and each wait only takes a result.
            let mut missing = Vec::new();
            for telling in self.0 {
                missing.extend(telling.wait().await.err());
            }
            if missing.is_empty() { Ok(()) } else { Err(missing.join(" ")) }
        })
    }
}
