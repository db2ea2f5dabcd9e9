//! The journal before the door, and the reasons for which an invalidation does not take effect.

use std::fmt;

use crate::invalidation::Invalidation;
use crate::record::InvalidationDecodeError;

/// A record of invalidations that is written before they take effect: a file for the next start, or
/// a log that other nodes read.
pub trait Journal: Send + Sync {
    /// Its name, for those whose invalidation it refuses.
    fn name(&self) -> &str;

    /// Begins to record all of `batch`, and waits for nothing. The calls come one at a time and in
    /// the order in which invalidations take effect; no other invalidation takes effect meanwhile.
    ///
    /// # Errors
    /// A sentence that says why the batch cannot be recorded: it does not take effect then.
    fn record(&self, batch: &[&Invalidation]) -> Result<Box<dyn JournalWrite>, String>;

    /// Waits until all that was begun will outlive this process.
    ///
    /// # Errors
    /// A sentence that says why it may not.
    fn wait(&self) -> Result<(), String>;
}

/// A batch on its way into a journal.
pub trait JournalWrite: Send {
    /// The least number for the batch's first ban, where the journal numbers bans.
    fn least_ban(&self) -> Option<u32> {
        None
    }

    /// Takes note that the batch is in force; its newest ban has this number.
    fn took_effect(&mut self, _newest_ban: Option<u32>) {}

    /// Waits until the record will outlive this process. What is dropped before that is recorded
    /// all the same.
    ///
    /// # Errors
    /// A sentence that says why it may not.
    fn wait(self: Box<Self>) -> Result<(), String>;
}

/// A reason for which an invalidation is not done, nor any other of its batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidationError {
    /// The journal did not record it.
    Refused {
        /// The journal's name.
        journal: String,
        /// Its reason.
        why: String,
    },
    /// It is in force, and may be undone when the process ends: the journal has not recorded it.
    NotRecorded {
        /// The journal's name.
        journal: String,
        /// Its reason.
        why: String,
    },
    /// It is in force here, and what was to be waited for has not come about in time.
    NotEverywhere(String),
    /// Its sites are unknown here.
    NoSite(String),
    /// It cannot be read.
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
                "It is invalidated now, and may come back with the next start: the journal \
                 `{journal}` has not recorded it: {why}"
            ),
            Self::NotEverywhere(why) => {
                write!(f, "It is invalidated here, and not known to be everywhere: {why}")
            }
            Self::NoSite(name) => {
                write!(f, "Nothing was invalidated: there is no site `{name}` here")
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
