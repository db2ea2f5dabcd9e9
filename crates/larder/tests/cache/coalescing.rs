//! Tests of coalescing: many concurrent requests for one URL cause one fetch where possible, and do
//! not delay each other otherwise.

use crate::support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use support::console::Ask;
use support::folder::Folder;
use support::{
    PATIENCE, Setup, Stage, eventually, is_full_run, is_hit, pattern, pause, sent_field, whole,
};
use testkit::client::{RawClient, WriteSplit, request};
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};
use testkit::reply::Reply;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

/// Opens `count` connections, then requests `target` on all of them at once.
async fn at_once(stage: &Stage, count: usize, target: &str) -> Vec<Reply> {
    let mut connections = Vec::with_capacity(count);
    for _ in 0..count {
        connections.push(stage.connect().await);
    }
    let asked: Arc<str> = target.into();
    let mut tasks = JoinSet::new();
    for mut raw in connections {
        let asked = Arc::clone(&asked);
        tasks.spawn(async move { whole(raw.get(&asked).await.expect("sent"), &asked) });
    }
    tasks.join_all().await
}

/// Returns true for a waiter that was served by another's fetch.
fn is_collapsed(reply: &Reply) -> bool {
    reply.field("cache-status").is_some_and(|status| status.contains("collapsed"))
}

#[tokio::test]
async fn concurrent_misses_are_one_fetch() {
    support::raise_descriptors();
    let count = if is_full_run() { 10_000 } else { 1_000 };
    // No waiter may time out, however long this machine takes to send all requests.
    let limits = "wait_timeout = \"10m\"\nfirst_byte_timeout = \"10m\"";
    let stage = Setup { limits, ..Setup::default() }.start().await;
    let body = String::from_utf8(pattern(20_000)).expect("letters");
    let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=300\r\nContent-Length: 20000\r\n\r\n";
    let (first, second) = body.split_at(7_000);
    let script = Script::default().delay_ms(if is_full_run() { 3_000 } else { 1_000 });
    let script = script.send(format!("{head}{first}")).delay_ms(300).send(second);
    stage.origin.on("/page", script);
    let replies = at_once(&stage, count, "/page").await;
    assert_eq!(replies.len(), count);
    assert!(replies.iter().all(|reply| reply.status == 200 && reply.text() == body));
    assert_eq!(stage.origin.seen("/page"), 1);
    assert!(replies.iter().any(is_collapsed));
}

#[tokio::test]
async fn concurrent_requests_for_a_stale_page_are_one_validation() {
    let site = "cache = { ttl = { 200 = \"100ms\" }, stale_while_revalidate = \"0s\" }";
    let stage = Setup { site, ..Setup::default() }.start().await;
    stage.origin.on("/page", Script::ok("ETag: \"v1\"\r\n", "page"));
    stage.get("/page").await;
    pause(300).await;
    let slow = Script::default().delay_ms(1_000);
    let confirmed =
        "HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\nCache-Control: max-age=300\r\n\r\n";
    stage.origin.on("/page", slow.send(confirmed));
    let replies = at_once(&stage, 100, "/page").await;
    assert!(replies.iter().all(|reply| reply.status == 200 && reply.text() == "page"));
    assert_eq!(stage.origin.seen("/page"), 2);
}

#[tokio::test]
async fn hosts_and_variants_do_not_wait_for_each_other() {
    let stage = Stage::new().await;
    let hung = Script::default().hang();
    stage.origin.on("/page", hung);
    let mut stuck = stage.connect().await;
    stuck.send(&request("GET", "/page", ""), WriteSplit::Whole).await.expect("sent");
    eventually("the first fetch", async || stage.origin.seen("/page") == 1).await;
    stage.origin.on("/page", Script::cacheable("page"));
    let other = stage.exchange("GET", b"GET /page HTTP/1.1\r\nHost: other.test\r\n\r\n").await;
    assert_eq!(other.text(), "page");
}

#[tokio::test]
async fn unknown_variants_are_one_fetch_each() {
    let stage = Stage::new().await;
    let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=300\r\nVary: X-Kind\r\n";
    let slow = Script::default().delay_ms(500);
    stage.origin.on("/page", slow.send(format!("{head}Content-Length: 4\r\n\r\npage")));
    let mut tasks = JoinSet::new();
    for number in 0..40 {
        let mut raw = stage.connect().await;
        let kind = ["one", "two"][number % 2];
        tasks.spawn(async move {
            let asked = request("GET", "/page", &format!("X-Kind: {kind}\r\n"));
            raw.send(&asked, WriteSplit::Whole).await.expect("sent");
            whole(raw.reply("GET").await, kind)
        });
    }
    assert!(tasks.join_all().await.iter().all(|reply| reply.text() == "page"));
    let mut asked: Vec<_> = stage.received().iter().map(|r| sent_field(r, "x-kind")).collect();
    asked.sort_unstable();
    assert_eq!(asked, ["one", "two"]);
}

#[tokio::test]
async fn a_personal_request_does_not_share_a_fetch_that_is_not_for_all() {
    let stage = Stage::new().await;
    let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=300\r\nContent-Length: 4\r\n\r\n";
    stage.origin.on("/page", Script::default().delay_ms(1_500).send(format!("{head}page")));
    let mut leader = stage.connect().await;
    leader.send(&request("GET", "/page", ""), WriteSplit::Whole).await.expect("sent");
    eventually("the fetch", async || stage.origin.seen("/page") == 1).await;
    stage.origin.on("/page", Script::cacheable("mine"));
    let own = stage.ask("GET", "/page", "Cookie: session=1\r\n").await;
    assert_eq!(own.text(), "mine");
    assert_eq!(whole(leader.reply("GET").await, "/page").text(), "page");
    assert_eq!(stage.get("/page").await.text(), "page");
}

#[tokio::test]
async fn the_leaders_client_may_leave_before_the_answer() {
    let stage = Stage::new().await;
    let slow = Script::default().delay_ms(1_500);
    stage.origin.on(
        "/page",
        slow.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=300\r\nContent-Length: 4\r\n\r\npage"),
    );
    let mut leader = stage.connect().await;
    leader.send(&request("GET", "/page", ""), WriteSplit::Whole).await.expect("sent");
    eventually("the fetch", async || stage.origin.seen("/page") == 1).await;
    let others = at_once(&stage, 10, "/page");
    let leaving = async {
        pause(200).await;
        drop(leader);
    };
    let (replies, ()) = tokio::join!(others, leaving);
    assert!(replies.iter().all(|reply| reply.text() == "page"));
    assert_eq!(stage.origin.seen("/page"), 1);
}

#[tokio::test]
async fn the_leaders_client_may_leave_in_the_middle_of_the_body() {
    let stage = Stage::new().await;
    let body = String::from_utf8(pattern(200_000)).expect("letters");
    let (first, second) = body.split_at(100_000);
    let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=300\r\nContent-Length: 200000\r\n\r\n";
    let script = Script::respond(format!("{head}{first}")).delay_ms(1_500).send(second);
    stage.origin.on("/page", script);
    let mut leader = TcpStream::connect(stage.daemon.addr()).await.expect("a connection");
    leader.write_all(&request("GET", "/page", "")).await.expect("sent");
    let mut start = vec![0; 50_000];
    leader.read_exact(&mut start).await.expect("the first half");
    let others = at_once(&stage, 10, "/page");
    let leaving = async {
        pause(200).await;
        drop(leader);
    };
    let (replies, ()) = tokio::join!(others, leaving);
    assert!(replies.iter().all(|reply| reply.text() == body));
    assert!(is_hit(&stage.get("/page").await));
    assert_eq!(stage.origin.seen("/page"), 1);
}

#[tokio::test]
async fn a_failed_fetch_fails_for_its_waiters_and_not_for_later_requests() {
    let stage = Stage::new().await;
    stage.origin.on("/page", Script::default().delay_ms(500).close());
    let replies = at_once(&stage, 20, "/page").await;
    assert!(replies.iter().all(|reply| reply.status == 502));
    stage.origin.on("/page", Script::cacheable("page"));
    assert_eq!(stage.get("/page").await.text(), "page");
}

#[tokio::test]
async fn an_uncacheable_page_is_fetched_for_each_request_in_parallel() {
    let stage = Stage::new().await;
    let slow = Script::default().delay_ms(300);
    stage.origin.on(
        "/page",
        slow.send("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 4\r\n\r\npage"),
    );
    let started = Instant::now();
    for round in 1..=3 {
        let replies = at_once(&stage, 50, "/page").await;
        assert!(replies.iter().all(|reply| reply.text() == "page" && !is_collapsed(reply)));
        assert_eq!(stage.origin.seen("/page"), 50 * round);
    }
    // One after the other they would take 45 seconds.
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
    // From the second round on, if not before.
    eventually("they are counted", async || stage.metric("larder_hit_for_miss_total").await >= 100)
        .await;
}

#[tokio::test]
async fn a_page_that_becomes_cacheable_again_is_stored_in_spite_of_the_marker() {
    let stage = Stage::new().await;
    stage.origin.on("/page", Script::ok("Cache-Control: no-store\r\n", "page"));
    stage.get("/page").await;
    stage.origin.on("/page", Script::cacheable("page"));
    assert!(!is_hit(&stage.get("/page").await));
    assert!(is_hit(&stage.get("/page").await));
}

/// The `Cache-Status` of a response.
async fn said(stage: &Stage, method: &str, target: &str) -> String {
    let reply = stage.exchange(method, &request(method, target, "")).await;
    reply.field("Cache-Status").unwrap_or_default()
}

#[tokio::test]
async fn hit_for_miss_ends_with_a_purge_of_any_kind() {
    let purges = [
        json!({ "url": "http://larder.test/page" }),
        json!({ "url": "http://larder.test/page", "soft": true }),
        json!({ "prefix": "http://larder.test/pa" }),
        json!({ "host": "larder.test" }),
        json!({ "tags": "a" }),
        json!({ "ban": "req.url == \"/page\"" }),
        json!({ "all": true }),
    ];
    let stage = Stage::new().await;
    stage.origin.on("/page", Script::ok("Cache-Control: no-store\r\n", "page"));
    for purge in purges {
        for _ in 0..2 {
            said(&stage, "GET", "/page").await;
        }
        assert!(said(&stage, "GET", "/page").await.contains("hit-for-miss"), "before {purge}");
        let reply = Ask::post("/api/v1/purge", &purge).send_locally(&stage.daemon).await;
        assert_eq!(reply.status, 200, "{purge}: {}", reply.text());
        assert!(!said(&stage, "GET", "/page").await.contains("hit-for-miss"), "after {purge}");
    }
}

#[tokio::test]
async fn a_head_that_could_be_stored_ends_hit_for_miss() {
    let stage = Stage::new().await;
    stage.origin.on("/page", Script::ok("Cache-Control: no-store\r\n", "page"));
    said(&stage, "GET", "/page").await;
    for _ in 0..2 {
        assert!(said(&stage, "HEAD", "/page").await.contains("hit-for-miss"));
    }
    stage.origin.on("/page", Script::cacheable("page"));
    let head = said(&stage, "HEAD", "/page").await;
    assert!(head.contains("hit-for-miss"), "of this one it was still said: {head}");
    assert!(!said(&stage, "HEAD", "/page").await.contains("hit-for-miss"), "and not any more");
    assert!(is_hit(&stage.get("/page").await), "the second HEAD has asked as a GET does");
}

#[tokio::test]
async fn what_is_not_stored_does_not_make_hit_for_miss_last_longer() {
    let limits = "hit_for_miss_ttl = \"2s\"";
    let stage = Setup { limits, ..Setup::default() }.start().await;
    stage.origin.on("/page", Script::ok("Cache-Control: no-store\r\n", "page"));
    said(&stage, "GET", "/page").await;
    eventually("it ends, although it is asked for all the time", async || {
        pause(50).await;
        !said(&stage, "GET", "/page").await.contains("hit-for-miss")
    })
    .await;
}

#[tokio::test]
async fn a_body_too_large_to_store_is_whole_for_every_waiter() {
    let limits = "object_bytes = \"64KiB\"\nwindow_bytes = \"16KiB\"";
    let stage = Setup { limits, ..Setup::default() }.start().await;
    let body = String::from_utf8(pattern(500_000)).expect("letters");
    let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=300\r\n";
    let length = format!("{head}Content-Length: 500000\r\n\r\n{body}");
    let slow = || Script::default().delay_ms(500);
    stage.origin.on("/length", slow().send(length));
    let (first, second) = body.split_at(250_000);
    let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n3d090\r\n{first}\r\n");
    stage.origin.on(
        "/chunked",
        slow().send(chunked).delay_ms(200).send(format!("3d090\r\n{second}\r\n0\r\n\r\n")),
    );
    for target in ["/length", "/chunked"] {
        let replies = at_once(&stage, 8, target).await;
        for reply in &replies {
            assert!(reply.text() == body, "{target}: {} bytes", reply.body.len());
        }
    }
}

/// A page slower than the time that requests wait when a stale response is stored.
fn slow_page() -> Script {
    let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=300\r\nContent-Length: 4\r\n\r\n";
    Script::default().delay_ms(1_000).send(format!("{head}page"))
}

#[tokio::test]
async fn requests_wait_for_a_slow_page_as_long_as_its_fetch_may_take() {
    let stage = Setup { limits: "wait_timeout = \"50ms\"", ..Setup::default() }.start().await;
    stage.origin.on("/page", slow_page());
    let replies = at_once(&stage, 50, "/page").await;
    assert!(replies.iter().all(|reply| reply.status == 200 && reply.text() == "page"));
    assert_eq!(stage.origin.seen("/page"), 1);
}

#[tokio::test]
async fn requests_of_a_program_wait_as_long_as_the_fetch_may_take() {
    let limits = "wait_timeout = \"50ms\"\n";
    let folder = Folder::new();
    let origin = ScriptedOrigin::start().await.expect("an origin");
    let (host, port) = (origin.addr().ip(), origin.addr().port());
    let backend = format!("backend default {{ .host = \"{host}\"; .port = \"{port}\"; }}\n");
    folder.file("all.vcl", format!("vcl 4.1;\n{backend}"));
    let vcl = folder.path().join("all.vcl").display().to_string();
    let listen = "listen = \"127.0.0.1:0\"";
    let config = format!("{listen}\nvcl = \"{vcl}\"\n[limits]\n{limits}[[site]]\nhost = \"*\"\n");
    let stage = Stage { origin, daemon: Daemon::start(&config).expect("larder starts") };
    stage.origin.on("/page", slow_page());
    let replies = at_once(&stage, 50, "/page").await;
    assert!(replies.iter().all(|reply| reply.status == 200 && reply.text() == "page"));
    assert_eq!(stage.origin.seen("/page"), 1);
}

/// Returns true if a stored response was served stale.
fn is_stale(reply: &Reply) -> bool {
    reply.text() == "page" && reply.field("cache-status").is_some_and(|s| s.contains("fwd=stale"))
}

#[tokio::test]
async fn stored_pages_are_answered_while_the_origin_hangs_with_one_fetch_each() {
    let limits = "wait_timeout = \"100ms\"\nfirst_byte_timeout = \"10m\"";
    let site = "cache = { ttl = { 200 = \"100ms\" }, stale_while_revalidate = \"0s\" }";
    let stage = Setup { limits, site, ..Setup::default() }.start().await;
    let pages: Vec<String> = (0..8).map(|number| format!("/{number}")).collect();
    for page in &pages {
        stage.origin.on(page, Script::ok("ETag: \"v1\"\r\n", "page"));
        stage.get(page).await;
        stage.origin.on(page, Script::default().hang());
    }
    pause(150).await;
    let mut leaders = Vec::new();
    for page in &pages {
        let mut leader = stage.connect().await;
        leader.send(&request("GET", page, ""), WriteSplit::Whole).await.expect("sent");
        leaders.push(leader);
        eventually("the fetch that hangs", async || stage.origin.seen(page) == 2).await;
    }
    // Once by waiting, and then without that.
    for _ in 0..2 {
        for page in &pages {
            let replies = at_once(&stage, 12, page).await;
            assert!(replies.iter().all(|r| r.status == 200 && is_stale(r)), "{replies:?}");
            assert_eq!(stage.origin.seen(page), 2, "{page}");
        }
    }
    let waited = stage.limit_hits("wait_timeout").await;
    assert!(waited >= 8, "{waited}");
}

#[tokio::test]
async fn waiters_without_anything_stored_fail_with_a_fetch_that_hangs() {
    let limits = "wait_timeout = \"50ms\"\nfirst_byte_timeout = \"1s\"\nretries = 0";
    let stage = Setup { limits, ..Setup::default() }.start().await;
    stage.origin.on("/page", Script::default().hang());
    let replies = at_once(&stage, 20, "/page").await;
    assert!(replies.iter().all(|reply| matches!(reply.status, 502 | 504)), "{replies:?}");
    assert_eq!(
        replies.iter().filter(|reply| reply.status == 504).count(),
        stage.origin.seen("/page")
    );
}

#[tokio::test]
async fn too_many_waiters_are_turned_away() {
    let stage = Setup { limits: "waiters = 5", ..Setup::default() }.start().await;
    let slow = Script::default().delay_ms(1_500);
    stage.origin.on(
        "/page",
        slow.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=300\r\nContent-Length: 4\r\n\r\npage"),
    );
    let replies = at_once(&stage, 20, "/page").await;
    let served = replies.iter().filter(|reply| reply.status == 200).count();
    let refused: Vec<_> = replies.iter().filter(|reply| reply.status == 503).collect();
    // Connections that came late find the page stored.
    assert!(served >= 6 && served + refused.len() == 20, "{served} and {}", refused.len());
    for reply in refused {
        assert!(reply.text().contains("waiters"), "{}", reply.text());
        assert!(reply.field("retry-after").is_some());
    }
    assert_eq!(stage.origin.seen("/page"), 1);
}

const LARGE: usize = 16 << 20;

/// A connection that reads slowly.
async fn slow_client(stage: &Stage, target: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(8 * 1024).expect("a small buffer");
    let mut stream = socket.connect(stage.daemon.addr()).await.expect("a connection");
    stream.write_all(&request("GET", target, "")).await.expect("sent");
    stream
}

#[tokio::test]
async fn a_slow_client_slows_no_other_and_still_gets_all() {
    let stage = Stage::new().await;
    let body = String::from_utf8(pattern(LARGE)).expect("letters");
    stage.origin.on("/page", Script::cacheable(&body));
    // The first slow client leads the fetch, the second reads the stored page.
    for _ in 0..2 {
        let mut slow = slow_client(&stage, "/page").await;
        slow.readable().await.expect("the answer has begun");
        let fast = stage.get("/page").await;
        assert!(fast.text() == body);
        let mut received = vec![0; 64 * 1024];
        slow.read_exact(&mut received).await.expect("the first bytes");
        let head = received.windows(4).position(|w| w == b"\r\n\r\n").expect("a head") + 4;
        let mut rest = vec![0; LARGE - (received.len() - head)];
        tokio::time::timeout(PATIENCE, slow.read_exact(&mut rest))
            .await
            .expect("in time")
            .expect("the rest");
        received.extend(rest);
        assert!(received[head..] == *body.as_bytes());
    }
    assert_eq!(stage.origin.seen("/page"), 1);
}

#[tokio::test]
async fn a_slow_client_of_a_passing_body_slows_only_its_own() {
    let stage = Stage::new().await;
    let body = String::from_utf8(pattern(LARGE)).expect("letters");
    stage.origin.on("/page", Script::ok("Cache-Control: no-store\r\n", &body));
    let slow = slow_client(&stage, "/page").await;
    slow.readable().await.expect("the answer has begun");
    for _ in 0..2 {
        assert!(stage.get("/page").await.text() == body);
    }
    drop(slow);
}

#[tokio::test]
async fn a_microcache_asks_once_per_lifetime() {
    let site = "cache = { ttl = { 200 = \"1s\" } }";
    let stage = Setup { site, ..Setup::default() }.start().await;
    let slow = Script::default().delay_ms(180);
    stage.origin.on("/page", slow.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage"));
    let until = Instant::now() + Duration::from_secs(3);
    let mut clients = JoinSet::new();
    for _ in 0..10 {
        let addr = stage.daemon.addr();
        clients.spawn(async move {
            let mut raw = RawClient::connect(addr).await.expect("a connection").patience(PATIENCE);
            let mut answered = 0;
            while Instant::now() < until {
                let reply = whole(raw.get("/page").await.expect("sent"), "/page");
                assert_eq!((reply.status, reply.text().as_str()), (200, "page"));
                answered += 1;
                if reply.closes() {
                    raw = RawClient::connect(addr).await.expect("a connection").patience(PATIENCE);
                }
            }
            answered
        });
    }
    let answered: usize = clients.join_all().await.into_iter().sum();
    let asked = stage.origin.seen("/page");
    assert!((2..=4).contains(&asked), "{asked} origin requests for {answered}");
}
