//! A request of a program that must wait.

use crate::state::vcl::ProgramRequest;
use crate::state::vcl::halt::Halt;

/// A request that has halted, or not begun.
pub(crate) struct HaltedRequest {
    pub(crate) turn: Box<ProgramRequest>,
    pub(crate) halt: Option<Halt>,
    /// Invalidations of its core that had been recorded when it began.
    pub(crate) recorded: u64,
}

impl HaltedRequest {
    /// Returns true if the request may become a tunnel.
    pub(crate) fn is_upgrade(&self) -> bool {
        // One that has not begun may still come to it.
        matches!(self.halt, None | Some(Halt::Pipe))
            && self.turn.req.upgrade != message::Upgrade::None
    }

    /// Returns true if nothing that is stored, or will be for others, answers.
    pub(crate) fn is_past_the_store(&self) -> bool {
        matches!(self.halt, Some(Halt::Pass | Halt::Pipe))
    }

    /// Returns true if the program has a client that waits for a 100 get it only when its body is
    /// read.
    pub(crate) fn continues_late(&self) -> bool {
        // A program that has not begun reads the body before it does.
        self.halt.is_some() && self.turn.state.late_continue
    }
}
