//! VMOD `purge`: purges by the request's key, from `vcl_hit` and `vcl_miss` only.

use crate::failure::ProgramFailure;
use crate::state::ctx::Ctx;
use crate::state::environment::PurgeMode;
use crate::state::value::Value;
use crate::sub::{Sub, Subs};
use crate::types::Type;
use crate::vmod::{Function, Module};
use crate::vmods::args::{Args, number};

/// The module.
pub static MODULE: Module = Module {
    name: "purge",
    about: "Purges all variants of the requested object, hard or soft. Call it from both `vcl_hit` \
            and `vcl_miss`: stored variants may exist even if none matches the request.",
    functions: FUNCTIONS,
    classes: &[],
    refused: &[],
};

/// Subroutines with a key that has been looked up.
const FROM: Subs = Sub::Hit.only().and(Sub::Miss.only());

const FUNCTIONS: &[Function] = &[
    Function {
        name: "hard",
        about: "Removes the objects and returns their number.",
        returns: Type::Int,
        params: &[],
        from: FROM,
        call: |ctx, _| purge(ctx, PurgeMode::Hard),
    },
    Function {
        name: "soft",
        about: "Sets the objects' TTL, grace and keep in seconds from now, and returns the number \
                of objects. A negative grace or keep is left unchanged. With 0 for all three, it \
                works as `hard`.",
        returns: Type::Int,
        params: &[
            number("ttl", Type::Duration, 0.0),
            number("grace", Type::Duration, -1.0),
            number("keep", Type::Duration, -1.0),
        ],
        from: FROM,
        call: |ctx, args| {
            let time = |at| args.real(at).filter(|seconds| *seconds >= 0.0);
            purge(ctx, soft(args.real(0).unwrap_or(0.0), time(1), time(2)))
        },
    },
];

/// The purge for these times; a hard one if no time is left.
fn soft(ttl: f64, grace: Option<f64>, keep: Option<f64>) -> PurgeMode {
    if ttl <= 0.0 && grace == Some(0.0) && keep == Some(0.0) {
        PurgeMode::Hard
    } else {
        PurgeMode::Soft { ttl: Some(ttl.max(0.0)), grace, keep }
    }
}

fn purge(ctx: &Ctx<'_>, mode: PurgeMode) -> Result<Value, ProgramFailure> {
    let key = ctx.req.as_ref().and_then(|req| req.key);
    let key = key.ok_or_else(|| ProgramFailure::new("purge: the request has no key yet"))?;
    let objects = ctx
        .environment
        .purge(key, mode)
        .map_err(|why| ProgramFailure::new(format!("purge: {why}")))?;
    if let Some(obj) = ctx.obj {
        let (ttl, grace, keep) = mode.times();
        for (time, new) in [(&obj.ttl, ttl), (&obj.grace, grace), (&obj.keep, keep)] {
            if let Some(new) = new {
                time.set(new);
            }
        }
    }
    Ok(Value::Int(objects.cast_signed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_times_at_nothing_is_a_hard_purge() {
        assert_eq!(soft(0.0, Some(0.0), Some(0.0)), PurgeMode::Hard);
        assert_eq!(
            soft(0.0, None, Some(0.0)),
            PurgeMode::Soft { ttl: Some(0.0), grace: None, keep: Some(0.0) }
        );
    }
}
