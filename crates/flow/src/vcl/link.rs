//! A program's backends and our origins: each backend is an origin with one server.
//!
//! Varnish knows no ejection, no queue in front of a busy backend and no retry but that of a kept
//! connection which turns out to be closed: neither has such an origin.

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;

use origin::{
    Address, EjectConfig, Opening, Order, Origin, OriginConfig, ProbeConfig, Protocol, ProxyHeader,
    Reserved, ServerConfig,
};
use varnishcli::{Param, Params};
use vcl::backend::{BackendSpec, Leaf, Link, ProbeSpec};

/// What a backend is connected by.
#[derive(Debug)]
pub struct Connected {
    /// The origin.
    pub origin: Arc<Origin>,
}

impl Connected {
    /// What `leaf` is connected by; none when it is not yet.
    pub fn of(leaf: &Leaf) -> Option<&Self> {
        leaf.link()?.as_any().downcast_ref()
    }

    /// What an operator said of it.
    pub fn order(&self) -> Order {
        self.origin.servers().first().map(|server| server.order).unwrap_or_default()
    }

    /// Has an operator's word count for it.
    pub fn set_order(&self, order: Order) {
        for server in self.origin.servers() {
            self.origin.order(&server.name, order);
        }
    }
}

impl Link for Connected {
    fn is_healthy(&self) -> bool {
        self.origin.is_healthy()
    }

    fn changed(&self) -> f64 {
        self.origin.changed_ms() as f64 / 1000.0
    }

    fn in_use(&self) -> u32 {
        self.origin.in_flight()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The origin of the backend called `name`, which does not lead to what is `reserved`.
///
/// # Errors
/// What of it cannot be used.
pub fn origin_of(
    name: &str,
    spec: &BackendSpec,
    params: &Params,
    limits: &base::Limits,
    reserved: &Arc<Reserved>,
) -> Result<OriginConfig, String> {
    let server =
        ServerConfig { address: address(spec)?, protocol: Protocol::Http, weight: 1, tls: false };
    let proxy = match spec.proxy_header {
        1 => Some(ProxyHeader::V1),
        2 => Some(ProxyHeader::V2),
        _ => None,
    };
    let host = spec.host_header.as_deref().unwrap_or(match spec.path {
        // What varnishd says of a socket.
        Some(_) => "0.0.0.0",
        None => &spec.host,
    });
    let preamble = spec.preamble.clone().unwrap_or_default();
    Ok(OriginConfig {
        probe: spec.probe.as_ref().map(probe),
        host_default: Some(host.to_owned()),
        opening: Opening { preamble, proxy },
        max_connections: spec.max_connections,
        queue: 0,
        retries: 0,
        eject: EjectConfig { failures: 0, ..EjectConfig::default() },
        idle_timeout_ms: ms(params.seconds(Param::BackendIdleTimeout)),
        reserved: Arc::clone(reserved),
        ..OriginConfig::with_limits(name, vec![server], limits)
    })
}

/// Where a backend listens.
fn address(spec: &BackendSpec) -> Result<Address, String> {
    if let Some(path) = &spec.path {
        return Ok(Address::Unix(PathBuf::from(&**path)));
    }
    let port = match &*spec.port {
        "" | "http" => 80,
        "https" => 443,
        digits => digits
            .parse()
            .ok()
            .filter(|port| *port != 0)
            .ok_or_else(|| format!("`{digits}` is no port"))?,
    };
    let host = spec.host.trim_start_matches('[').trim_end_matches(']');
    Ok(Address::Tcp { host: host.to_ascii_lowercase(), port })
}

/// A probe as Varnish makes it: the request's lines, and what decides until the first one has ended.
fn probe(spec: &ProbeSpec) -> ProbeConfig {
    let window = spec.window.clamp(1, u64::BITS);
    let threshold = spec.threshold.min(window);
    ProbeConfig {
        path: spec.url.to_string(),
        request: spec.request.as_deref().map(|request| request.to_vec()),
        initial: Some(spec.initial.unwrap_or(threshold.saturating_sub(1))),
        expect_close: spec.expect_close,
        host: None,
        interval_ms: ms(spec.interval),
        timeout_ms: ms(spec.timeout),
        window,
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
    use super::*;

    fn origin(spec: &BackendSpec) -> OriginConfig {
        let reserved = Arc::default();
        let (params, limits) = (Params::default(), base::Limits::default());
        origin_of("b", spec, &params, &limits, &reserved).expect("an origin")
    }

    #[test]
    fn a_backend_is_an_origin_of_one_server_that_is_asked_once() {
        let spec = BackendSpec {
            host: "App.test".into(),
            port: "8080".into(),
            max_connections: 7,
            proxy_header: 2,
            ..BackendSpec::default()
        };
        let made = origin(&spec);
        assert_eq!(made.servers[0].address.to_string(), "app.test:8080");
        assert_eq!(made.host_default.as_deref(), Some("App.test"));
        assert_eq!((made.max_connections, made.queue, made.retries), (7, 0, 0));
        assert_eq!(made.opening.proxy, Some(ProxyHeader::V2));
        assert_eq!(made.idle_timeout_ms, 60_000);
        let spec = BackendSpec { path: Some("/run/app.sock".into()), ..BackendSpec::default() };
        let made = origin(&spec);
        assert_eq!(made.servers[0].address.to_string(), "unix:/run/app.sock");
        assert_eq!(made.host_default.as_deref(), Some("0.0.0.0"));
        let bad = BackendSpec { port: "x".into(), ..BackendSpec::default() };
        assert_eq!(address(&bad), Err("`x` is no port".to_owned()));
    }

    #[test]
    fn a_probe_is_one_short_of_good_unless_it_says_otherwise() {
        let made = |initial| probe(&ProbeSpec { initial, ..ProbeSpec::default() }).initial;
        assert_eq!(made(None), Some(2));
        assert_eq!(made(Some(0)), Some(0));
        let lines = Some(Box::from(&b"GET / HTTP/1.1\r\n\r\n"[..]));
        let asked = probe(&ProbeSpec { request: lines, ..ProbeSpec::default() });
        assert_eq!(asked.request.as_deref(), Some(&b"GET / HTTP/1.1\r\n\r\n"[..]));
    }

    #[test]
    fn what_is_hung_to_a_backend_is_found_there() {
        let spec = BackendSpec { host: "127.0.0.1".into(), ..BackendSpec::default() };
        let leaf = Leaf::new("b", spec.clone());
        assert!(Connected::of(&leaf).is_none() && leaf.is_healthy());
        let connected = Connected { origin: Origin::new(origin(&spec)) };
        assert!(leaf.set_link(Arc::new(connected)));
        let connected = Connected::of(&leaf).expect("connected");
        connected.set_order(Order::Down);
        assert!(!leaf.is_healthy());
        assert_eq!(connected.order(), Order::Down);
        connected.set_order(Order::Auto);
        assert!(leaf.is_healthy());
    }
}
