//! One client's request on its way through a program: the state that is kept between its steps.

use std::cell::RefCell;
use std::sync::Arc;

use base::KeyBuf;
use bytes::Bytes;
use cache::Object;
use message::Request;
use smallvec::SmallVec;
use vcl::ctx::{ReqState, Session, Task};
use vcl::program::Instance;
use vcl::sub::SyntheticStatus;
use vcl::trace::{LabelSwitch, LogLine, ProgramTrace, RAN, SubroutineRun, number};
use vcl::workspace::Workspace;

use super::connection::VclConnection as ClientLine;
use crate::state::downstream::Downstream;
use crate::state::reply::ForwardReason;

/// A request on its way.
pub(crate) struct ProgramRequest {
    pub(crate) instance: Arc<Instance>,
    pub(crate) session: Session,
    /// The client's address in words.
    pub(crate) address: Box<str>,
    pub(crate) task: Task,
    /// `req`: the client's request as the program changes it.
    pub(crate) req: Request,
    pub(crate) state: ReqState,
    pub(crate) key: KeyBuf,
    /// The status and the reason that `vcl_synth` is to answer with.
    pub(crate) said: SyntheticStatus,
    /// The find of the lookup (`X-Varnish` has two numbers after a hit).
    pub(crate) found: LookupResult,
    /// The connection ends after the answer.
    pub(crate) close: bool,
    /// The request's body, where it has been kept.
    pub(crate) body: Option<Bytes>,
    pub(crate) downstream: Downstream,
    /// The number of times that the request has waited for others.
    pub(crate) waits: u32,
    /// The disk has been read for it, since `vcl_recv` ran last.
    pub(crate) has_read_disk: bool,
    /// The response that the disk has lent, until it is looked at.
    pub(crate) lent: Option<Arc<Object>>,
    /// Lines that the program has logged; `ran` has the subroutines and the verbs that they
    /// returned.
    pub(crate) lines: RefCell<Vec<LogLine>>,
    pub(crate) ran: SmallVec<[SubroutineRun; RAN]>,
    /// The number of subroutines that had run when a label led to this program.
    pub(crate) switched: Option<u16>,
}

/// The find of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LookupResult {
    Nothing,
    /// A response that is too old.
    Stale,
    /// A response that answers.
    Hit,
}

impl ProgramRequest {
    /// The memory of a request that has not begun.
    pub(crate) fn new(instance: &Arc<Instance>, line: &ClientLine) -> Self {
        Self {
            instance: Arc::clone(instance),
            session: line.session(0),
            address: Box::default(),
            task: Task::new(0, Workspace::of(0)),
            req: Request::new(),
            state: ReqState::default(),
            key: KeyBuf::new(),
            said: SyntheticStatus { status: 0, reason: None },
            found: LookupResult::Nothing,
            close: false,
            body: None,
            downstream: Downstream::Client,
            waits: 0,
            has_read_disk: false,
            lent: None,
            lines: RefCell::default(),
            ran: SmallVec::new(),
            switched: None,
        }
    }

    pub(crate) fn is_hit(&self) -> bool {
        self.found == LookupResult::Hit
    }

    /// The reason for which a request that misses goes to its backend.
    pub(crate) fn missed(&self) -> ForwardReason {
        match self.found {
            _ if self.state.is_hitmiss => ForwardReason::HitForMiss,
            LookupResult::Stale => ForwardReason::Stale,
            LookupResult::Nothing | LookupResult::Hit => ForwardReason::UriMiss,
        }
    }

    /// Takes the notes on the program's actions, for the log.
    pub(crate) fn told(&mut self) -> Box<ProgramTrace> {
        let lines = self.lines.get_mut();
        let switched = self
            .switched
            .map(|after| Box::new(LabelSwitch { instance: Arc::clone(&self.instance), after }));
        Box::new(ProgramTrace {
            xid: number(self.state.xid),
            session: number(self.session.xid),
            ran: std::mem::take(&mut self.ran),
            lines: (!lines.is_empty()).then(|| Box::new(std::mem::take(lines))),
            switched,
            limit: self.task.limit,
            req: None,
        })
    }
}
