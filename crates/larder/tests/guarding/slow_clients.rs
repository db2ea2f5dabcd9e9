//! Tests of many slow, silent or idle clients beside a clean one, which must not notice them.
//!
//! `LARDER_TEST_FULL=1` uses the numbers of real attacks. Figures are printed: run with
//! `--nocapture`, against a release build by `LARDER_BIN`, to see realistic ones.

use crate::support;

use support::figures::{Clean, count, resident};
use support::{PATIENCE, Setup, Stage, eventually, is_hit, pattern, whole};
use testkit::client::request;
use testkit::origin::Script;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

/// These tests take turns: each needs most of the descriptors and a clean client without other
/// load.
static TURN: Mutex<()> = Mutex::const_new(());

/// Requests of the clean client.
const CLEAN: usize = 2_000;

async fn start() -> Stage {
    support::raise_descriptors();
    // Slow clients must not run into a limit.
    let limits = "header_timeout = \"10m\"\nidle_timeout = \"10m\"\nsend_timeout = \"10m\"\n\
                  body_timeout = \"10m\"\nbody_min_rate = \"0\"\nsend_min_rate = \"0\"";
    let stage = Setup { limits, ..Setup::default() }.start().await;
    stage.origin.on("/page", Script::cacheable(&"x".repeat(1024)));
    stage.get("/page").await;
    stage
}

async fn connect(stage: &Stage) -> TcpStream {
    TcpStream::connect(stage.daemon.addr()).await.expect("a connection")
}

/// Requests the stored page again and again, over HTTP/1.1.
async fn clean_client(stage: &Stage, what: &str) {
    let mut raw = stage.connect().await;
    let mut clean = Clean::new();
    for _ in 0..CLEAN {
        let reply = clean.time(async { raw.get("/page").await.expect("sent") }).await;
        let reply = whole(reply, "/page");
        assert!(is_hit(&reply) && reply.body.len() == 1024);
    }
    clean.judge(what);
}

/// Waits until the daemon has `count` connections beside short-lived ones.
async fn open(stage: &Stage, count: usize) {
    eventually("all connections", async || {
        stage.metric("larder_connections_open").await >= count as u64
    })
    .await;
}

fn show_memory(what: &str, before: u64, after: u64, connections: usize) {
    let each = after.saturating_sub(before) / connections as u64;
    println!("{what}: {connections} connections, {each} bytes of RSS each");
}

#[tokio::test(flavor = "multi_thread")]
async fn half_sent_heads_disturb_no_other_client() {
    let _turn = TURN.lock().await;
    let stage = start().await;
    let before = resident(&stage.daemon);
    let connections = count(5_000, 200);
    let mut slow = JoinSet::new();
    for _ in 0..connections {
        let mut stream = connect(&stage).await;
        stream.write_all(b"GET /page HTTP/1.1\r\nHost: larder.test\r\n").await.expect("sent");
        slow.spawn(async move {
            while stream.write_all(b"X-a: b\r\n").await.is_ok() {
                support::pause(1_000).await;
            }
        });
    }
    open(&stage, connections).await;
    clean_client(&stage, "slowloris").await;
    show_memory("slowloris", before, resident(&stage.daemon), connections);
    let given_up = slow.try_join_next().is_some();
    assert!(!given_up, "the slow ones were there to the end");
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_uploads_disturb_no_other_client() {
    let _turn = TURN.lock().await;
    let stage = start().await;
    stage.origin.on("/form", Script::ok("", "thanks"));
    let before = resident(&stage.daemon);
    let connections = count(500, 50);
    let mut slow = JoinSet::new();
    for _ in 0..connections {
        let mut stream = connect(&stage).await;
        let head = request("POST", "/form", "Content-Length: 100000\r\n");
        stream.write_all(&head).await.expect("sent");
        slow.spawn(async move {
            while stream.write_all(b"field=").await.is_ok() {
                support::pause(1_000).await;
            }
        });
    }
    open(&stage, connections).await;
    clean_client(&stage, "slow uploads").await;
    show_memory("slow uploads", before, resident(&stage.daemon), connections);
    // The page's.
    stage.daemon.assert_metric("larder_origin_connects_total", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_readers_disturb_no_other_client() {
    let _turn = TURN.lock().await;
    let stage = start().await;
    let body = String::from_utf8(pattern(1 << 20)).expect("letters");
    stage.origin.on("/large", Script::cacheable(&body));
    stage.get("/large").await;
    let before = resident(&stage.daemon);
    let connections = count(1_000, 50);
    let mut slow = JoinSet::new();
    for _ in 0..connections {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(4 * 1024).expect("a small buffer");
        let mut stream = socket.connect(stage.daemon.addr()).await.expect("a connection");
        stream.write_all(&request("GET", "/large", "")).await.expect("sent");
        slow.spawn(async move {
            let mut some = [0; 1024];
            while stream.read_exact(&mut some).await.is_ok() {
                support::pause(1_000).await;
            }
        });
    }
    open(&stage, connections).await;
    clean_client(&stage, "slow readers").await;
    show_memory("slow readers", before, resident(&stage.daemon), connections);
    assert!(slow.try_join_next().is_none(), "the slow ones were there to the end");
    assert_eq!(stage.origin.seen("/large"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_disturb_no_other_client_and_all_still_work() {
    let _turn = TURN.lock().await;
    let stage = start().await;
    let before = resident(&stage.daemon);
    let connections = count(10_000, 500);
    let mut idle = Vec::with_capacity(connections);
    for _ in 0..connections {
        let mut raw = stage.connect().await;
        assert!(is_hit(&whole(raw.get("/page").await.expect("sent"), "/page")));
        idle.push(raw);
    }
    open(&stage, connections).await;
    clean_client(&stage, "idle").await;
    show_memory("idle", before, resident(&stage.daemon), connections);
    let all = async {
        for raw in &mut idle {
            assert!(is_hit(&whole(raw.get("/page").await.expect("sent"), "/page")));
        }
    };
    tokio::time::timeout(PATIENCE * 4, all).await.expect("in time");
}
