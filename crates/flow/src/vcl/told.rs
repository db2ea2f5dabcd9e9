//! What a request's program has done, for the log and for `explain`.

use vcl::sub::{Action, Sub};

use super::world::Line;

/// A subroutine that has run.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    /// Which.
    pub sub: Sub,
    /// What it returned.
    pub action: Action,
}

/// What a program has done for one request.
#[derive(Debug, Default)]
pub struct Told {
    /// The transaction's number.
    pub xid: u64,
    /// The session's number.
    pub session: u64,
    /// The subroutines that have run, in their order.
    pub ran: Vec<Ran>,
    /// What was logged.
    pub lines: Vec<Line>,
}
