//! VMOD `dynamic`: backends by host names that are resolved at run time. A director has one backend
//! for each host and port. It never resolves names: backends are only marked for it, and dropped
//! when they were unused for long or others need their place.

mod domains;
mod host_port;

use std::any::Any;
use std::sync::Arc;

use domains::Domains;
use host_port::{host_port_of, port_of};

use crate::failure::ProgramFailure;
use crate::state::backend::{Backend, BackendSpec, Lookups};
use crate::state::ctx::Ctx;
use crate::state::program::Object;
use crate::state::value::Value;
use crate::sub::{Subs, TaskSide};
use crate::tag::Tag;
use crate::types::Type;
use crate::vmod::{Class, Method, Module};
use crate::vmods::args::{
    Args, enumeration, number, optional_parameter, required_parameter, text, this,
};

/// The module.
pub static MODULE: Module = Module {
    name: "dynamic",
    about: "Backends by host name, resolved repeatedly while the program runs. The parameters are \
            those of UPLEX's module. `whitelist`, `resolver`, `via` and service records (SRV) are \
            not supported: a program that uses them is refused.",
    functions: &[],
    classes: &[CLASS],
    refused: &[],
};

/// The only accepted value of `first_lookup_timeout`, in seconds.
const FIRST_LOOKUP: f64 = 10.0;

const CLASS: Class = Class {
    name: "director",
    about: "Creates a backend for each requested host and port. `port` is a number, `http` or \
            `https`. `hosthdr` is the Host field of requests without one; the default is the host. \
            A name is resolved again after `ttl` or the TTL of the DNS answer. `ttl_from` selects \
            `cfg`, `dns`, the shorter or the longer of both. A failed lookup is repeated after \
            `retry_after`. A failed first lookup is repeated at the next request. Neither happens \
            more than once a second. `domain_usage_timeout` is the time after which an unused \
            backend is removed. Every backend has its own probe and connections. A request waits \
            for a first lookup as for a connection. `vcl_init` fails if `share` is not `DIRECTOR` \
            or `first_lookup_timeout` is not 10s. Timeouts of 0 mean the values of the parameters.",
    params: &[
        text("port", "http"),
        text("hosthdr", ""),
        enumeration("share", &["SERVICE", "HOST", "DIRECTOR"], "DIRECTOR"),
        optional_parameter("probe", Type::Probe),
        number("ttl", Type::Duration, 3600.0),
        number("connect_timeout", Type::Duration, 0.0),
        number("first_byte_timeout", Type::Duration, 0.0),
        number("between_bytes_timeout", Type::Duration, 0.0),
        number("domain_usage_timeout", Type::Duration, 7200.0),
        number("first_lookup_timeout", Type::Duration, FIRST_LOOKUP),
        number("max_connections", Type::Int, 0.0),
        number("proxy_header", Type::Int, 0.0),
        enumeration("ttl_from", &["cfg", "dns", "min", "max"], "cfg"),
        number("retry_after", Type::Duration, 30.0),
    ],
    construct,
    methods: &[
        Method {
            name: "backend",
            about: "The backend for this host and port. The default host is the request's Host \
                    field; the default port is the director's. No backend for an invalid host \
                    name, or for new hosts beyond the limit `director_new_hosts`. Beyond \
                    `director_backends`, hosts that were never found are forgotten first.",
            returns: Type::Backend,
            params: &[text("host", ""), text("port", "")],
            from: Subs::ALL,
            call: backend,
        },
        Method {
            name: "debug",
            about: "Accepted, but has no effect.",
            returns: Type::Void,
            params: &[required_parameter("enable", Type::Bool)],
            from: Subs::ALL,
            call: |_, _, _| Ok(Value::Void),
        },
    ],
};

/// An object of the class.
struct DomainsObject(Arc<Domains>);

impl Object for DomainsObject {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn backend(&self) -> Option<Backend> {
        Some(Backend::Director(self.0.clone()))
    }
}

fn construct(
    ctx: &mut Ctx<'_>,
    naming: &crate::vmod::ObjectIdentity<'_>,
    args: &[Value],
) -> Result<Arc<dyn Object>, ProgramFailure> {
    let refuse = |why: String| ProgramFailure::new(format!("dynamic {}: {why}", naming.name));
    let string = |at| String::from_utf8_lossy(args.bytes(at)).into_owned();
    let seconds = |at| args.real(at).filter(|seconds| *seconds > 0.0);
    let port = string(0);
    if port_of(&port).is_none() {
        return Err(refuse(format!("no port: {port}")));
    }
    if args.enum_value(2).is_some_and(|share| share != "DIRECTOR") {
        return Err(refuse("share: every backend has its own probe and connections".into()));
    }
    if args.real(9).is_some_and(|seconds| seconds != FIRST_LOOKUP) {
        return Err(refuse(
            "first_lookup_timeout: the first request waits as long as connect_timeout says".into(),
        ));
    }
    let lookups = Lookups {
        from: args.enum_value(12).unwrap_or("cfg"),
        ttl: args.real(4).unwrap_or(3600.0),
        retry: args.real(13).unwrap_or(30.0),
    };
    let proxy_header = match args.int(11).unwrap_or(0) {
        version @ 0..=2 => version as u8,
        other => return Err(refuse(format!("no version of the PROXY protocol: {other}"))),
    };
    let probe = match args.get(3) {
        Some(Value::Probe(number)) => Some(ctx.instance.probe(*number).clone()),
        _ => None,
    };
    let max_connections = u32::try_from(args.int(10).unwrap_or(0))
        .map_err(|_| refuse("max_connections is out of range".into()))?;
    let spec = BackendSpec {
        port: port.into(),
        follows: true,
        lookups: Some(lookups),
        host_header: Some(string(1)).filter(|host| !host.is_empty()).map(Into::into),
        connect_timeout: seconds(5),
        first_byte_timeout: seconds(6),
        between_bytes_timeout: seconds(7),
        max_connections,
        proxy_header,
        probe,
        ..BackendSpec::default()
    };
    let usage_timeout = args.real(8).unwrap_or(7200.0);
    Ok(Arc::new(DomainsObject(Arc::new(Domains::new(naming.name, spec, usage_timeout)))))
}

fn backend(
    ctx: &mut Ctx<'_>,
    object: &Arc<dyn Object>,
    args: &[Value],
) -> Result<Value, ProgramFailure> {
    let domains = &this::<DomainsObject>(object)?.0;
    let (host, port) = (args.bytes(0), args.bytes(1));
    if ctx.sub.side() == TaskSide::Housekeeping && host.is_empty() {
        // As a member of another director, it goes by the request.
        return Ok(Value::Backend(Backend::Director(domains.clone())));
    }
    let texts = std::str::from_utf8(host).ok().zip(std::str::from_utf8(port).ok());
    let leaf = texts
        .and_then(|(host, port)| host_port_of(ctx, host, port))
        .and_then(|(host, port)| domains.leaf(&host, &port, ctx));
    if leaf.is_none() {
        let line = format!("dynamic {}: no backend for {}", domains.name, host.escape_ascii());
        ctx.environment.log(Tag::Error, line.as_bytes());
    }
    Ok(Value::Backend(leaf.map_or(Backend::None, Backend::Leaf)))
}

#[cfg(test)]
mod tests;
