//! VMOD `vtc`: functions for tests of VCL. None of them delays a core, ends the daemon or reads
//! memory of other requests: `panic` ends one request, and functions that wait or forge log lines
//! are not supported. A workspace is the account of a task's strings ([`Workspace`]).
//!
//! [`Workspace`]: crate::workspace::Workspace

use std::net::{IpAddr, SocketAddr};

use crate::failure::ProgramFailure;
use crate::state::backend::Backend;
use crate::state::ctx::Ctx;
use crate::state::value::Value;
use crate::sub::Subs;
use crate::types::Type;
use crate::vmod::{
    ArgumentType, Function, Module, Parameter, ParameterDefault, UnsupportedFunction,
};
use crate::vmods::args::{Args, required_parameter};
use crate::workspace::Workspace;

/// The module.
pub static MODULE: Module = Module {
    name: "vtc",
    about: "Functions for tests of VCL. A workspace is the memory for strings of a request \
            (`vcl_workspace_client`) or a fetch (`vcl_workspace_backend`). Only `client` exists on \
            the client side, and only `backend` on the backend side. `session` and `thread` do not \
            exist. Using a missing workspace fails.",
    functions: FUNCTIONS,
    classes: &[],
    refused: &[
        UnsupportedFunction {
            name: "barrier_sync",
            why: "would hold up all requests of a core while one waits.",
        },
        UnsupportedFunction {
            name: "sleep",
            why: "would hold up all requests of a core while one sleeps.",
        },
        UnsupportedFunction {
            name: "workspace_dump",
            why: "has nothing to show: a workspace is a number of bytes, not a place in memory.",
        },
        UnsupportedFunction {
            name: "vsl",
            why: "would write lines of another request's record, which that request writes itself.",
        },
        UnsupportedFunction {
            name: "vsl_replay",
            why: "would write lines of other requests' records, which they write themselves.",
        },
    ],
};

const WHICH: Parameter = Parameter {
    name: "workspace",
    kind: ArgumentType::Enum(&["client", "backend", "session", "thread"]),
    default: None,
};
const SIZED: &[Parameter] = &[WHICH, required_parameter("size", Type::Int)];

const FUNCTIONS: &[Function] = &[
    Function {
        name: "no_backend",
        about: "No backend. Fetches from it fail.",
        returns: Type::Backend,
        params: &[],
        from: Subs::ALL,
        call: |_, _| Ok(Value::Backend(Backend::None)),
    },
    Function {
        name: "no_stevedore",
        about: "No storage.",
        returns: Type::Stevedore,
        params: &[],
        from: Subs::ALL,
        call: |_, _| Ok(Value::Stevedore(None)),
    },
    Function {
        name: "no_ip",
        about: "No address.",
        returns: Type::Ip,
        params: &[],
        from: Subs::ALL,
        call: |_, _| Ok(Value::Ip(None)),
    },
    Function {
        name: "panic",
        about: "Fails the request, or whatever the program is doing, with 503, and writes the text \
                to the log. In Varnish, the process ends.",
        returns: Type::Void,
        params: &[required_parameter("", Type::String)],
        from: Subs::ALL,
        call: |_, args| {
            let why = String::from_utf8_lossy(args.bytes(0));
            Err(ProgramFailure::new(format!("vtc.panic: {why}")))
        },
    },
    Function {
        name: "workspace_alloc",
        about: "Takes this number of bytes from a workspace. A negative size takes all but that \
                many. Fails if there are too few bytes, or none would be taken.",
        returns: Type::Void,
        params: SIZED,
        from: Subs::ALL,
        call: |ctx, args| {
            let workspace = find(ctx, args)?;
            match wanted(workspace, args.int(1)) {
                Some(bytes) => workspace.take(bytes)?,
                None => {
                    return Err(ProgramFailure::new(
                        "vtc.workspace_alloc: there is nothing to take",
                    ));
                }
            }
            Ok(Value::Void)
        },
    },
    Function {
        name: "workspace_reserve",
        about: "Same as `workspace_alloc`, but returns the bytes at once. The result is their \
                number.",
        returns: Type::Bytes,
        params: SIZED,
        from: Subs::ALL,
        call: |ctx, args| {
            let workspace = find(ctx, args)?;
            match wanted(workspace, args.int(1)) {
                Some(bytes) if bytes <= workspace.left() => Ok(Value::Bytes(bytes as i64)),
                Some(_) => Err(workspace.overflow()),
                None => Err(ProgramFailure::new("vtc.workspace_reserve: there is nothing to take")),
            }
        },
    },
    Function {
        name: "workspace_free",
        about: "Number of free bytes in a workspace.",
        returns: Type::Int,
        params: &[WHICH],
        from: Subs::ALL,
        call: |ctx, args| Ok(Value::Int(find(ctx, args)?.left().try_into().unwrap_or(i64::MAX))),
    },
    Function {
        name: "workspace_snapshot",
        about: "Records how much `workspace_alloc` has taken from a workspace.",
        returns: Type::Void,
        params: &[WHICH],
        from: Subs::ALL,
        call: |ctx, args| {
            find(ctx, args)?;
            *ctx.task.keep::<Snapshot>("vtc", 0) = Snapshot(Some(ctx.task.workspace.taken()));
            Ok(Value::Void)
        },
    },
    Function {
        name: "workspace_reset",
        about: "Returns what `workspace_alloc` has taken since `workspace_snapshot`. Strings \
                created since then stay, and keep their memory. Fails without a snapshot.",
        returns: Type::Void,
        params: &[WHICH],
        from: Subs::ALL,
        call: |ctx, args| {
            find(ctx, args)?;
            let Snapshot(Some(taken)) = *ctx.task.keep::<Snapshot>("vtc", 0) else {
                return Err(ProgramFailure::new("vtc.workspace_reset: there is no snapshot"));
            };
            ctx.task.workspace.give_back_to(taken);
            Ok(Value::Void)
        },
    },
    Function {
        name: "workspace_overflowed",
        about: "Whether a workspace has overflowed. As an overflow fails the request, only a later \
                subroutine can see true.",
        returns: Type::Bool,
        params: &[WHICH],
        from: Subs::ALL,
        call: |ctx, args| Ok(Value::Bool(find(ctx, args)?.has_overflown())),
    },
    Function {
        name: "workspace_overflow",
        about: "Fails as if a workspace had overflowed. In Varnish, the subroutine continues \
                before the request fails.",
        returns: Type::Void,
        params: &[WHICH],
        from: Subs::ALL,
        call: |ctx, args| Err(find(ctx, args)?.overflow()),
    },
    Function {
        name: "typesize",
        about: "Size in bytes of a C structure with these types on a 64-bit system. The types are \
                `p`ointer, `i`nt, `d`ouble, `f`loat, `l`ong, `s`hort, si`z`e_t, `o`ff_t and \
                intmax_t (`j`). -1 for other letters.",
        returns: Type::Int,
        params: &[required_parameter("", Type::String)],
        from: Subs::ALL,
        call: |_, args| Ok(Value::Int(type_size(args.bytes(0)).unwrap_or(-1))),
    },
    Function {
        name: "proxy_header",
        about: "A PROXY protocol header, version 1 or 2, for these endpoints. In version 2, it \
                also has the host name that the client requested.",
        returns: Type::Blob,
        params: &[
            Parameter { name: "version", kind: ArgumentType::Enum(&["v1", "v2"]), default: None },
            required_parameter("client", Type::Ip),
            required_parameter("server", Type::Ip),
            Parameter {
                name: "authority",
                kind: ArgumentType::Of(Type::String),
                default: Some(ParameterDefault::Absent),
            },
        ],
        from: Subs::ALL,
        call: header,
    },
];

/// Bytes that `workspace_alloc` had taken at the last `workspace_snapshot`.
#[derive(Clone, Copy, Debug, Default)]
struct Snapshot(Option<u64>);

/// The workspace of that name, if this side has it.
fn find<'c>(ctx: &'c Ctx<'_>, args: &[Value]) -> Result<&'c Workspace, ProgramFailure> {
    let which = args.enum_value(0).unwrap_or_default();
    let own = match ctx.sub {
        sub if Subs::BACKEND.has(sub) => "backend",
        sub if Subs::CLIENT.has(sub) => "client",
        _ => "",
    };
    if which == own {
        return Ok(&ctx.task.workspace);
    }
    Err(ProgramFailure::new(format!("vtc: failed to find the {which} workspace")))
}

/// The requested number of bytes; `None` below one.
fn wanted(workspace: &Workspace, size: Option<i64>) -> Option<u64> {
    let size = size.unwrap_or_default();
    let bytes = match u64::try_from(size) {
        Ok(bytes) => bytes,
        Err(_) => workspace.left().checked_sub(size.unsigned_abs())?,
    };
    (bytes > 0).then_some(bytes)
}

/// Each member is aligned to its size, and the whole to the largest.
fn type_size(types: &[u8]) -> Option<i64> {
    let (mut bytes, mut largest) = (0_i64, 1);
    for letter in types {
        let size = match letter {
            b'p' | b'd' | b'l' | b'z' | b'o' | b'j' => 8,
            b'i' | b'f' => 4,
            b's' => 2,
            b'c' => 1,
            _ => return None,
        };
        bytes = align(bytes, size) + size;
        largest = largest.max(size);
    }
    Some(align(bytes, largest))
}

fn align(at: i64, size: i64) -> i64 {
    (at + size - 1) / size * size
}

fn header(_: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    let (Some(Value::Ip(Some(client))), Some(Value::Ip(Some(server)))) = (args.get(1), args.get(2))
    else {
        return Err(ProgramFailure::new("vtc.proxy_header: an end has no address"));
    };
    if client.is_ipv4() != server.is_ipv4() {
        return Err(ProgramFailure::new("vtc.proxy_header: one end is IPv4 and the other IPv6"));
    }
    let header = match args.enum_value(0) {
        Some("v1") => v1(*client, *server),
        _ => v2(*client, *server, args.string(3).map(|name| &name[..]))?,
    };
    Ok(Value::Blob(Some(header.into())))
}

fn v1(client: SocketAddr, server: SocketAddr) -> Vec<u8> {
    let family = if client.is_ipv4() { "TCP4" } else { "TCP6" };
    let (from, to) = (client.ip(), server.ip());
    format!("PROXY {family} {from} {to} {} {}\r\n", client.port(), server.port()).into_bytes()
}

fn v2(
    client: SocketAddr,
    server: SocketAddr,
    authority: Option<&[u8]>,
) -> Result<Vec<u8>, ProgramFailure> {
    // PP2_TYPE_AUTHORITY
    const AUTHORITY: u8 = 2;
    let mut rest = Vec::new();
    for ip in [client.ip(), server.ip()] {
        match ip {
            IpAddr::V4(ip) => rest.extend_from_slice(&ip.octets()),
            IpAddr::V6(ip) => rest.extend_from_slice(&ip.octets()),
        }
    }
    for port in [client.port(), server.port()] {
        rest.extend_from_slice(&port.to_be_bytes());
    }
    let too_long = |_| ProgramFailure::new("vtc.proxy_header: the authority is too long");
    if let Some(name) = authority {
        rest.push(AUTHORITY);
        rest.extend_from_slice(&u16::try_from(name.len()).map_err(too_long)?.to_be_bytes());
        rest.extend_from_slice(name);
    }
    // Signature; version 2, command PROXY; TCP over IPv4 or IPv6.
    let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21".to_vec();
    header.push(if client.is_ipv4() { 0x11 } else { 0x21 });
    header.extend_from_slice(&u16::try_from(rest.len()).map_err(too_long)?.to_be_bytes());
    header.extend_from_slice(&rest);
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sub::Sub;
    use crate::testing::SubroutineFixture;

    #[test]
    fn a_panic_ends_one_request() {
        let program = "vcl 4.1; import vtc; backend default none;
            sub vcl_recv { vtc.panic(\"at \" + req.url); set req.http.X = \"after\"; }";
        let mut fixture = SubroutineFixture::of(program).unwrap_or_else(|why| panic!("{why}"));
        let action = fixture.run(Sub::Recv);
        assert!(
            matches!(&action, crate::sub::Action::Fail(why) if **why == *"vtc.panic: at /path?q=1")
        );
        assert_eq!(fixture.req.headers.values_named(b"X").count(), 0);
    }

    // Results of Varnish 7.1.1.
    #[test]
    fn structures_are_as_large_as_in_c() {
        for (types, bytes) in [("pidflszoj", 72), ("sil", 16), ("csc", 6), ("", 0)] {
            assert_eq!(type_size(types.as_bytes()), Some(bytes), "{types}");
        }
        assert_eq!(type_size(b"q"), None);
    }

    fn made(version: &'static str, authority: Value) -> Vec<u8> {
        let end = |port| Value::Ip(Some(SocketAddr::from(([127, 0, 0, 1], port))));
        let args = [Value::Enum(version), end(17084), end(28906), authority];
        let made = header(&mut SubroutineFixture::bare().ctx(Sub::Synth), &args)
            .expect("both have addresses");
        made.into_bytes().expect("a blob").to_vec()
    }

    // Results of Varnish 7.1.1.
    #[test]
    fn headers_are_those_of_the_protocol() {
        let text = b"PROXY TCP4 127.0.0.1 127.0.0.1 17084 28906\r\n";
        assert_eq!(made("v1", Value::Void), text);
        let start = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x7f\0\0\x01\x7f\0\0\x01\x42\xbc\x70\xea";
        assert_eq!(made("v2", Value::Void), start);
        let with_name = made("v2", Value::String(Some("auth".into())));
        assert!(with_name.ends_with(b"\x70\xea\x02\0\x04auth"));
        assert_eq!(with_name[15], 0x13);
    }

    #[test]
    fn ends_of_different_families_fail() {
        let mut fixture = SubroutineFixture::bare();
        let four = Value::Ip(Some(SocketAddr::from(([127, 0, 0, 1], 1))));
        let six = Value::Ip(Some(SocketAddr::from(([0; 16], 1))));
        for ends in [[four.clone(), six], [four, Value::Ip(None)]] {
            let [client, server] = ends;
            let args = [Value::Enum("v1"), client, server, Value::Void];
            assert!(header(&mut fixture.ctx(Sub::Synth), &args).is_err());
        }
    }

    fn run(recv: &str, workspace: u64) -> (crate::sub::Action, String) {
        let program = format!(
            "vcl 4.1; import vtc; backend default none;
            sub vcl_recv {{ {recv} return (pass); }}"
        );
        let mut fixture = SubroutineFixture::of(&program).unwrap_or_else(|why| panic!("{why}"));
        fixture.task.workspace = Workspace::of(workspace);
        let action = fixture.run(Sub::Recv);
        let x = fixture.req.headers.value_named(b"X").unwrap_or_default();
        (action, String::from_utf8_lossy(x).into_owned())
    }

    #[test]
    fn a_workspace_is_taken_and_given_back() {
        let (_, message) = run(
            "set req.http.X = \"\" + vtc.workspace_free(client);
             vtc.workspace_snapshot(client);
             vtc.workspace_alloc(client, 100);
             vtc.workspace_alloc(client, -600);
             set req.http.X = req.http.X + \" \" + vtc.workspace_free(client);
             vtc.workspace_reset(client);
             vtc.workspace_reset(client);
             set req.http.X = req.http.X + \" \" + vtc.workspace_reserve(client, 10)
                + \" \" + vtc.workspace_reserve(client, -500) + \" \"
                + vtc.workspace_overflowed(client);",
            1000,
        );
        // Strings made since then stay charged: `1000`, and `1000 600`.
        assert_eq!(message, "1000 600 10 488 false");
    }

    #[test]
    fn what_finds_no_room_in_a_workspace_fails() {
        for (recv, why) in [
            ("vtc.workspace_alloc(client, 2000);", "Workspace overflow"),
            ("vtc.workspace_overflow(client);", "Workspace overflow"),
            ("set req.http.X = vtc.workspace_reserve(client, 2000);", "Workspace overflow"),
            ("vtc.workspace_alloc(client, 0);", "vtc.workspace_alloc: there is nothing to take"),
            (
                "vtc.workspace_alloc(client, -2000);",
                "vtc.workspace_alloc: there is nothing to take",
            ),
            ("vtc.workspace_reset(client);", "vtc.workspace_reset: there is no snapshot"),
            ("vtc.workspace_overflow(thread);", "vtc: failed to find the thread workspace"),
            ("vtc.workspace_alloc(backend, 1);", "vtc: failed to find the backend workspace"),
        ] {
            let (action, _) = run(recv, 1000);
            assert!(
                matches!(&action, crate::sub::Action::Fail(message) if &**message == why),
                "{recv}"
            );
        }
    }

    #[test]
    fn what_would_hold_up_a_core_is_refused_with_the_reason() {
        for (call, why) in [
            ("sleep(1s)", "Here it would hold up all requests of a core while one sleeps."),
            ("barrier_sync(\"a\", 1s)", "while one waits."),
            ("vsl(0, \"Debug\", c, \"x\")", "which that request writes itself."),
        ] {
            let program =
                format!("vcl 4.1; import vtc; backend b none; sub vcl_recv {{ vtc.{call}; }}");
            let message = crate::testing::compile(&program).expect_err("it is refused");
            assert!(message.contains(why), "{message}");
        }
    }
}
