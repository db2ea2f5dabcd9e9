//! Calls of a program's subroutines for a client's request, and the host of its steps: a core that
//! acts, or a rehearsal that only reports.
//!
//! `explain` takes the steps of requests, so its forecast cannot differ from them.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use base::{KeyBuf, Limit, Now};
use bytes::Bytes;
use cache::{BeginOptions, CacheLookup, Object, Reader};
use message::{Request, Response};
use observe::DictionaryUse;
use origin::Owner;
use policy::{ConnectionPeer, Notes};
use vcl::counts::{Count, Counts};
use vcl::ctx::{
    Bereq, Ctx, Obj, ProgramEnvironment, Req, ReqState, Resp, RespState, Session, Task,
};
use vcl::params::Param;
use vcl::program::Instance;
use vcl::sub::{Action, Sub, SyntheticStatus};
use vcl::trace::LogLine;
use vcl::workspace::Workspace;

use crate::dictionary::{DictionaryAnswer, DictionaryContext};
use crate::state::body::ReplyBody;
use crate::state::core::CoreState;
use crate::state::downstream::Downstream;
use crate::state::live_configuration::LiveRef;
use crate::state::reply::Reply;
use crate::state::request_context::{RequestConnection, sign};
use crate::state::shared::SharedState;
use crate::state::site::Site;
use crate::state::vcl::{LookupResult, ProgramRequest, VclConnection as ClientLine};
use crate::wait::FetchAssignment;

/// The host of a request's steps.
pub(crate) trait StepHost: Sized {
    /// The duty to fetch.
    type Lead;
    /// A ticket to wait for another request's fetch.
    type Ticket;

    fn shared(&self) -> &SharedState;

    fn count(&self, count: Count);

    fn limit(&self, limit: Limit);

    /// A new transaction number.
    fn xid(&self) -> u64;

    /// Runs a subroutine.
    fn run(
        turn: &mut ProgramRequest,
        env: &StepContext<'_, Self>,
        sub: Sub,
        variables: ClientVariables<'_>,
    ) -> Action;

    /// Notes that the request has its key.
    fn note_key(&self, _: &ProgramRequest) {}

    /// Looks up the request's key.
    fn find(turn: &ProgramRequest, env: &StepContext<'_, Self>) -> CacheLookup;

    /// Asks the store which request fetches.
    fn begin(
        turn: &ProgramRequest,
        env: &StepContext<'_, Self>,
        options: BeginOptions<'_>,
    ) -> FetchAssignment<Self::Lead, Self::Ticket>;

    /// Returns a duty: its waiters look up again.
    fn refuse(lead: Self::Lead);

    /// Takes the duty to refresh `object` in the background, unless another request has it.
    fn begin_refresh(
        turn: &ProgramRequest,
        env: &StepContext<'_, Self>,
        object: &Arc<Object>,
    ) -> Option<Self::Lead>;

    /// Refreshes `stale` in the background.
    fn refresh(
        turn: &ProgramRequest,
        env: &StepContext<'_, Self>,
        lead: Self::Lead,
        stale: &Arc<Object>,
    );

    /// Purges the responses under the request's key.
    ///
    /// # Errors
    /// The reason for which that fails, in words.
    fn purge(turn: &ProgramRequest, env: &StepContext<'_, Self>) -> Result<(), String>;

    /// The body of `object`; `reader` reads it if it was fetched for this request.
    fn body(object: &Arc<Object>, reader: Option<Reader>) -> ReplyBody;

    /// Decodes a gzip body, to `length` bytes if known.
    fn decode(env: &StepContext<'_, Self>, body: &mut ReplyBody, length: Option<u64>);

    /// Looks for the form of `object` with the client's dictionary; a missing one may be made. Also
    /// notes that the client gets `object`.
    fn seek(
        turn: &ProgramRequest,
        env: &StepContext<'_, Self>,
        object: &Arc<Object>,
    ) -> DictionaryAnswer;

    /// Notes the use of the client's dictionary.
    fn note_dictionary(env: &StepContext<'_, Self>, used: DictionaryUse);

    /// Returns true if a log reader requests header fields.
    fn is_followed(&self) -> bool {
        false
    }

    /// Notes that no subroutine could make a response.
    fn note_unanswered(&self) {}
}

/// A core that serves requests.
pub(crate) struct ActingCore<'a> {
    pub(crate) core: &'a Rc<CoreState>,
    pub(crate) counts: &'a Arc<Counts>,
}

/// The context of a request's steps between two waits.
pub(crate) struct StepContext<'a, S = ActingCore<'a>> {
    pub(crate) live: &'a LiveRef,
    pub(crate) site: &'a Arc<Site>,
    /// The client's original request.
    pub(crate) asked: &'a Request,
    pub(crate) connection: RequestConnection<'a>,
    pub(crate) now: Now,
    pub(crate) host: S,
}

impl<S: StepHost> StepContext<'_, S> {
    /// Seconds since 1970.
    pub(crate) fn time(&self) -> f64 {
        seconds(self.now)
    }

    pub(crate) fn xid(&self) -> u64 {
        self.host.xid()
    }

    /// The client's connection, unless it is a proxy's, which carries many clients' requests.
    pub(crate) fn owner(&self) -> Option<&Owner> {
        let peer = self.connection.ends?.client;
        let peer = ConnectionPeer::Host(peer.ip());
        self.connection.owner.filter(|_| self.site.policy.asker(self.asked, peer) == peer)
    }

    /// Adds the site's fields to the reply.
    pub(crate) fn sign(&self, reply: &mut Reply) {
        sign(reply, self.site, &Notes::default(), self.asked.scheme);
    }

    /// The request's context for dictionaries.
    pub(crate) fn dictionary_context<'t>(
        &'t self,
        turn: &'t ProgramRequest,
    ) -> DictionaryContext<'t> {
        let (request, target) = (self.asked, &turn.req.target);
        DictionaryContext { live: self.live, request, target, ctx: None, now: self.now }
    }

    pub(crate) fn count(&self, count: Count) {
        self.host.count(count);
    }
}

/// Seconds since 1970.
pub(crate) fn seconds(now: Now) -> f64 {
    now.unix_ms as f64 / 1000.0
}

/// Variables that a subroutine sees beside `req`.
#[derive(Default)]
pub(crate) struct ClientVariables<'a> {
    pub(crate) obj: Option<&'a Obj<'a>>,
    pub(crate) resp: Option<(&'a mut Response, &'a mut RespState)>,
    pub(crate) bereq: Option<Bereq<'a>>,
}

/// The state of a subroutine on the client's side.
pub(crate) struct SubroutineState<'a> {
    pub(crate) instance: &'a Arc<Instance>,
    pub(crate) session: &'a mut Session,
    pub(crate) task: &'a mut Task,
    pub(crate) req: &'a mut Request,
    pub(crate) state: &'a mut ReqState,
    pub(crate) key: &'a mut KeyBuf,
    /// The client's original request.
    pub(crate) asked: &'a Request,
    /// The request for the page around a fragment.
    pub(crate) top: Option<&'a Request>,
}

impl SubroutineState<'_> {
    /// Runs `sub` at `now`, in seconds since 1970.
    pub(crate) fn run(
        self,
        sub: Sub,
        world: &dyn ProgramEnvironment,
        now: f64,
        variables: ClientVariables<'_>,
    ) -> Action {
        let (key, hashing) = match sub {
            Sub::Hash => (None, Some(self.key)),
            _ => (Some(self.key.bytes()).filter(|key| !key.is_empty()), None),
        };
        self.instance.run(&mut Ctx {
            sub,
            instance: self.instance,
            environment: world,
            now,
            session: self.session,
            task: self.task,
            req: Some(Req { head: self.req, state: self.state, original: Some(self.asked), key }),
            req_top: self.top,
            bereq: variables.bereq,
            beresp: None,
            obj: variables.obj,
            resp: variables.resp.map(|(head, state)| Resp { head, state }),
            key: hashing,
        })
    }
}

impl ProgramRequest {
    /// A request of the session of `vcl_connection`, in spare memory.
    pub(crate) fn take_up(
        env: &StepContext<'_>,
        instance: &Arc<Instance>,
        vcl_connection: &ClientLine,
    ) -> Box<Self> {
        let xid = vcl_connection.xid(&env.host.core.shared.vcl);
        let mut turn = match env.host.core.vcl.spare_turn.take() {
            Some(spare) => spare,
            None => Box::new(Self::new(instance, vcl_connection)),
        };
        // The connection is often the same, and nearly always the program.
        if turn.session.xid != xid {
            turn.session = vcl_connection.session(xid);
            turn.address = vcl_connection.address();
        }
        turn.session.identity = None;
        if !Arc::ptr_eq(&turn.instance, instance) {
            turn.instance = Arc::clone(instance);
        }
        let limits = &env.live.limits;
        turn.task.renew(limits.vcl_steps, Workspace::of(limits.vcl_workspace_client));
        turn.state = ReqState {
            time: env.time(),
            xid: env.xid(),
            trace: env.live.vcl.params.is_traced(),
            ..ReqState::default()
        };
        (turn.found, turn.close, turn.body, turn.waits) = (LookupResult::Nothing, false, None, 0);
        turn.has_read_disk = false;
        turn.downstream = Downstream::Client;
        turn.said = SyntheticStatus { status: 0, reason: None };
        turn.ran.clear();
        turn.switched = None;
        turn
    }

    /// Keeps the memory for a later request.
    pub(crate) fn end(self: Box<Self>, core: &CoreState) {
        core.vcl.spare_turn.set(Some(self));
    }

    /// Restores `req` and resets VMOD state.
    pub(crate) fn roll_back<S: StepHost>(&mut self, env: &StepContext<'_, S>) {
        self.task.forget();
        self.req.clone_from(env.asked);
    }

    /// Lends the state of a subroutine, and beside it the kept body and the log.
    #[inline]
    pub(crate) fn lend<'a>(
        &'a mut self,
        asked: &'a Request,
    ) -> (SubroutineState<'a>, Option<&'a Bytes>, &'a RefCell<Vec<LogLine>>) {
        let loan = SubroutineState {
            instance: &self.instance,
            session: &mut self.session,
            task: &mut self.task,
            req: &mut self.req,
            state: &mut self.state,
            key: &mut self.key,
            asked,
            top: self.downstream.page().map(|context| &context.top.request),
        };
        (loan, self.body.as_ref(), &self.lines)
    }

    /// Runs `sub`.
    pub(crate) fn run<S: StepHost>(
        &mut self,
        env: &StepContext<'_, S>,
        sub: Sub,
        variables: ClientVariables<'_>,
    ) -> Action {
        S::run(self, env, sub, variables)
    }

    /// Begins one more restart; false if no more are permitted.
    pub(crate) fn restart<S: StepHost>(&mut self, env: &StepContext<'_, S>) -> bool {
        self.state.restarts += 1;
        if u64::from(self.state.restarts) > env.live.vcl.params.number(Param::MaxRestarts) {
            return false;
        }
        self.state.xid = env.xid();
        true
    }
}
