//! The outcome of a request, as it is foreseen.

use message::Status;

use crate::state::reply::{CacheOutcome, ForwardReason};

/// The outcome of a request, as it is foreseen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForecastOutcome {
    /// An answer without an origin.
    Answer {
        /// Where from.
        served: CacheOutcome,
        /// Its status, where that is known before it is made.
        status: Option<Status>,
    },
    /// An origin would be asked.
    Fetch {
        /// Why the store does not answer.
        reason: ForwardReason,
        /// Something stale is stored, which the origin may confirm and which may stand in for it.
        stale: bool,
        /// Another request's fetch would be waited for.
        waits: bool,
        /// The disk would be read before, and may have the answer.
        reads_disk: bool,
    },
    /// The connection would perhaps become a tunnel.
    Tunnel,
    /// Something would be purged.
    Purge,
}

impl ForecastOutcome {
    /// The word for it in logs; of what depends on the origin's answer the usual one.
    pub fn word(self) -> &'static str {
        match self {
            Self::Answer { served, .. } => served.word(),
            Self::Fetch { waits: true, .. } => "COLLAPSED",
            Self::Fetch { reason: ForwardReason::HitForMiss, .. } => "HIT-FOR-MISS",
            Self::Fetch { reason, .. } => {
                CacheOutcome::Fetched { reason, stored: false, collapsed: false }.word()
            }
            Self::Tunnel => "PASS",
            Self::Purge => "PURGE",
        }
    }
}

/// An outcome, and the outcome in words.
pub(crate) type Ending = (ForecastOutcome, String);
