//! A duty to fetch, and the pauses of those who have none yet.

use cache::Ticket;

use crate::state::tier::Lead;

/// A duty to fetch.
pub(crate) struct Duty<L = Lead> {
    pub(crate) lead: L,
    /// Nobody waits for the fetch.
    pub(crate) is_alone: bool,
}

/// A reason to wait for a request that takes part in the fetches of its key.
pub(crate) enum FetchPause<L = Lead, T = Ticket> {
    /// The disk may have it. If that has nothing, the duty is to fetch.
    Disk(Duty<L>),
    /// Another request fetches it.
    Fetch(T),
}
