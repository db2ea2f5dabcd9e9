//! The other nodes of a cluster, as the door sees them: they are told of what is in force here.

use std::future::Future;
use std::pin::Pin;

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
pub type Told = Vec<Vec<Vec<u8>>>;

/// Something that others are told.
pub trait Telling: Send {
    /// Waits for the word that was asked for.
    ///
    /// # Errors
    /// A sentence that says what is missing. The invalidation is in force here.
    fn wait(self: Box<Self>) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;
}

/// The other nodes.
pub trait Others: Send + Sync {
    /// The batch as the others are told of it.
    ///
    /// # Errors
    /// A sentence that says why they cannot be: it does not take effect then.
    fn prepare(&self, batch: &[&Invalidation]) -> Result<Told, String>;

    /// Tells them of what has taken effect, and waits for nothing. The calls come one at a time and
    /// in the order of effects. Without a level it is the one that the settings say.
    fn tell(&self, told: Told, level: Option<Level>) -> Box<dyn Telling>;

    /// Everything that they were told so far, at the level that the settings say; `None` if that
    /// waits for nobody.
    fn begun(&self) -> Option<Box<dyn Telling>>;
}
