//! The journal interface, and the errors of an invalidation. An invalidation that a journal rejects
//! must not take effect.

use std::fmt;

use crate::invalidation::Invalidation;
use crate::record::InvalidationDecodeError;

/// A journal of invalidations, written before they take effect: a file for the next start, or a log
/// for other nodes.
pub trait Journal: Send + Sync {
    /// Its name, for error messages.
    fn name(&self) -> &str;

    /// Begins to record all of `batch`, without waiting. The calls come one at a time and in the
    /// order in which invalidations take effect; no other takes effect meanwhile.
    ///
    /// # Errors
    /// A sentence with the reason why the batch cannot be recorded. It does not take effect then.
    fn record(&self, batch: &[&Invalidation]) -> Result<Box<dyn JournalWrite>, String>;

    /// Waits until everything begun will outlive this process.
    ///
    /// # Errors
    /// A sentence with the reason why it may not.
    fn wait(&self) -> Result<(), String>;
}

/// A batch that is being recorded.
pub trait JournalWrite: Send {
    /// The least number for the batch's first ban, if the journal numbers bans.
    fn least_ban(&self) -> Option<u32> {
        None
    }

    /// Reports that the batch is in force, with the number of its newest ban.
    fn took_effect(&mut self, _newest_ban: Option<u32>) {}

    /// Waits until the record will outlive this process. A batch that is dropped before is recorded
    /// nevertheless.
    ///
    /// # Errors
    /// A sentence with the reason why it may not.
    fn wait(self: Box<Self>) -> Result<(), String>;
}

/// The reason why an invalidation, and all others of its batch, failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidationError {
    /// The journal did not record it.
    Refused {
        /// The journal's name.
        journal: String,
        /// Its reason.
        why: String,
    },
    /// It is in force, but the end of the process may undo it: the journal has not recorded it.
    NotRecorded {
        /// The journal's name.
        journal: String,
        /// Its reason.
        why: String,
    },
    /// It is in force here, and others have not confirmed it in time.
    NotEverywhere(String),
    /// Its sites do not exist here.
    NoSite(String),
    /// It cannot be decoded.
    Unreadable(InvalidationDecodeError),
}

impl fmt::Display for InvalidationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { journal, why } => {
                write!(f, "Nothing was invalidated: the journal `{journal}` refuses: {why}")
            }
            Self::NotRecorded { journal, why } => write!(
                f,
                "It is invalidated now, but may come back after a restart: the journal \
                 `{journal}` has not recorded it: {why}"
            ),
            Self::NotEverywhere(why) => {
                write!(f, "It is invalidated here, but not confirmed by all nodes: {why}")
            }
            Self::NoSite(name) => {
                write!(f, "Nothing was invalidated: this node has no site `{name}`")
            }
            Self::Unreadable(error) => write!(f, "Nothing was invalidated: {error}"),
        }
    }
}

impl std::error::Error for InvalidationError {}

impl From<InvalidationDecodeError> for InvalidationError {
    fn from(error: InvalidationDecodeError) -> Self {
        Self::Unreadable(error)
    }
}
