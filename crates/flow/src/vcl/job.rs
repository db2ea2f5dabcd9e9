//! Job of a program: the fetch for a client's request, with its backend request and its judge's
//! first state.

use std::rc::Rc;
use std::sync::Arc;

use cache::Object;
use message::{Framing, Method, Request};
use origin::ClientEnds;
use vcl::counts::Count;
use vcl::ctx::{BereqState, Session, Task};
use vcl::params::Param;
use vcl::rules::heads::{self, Purpose, has_body};
use vcl::workspace::Workspace;

use super::call::{ActingCore, StepContext, StepHost};
use super::fetch::ProgramJudge;
use super::stored_object::may_confirm;
use crate::fetch::{self, Fetch, Job, Upload};
use crate::finish::BackgroundCause;
use crate::state::miss::Miss;
use crate::state::request_context::RequestConnection;
use crate::state::tier::Lead;
use crate::state::trace::Trace;
use crate::state::vcl::ProgramRequest;
use crate::state::vcl::halt::FetchMiss;
use crate::state::vcl::note;
use crate::stored_heads::stored_head;

/// Returns true if another node may have the response to `turn`. A program that bypasses the local
/// store bypasses the others too.
pub(super) fn may_ask_node(turn: &ProgramRequest) -> bool {
    let state = &turn.state;
    !(turn.downstream.is_node()
        || state.hash_always_miss
        || state.is_hitmiss
        || state.hash_ignore_busy)
}

/// The miss of `turn`; `stale` is stored under its key.
pub(super) fn miss<'a, S: StepHost>(
    turn: &'a ProgramRequest,
    env: &'a StepContext<'_, S>,
    stale: Option<&Arc<Object>>,
) -> Miss<'a> {
    let (asked, changed, key) = (env.asked, Some(&turn.req), turn.key.bytes());
    let is_new = stale.is_none();
    Miss { site: env.site, asked, changed, key, is_new, is_rewritten: false, extra: None }
}

/// Starts the background fetch of a stale object that is delivered.
pub(crate) fn refresh(
    turn: &ProgramRequest,
    env: &StepContext<'_>,
    lead: Lead,
    stale: &Arc<Object>,
) {
    let missing = FetchMiss { lead, stale: Some(Arc::clone(stale)) };
    let trace = Rc::new(Trace::default());
    let ActingCore { core, counts } = env.host;
    let (connection, host) = (RequestConnection::of(&core.background), ActingCore { core, counts });
    let env = &StepContext { connection, host, ..*env };
    let mut job = job(turn, env, Some(missing), &mut Upload::None, &trace);
    job.judge.state.is_bgfetch = true;
    let cause =
        BackgroundCause { rule: 0, route: 0, key: turn.key.hash(), transaction: turn.state.xid };
    fetch::start_behind(job, env.site, &turn.req, cause);
}

/// A backend request, and its state as programs see it.
pub(crate) struct BackendRequest {
    pub(crate) head: Request,
    pub(crate) state: BereqState,
}

/// The backend request of a turn: for the store, which has `stale`, or for the request alone.
pub(crate) fn bereq<S: StepHost>(
    turn: &ProgramRequest,
    env: &StepContext<'_, S>,
    purpose: Purpose,
    stale: Option<&Arc<Object>>,
) -> BackendRequest {
    let private = purpose == Purpose::Pass;
    let gzip = env.live.vcl.params.is_on(Param::HttpGzipSupport);
    let mut bereq = turn.req.clone();
    heads::bereq(&mut bereq, purpose, gzip);
    bereq.framing = env.asked.framing;
    if !private {
        bereq.method = Method::Get;
    }
    if let Some(stale) = stale.filter(|stale| may_confirm(stale, env.now.mono_ms)) {
        add_validators(&mut bereq, stale);
    }
    let state = BereqState {
        backend: turn.state.backend_hint.clone(),
        is_hitmiss: turn.state.is_hitmiss,
        is_hitpass: turn.state.is_hitpass,
        time: env.time(),
        uncacheable: private,
        xid: env.xid(),
        trace: turn.state.trace,
        ..BereqState::default()
    };
    BackendRequest { head: bereq, state }
}

/// The fetch for a request: for the store with this duty, or for the request alone.
pub(crate) fn job(
    turn: &ProgramRequest,
    env: &StepContext<'_>,
    missing: Option<FetchMiss>,
    upload: &mut Upload,
    trace: &Rc<Trace>,
) -> Box<Job<ProgramJudge>> {
    let purpose = if missing.is_none() { Purpose::Pass } else { Purpose::Fetch };
    let stale = missing.as_ref().and_then(|missing| missing.stale.as_ref());
    let mut bereq = bereq(turn, env, purpose, stale);
    bereq.state.is_bgfetch = turn.downstream.is_warmth();
    bereq.state.has_body = upload.is_some() && has_body(env.asked);
    env.count(Count::SFetch);
    if missing.is_none() {
        env.count(Count::SPass);
    }
    if let (Upload::Kept(body), Framing::Chunked) = (&*upload, env.asked.framing) {
        let length = body.len().to_string();
        bereq.head.headers.set(message::HeaderId::ContentLength, length.as_bytes());
    }
    assemble(turn, env, bereq, upload, missing, trace)
}

/// The fetch of this backend request: for the store with this duty, or for the request alone.
pub(crate) fn assemble(
    turn: &ProgramRequest,
    env: &StepContext<'_>,
    BackendRequest { head: bereq, state }: BackendRequest,
    upload: &mut Upload,
    missing: Option<FetchMiss>,
    trace: &Rc<Trace>,
) -> Box<Job<ProgramJudge>> {
    let upload = match upload {
        Upload::Kept(body) => Upload::Kept(body.clone()),
        Upload::None => Upload::None,
        Upload::Spent | Upload::Stream { .. } => std::mem::replace(upload, Upload::Spent),
    };
    let limits = &env.live.limits;
    let owner = if missing.is_none() { env.owner().cloned() } else { None };
    let (lead, stale) = missing.map(|missing| (missing.lead, missing.stale)).unzip();
    let judge = ProgramJudge {
        instance: Arc::clone(&turn.instance),
        counts: Arc::clone(env.host.counts),
        session: turn.session.clone(),
        task: Task::new(limits.vcl_steps, Workspace::of(limits.vcl_workspace_backend)),
        original: bereq.clone(),
        state,
        key: turn.key.bytes().into(),
        asked: note::asked_of(&turn.req),
        sent: None,
        leaf: None,
        lines: Default::default(),
        ran: Vec::new(),
    };
    let mut fetch = Fetch::new(env.host.core, env.live, &env.connection, turn.key.hash());
    (fetch.request, fetch.upload, fetch.trace) = (bereq, upload, Some(Rc::clone(trace)));
    (fetch.lead, fetch.old) = (lead, stale.flatten());
    let Session { client, server, .. } = turn.session;
    (fetch.caller.client, fetch.caller.owner) = (client.map(|client| client.ip()), owner);
    fetch.caller.ends = client.zip(server).map(|(client, own)| ClientEnds { client, own });
    if fetch.lead.is_some() && may_ask_node(turn) {
        fetch.ask_others(miss(turn, env, fetch.old.as_ref()));
    }
    Job::new(fetch, judge)
}

/// Makes the request conditional on the validators of the stored object.
fn add_validators(bereq: &mut Request, stale: &Object) {
    let Some(stored) = stored_head(stale) else { return };
    for (id, condition) in [
        (message::HeaderId::LastModified, message::HeaderId::IfModifiedSince),
        (message::HeaderId::Etag, message::HeaderId::IfNoneMatch),
    ] {
        if let Some(value) = stored.headers.value(id) {
            bereq.headers.push(condition, value);
        }
    }
}
