//! VMOD `var`: variables of a task, and global strings that all programs share. Globals never
//! exceed the limits on their number and bytes, even if a program names them by request data.

use std::net::SocketAddr;

use bytes::Bytes;

use crate::failure::ProgramFailure;
use crate::state::backend::Backend;
use crate::state::ctx::Ctx;
use crate::state::value::Value;
use crate::sub::Subs;
use crate::tag::Tag;
use crate::types::Type;
use crate::vmod::{Function, Module, Parameter};
use crate::vmods::args::{Args, required_parameter};

/// The module.
pub static MODULE: Module = Module {
    name: "var",
    about: "Typed variables of one request or backend request, and strings that all requests and \
            programs share (`global_`). A variable that is missing or has another type is 0, no \
            string, no address, or no backend.",
    functions: FUNCTIONS,
    classes: &[],
    refused: &[],
};

const KEY: &[Parameter] = &[required_parameter("key", Type::String)];

const fn setter(name: &'static str, params: &'static [Parameter]) -> Function {
    Function {
        name,
        about: "Sets the request's variable with this name. A variable has one type at a time.",
        returns: Type::Void,
        params,
        from: Subs::ALL,
        call: set,
    }
}

const fn getter(name: &'static str, returns: Type, call: crate::vmod::Call) -> Function {
    Function {
        name,
        about: "The request's variable with this name, if it has this type.",
        returns,
        params: KEY,
        from: Subs::ALL,
        call,
    }
}

const STRING: &[Parameter] =
    &[required_parameter("key", Type::String), required_parameter("value", Type::String)];

const FUNCTIONS: &[Function] = &[
    setter("set", STRING),
    getter("get", Type::String, string),
    Function {
        name: "global_set",
        about: "Sets a variable that all requests share. No string removes it. Beyond the limit \
                `vcl_globals`, a new variable is not set.",
        returns: Type::Void,
        params: STRING,
        from: Subs::ALL,
        call: set_global,
    },
    Function {
        name: "global_get",
        about: "The variable that all requests share. No string if there is none.",
        returns: Type::String,
        params: &[required_parameter("key", Type::String)],
        from: Subs::ALL,
        call: |ctx, args| Ok(Value::String(ctx.environment.shared().globals.get(args.bytes(0)))),
    },
    setter(
        "set_int",
        &[required_parameter("key", Type::String), required_parameter("value", Type::Int)],
    ),
    getter("get_int", Type::Int, |ctx, args| {
        let found = if let Some(Variable::Int(n)) = get(ctx, args) { *n } else { 0 };
        Ok(Value::Int(found))
    }),
    setter("set_string", STRING),
    getter("get_string", Type::String, string),
    setter(
        "set_real",
        &[required_parameter("key", Type::String), required_parameter("value", Type::Real)],
    ),
    getter("get_real", Type::Real, |ctx, args| {
        let found = if let Some(Variable::Real(n)) = get(ctx, args) { *n } else { 0.0 };
        Ok(Value::Real(found))
    }),
    setter(
        "set_duration",
        &[required_parameter("key", Type::String), required_parameter("value", Type::Duration)],
    ),
    getter("get_duration", Type::Duration, |ctx, args| {
        let found = if let Some(Variable::Duration(n)) = get(ctx, args) { *n } else { 0.0 };
        Ok(Value::Duration(found))
    }),
    setter(
        "set_ip",
        &[required_parameter("key", Type::String), required_parameter("value", Type::Ip)],
    ),
    getter("get_ip", Type::Ip, |ctx, args| {
        let found = if let Some(Variable::Ip(ip)) = get(ctx, args) { *ip } else { None };
        Ok(Value::Ip(found))
    }),
    setter(
        "set_backend",
        &[required_parameter("key", Type::String), required_parameter("value", Type::Backend)],
    ),
    getter("get_backend", Type::Backend, |ctx, args| {
        let found = if let Some(Variable::Backend(backend)) = get(ctx, args) {
            backend.clone()
        } else {
            Backend::None
        };
        Ok(Value::Backend(found))
    }),
    Function {
        name: "clear",
        about: "Removes all variables of the request.",
        returns: Type::Void,
        params: &[],
        from: Subs::ALL,
        call: |ctx, _| {
            vars(ctx).0.clear();
            Ok(Value::Void)
        },
    },
];

/// Variables of a task; few, so the search is linear.
#[derive(Debug, Default)]
struct Vars(Vec<(Bytes, Variable)>);

#[derive(Debug)]
enum Variable {
    String(Option<Bytes>),
    Int(i64),
    Real(f64),
    Duration(f64),
    Ip(Option<SocketAddr>),
    Backend(Backend),
}

fn vars<'a>(ctx: &'a mut Ctx<'_>) -> &'a mut Vars {
    ctx.task.keep("var", 0)
}

fn get<'a>(ctx: &'a mut Ctx<'_>, args: &[Value]) -> Option<&'a Variable> {
    let key = args.string(0)?;
    vars(ctx).0.iter().find(|(name, _)| name == key).map(|(_, kept)| kept)
}

fn string(ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    let found = if let Some(Variable::String(text)) = get(ctx, args) { text.clone() } else { None };
    Ok(Value::String(found))
}

fn set(ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    let (Some(key), Some(value)) = (args.string(0), args.get(1)) else { return Ok(Value::Void) };
    let kept = match value {
        // As in Varnish, an absent string becomes an empty one.
        Value::String(text) => Variable::String(Some(text.clone().unwrap_or_default())),
        Value::Int(n) => Variable::Int(*n),
        Value::Real(n) => Variable::Real(*n),
        Value::Duration(n) => Variable::Duration(*n),
        Value::Ip(ip) => Variable::Ip(*ip),
        Value::Backend(backend) => Variable::Backend(backend.clone()),
        _ => return Err(ProgramFailure::new("var: a value of an unsupported type")),
    };
    let vars = &mut vars(ctx).0;
    match vars.iter_mut().find(|(name, _)| name == key) {
        Some((_, old)) => *old = kept,
        None => vars.push((key.clone(), kept)),
    }
    Ok(Value::Void)
}

fn set_global(ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    let Some(key) = args.string(0) else { return Ok(Value::Void) };
    if let Err(limit) = ctx.environment.shared().globals.set(key, args.string(1)) {
        ctx.note_limit(limit);
        let line = format!("var.global_set: as much as {} allows", limit.name());
        ctx.environment.log(Tag::Error, line.as_bytes());
    }
    Ok(Value::Void)
}

#[cfg(test)]
mod tests {
    use base::{Limit, Limits};

    use crate::sub::Sub;
    use crate::testing::SubroutineFixture;

    #[test]
    fn a_global_too_many_is_not_set_and_counted() {
        let text = "vcl 4.1; import var; backend none_here none; sub vcl_recv { \
                    var.global_set(\"a\", \"1\"); var.global_set(\"b\", \"2\"); }";
        let mut fixture = SubroutineFixture::of(text).expect("it compiles");
        fixture.environment.shared.set_limits(&Limits { vcl_globals: 1, ..Limits::default() });
        fixture.run(Sub::Recv);
        assert_eq!(*fixture.environment.limits.borrow(), [Limit::VclGlobals]);
        assert_eq!(fixture.environment.shared.globals.get(b"b"), None);
    }
}
