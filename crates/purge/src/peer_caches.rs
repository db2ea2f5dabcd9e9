//! Other caches, as the door sees them: the nodes of a cluster, and neighbours that are none. They
//! are told of what is in force here.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use message::Request;
use serde::{Deserialize, Serialize};

use crate::invalidation::Invalidation;

/// The field by which a purge request says what its answer waits for.
pub const WAIT_FIELD: &[u8] = b"larder-wait";

/// The word that whoever invalidates waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Level {
    /// This node has done it.
    Local,
    /// The stream has it durably.
    Quorum,
    /// Every live node has done it.
    All,
}

impl Level {
    /// All of them, by number.
    pub const ALL: [Self; 3] = [Self::Local, Self::Quorum, Self::All];

    /// Its name in settings and requests.
    pub fn word(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Quorum => "quorum",
            Self::All => "all",
        }
    }

    /// The level of this name.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.word() == word)
    }

    /// The level that a purge request wants; `None` if it says nothing.
    ///
    /// # Errors
    /// It wants something that there is not.
    pub fn of_request(request: &Request) -> Result<Option<Self>, &'static str> {
        let Some(value) = request.headers.values_named(WAIT_FIELD).next() else { return Ok(None) };
        let level = std::str::from_utf8(value).ok().and_then(Self::named);
        level.map(Some).ok_or("Larder-Wait is `local`, `quorum` or `all`.")
    }
}

/// A batch in the form in which others are told of it.
pub type PropagationBatch = Vec<Vec<Vec<u8>>>;

/// Something that others are told.
pub trait Propagation: Send {
    /// Waits for the word that was asked for.
    ///
    /// # Errors
    /// A sentence that says what is missing. The invalidation is in force here.
    fn wait(self: Box<Self>) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;
}

/// A batch that the others can be told of.
pub trait PreparedPropagation {
    /// Tells them, now that it has taken effect, and waits for nothing. The calls come one at a
    /// time and in the order of effects. Without a level it is the one that the settings say.
    fn tell(self: Box<Self>, level: Option<Level>) -> Box<dyn Propagation>;
}

/// Other caches.
pub trait PeerCaches: Send + Sync {
    /// The batch as the others are told of it; `None` if it is nothing to them.
    ///
    /// # Errors
    /// A sentence that says why they cannot be: it does not take effect then.
    fn prepare(
        &self,
        batch: &[&Invalidation],
    ) -> Result<Option<Box<dyn PreparedPropagation>>, String>;

    /// Everything that they were told so far, at the level that the settings say; `None` if that
    /// waits for nobody.
    fn outstanding(&self) -> Option<Box<dyn Propagation>>;

    /// Takes note that something takes effect which they are not told of from here.
    fn note_local_effect(&self) {}
}

/// Several kinds of others: all are told.
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
            // They are under way all at once: a wait only takes the word.
            let mut missing = Vec::new();
            for telling in self.0 {
                missing.extend(telling.wait().await.err());
            }
            if missing.is_empty() { Ok(()) } else { Err(missing.join(" ")) }
        })
    }
}
