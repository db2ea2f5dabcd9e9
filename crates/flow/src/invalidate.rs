//! Invalidation: one kind of value, and one entry point to the store.
//!
//! Purge requests, unsafe methods, programs, operators and HTCP all build an [`Invalidation`]. It
//! is data: it can be numbered, written to a journal and sent to other nodes.
//! [`Invalidator::invalidate`] records it in the journal, if there is one, before it takes effect.
//! A batch takes effect as a whole or not at all, and an invalidation that was applied before does
//! nothing.
//!
//! Nothing else may call the cache's invalidating functions.

mod commit;
mod hot_pages;
mod plan;
mod stored_response;
mod sweep;

pub use purge::{
    AllPeerCaches, Cause, Id, Invalidation, InvalidationDecodeError, InvalidationError,
    InvalidationSource, InvalidationTarget, Journal, JournalWrite, Level, NewTimes, PeerCaches,
    PreparedPropagation, Propagation, PropagationBatch, ResponseSelector, Sites, Url, htcp,
    neighbour,
};

pub use crate::state::invalidate::{InvalidationWait, Invalidator, Outcome, RecentInvalidation};
pub(crate) use plan::selection_tests;
pub use stored_response::PurgeableSites;
pub(crate) use stored_response::{BanCriteria, StoredUrl};

#[cfg(test)]
#[path = "invalidate/tests.rs"]
mod tests;
