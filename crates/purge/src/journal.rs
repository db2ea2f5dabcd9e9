//! The journal before the door, and the reasons for which an invalidation does not take effect.

use std::fmt;

use crate::invalidation::Invalidation;
use crate::record::Unreadable;

/// A record of invalidations that is written before they take effect: a file for the next start, or
/// a log that other nodes read.
pub trait Journal: Send + Sync {
    /// Its name, for those whose invalidation it refuses.
    fn name(&self) -> &str;

    /// Records all of `batch`, or nothing. The calls come one at a time and in the order in which
    /// invalidations take effect; no other invalidation takes effect meanwhile. A program's and an
    /// unsafe method's are recorded on their core's thread, so a journal that waits for a disk or
    /// a network holds that core up.
    ///
    /// The result is the least number for the batch's first ban, where the journal numbers bans.
    ///
    /// # Errors
    /// A sentence that says why nothing was recorded.
    fn record(&self, batch: &[&Invalidation]) -> Result<Option<u32>, String>;
}

/// A reason for which an invalidation did not take effect, nor any other of its batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotDone {
    /// The journal did not record it.
    Refused {
        /// The journal's name.
        journal: String,
        /// Its reason.
        why: String,
    },
    /// Its sites are unknown here.
    NoSite(String),
    /// It cannot be read.
    Unreadable(Unreadable),
}

impl fmt::Display for NotDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { journal, why } => {
                write!(f, "Nothing was invalidated: the journal `{journal}` refuses: {why}")
            }
            Self::NoSite(name) => {
                write!(f, "Nothing was invalidated: there is no site `{name}` here")
            }
            Self::Unreadable(error) => write!(f, "Nothing was invalidated: {error}"),
        }
    }
}

impl std::error::Error for NotDone {}

impl From<Unreadable> for NotDone {
    fn from(error: Unreadable) -> Self {
        Self::Unreadable(error)
    }
}
