//! Slow path of a connection: requests that wait, writes to slow clients, and lingering closes.

use std::cell::{OnceCell, RefCell};
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use base::{Account, Counter, Limit};
use cache::{Reader, WindowLimit};
use flow::{WaitingRequest, pages};
use message::{Framing, Status};

use super::client_side::ClientSide;
use super::conn::{Conn, DeferredExchange, NextAction, ReplyReadiness, SlowStep};
use super::slow_writer::write_all;
use super::upload::Upload;
use crate::account;
use crate::core::CoreCtx;
use crate::exchange::{DeferredRequest, Exchange, ExchangeAbort, ExchangeTimestamp, Intake};
use crate::guard::{ConnectionPhase, Guard};
use crate::lingering_close::linger;
use crate::segments::Segments;
use crate::stream::SharedStream;

/// The interim response to `Expect: 100-continue` (RFC 9110 10.1.1).
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Serves a connection to its end.
pub(crate) async fn serve(mut conn: Conn, core: Rc<CoreCtx>) {
    loop {
        let then = match poll_fn(|cx| conn.poll_fast(cx, &core)).await {
            SlowStep::Close => NextAction::Close,
            SlowStep::Expired(limit) => {
                Box::pin(expired(&mut conn, &core, limit)).await;
                NextAction::Close
            }
            SlowStep::Send(mut segments, then) => {
                match Box::pin(send(&mut conn, &core, &mut segments)).await {
                    Ok(()) => then,
                    Err(error) => {
                        core.flow.counters.inc(Counter::Aborted);
                        conn.broke_off(ExchangeAbort::of(&error) == ExchangeAbort::Cut);
                        NextAction::Close
                    }
                }
            }
            SlowStep::Wait(waiting) => Box::pin(exchange(&mut conn, &core, waiting)).await,
        };
        match then {
            NextAction::Next => {
                conn.caller.guard.enter(ConnectionPhase::Idle, core.flow.now().mono_ms);
            }
            NextAction::Close if conn.held.is_empty() => return conn.stream.close(),
            // Closing with requests unread would be a reset, which may take the last reply along.
            NextAction::Close | NextAction::Linger => {
                conn.held = Vec::new();
                Box::pin(linger(&mut conn.stream, &conn.caller.guard, &core, u64::MAX)).await;
                return;
            }
        }
    }
}

/// Ends the connection because of `limit`; a partial request gets a 408.
async fn expired(conn: &mut Conn, core: &CoreCtx, limit: Limit) {
    if limit != Limit::HeaderTimeout {
        return;
    }
    let reason = "The request's head took too long (limit: header_timeout).";
    let Some(status) = Status::new(408) else { return };
    let reply = pages::refused(status, reason).because_of(limit);
    let started = conn.half_read(ExchangeTimestamp::now(core));
    let mut out = Vec::new();
    conn.refuse(core, &reply, &conn.held, &started, &mut out);
    // Only what the socket takes without blocking: a client this slow gets no more time.
    conn.stream.write_now(&out);
}

async fn send(conn: &mut Conn, core: &CoreCtx, segments: &mut Segments) -> io::Result<()> {
    let guard = Rc::clone(&conn.caller.guard);
    guard.answering(core.flow.now().mono_ms);
    guard.sending(core.flow.now().mono_ms);
    let stream = RefCell::new(&mut conn.stream);
    let sent = write_all(&guard, core, &stream, segments).await;
    guard.answered();
    sent
}

/// One exchange: the request's body is received while its reply is awaited and sent.
async fn exchange(
    conn: &mut Conn,
    core: &Rc<CoreCtx>,
    waiting: Box<DeferredExchange>,
) -> NextAction {
    let DeferredExchange { before, mut deferred, answer, keep } = *waiting;
    let (guard, account) = (&Rc::clone(&conn.caller.guard), &Arc::clone(&conn.caller.account));
    let held = std::mem::take(&mut conn.held);
    let (ends, owner) = (conn.caller.ends.pair(&conn.stream), &conn.caller.ends.owner());
    let stream = &RefCell::new(&mut conn.stream);
    let answer = hold_memory(core, account, &mut deferred, answer);
    let DeferredRequest { request, live, .. } = &deferred;
    let mut upload = Upload::new(request.framing, held, live, account, core.flow.now().mono_ms);
    let is_lost = upload.hold().is_err();
    let answer = if is_lost { ReplyReadiness::Reply(account::no_memory(core)) } else { answer };
    if let Some(mut before) = before
        && write_all(guard, core, stream, &mut before).await.is_err()
    {
        return NextAction::Close;
    }
    let passage = account::passage(account, &live.limits);
    let window = account::narrowed(&passage, &live.limits);
    let body = match &answer {
        ReplyReadiness::Reply(_) => Ok(None),
        ReplyReadiness::Slow(slow) => {
            take_in(core, guard, stream, &mut upload, &deferred, slow, passage).await
        }
    };
    let Ok(body) = body else { return NextAction::Close };
    let engine = ClientSide {
        core,
        guard,
        account,
        stream,
        deferred: &deferred,
        upload: RefCell::new(upload),
        early: RefCell::default(),
        keep: keep && !is_lost,
        out: RefCell::default(),
        leaving: OnceCell::new(),
    };
    let exchange = Exchange { core, deferred: &deferred, ends, owner, window, account };
    let done = match answer {
        ReplyReadiness::Reply(reply) => exchange.send(&engine, reply, None).await,
        ReplyReadiness::Slow(slow) => exchange.answer(&engine, slow, body).await,
    };
    guard.answered();
    guard.receive_done();
    engine.note(done);
    let (end, mut upload) = (engine.ends_as(), engine.upload.into_inner());
    match done {
        Ok(()) => {}
        Err(ExchangeAbort::Early) => return NextAction::Close,
        Err(broken) => {
            conn.broke_off(broken == ExchangeAbort::Cut);
            return NextAction::Close;
        }
    }
    if let Some(end) = end {
        guard.ends_as(end);
        return if upload.is_spent() && !is_lost { NextAction::Close } else { NextAction::Linger };
    }
    if !upload.finish(core, guard, stream, &deferred.live.limits).await {
        guard.ends_as(Counter::ClosedBody);
        return NextAction::Linger;
    }
    conn.go_on(upload.take_rest());
    NextAction::Next
}

/// Begins to receive the body of a waiting request.
///
/// # Errors
/// If the 100 cannot be written.
async fn take_in(
    core: &CoreCtx,
    guard: &Guard,
    stream: &SharedStream<'_>,
    upload: &mut Upload,
    deferred: &DeferredRequest,
    slow: &WaitingRequest,
    passage: WindowLimit,
) -> io::Result<Option<Reader>> {
    let DeferredRequest { request, live, .. } = deferred;
    let ends = request.framing == Framing::None;
    match Intake::of(request, ends, slow, &live.limits, &core.flow.counters) {
        Intake::None => Ok(None),
        Intake::Refused(fault) => {
            upload.refuse(fault);
            Ok(None)
        }
        Intake::Taken { continues, gathers } => {
            if continues && upload.is_untouched() {
                let mut line = Segments::new(CONTINUE.to_vec(), None);
                write_all(guard, core, stream, &mut line).await?;
            }
            let body = upload.open(core, guard, passage);
            if gathers {
                upload.gather(core, guard, stream, &live.limits).await;
            }
            Ok(Some(body))
        }
    }
}

/// Reserves memory for a request that must wait; if there is too little, the reply is a refusal.
fn hold_memory(
    core: &CoreCtx,
    account: &Arc<Account>,
    deferred: &mut DeferredRequest,
    answer: ReplyReadiness,
) -> ReplyReadiness {
    let ReplyReadiness::Slow(slow) = &answer else { return answer };
    deferred.request.fit();
    match account::hold_waiting(account, deferred.client, &deferred.request, slow) {
        Ok(held) => deferred.held = RefCell::new(Some(held)),
        Err(_) => return ReplyReadiness::Reply(account::no_memory(core)),
    }
    answer
}
