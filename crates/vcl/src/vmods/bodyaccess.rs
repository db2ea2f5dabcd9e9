//! VMOD `bodyaccess`: the request body, if `std.cache_req_body` has cached it. It never waits for a
//! body.

use crate::failure::ProgramFailure;
use crate::state::ctx::Ctx;
use crate::state::value::Value;
use crate::sub::{Sub, Subs};
use crate::tag::Tag;
use crate::types::Type;
use crate::vmod::{Function, Module};
use crate::vmods::args::{Args, number, required_parameter, text};

/// The module.
pub static MODULE: Module = Module {
    name: "bodyaccess",
    about: "Access to the request body after `std.cache_req_body` has stored it. Before that, the \
            body is empty and the log gets an error.",
    functions: FUNCTIONS,
    classes: &[],
    refused: &[],
};

const FUNCTIONS: &[Function] = &[
    Function {
        name: "rematch_req_body",
        about: "Returns 1 if the body matches, 0 if it does not, and -1 if it is not stored.",
        returns: Type::Int,
        params: &[required_parameter("re", Type::Regex)],
        from: Subs::CLIENT,
        call: |ctx, args| {
            let (Some(body), Some(number)) = (body(ctx), args.regex(0)) else {
                return Ok(Value::Int(-1));
            };
            Ok(Value::Int(i64::from(ctx.instance.regex(number).is_match(body)?)))
        },
    },
    Function {
        name: "hash_req_body",
        about: "Adds the body to the key, in `vcl_hash`.",
        returns: Type::Void,
        params: &[],
        from: Sub::Hash.only(),
        call: |ctx, _| {
            if let Some(body) = body(ctx)
                && let Some(key) = &mut ctx.key
            {
                key.field(body);
            }
            Ok(Value::Void)
        },
    },
    Function {
        name: "len_req_body",
        about: "Length of the body in bytes. -1 if the body is not stored.",
        returns: Type::Int,
        params: &[],
        from: Subs::CLIENT,
        call: |ctx, _| Ok(Value::Int(body(ctx).map_or(-1, |body| body.len() as i64))),
    },
    Function {
        name: "log_req_body",
        about: "Writes the body to the log, `length` bytes per line. Each line begins with \
                `prefix`.",
        returns: Type::Void,
        params: &[text("prefix", ""), number("length", Type::Int, 200.0)],
        from: Subs::CLIENT,
        call: log,
    },
];

/// The body. The environment outlives the context, and so does the body.
fn body<'a>(ctx: &Ctx<'a>) -> Option<&'a [u8]> {
    let body = ctx.environment.body();
    if body.is_none() {
        ctx.environment.log(Tag::Error, b"Unbuffered req.body");
    }
    body
}

/// Most log lines of one body, so that a body cannot fill the log.
const LINES_MAX: usize = 1000;

fn log(ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    let Some(body) = body(ctx) else { return Ok(Value::Void) };
    let prefix = args.bytes(0);
    let length = args.int(1).and_then(|n| usize::try_from(n).ok()).filter(|n| *n > 0);
    let mut line = Vec::new();
    for piece in body.chunks(length.unwrap_or(200)).take(LINES_MAX) {
        line.clear();
        line.extend_from_slice(prefix);
        line.extend_from_slice(piece);
        ctx.environment.log(Tag::Debug, &line);
    }
    Ok(Value::Void)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SubroutineFixture;

    fn call(fixture: &mut SubroutineFixture, sub: Sub, name: &str, args: &[Value]) -> Value {
        let function = FUNCTIONS.iter().find(|f| f.name == name).expect("a function");
        (function.call)(&mut fixture.ctx(sub), args).expect("it answers")
    }

    #[test]
    fn a_body_that_was_kept_is_seen() {
        let mut fixture = SubroutineFixture::bare();
        fixture.environment.body = Some(b"hello".to_vec());
        assert!(matches!(call(&mut fixture, Sub::Recv, "len_req_body", &[]), Value::Int(5)));
        let args = [Value::String(Some("P:".into())), Value::Int(3)];
        call(&mut fixture, Sub::Recv, "log_req_body", &args);
        let lines = [(Tag::Debug, b"P:hel".to_vec()), (Tag::Debug, b"P:lo".to_vec())];
        assert_eq!(*fixture.environment.log.borrow(), lines);
        call(&mut fixture, Sub::Hash, "hash_req_body", &[]);
        assert_eq!(base::key_fields(fixture.key.bytes()).collect::<Vec<_>>(), [b"hello"]);
    }

    #[test]
    fn a_body_that_was_not_kept_is_an_error_in_the_log() {
        let mut fixture = SubroutineFixture::bare();
        assert!(matches!(call(&mut fixture, Sub::Recv, "len_req_body", &[]), Value::Int(-1)));
        assert_eq!(
            *fixture.environment.log.borrow(),
            [(Tag::Error, b"Unbuffered req.body".to_vec())]
        );
    }
}
