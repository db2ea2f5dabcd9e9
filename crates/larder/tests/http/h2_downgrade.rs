//! Downgrades: HTTP/2 requests that are dangerous as HTTP/1 text, sent to the real binary in front
//! of a strict origin. No smuggled request reaches it, and the connection continues after each,
//! however the bytes are divided and whether or not the URL is cached.

use crate::support;

use std::time::Duration;

use support::{Setup, Stage};
use testkit::client::WriteSplit;
use testkit::h2::downgrade::{Case, cases};
use testkit::h2::{Client, ProtocolFault, RequestOutcome};
use testkit::origin::Script;
use testkit::reference_reader::{self, ParsedRequest, Violation};
use testkit::wire;
use tokio::net::TcpStream;

/// Larder's own patience with an unfinished request, no end of patience with wrong ones on one
/// connection, and above both the client's with Larder.
const LIMITS: &str = "header_timeout = \"2s\"\nbody_timeout = \"2s\"\nh2_resets = 100000";
const CLIENT_PATIENCE: Duration = Duration::from_secs(6);

const UNCACHED: &str = "Cache-Control: no-store\r\n";

struct Bench {
    stage: Stage,
    client: Client<TcpStream>,
    pieces: WriteSplit,
    /// True if responses may be hits, so that nothing need be forwarded.
    cached: bool,
}

impl Bench {
    /// `fields` go into every answer of the origin.
    async fn new(fields: &str, pieces: WriteSplit) -> Self {
        let listen = "listen = \"127.0.0.1:0 h2c\"";
        let stage = Setup { limits: LIMITS, ..Setup::default() }.listening(listen).await;
        stage.origin.otherwise(Script::mirror(fields));
        let client = connect(&stage).await;
        Self { stage, client, pieces, cached: fields != UNCACHED }
    }

    /// Runs every case, one after the other on as few connections as they leave alive.
    async fn run(mut self) {
        let mut failures = Vec::new();
        let all = cases();
        assert!(all.len() >= 250, "{} cases", all.len());
        for (number, case) in all.iter().enumerate() {
            self.stage.origin.forget();
            let problems = [self.attempt(case).await, self.neighbour(number).await];
            let problems: Vec<_> = problems.into_iter().filter_map(Result::err).collect();
            if !problems.is_empty() {
                failures.push(format!("{}: {}", case.name, problems.join("; ")));
                self.client = connect(&self.stage).await;
            }
            assert!(self.stage.daemon.alive(), "{} ended the daemon", case.name);
        }
        let failed = failures.len();
        assert!(failures.is_empty(), "{failed} of {}:\n{}", all.len(), failures.join("\n"));
    }

    async fn attempt(&mut self, case: &Case) -> Result<(), String> {
        let stream = self.client.new_stream();
        let sent = self.client.send_in(&case.bytes(stream), self.pieces).await;
        sent.map_err(|error| format!("not sent: {error}"))?;
        let outcome = self.client.outcome(stream).await;
        let forwarded = self.forwarded()?;
        let from_store = self.cached && case.forwarded().is_some() && forwarded.is_empty();
        if from_store
            && matches!(&outcome, RequestOutcome::Answered(answer) if answer.status == 200)
        {
            return Ok(());
        }
        case.check(&outcome, &forwarded)
    }

    /// The next request on the connection is answered as if nothing had been before it.
    async fn neighbour(&mut self, number: usize) -> Result<(), String> {
        self.stage.origin.forget();
        let path = format!("/next/{number}");
        match self.client.get(&path).await {
            RequestOutcome::Answered(answer) if answer.status == 200 => {
                let line = format!("\nGET {path}\n");
                let own = answer.text().contains(&line) && !answer.text().contains("evil");
                own.then_some(()).ok_or_else(|| format!("next got {}", answer.text()))?;
            }
            other => return Err(format!("next: {other:?}")),
        }
        let sent = self.forwarded()?;
        let targets: Vec<_> = sent.iter().map(|request| &request.target).collect();
        (targets == [&path]).then_some(()).ok_or_else(|| format!("next brought {targets:?}"))
    }

    /// The whole requests that the origin was sent since it last forgot. A request that ends with
    /// its connection does not count: no origin answers it.
    fn forwarded(&self) -> Result<Vec<ParsedRequest>, String> {
        let mut all = Vec::new();
        for connection in self.stage.origin.recorded() {
            match reference_reader::read_requests(&connection.bytes) {
                Ok(requests) => all.extend(requests),
                Err(Violation { fault: wire::MessageFault::Incomplete, before, .. }) => {
                    all.extend(before);
                }
                Err(Violation { offset, fault, .. }) => {
                    return Err(format!("the origin was sent {fault} at byte {offset}"));
                }
            }
        }
        Ok(all)
    }
}

async fn connect(stage: &Stage) -> Client<TcpStream> {
    let client = Client::connect(stage.daemon.addr()).await.expect("a connection");
    let mut client = client.patience(CLIENT_PATIENCE);
    client.greet(&[]).await.expect("a greeting is taken");
    client
}

#[tokio::test]
async fn nothing_is_smuggled_by_whole_writes() {
    Bench::new(UNCACHED, WriteSplit::Whole).await.run().await;
}

#[tokio::test]
async fn nothing_is_smuggled_byte_by_byte() {
    Bench::new(UNCACHED, WriteSplit::Bytes).await.run().await;
}

#[tokio::test]
async fn nothing_is_smuggled_when_the_url_is_cached() {
    let mut bench = Bench::new("Cache-Control: public, max-age=300\r\n", WriteSplit::Whole).await;
    for _ in 0..2 {
        let answer = bench.client.get("/").await.answer("/");
        assert_eq!(answer.status, 200);
    }
    assert_eq!(bench.stage.origin.seen("/"), 1, "the URL is not in the cache");
    bench.run().await;
}

/// A request that claims TLS is rejected, or forwarded with its real scheme.
#[tokio::test]
async fn a_scheme_cannot_be_claimed() {
    let mut bench = Bench::new(UNCACHED, WriteSplit::Whole).await;
    for scheme in ["https", "HTTPS", "ftp", "file", "http+unix", "1http", "javascript"] {
        bench.stage.origin.forget();
        let request = testkit::h2::Request::get("/page").set(":scheme", scheme);
        let outcome = bench.client.fetch(&request).await;
        let faulty = matches!(
            outcome,
            RequestOutcome::Faulty(ProtocolFault::Idle { .. }) | RequestOutcome::Over(_)
        );
        assert!(!faulty, "{scheme}: {outcome:?}");
        for request in bench.forwarded().expect("HTTP") {
            assert_eq!(request.values("x-forwarded-proto"), [b"http"], "{scheme}");
            assert_eq!(request.target, "/page", "{scheme}");
        }
        bench.neighbour(0).await.expect("the connection goes on");
    }
}
