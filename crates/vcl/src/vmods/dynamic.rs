//! `dynamic`: backends by host names that are looked up while the program runs.
//!
//! A director keeps one backend for each host and port it was asked for. Looking names up is the
//! business of who connects backends: here they are only made, marked as ones whose name is
//! followed, and dropped when nobody has asked for them for long.

use std::any::Any;
use std::sync::Arc;

use base::Limit;
use parking_lot::Mutex;

use crate::backend::{Backend, BackendSpec, Director, Leaf, Lookups};
use crate::ctx::{Ctx, Tag, World};
use crate::sub::{Side, Subs};
use crate::types::Type;
use crate::value::{Failure, Value};
use crate::vmod::{Class, Method, Module, Object};
use crate::vmods::args::{Args, may, must, number, text, this, word};

/// The module.
pub static MODULE: Module = Module {
    name: "dynamic",
    about: "Backends by host names that are looked up again and again while the program runs. The \
            parameters are those of UPLEX's module, but for `whitelist`, `resolver`, `via` and \
            service records (SRV), which are not known: a program that relies on them is refused.",
    functions: &[],
    classes: &[CLASS],
};

/// The one time that a first lookup may be said to take, in seconds.
const FIRST_LOOKUP: f64 = 10.0;

const CLASS: Class = Class {
    name: "director",
    about: "Makes a backend for each host and port it is asked for. `port` is a number, or `http` \
            or `https`. `hosthdr` is the Host of requests that have none; without it the host. \
            A name is looked up again after `ttl`, or what the name server's answer says \
            (`ttl_from`: `cfg`, `dns`, the shorter or the longer of both), a failed lookup \
            repeated after `retry_after`; neither more than once a second. \
            `domain_usage_timeout` is for how long a backend is kept that nobody asks for. \
            Every backend has its own probe and connections, and a request waits for a first \
            lookup as for a connection: another `share` than `DIRECTOR` or another \
            `first_lookup_timeout` than 10s fails `vcl_init`. Timeouts of 0 are those of the \
            parameters.",
    params: &[
        text("port", "http"),
        text("hosthdr", ""),
        word("share", &["SERVICE", "HOST", "DIRECTOR"], "DIRECTOR"),
        may("probe", Type::Probe),
        number("ttl", Type::Duration, 3600.0),
        number("connect_timeout", Type::Duration, 0.0),
        number("first_byte_timeout", Type::Duration, 0.0),
        number("between_bytes_timeout", Type::Duration, 0.0),
        number("domain_usage_timeout", Type::Duration, 7200.0),
        number("first_lookup_timeout", Type::Duration, FIRST_LOOKUP),
        number("max_connections", Type::Int, 0.0),
        number("proxy_header", Type::Int, 0.0),
        word("ttl_from", &["cfg", "dns", "min", "max"], "cfg"),
        number("retry_after", Type::Duration, 30.0),
    ],
    construct,
    methods: &[
        Method {
            name: "backend",
            about: "The backend for this host and port; without a host that of the request's Host \
                    header, without a port the director's. No backend for what is no host name, \
                    and when there are as many as the limit `director_backends` allows.",
            returns: Type::Backend,
            params: &[text("host", ""), text("port", "")],
            from: Subs::ALL,
            call: backend,
        },
        Method {
            name: "debug",
            about: "Is taken and does nothing.",
            returns: Type::Void,
            params: &[must("enable", Type::Bool)],
            from: Subs::ALL,
            call: |_, _, _| Ok(Value::Void),
        },
    ],
};

/// An object of the class.
struct Handle(Arc<Domains>);

impl Object for Handle {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn backend(&self) -> Option<Backend> {
        Some(Backend::Director(self.0.clone()))
    }
}

#[derive(Debug)]
struct Domains {
    name: Box<str>,
    /// What all backends have in common, with the director's own port.
    spec: BackendSpec,
    /// For how long one is kept that nobody asks for, in seconds.
    usage_timeout: f64,
    made: Mutex<Vec<Domain>>,
}

#[derive(Debug)]
struct Domain {
    leaf: Arc<Leaf>,
    /// When it was asked for last, in seconds since 1970.
    used: f64,
}

impl Director for Domains {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> &'static str {
        "dynamic"
    }

    /// Of itself it knows no host: that of the request.
    fn resolve(&self, ctx: &mut Ctx<'_>) -> Option<Arc<Leaf>> {
        let (host, port) = place_of(ctx, "", "")?;
        self.leaf(&host, &port, ctx.now, ctx.world)
    }

    fn health(&self) -> (bool, f64) {
        (true, 0.0)
    }

    fn members(&self) -> Vec<Backend> {
        let made = self.made.lock();
        made.iter().map(|domain| Backend::Leaf(Arc::clone(&domain.leaf))).collect()
    }
}

impl Domains {
    /// The backend for a host and a port (empty for the director's own), made when it is not there.
    fn leaf(&self, host: &str, port: &str, now: f64, world: &dyn World) -> Option<Arc<Leaf>> {
        let port = if port.is_empty() { &self.spec.port } else { port };
        let port = port_of(port)?;
        let mut made = self.made.lock();
        let is_it = |domain: &&mut Domain| {
            *domain.leaf.spec.host == *host && *domain.leaf.spec.port == *port
        };
        if let Some(domain) = made.iter_mut().find(is_it) {
            domain.used = now;
            return Some(Arc::clone(&domain.leaf));
        }
        made.retain(|domain| now - domain.used <= self.usage_timeout);
        if made.len() >= world.shared().most_backends() {
            world.limit(Limit::DirectorBackends);
            return None;
        }
        let spec = BackendSpec {
            host: host.into(),
            port: port.into(),
            host_header: self.spec.host_header.clone().or_else(|| Some(host.into())),
            ..self.spec.clone()
        };
        let leaf = Leaf::new(format!("{}({host}:{port})", self.name), spec);
        made.push(Domain { leaf: Arc::clone(&leaf), used: now });
        Some(leaf)
    }
}

/// A port as a number, or by the names that mean something here.
fn port_of(port: &str) -> Option<&str> {
    match port {
        "http" => Some("80"),
        "https" => Some("443"),
        number => number.parse::<u16>().ok().filter(|n| *n > 0).map(|_| number),
    }
}

/// Host and port that are meant; a port that was not given is empty. None for what is no host.
fn place_of(ctx: &Ctx<'_>, host: &str, port: &str) -> Option<(Box<str>, Box<str>)> {
    if !host.is_empty() {
        return is_host(host).then(|| (host.to_ascii_lowercase().into(), port.into()));
    }
    let of_fetch = ctx.bereq.as_ref().map(|bereq| &bereq.head.headers);
    let headers = of_fetch.or_else(|| ctx.req.as_ref().map(|req| &req.head.headers))?;
    let value = std::str::from_utf8(headers.value(message::HeaderId::Host)?).ok()?;
    // Its port is that of our listener, and means nothing for where the backend is.
    let host = match value.rsplit_once(':') {
        Some((host, after)) if after.bytes().all(|b| b.is_ascii_digit()) => host,
        _ => value,
    };
    is_host(host).then(|| (host.to_ascii_lowercase().into(), port.into()))
}

/// A host name, or an IP address (of version 6 without brackets).
fn is_host(host: &str) -> bool {
    let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    let is_name = host.len() <= 253 && !host.is_empty() && host.bytes().all(is_name);
    is_name || host.parse::<std::net::IpAddr>().is_ok()
}

fn construct(
    ctx: &mut Ctx<'_>,
    naming: &crate::vmod::Naming<'_>,
    args: &[Value],
) -> Result<Arc<dyn Object>, Failure> {
    let refuse = |why: String| Failure::new(format!("dynamic {}: {why}", naming.name));
    let string = |at| String::from_utf8_lossy(args.bytes(at)).into_owned();
    let seconds = |at| args.real(at).filter(|seconds| *seconds > 0.0);
    let port = string(0);
    if port_of(&port).is_none() {
        return Err(refuse(format!("no port: {port}")));
    }
    if args.word(2).is_some_and(|share| share != "DIRECTOR") {
        return Err(refuse("share: every backend has its own probe and connections".into()));
    }
    if args.real(9).is_some_and(|seconds| seconds != FIRST_LOOKUP) {
        return Err(refuse(
            "first_lookup_timeout: the first request waits as long as connect_timeout says".into(),
        ));
    }
    let lookups = Lookups {
        from: args.word(12).unwrap_or("cfg"),
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
    Ok(Arc::new(Handle(Arc::new(Domains {
        name: naming.name.into(),
        spec,
        usage_timeout: args.real(8).unwrap_or(7200.0),
        made: Mutex::default(),
    }))))
}

fn backend(ctx: &mut Ctx<'_>, object: &Arc<dyn Object>, args: &[Value]) -> Result<Value, Failure> {
    let domains = &this::<Handle>(object)?.0;
    let (host, port) = (args.bytes(0), args.bytes(1));
    if ctx.sub.side() == Side::Housekeeping && host.is_empty() {
        // As a member of another director: it goes by the request then.
        return Ok(Value::Backend(Backend::Director(domains.clone())));
    }
    let texts = std::str::from_utf8(host).ok().zip(std::str::from_utf8(port).ok());
    let leaf = texts
        .and_then(|(host, port)| place_of(ctx, host, port))
        .and_then(|(host, port)| domains.leaf(&host, &port, ctx.now, ctx.world));
    if leaf.is_none() {
        let line = format!("dynamic {}: no backend for {}", domains.name, host.escape_ascii());
        ctx.world.log(Tag::Error, line.as_bytes());
    }
    Ok(Value::Backend(leaf.map_or(Backend::None, Backend::Leaf)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sub::Sub;
    use base::Limits;

    use crate::testing::{Bench, Memory};
    use crate::vmod::{Default, Naming};

    fn made(bench: &mut Bench, port: &str) -> Result<Arc<dyn Object>, Failure> {
        made_with(bench, 0, Value::String(Some(port.to_string().into())))
    }

    /// One whose argument `at` is this.
    fn made_with(bench: &mut Bench, at: usize, value: Value) -> Result<Arc<dyn Object>, Failure> {
        let mut args: Vec<Value> = CLASS
            .params
            .iter()
            .map(|param| match (param.default, param.kind) {
                (Some(Default::Number(n)), crate::vmod::Kind::Of(Type::Int)) => {
                    Value::Int(n as i64)
                }
                (Some(Default::Number(n)), _) => Value::Duration(n),
                (Some(Default::Word(word)), _) => Value::Enum(word),
                (Some(Default::Str(text)), _) => Value::String(Some(text.into())),
                _ => Value::Void,
            })
            .collect();
        args[at] = value;
        let naming = Naming { name: "d", number: 0 };
        construct(&mut bench.ctx(Sub::Init), &naming, &args)
    }

    fn leaf(bench: &mut Bench, object: &Arc<dyn Object>, host: &str, port: &str) -> Backend {
        let string = |text: &str| Value::String(Some(text.to_string().into()));
        let args = [string(host), string(port)];
        match backend(&mut bench.ctx(Sub::BackendFetch), object, &args) {
            Ok(Value::Backend(backend)) => backend,
            other => panic!("no backend: {other:?}"),
        }
    }

    #[test]
    fn a_host_and_port_are_one_backend() {
        let mut bench = Bench::bare();
        let object = made(&mut bench, "http").expect("its arguments are right");
        let first = leaf(&mut bench, &object, "App.example", "");
        assert_eq!(first.name(), "d(app.example:80)");
        assert!(first.is(&leaf(&mut bench, &object, "app.example", "80")));
        assert!(!first.is(&leaf(&mut bench, &object, "app.example", "8080")));
        let Backend::Leaf(first) = first else { panic!("not one to connect to") };
        assert!(first.spec.follows);
        assert_eq!(first.spec.host_header.as_deref(), Some("app.example"));
    }

    #[test]
    fn without_a_host_it_is_that_of_the_request() {
        let mut bench = Bench::bare();
        let object = made(&mut bench, "8080").expect("its arguments are right");
        bench.bereq.headers.set(message::HeaderId::Host, b"shop.example:6081");
        let chosen = leaf(&mut bench, &object, "", "");
        assert_eq!(chosen.name(), "d(shop.example:8080)");
    }

    #[test]
    fn what_is_no_host_has_no_backend() {
        let mut bench = Bench::bare();
        let object = made(&mut bench, "http").expect("its arguments are right");
        for (host, port) in [("a b", ""), ("a/b", ""), ("a", "0"), ("a", "x"), ("a:80", "")] {
            assert!(leaf(&mut bench, &object, host, port).is(&Backend::None), "{host} {port}");
        }
        assert!(!leaf(&mut bench, &object, "::1", "").is(&Backend::None));
        assert!(made(&mut bench, "ftp").is_err());
    }

    #[test]
    fn lookups_are_made_when_the_program_says() {
        let mut bench = Bench::bare();
        let object = made_with(&mut bench, 4, Value::Duration(5.0)).expect("any time will do");
        let Backend::Leaf(first) = leaf(&mut bench, &object, "a.example", "") else {
            panic!("no backend to connect to")
        };
        let expected = Lookups { from: "cfg", ttl: 5.0, retry: 30.0 };
        assert_eq!(first.spec.lookups, Some(expected));
    }

    #[test]
    fn what_is_not_carried_out_is_refused() {
        let mut bench = Bench::bare();
        for (at, value) in [(2, Value::Enum("HOST")), (9, Value::Duration(5.0))] {
            assert!(made_with(&mut bench, at, value).is_err(), "{at}");
        }
        assert!(made_with(&mut bench, 9, Value::Duration(10.0)).is_ok());
    }

    #[test]
    fn backends_that_nobody_asks_for_go() {
        let mut bench = Bench::bare();
        let object = made(&mut bench, "http").expect("its arguments are right");
        leaf(&mut bench, &object, "a", "");
        bench.now += 7000.0;
        leaf(&mut bench, &object, "b", "");
        bench.now += 7000.0;
        leaf(&mut bench, &object, "c", "");
        let director = object.backend().expect("it is a director");
        let Backend::Director(director) = director else { panic!("no director") };
        let names: Vec<String> = director.members().iter().map(|m| m.name().to_string()).collect();
        assert_eq!(names, ["d(b:80)", "d(c:80)"]);
    }

    #[test]
    fn there_are_at_most_so_many() {
        let mut bench = Bench::bare();
        let object = made(&mut bench, "http").expect("its arguments are right");
        let domains = &this::<Handle>(&object).expect("it is one").0;
        let world = Memory::default();
        world.shared.set_limits(&Limits { director_backends: 2, ..Limits::default() });
        for (host, there) in [("a", true), ("b", true), ("c", false), ("a", true)] {
            assert_eq!(domains.leaf(host, "", 0.0, &world).is_some(), there, "{host}");
        }
        assert_eq!(*world.limits.borrow(), [Limit::DirectorBackends]);
    }
}
