//! Duty to fetch, and the pauses of requests before they get it.

use cache::Ticket;

use crate::state::tier::Lead;

/// A duty to fetch.
pub(crate) struct Duty<L = Lead> {
    pub(crate) lead: L,
    /// No other request waits for the fetch.
    pub(crate) is_alone: bool,
}

/// The reason for which a request pauses before its part in a fetch.
pub(crate) enum FetchPause<L = Lead, T = Ticket> {
    /// The disk may have a response. Otherwise this duty applies.
    Disk(Duty<L>),
    /// Another request fetches.
    Fetch(T),
}
