//! VMOD `header`: access to single lines of a repeated header. Unlike Varnish's VMOD it checks
//! names and values: an invalid line never gets into a message.

use std::sync::Arc;

use bytes::Bytes;
use message::header::is_token;
use message::{HeaderBlock, HeaderId};

use crate::failure::ProgramFailure;
use crate::headers;
use crate::regex::Regex;
use crate::state::ctx::Ctx;
use crate::state::value::{Header, Value, VclMessage};
use crate::sub::Subs;
use crate::types::Type;
use crate::vmod::{Function, Module};
use crate::vmods::args::{Args, owned, required_parameter, truth};
use crate::workspace::Workspace;

/// The module.
pub static MODULE: Module = Module {
    name: "header",
    about: "Header fields that occur more than once, such as `Set-Cookie`, one by one. An invalid \
            field is a failure.",
    functions: FUNCTIONS,
    classes: &[],
    refused: &[],
};

const FUNCTIONS: &[Function] = &[
    Function {
        name: "append",
        about: "Adds another field with this name.",
        returns: Type::Void,
        params: &[required_parameter("", Type::Header), required_parameter("", Type::String)],
        from: Subs::BOTH,
        call: |ctx, args| append(ctx, args.header(0), args.bytes(1)),
    },
    Function {
        name: "copy",
        about: "Copies each field with the first name to a field with the second name.",
        returns: Type::Void,
        params: &[required_parameter("", Type::Header), required_parameter("", Type::Header)],
        from: Subs::BOTH,
        call: |ctx, args| {
            for value in values(ctx, args.header(0)) {
                append(ctx, args.header(1), &value)?;
            }
            Ok(Value::Void)
        },
    },
    Function {
        name: "get",
        about: "The first matching value of the fields with this name. No string if none matches.",
        returns: Type::String,
        params: &[
            required_parameter("header", Type::Header),
            required_parameter("regex", Type::Regex),
        ],
        from: Subs::BOTH,
        call: |ctx, args| {
            let Some(re) = regex(ctx, args) else { return Ok(Value::String(None)) };
            for value in values(ctx, args.header(0)) {
                if matches(re, &value)? {
                    return Ok(owned(value));
                }
            }
            Ok(Value::String(None))
        },
    },
    Function {
        name: "remove",
        about: "Removes the fields with this name whose values match.",
        returns: Type::Void,
        params: &[
            required_parameter("header", Type::Header),
            required_parameter("regex", Type::Regex),
        ],
        from: Subs::BOTH,
        call: |ctx, args| {
            let (Some(re), Some(header)) = (regex(ctx, args), args.header(0)) else {
                return Ok(Value::Void);
            };
            let mut done = Ok(Value::Void);
            block_mut(ctx, header.message)?.retain(|field| {
                let is_it = field.name.eq_ignore_ascii_case(header.name.as_bytes());
                !is_it
                    || !matches(re, field.value).unwrap_or_else(|why| {
                        done = Err(why);
                        false
                    })
            });
            done
        },
    },
    Function {
        name: "regsub",
        about: "Replaces matches in every line of a head (`Name: value`): the first match of a \
                line, or all. `\\0` to `\\9` stand for the match and its groups. If a resulting \
                line is not a valid field, the call fails and the head is unchanged.",
        returns: Type::Void,
        params: &[
            required_parameter("", Type::Http),
            required_parameter("regex", Type::Regex),
            required_parameter("sub", Type::String),
            truth("all", false),
        ],
        from: Subs::BOTH,
        call: regsub,
    },
    Function {
        name: "dyn",
        about: "A header of a message by a string with its name, for the functions of this module. \
                Fails if the name is invalid.",
        returns: Type::Header,
        params: &[required_parameter("", Type::Http), required_parameter("", Type::String)],
        from: Subs::BOTH,
        call: named,
    },
];

/// Returns true if a field's value matches. An empty value never does.
fn matches(re: &Regex, value: &[u8]) -> Result<bool, ProgramFailure> {
    Ok(!value.is_empty() && re.is_match(value)?)
}

fn regex<'a>(ctx: &Ctx<'a>, args: &[Value]) -> Option<&'a Regex> {
    args.regex(1).map(|number| ctx.instance.regex(number))
}

/// The fields of a message, for changes.
fn block_mut<'a>(
    ctx: &'a mut Ctx<'_>,
    message: VclMessage,
) -> Result<&'a mut HeaderBlock, ProgramFailure> {
    headers::block_mut(ctx, message)
        .ok_or_else(|| ProgramFailure::new("header: this message cannot be changed here"))
}

/// All values of a header, in order.
fn values(ctx: &Ctx<'_>, header: Option<&Header>) -> Vec<Bytes> {
    let Some(header) = header else { return Vec::new() };
    let name = header.name.as_bytes();
    if header.message == VclMessage::Obj {
        let head = ctx.obj.map_or(&[][..], |obj| obj.head);
        return headers::stored_fields(head)
            .filter(|(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| Bytes::copy_from_slice(value))
            .collect();
    }
    let block = headers::block(ctx, header.message);
    block.map_or_else(Vec::new, |b| b.values_named(name).map(Bytes::copy_from_slice).collect())
}

fn append(
    ctx: &mut Ctx<'_>,
    header: Option<&Header>,
    value: &[u8],
) -> Result<Value, ProgramFailure> {
    let Some(header) = header else { return Ok(Value::Void) };
    if !headers::is_valid(value) {
        let value = value.escape_ascii();
        return Err(ProgramFailure::new(format!("Bad header {}: {value}", header.name)));
    }
    block_mut(ctx, header.message)?.push_as(header.id, header.name.as_bytes(), value);
    Ok(Value::Void)
}

fn regsub(ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    let (Some(message), Some(re)) = (args.message(0), regex(ctx, args)) else {
        return Ok(Value::Void);
    };
    let (with, all) = (args.bytes(2), args.truth(3).unwrap_or(false));
    // The context borrows the headers and the workspace together.
    let room = std::mem::replace(&mut ctx.task.workspace, Workspace::of(0));
    let done = block_mut(ctx, message).and_then(|old| {
        let replaced = |line: &[u8]| {
            let is_match = re.is_match(line)?;
            is_match.then(|| Ok(re.replace(line, with, all, &room)?.into_owned())).transpose()
        };
        if let Some(new) = rewritten(old, replaced)? {
            *old = new;
        }
        Ok(Value::Void)
    });
    ctx.task.workspace = room;
    done
}

/// The fields with each line replaced for which `rewrite` returns one; `None` if it returns none.
fn rewritten(
    old: &HeaderBlock,
    mut rewrite: impl FnMut(&[u8]) -> Result<Option<Vec<u8>>, ProgramFailure>,
) -> Result<Option<HeaderBlock>, ProgramFailure> {
    let mut new = HeaderBlock::new();
    let mut line = Vec::new();
    let mut is_changed = false;
    for field in old.iter() {
        line.clear();
        for part in [field.name, b": ", field.value] {
            line.extend_from_slice(part);
        }
        match rewrite(&line)? {
            None => new.push_as(field.id, field.name, field.value),
            Some(changed) => {
                is_changed = true;
                let (name, value) = field_of(&changed).ok_or_else(|| {
                    let line = changed.escape_ascii();
                    ProgramFailure::new(format!("header.regsub: no field: {line}"))
                })?;
                new.push_named(name, value);
            }
        }
    }
    Ok(is_changed.then_some(new))
}

/// Name and value of a line, if it is a field.
fn field_of(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, value) = line.split_at_checked(memchr::memchr(b':', line)?)?;
    let value = value[1..].trim_ascii();
    (is_token(name) && headers::is_valid(value)).then_some((name, value))
}

fn named(_: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    let name = args.bytes(1);
    let text = std::str::from_utf8(name).ok().filter(|_| is_token(name));
    let (Some(message), Some(text)) = (args.message(0), text) else {
        return Err(ProgramFailure::new(format!("header.dyn: no name: {}", name.escape_ascii())));
    };
    Ok(Value::Header(Header { message, id: HeaderId::of(name), name: Arc::from(text) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(fields: &[(&str, &str)]) -> HeaderBlock {
        let mut block = HeaderBlock::new();
        for (name, value) in fields {
            block.push_named(name.as_bytes(), value.as_bytes());
        }
        block
    }

    fn lines(block: &HeaderBlock) -> Vec<String> {
        let line = |f: message::header::Field<'_>| [f.name, b": ", f.value].concat();
        block.iter().map(|f| String::from_utf8_lossy(&line(f)).into_owned()).collect()
    }

    #[test]
    fn lines_are_rewritten_name_and_all() {
        let old = block(&[("D", "foo bar"), ("E", "x")]);
        let new =
            rewritten(&old, |line| Ok(line.starts_with(b"D").then(|| b"X-D:  bar ".to_vec())));
        let new = new.expect("it is a field").expect("a line was changed");
        assert_eq!(lines(&new), ["X-D: bar", "E: x"]);
        assert!(rewritten(&old, |_| Ok(None)).expect("no line is wrong").is_none());
    }

    #[test]
    fn what_is_no_field_fails() {
        let old = block(&[("E", "abc")]);
        for line in ["no colon", "a b: c", ": c", "a: b\r\nc: d", "a: b\0"] {
            assert!(rewritten(&old, |_| Ok(Some(line.as_bytes().to_vec()))).is_err(), "{line:?}");
        }
    }
}
