//! Framing that servers disagree about, sent to the real binary in front of a strict origin: no
//! smuggled request reaches it, however the bytes are divided and whether or not the URL is cached.

use std::time::Duration;

use testkit::client::{RawClient, WriteSplit, request};
use testkit::framing_cases::{FramingCase, Treatment, cases};
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};
use testkit::reference_reader::{self, Violation};
use testkit::reply::{ConnectionEnd, ReplyOutcome};
use testkit::wire::MessageFault;

/// Targets of smuggled requests only; accepted cases may request the first one openly.
const SMUGGLED: [&str; 3] = ["/smuggled", "/evil", "/admin"];

/// Larder's own patience with a request that stays unfinished, and well above it the client's with
/// Larder.
const SHORT: &str = "500ms";
const CLIENT_PATIENCE: Duration = Duration::from_secs(20);
/// Larder's patience with a request that comes byte by byte, from a client that seldom runs.
const LONG: &str = "10m";

struct Bench {
    origin: ScriptedOrigin,
    /// For rejected requests, including endless ones.
    hasty: Daemon,
    /// For accepted requests.
    patient: Daemon,
}

impl Bench {
    /// `fields` go into every answer of the origin.
    async fn new(fields: &str) -> Self {
        let origin = ScriptedOrigin::start().await.expect("a port");
        origin.otherwise(Script::ok(fields, "answer"));
        let daemon = |patience: &str| {
            let config = format!(
                r#"
listen = "127.0.0.1:0"
workers = 1
[limits]
header_timeout = "{patience}"
body_timeout = "{patience}"
[[origin]]
name = "strict"
servers = "http://{}"
[[site]]
host = "*"
origin = "strict"
"#,
                origin.addr()
            );
            Daemon::start(&config).expect("larder starts")
        };
        let (hasty, patient) = (daemon(SHORT), daemon(LONG));
        Self { origin, hasty, patient }
    }

    /// Runs every case with its bytes cut into `pieces`.
    async fn run(mut self, pieces: WriteSplit) {
        let mut failures = Vec::new();
        let all = cases();
        assert!(all.len() >= 150, "{} cases", all.len());
        for case in &all {
            let before = self.smuggled();
            let problem = match case.expect {
                Treatment::Reject => self.rejected(case, pieces).await,
                Treatment::Accept { requests } => self.accepted(case, requests, pieces).await,
            };
            let allowed = match case.expect {
                Treatment::Reject => 0,
                Treatment::Accept { requests } => requests,
            };
            let smuggled = self.smuggled() - before > allowed;
            let problem = problem.or_else(|| smuggled.then(|| "smuggled a request".to_owned()));
            failures.extend(problem.map(|problem| format!("{}: {problem}", case.name)));
            for daemon in [&mut self.hasty, &mut self.patient] {
                assert!(daemon.alive(), "{} ended the daemon:\n{}", case.name, daemon.log());
            }
        }
        failures.extend(self.violations());
        let failed = failures.len();
        assert!(failures.is_empty(), "{failed} of {}:\n{}", all.len(), failures.join("\n"));
    }

    /// The case's first answer is an error, or none; the connection ends and nothing else is
    /// answered.
    async fn rejected(&self, case: &FramingCase, pieces: WriteSplit) -> Option<String> {
        let mut client = connect(&self.hasty).await;
        // Larder may refuse and close before it has read everything.
        let _ = client.send(&case.bytes, pieces).await;
        let method = methods(&case.bytes).next().unwrap_or_default();
        match client.reply(&method).await {
            ReplyOutcome::Complete(reply) if reply.status >= 400 => {}
            ReplyOutcome::Nothing => return None,
            other => return Some(format!("not refused: {other:?}")),
        }
        let (surplus, end) = client.rest().await;
        if !surplus.is_empty() {
            return Some(format!("read on after its error: {}", surplus.escape_ascii()));
        }
        (end == ConnectionEnd::Open).then(|| "left the connection open".to_owned())
    }

    /// Asserts that exactly this many whole responses come.
    async fn accepted(
        &self,
        case: &FramingCase,
        requests: usize,
        pieces: WriteSplit,
    ) -> Option<String> {
        let mut client = connect(&self.patient).await;
        let sent = client.send(&case.bytes, pieces).await;
        let mut methods = methods(&case.bytes);
        for number in 1..=requests {
            let seen = client.reply(&methods.next().unwrap_or_default()).await;
            let refused = |status| matches!(status, 400 | 408 | 411 | 413 | 414 | 431 | 502..);
            match seen.complete() {
                Some(reply) if !refused(reply.status) => {}
                _ => return Some(format!("answer {number} (sent: {sent:?}): {seen:?}")),
            }
        }
        drop(client.finish().await);
        let (surplus, _) = client.rest().await;
        (!surplus.is_empty()).then(|| format!("one answer too many: {}", surplus.escape_ascii()))
    }

    /// Number of requests with smuggled targets so far.
    fn smuggled(&self) -> usize {
        SMUGGLED.iter().map(|target| self.origin.seen(target)).sum()
    }

    /// Faults that the reference reader finds in anything the origin was ever sent. A request that
    /// is cut short by the end of its connection is no fault: its client had gone.
    fn violations(&self) -> Vec<String> {
        let recorded = self.origin.recorded();
        let read =
            recorded.iter().map(|connection| reference_reader::read_requests(&connection.bytes));
        read.filter_map(Result::err)
            .filter(|violation| violation.fault != MessageFault::Incomplete)
            .map(|Violation { offset, fault, before }| {
                let last = before.last().map(|request| request.target.clone());
                format!("the origin was sent {fault} at byte {offset}, after {last:?}")
            })
            .collect()
    }
}

/// The methods of the requests in `bytes`, as far as their request lines can be told.
async fn connect(daemon: &Daemon) -> RawClient {
    let client = RawClient::connect(daemon.addr()).await.expect("larder accepts");
    client.patience(CLIENT_PATIENCE)
}

fn methods(bytes: &[u8]) -> impl Iterator<Item = String> {
    let lines = bytes.split(|&b| b == b'\n').map(|line| line.trim_ascii_end());
    lines
        .filter(|line| line.windows(7).any(|part| part == b"HTTP/1."))
        .map(|line| line.split(|&b| b == b' ').next().unwrap_or_default())
        .map(|method| String::from_utf8_lossy(method).into_owned())
        .collect::<Vec<_>>()
        .into_iter()
}

#[tokio::test]
async fn framing_holds_for_whole_writes() {
    Bench::new("Cache-Control: no-store\r\n").await.run(WriteSplit::Whole).await;
}

#[tokio::test]
async fn framing_holds_byte_by_byte() {
    Bench::new("Cache-Control: no-store\r\n").await.run(WriteSplit::Bytes).await;
}

#[tokio::test]
async fn framing_holds_for_line_ends_cut_apart() {
    Bench::new("Cache-Control: no-store\r\n").await.run(WriteSplit::LineEnds).await;
}

#[tokio::test]
async fn framing_holds_when_the_url_is_cached() {
    let bench = Bench::new("Cache-Control: public, max-age=300\r\n").await;
    for daemon in [&bench.hasty, &bench.hasty, &bench.patient, &bench.patient] {
        let mut client = connect(daemon).await;
        let prime =
            String::from_utf8_lossy(&request("GET", "/", "")).replace("larder.test", "example.com");
        client.send(prime.as_bytes(), WriteSplit::Whole).await.expect("sent");
        assert!(client.reply("GET").await.complete().is_some_and(|reply| reply.status == 200));
    }
    assert_eq!(bench.origin.seen("/"), 2, "the URL is not in both caches");
    bench.run(WriteSplit::Whole).await;
}
