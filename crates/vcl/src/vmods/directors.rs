//! VMOD `directors`: backends that select others. Each class is one kind of director; all but
//! `shard` share a member list. A director resolves at the end of `vcl_backend_fetch`, possibly
//! several times, and never waits. Its choices equal Varnish's wherever observable: a key leads to
//! one backend on both.

mod list;
mod member;
mod object;
mod param;
mod ring;
mod shard;
mod simple;

use crate::state::value::Value;
use crate::sub::Subs;
use crate::types::Type;
use crate::vmod::{Function, Module};
use crate::vmods::args::{Args, required_parameter};

/// The module.
pub static MODULE: Module = Module {
    name: "directors",
    about: "Backends that select one of several other backends. A director can be a backend of \
            another director.",
    functions: FUNCTIONS,
    classes: &[
        simple::ROUND_ROBIN,
        simple::FALLBACK,
        simple::RANDOM,
        simple::HASH,
        shard::CLASS,
        param::CLASS,
    ],
    refused: &[],
};

const FUNCTIONS: &[Function] = &[Function {
    name: "lookup",
    about: "The backend or director with this name, or no backend.",
    returns: Type::Backend,
    params: &[required_parameter("", Type::String)],
    from: Subs::HOUSEKEEPING,
    call: |ctx, args| {
        let name = args.bytes(0);
        let mut all = ctx.instance.backends().into_iter();
        let found = all.find(|backend| backend.name().as_bytes() == name);
        Ok(Value::Backend(found.unwrap_or_default()))
    },
}];

#[cfg(test)]
mod tests;
