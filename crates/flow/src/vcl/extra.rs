//! Extra: the subroutines of a VCL beside a site's settings, on a declared request's way.
//! `vcl_recv` runs before the policy receives the request, `vcl_hash` before its key is made, and
//! `vcl_deliver` after the policy has shaped the response. What they return is a wish that the
//! declared course follows; none of them takes a step itself.
//!
//! The rules of a path hold for the URL as the client sent it, and as `vcl_recv` has left it.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use base::KeyBuf;
use cache::Object;
use message::{HeaderId, Request, Response};
use policy::decision_steps::shown;
use policy::{ConnectionPeer, DecisionStep, ReceiveVerdict, Routes, StoreUse};
use vcl::ctx::{BereqState, Obj, ReqState, RespState, Task};
use vcl::program::Instance;
use vcl::rules::heads;
use vcl::sub::{Action, Sub};
use vcl::workspace::Workspace;

use super::acting_core::ProgramServer;
use super::call::{ActingCore, ClientVariables, StepContext, StepHost, seconds};
use super::delivery;
use super::fetch::Report;
use super::foretell::rehearsal::Rehearsal;
use super::stored_object::obj_of;
use super::world::RunReason;
use crate::gate::{ArrivingRequest, may_include};
use crate::pages;
use crate::problem::Problem;
use crate::stage::Entrant;
use crate::state::core::CoreState;
use crate::state::reply::Reply;
use crate::state::request_context::{RequestConnection, RequestContext};
use crate::state::shared::SharedState;
use crate::state::site::Site;
use crate::state::site_context::SiteContext;
use crate::state::vcl::extra_reading::{adopt, set_client};
use crate::state::vcl::{ExtraRequest, ExtraRunner, ProgramRequest, VclConnection};

/// The outcome of `vcl_recv`.
#[expect(clippy::large_enum_variant, reason = "it lives for a moment")]
pub(crate) enum ExtraVerdict {
    /// The declared steps go on.
    On(StoreUse),
    /// This reply answers the request.
    End(Reply),
}

/// Runs `vcl_recv` of `instance` for a request of `who` that its core serves, unless the rules of
/// its path refuse the request as it came: `None` then, and the policy refuses it. A request of a
/// node that has run it already goes on as that has left it.
pub(crate) fn receive(
    core: &Rc<CoreState>,
    instance: &Arc<Instance>,
    entrant: &Entrant<'_>,
    request: &mut Request,
    who: ConnectionPeer,
) -> Option<(Rc<ExtraRequest>, ExtraVerdict)> {
    let Entrant { site_ctx: SiteContext { live, site }, client, now, downstream } = *entrant;
    if site.policy.keeps_out(request, who) {
        return None;
    }
    let made = client.vcl_connection.is_none().then(|| VclConnection::of(client.peer));
    let vcl_connection = client.vcl_connection.or(made.as_ref())?;
    let host = ActingCore { core, counts: core.counts() };
    let connection = RequestConnection::of(client.account);
    let env = StepContext { live, site, asked: &*request, connection, now, host };
    let mut turn = ProgramRequest::take_up(&env, instance, vcl_connection);
    turn.downstream = downstream.clone();
    turn.key.clear();
    set_client(&mut turn.session, who);
    if let Some(context) = downstream.page() {
        turn.state.esi_level = context.level;
    }
    if let Some(added) = downstream.key_of_node() {
        // The node that asks has run `vcl_recv` and `vcl_hash`.
        turn.key = KeyBuf::of_bytes(added, &core.shared.seed);
        turn.req.clone_from(request);
        let verdict = ExtraVerdict::On(StoreUse::ByRules);
        return Some((ExtraRequest::of_core(core, turn), verdict));
    }
    let host = ActingCore { core, counts: core.counts() };
    let verdict = run_recv(&mut turn, entrant, request, who, host).0;
    Some((ExtraRequest::of_core(core, turn), verdict))
}

/// Forecasts [`receive`].
pub(crate) fn foretell(
    shared: &Arc<SharedState>,
    instance: &Arc<Instance>,
    entrant: &Entrant<'_>,
    request: &mut Request,
    who: ConnectionPeer,
) -> Option<(Rc<ExtraRequest>, ExtraVerdict)> {
    let Entrant { site_ctx: SiteContext { live, site }, client, now, .. } = *entrant;
    if site.policy.keeps_out(request, who) {
        return None;
    }
    let vcl_connection = VclConnection::of(client.peer);
    let mut turn = Box::new(ProgramRequest::new(instance, &vcl_connection));
    turn.address = vcl_connection.address();
    let limits = &live.limits;
    turn.task = Task::new(limits.vcl_steps, Workspace::of(limits.vcl_workspace_client));
    turn.state = ReqState { time: seconds(now), ..ReqState::default() };
    set_client(&mut turn.session, who);
    let host = Rehearsal::new(shared, live, now);
    let (verdict, host) = run_recv(&mut turn, entrant, request, who, host);
    let mut steps = host.steps.take();
    let is_word =
        |line: &vcl::trace::LogLine| DecisionStep::new("error", shown(&line.1)).decisive();
    steps.extend(turn.lines.take().iter().map(is_word));
    Some((ExtraRequest::of_forecast(shared, turn, steps), verdict))
}

fn run_recv<S: StepHost>(
    turn: &mut ProgramRequest,
    entrant: &Entrant<'_>,
    request: &mut Request,
    who: ConnectionPeer,
    host: S,
) -> (ExtraVerdict, S) {
    let Entrant { site_ctx: SiteContext { live, site }, client, now, .. } = *entrant;
    let before = site.policy.routes(request, who);
    turn.req.clone_from(request);
    let connection = RequestConnection::of(client.account);
    let env = StepContext { live, site, asked: &*request, connection, now, host };
    let store = match turn.run(&env, Sub::Recv, ClientVariables::default()) {
        Action::Hash => StoreUse::ByRules,
        Action::Pass(_) => StoreUse::Passed,
        Action::Synth(said) => {
            turn.said = said;
            let reply = match delivery::synthesize(turn, &env) {
                Ok(reply) => reply,
                Err(_) => pages::problem(env.asked, Problem::Program),
            };
            return (ExtraVerdict::End(reply), env.host);
        }
        // The program has logged the reason; the compiler permits no other action.
        _ => {
            let reply = pages::problem(env.asked, Problem::Program);
            return (ExtraVerdict::End(reply), env.host);
        }
    };
    let StepContext { host, .. } = env;
    std::mem::swap(request, &mut turn.req);
    let adopted = adopt(live, site, request, &turn.req)
        .and_then(|()| check_gates(site, before, site.policy.routes(request, who)));
    let verdict = match adopted {
        Ok(()) => ExtraVerdict::On(store),
        Err(why) => {
            turn.note_error(why);
            ExtraVerdict::End(pages::problem(request, Problem::Program))
        }
    };
    (verdict, host)
}

/// Checks that a request with the routes `next` has `passed` their gates.
///
/// # Errors
/// It has not, in words for the log.
fn check_gates(site: &Site, passed: Routes, next: Routes) -> Result<(), &'static str> {
    let of = |routes| ArrivingRequest { site, routes };
    match may_include(of(passed), of(next)) {
        true => Ok(()),
        false => Err("vcl_recv leads to a route whose password was not asked for"),
    }
}

/// Runs `vcl_hash` for a request that is looked up. Returns false if it fails.
pub(crate) fn hash(
    core: &Rc<CoreState>,
    extra: &ExtraRequest,
    entrant: &Entrant<'_>,
    request: &Request,
    verdict: &ReceiveVerdict,
) -> bool {
    let host = ActingCore { core, counts: core.counts() };
    let is_made = entrant.downstream.key_of_node().is_some() || !is_hashed(extra, verdict);
    is_made || run_hash(extra, entrant, request, host).0
}

/// Forecasts [`hash`].
pub(crate) fn foretell_hash(
    shared: &Arc<SharedState>,
    extra: &ExtraRequest,
    entrant: &Entrant<'_>,
    request: &Request,
    verdict: &ReceiveVerdict,
) -> bool {
    if !is_hashed(extra, verdict) {
        return true;
    }
    let host = Rehearsal::new(shared, entrant.site_ctx.live, entrant.now);
    let (is_made, host) = run_hash(extra, entrant, request, host);
    extra.add_steps(host.steps.take());
    is_made
}

fn is_hashed(extra: &ExtraRequest, verdict: &ReceiveVerdict) -> bool {
    matches!(verdict, ReceiveVerdict::Lookup) && extra.has(Sub::Hash)
}

fn run_hash<S: StepHost>(
    extra: &ExtraRequest,
    entrant: &Entrant<'_>,
    request: &Request,
    host: S,
) -> (bool, S) {
    let Entrant { site_ctx: SiteContext { live, site }, client, now, .. } = *entrant;
    let mut turn = extra.turn.borrow_mut();
    turn.req.clone_from(request);
    let connection = RequestConnection::of(client.account);
    let env = StepContext { live, site, asked: request, connection, now, host };
    let action = turn.run(&env, Sub::Hash, ClientVariables::default());
    (action == Action::Lookup, env.host)
}

impl ExtraRequest {
    /// The way of a request that a core serves.
    fn of_core(core: &CoreState, turn: Box<ProgramRequest>) -> Rc<Self> {
        let (shared, counts) = (Arc::clone(&core.shared), Arc::clone(core.counts()));
        let runner = ExtraRunner::Core { shared, counts, counters: Arc::clone(&core.counters) };
        Rc::new(Self { turn: RefCell::new(turn), runner })
    }

    /// The way of a forecast that has these steps to report.
    fn of_forecast(
        shared: &Arc<SharedState>,
        turn: Box<ProgramRequest>,
        steps: Vec<DecisionStep>,
    ) -> Rc<Self> {
        let (shared, steps) = (Arc::clone(shared), RefCell::new(steps));
        Rc::new(Self { turn: RefCell::new(turn), runner: ExtraRunner::Forecast { shared, steps } })
    }

    /// Keeps the memory for a later request, unless a fetch still needs it.
    pub(crate) fn end(self: Rc<Self>, core: &CoreState) {
        if let Some(own) = Rc::into_inner(self) {
            let mut turn = own.turn.into_inner();
            // Its client may be another than the connection's.
            turn.session.xid = 0;
            turn.end(core);
        }
    }

    /// Forecasts `vcl_backend_fetch` on the `request` for the origin. Returns false if it would not
    /// be sent.
    pub(crate) fn foretell_fetch(
        &self,
        ctx: &RequestContext<'_>,
        is_pass: bool,
        request: &mut Request,
    ) -> bool {
        let ExtraRunner::Forecast { shared, steps } = &self.runner else { return true };
        let host = Rehearsal::new(shared, ctx.live, ctx.now);
        let env = self.env(ctx, host);
        let time = seconds(ctx.now);
        let mut state = BereqState { time, uncacheable: is_pass, ..BereqState::default() };
        heads::show_host(request);
        let mut turn = self.turn.borrow_mut();
        let action = env.host.run_fetch(&mut turn, &env, request, &mut state);
        request.headers.remove(HeaderId::Host);
        steps.borrow_mut().extend(env.host.steps.take());
        action == Action::Fetch
    }

    fn env<'a, S>(&self, ctx: &RequestContext<'a>, host: S) -> StepContext<'a, S> {
        let RequestContext { live, site, request, connection, now, .. } = *ctx;
        StepContext { live, site, asked: request, connection, now, host }
    }

    /// Takes over what the subroutines of its fetch have done.
    pub(crate) fn take_report(&self, report: Report) {
        self.turn.borrow_mut().take_report(report);
    }

    /// Runs `vcl_deliver` on the head for the client. `object` is the stored response that it is
    /// from, and `is_hit` says that it was not fetched for this request. Returns false if the
    /// subroutine fails: the head must not be sent then.
    pub(crate) fn deliver(
        &self,
        ctx: &RequestContext<'_>,
        object: Option<&Object>,
        is_hit: bool,
        response: &mut Response,
    ) -> bool {
        let mut turn = self.turn.borrow_mut();
        turn.req.clone_from(ctx.request);
        let status = response.status.code();
        let mut obj = match object {
            Some(object) => obj_of(ctx.live, ctx.now, object),
            None => Obj { status, uncacheable: true, ..Obj::default() },
        };
        obj.hits = match (&self.runner, is_hit) {
            (_, false) => 0,
            (ExtraRunner::Core { .. }, true) => obj.hits,
            // The lookup would have counted this one.
            (ExtraRunner::Forecast { .. }, true) => obj.hits.saturating_add(1),
        };
        let time = seconds(ctx.now);
        let mut state = RespState { status, time, ..RespState::default() };
        let variables = ClientVariables {
            obj: Some(&obj),
            resp: Some((response, &mut state)),
            ..ClientVariables::default()
        };
        let action = match &self.runner {
            ExtraRunner::Core { shared, counts, counters } => {
                let (live, reason) = (&**ctx.live, RunReason::Core(counts, counters));
                let server = ProgramServer { shared, live, reason, now: ctx.now };
                server.run(&mut turn, ctx.request, Sub::Deliver, variables)
            }
            ExtraRunner::Forecast { shared, steps } => {
                let host = Rehearsal::new(shared, ctx.live, ctx.now);
                let env = self.env(ctx, host);
                let action = turn.run(&env, Sub::Deliver, variables);
                steps.borrow_mut().extend(env.host.steps.take());
                action
            }
        };
        action == Action::Deliver
    }
}
