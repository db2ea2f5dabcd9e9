//! Tests of records in the log ring, for readers that the daemon does not know.

use crate::support;

use std::path::Path;

use observe::format::{self, FieldPositions};
use observe::ring::{CAPACITY_MIN, FollowStart, RingFollower};
use serde_json::Value;
use support::{Setup, Stage, eventually, whole};
use testkit::client::{RawClient, WriteSplit, request};
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};
use testkit::reply::ReplyOutcome;

/// A reader and its records.
struct Watch {
    follower: RingFollower,
    records: Vec<Value>,
    lost: u64,
}

impl Watch {
    fn new(folder: &Path) -> Self {
        let follower = RingFollower::open(folder, FollowStart::Oldest).expect("a ring");
        Self { follower, records: Vec::new(), lost: 0 }
    }

    fn look(&mut self) {
        let fields = FieldPositions::new(self.follower.names());
        let records = &mut self.records;
        let polled = self.follower.poll(&mut |record| {
            let mut line = Vec::new();
            format::json(record, &fields, true, &mut line);
            records.push(serde_json::from_slice(&line).expect("JSON"));
        });
        self.lost += polled.expect("a readable ring").lost;
    }

    /// Waits for `count` records in all.
    async fn until(&mut self, count: usize) {
        let this = std::cell::RefCell::new(self);
        eventually("records", async || {
            this.borrow_mut().look();
            this.borrow().records.len() >= count
        })
        .await;
    }

    /// Waits for `count` records of `target`, and returns them.
    async fn of(&mut self, target: &str, count: usize) -> Vec<Value> {
        let this = std::cell::RefCell::new(self);
        eventually(target, async || {
            this.borrow_mut().look();
            this.borrow().matching(target).len() >= count
        })
        .await;
        this.into_inner().matching(target)
    }

    fn matching(&self, target: &str) -> Vec<Value> {
        self.records.iter().filter(|r| r["target"] == target).cloned().collect()
    }
}

/// Checks that exactly these phases are present, in this order.
fn assert_phases(record: &Value, expected: &[&str]) {
    let phases = record["phases_us"].as_object().expect("phases");
    let mut found: Vec<_> = phases.keys().map(String::as_str).collect();
    found.sort_unstable();
    let mut names = [expected, &["end"]].concat();
    let times: Vec<_> =
        names.iter().map(|name| phases.get(*name).and_then(Value::as_u64)).collect();
    names.sort_unstable();
    assert_eq!(found, names, "{record}");
    assert!(times.is_sorted(), "{record}");
}

/// The values of some members, as text.
fn values(record: &Value, names: &[&str]) -> Vec<String> {
    names.iter().map(|name| record[*name].to_string().replace('"', "")).collect()
}

#[tokio::test]
async fn a_miss_a_hit_and_a_pass_tell_their_way() {
    let stage = Stage::new().await;
    stage.origin.on("/page", Script::cacheable("page").delay_ms(0));
    stage.origin.on("/own", Script::ok("Cache-Control: no-store\r\n", "own"));
    let mut watch = Watch::new(&stage.daemon.log_ring());
    stage.ask("GET", "/page", "User-Agent: test/1\r\n").await;
    stage.get("/page").await;
    stage.get("/own").await;
    stage
        .exchange("POST", b"POST /form HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n\r\nabc")
        .await;
    let page = watch.of("/page", 2).await;
    let common = ["method", "client", "status", "bytes", "site", "version", "tls"];
    for record in &page {
        assert_eq!(
            values(record, &common),
            ["GET", "127.0.0.1", "200", "4", "*", "HTTP/1.1", "false"]
        );
        assert_ne!(record["key"], "0000000000000000");
        assert!(record["head_in"].as_u64() > Some(20) && record["head_out"].as_u64() > Some(50));
    }
    assert_eq!(page[0]["key"], page[1]["key"]);
    // Two cores may have written them: in no order.
    let told_as = |cache: &str| page.iter().find(|record| record["cache"] == cache).expect("one");
    let (miss, hit) = (told_as("MISS"), told_as("HIT"));
    assert_eq!(values(miss, &["cache", "stored", "agent"]), ["MISS", "true", "test/1"]);
    assert_eq!(values(miss, &["origin", "reused", "tries"]), ["app", "false", "1"]);
    assert_eq!(miss["server"], stage.origin.addr().to_string());
    assert_phases(miss, &["read", "policy", "fetch", "head", "reply"]);
    assert_eq!(values(hit, &["cache", "stored", "age"]), ["HIT", "false", "0"]);
    assert_eq!((hit.get("origin"), hit.get("error")), (None, None));
    assert_phases(hit, &["read", "policy", "reply"]);

    let own = &watch.of("/own", 1).await[0];
    assert_eq!(values(own, &["cache", "stored", "not_stored"]), ["MISS", "false", "no-store"]);
    let form = &watch.of("/form", 1).await[0];
    let told = ["method", "cache", "not_stored", "body_in", "host"];
    assert_eq!(values(form, &told), ["POST", "PASS", "pass", "3", "a.test"]);
    assert_phases(form, &["read", "policy", "fetch", "head", "reply"]);
    assert_eq!(watch.lost, 0);
}

#[tokio::test]
async fn requests_that_wait_for_one_fetch_say_so() {
    let stage = Stage::new().await;
    stage.origin.on(
        "/slow",
        Script::default()
            .delay_ms(300)
            .send("HTTP/1.1 200 OK\r\nCache-Control: max-age=9\r\nContent-Length: 2\r\n\r\nok"),
    );
    let mut watch = Watch::new(&stage.daemon.log_ring());
    tokio::join!(stage.get("/slow"), stage.get("/slow"), stage.get("/slow"));
    let all = watch.of("/slow", 3).await;
    let served = |word: &str| all.iter().filter(|r| r["cache"] == word).collect::<Vec<_>>();
    assert_eq!((served("MISS").len(), served("COLLAPSED").len()), (1, 2), "{all:?}");
    for record in served("COLLAPSED") {
        assert_phases(record, &["read", "policy", "wait", "reply"]);
        assert_eq!(record.get("origin"), None);
    }
}

#[tokio::test]
async fn a_failure_is_logged_with_its_limit() {
    let setup = Setup { limits: "first_byte_timeout = \"200ms\"\nretries = 0", ..Setup::default() };
    let stage = setup.start().await;
    stage.origin.on("/silent", Script::default().hang());
    let mut watch = Watch::new(&stage.daemon.log_ring());
    assert_eq!(stage.get("/silent").await.status, 504);
    let record = &watch.of("/silent", 1).await[0];
    assert_eq!(
        values(record, &["status", "limit", "origin"]),
        ["504", "first_byte_timeout", "app"]
    );
    assert!(record["error"].as_str().is_some_and(|text| text.contains("first_byte_timeout")));
    assert_phases(record, &["read", "policy", "fetch", "reply"]);

    let refused = stage.exchange("GET", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n").await;
    assert_eq!(refused.status, 400);
    let long = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(9000));
    assert_eq!(stage.exchange("GET", long.as_bytes()).await.status, 414);
    watch.until(3).await;
    let of_status = |code: u16| watch.records.iter().find(|r| r["status"] == code).expect("there");
    let bad = of_status(400);
    assert_eq!((bad.get("target"), bad.get("method")), (None, None));
    assert_eq!(values(bad, &["cache", "client"]), ["SYNTH", "127.0.0.1"]);
    assert!(bad["error"].as_str().is_some_and(|text| !text.is_empty()));
    assert_eq!(values(of_status(414), &["limit"]), ["target_bytes"]);
}

#[tokio::test]
async fn a_head_that_takes_too_long_is_logged_as_far_as_it_came() {
    let stage = Setup { limits: "header_timeout = \"300ms\"", ..Setup::default() }.start().await;
    let mut watch = Watch::new(&stage.daemon.log_ring());
    let mut slow = stage.connect().await;
    slow.send(b"GET / HTTP/1.1\r\nHo", WriteSplit::Whole).await.expect("sent");
    assert_eq!(whole(slow.reply("GET").await, "half a head").status, 408);
    watch.until(1).await;
    let record = &watch.records[0];
    assert_eq!(values(record, &["status", "limit", "head_in"]), ["408", "header_timeout", "18"]);
    assert!(record["phases_us"]["read"].as_u64() > Some(100_000), "{record}");
}

#[tokio::test]
async fn a_client_that_leaves_is_logged_as_nginx_does() {
    let stage = Stage::new().await;
    stage.origin.on("/slow", Script::default().hang());
    let mut watch = Watch::new(&stage.daemon.log_ring());
    let stream = tokio::net::TcpStream::connect(stage.daemon.addr()).await.expect("a connection");
    stream.set_zero_linger().expect("a socket");
    let mut leaving = RawClient::over(stream);
    leaving.send(&request("GET", "/slow", ""), WriteSplit::Whole).await.expect("sent");
    eventually("the fetch", async || stage.origin.seen("/slow") > 0).await;
    drop(leaving);
    let record = &watch.of("/slow", 1).await[0];
    assert_eq!(values(record, &["status", "bytes", "cut_off"]), ["499", "0", "true"]);
}

#[tokio::test]
async fn a_tunnel_is_logged_when_it_ends() {
    let stage = Setup { site: "upgrade = \"echo\"", ..Setup::default() }.start().await;
    stage.origin.on(
        "/chat",
        Script::respond(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhello",
        )
        .close(),
    );
    let mut watch = Watch::new(&stage.daemon.log_ring());
    let mut raw = stage.connect().await;
    let asked = "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";
    raw.send(asked.as_bytes(), WriteSplit::Whole).await.expect("sent");
    let ReplyOutcome::Complete(reply) = raw.reply("GET").await else { panic!("no answer") };
    assert_eq!(reply.status, 101);
    drop(raw);
    let record = &watch.of("/chat", 1).await[0];
    assert_eq!(
        values(record, &["status", "tunnel", "bytes", "cache"]),
        ["101", "true", "5", "PASS"]
    );
    assert_phases(record, &["read", "policy", "fetch", "head", "reply"]);
}

#[tokio::test]
async fn chosen_fields_are_kept_and_no_others() {
    let top = "log_ring = { headers = [\"X-Id\", \"Accept-Language\"] }";
    let stage = Setup { top, ..Setup::default() }.start().await;
    stage.origin.on("/page", Script::cacheable("page"));
    let mut watch = Watch::new(&stage.daemon.log_ring());
    stage.ask("GET", "/page", "x-id: 7\r\nUser-Agent: test/1\r\nCookie: a=b\r\n").await;
    let record = &watch.of("/page", 1).await[0];
    assert_eq!(record["headers"], serde_json::json!({ "X-Id": "7" }));
    assert_eq!(record.get("agent"), None);
}

/// Requests `target` repeatedly over one connection.
async fn ask_many(addr: std::net::SocketAddr, target: &str, count: u64) {
    let mut raw = RawClient::connect(addr).await.expect("a connection").patience(support::PATIENCE);
    let one = request("GET", target, "");
    for _ in 0..count {
        raw.send(&one, WriteSplit::Whole).await.expect("sent");
        let reply = whole(raw.reply("GET").await, target);
        assert_eq!(reply.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_stops_reading_holds_nothing_up_and_learns_what_it_lost() {
    let setup = Setup { top: "log_ring = \"1MiB\"", ..Setup::default() };
    let stage = setup.start().await;
    let target = format!("/{}", "x".repeat(4000));
    stage.origin.on(&target, Script::cacheable("page"));
    let mut watch = Watch::new(&stage.daemon.log_ring());
    watch.look();
    // A multiple of a core's ring, while the reader sleeps.
    let count = 4 * CAPACITY_MIN / 4000;
    ask_many(stage.daemon.addr(), &target, count).await;
    let told = std::cell::RefCell::new(&mut watch);
    eventually("every record, read or lost", async || {
        told.borrow_mut().look();
        let watch = told.borrow();
        watch.records.len() as u64 + watch.lost >= count
    })
    .await;
    assert_eq!(watch.records.len() as u64 + watch.lost, count);
    assert!(watch.lost > count / 2, "{}", watch.lost);
    assert!(watch.records.len() > 100);
    assert_eq!(stage.metric("larder_ring_lost_total").await, 0);
    stage.daemon.assert_metric("larder_hits_total", count - 1).await;
}

#[tokio::test]
async fn a_reader_goes_over_to_the_next_daemon() {
    let origin = ScriptedOrigin::start().await.expect("a port");
    origin.on("/page", Script::cacheable("page"));
    let config = Setup::default().file(&origin);
    let folder = std::env::temp_dir().join(format!("larder-over-{}", std::process::id()));
    let ring = folder.join("ring");
    let (socket, ring_text) = (folder.join("admin.sock"), ring.display().to_string());
    std::fs::create_dir_all(&folder).expect("a folder");
    // A second `--log-ring` would be refused: this daemon's is in its configuration.
    let config = format!("log_ring = {{ folder = {ring_text:?} }}\n{config}");
    let start = || start_plain(&config, &folder, &socket);
    let first = start();
    let mut watch = Watch::new(&ring);
    ask_many(first.addr, "/page", 2).await;
    watch.until(2).await;
    first.stop();
    watch.look();
    let second = start();
    ask_many(second.addr, "/page", 3).await;
    watch.until(5).await;
    assert_eq!(watch.lost, 0);
    let served: Vec<_> = watch.records.iter().map(|r| r["cache"].as_str().unwrap_or("")).collect();
    assert_eq!(served, ["MISS", "HIT", "MISS", "HIT", "HIT"]);
    second.stop();
    _ = std::fs::remove_dir_all(&folder);
}

/// A daemon started without testkit's flags.
struct Plain {
    child: std::process::Child,
    addr: std::net::SocketAddr,
}

fn start_plain(config: &str, folder: &Path, socket: &Path) -> Plain {
    use std::io::BufRead;
    let file = folder.join("larder.toml");
    std::fs::write(&file, config).expect("written");
    let mut child = std::process::Command::new(testkit::larder::binary().expect("a binary"))
        .args(["serve", "--config"])
        .arg(&file)
        .arg("--admin-socket")
        .arg(socket)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stderr = std::io::BufReader::new(child.stderr.take().expect("piped"));
    let addr = loop {
        let mut line = String::new();
        assert_ne!(stderr.read_line(&mut line).expect("text"), 0, "it ended");
        if let Some((_, addr)) = line.trim_end().split_once("listening on ") {
            break addr.parse().expect("an address");
        }
    };
    // It goes on writing, and needs a reader.
    std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
    Plain { child, addr }
}

impl Plain {
    fn stop(mut self) {
        use rustix::process::{Pid, Signal, kill_process};
        let pid = Pid::from_raw(self.child.id().cast_signed()).expect("a process id");
        kill_process(pid, Signal::TERM).expect("it runs");
        assert!(self.child.wait().expect("it ends").success());
    }
}

#[tokio::test]
async fn without_a_ring_there_is_none_and_the_access_log_still_works() {
    let folder = std::env::temp_dir().join(format!("larder-noring-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("access.log");
    let top = format!("log_ring = \"off\"\naccess_log = \"{}\"", file.display());
    let stage = Setup { top: &top, ..Setup::default() }.start().await;
    stage.origin.on("/page", Script::cacheable("page"));
    stage.ask("GET", "/page", "User-Agent: test/1\r\n").await;
    let read = || std::fs::read_to_string(&file).unwrap_or_default();
    eventually("its line", async || read().ends_with("\"test/1\"\n")).await;
    assert!(RingFollower::open(&stage.daemon.log_ring(), FollowStart::Oldest).is_err());
    let reply = stage.daemon.ask_admin("GET", "/ring").await.expect("an answer");
    assert_eq!(reply.status, 404);
    _ = std::fs::remove_dir_all(&folder);
}

#[tokio::test]
async fn the_ring_is_for_the_daemons_user_alone_and_its_location_is_reported() {
    use std::os::unix::fs::PermissionsExt;
    let stage = Stage::new().await;
    let daemon: &Daemon = &stage.daemon;
    let mode =
        |path: &Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(&daemon.log_ring()), 0o700);
    assert_eq!(mode(&daemon.log_ring().join("core-1")), 0o600);
    let reply = daemon.ask_admin("GET", "/ring").await.expect("an answer");
    let told: Value = serde_json::from_str(&reply.text()).expect("JSON");
    assert_eq!(told["folder"], daemon.log_ring().display().to_string());
}

/// The values of a background fetch's record.
const OF_FETCH: [&str; 6] = ["kind", "cache", "status", "origin_status", "stored", "not_stored"];

/// Requests the stale `/page`; returns the record of the request, and of the background fetch.
async fn stale_and_fetch(stage: &Stage, watch: &mut Watch, before: usize) -> (Value, Value) {
    assert_eq!(stage.get("/page").await.status, 200);
    let all = watch.of("/page", before + 2).await.split_off(before);
    let of = |kind: &str| all.iter().find(|record| record["kind"] == kind).expect("one").clone();
    (of("client"), of("background"))
}

#[tokio::test]
async fn a_fetch_behind_a_stale_answer_has_a_record_that_names_the_request() {
    let stage = Stage::new().await;
    let fields = "Cache-Control: max-age=0, stale-while-revalidate=600\r\nETag: \"a\"\r\n";
    stage.origin.on("/page", Script::ok(fields, "page"));
    let mut watch = Watch::new(&stage.daemon.log_ring());
    stage.get("/page").await;
    watch.until(1).await;

    let (client, fetch) = stale_and_fetch(&stage, &mut watch, 1).await;
    assert_eq!(values(&client, &["cache", "kind", "stored"]), ["STALE", "client", "false"]);
    assert_eq!(client.get("parent"), None);
    assert_eq!(fetch["parent"], client["id"]);
    assert_eq!(values(&fetch, &OF_FETCH), ["background", "REFRESH", "200", "200", "true", "null"]);
    assert_eq!(values(&fetch, &["method", "host", "bytes"]), ["GET", "larder.test", "4"]);
    assert_eq!(values(&fetch, &["origin", "tries", "key"])[..2], ["app", "1"]);
    assert_eq!((&fetch["server"], &fetch["key"]), (&miss_server(&stage), &client["key"]));
    assert_phases(&fetch, &["fetch", "head"]);

    let confirmed = "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n";
    stage.origin.on("/page", Script::respond(confirmed));
    let (client, fetch) = stale_and_fetch(&stage, &mut watch, 3).await;
    assert_eq!(fetch["parent"], client["id"]);
    assert_eq!(values(&fetch, &OF_FETCH[..5]), ["background", "REFRESH", "304", "304", "true"]);

    stage.origin.on("/page", Script::respond("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"));
    let (_, fetch) = stale_and_fetch(&stage, &mut watch, 5).await;
    let told = values(&fetch, &OF_FETCH);
    assert_eq!(told, ["background", "REFRESH", "502", "503", "false", "failed"]);
    assert_eq!(fetch["error"], "The origin answered with status 503.");
}

fn miss_server(stage: &Stage) -> Value {
    stage.origin.addr().to_string().into()
}
