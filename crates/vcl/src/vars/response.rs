//! Response variables: `beresp` and `resp`. Once filters are set, the `do_*` variables can no
//! longer be.

use std::sync::Arc;

use bytes::Bytes;
use message::{HeaderId, Response};

use super::var::{Var, VariableGetter, VariableSetter, missing, param, text};
use crate::failure::ProgramFailure;
use crate::headers;
use crate::rules::{heads, status};
use crate::state::backend::Backend;
use crate::state::ctx::{Beresp, BerespState, Ctx, Resp, RespState};
use crate::state::value::{Value, VclMessage};
use crate::sub::{Sub, Subs};
use crate::tag::Tag;
use crate::types::Type;

/// Subroutines with a backend's response.
pub(super) const FETCHED: Subs =
    Sub::BackendRefresh.only().and(Sub::BackendResponse.only()).and(Sub::BackendError.only());
/// Subroutines with a response to the client.
pub(super) const DELIVERED: Subs = Sub::Deliver.only().and(Sub::Synth.only());

/// A read-only variable of `beresp`.
const fn fetch(name: &'static str, kind: Type, get: VariableGetter, about: &'static str) -> Var {
    Var::read(name, kind, FETCHED, get, about)
}

/// A variable of `beresp` that can be set.
const fn fetch_set(
    name: &'static str,
    kind: Type,
    get: VariableGetter,
    set: VariableSetter,
    about: &'static str,
) -> Var {
    Var::read(name, kind, FETCHED, get, about).set(FETCHED, set)
}

/// Variables of `beresp`.
pub(super) const BERESP: &[Var] = &[
    fetch(
        "beresp",
        Type::Http,
        |_| Value::Http(VclMessage::Beresp),
        "The head of the backend's response.",
    ),
    fetch(
        "beresp.age",
        Type::Duration,
        |ctx| Value::Duration(fetched(ctx).map_or(0.0, |s| s.age)),
        "The age of the response on arrival, from its `Age` field. 0 without that field.",
    ),
    fetch(
        "beresp.backend",
        Type::Backend,
        |ctx| {
            let leaf = fetched(ctx).and_then(|s| s.backend.clone());
            Value::Backend(leaf.map_or(Backend::None, Backend::Leaf))
        },
        "The backend that sent the response.",
    ),
    Var::read(
        "beresp.backend.ip",
        Type::Ip,
        Sub::BackendResponse.only(),
        |ctx| Value::Ip(fetched(ctx).and_then(|s| s.backend_ip)),
        "The address of the backend that sent the response.",
    )
    .until_40(),
    text!(
        "beresp.backend.name",
        FETCHED,
        |ctx| fetched(ctx).and_then(|s| s.backend.as_ref()).map(|leaf| leaf.name.as_bytes()),
        "The name of the backend that sent the response.",
    ),
    Var::read(
        "beresp.body",
        Type::Body,
        Subs::NONE,
        |_| Value::Void,
        "The body of a synthetic response.",
    )
    .set(Sub::BackendError.only(), |ctx, value| set_body(ctx, VclMessage::Beresp, value)),
    fetch_set(
        "beresp.do_esi",
        Type::Bool,
        |ctx| Value::Bool(fetched(ctx).is_some_and(|s| s.do_esi)),
        |ctx, value| switch(ctx, "do_esi", &value, |s| &mut s.do_esi),
        "Whether the body is parsed for ESI instructions.",
    ),
    fetch_set(
        "beresp.do_gunzip",
        Type::Bool,
        |ctx| Value::Bool(fetched(ctx).is_some_and(|s| s.do_gunzip)),
        |ctx, value| switch(ctx, "do_gunzip", &value, |s| &mut s.do_gunzip),
        "Whether a compressed body is stored uncompressed.",
    ),
    fetch_set(
        "beresp.do_gzip",
        Type::Bool,
        |ctx| Value::Bool(fetched(ctx).is_some_and(|s| s.do_gzip)),
        |ctx, value| switch(ctx, "do_gzip", &value, |s| &mut s.do_gzip),
        "Whether an uncompressed body is stored compressed.",
    ),
    fetch_set(
        "beresp.do_stream",
        Type::Bool,
        |ctx| Value::Bool(fetched(ctx).is_some_and(|s| s.do_stream)),
        |ctx, value| {
            fetched_mut(ctx)?.do_stream = value.is_true();
            Ok(())
        },
        "Whether the body is streamed to clients while it arrives.",
    ),
    Var::read(
        "beresp.filters",
        Type::String,
        Sub::BackendResponse.only(),
        |ctx| Value::String(ctx.beresp.as_ref().map(Beresp::filters)),
        "Filters for the body on its way into the cache.",
    )
    .set(Sub::BackendResponse.only(), |ctx, value| {
        fetched_mut(ctx)?.filters = Some(value.into_bytes().unwrap_or_default());
        Ok(())
    }),
    fetch_set(
        "beresp.grace",
        Type::Duration,
        |ctx| Value::Duration(fetched(ctx).map_or(0.0, |s| s.grace)),
        |ctx, value| {
            fetched_mut(ctx)?.grace = value.seconds().max(0.0);
            Ok(())
        },
        "Time after the TTL in which the object may be delivered while a fetch renews it. Negative \
         values become 0.",
    ),
    fetch_set(
        "beresp.keep",
        Type::Duration,
        |ctx| Value::Duration(fetched(ctx).map_or(0.0, |s| s.keep)),
        |ctx, value| {
            fetched_mut(ctx)?.keep = value.seconds().max(0.0);
            Ok(())
        },
        "Time after grace in which the object is kept for revalidation. Negative values become 0.",
    ),
    text!("beresp.proto", FETCHED, |ctx| ctx.beresp.as_ref().map(beresp_proto), PROTO)
        .set(FETCHED, |ctx, value| {
            fetched_mut(ctx)?.proto = Some(headers::line_part("beresp.proto", value)?);
            Ok(())
        })
        .until_40(),
    text!("beresp.proto", FETCHED, |ctx| ctx.beresp.as_ref().map(beresp_proto), PROTO).since_41(),
    text!(
        "beresp.reason",
        FETCHED,
        |ctx| ctx.beresp.as_ref().map(|r| reason(r.head, r.state.status)),
        REASON,
    )
    .set(FETCHED, |ctx, value| {
        let beresp = ctx.beresp.as_mut().ok_or_else(|| missing("beresp"))?;
        beresp.head.reason = headers::line_part("beresp.reason", value)?.into_vec();
        beresp.head.no_reason = false;
        Ok(())
    }),
    fetch_set(
        "beresp.status",
        Type::Int,
        |ctx| Value::Int(fetched(ctx).map_or(0, |s| s.status.into())),
        |ctx, value| {
            let beresp = ctx.beresp.as_mut().ok_or_else(|| missing("beresp"))?;
            beresp.state.status = headers::set_status(beresp.head, "beresp", value.int())?;
            Ok(())
        },
        STATUS,
    ),
    fetch_set(
        "beresp.storage",
        Type::Stevedore,
        |ctx| Value::Stevedore(fetched(ctx).and_then(|s| s.storage.clone())),
        |ctx, value| {
            let Value::Stevedore(storage) = value else { return Err(missing("this storage")) };
            fetched_mut(ctx)?.storage = storage;
            Ok(())
        },
        "The storage that the object will be stored in.",
    ),
    text!(
        "beresp.storage_hint",
        FETCHED,
        |ctx| fetched(ctx).and_then(|s| s.storage.as_deref()).map(str::as_bytes),
        "The name of the storage that the object will be stored in. An unknown name changes \
         nothing.",
    )
    .set(FETCHED, |ctx, value| {
        let name = value.into_bytes().unwrap_or_default();
        if let Ok(name) = str::from_utf8(&name)
            && ctx.environment.storage(name).is_some()
        {
            fetched_mut(ctx)?.storage = Some(Arc::from(name));
        }
        Ok(())
    })
    .until_40(),
    fetch(
        "beresp.time",
        Type::Time,
        |ctx| Value::Time(fetched(ctx).map_or(0.0, |s| s.time)),
        "Time at which the complete response head had arrived, or `vcl_backend_error` began.",
    ),
    Var::read(
        "beresp.transit_buffer",
        Type::Bytes,
        Sub::BackendResponse.only(),
        |ctx| {
            let own = fetched(ctx).and_then(|s| s.transit_buffer);
            Value::Bytes(own.unwrap_or_else(|| param(ctx, "transit_buffer") as i64))
        },
        "Maximum number of bytes that the backend may be ahead of the client in a body that is not \
         stored. 0: the limit `window_bytes` applies. Since Varnish 7.3.",
    )
    .set(Sub::BackendResponse.only(), |ctx, value| {
        fetched_mut(ctx)?.transit_buffer = Some(value.int().max(0));
        Ok(())
    }),
    fetch_set(
        "beresp.ttl",
        Type::Duration,
        |ctx| Value::Duration(fetched(ctx).map_or(0.0, |s| s.ttl)),
        |ctx, value| {
            let state = fetched_mut(ctx)?;
            // Counted from the response's creation, the lifetime is never negative.
            state.ttl = value.seconds().max(0.0 - state.age);
            Ok(())
        },
        "Time for which the object is fresh, counted from now.",
    ),
    fetch_set(
        "beresp.uncacheable",
        Type::Bool,
        |ctx| Value::Bool(fetched(ctx).is_some_and(|s| s.uncacheable)),
        |ctx, value| {
            let state = fetched_mut(ctx)?;
            if state.uncacheable && !value.is_true() {
                ctx.environment.log(Tag::Error, b"Ignoring attempt to reset beresp.uncacheable");
            } else {
                state.uncacheable = value.is_true();
            }
            Ok(())
        },
        "Whether the response is not stored. A hit-for-miss object replaces it for the TTL. Once \
         true, it cannot be set to false.",
    ),
    fetch(
        "beresp.was_304",
        Type::Bool,
        |ctx| Value::Bool(fetched(ctx).is_some_and(|s| s.was_304)),
        "Whether the backend answered 304, so that the stored body is used.",
    ),
];

/// A read-only variable of `resp`.
const fn deliver(name: &'static str, kind: Type, get: VariableGetter, about: &'static str) -> Var {
    Var::read(name, kind, DELIVERED, get, about)
}

/// Variables of `resp`.
pub(super) const RESP: &[Var] = &[
    deliver("resp", Type::Http, |_| Value::Http(VclMessage::Resp), "The head of the response."),
    Var::read(
        "resp.body",
        Type::Body,
        Subs::NONE,
        |_| Value::Void,
        "The body of a synthetic response.",
    )
    .set(Sub::Synth.only(), |ctx, value| set_body(ctx, VclMessage::Resp, value)),
    deliver(
        "resp.do_esi",
        Type::Bool,
        |ctx| Value::Bool(delivered(ctx).is_some_and(|s| s.do_esi)),
        "Whether ESI instructions in the body are executed.",
    )
    .set(DELIVERED, |ctx, value| {
        let state = delivered_mut(ctx)?;
        if state.filters.is_some() {
            return Err(fixed("resp", "do_esi"));
        }
        state.do_esi = value.is_true();
        Ok(())
    })
    .since_41(),
    deliver(
        "resp.filters",
        Type::String,
        |ctx| Value::String(Some(deliver_filters(ctx))),
        "Filters for the body on its way to the client.",
    )
    .set(DELIVERED, |ctx, value| {
        delivered_mut(ctx)?.filters = Some(value.into_bytes().unwrap_or_default());
        Ok(())
    }),
    deliver(
        "resp.is_streaming",
        Type::Bool,
        |ctx| Value::Bool(delivered(ctx).is_some_and(|s| s.is_streaming)),
        "Whether the body is still arriving from the backend.",
    ),
    text!("resp.proto", DELIVERED, |ctx| ctx.resp.as_ref().map(resp_proto), PROTO)
        .set(DELIVERED, |ctx, value| {
            delivered_mut(ctx)?.proto = Some(headers::line_part("resp.proto", value)?);
            Ok(())
        })
        .until_40(),
    text!("resp.proto", DELIVERED, |ctx| ctx.resp.as_ref().map(resp_proto), PROTO).since_41(),
    text!(
        "resp.reason",
        DELIVERED,
        |ctx| ctx.resp.as_ref().map(|r| reason(r.head, r.state.status)),
        REASON,
    )
    .set(DELIVERED, |ctx, value| {
        let resp = ctx.resp.as_mut().ok_or_else(|| missing("resp"))?;
        resp.head.reason = headers::line_part("resp.reason", value)?.into_vec();
        resp.head.no_reason = false;
        Ok(())
    }),
    deliver(
        "resp.status",
        Type::Int,
        |ctx| Value::Int(delivered(ctx).map_or(0, |s| s.status.into())),
        STATUS,
    )
    .set(DELIVERED, |ctx, value| {
        let resp = ctx.resp.as_mut().ok_or_else(|| missing("resp"))?;
        resp.state.status = headers::set_status(resp.head, "resp", value.int())?;
        Ok(())
    }),
    deliver(
        "resp.time",
        Type::Time,
        |ctx| Value::Time(delivered(ctx).map_or(0.0, |s| s.time)),
        "Time at which the response began.",
    ),
];

const PROTO: &str = "The protocol of the status line.";
const REASON: &str = "The reason phrase of the status line.";
const STATUS: &str = "The status code, at most 65535. Only its last three digits are sent. Setting \
                      it also sets the standard reason phrase.";

/// Appends to the body of a synthetic response: `synthetic(...)`, `set resp.body += ...`. `place`
/// is `beresp` or `resp`.
///
/// # Errors
/// If there is no synthetic response.
pub fn add_to_body(
    ctx: &mut Ctx<'_>,
    message: VclMessage,
    value: Value,
) -> Result<(), ProgramFailure> {
    let more = value.into_bytes().unwrap_or_default();
    body(ctx, message)?.extend_from_slice(&more);
    Ok(())
}

fn set_body(ctx: &mut Ctx<'_>, message: VclMessage, value: Value) -> Result<(), ProgramFailure> {
    body(ctx, message)?.clear();
    add_to_body(ctx, message, value)
}

fn body<'c>(ctx: &'c mut Ctx<'_>, message: VclMessage) -> Result<&'c mut Vec<u8>, ProgramFailure> {
    match message {
        VclMessage::Beresp => Ok(&mut fetched_mut(ctx)?.body),
        VclMessage::Resp => Ok(&mut delivered_mut(ctx)?.body),
        _ => Err(missing("a body")),
    }
}

fn fetched<'c>(ctx: &'c Ctx<'_>) -> Option<&'c BerespState> {
    ctx.beresp.as_ref().map(|beresp| &*beresp.state)
}

fn fetched_mut<'c>(ctx: &'c mut Ctx<'_>) -> Result<&'c mut BerespState, ProgramFailure> {
    ctx.beresp.as_mut().map(|beresp| &mut *beresp.state).ok_or_else(|| missing("beresp"))
}

fn delivered<'c>(ctx: &'c Ctx<'_>) -> Option<&'c RespState> {
    ctx.resp.as_ref().map(|resp| &*resp.state)
}

fn delivered_mut<'c>(ctx: &'c mut Ctx<'_>) -> Result<&'c mut RespState, ProgramFailure> {
    ctx.resp.as_mut().map(|resp| &mut *resp.state).ok_or_else(|| missing("resp"))
}

fn beresp_proto<'c>(beresp: &'c Beresp<'_>) -> &'c [u8] {
    beresp.state.proto.as_deref().unwrap_or_else(|| headers::version(beresp.head.version))
}

fn resp_proto<'c>(resp: &'c Resp<'_>) -> &'c [u8] {
    resp.state.proto.as_deref().unwrap_or_else(|| headers::version(resp.head.version))
}

fn reason(head: &Response, status: u16) -> &[u8] {
    match &head.reason[..] {
        b"" if !head.no_reason => status::reason(status).as_bytes(),
        own => own,
    }
}

/// Sets one of `beresp.do_*`; an error once the filters are set.
fn switch(
    ctx: &mut Ctx<'_>,
    name: &str,
    value: &Value,
    field: impl Fn(&mut BerespState) -> &mut bool,
) -> Result<(), ProgramFailure> {
    let state = fetched_mut(ctx)?;
    if state.filters.is_some() {
        return Err(fixed("beresp", name));
    }
    *field(state) = value.is_true();
    Ok(())
}

fn fixed(message: &str, name: &str) -> ProgramFailure {
    ProgramFailure::new(format!(
        "{message}.filters are already fixed, {message}.{name} is undefined"
    ))
}

/// `resp.filters` as set, or derived from request and response.
fn deliver_filters(ctx: &Ctx<'_>) -> Bytes {
    let Some(resp) = &ctx.resp else { return Bytes::new() };
    if let Some(filters) = &resp.state.filters {
        return filters.clone();
    }
    let mut filters = String::new();
    if resp.state.do_esi && ctx.obj.is_some_and(|obj| obj.can_esi) {
        filters.push_str(" esi");
    }
    let req = ctx.req.as_ref().map(|req| &*req.head);
    let coding = resp.head.headers.value(HeaderId::ContentEncoding);
    if coding.is_some_and(|coding| coding.eq_ignore_ascii_case(b"gzip"))
        && !req.is_some_and(|req| heads::takes_gzip(&req.headers))
    {
        filters.push_str(" gunzip");
    }
    if resp.state.status == 200 && req.is_some_and(|req| req.headers.contains(HeaderId::Range)) {
        filters.push_str(" range");
    }
    filters.into()
}
