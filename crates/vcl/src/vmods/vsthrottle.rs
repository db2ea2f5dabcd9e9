//! VMOD `vsthrottle`: rate limits by token buckets, shared by all programs and requests. Unused
//! buckets are dropped to stay within `throttle_buckets`, first those least likely to deny.

use base::Limit;
use sha2::{Digest, Sha256};

use crate::shared::buckets::{Bucket, BucketId, Rate};
use crate::state::ctx::Ctx;
use crate::state::value::Value;
use crate::sub::Subs;
use crate::types::Type;
use crate::vmod::{Function, Module, Parameter};
use crate::vmods::args::{Args, number, required_parameter};

/// The module.
pub static MODULE: Module = Module {
    name: "vsthrottle",
    about: "Limits how often something may happen: `limit` times in `period`. Each token bucket \
            holds at most `limit` tokens. Key, limit, period and block together identify a bucket.",
    functions: FUNCTIONS,
    classes: &[],
    refused: &[],
};

const PARAMS: &[Parameter] = &[
    required_parameter("key", Type::String),
    required_parameter("limit", Type::Int),
    required_parameter("period", Type::Duration),
    number("block", Type::Duration, 0.0),
];

const FUNCTIONS: &[Function] = &[
    Function {
        name: "is_denied",
        about: "Takes a token. Returns true if none was left. With a `block`, all further calls \
                are then denied for that time. A missing key is always denied.",
        returns: Type::Bool,
        params: PARAMS,
        from: Subs::ALL,
        call: |ctx, args| {
            let Some((id, rule)) = bucket(args) else { return Ok(Value::Bool(true)) };
            let now = ctx.now;
            let denied = with(ctx, id, rule, |bucket| bucket.take(rule, now));
            Ok(Value::Bool(denied))
        },
    },
    Function {
        name: "return_token",
        about: "Returns a token to the bucket, so that a bucket can count concurrent operations.",
        returns: Type::Void,
        params: PARAMS,
        from: Subs::ALL,
        call: |ctx, args| {
            let Some((id, rule)) = bucket(args) else { return Ok(Value::Void) };
            with(ctx, id, rule, |bucket| bucket.put_back(rule));
            Ok(Value::Void)
        },
    },
    Function {
        name: "remaining",
        about: "Number of tokens left.",
        returns: Type::Int,
        params: PARAMS,
        from: Subs::ALL,
        call: |ctx, args| {
            let Some((id, rule)) = bucket(args) else { return Ok(Value::Int(0)) };
            let now = ctx.now;
            Ok(Value::Int(with(ctx, id, rule, |bucket| bucket.tokens(rule, now))))
        },
    },
    Function {
        name: "blocked",
        about: "Time for which calls are still denied. 0 s if they are not.",
        returns: Type::Duration,
        params: &[
            required_parameter("key", Type::String),
            required_parameter("limit", Type::Int),
            required_parameter("period", Type::Duration),
            required_parameter("block", Type::Duration),
        ],
        from: Subs::ALL,
        call: |ctx, args| {
            let Some((id, rule)) = bucket(args) else { return Ok(Value::Duration(0.0)) };
            let until = with(ctx, id, rule, |bucket| bucket.blocked_until);
            Ok(Value::Duration((until - ctx.now).max(0.0)))
        },
    },
];

/// Runs `run` on a bucket.
fn with<T>(ctx: &Ctx<'_>, id: BucketId, rule: Rate, run: impl FnOnce(&mut Bucket) -> T) -> T {
    let (made, forgot) = ctx.environment.shared().buckets.with(id, rule, ctx.now, run);
    if forgot {
        ctx.environment.limit(Limit::ThrottleBuckets);
    }
    made
}

/// The bucket of a call; `None` without a key.
fn bucket(args: &[Value]) -> Option<(BucketId, Rate)> {
    let key = args.string(0)?;
    let rule = Rate {
        limit: args.int(1)?.max(0),
        period: args.real(2)?,
        block: args.real(3).unwrap_or(0.0),
    };
    let mut hash = Sha256::new();
    hash.update(key);
    hash.update(rule.limit.to_le_bytes());
    hash.update(rule.period.to_le_bytes());
    hash.update(rule.block.to_le_bytes());
    let digest: [u8; 32] = hash.finalize().into();
    Some((*digest.first_chunk().expect("a digest has 32 bytes"), rule))
}
