//! Halted request: a program's request that must wait.

use crate::state::vcl::ProgramRequest;
use crate::state::vcl::halt::Halt;

/// A request that has halted, or has not started.
pub(crate) struct HaltedRequest {
    pub(crate) turn: Box<ProgramRequest>,
    pub(crate) halt: Option<Halt>,
    /// Recorded invalidations of its core when it started.
    pub(crate) recorded: u64,
}

impl HaltedRequest {
    /// Returns true if the request may become a tunnel.
    pub(crate) fn is_upgrade(&self) -> bool {
        // A request that has not started may still be piped.
        matches!(self.halt, None | Some(Halt::Pipe))
            && self.turn.req.upgrade != message::Upgrade::None
    }

    /// Returns true if no shared response, stored or to be stored, answers the request.
    pub(crate) fn is_past_the_store(&self) -> bool {
        matches!(self.halt, Some(Halt::Pass | Halt::Pipe))
    }

    /// Returns true if the request has a part in the one fetch for its key.
    pub(crate) fn is_fetch(&self) -> bool {
        matches!(self.halt, Some(Halt::Fetch(_) | Halt::Pause(..)))
    }

    /// Returns true if the program sends a 100 only when the body is read.
    pub(crate) fn continues_late(&self) -> bool {
        // A program that has not started gets the body before it runs.
        self.halt.is_some() && self.turn.state.late_continue
    }
}
