//! Pipe: `vcl_pipe` sends the request to the backend unchanged, and the response to the client as
//! it arrives.
//!
//! Varnish joins the two connections. Here the engine still parses this one request, so that later
//! requests of the connection must never reach a backend past `vcl_recv` (request smuggling); the
//! connection ends after the response. After a 101 bytes pass both ways.

use std::rc::Rc;
use std::sync::Arc;

use cache::BodyWindow as Window;
use message::{HeaderId, Method, Upgrade};
use origin::Exchange;
use vcl::backend::Leaf;
use vcl::counts::Count;
use vcl::ctx::{Bereq, BereqState};
use vcl::params::Param;
use vcl::rules::heads::{self, Purpose, ResponseDisposition, has_body};
use vcl::sub::{Action, Sub};

use super::backend_request;
use super::call::{ClientVariables, StepContext, StepHost};
use super::fetch::ProgramJudge;
use super::job::{self, BackendRequest};
use super::step::{RequestStep, said};
use crate::body_transfer::carry;
use crate::fetch::{self, Fetch, Job, Upload};
use crate::state::body::ReplyBody;
use crate::state::reply::{CacheOutcome, ForwardReason, Reply};
use crate::state::trace::Trace;
use crate::state::vcl::{OutstandingRequest, ProgramRequest};

/// The backend request for `vcl_pipe`.
pub(super) fn bereq<S: StepHost>(
    turn: &ProgramRequest,
    env: &StepContext<'_, S>,
) -> BackendRequest {
    let mut bereq = turn.req.clone();
    heads::bereq(&mut bereq, Purpose::Pipe, false);
    bereq.headers.push(HeaderId::XVarnish, turn.state.xid.to_string().as_bytes());
    bereq.headers.set(HeaderId::Connection, b"close");
    let state = BereqState {
        backend: turn.state.backend_hint.clone(),
        time: env.time(),
        uncacheable: true,
        xid: turn.state.xid,
        trace: turn.state.trace,
        ..BereqState::default()
    };
    BackendRequest { head: bereq, state }
}

/// Runs `vcl_pipe` and sends the request.
pub(crate) async fn pipe(
    turn: &mut ProgramRequest,
    env: &StepContext<'_>,
    upload: &mut Upload,
    trace: &Rc<Trace>,
) -> Result<Reply, RequestStep> {
    env.count(Count::SPipe);
    let BackendRequest { head: mut bereq, mut state } = bereq(turn, env);
    state.has_body = upload.is_some() && has_body(env.asked);
    let original = bereq.clone();
    let key = turn.key.clone();
    let seen =
        Bereq { head: &mut bereq, state: &mut state, original: Some(&original), key: key.bytes() };
    match turn.run(
        env,
        Sub::Pipe,
        ClientVariables { bereq: Some(seen), ..ClientVariables::default() },
    ) {
        Action::Pipe => {}
        Action::Synth(said) => return Err(RequestStep::Synth(said)),
        _ => return Err(RequestStep::Fail),
    }
    let deadline = state.task_deadline;
    state.task_deadline =
        deadline.or_else(|| Some(env.live.vcl.params.seconds(Param::PipeTaskDeadline)));
    // The engine writes Connection and Upgrade anew if another protocol may follow.
    bereq.upgrade = match (env.asked.upgrade, bereq.headers.contains(HeaderId::Upgrade)) {
        (Upgrade::None, _) | (_, false) => Upgrade::None,
        _ => Upgrade::Granted,
    };
    let bereq = BackendRequest { head: bereq, state };
    let mut job = job::assemble(turn, env, bereq, upload, None, trace);
    let Job { fetch, judge, .. } = &mut *job;
    judge.sent =
        Some(OutstandingRequest::new(&env.host.core.shared.vcl.xids, turn.state.xid, None));
    turn.close = true;
    // State that `vcl_pipe` has given to directors stays with the client's task.
    std::mem::swap(&mut turn.task, &mut judge.task);
    let leaf = judge.resolve(fetch);
    std::mem::swap(&mut turn.task, &mut judge.task);
    let Some(leaf) = leaf else {
        turn.note_fetch_error("No backend");
        return Err(RequestStep::Synth(said(503, "")));
    };
    *trace.backend.borrow_mut() = Some(Arc::clone(&leaf));
    let exchange = match hand_over(judge, fetch, &leaf).await {
        Ok(exchange) => exchange,
        Err(why) => {
            turn.note_fetch_error(&why);
            return Err(RequestStep::Synth(said(503, "")));
        }
    };
    let deadline_ms = backend_request::deadline_ms(&judge.state);
    Ok(answer(turn, env, exchange, fetch, deadline_ms))
}

/// Sends the request to its backend.
///
/// # Errors
/// The reason for which there is no response, in words.
async fn hand_over(
    judge: &ProgramJudge,
    fetch: &mut Fetch,
    leaf: &Arc<Leaf>,
) -> Result<Box<Exchange>, String> {
    let target = backend_request::prepare(judge, fetch, leaf)?;
    let sent = fetch::send(fetch, target).await;
    sent.map_err(|error| format!("backend {}: {error}", leaf.name))
}

/// The reply from a backend's response. It ends at the pipe's deadline, if there is one.
fn answer(
    turn: &mut ProgramRequest,
    env: &StepContext<'_>,
    mut exchange: Box<Exchange>,
    fetch: &Fetch,
    deadline_ms: Option<u64>,
) -> Reply {
    let served =
        CacheOutcome::Fetched { reason: ForwardReason::Bypass, stored: false, collapsed: false };
    let mut response = exchange.response.clone();
    heads::beresp(&mut response.headers, ResponseDisposition::Passed);
    if let Some(mut tunnel) = exchange.take_tunnel() {
        let since_ms = rt::now().mono_ms.saturating_sub(env.now.mono_ms);
        tunnel.end_after(deadline_ms.map(|ms| ms.saturating_sub(since_ms)));
        return turn.signed(env, Reply::owned(response, ReplyBody::Tunnel(tunnel), served));
    }
    let body = if response.status.has_no_body() {
        ReplyBody::None
    } else if env.asked.method == Method::Head {
        ReplyBody::Head(response.content_length())
    } else {
        let length = exchange.framing.length();
        let (writer, reader) = Window::window(fetch.passage.clone());
        if deadline_ms.is_none() {
            exchange.lift_total();
        }
        rt::spawn_local(carry(*exchange, writer, None, None, None, None));
        ReplyBody::Stream { reader, length }
    };
    turn.signed(env, Reply::owned(response, body, served))
}
