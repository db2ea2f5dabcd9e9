//! `vtc`: what tests of VCL use, as far as it means something here.
//!
//! There is nothing here that would hold up a core, end the daemon or look into a workspace, of
//! which there are none: `barrier_sync`, `sleep` and `workspace_*` are not known, and `panic` ends
//! one request.

use std::net::{IpAddr, SocketAddr};

use crate::backend::Backend;
use crate::ctx::Ctx;
use crate::sub::Subs;
use crate::types::Type;
use crate::value::{Failure, Value};
use crate::vmod::{Default, Function, Kind, Module, Param};
use crate::vmods::args::{Args, must};

/// The module.
pub static MODULE: Module = Module {
    name: "vtc",
    about: "What tests of VCL use. Varnish's `barrier_sync`, `sleep`, `vsl` and `workspace_*` are \
            not there: they would hold up more than one request, or look at what Larder does not \
            have.",
    functions: FUNCTIONS,
    classes: &[],
};

const FUNCTIONS: &[Function] = &[
    Function {
        name: "no_backend",
        about: "No backend: fetches from it fail.",
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
        about: "Ends the request, or what else the program does just now, as a failure: with 503, \
                and the text in the log. Varnish's process ends.",
        returns: Type::Void,
        params: &[must("", Type::String)],
        from: Subs::ALL,
        call: |_, args| {
            let why = String::from_utf8_lossy(args.bytes(0));
            Err(Failure::new(format!("vtc.panic: {why}")))
        },
    },
    Function {
        name: "typesize",
        about: "How many bytes a C structure of these types has on a 64-bit system: `p`ointer, \
                `i`nt, `d`ouble, `f`loat, `l`ong, `s`hort, si`z`e_t, `o`ff_t, intmax_t (`j`). -1 \
                for other letters.",
        returns: Type::Int,
        params: &[must("", Type::String)],
        from: Subs::ALL,
        call: |_, args| Ok(Value::Int(type_size(args.bytes(0)).unwrap_or(-1))),
    },
    Function {
        name: "proxy_header",
        about: "A header of the PROXY protocol, version 1 or 2, for these ends; of version 2 also \
                with the host name that the client asked for.",
        returns: Type::Blob,
        params: &[
            Param { name: "version", kind: Kind::Enum(&["v1", "v2"]), default: None },
            must("client", Type::Ip),
            must("server", Type::Ip),
            Param {
                name: "authority",
                kind: Kind::Of(Type::String),
                default: Some(Default::Absent),
            },
        ],
        from: Subs::ALL,
        call: header,
    },
];

/// Each member stands at a multiple of its size, and the whole ends at one of the largest.
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

fn header(_: &mut Ctx<'_>, args: &[Value]) -> Result<Value, Failure> {
    let (Some(Value::Ip(Some(client))), Some(Value::Ip(Some(server)))) = (args.get(1), args.get(2))
    else {
        return Err(Failure::new("vtc.proxy_header: an end has no address"));
    };
    if client.is_ipv4() != server.is_ipv4() {
        return Err(Failure::new("vtc.proxy_header: one end is IPv4 and the other IPv6"));
    }
    let header = match args.word(0) {
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
) -> Result<Vec<u8>, Failure> {
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
    let too_long = |_| Failure::new("vtc.proxy_header: the authority is too long");
    if let Some(name) = authority {
        rest.push(AUTHORITY);
        rest.extend_from_slice(&u16::try_from(name.len()).map_err(too_long)?.to_be_bytes());
        rest.extend_from_slice(name);
    }
    // The signature; version 2, on behalf of another; TCP over IPv4 or IPv6.
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
    use crate::testing::Bench;

    #[test]
    fn a_panic_ends_one_request() {
        let program = "vcl 4.1; import vtc; backend default none;
            sub vcl_recv { vtc.panic(\"at \" + req.url); set req.http.X = \"after\"; }";
        let mut bench = Bench::of(program).unwrap_or_else(|why| panic!("{why}"));
        let action = bench.run(Sub::Recv);
        assert!(
            matches!(&action, crate::sub::Action::Fail(why) if **why == *"vtc.panic: at /path?q=1")
        );
        assert_eq!(bench.req.headers.values_named(b"X").count(), 0);
    }

    // What Varnish 7.1.1 answers.
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
        let made = header(&mut Bench::bare().ctx(Sub::Synth), &args).expect("both have addresses");
        made.into_bytes().expect("a blob").to_vec()
    }

    // What Varnish 7.1.1 answers.
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
        let mut bench = Bench::bare();
        let four = Value::Ip(Some(SocketAddr::from(([127, 0, 0, 1], 1))));
        let six = Value::Ip(Some(SocketAddr::from(([0; 16], 1))));
        for ends in [[four.clone(), six], [four, Value::Ip(None)]] {
            let [client, server] = ends;
            let args = [Value::Enum("v1"), client, server, Value::Void];
            assert!(header(&mut bench.ctx(Sub::Synth), &args).is_err());
        }
    }
}
