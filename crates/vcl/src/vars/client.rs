//! Client request: the variables of `req` and `req_top`. `req_top` is never changed.

use bytes::Bytes;
use message::{Request, Version};

use super::key::digest;
use super::var::{Var, missing, number, text};
use crate::failure::ProgramFailure;
use crate::headers;
use crate::rules::heads;
use crate::state::backend::Backend;
use crate::state::ctx::{Ctx, Req, ReqState};
use crate::state::value::{Value, VclMessage};
use crate::sub::{Sub, Subs};
use crate::types::Type;

/// Subroutines in which a request has a key.
const KEYED: Subs = Sub::Hit
    .only()
    .and(Sub::Miss.only())
    .and(Sub::Pass.only())
    .and(Sub::Purge.only())
    .and(Sub::Deliver.only())
    .and(Sub::Synth.only())
    .and(Sub::Pipe.only());

/// Variables of `req`.
pub(super) const REQ: &[Var] = &[
    Var::read(
        "req",
        Type::Http,
        Subs::CLIENT,
        |_| Value::Http(VclMessage::Req),
        "The head of the request.",
    ),
    Var::read(
        "req.backend_hint",
        Type::Backend,
        Subs::CLIENT,
        |ctx| Value::Backend(state(ctx).map_or(Backend::None, |s| s.backend_hint.clone())),
        "The backend or director for the fetch: the initial value of `bereq.backend`.",
    )
    .set(Subs::CLIENT, |ctx, value| {
        let Value::Backend(backend) = value else { return Err(missing("this backend")) };
        state_mut(ctx)?.backend_hint = backend;
        Ok(())
    }),
    Var::read(
        "req.can_gzip",
        Type::Bool,
        Subs::CLIENT,
        |ctx| Value::Bool(req(ctx).is_some_and(|req| heads::takes_gzip(&req.head.headers))),
        "Whether `Accept-Encoding` contains `gzip` or `x-gzip`.",
    ),
    Var::read(
        "req.esi",
        Type::Bool,
        Subs::CLIENT,
        |ctx| Value::Bool(state(ctx).is_some_and(|s| !s.no_esi)),
        "Whether ESI is processed at all. In VCL 4.1, use `resp.do_esi`.",
    )
    .set(Subs::CLIENT, |ctx, value| {
        // As in Varnish, only the client's request can be changed.
        let state = state_mut(ctx)?;
        if state.esi_level == 0 {
            state.no_esi = !value.is_true();
        }
        Ok(())
    })
    .until_40(),
    Var::read(
        "req.esi_level",
        Type::Int,
        Subs::CLIENT,
        |ctx| Value::Int(state(ctx).map_or(0, |s| s.esi_level.into())),
        "The ESI depth of the request. The client's own request has 0.",
    ),
    Var::read(
        "req.filters",
        Type::String,
        Sub::Recv.only(),
        |ctx| Value::String(state(ctx).map(|s| s.filters.clone())),
        "Filters for the request body. Larder has no such filters: the variable is empty, and \
         setting a name fails the request. Since Varnish 7.7.",
    )
    .set(Sub::Recv.only(), |ctx, value| {
        state_mut(ctx)?.filters = headers::no_filters("req.filters", value)?;
        Ok(())
    }),
    Var::read(
        "req.grace",
        Type::Duration,
        Subs::CLIENT,
        |ctx| Value::Duration(state(ctx).and_then(|s| s.grace).unwrap_or(UNSET)),
        "Maximum grace that the lookup allows an object. -1, the initial value, means no limit.",
    )
    .set(Subs::CLIENT, |ctx, value| {
        state_mut(ctx)?.grace = bound(&value);
        Ok(())
    })
    .unset(Subs::CLIENT, |ctx| {
        if let Some(req) = ctx.req.as_mut() {
            req.state.grace = None;
        }
    }),
    Var::read(
        "req.hash",
        Type::Blob,
        KEYED,
        |ctx| {
            let key = req(ctx).and_then(|req| req.key);
            Value::Blob(Some(key.map_or_else(|| Bytes::from_static(&NO_DIGEST), digest)))
        },
        "The SHA-256 of the input of `hash_data`. Zero bytes if there is no key yet. In \
         `vcl_synth` and `vcl_pipe` since Varnish 7.7.",
    ),
    Var::read(
        "req.hash_always_miss",
        Type::Bool,
        Subs::CLIENT,
        |ctx| Value::Bool(state(ctx).is_some_and(|s| s.hash_always_miss)),
        "Whether to force a cache miss. The fetched object replaces the stored one.",
    )
    .set(Subs::CLIENT, |ctx, value| {
        state_mut(ctx)?.hash_always_miss = value.is_true();
        Ok(())
    }),
    Var::read(
        "req.hash_ignore_busy",
        Type::Bool,
        Subs::CLIENT,
        |ctx| Value::Bool(state(ctx).is_some_and(|s| s.hash_ignore_busy)),
        "Whether the lookup ignores fetches in progress instead of waiting for them.",
    )
    .set(Subs::CLIENT, |ctx, value| {
        state_mut(ctx)?.hash_ignore_busy = value.is_true();
        Ok(())
    }),
    Var::read(
        "req.hash_ignore_vary",
        Type::Bool,
        Subs::CLIENT,
        |ctx| Value::Bool(state(ctx).is_some_and(|s| s.hash_ignore_vary)),
        "Whether the lookup takes the first variant and ignores `Vary`.",
    )
    .set(Subs::CLIENT, |ctx, value| {
        state_mut(ctx)?.hash_ignore_vary = value.is_true();
        Ok(())
    }),
    Var::read(
        "req.is_hitmiss",
        Type::Bool,
        Subs::CLIENT,
        |ctx| Value::Bool(state(ctx).is_some_and(|s| s.is_hitmiss)),
        "Whether the lookup found a hit-for-miss object.",
    ),
    Var::read(
        "req.is_hitpass",
        Type::Bool,
        Subs::CLIENT,
        |ctx| Value::Bool(state(ctx).is_some_and(|s| s.is_hitpass)),
        "Whether the lookup found a hit-for-pass object.",
    ),
    Var::read(
        "req.max_age",
        Type::Duration,
        Subs::CLIENT,
        |ctx| Value::Duration(state(ctx).and_then(|s| s.ttl).unwrap_or(UNSET)),
        "Maximum age that the lookup allows an object. -1, the initial value, means no limit. \
         Since Varnish 9.0; the old name is `req.ttl`.",
    )
    .set(Subs::CLIENT, set_max_age)
    .unset(Subs::CLIENT, unset_max_age),
    text!("req.method", Subs::CLIENT, |ctx| req(ctx).map(|req| req.head.method.token()), METHOD)
        .set(Subs::CLIENT, |ctx, value| {
            headers::set_method(req_mut(ctx)?.head, "req.method", value)
        }),
    text!("req.proto", Subs::CLIENT, |ctx| req(ctx).map(proto), PROTO)
        .set(Subs::CLIENT, |ctx, value| {
            state_mut(ctx)?.proto = Some(headers::line_part("req.proto", value)?);
            Ok(())
        })
        .until_40(),
    text!("req.proto", Subs::CLIENT, |ctx| req(ctx).map(proto), PROTO).since_41(),
    Var::read(
        "req.restarts",
        Type::Int,
        Subs::CLIENT,
        |ctx| Value::Int(state(ctx).map_or(0, |s| s.restarts.into())),
        "Number of restarts of the request so far.",
    ),
    Var::read(
        "req.storage",
        Type::Stevedore,
        Subs::CLIENT,
        |ctx| Value::Stevedore(state(ctx).and_then(|s| s.storage.clone())),
        "The storage for the request body.",
    )
    .set(Subs::CLIENT, |ctx, value| {
        let Value::Stevedore(storage) = value else { return Err(missing("this storage")) };
        state_mut(ctx)?.storage = storage;
        Ok(())
    }),
    Var::read(
        "req.time",
        Type::Time,
        Subs::CLIENT,
        |ctx| Value::Time(state(ctx).map_or(0.0, |s| s.time)),
        "Time at which the complete request head had arrived. Restarts do not change it.",
    ),
    Var::read(
        "req.trace",
        Type::Bool,
        Subs::CLIENT,
        |ctx| Value::Bool(state(ctx).is_some_and(|s| s.trace)),
        "Whether the log gets a `VCL_trace` line for each executed block of statements. The \
         initial value is the flag `trace` of the parameter `feature`. Since Varnish 7.4.",
    )
    .set(Subs::CLIENT, |ctx, value| {
        state_mut(ctx)?.trace = value.is_true();
        ctx.task.traced = value.is_true();
        Ok(())
    }),
    text!("req.transport", Subs::CLIENT, |ctx| req(ctx).map(transport), TRANSPORT),
    Var::read(
        "req.ttl",
        Type::Duration,
        Subs::CLIENT,
        |ctx| Value::Duration(state(ctx).and_then(|s| s.ttl).unwrap_or(UNSET)),
        "The old name of `req.max_age`.",
    )
    .set(Subs::CLIENT, set_max_age)
    .unset(Subs::CLIENT, unset_max_age),
    text!("req.url", Subs::CLIENT, |ctx| req(ctx).map(|req| &req.head.target[..]), URL)
        .set(Subs::CLIENT, |ctx, value| headers::set_url(req_mut(ctx)?.head, "req.url", value)),
    Var::read(
        "req.xid",
        Type::Int,
        Subs::CLIENT,
        |ctx| number(state(ctx).map_or(0, |s| s.xid)),
        "The transaction number of the request.",
    ),
];

/// Variables of `req_top`.
pub(super) const REQ_TOP: &[Var] = &[
    text!(
        "req_top.method",
        Subs::CLIENT,
        |ctx| headers::top(ctx).map(|head| head.method.token()),
        "The value of `req.method` of the client's request if this request is for an ESI fragment, \
         otherwise of this request.",
    ),
    text!(
        "req_top.proto",
        Subs::CLIENT,
        |ctx| match ctx.req_top {
            Some(head) => Some(version(head)),
            None => req(ctx).map(proto),
        },
        "The value of `req.proto` of the client's request.",
    ),
    Var::read(
        "req_top.time",
        Type::Time,
        Subs::CLIENT,
        |ctx| Value::Time(state(ctx).map_or(0.0, |s| s.time)),
        "The value of `req.time` of the client's request.",
    ),
    text!(
        "req_top.url",
        Subs::CLIENT,
        |ctx| headers::top(ctx).map(|head| &head.target[..]),
        "The value of `req.url` of the client's request.",
    ),
];

const METHOD: &str = "The method: `GET`, `HEAD`, ...";
const PROTO: &str = "The protocol: `HTTP/1.1`, `HTTP/2.0`, ...";
const TRANSPORT: &str = "The transport protocol of the request: `HTTP/1` or `H2`.";
const URL: &str = "The path and the query.";

/// `req.hash` before there is a key.
static NO_DIGEST: [u8; 32] = [0; 32];

/// `req.grace` and `req.max_age` before they are set.
const UNSET: f64 = -1.0;

fn bound(value: &Value) -> Option<f64> {
    Some(value.seconds().max(0.0))
}

fn set_max_age(ctx: &mut Ctx<'_>, value: Value) -> Result<(), ProgramFailure> {
    state_mut(ctx)?.ttl = bound(&value);
    Ok(())
}

fn unset_max_age(ctx: &mut Ctx<'_>) {
    if let Some(req) = ctx.req.as_mut() {
        req.state.ttl = None;
    }
}

fn req<'c>(ctx: &'c Ctx<'_>) -> Option<&'c Req<'c>> {
    // The lifetime of a borrowed reference is shortened as a whole.
    ctx.req.as_ref()
}

fn req_mut<'c, 'a>(ctx: &'c mut Ctx<'a>) -> Result<&'c mut Req<'a>, ProgramFailure> {
    ctx.req.as_mut().ok_or_else(|| missing("req"))
}

fn state<'c>(ctx: &'c Ctx<'_>) -> Option<&'c ReqState> {
    ctx.req.as_ref().map(|req| &*req.state)
}

fn state_mut<'c>(ctx: &'c mut Ctx<'_>) -> Result<&'c mut ReqState, ProgramFailure> {
    Ok(req_mut(ctx)?.state)
}

fn proto<'c>(req: &'c Req<'_>) -> &'c [u8] {
    req.state.proto.as_deref().unwrap_or_else(|| version(req.head))
}

fn transport<'c>(req: &'c Req<'_>) -> &'c [u8] {
    match req.head.version {
        Version::Http2 => b"H2",
        Version::Http10 | Version::Http11 => b"HTTP/1",
    }
}

/// Protocol version in VCL's spelling.
pub(super) fn version(head: &Request) -> &'static [u8] {
    headers::version(head.version)
}
