//! Invalidation: one kind of value, and one door by which it reaches the store.
//!
//! Whoever invalidates (a purge request, an unsafe method, a program, an operator, HTCP) says so
//! with an [`Invalidation`], which is data: it can be written to a journal, sent to another node
//! and numbered. The door ([`Door::invalidate`]) has the journal, if
//! there is one, record it; only then does it take effect. A batch takes effect as a whole or not
//! at all, and an invalidation that was applied already does nothing.
//!
//! Nothing else calls the cache's invalidating functions.

mod commit;
mod plan;
mod stored_response;
mod sweep;

pub use purge::{
    AllPeerCaches, Cause, Id, Invalidation, InvalidationDecodeError, InvalidationError,
    InvalidationSource, InvalidationTarget, Journal, JournalWrite, Level, NewTimes, PeerCaches,
    PreparedPropagation, Propagation, PropagationBatch, ResponseSelector, Sites, Url, htcp,
    neighbour,
};

pub use crate::state::invalidate::{InvalidationWait, Invalidator, Outcome};
pub(crate) use plan::selection_tests;
pub use stored_response::PurgeableSites;
pub(crate) use stored_response::{BanCriteria, StoredUrl};

#[cfg(test)]
#[path = "invalidate/tests.rs"]
mod tests;
