//! Reasons for which a request of a program takes no further step.

use std::sync::Arc;

use cache::{Object, Ticket};

use crate::state::assemble::Draft;
use crate::state::duty::FetchPause;
use crate::state::reply::Reply;
use crate::state::tier::Lead;

/// A miss, with the duty to fetch.
pub(crate) struct FetchMiss<L = Lead> {
    pub(crate) lead: L,
    /// The stored object that it replaces.
    pub(crate) stale: Option<Arc<Object>>,
}

/// Why no further step is taken.
#[expect(clippy::large_enum_variant, reason = "a hit's reply is moved, never allocated")]
pub(crate) enum Halt<L = Lead, T = Ticket> {
    /// It is answered.
    Reply(Reply),
    /// It is answered by a page that is to be put together first.
    Page(Box<dyn Draft>),
    /// It waits for its part in the fetch of its key, beside what is stored.
    Pause(FetchPause<L, T>, Option<Arc<Object>>),
    /// It fetches for the store.
    Fetch(FetchMiss<L>),
    /// It fetches for itself.
    Pass,
    /// It is handed to the backend as it is.
    Pipe,
}
