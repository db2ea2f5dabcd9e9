//! `obj`: what was found in the cache. It cannot be changed.

use super::{Var, text};
use crate::ctx::{Ctx, Obj};
use crate::headers;
use crate::sub::{Sub, Subs};
use crate::types::Type;
use crate::value::Value;

const HIT_OR_DELIVER: Subs = Sub::Hit.only().and(Sub::Deliver.only());

/// `obj`
pub(super) const OBJ: &[Var] = &[
    Var::read(
        "obj.age",
        Type::Duration,
        HIT_OR_DELIVER,
        |ctx| Value::Duration(number(ctx, |obj| obj.age)),
        "The object's age.",
    ),
    Var::read(
        "obj.can_esi",
        Type::Bool,
        HIT_OR_DELIVER,
        |ctx| Value::Bool(ctx.obj.is_some_and(|obj| obj.can_esi)),
        "Whether ESI instructions were looked for when it was stored.",
    ),
    Var::read(
        "obj.grace",
        Type::Duration,
        HIT_OR_DELIVER,
        |ctx| Value::Duration(number(ctx, |obj| obj.grace.get())),
        "How long beyond its time to live it may be delivered while a new one is fetched.",
    ),
    Var::read(
        "obj.hits",
        Type::Int,
        HIT_OR_DELIVER,
        |ctx| Value::Int(ctx.obj.map_or(0, |obj| obj.hits.into())),
        "How many hits it has had. In `vcl_deliver`, 0 for what has just been fetched.",
    ),
    Var::read(
        "obj.keep",
        Type::Duration,
        HIT_OR_DELIVER,
        |ctx| Value::Duration(number(ctx, |obj| obj.keep.get())),
        "How long beyond its grace it is kept to be revalidated.",
    ),
    text!(
        "obj.proto",
        Sub::Hit.only(),
        |ctx| ctx.obj.map(|obj| headers::stored_line(obj.head).0),
        "The protocol it came in.",
    ),
    text!(
        "obj.reason",
        Sub::Hit.only(),
        |ctx| {
            let obj = ctx.obj?;
            let reason = headers::stored_line(obj.head).1;
            Some(if reason.is_empty() { headers::reason(obj.status).as_bytes() } else { reason })
        },
        "The words of its status line.",
    ),
    Var::read(
        "obj.status",
        Type::Int,
        Sub::Hit.only(),
        |ctx| Value::Int(ctx.obj.map_or(0, |obj| obj.status.into())),
        "Its status.",
    ),
    Var::read(
        "obj.storage",
        Type::Stevedore,
        HIT_OR_DELIVER,
        |ctx| Value::Stevedore(ctx.obj.and_then(|obj| obj.storage.cloned())),
        "Where it is stored.",
    ),
    Var::read(
        "obj.time",
        Type::Time,
        HIT_OR_DELIVER,
        |ctx| Value::Time(number(ctx, |obj| obj.time)),
        "When the server it comes from made it: about `now - obj.age`.",
    ),
    Var::read(
        "obj.ttl",
        Type::Duration,
        HIT_OR_DELIVER,
        |ctx| Value::Duration(number(ctx, |obj| obj.ttl.get())),
        "What is left of its time to live; negative when it is over.",
    ),
    Var::read(
        "obj.uncacheable",
        Type::Bool,
        Sub::Deliver.only(),
        |ctx| Value::Bool(ctx.obj.is_some_and(|obj| obj.uncacheable)),
        "Whether it is none that could be found: of a pass, a hit-for-pass or a hit-for-miss.",
    ),
];

fn number(ctx: &Ctx<'_>, of: impl Fn(&Obj<'_>) -> f64) -> f64 {
    ctx.obj.map_or(0.0, of)
}
