//! Backend request: the variables of `bereq`. Each is absent outside of its subroutines.

use super::key::digest;
use super::var::{Var, missing, number, param, text};
use crate::failure::ProgramFailure;
use crate::headers;
use crate::state::backend::Backend;
use crate::state::ctx::{Bereq, BereqState, Ctx};
use crate::state::value::{Value, VclMessage};
use crate::sub::{Sub, Subs};
use crate::types::Type;

/// Subroutines with a backend request.
pub(super) const PIPE_OR_BACKEND: Subs = Subs::BACKEND.and(Sub::Pipe.only());

/// Variables of `bereq`.
pub(super) const BEREQ: &[Var] = &[
    Var::read(
        "bereq",
        Type::Http,
        Subs::BACKEND,
        |_| Value::Http(VclMessage::Bereq),
        "The head of the request to the backend.",
    ),
    Var::read(
        "bereq.backend",
        Type::Backend,
        PIPE_OR_BACKEND,
        |ctx| Value::Backend(state(ctx).map_or(Backend::None, |s| s.backend.clone())),
        "The backend or director to fetch from.",
    )
    .set(PIPE_OR_BACKEND, |ctx, value| {
        let Value::Backend(backend) = value else { return Err(missing("this backend")) };
        state_mut(ctx)?.backend = backend;
        Ok(())
    }),
    Var::read(
        "bereq.between_bytes_timeout",
        Type::Duration,
        Subs::BACKEND,
        |ctx| timeout(ctx, |s| s.between_bytes_timeout),
        "Maximum time between two bytes from the backend.",
    )
    .set(Subs::BACKEND, |ctx, value| {
        state_mut(ctx)?.between_bytes_timeout = Some(value.seconds().max(0.0));
        Ok(())
    })
    .unset(PIPE_OR_BACKEND, |ctx| forget(ctx, |s| &mut s.between_bytes_timeout)),
    Var::read(
        "bereq.body",
        Type::Body,
        Subs::NONE,
        |_| Value::Void,
        "The body of the request. Unsetting it also unsets Content-Length.",
    )
    .unset(Sub::BackendFetch.only(), |ctx| {
        if let Some(bereq) = ctx.bereq.as_mut() {
            bereq.state.has_body = false;
            bereq.head.headers.remove(message::HeaderId::ContentLength);
        }
    }),
    Var::read(
        "bereq.connect_timeout",
        Type::Duration,
        PIPE_OR_BACKEND,
        |ctx| timeout(ctx, |s| s.connect_timeout),
        "Maximum time for connecting to the backend.",
    )
    .set(PIPE_OR_BACKEND, |ctx, value| {
        state_mut(ctx)?.connect_timeout = Some(value.seconds().max(0.0));
        Ok(())
    })
    .unset(PIPE_OR_BACKEND, |ctx| forget(ctx, |s| &mut s.connect_timeout)),
    Var::read(
        "bereq.first_byte_timeout",
        Type::Duration,
        Subs::BACKEND,
        |ctx| timeout(ctx, |s| s.first_byte_timeout),
        "Maximum time to wait for the first byte of the response.",
    )
    .set(Subs::BACKEND, |ctx, value| {
        state_mut(ctx)?.first_byte_timeout = Some(value.seconds().max(0.0));
        Ok(())
    })
    .unset(PIPE_OR_BACKEND, |ctx| forget(ctx, |s| &mut s.first_byte_timeout)),
    Var::read(
        "bereq.filters",
        Type::String,
        Sub::BackendFetch.only(),
        |ctx| Value::String(state(ctx).map(|s| s.filters.clone())),
        "Filters for the request body on its way to the backend. Larder has no such filters: the \
         variable is empty, and setting a name fails the fetch. Since Varnish 7.7.",
    )
    .set(Sub::BackendFetch.only(), |ctx, value| {
        state_mut(ctx)?.filters = headers::no_filters("bereq.filters", value)?;
        Ok(())
    }),
    Var::read(
        "bereq.hash",
        Type::Blob,
        PIPE_OR_BACKEND,
        |ctx| Value::Blob(ctx.bereq.as_ref().map(|bereq| digest(bereq.key))),
        "The value of `req.hash` of the request that caused this fetch.",
    ),
    Var::read(
        "bereq.is_bgfetch",
        Type::Bool,
        Subs::BACKEND,
        |ctx| Value::Bool(state(ctx).is_some_and(|s| s.is_bgfetch)),
        "Whether this is a background fetch: an object within its grace has been delivered, and no \
         request waits.",
    ),
    Var::read(
        "bereq.is_hitmiss",
        Type::Bool,
        Subs::BACKEND,
        |ctx| Value::Bool(state(ctx).is_some_and(|s| s.is_hitmiss)),
        "Whether the lookup found a hit-for-miss object.",
    ),
    Var::read(
        "bereq.is_hitpass",
        Type::Bool,
        Subs::BACKEND,
        |ctx| Value::Bool(state(ctx).is_some_and(|s| s.is_hitpass)),
        "Whether the lookup found a hit-for-pass object.",
    ),
    text!(
        "bereq.method",
        PIPE_OR_BACKEND,
        |ctx| ctx.bereq.as_ref().map(|bereq| bereq.head.method.token()),
        "The method. It is `GET` for fetches that are neither passed nor piped.",
    )
    .set(PIPE_OR_BACKEND, |ctx, value| {
        headers::set_method(bereq_mut(ctx)?.head, "bereq.method", value)
    }),
    text!("bereq.proto", PIPE_OR_BACKEND, |ctx| ctx.bereq.as_ref().map(proto), PROTO)
        .set(PIPE_OR_BACKEND, |ctx, value| {
            state_mut(ctx)?.proto = Some(headers::line_part("bereq.proto", value)?);
            Ok(())
        })
        .until_40(),
    text!("bereq.proto", PIPE_OR_BACKEND, |ctx| ctx.bereq.as_ref().map(proto), PROTO).since_41(),
    Var::read(
        "bereq.retries",
        Type::Int,
        Subs::BACKEND,
        |ctx| Value::Int(state(ctx).map_or(0, |s| s.retries.into())),
        "Number of retries of the fetch so far.",
    ),
    Var::read(
        "bereq.retry_connect",
        Type::Bool,
        Subs::BACKEND,
        |ctx| Value::Bool(state(ctx).is_some_and(|s| !s.no_retry_connect)),
        "Whether to send the request again on another connection if a reused connection was closed \
         meanwhile. Since Varnish 9.0.",
    )
    .set(Subs::BACKEND, |ctx, value| {
        state_mut(ctx)?.no_retry_connect = !value.is_true();
        Ok(())
    }),
    Var::read(
        "bereq.task_deadline",
        Type::Duration,
        Sub::Pipe.only(),
        |ctx| {
            let own = state(ctx).and_then(|s| s.task_deadline);
            Value::Duration(own.unwrap_or_else(|| param(ctx, "pipe_task_deadline")))
        },
        "Maximum duration of the pipe. 0: no limit. Since Varnish 7.5.",
    )
    .set(Sub::Pipe.only(), |ctx, value| {
        state_mut(ctx)?.task_deadline = Some(value.seconds().max(0.0));
        Ok(())
    })
    .unset(Sub::Pipe.only(), |ctx| forget(ctx, |s| &mut s.task_deadline)),
    Var::read(
        "bereq.time",
        Type::Time,
        PIPE_OR_BACKEND,
        |ctx| Value::Time(state(ctx).map_or(0.0, |s| s.time)),
        "Time at which the fetch began. Retries do not change it.",
    ),
    Var::read(
        "bereq.trace",
        Type::Bool,
        Subs::BACKEND,
        |ctx| Value::Bool(state(ctx).is_some_and(|s| s.trace)),
        "Whether the fetch is traced, as `req.trace`. The initial value is that of `req.trace`. \
         Since Varnish 7.4.",
    )
    .set(Subs::BACKEND, |ctx, value| {
        state_mut(ctx)?.trace = value.is_true();
        ctx.task.traced = value.is_true();
        Ok(())
    }),
    Var::read(
        "bereq.uncacheable",
        Type::Bool,
        Subs::BACKEND,
        |ctx| {
            let uncacheable = ctx.beresp.as_ref().is_some_and(|beresp| beresp.state.uncacheable);
            Value::Bool(uncacheable || state(ctx).is_some_and(|s| s.uncacheable))
        },
        "Whether the response is not stored. True if the request was passed, found a hit-for-pass \
         object, or `beresp.uncacheable` was set.",
    ),
    text!(
        "bereq.url",
        PIPE_OR_BACKEND,
        |ctx| ctx.bereq.as_ref().map(|bereq| &bereq.head.target[..]),
        "The path and the query.",
    )
    .set(PIPE_OR_BACKEND, |ctx, value| headers::set_url(bereq_mut(ctx)?.head, "bereq.url", value)),
    Var::read(
        "bereq.xid",
        Type::Int,
        PIPE_OR_BACKEND,
        |ctx| number(state(ctx).map_or(0, |s| s.xid)),
        "The transaction number of the fetch.",
    ),
];

const PROTO: &str = "The protocol of the request to the backend.";

fn bereq_mut<'c, 'a>(ctx: &'c mut Ctx<'a>) -> Result<&'c mut Bereq<'a>, ProgramFailure> {
    ctx.bereq.as_mut().ok_or_else(|| missing("bereq"))
}

fn state<'c>(ctx: &'c Ctx<'_>) -> Option<&'c BereqState> {
    ctx.bereq.as_ref().map(|bereq| &*bereq.state)
}

fn state_mut<'c>(ctx: &'c mut Ctx<'_>) -> Result<&'c mut BereqState, ProgramFailure> {
    Ok(bereq_mut(ctx)?.state)
}

fn proto<'c>(bereq: &'c Bereq<'_>) -> &'c [u8] {
    bereq.state.proto.as_deref().unwrap_or_else(|| headers::version(bereq.head.version))
}

/// A timeout that was set; 0 otherwise, whatever backend and parameter have.
fn timeout(ctx: &Ctx<'_>, set: impl Fn(&BereqState) -> Option<f64>) -> Value {
    Value::Duration(state(ctx).and_then(set).unwrap_or_default())
}

/// Unsets a timeout.
fn forget(ctx: &mut Ctx<'_>, of: impl Fn(&mut BereqState) -> &mut Option<f64>) {
    if let Some(bereq) = ctx.bereq.as_mut() {
        *of(bereq.state) = None;
    }
}
