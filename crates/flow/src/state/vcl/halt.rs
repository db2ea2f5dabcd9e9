//! Halt of a program's request: the reason for which no further step is taken.

use std::sync::Arc;

use cache::{Object, Ticket};

use crate::state::assemble::Draft;
use crate::state::duty::FetchPause;
use crate::state::reply::Reply;
use crate::state::tier::Lead;

/// A miss, with the duty to fetch.
pub(crate) struct FetchMiss<L = Lead> {
    pub(crate) lead: L,
    /// The stored object that the fetch replaces.
    pub(crate) stale: Option<Arc<Object>>,
}

/// The reason for which no further step is taken.
#[expect(clippy::large_enum_variant, reason = "a hit's reply is moved, never allocated")]
pub(crate) enum Halt<L = Lead, T = Ticket> {
    /// The reply is made.
    Reply(Reply),
    /// A page must be assembled first.
    Page(Box<dyn Draft>),
    /// The request waits for its part in the fetch of its key; beside it the stored object.
    Pause(FetchPause<L, T>, Option<Arc<Object>>),
    /// The request fetches for the store.
    Fetch(FetchMiss<L>),
    /// The request fetches for itself.
    Pass,
    /// The request is piped to the backend.
    Pipe,
}
