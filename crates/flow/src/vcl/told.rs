//! What a request's program has done, for the log and for `explain`.

use std::sync::Arc;

use smallvec::SmallVec;
use vcl::program::Instance;
use vcl::source::Span;
use vcl::sub::{Sub, Verb};

use super::world::Line;

/// A subroutine that has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Which.
    pub sub: Sub,
    /// What it returned.
    pub verb: Verb,
    /// The `return`, or the statement that failed.
    pub at: Option<Span>,
}

/// Subroutines that most requests run at most: those of a miss.
pub(crate) const RAN: usize = 6;

/// What a program has done for one request.
#[derive(Debug)]
pub struct Told {
    /// The program.
    pub instance: Arc<Instance>,
    /// The transaction's number.
    pub xid: u64,
    /// The session's number.
    pub session: u64,
    /// The subroutines that have run, in their order.
    pub ran: SmallVec<[Ran; RAN]>,
    /// What was logged.
    pub lines: Vec<Line>,
}

impl Told {
    /// Where `ran` returned: its file, and the line in it.
    pub fn place(&self, ran: &Ran) -> Option<(&str, u32)> {
        let sources = self.instance.program().sources();
        let at = ran.at?;
        Some((&sources.file(at.file).name, sources.position(at).0))
    }
}
