//! VMOD `xkey`: purges by surrogate keys, which responses carry in their `xkey` header.

use message::tags;

use crate::failure::ProgramFailure;
use crate::state::ctx::Ctx;
use crate::state::value::Value;
use crate::sub::Subs;
use crate::types::Type;
use crate::vmod::{Function, Module, Parameter};
use crate::vmods::args::{Args, required_parameter};

/// The module.
pub static MODULE: Module = Module {
    name: "xkey",
    about: "Purges by surrogate keys from the response field `xkey` and the other fields for \
            surrogate keys that Larder knows. Spaces and commas separate keys.",
    functions: FUNCTIONS,
    classes: &[],
    refused: &[],
};

const PARAMS: &[Parameter] = &[required_parameter("keys", Type::String)];

const FUNCTIONS: &[Function] = &[
    Function {
        name: "purge",
        about: "Removes every object with one of these keys and returns their number. An object \
                counts once for each pair of one of its keys and an equal argument.",
        returns: Type::Int,
        params: PARAMS,
        from: Subs::BOTH,
        call: |ctx, args| purge(ctx, args, false),
    },
    Function {
        name: "softpurge",
        about: "Makes every fresh object with one of these keys stale and returns their number. \
                Grace and keep remain.",
        returns: Type::Int,
        params: PARAMS,
        from: Subs::BOTH,
        call: |ctx, args| purge(ctx, args, true),
    },
];

fn purge(ctx: &Ctx<'_>, args: &[Value], soft: bool) -> Result<Value, ProgramFailure> {
    let keys: Vec<&[u8]> = tags::plain(args.bytes(0)).collect();
    let count = match keys.as_slice() {
        [] => 0,
        keys => {
            let purged = ctx.environment.purge_keys(keys, soft);
            purged.map_err(|why| ProgramFailure::new(format!("xkey: {why}")))?
        }
    };
    Ok(Value::Int(count.cast_signed()))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::sub::Sub;
    use crate::testing::SubroutineFixture;

    #[test]
    fn keys_are_purged_as_they_are_written() {
        let mut fixture = SubroutineFixture::bare();
        let keys = Value::String(Some(Bytes::from_static(b"b, a  b,,c\ta")));
        for (soft, function) in [(false, &FUNCTIONS[0]), (true, &FUNCTIONS[1])] {
            let count = (function.call)(&mut fixture.ctx(Sub::Recv), std::slice::from_ref(&keys));
            assert!(matches!(count, Ok(Value::Int(5))));
            let purged = fixture.environment.key_purges.borrow_mut().pop();
            let keys = [b"b", b"a", b"b", b"c", b"a"].map(|key| key.to_vec());
            assert_eq!(purged, Some((keys.to_vec(), soft)));
        }
    }

    #[test]
    fn no_keys_purge_nothing() {
        let mut fixture = SubroutineFixture::bare();
        let keys = Value::String(Some(Bytes::from_static(b" , ")));
        let count = (FUNCTIONS[0].call)(&mut fixture.ctx(Sub::Recv), &[keys]);
        assert!(matches!(count, Ok(Value::Int(0))));
        assert!(fixture.environment.key_purges.borrow().is_empty());
    }
}
