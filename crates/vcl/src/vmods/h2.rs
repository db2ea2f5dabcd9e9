//! VMOD `h2`: HTTP/2 on the client's connection. It only reads.

use message::Version;

use crate::state::value::Value;
use crate::sub::Subs;
use crate::types::Type;
use crate::vmod::{Function, Module, UnsupportedFunction};

/// The module.
pub static MODULE: Module = Module {
    name: "h2",
    about: "HTTP/2 on the client connection. Since Varnish 7.5.",
    functions: &[Function {
        name: "is",
        about: "Whether the request came over HTTP/2.",
        returns: Type::Bool,
        params: &[],
        from: Subs::CLIENT,
        call: |ctx, _| {
            let is_h2 = ctx.req.as_ref().is_some_and(|req| req.head.version == Version::Http2);
            Ok(Value::Bool(is_h2))
        },
    }],
    classes: &[],
    refused: REFUSED,
};

const REFUSED: &[UnsupportedFunction] = &[
    UnsupportedFunction { name: "rapid_reset", why: WHY },
    UnsupportedFunction { name: "rapid_reset_limit", why: WHY },
    UnsupportedFunction { name: "rapid_reset_period", why: WHY },
    UnsupportedFunction { name: "rapid_reset_budget", why: WHY },
];

const WHY: &str = "has no meaning: the limit `h2_resets` bounds the requests that a client cancels, \
                   alike on all connections";
