//! VMOD `unix`: the peer process of a unix socket. Names come from the system's tables of users and
//! groups, read once through the environment.

use crate::failure::ProgramFailure;
use crate::state::ctx::{Ctx, PeerCredentials};
use crate::state::value::Value;
use crate::sub::Subs;
use crate::tag::Tag;
use crate::types::Type;
use crate::vmod::{Function, Module};
use crate::vmods::args::owned;

/// The module.
pub static MODULE: Module = Module {
    name: "unix",
    about: "The process at the other end of a Unix socket. On other listeners, the log gets an \
            error, and the result is no string or -1.",
    functions: FUNCTIONS,
    classes: &[],
    refused: &[],
};

const FUNCTIONS: &[Function] = &[
    Function {
        name: "user",
        about: "The user name of the process. No string if `/etc/passwd` does not list the user.",
        returns: Type::String,
        params: &[],
        from: Subs::CLIENT,
        call: |ctx, _| name(ctx, "user", "/etc/passwd", |peer| peer.uid),
    },
    Function {
        name: "group",
        about: "The group name of the process. No string if `/etc/group` does not list the group.",
        returns: Type::String,
        params: &[],
        from: Subs::CLIENT,
        call: |ctx, _| name(ctx, "group", "/etc/group", |peer| peer.gid),
    },
    Function {
        name: "uid",
        about: "The user ID of the process.",
        returns: Type::Int,
        params: &[],
        from: Subs::CLIENT,
        call: |ctx, _| number(ctx, "uid", |peer| peer.uid),
    },
    Function {
        name: "gid",
        about: "The group ID of the process.",
        returns: Type::Int,
        params: &[],
        from: Subs::CLIENT,
        call: |ctx, _| number(ctx, "gid", |peer| peer.gid),
    },
];

fn peer(ctx: &Ctx<'_>, function: &str) -> Option<PeerCredentials> {
    if ctx.session.peer.is_none() {
        let line = format!("unix.{function}: the listener is no unix socket");
        ctx.environment.log(Tag::Error, line.as_bytes());
    }
    ctx.session.peer
}

fn number(
    ctx: &Ctx<'_>,
    function: &str,
    of: fn(&PeerCredentials) -> u32,
) -> Result<Value, ProgramFailure> {
    Ok(Value::Int(peer(ctx, function).map_or(-1, |peer| i64::from(of(&peer)))))
}

fn name(
    ctx: &Ctx<'_>,
    function: &str,
    table: &str,
    of: fn(&PeerCredentials) -> u32,
) -> Result<Value, ProgramFailure> {
    let Some(peer) = peer(ctx, function) else { return Ok(Value::String(None)) };
    let table = ctx.environment.file(table).unwrap_or_default();
    let name = name_of(&table, of(&peer)).map(<[u8]>::to_vec);
    Ok(name.map_or(Value::String(None), owned))
}

/// The name of this number in a table of `name:password:number` lines.
fn name_of(table: &[u8], number: u32) -> Option<&[u8]> {
    let number = number.to_string();
    table.split(|b| *b == b'\n').find_map(|line| {
        let mut columns = line.split(|b| *b == b':');
        let name = columns.next()?;
        (columns.nth(1)? == number.as_bytes()).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_the_third_column() {
        let table = b"root:x:0:0:root:/root:/bin/sh\nbroken\nwww-data:x:33:33::/var/www:\n";
        assert_eq!(name_of(table, 33), Some(&b"www-data"[..]));
        assert_eq!(name_of(table, 0), Some(&b"root"[..]));
        assert_eq!(name_of(table, 3), None);
        assert_eq!(name_of(b"", 0), None);
    }
}
