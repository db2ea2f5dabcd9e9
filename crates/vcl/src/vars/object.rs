//! Object variables: `obj` (the cached object) and `obj_stale` (the object that a backend has
//! revalidated). Neither can be set.

use super::var::{StringGetter, Var, VariableGetter, string};
use crate::headers;
use crate::rules::status;
use crate::state::ctx::{Ctx, Obj};
use crate::state::value::Value;
use crate::sub::{Sub, Subs};
use crate::types::Type;

const HIT_OR_DELIVER: Subs = Sub::Hit.only().and(Sub::Deliver.only());
const HIT: Subs = Sub::Hit.only();
const REFRESH: Subs = Sub::BackendRefresh.only();

/// A variable of a stored object, with its name and its subroutines.
#[derive(Clone, Copy)]
struct Fact {
    kind: Type,
    get: VariableGetter,
    about: &'static str,
}

impl Fact {
    const fn of(kind: Type, get: VariableGetter, about: &'static str) -> Self {
        Self { kind, get, about }
    }

    const fn called(self, name: &'static str, read: Subs) -> Var {
        Var::read(name, self.kind, read, self.get, self.about)
    }
}

const AGE: Fact = Fact::of(
    Type::Duration,
    |ctx| Value::Duration(number(ctx, |obj| obj.age)),
    "The object's age.",
);
const CAN_ESI: Fact = Fact::of(
    Type::Bool,
    |ctx| Value::Bool(ctx.obj.is_some_and(|obj| obj.can_esi)),
    "Whether the body was parsed for ESI instructions when it was stored.",
);
const GRACE: Fact = Fact::of(
    Type::Duration,
    |ctx| Value::Duration(number(ctx, |obj| obj.grace.get())),
    "Time after the TTL in which the object may be delivered while a fetch renews it.",
);
const HITS: Fact = Fact::of(
    Type::Int,
    |ctx| Value::Int(ctx.obj.map_or(0, |obj| obj.hits.into())),
    "Number of hits of the object. In `vcl_deliver`, 0 if the object has just been fetched.",
);
const KEEP: Fact = Fact::of(
    Type::Duration,
    |ctx| Value::Duration(number(ctx, |obj| obj.keep.get())),
    "Time after grace in which the object is kept for revalidation.",
);
const STATUS: Fact = Fact::of(
    Type::Int,
    |ctx| Value::Int(ctx.obj.map_or(0, |obj| obj.status.into())),
    "The status code.",
);
const STORAGE: Fact = Fact::of(
    Type::Stevedore,
    |ctx| Value::Stevedore(ctx.obj.and_then(|obj| obj.storage.cloned())),
    "The storage of the object.",
);
const TIME: Fact = Fact::of(
    Type::Time,
    |ctx| Value::Time(number(ctx, |obj| obj.time)),
    "Time at which the origin generated the object: about `now - obj.age`.",
);
const TTL: Fact = Fact::of(
    Type::Duration,
    |ctx| Value::Duration(number(ctx, |obj| obj.ttl.get())),
    "The remaining TTL. Negative if the object is stale.",
);
const UNCACHEABLE: Fact = Fact::of(
    Type::Bool,
    |ctx| Value::Bool(ctx.obj.is_some_and(|obj| obj.uncacheable)),
    "Whether lookups cannot find the object, because it is from a pass, a hit-for-pass or a \
     hit-for-miss.",
);
const IS_VALID: Fact = Fact::of(
    Type::Bool,
    |ctx| Value::Bool(ctx.obj.is_some_and(|obj| obj.is_valid)),
    "Whether the object is still valid: no purge or ban has removed it since the request to the \
     backend.",
);

/// The protocol of a stored status line.
const PROTO: StringGetter = |ctx| ctx.obj.map(|obj| headers::stored_line(obj.head).0);
/// Reason phrase of the stored status line.
const REASON: StringGetter = |ctx| {
    let obj = ctx.obj?;
    let reason = headers::stored_line(obj.head).1;
    Some(if reason.is_empty() { status::reason(obj.status).as_bytes() } else { reason })
};

/// A part of the stored status line.
const fn line(
    name: &'static str,
    read: Subs,
    get: VariableGetter,
    part: StringGetter,
    about: &'static str,
) -> Var {
    Var::text(name, read, get, part, about)
}

const ITS_PROTO: &str = "The protocol of the stored response.";
const ITS_REASON: &str = "The reason phrase of the status line.";

/// Variables of `obj`.
pub(super) const OBJ: &[Var] = &[
    AGE.called("obj.age", HIT_OR_DELIVER),
    CAN_ESI.called("obj.can_esi", HIT_OR_DELIVER),
    GRACE.called("obj.grace", HIT_OR_DELIVER),
    HITS.called("obj.hits", HIT_OR_DELIVER),
    KEEP.called("obj.keep", HIT_OR_DELIVER),
    line("obj.proto", HIT, |ctx| string(PROTO(ctx)), PROTO, ITS_PROTO),
    line("obj.reason", HIT, |ctx| string(REASON(ctx)), REASON, ITS_REASON),
    STATUS.called("obj.status", HIT),
    STORAGE.called("obj.storage", HIT_OR_DELIVER),
    TIME.called("obj.time", HIT_OR_DELIVER),
    TTL.called("obj.ttl", HIT_OR_DELIVER),
    UNCACHEABLE.called("obj.uncacheable", Sub::Deliver.only()),
];

/// Variables of `obj_stale`.
pub(super) const OBJ_STALE: &[Var] = &[
    AGE.called("obj_stale.age", REFRESH),
    CAN_ESI.called("obj_stale.can_esi", REFRESH),
    GRACE.called("obj_stale.grace", REFRESH),
    HITS.called("obj_stale.hits", REFRESH),
    IS_VALID.called("obj_stale.is_valid", REFRESH),
    KEEP.called("obj_stale.keep", REFRESH),
    line("obj_stale.proto", REFRESH, |ctx| string(PROTO(ctx)), PROTO, ITS_PROTO),
    line("obj_stale.reason", REFRESH, |ctx| string(REASON(ctx)), REASON, ITS_REASON),
    STATUS.called("obj_stale.status", REFRESH),
    STORAGE.called("obj_stale.storage", REFRESH),
    TIME.called("obj_stale.time", REFRESH),
    TTL.called("obj_stale.ttl", REFRESH),
    UNCACHEABLE.called("obj_stale.uncacheable", REFRESH),
];

fn number(ctx: &Ctx<'_>, of: impl Fn(&Obj<'_>) -> f64) -> f64 {
    ctx.obj.map_or(0.0, of)
}
