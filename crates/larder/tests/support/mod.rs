//! The support of end-to-end tests: a daemon in front of a scripted origin, and ways to send
//! requests to it.

// Each test file uses its own part of this.
#![allow(dead_code, reason = "compiled once for every test file")]

pub(crate) mod balanced;
pub(crate) mod cli;
pub(crate) mod collector;
pub(crate) mod console;
pub(crate) mod disked;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod figures;
pub(crate) mod fleet;
pub(crate) mod folder;
pub(crate) mod h2;
pub(crate) mod htcp;
pub(crate) mod nats;
pub(crate) mod nginx;
pub(crate) mod nodes;
pub(crate) mod pebble;
pub(crate) mod scripts;
pub(crate) mod serve;
pub(crate) mod spaces;
pub(crate) mod system;
pub(crate) mod tls;
pub(crate) mod wire;

use std::future::Future;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use message::date::HttpDate;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use testkit::client::{RawClient, WriteSplit, request};
use testkit::larder::Daemon;
use testkit::origin::ScriptedOrigin;
use testkit::reference_reader::{ParsedRequest, read_requests};
use testkit::reply::{Reply, ReplyOutcome};

/// Timeout of anything that is not delayed on purpose; most of it is for loaded machines.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Additions of a test to the configuration, as TOML.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Setup<'a> {
    /// Keys at the top of the file.
    pub(crate) top: &'a str,
    /// One core instead of two.
    pub(crate) one_core: bool,
    /// Keys of `[limits]`.
    pub(crate) limits: &'a str,
    /// Keys of the one origin.
    pub(crate) origin: &'a str,
    /// Keys of the one site, for all hosts.
    pub(crate) site: &'a str,
}

impl Setup<'_> {
    /// The whole file. Ejection is off, because the origin's only server fails on purpose.
    pub(crate) fn file(&self, origin: &ScriptedOrigin) -> String {
        let Self { top, one_core, limits, origin: more, site } = self;
        let workers = if *one_core { 1 } else { 2 };
        let addr = origin.addr();
        format!(
            r#"listen = "127.0.0.1:0"
workers = {workers}
{top}
[limits]
{limits}
[[origin]]
name = "app"
servers = "http://{addr}"
eject = {{ failures = 0 }}
{more}
[[site]]
host = "*"
origin = "app"
{site}
"#
        )
    }

    /// Starts origin and daemon, with another `listen` line.
    pub(crate) async fn listening(&self, listen: &str) -> Stage {
        let origin = ScriptedOrigin::start().await.expect("a port for the origin");
        let file = self.file(&origin).replacen("listen = \"127.0.0.1:0\"", listen, 1);
        Stage { origin, daemon: Daemon::start(&file).expect("larder starts") }
    }

    /// Starts origin and daemon.
    pub(crate) async fn start(&self) -> Stage {
        let origin = ScriptedOrigin::start().await.expect("a port for the origin");
        let daemon = Daemon::start(&self.file(&origin)).expect("larder starts");
        Stage { origin, daemon }
    }
}

/// A daemon and its origin.
pub(crate) struct Stage {
    pub(crate) origin: ScriptedOrigin,
    pub(crate) daemon: Daemon,
}

impl Stage {
    /// A stage with defaults.
    pub(crate) async fn new() -> Self {
        Setup::default().start().await
    }

    /// A new client connection.
    pub(crate) async fn connect(&self) -> RawClient {
        RawClient::connect(self.daemon.addr()).await.expect("a connection").patience(PATIENCE)
    }

    /// The complete response to GET of `target`, on a connection of its own.
    pub(crate) async fn get(&self, target: &str) -> Reply {
        self.ask("GET", target, "").await
    }

    /// The complete response to a request without body; `fields` are lines with their CRLF.
    pub(crate) async fn ask(&self, method: &str, target: &str, fields: &str) -> Reply {
        self.exchange(method, &request(method, target, fields)).await
    }

    /// The complete response to `bytes`, a request of `method`, on a connection of its own.
    pub(crate) async fn exchange(&self, method: &str, bytes: &[u8]) -> Reply {
        let mut raw = self.connect().await;
        raw.send(bytes, WriteSplit::Whole).await.expect("the request is taken");
        let first_line = bytes.split(|b| *b == b'\r').next().unwrap_or_default();
        whole(raw.reply(method).await, &String::from_utf8_lossy(first_line))
    }

    /// Every request to the origin, connection by connection.
    pub(crate) fn received(&self) -> Vec<ParsedRequest> {
        let recorded = self.origin.recorded();
        recorded
            .iter()
            .flat_map(|connection| read_requests(&connection.bytes).expect("valid requests"))
            .collect()
    }

    /// The only request to the origin for `target`.
    pub(crate) fn sole_request(&self, target: &str) -> ParsedRequest {
        let mut found: Vec<_> =
            self.received().into_iter().filter(|request| request.target == target).collect();
        assert_eq!(found.len(), 1, "requests for {target}: {found:?}");
        found.remove(0)
    }

    /// The sum of a metric, labels aside.
    pub(crate) async fn metric(&self, name: &str) -> u64 {
        self.daemon.metric(name, "").await.expect("metrics") as u64
    }

    /// The number of times that a limit was reached.
    pub(crate) async fn limit_hits(&self, limit: &str) -> u64 {
        let label = format!("limit=\"{limit}\"");
        self.daemon.metric("larder_limit_hits_total", &label).await.expect("metrics") as u64
    }
}

/// The message in `seen`; any other outcome fails the test, with `asked` in its text.
pub(crate) fn whole(seen: ReplyOutcome, asked: &str) -> Reply {
    match seen {
        ReplyOutcome::Complete(reply) => reply,
        other => panic!("{asked}: no whole answer but {other:?}"),
    }
}

/// Returns true if the reply's Cache-Status is a hit (RFC 9211).
pub(crate) fn is_hit(reply: &Reply) -> bool {
    reply.field("cache-status").is_some_and(|status| status.contains("; hit"))
}

/// One field of a request to the origin, or the empty string.
pub(crate) fn sent_field(request: &ParsedRequest, name: &str) -> String {
    let values: Vec<_> =
        request.values(name).into_iter().map(|v| String::from_utf8_lossy(v).into_owned()).collect();
    values.join(", ")
}

/// Waits until `holds`, which is evaluated repeatedly.
pub(crate) async fn eventually<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let started = Instant::now();
    while !holds().await {
        assert!(started.elapsed() < PATIENCE, "never: {what}");
        pause(20).await;
    }
}

/// Sleeps for `ms` milliseconds.
pub(crate) async fn pause(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

/// Returns true in a full run; its large numbers take minutes and most of the machine.
pub(crate) fn is_full_run() -> bool {
    std::env::var_os("LARDER_TEST_FULL").is_some_and(|value| value == "1")
}

/// Raises this process's soft limit of file descriptors, which the daemon inherits, to the hard
/// one.
pub(crate) fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).expect("raising a soft limit is always allowed");
}

/// Bytes that differ at every distance that a mix-up of chunks is likely to cause.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    let step = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        // Letters, so that it can be part of a script.
        b'a' + (state % 26) as u8
    };
    std::iter::repeat_with(step).take(length).collect()
}

/// A moment of the past, in the form of date fields.
pub(crate) fn http_date(seconds_ago: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_secs();
    String::from_utf8(HttpDate::new(now - seconds_ago).as_bytes().to_vec()).expect("ASCII")
}
