//! Turn of a request through a program: the state between its steps.

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

/// A request on its way through a program.
pub(crate) struct ProgramRequest {
    pub(crate) instance: Arc<Instance>,
    pub(crate) session: Session,
    /// The client's address as text.
    pub(crate) address: Box<str>,
    pub(crate) task: Task,
    /// `req`: the client's request with the program's changes.
    pub(crate) req: Request,
    pub(crate) state: ReqState,
    pub(crate) key: KeyBuf,
    /// The status and reason for `vcl_synth`.
    pub(crate) said: SyntheticStatus,
    /// The result of the lookup (`X-Varnish` has two numbers after a hit).
    pub(crate) found: LookupResult,
    /// The connection ends after the response.
    pub(crate) close: bool,
    /// The request's body, if it was kept.
    pub(crate) body: Option<Bytes>,
    pub(crate) downstream: Downstream,
    /// The number of waits for other requests.
    pub(crate) waits: u32,
    /// The disk was read since `vcl_recv` last ran.
    pub(crate) has_read_disk: bool,
    /// The response that the disk has lent, until it is judged.
    pub(crate) lent: Option<Arc<Object>>,
    /// Lines that the program logged; `ran` lists the subroutines and the actions that they
    /// returned.
    pub(crate) lines: RefCell<Vec<LogLine>>,
    pub(crate) ran: SmallVec<[SubroutineRun; RAN]>,
    /// The number of subroutines that had run when a label switched to this program.
    pub(crate) switched: Option<u16>,
}

/// The result of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LookupResult {
    Nothing,
    /// A stored response past grace.
    Stale,
    /// A stored response that answers.
    Hit,
}

impl ProgramRequest {
    /// Memory for a request that has not started.
    pub(crate) fn new(instance: &Arc<Instance>, vcl_connection: &ClientLine) -> Self {
        Self {
            instance: Arc::clone(instance),
            session: vcl_connection.session(0),
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

    /// The reason for which a request that misses is fetched.
    pub(crate) fn missed(&self) -> ForwardReason {
        match self.found {
            _ if self.state.is_hitmiss => ForwardReason::HitForMiss,
            LookupResult::Stale => ForwardReason::Stale,
            LookupResult::Nothing | LookupResult::Hit => ForwardReason::UriMiss,
        }
    }

    /// Takes the trace of the program's actions, for the log.
    pub(crate) fn program_trace(&mut self) -> Box<ProgramTrace> {
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
