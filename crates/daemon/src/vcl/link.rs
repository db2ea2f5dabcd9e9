//! Links from a program's backends to origins: each backend is an origin with one server.
//!
//! Varnish has no ejection, no client share of a busy backend, and no retry except on a kept
//! connection that turns out to be closed; these origins have none either. Addresses are those of
//! the load, for the program's life.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use base::Limits;
use bytes::Bytes;
use flow::vcl::link::BackendOrigin;
use origin::{
    Address, EjectConfig, Journal, LookupPace, LookupTtl, Lookups, Opening, OriginConfig,
    ProbeConfig, Protocol, ProxyHeader, ReservedAddresses, ServerConfig,
};
use tokio::runtime::Handle;
use vcl::backend::{Backend, BackendSpec, Leaf, ProbeSpec, locate, split};
use vcl::params::{Param, Params};

/// The settings to connect backends with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkSettings<'a> {
    /// Varnish's parameters.
    pub(crate) params: &'a Params,
    /// Limits.
    pub(crate) limits: &'a Limits,
    /// Addresses that no backend may lead to.
    pub(crate) reserved: &'a Arc<ReservedAddresses>,
    /// The pace of lookups, where clients choose the names.
    pub(crate) pace: Option<&'a Arc<LookupPace>>,
}

/// Connects `leaf`, unless it is connected.
///
/// # Errors
/// The declaration cannot be used; the text gives the reason.
pub(crate) fn connect(leaf: &Leaf, settings: &LinkSettings<'_>) -> Result<(), String> {
    if leaf.link().is_none() {
        let config = origin_of(&leaf.name, &leaf.spec, settings)
            .map_err(|error| format!("backend {}: {error}", leaf.name))?;
        // If another thread was faster, its link stays.
        leaf.set_link(Arc::new(BackendOrigin::new(config)));
    }
    Ok(())
}

/// Connects all of `backends`, with the members of directors.
///
/// # Errors
/// The first declaration that cannot be used; the text gives the reason.
pub(crate) fn connect_all(backends: &[Backend], settings: &LinkSettings<'_>) -> Result<(), String> {
    let mut result = Ok(());
    each(backends, &mut |leaf| {
        if result.is_ok() {
            result = connect(leaf, settings);
        }
    });
    result
}

/// Starts the probes of `backends`, when their program becomes warm.
pub(crate) fn warm(backends: &[Backend], runtime: &Handle, journal: Option<&Arc<dyn Journal>>) {
    each(backends, &mut |leaf| {
        if let Some(connected) = BackendOrigin::of(leaf) {
            connected.warm(runtime, journal.cloned());
        }
    });
}

/// Stops the probes of `backends`, when their program becomes cold. Those of a dropped backend have
/// ended with it.
pub(crate) fn cool(backends: &[Backend]) {
    each(backends, &mut |leaf| {
        if let Some(connected) = BackendOrigin::of(leaf) {
            connected.cool();
        }
    });
}

/// Calls `what` with each backend that can be connected to, with some more than once.
fn each(backends: &[Backend], what: &mut dyn FnMut(&Leaf)) {
    for backend in backends {
        match backend {
            Backend::None => {}
            Backend::Leaf(leaf) => what(leaf),
            // A director's members were declared before it: this ends.
            Backend::Director(director) => each(&director.members(), what),
        }
    }
}

/// The origin of the backend called `name`.
fn origin_of(
    name: &str,
    spec: &BackendSpec,
    settings: &LinkSettings<'_>,
) -> Result<OriginConfig, String> {
    let LinkSettings { params, limits, reserved, pace } = settings;
    let (address, preamble) = match &spec.via {
        None => (address(spec, params)?, spec.preamble.clone().unwrap_or_default()),
        Some(proxy) => (address(proxy, params)?, through(spec, params)?),
    };
    let server =
        ServerConfig { address, protocol: Protocol::Http, weight: 1, backup: false, tls: false };
    let proxy = match spec.proxy_header {
        1 => Some(ProxyHeader::V1),
        2 => Some(ProxyHeader::V2),
        _ => None,
    };
    let host = spec.host_header.as_deref().unwrap_or(match spec.path {
        // As varnishd shows a socket.
        Some(_) => "0.0.0.0",
        None => &spec.host,
    });
    Ok(OriginConfig {
        probe: spec.probe.as_ref().map(|spec| probe(spec, host)),
        host_default: Some(host.to_owned()),
        opening: Opening { preamble, proxy },
        max_connections: spec.max_connections,
        client_share_percent: 100,
        queue: spec.wait_limit.unwrap_or_else(|| clamp(params.number(Param::BackendWaitLimit))),
        queue_timeout_ms: ms(spec
            .wait_timeout
            .unwrap_or_else(|| params.seconds(Param::BackendWaitTimeout))),
        retries: 0,
        // As Varnish accepts them.
        lenient: true,
        eject: EjectConfig { failures: 0, ..EjectConfig::default() },
        lookups: spec.lookups.map(lookups).unwrap_or_default(),
        pace: pace.cloned(),
        idle_timeout_ms: ms(params.seconds(Param::BackendIdleTimeout)),
        reserved: Arc::clone(reserved),
        ..OriginConfig::with_limits(name, vec![server], limits)
    })
}

/// The preamble for a proxy (`.via`), followed by the backend's own.
fn through(spec: &BackendSpec, params: &Params) -> Result<Bytes, String> {
    let Address::Fixed { addresses, .. } = address(spec, params)? else {
        return Err("a host that is looked up again cannot be reached through a proxy".to_owned());
    };
    let destination = addresses.first().ok_or_else(|| "it has no address".to_owned())?;
    let own = spec.authority.as_deref().or(spec.host_header.as_deref());
    let named = own.unwrap_or(&spec.host);
    let authority = named.split(':').next().unwrap_or_default();
    let is_address = named.parse::<IpAddr>().is_ok() || authority.parse::<IpAddr>().is_ok();
    let authority = if is_address || named.starts_with('[') { "" } else { authority };
    let mut out = Vec::new();
    proxyproto::write_via(&mut out, *destination, authority);
    out.extend_from_slice(spec.preamble.as_deref().unwrap_or_default());
    Ok(out.into())
}

/// A number clamped to the type's range.
fn clamp(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The rule for looking up a backend's name again.
fn lookups(own: vcl::backend::Lookups) -> Lookups {
    let from = match own.from {
        "dns" => LookupTtl::Answer,
        "min" => LookupTtl::Min,
        "max" => LookupTtl::Max,
        _ => LookupTtl::Own,
    };
    Lookups { from, ttl_ms: ms(own.ttl.max(0.0)), retry_ms: ms(own.retry.max(0.0)) }
}

/// The address of a backend.
fn address(spec: &BackendSpec, params: &Params) -> Result<Address, String> {
    if let Some(path) = &spec.path {
        return Ok(Address::Unix(PathBuf::from(&**path)));
    }
    if spec.follows {
        let (host, port) = split(&spec.host, &spec.port)?;
        return Ok(Address::Tcp { host: host.to_ascii_lowercase(), port });
    }
    let mut addresses = spec.addresses.clone();
    if addresses.is_empty() {
        let resolve = |host: &str| origin::look_up(host).map_err(|error| error.to_string());
        addresses = locate(&spec.host, &spec.port, &resolve)?;
    }
    if params.is_on(Param::PreferIpv6) {
        addresses.sort_by_key(|address| !address.is_ipv6());
    }
    let name = match &*spec.port {
        "" => spec.host.to_string(),
        port => format!("{}:{port}", spec.host),
    };
    Ok(Address::Fixed { name, addresses })
}

/// A probe as in Varnish: the request's lines, and the initial state. Zero means the default, as
/// there.
fn probe(spec: &ProbeSpec, host: &str) -> ProbeConfig {
    let usual = ProbeSpec::default();
    let some = |value: u32, usual: u32| if value == 0 { usual } else { value };
    let seconds = |value: f64, usual: f64| ms(if value > 0.0 { value } else { usual });
    let threshold = some(spec.threshold, usual.threshold);
    let request = match spec.request.as_deref() {
        Some(request) => request.to_vec(),
        None => format!("GET {} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n", spec.url)
            .into_bytes(),
    };
    ProbeConfig {
        grpc: None,
        path: spec.url.to_string(),
        request: Some(request),
        initial: Some(spec.initial.unwrap_or_else(|| threshold.saturating_sub(1))),
        expect_close: spec.expect_close,
        host: None,
        interval_ms: seconds(spec.interval, usual.interval),
        timeout_ms: seconds(spec.timeout, usual.timeout),
        window: some(spec.window, usual.window).min(u64::BITS),
        threshold,
        expected_status: spec.expected_response,
    }
}

/// Seconds as milliseconds.
fn ms(seconds: f64) -> u64 {
    (seconds * 1000.0).round() as u64
}

#[cfg(test)]
mod tests {
    use origin::HealthOverride;

    use super::*;

    fn made(spec: &BackendSpec) -> Result<OriginConfig, String> {
        let (params, limits, reserved) = (Params::default(), Limits::default(), Arc::default());
        let settings =
            LinkSettings { params: &params, limits: &limits, reserved: &reserved, pace: None };
        origin_of("b", spec, &settings)
    }

    fn at(host: &str, port: &str) -> BackendSpec {
        BackendSpec { host: host.into(), port: port.into(), ..BackendSpec::default() }
    }

    fn connected(spec: BackendSpec) -> Arc<Leaf> {
        let leaf = Leaf::new("b", spec);
        let (params, limits, reserved) = (Params::default(), Limits::default(), Arc::default());
        let settings =
            LinkSettings { params: &params, limits: &limits, reserved: &reserved, pace: None };
        connect(&leaf, &settings).expect("a good backend");
        leaf
    }

    #[test]
    fn a_backend_is_an_origin_of_one_server_that_is_asked_once() {
        let addresses = vec!["10.0.0.1:8080".parse().expect("an address")];
        let spec = BackendSpec {
            addresses: addresses.clone(),
            max_connections: 7,
            proxy_header: 2,
            ..at("App.test", "8080")
        };
        let origin = made(&spec).expect("an origin");
        let name = "App.test:8080".to_owned();
        assert_eq!(origin.servers[0].address, Address::Fixed { name, addresses });
        assert_eq!(origin.host_default.as_deref(), Some("App.test"));
        assert_eq!((origin.max_connections, origin.queue, origin.retries), (7, 0, 0));
        assert_eq!(origin.opening.proxy, Some(ProxyHeader::V2));
        assert_eq!(origin.idle_timeout_ms, 60_000);
        let spec = BackendSpec { path: Some("/run/app.sock".into()), ..BackendSpec::default() };
        let origin = made(&spec).expect("an origin");
        assert_eq!(origin.servers[0].address.to_string(), "unix:/run/app.sock");
        assert_eq!(origin.host_default.as_deref(), Some("0.0.0.0"));
        let error = made(&at("127.0.0.1", "x")).expect_err("no port");
        assert!(error.contains("`x` is no port"), "{error}");
    }

    #[test]
    fn a_name_that_is_followed_is_not_looked_up_beforehand() {
        let spec = BackendSpec { follows: true, ..at("App.invalid:81", "") };
        let origin = made(&spec).expect("an origin");
        let expected = Address::Tcp { host: "app.invalid".to_owned(), port: 81 };
        assert_eq!(origin.servers[0].address, expected);
        let times = vcl::backend::Lookups { from: "max", ttl: 5.0, retry: 0.5 };
        let spec = BackendSpec { lookups: Some(times), ..spec };
        let expected = Lookups { from: LookupTtl::Max, ttl_ms: 5_000, retry_ms: 500 };
        assert_eq!(made(&spec).expect("an origin").lookups, expected);
    }

    #[test]
    fn ipv6_goes_first_only_where_it_is_preferred() {
        let addresses = ["10.0.0.1:80", "[::1]:80"].map(|text| text.parse().expect("an address"));
        let spec = BackendSpec { addresses: addresses.into(), ..at("app", "") };
        let order = |params: &Params| match address(&spec, params).expect("an address") {
            Address::Fixed { addresses, .. } => addresses,
            other => panic!("{other}"),
        };
        let mut params = Params::default();
        assert_eq!(order(&params), addresses);
        params.set("prefer_ipv6", "on").expect("a parameter");
        assert_eq!(order(&params), [addresses[1], addresses[0]]);
    }

    #[test]
    fn a_probe_is_what_varnish_makes_of_it() {
        let of = |spec: &ProbeSpec| probe(spec, "app");
        let usual = of(&ProbeSpec { url: "/up".into(), ..ProbeSpec::default() });
        let request = &b"GET /up HTTP/1.1\r\nHost: app\r\nConnection: close\r\n\r\n"[..];
        assert_eq!(usual.request.as_deref(), Some(request));
        assert_eq!((usual.initial, usual.window, usual.threshold), (Some(2), 8, 3));
        let zero = ProbeSpec { threshold: 0, window: 0, interval: 0.0, ..ProbeSpec::default() };
        let zero = of(&zero);
        assert_eq!((zero.window, zero.threshold, zero.interval_ms), (8, 3, 5_000));
        assert_eq!(of(&ProbeSpec { initial: Some(0), ..ProbeSpec::default() }).initial, Some(0));
        let lines = Some(Box::from(&b"OPTIONS * HTTP/1.1\r\n\r\n"[..]));
        let asked = of(&ProbeSpec { request: lines, ..ProbeSpec::default() });
        assert_eq!(asked.request.as_deref(), Some(&b"OPTIONS * HTTP/1.1\r\n\r\n"[..]));
    }

    #[test]
    fn an_operators_word_counts_for_a_backend() {
        let leaf = Leaf::new("b", at("127.0.0.1", ""));
        assert!(BackendOrigin::of(&leaf).is_none() && leaf.is_healthy());
        let leaf = connected(at("127.0.0.1", ""));
        let connected = BackendOrigin::of(&leaf).expect("connected");
        connected.set_order(HealthOverride::Down);
        assert!(!leaf.is_healthy());
        assert_eq!(connected.order(), HealthOverride::Down);
        connected.set_order(HealthOverride::Auto);
        assert!(leaf.is_healthy());
    }

    #[test]
    fn a_backend_that_cannot_be_connected_is_named() {
        let leaf = Leaf::new("app", at("127.0.0.1", "no"));
        let (params, limits, reserved) = (Params::default(), Limits::default(), Arc::default());
        let settings =
            LinkSettings { params: &params, limits: &limits, reserved: &reserved, pace: None };
        let error = connect_all(&[Backend::None, Backend::Leaf(leaf)], &settings);
        assert!(error.expect_err("no port").starts_with("backend app: "));
    }

    #[tokio::test]
    async fn a_backend_is_probed_while_it_is_warm() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("an address").port().to_string();
        let spec = ProbeSpec { interval: 0.01, ..ProbeSpec::default() };
        let leaf = connected(BackendSpec { probe: Some(spec), ..at("127.0.0.1", &port) });
        assert!(!leaf.is_healthy(), "not before the first probe");
        let backends = [Backend::Leaf(Arc::clone(&leaf))];
        warm(&backends, &Handle::current(), None);
        let answer = async || {
            use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
            let (mut stream, _) = listener.accept().await.expect("a probe");
            let mut head = [0; 1024];
            let _ = stream.read(&mut head).await.expect("its request");
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.expect("answered");
        };
        while !leaf.is_healthy() {
            answer().await;
            rt::yield_now().await;
        }
        cool(&backends);
        let connected = BackendOrigin::of(&leaf).expect("connected");
        while Arc::strong_count(&connected.origin) > 1 {
            // The probes still hold it.
            rt::yield_now().await;
        }
        assert!(leaf.is_healthy(), "what is known stays");
    }
}
