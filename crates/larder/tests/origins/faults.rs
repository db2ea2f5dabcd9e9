//! A failing origin behind the real binary: nothing broken is stored, nothing broken looks whole,
//! and the next request is answered as if nothing had happened (reliability goals F1 to F5).

use testkit::client;
use testkit::faults::{FaultCase, FaultExpectation, ORIGIN_PATIENCE_MS, POISON, fault_cases};
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};
use testkit::reply::{Ending, ReplyOutcome};

/// Without ejection: the origin's only server fails on purpose, and must be used again.
fn config(origin: &ScriptedOrigin) -> String {
    format!(
        r#"
listen = "127.0.0.1:0"
workers = 1
[limits]
first_byte_timeout = "{ORIGIN_PATIENCE_MS}ms"
between_bytes_timeout = "{ORIGIN_PATIENCE_MS}ms"
[[origin]]
name = "faulty"
servers = "http://{0}"
eject = {{ failures = 0 }}
[[origin]]
name = "slow"
servers = "http://{0}"
first_byte_timeout = "30s"
between_bytes_timeout = "30s"
eject = {{ failures = 0 }}
[[site]]
host = "*"
origin = "faulty"
[[site.route]]
path = "/whole/*"
origin = "slow"
"#,
        origin.addr()
    )
}

#[tokio::test]
async fn no_broken_answer_is_stored_or_looks_whole() {
    let origin = ScriptedOrigin::start().await.expect("a port");
    let mut daemon = Daemon::start(&config(&origin)).expect("larder starts");
    let mut failures = Vec::new();
    let cases = fault_cases();
    let count = cases.len();
    for case in cases {
        let name = case.name.clone();
        for problem in run(&origin, &daemon, case).await {
            failures.push(format!("{name}: {problem}"));
        }
        assert!(daemon.alive(), "{name} ended the daemon:\n{}", daemon.log());
    }
    let failed = failures.len();
    assert!(failures.is_empty(), "{failed} of {count} cases:\n{}", failures.join("\n"));
}

/// Runs one case; what went wrong.
async fn run(origin: &ScriptedOrigin, daemon: &Daemon, case: FaultCase) -> Vec<String> {
    // What comes whole in the end may take its time.
    let folder =
        if matches!(case.expected, FaultExpectation::Whole(..)) { "whole" } else { "fault" };
    let target = format!("/{folder}/{}", case.name);
    let clean_target = format!("/clean/{}", case.name);
    let second_body = format!("second answer of {}", case.name);
    let mut problems = Vec::new();
    origin.on(&target, case.script);
    origin.on(&clean_target, Script::cacheable(&clean_target));

    let first = ask(daemon, &target).await;
    if !matches_expected(&first, case.expected) {
        problems.push(format!("expected {:?}, client saw {}", case.expected, show(&first)));
    }
    tokio::time::sleep(std::time::Duration::from_millis(case.settle_ms)).await;
    // Asked before the second request: a connection with surplus bytes on it would answer this one.
    let clean = ask(daemon, &clean_target).await;
    if body_of(&clean) != Some(&clean_target) {
        problems.push(format!("a clean request next to it got {}", show(&clean)));
    }

    origin.on(&target, Script::ok("Cache-Control: no-store\r\n", &second_body));
    let asked_before = origin.seen(&target);
    let second = ask(daemon, &target).await;
    let fetched = origin.seen(&target) > asked_before;
    match (case.stored, case.expected) {
        (true, expected) if fetched || !matches_expected(&second, expected) => {
            problems.push(format!("not served from the store: {}", show(&second)));
        }
        (false, _) if !fetched || body_of(&second) != Some(&second_body) => {
            problems.push(format!("stored, or poisoned what came next: {}", show(&second)));
        }
        _ => {}
    }
    let poison = POISON.rsplit("\r\n").next().unwrap_or(POISON);
    if [&first, &clean, &second].iter().any(|seen| show(seen).contains(poison)) {
        problems.push("surplus bytes were served".to_owned());
    }
    problems
}

async fn ask(daemon: &Daemon, target: &str) -> ReplyOutcome {
    client::get(daemon.addr(), target).await.expect("larder accepts")
}

fn matches_expected(seen: &ReplyOutcome, expected: FaultExpectation) -> bool {
    match (seen, expected) {
        (ReplyOutcome::Complete(reply), FaultExpectation::Error(status)) => {
            reply.status == status && reply.ending == Ending::Length
        }
        (ReplyOutcome::Complete(reply), FaultExpectation::Whole(status, body)) => {
            reply.status == status && reply.body == body.as_bytes()
        }
        (ReplyOutcome::Truncated(_), FaultExpectation::Incomplete) => true,
        (ReplyOutcome::Complete(reply), FaultExpectation::Incomplete) => {
            matches!(reply.status, 502 | 504) && reply.ending == Ending::Length
        }
        _ => false,
    }
}

fn body_of(seen: &ReplyOutcome) -> Option<&str> {
    seen.complete().and_then(|reply| std::str::from_utf8(&reply.body).ok())
}

fn show(seen: &ReplyOutcome) -> String {
    match seen {
        ReplyOutcome::Complete(reply) => {
            format!("{} {:?} {:?}", reply.status, reply.ending, cut(&reply.text()))
        }
        ReplyOutcome::Truncated(reply) => {
            format!("truncated {} {:?}", reply.status, cut(&reply.text()))
        }
        other => format!("{other:?}"),
    }
}

fn cut(text: &str) -> String {
    text.chars().take(200).collect()
}
