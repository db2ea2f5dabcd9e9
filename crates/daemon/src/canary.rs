//! The canary: a node that runs a new configuration before the others do, and checks itself. It
//! requests some of its own URLs, and compares the share of failed responses with that before.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use base::{Counter, Limits};
use message::{Method, Request};
use net::{ListenAddress, ListenerSettings};
use origin::{
    Address, CorePool, Origin, OriginConfig, OriginRequestContext, Protocol, RequestBody,
    ServerConfig, TlsConfig,
};
use tls::Upstream;

use crate::state::Daemon;

/// The interval at which failures are counted.
const LOOK: Duration = Duration::from_secs(1);
/// The timeout of a check.
const PATIENCE: Duration = Duration::from_secs(10);
/// Fewest failures that are more than chance.
const FAILURES_MIN: u64 = 10;
/// Percentage points by which the share of failures may grow.
const POINTS: u64 = 5;
/// Percentage points by which the share of refusals (4xx) may grow: clients cause some themselves.
const REFUSAL_POINTS: u64 = 25;

/// A URL that a node requests of itself, and the expected status; without one, any below 500.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Check {
    status: Option<u16>,
    is_tls: bool,
    host: String,
    port: Option<u16>,
    target: String,
    text: String,
}

impl Check {
    /// Parses `https://host/path`, with an optional status and a space in front.
    ///
    /// # Errors
    /// The reason why it is invalid.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| Err(format!("`{text}` cannot be checked: {why}"));
        let (status, url) = match text.split_once(' ') {
            Some((status, url)) => match status.parse() {
                Ok(status @ 100..=599) => (Some(status), url),
                _ => return wrong("a status has three digits"),
            },
            None => (None, text),
        };
        let (is_tls, rest) = match (url.strip_prefix("http://"), url.strip_prefix("https://")) {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => return wrong("a URL begins with http:// or https://"),
        };
        let (authority, target) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, "/"),
        };
        let authority = authority.to_ascii_lowercase();
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => match port.parse() {
                Ok(port) => (host.to_owned(), Some(port)),
                Err(_) => return wrong("its port is none"),
            },
            _ => (authority, None),
        };
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"@#\"<>\\^`{|}".contains(&byte);
        if host.is_empty() || !host.bytes().chain(target.bytes()).all(is_plain) {
            return wrong("a host and a path are wanted, escaped as in a browser's request");
        }
        let (target, text) = (target.to_owned(), text.to_owned());
        Ok(Self { status, is_tls, host, port, target, text })
    }

    fn is_good(&self, status: u16) -> bool {
        self.status.map_or(status < 500, |wanted| wanted == status)
    }

    /// The listener of this node that serves the URL: the request takes a client's way.
    fn listener<'a>(&self, listeners: &'a [ListenerSettings]) -> Option<&'a ListenerSettings> {
        let fits = |listener: &&ListenerSettings| {
            listener.tls == self.is_tls && !listener.proxy && !listener.peers
        };
        listeners.iter().filter(fits).find(|listener| match &listener.at {
            ListenAddress::Address(_) => true,
            ListenAddress::Path(..) => !self.is_tls,
            ListenAddress::Given(_) => false,
        })
    }

    /// This node as an origin that it may request from.
    ///
    /// # Errors
    /// The reason why it cannot.
    fn origin(
        &self,
        listeners: &[ListenerSettings],
        limits: &Limits,
    ) -> Result<Arc<Origin>, String> {
        let kind = if self.is_tls { "with TLS" } else { "without TLS" };
        let none = || format!("no listener of this node {kind} takes it");
        let address = match &self.listener(listeners).ok_or_else(none)?.at {
            ListenAddress::Address(address) => {
                let name = address.to_string();
                Address::Fixed { name, addresses: vec![reached(*address)] }
            }
            ListenAddress::Path(path, _) => Address::Unix(path.clone()),
            ListenAddress::Given(_) => return Err(none()),
        };
        let server = ServerConfig {
            address,
            protocol: Protocol::Http,
            weight: 1,
            backup: false,
            tls: self.is_tls,
        };
        let config = OriginConfig::with_limits("this node", vec![server], limits);
        // The peer is this very process: no certificate needs to be verified.
        let upstream = Upstream::new(None, None).map_err(|error| error.to_string())?;
        let tls = self.is_tls.then(|| TlsConfig { upstream, name: Some(self.host.clone()) });
        Ok(Origin::new(OriginConfig { retries: 0, tls, ..config }))
    }

    fn request(&self) -> Request {
        let mut request = Request::new();
        request.method = Method::Get;
        request.host = self.host.clone().into_bytes();
        request.port = self.port;
        request.target = self.target.clone().into_bytes();
        request
    }

    /// The status of this node's response.
    async fn ask(&self, daemon: &Daemon, listeners: &[ListenerSettings]) -> Result<u16, String> {
        let limits = daemon.shared.live().limits.clone();
        let origin = self.origin(listeners, &limits)?;
        let pool = CorePool::new(daemon.shared.counters.register(), &limits);
        let caller = OriginRequestContext::default();
        let request = self.request();
        let sent = pool.send(&origin, &request, RequestBody::None, 0, &caller, &mut ()).await;
        let mut exchange = sent.map_err(|error| error.to_string())?;
        let status = exchange.response.status.code();
        // A truncated body is a failure, too.
        while exchange.next(&mut |_| {}).await.map_err(|error| error.to_string())? {}
        Ok(status)
    }
}

/// The address at which this machine reaches a listener of its own.
fn reached(address: SocketAddr) -> SocketAddr {
    let ip: IpAddr = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        other => other,
    };
    SocketAddr::new(ip, address.port())
}

/// Responses and failures of a node, since its start or in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Share {
    all: u64,
    failed: u64,
}

impl Share {
    fn since(self, before: Self) -> Self {
        let (all, failed) = (self.all.saturating_sub(before.all), self.failed);
        Self { all, failed: failed.saturating_sub(before.failed) }
    }

    /// The share in hundredths of a percent.
    fn points(self) -> u64 {
        self.failed.saturating_mul(10_000) / self.all.max(1)
    }

    /// Returns true if the share of failures is above `before` by more than `points`.
    fn has_jumped(self, before: Self, points: u64) -> bool {
        self.failed >= FAILURES_MIN && self.points() > before.points() + 100 * points
    }
}

/// Responses of a node to its clients, and of origins to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Conduct {
    answers: Share,
    /// Responses that clients or a missing site cause.
    refusals: Share,
    fetches: Share,
}

impl Conduct {
    /// The counts since the node's start.
    pub(crate) fn of(daemon: &Daemon) -> Self {
        let sum = |counter| daemon.shared.counters.sum(counter);
        let failed = sum(Counter::Status5xx);
        let others = [Counter::Status2xx, Counter::Status3xx, Counter::Status4xx].map(sum);
        let all = others.iter().sum::<u64>() + failed;
        let answers = Share { all, failed };
        let refusals = Share { all, failed: others[2] };
        let fetches = Share { all: sum(Counter::Fetches), failed: sum(Counter::FetchFailures) };
        Self { answers, refusals, fetches }
    }

    /// The reason why a node with these counts is unhealthy, compared with `before`; `None` if it
    /// is healthy.
    fn fault(self, before: Self) -> Option<String> {
        let told = |what: &str, points: u64, now: Share, before: Share| {
            let now = now.since(before);
            let percent =
                |share: Share| format!("{}.{:02}%", share.points() / 100, share.points() % 100);
            now.has_jumped(before, points).then(|| {
                let Share { all, failed } = now;
                let (now, before) = (percent(now), percent(before));
                format!("{failed} of {all} {what}: {now}, after {before} before")
            })
        };
        let answers = told("answers were errors (5xx)", POINTS, self.answers, before.answers);
        answers
            .or_else(|| told("requests to origins failed", POINTS, self.fetches, before.fetches))
            .or_else(|| {
                let what = "answers were refusals (4xx)";
                told(what, REFUSAL_POINTS, self.refusals, before.refusals)
            })
    }
}

/// Runs all checks.
///
/// # Errors
/// The first failed check, and the reason.
async fn check_all(
    daemon: &Arc<Daemon>,
    listeners: &Arc<[ListenerSettings]>,
    checks: &[Check],
) -> Result<(), String> {
    for check in checks {
        let (daemon, listeners, own) = (Arc::clone(daemon), Arc::clone(listeners), check.clone());
        // A connection pool belongs to its thread.
        let asked = rt::blocking(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| error.to_string())?;
            tokio::task::LocalSet::new().block_on(&runtime, async {
                let asked = rt::time::timeout(PATIENCE, own.ask(&daemon, &listeners)).await;
                asked.unwrap_or_else(|_| Err(format!("no answer within {} s", PATIENCE.as_secs())))
            })
        });
        let answer = asked.await.unwrap_or_else(|_| Err("it panicked, which is a bug".to_owned()));
        match answer {
            Ok(status) if check.is_good(status) => {}
            Ok(status) => return Err(format!("check {}: it answers {status}", check.text)),
            Err(why) => return Err(format!("check {}: {why}", check.text)),
        }
    }
    Ok(())
}

/// Watches this node for a while: it runs the checks at the beginning and the end, and counts
/// failures all the time. `before` are the counts until the configuration took effect.
///
/// # Errors
/// The reason why it is unhealthy.
pub(crate) async fn watch(
    daemon: Arc<Daemon>,
    listeners: Arc<[ListenerSettings]>,
    before: Conduct,
    checks: Vec<String>,
    watch_ms: u64,
) -> Result<(), String> {
    let checks = checks.iter().map(|text| Check::parse(text)).collect::<Result<Vec<_>, _>>()?;
    check_all(&daemon, &listeners, &checks).await?;
    let until_ms = rt::now().mono_ms.saturating_add(watch_ms);
    loop {
        if let Some(why) = Conduct::of(&daemon).fault(before) {
            return Err(why);
        }
        let left = Duration::from_millis(until_ms.saturating_sub(rt::now().mono_ms));
        if left.is_zero() {
            break;
        }
        rt::time::sleep(left.min(LOOK)).await;
    }
    if watch_ms > 0 { check_all(&daemon, &listeners, &checks).await } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_a_url_and_may_say_its_status() {
        let check = Check::parse("204 https://A.test:8443/x?y=1").expect("a check");
        assert_eq!((check.status, check.is_tls, check.port), (Some(204), true, Some(8443)));
        assert_eq!((check.host.as_str(), check.target.as_str()), ("a.test", "/x?y=1"));
        assert!(check.is_good(204) && !check.is_good(200));
        let check = Check::parse("http://[::1]").expect("a check");
        assert_eq!((check.host.as_str(), check.port, check.target.as_str()), ("[::1]", None, "/"));
        assert!(check.is_good(404) && !check.is_good(500) && !check.is_good(503));
        for wrong in [
            "",
            "a.test/",
            "ftp://a.test/",
            "http://",
            "http:///x",
            "http://a.test/a b",
            "http://u@a.test/",
            "2x http://a.test/",
            "600 http://a.test/",
            "http://a.test:x/",
            "http://a.test/\r\nx: y",
            "http://a.test/ä",
        ] {
            let why = Check::parse(wrong).expect_err(wrong);
            assert!(why.contains("cannot be checked"), "{why}");
        }
    }

    #[test]
    fn a_check_comes_in_by_a_listener_of_its_kind() {
        let at = |at: ListenAddress, tls, proxy| ListenerSettings {
            at,
            tls,
            h2c: false,
            proxy,
            endpoint: 0,
            peers: false,
        };
        let address = |port| ListenAddress::Address(([127, 0, 0, 1], port).into());
        let listeners = [
            at(address(1), false, true),
            ListenerSettings { peers: true, ..at(address(2), true, false) },
            at(address(3), true, false),
            at(address(4), false, false),
        ];
        let listener = |url: &str| {
            let check = Check::parse(url).expect("a check");
            check.listener(&listeners).map(|listener| listener.at.to_string())
        };
        assert_eq!(listener("http://a.test/").as_deref(), Some("127.0.0.1:4"));
        assert_eq!(listener("https://a.test/").as_deref(), Some("127.0.0.1:3"));
        let check = Check::parse("https://a.test/").expect("a check");
        let none = check.origin(&listeners[3..], &Limits::default()).err();
        assert_eq!(none.as_deref(), Some("no listener of this node with TLS takes it"));
        assert_eq!(reached("0.0.0.0:80".parse().expect("one")).to_string(), "127.0.0.1:80");
        assert_eq!(reached("[::]:80".parse().expect("one")).to_string(), "[::1]:80");
    }

    #[test]
    fn a_few_failures_are_chance_and_a_share_that_was_there_before_is_nobodys_fault() {
        let share = |all, failed| Share { all, failed };
        for (before, now, has_jumped) in [
            (share(1_000, 0), share(100, 9), false),
            (share(1_000, 0), share(100, 10), true),
            (share(1_000, 0), share(1_000, 50), false),
            (share(1_000, 0), share(1_000, 51), true),
            (share(1_000, 500), share(1_000, 549), false),
            (share(1_000, 500), share(1_000, 551), true),
            (share(0, 0), share(10, 10), true),
            (share(0, 0), share(0, 0), false),
        ] {
            assert_eq!(now.has_jumped(before, POINTS), has_jumped, "{before:?} {now:?}");
        }
        let refusals = share(100, 10);
        let before = Conduct { answers: share(100, 1), refusals, fetches: share(100, 1) };
        let now = Conduct { answers: share(200, 1), fetches: share(120, 21), ..before };
        let why = now.fault(before).expect("origins fail");
        assert_eq!(why, "20 of 20 requests to origins failed: 100.00%, after 1.00% before");
        assert_eq!(before.fault(before), None);
        // More 404s may be a crawler; requests without a site come from the configuration.
        let some = Conduct { refusals: share(200, 40), ..before };
        assert_eq!(some.fault(before), None);
        let all = Conduct { refusals: share(200, 110), ..before };
        let why = all.fault(before).expect("nothing is answered");
        assert_eq!(why, "100 of 100 answers were refusals (4xx): 100.00%, after 10.00% before");
    }
}
