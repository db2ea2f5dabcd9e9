//! `std`: strings, conversions, files and the log.

use crate::ctx::{Ctx, Tag};
use crate::sub::Subs;
use crate::types::Type;
use crate::value::{Failure, Value};
use crate::vmod::{Function, Kind, Module, Param};

/// The module.
pub const MODULE: Module = Module {
    name: "std",
    about: "Strings, conversions, files and the log.",
    functions: &[
        Function {
            name: "tolower",
            about: "The string in lower case.",
            returns: Type::String,
            params: &[Param { name: "s", kind: Kind::Of(Type::String), default: None }],
            from: Subs::ALL,
            call: |_, args| Ok(lower(args)),
        },
        Function {
            name: "log",
            about: "Writes a line to the log (`VCL_Log`).",
            returns: Type::Void,
            params: &[Param { name: "s", kind: Kind::Of(Type::String), default: None }],
            from: Subs::ALL,
            call: log,
        },
    ],
    classes: &[],
};

fn lower(args: &[Value]) -> Value {
    let [Value::String(Some(s)), ..] = args else { return Value::String(None) };
    Value::String(Some(s.to_ascii_lowercase().into()))
}

fn log(ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, Failure> {
    let [Value::String(text), ..] = args else { return Ok(Value::Void) };
    ctx.world.log(Tag::Log, text.as_deref().unwrap_or_default());
    Ok(Value::Void)
}
