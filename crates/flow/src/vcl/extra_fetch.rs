//! Fetch beside a declared policy: `vcl_backend_fetch` and `vcl_backend_response` of the VCL beside
//! a site's settings, on the request and the response that the policy's judge has in hand. The
//! judge decides; a subroutine only changes what it sees.

use std::cell::RefCell;
use std::sync::Arc;

use base::KeyBuf;
use message::{HeaderId, Request, Response, target};
use vcl::ctx::{Bereq, BereqState, Beresp, BerespState, Ctx, Session, Tag, Task};
use vcl::program::Instance;
use vcl::rules::heads;
use vcl::sub::{Action, Sub};
use vcl::trace::{LabelSwitch, LogLine, ProgramTrace, SubroutineRun, number};
use vcl::workspace::Workspace;

use super::call::seconds;
pub(crate) use super::fetch::Report;
use super::world::{ProgramWorld, RunReason};
use crate::fetch::Fetch;
use crate::state::request_context::RequestContext;

/// The state of the subroutines during a fetch.
pub(crate) struct ExtraFetch {
    instance: Arc<Instance>,
    session: Session,
    task: Task,
    state: BereqState,
    lines: RefCell<Vec<LogLine>>,
    ran: Vec<SubroutineRun>,
    /// The last subroutine has failed.
    failed: bool,
    /// The fields that `vcl_backend_fetch` has changed, in lower case.
    changed: Vec<Vec<u8>>,
}

/// The change of a request by `vcl_backend_fetch`, as far as it concerns the judge.
pub(crate) struct RequestChange {
    /// It has another Cookie than before.
    pub(crate) sets_cookie: bool,
}

impl ExtraFetch {
    /// The state for a fetch of `ctx`; `None` if its site has no such subroutines.
    pub(crate) fn of(ctx: &RequestContext<'_>) -> Option<Box<Self>> {
        let extra = ctx
            .extra
            .filter(|extra| extra.has(Sub::BackendFetch) || extra.has(Sub::BackendResponse))?;
        let turn = extra.turn.borrow();
        let limits = &ctx.live.limits;
        let state = BereqState {
            time: seconds(ctx.now),
            xid: turn.state.xid,
            trace: turn.state.trace,
            ..BereqState::default()
        };
        Some(Box::new(Self {
            instance: Arc::clone(&turn.instance),
            session: turn.session.clone(),
            task: Task::new(limits.vcl_steps, Workspace::of(limits.vcl_workspace_backend)),
            state,
            lines: RefCell::default(),
            ran: Vec::new(),
            failed: false,
            changed: Vec::new(),
        }))
    }

    /// Notes that the fetch goes past the store.
    pub(crate) fn pass(&mut self) {
        self.state.uncacheable = true;
    }

    /// Runs `vcl_backend_fetch` on the request of `fetch`, after `tries` tries. Returns its change;
    /// `None` if the request must not be sent, for a reason that is logged.
    pub(crate) fn ask(&mut self, fetch: &mut Fetch, tries: u64) -> Option<RequestChange> {
        if !self.has(Sub::BackendFetch) {
            return Some(RequestChange { sets_cookie: false });
        }
        self.state.retries = u32::try_from(tries).unwrap_or(u32::MAX);
        self.state.is_bgfetch = fetch.background.is_some();
        let mut request = std::mem::take(&mut fetch.request);
        heads::show_host(&mut request);
        let asked = request.clone();
        let action = self.run(fetch, Sub::BackendFetch, &mut request, None);
        let is_sound = action == Action::Fetch && self.settle(&asked, &mut request);
        self.changed = changed_names(&asked, &request);
        let sets_cookie = request.headers.contains(HeaderId::Cookie) && self.has_changed(b"cookie");
        request.headers.remove(HeaderId::Host);
        fetch.request = request;
        is_sound.then_some(RequestChange { sets_cookie })
    }

    /// Brings a request that the subroutine has changed into the form in which it is sent. Returns
    /// false if it has none.
    fn settle(&self, asked: &Request, request: &mut Request) -> bool {
        if request.headers.value(HeaderId::Host) != asked.headers.value(HeaderId::Host) {
            heads::follow_host(request);
            if request.host.is_empty() {
                self.note_error("not sent: bereq.http.Host is no host");
                return false;
            }
        }
        if request.target != asked.target {
            heads::escape_target(&mut request.target);
            if target::check(request).is_err() {
                self.note_error("not sent: bereq.url is no path");
                return false;
            }
        }
        true
    }

    /// Runs `vcl_backend_response` on a response that the policy has judged. Returns false if it
    /// fails: the response must not be used then.
    pub(crate) fn respond(
        &mut self,
        fetch: &Fetch,
        response: &mut Response,
        state: &mut BerespState,
    ) -> bool {
        let mut request = fetch.request.clone();
        heads::show_host(&mut request);
        let beresp = Beresp { head: response, state };
        self.run(fetch, Sub::BackendResponse, &mut request, Some(beresp)) == Action::Deliver
    }

    /// Returns true if `vcl_backend_fetch` has changed the field `name`, in lower case: then the
    /// client's request has another value than the origin's.
    pub(crate) fn has_changed(&self, name: &[u8]) -> bool {
        self.changed.iter().any(|own| own == name)
    }

    /// Returns true if the last subroutine has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }

    /// Returns true if `sub` has statements.
    pub(crate) fn has(&self, sub: Sub) -> bool {
        self.instance.program().uses().own.has(sub)
    }

    /// Logs a wish of the subroutines that is not met.
    pub(crate) fn note(&self, text: &str) {
        self.lines.borrow_mut().push((Tag::Log, text.as_bytes().into()));
    }

    fn note_error(&self, text: &str) {
        self.lines.borrow_mut().push((Tag::Error, text.as_bytes().into()));
    }

    fn run(
        &mut self,
        fetch: &Fetch,
        sub: Sub,
        head: &mut Request,
        beresp: Option<Beresp<'_>>,
    ) -> Action {
        let now = fetch.now();
        let (core, live) = (&fetch.core, &fetch.live);
        let counters = RunReason::Core(core.counts(), &core.counters);
        let world = ProgramWorld::new(&core.shared, live, counters, now, None, &self.lines);
        let key = KeyBuf::new();
        let action = self.instance.run(&mut Ctx {
            sub,
            instance: &self.instance,
            environment: &world,
            now: seconds(now),
            session: &mut self.session,
            task: &mut self.task,
            req: None,
            req_top: None,
            bereq: Some(Bereq { head, state: &mut self.state, original: None, key: key.bytes() }),
            beresp,
            obj: None,
            resp: None,
            key: None,
        });
        let lines = self.lines.get_mut().len();
        self.ran.push(SubroutineRun::new(sub, action.verb(), self.task.at, lines));
        self.failed = matches!(action, Action::Fail(_));
        action
    }

    /// The report to the request that caused the fetch.
    pub(crate) fn report(&mut self) -> Report {
        let (ran, lines) = (std::mem::take(&mut self.ran), self.lines.take());
        Report { ran, lines, limit: self.task.limit }
    }

    /// The trace for the record of a background fetch.
    pub(crate) fn trace(&self, report: Report) -> Box<ProgramTrace> {
        let Report { ran, lines, limit } = report;
        let instance = Arc::clone(&self.instance);
        Box::new(ProgramTrace {
            xid: number(self.state.xid),
            session: number(self.session.xid),
            ran: ran.into(),
            lines: (!lines.is_empty()).then(|| Box::new(lines)),
            switched: Some(Box::new(LabelSwitch { instance, after: 0 })),
            limit,
            req: None,
        })
    }
}

/// The names of the fields whose values differ, in lower case.
fn changed_names(asked: &Request, request: &Request) -> Vec<Vec<u8>> {
    let values = |of: &Request, name: &[u8]| -> Vec<Vec<u8>> {
        let own = of.headers.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
        own.map(|field| field.value.to_vec()).collect()
    };
    let all = asked.headers.iter().chain(request.headers.iter());
    let changed = all.filter(|field| values(asked, field.name) != values(request, field.name));
    changed.map(|field| field.name.to_ascii_lowercase()).collect()
}
