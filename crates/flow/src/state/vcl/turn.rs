//! One client's request on its way through a program: the state that is kept between its steps.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use base::KeyBuf;
use bytes::Bytes;
use cache::Object;
use message::Request;
use smallvec::SmallVec;
use vcl::ctx::{ReqState, Session, Task};
use vcl::program::Instance;
use vcl::sub::Said;
use vcl::told::{Line, RAN, Ran, Switched, Told, number};
use vcl::workspace::Workspace;

use super::line::Line as ClientLine;
use crate::state::assemble::Within;

/// A request on its way.
pub(crate) struct Turn {
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
    pub(crate) said: Said,
    /// A stored object was found (`X-Varnish` has two numbers then).
    pub(crate) is_hit: bool,
    /// The connection ends after the answer.
    pub(crate) close: bool,
    /// The request's body, where it has been kept.
    pub(crate) body: Option<Bytes>,
    /// The page that the answer becomes a part of.
    pub(crate) within: Option<Rc<Within>>,
    /// The number of times that the request has waited for others.
    pub(crate) waits: u32,
    /// The disk has been read for it, since `vcl_recv` ran last.
    pub(crate) has_read_disk: bool,
    /// The response that the disk has lent, until it is looked at.
    pub(crate) lent: Option<Arc<Object>>,
    /// Lines that the program has logged; `ran` has the subroutines and the verbs that they
    /// returned.
    pub(crate) lines: RefCell<Vec<Line>>,
    pub(crate) ran: SmallVec<[Ran; RAN]>,
    /// The number of subroutines that had run when a label led to this program.
    pub(crate) switched: Option<u16>,
    /// Another node wants the stored response itself.
    pub(crate) for_peer: bool,
}

impl Turn {
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
            said: Said { status: 0, reason: None },
            is_hit: false,
            close: false,
            body: None,
            within: None,
            waits: 0,
            has_read_disk: false,
            lent: None,
            lines: RefCell::default(),
            ran: SmallVec::new(),
            switched: None,
            for_peer: false,
        }
    }

    /// Takes the notes on the program's actions, for the log.
    pub(crate) fn told(&mut self) -> Box<Told> {
        let lines = self.lines.get_mut();
        let switched = self
            .switched
            .map(|after| Box::new(Switched { instance: Arc::clone(&self.instance), after }));
        Box::new(Told {
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
