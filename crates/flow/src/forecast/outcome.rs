//! Outcome of a request, as forecast.

use message::Status;

use crate::state::reply::{CacheOutcome, ForwardReason};

/// The forecast outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForecastOutcome {
    /// An answer without an origin.
    Answer {
        /// The source of the answer.
        served: CacheOutcome,
        /// The status, if it is known in advance.
        status: Option<Status>,
    },
    /// A fetch from an origin.
    Fetch {
        /// The reason for which the store does not answer.
        reason: ForwardReason,
        /// A stale response is stored, which the origin may confirm or which may answer for it.
        stale: bool,
        /// The request would wait for another request's fetch.
        waits: bool,
        /// The request would read the disk first, which may answer.
        reads_disk: bool,
    },
    /// A connection that may become a tunnel.
    Tunnel,
    /// A purge.
    Purge,
}

impl ForecastOutcome {
    /// The token of the outcome in logs: the usual one where it depends on the origin.
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
