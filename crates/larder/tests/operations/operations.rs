//! Tests of an operator's work: reload, stop, figures, checks, logs.

use crate::support;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use support::console::{Ask, json};
use support::{PATIENCE, Setup, Stage, eventually, is_hit, whole};
use testkit::client::{RawClient, WriteSplit, request};
use testkit::larder::{Daemon, binary};
use testkit::origin::{Script, ScriptedOrigin};
use testkit::reply::{ConnectionEnd, Reply, ReplyOutcome};

/// Runs the binary to its end without blocking the origin.
async fn run(arguments: &[&str]) -> Output {
    let mut command = std::process::Command::new(binary().expect("a binary"));
    command.args(arguments);
    let waited = tokio::task::spawn_blocking(move || command.output()).await;
    waited.expect("no panic").expect("it starts")
}

async fn reload(daemon: &Daemon) -> Output {
    let socket = daemon.admin_socket();
    run(&["reload", "--admin-socket", socket.to_str().expect("UTF-8")]).await
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder of this test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("larder-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Leftovers are in the system's temporary folder.
        _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Clients that send requests without pause until they are stopped.
struct Load {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    clients: Vec<tokio::task::JoinHandle<()>>,
}

impl Load {
    fn start(stage: &Stage, targets: &'static [&'static str]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let answered = Arc::new(AtomicU64::new(0));
        let clients = targets.iter().map(|target| {
            let (stop, answered) = (Arc::clone(&stop), Arc::clone(&answered));
            let addr = stage.daemon.addr();
            tokio::spawn(async move {
                let mut raw =
                    RawClient::connect(addr).await.expect("a connection").patience(PATIENCE);
                while !stop.load(Ordering::Relaxed) {
                    let reply = whole(raw.get(target).await.expect("sent"), target);
                    assert_eq!((reply.status, reply.text().as_str()), (200, *target));
                    answered.fetch_add(1, Ordering::Relaxed);
                    if reply.closes() {
                        raw = RawClient::connect(addr)
                            .await
                            .expect("a connection")
                            .patience(PATIENCE);
                    }
                }
            })
        });
        Self { clients: clients.collect(), stop, answered }
    }

    /// Waits for so many more responses.
    async fn more(&self, count: u64) {
        let wanted = self.answered.load(Ordering::Relaxed) + count;
        eventually("answers under load", async || self.answered.load(Ordering::Relaxed) >= wanted)
            .await;
    }

    /// Stops; fails if a client failed.
    async fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.await.expect("every request was answered");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_changes_what_follows_and_loses_nothing() {
    let stage = Stage::new().await;
    stage.origin.on("/stored", Script::cacheable("/stored"));
    stage.origin.on("/passed", Script::ok("Cache-Control: no-store\r\n", "/passed"));
    let before = stage.get("/stored").await;
    assert_eq!(before.field("x-cache"), None);
    let load = Load::start(&stage, &["/stored", "/stored", "/passed", "/passed"]);
    load.more(200).await;

    let setup = Setup { top: "x_cache = true", ..Setup::default() };
    std::fs::write(stage.daemon.config_file(), setup.file(&stage.origin)).expect("written");
    let output = reload(&stage.daemon).await;
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("reloaded"));
    let after = stage.get("/stored").await;
    assert_eq!(after.field("x-cache").as_deref(), Some("HIT"), "the cache is kept");
    load.more(200).await;

    let bad = format!("{}cahce = {{}}\n", setup.file(&stage.origin));
    let line = bad.lines().count();
    std::fs::write(stage.daemon.config_file(), bad).expect("written");
    let output = reload(&stage.daemon).await;
    assert!(!output.status.success());
    let said = text(&output.stderr);
    assert!(said.contains(&format!("larder.toml:{line}:1")), "{said}");
    assert!(said.contains("did you mean `cache`?") && said.contains("stays"), "{said}");
    assert_eq!(stage.get("/stored").await.field("x-cache").as_deref(), Some("HIT"));
    load.more(200).await;
    load.stop().await;
    assert_eq!(stage.origin.seen("/stored"), 1);
}

/// Opens one connection after the other for a request each until it is stopped; returns the first
/// failure.
async fn ask_again_and_again(addr: SocketAddr, stop: &AtomicBool, asked: &AtomicU64) -> String {
    while !stop.load(Ordering::Relaxed) {
        let Ok(mut raw) = RawClient::connect(addr).await else { return "no connection".to_owned() };
        match raw.get("/page").await {
            Ok(ReplyOutcome::Complete(reply)) if reply.status == 200 => {}
            other => return format!("{other:?}"),
        }
        asked.fetch_add(1, Ordering::Relaxed);
    }
    String::new()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_loses_no_connection_while_another_daemon_listens() {
    let mut stage = Stage::new().await;
    stage.origin.on("/page", Script::cacheable("page"));
    let addr = stage.daemon.addr();
    let (stop, asked) = (AtomicBool::new(false), AtomicU64::new(0));
    let (stop, asked) = (&stop, &asked);
    // Repeated rolling restarts: the next daemon listens on the same port before the old one stops.
    let text = Setup::default().file(&stage.origin).replacen("127.0.0.1:0", &addr.to_string(), 1);
    let restart = async {
        for round in 1..=5 {
            let next =
                Daemon::start_with(&text, &["--share-port"]).expect("a second daemon on the port");
            let mut old = std::mem::replace(&mut stage.daemon, next);
            let more = round * 200;
            eventually("requests", async || asked.load(Ordering::Relaxed) >= more).await;
            send(&old, Signal::TERM);
            let ended = tokio::task::spawn_blocking(move || old.wait()).await;
            assert!(ended.expect("no panic").expect("it ends").success());
        }
        stop.store(true, Ordering::Relaxed);
    };
    let ask = || ask_again_and_again(addr, stop, asked);
    let (a, b, c, d, ()) = tokio::join!(ask(), ask(), ask(), ask(), restart);
    assert_eq!([a, b, c, d], [""; 4], "after {asked:?} requests");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_has_just_come_is_answered_at_a_stop() {
    let mut stage = Stage::new().await;
    stage.origin.on("/page", Script::cacheable("page"));
    assert_eq!(stage.get("/page").await.text(), "page");
    let mut fresh = stage.connect().await;
    let silent = stage.connect().await;
    // The daemon has them.
    eventually("connections", async || stage.metric("larder_connections_open").await >= 2).await;
    send(&stage.daemon, Signal::TERM);
    eventually("the stop", async || stage.daemon.log().contains("finishing requests")).await;
    assert_eq!(whole(fresh.get("/page").await.expect("sent"), "/page").text(), "page");
    // A silent connection delays nothing.
    assert!(stage.daemon.wait().expect("it ends").success());
    drop(silent);
}

#[tokio::test(flavor = "multi_thread")]
async fn hangup_reloads_too() {
    let stage = Stage::new().await;
    stage.origin.on("/page", Script::cacheable("page"));
    let setup = Setup { top: "x_cache = true", ..Setup::default() };
    std::fs::write(stage.daemon.config_file(), setup.file(&stage.origin)).expect("written");
    send(&stage.daemon, Signal::HUP);
    eventually("the new configuration", async || {
        stage.get("/page").await.field("x-cache").is_some()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_may_change_the_origin() {
    let stage = Stage::new().await;
    let next = ScriptedOrigin::start().await.expect("a port");
    stage.origin.on("/page", Script::ok("Cache-Control: no-store\r\n", "first"));
    next.on("/page", Script::ok("Cache-Control: no-store\r\n", "second"));
    assert_eq!(stage.get("/page").await.text(), "first");
    std::fs::write(stage.daemon.config_file(), Setup::default().file(&next)).expect("written");
    assert!(reload(&stage.daemon).await.status.success());
    for _ in 0..3 {
        assert_eq!(stage.get("/page").await.text(), "second");
    }
}

fn send(daemon: &Daemon, signal: Signal) {
    let pid = Pid::from_raw(daemon.pid() as i32).expect("a process id");
    kill_process(pid, signal).expect("our own child");
}

#[tokio::test(flavor = "multi_thread")]
async fn termination_lets_requests_finish_and_ends_idle_connections() {
    let stage = Stage::new().await;
    let head = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 8\r\n\r\n";
    let slow = Script::default().delay_ms(1_000).send(format!("{head}slow")).delay_ms(1_000);
    stage.origin.on("/slow", slow.send("page"));
    stage.origin.on("/page", Script::cacheable("page"));
    let mut idle = stage.connect().await;
    assert_eq!(whole(idle.get("/page").await.expect("sent"), "/page").status, 200);
    let mut busy = stage.connect().await;
    busy.send(&request("GET", "/slow", ""), WriteSplit::Whole).await.expect("sent");
    eventually("the slow fetch", async || stage.origin.seen("/slow") == 1).await;
    send(&stage.daemon, Signal::TERM);
    assert_eq!(idle.rest().await, (Vec::new(), ConnectionEnd::Closed));
    assert_eq!(whole(busy.reply("GET").await, "/slow").text(), "slowpage");
    assert_eq!(busy.rest().await, (Vec::new(), ConnectionEnd::Closed));
    let (origin, mut daemon) = (stage.origin, stage.daemon);
    let ended = tokio::task::spawn_blocking(move || daemon.wait()).await.expect("no panic");
    assert!(ended.expect("it ends").success());
    drop(origin);
}

async fn ask_admin(daemon: &Daemon, target: &str, host: &str, token: Option<&str>) -> Reply {
    let addr = daemon.admin().expect("an admin listener");
    let mut raw = RawClient::connect(addr).await.expect("a connection").patience(PATIENCE);
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
    let asked =
        format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n{}\r\n", token.unwrap_or_default());
    raw.send(asked.as_bytes(), WriteSplit::Whole).await.expect("sent");
    whole(raw.reply("GET").await, target)
}

#[tokio::test]
async fn the_admin_listener_shows_figures_to_clients_with_a_token() {
    let top = "[admin]\nlisten = \"127.0.0.1:0\"";
    let stage = Setup { top, ..Setup::default() }.start().await;
    stage.origin.on("/page", Script::cacheable("page"));
    for _ in 0..3 {
        stage.get("/page").await;
    }
    let daemon = &stage.daemon;
    let token = daemon.token("read").expect("a token");
    let metrics = ask_admin(daemon, "/metrics", "localhost", Some(&token)).await;
    assert_eq!(metrics.status, 200);
    assert!(metrics.text().contains("\nlarder_hits_total 2\n"), "{}", metrics.text());
    assert!(metrics.text().contains("# TYPE larder_objects gauge"), "{}", metrics.text());
    let stats = ask_admin(daemon, "/stats", "localhost", Some(&token)).await;
    let stats: serde_json::Value = serde_json::from_slice(&stats.body).expect("JSON");
    assert_eq!(stats["hits_total"], 2);
    assert_eq!(stats["limit_hits"]["header_timeout"], 0);
    assert_eq!(ask_admin(daemon, "/metrics", "localhost", None).await.status, 401);
    let on_data_port = stage.get("/metrics").await;
    assert_eq!(on_data_port.status, 404, "the origin's, not the daemon's");
    assert_eq!(stage.origin.seen("/metrics"), 1);
}

#[tokio::test]
async fn figures_are_for_everyone_where_that_is_said() {
    let top = "[admin]\nlisten = \"127.0.0.1:0\"\nmetrics = \"open\"";
    let stage = Setup { top, ..Setup::default() }.start().await;
    assert_eq!(ask_admin(&stage.daemon, "/metrics", "localhost", None).await.status, 200);
    assert_eq!(ask_admin(&stage.daemon, "/stats", "localhost", None).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn stat_prints_every_figure() {
    let stage = Stage::new().await;
    stage.origin.on("/page", Script::cacheable("page"));
    stage.get("/page").await;
    let socket = stage.daemon.admin_socket();
    let output = run(&["stat", "--admin-socket", socket.to_str().expect("UTF-8")]).await;
    assert!(output.status.success());
    let said = text(&output.stdout);
    let figure = |name: &str| {
        let line = said.lines().find(|line| line.split_whitespace().next() == Some(name));
        line.and_then(|line| line.split_whitespace().last()).map(str::to_owned)
    };
    assert_eq!(figure("requests_total").as_deref(), Some("1"), "{said}");
    assert_eq!(figure("limit_hits.waiters").as_deref(), Some("0"), "{said}");
    let nobody = run(&["stat", "--admin-socket", "/nonexistent/admin.sock"]).await;
    assert!(!nobody.status.success());
    assert!(text(&nobody.stderr).contains("/nonexistent/admin.sock"));
}

async fn check(file: &Path) -> (bool, String, String) {
    let output = run(&["check", file.to_str().expect("UTF-8")]).await;
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

#[tokio::test]
async fn check_accepts_good_and_locates_bad_files() {
    let folder = Folder::new("check");
    let file = folder.0.join("larder.toml");
    let good = "listen = \"127.0.0.1:0\"\n[[origin]]\nname = \"app\"\n\
                servers = \"http://127.0.0.1:8080\"\n[[site]]\nhost = \"*\"\norigin = \"app\"\n";
    std::fs::write(&file, good).expect("written");
    let (fine, said, _) = check(&file).await;
    assert!(fine && said.contains("good: 1 site, 1 origin"), "{said}");
    for (bad, place, help) in [
        (good.replace("listen", "lisen"), ":1:1", "did you mean `listen`?"),
        (good.replace("origin = \"app\"", "origin = \"ap\""), ":7:10", "did you mean `app`?"),
        (good.replace("\"127.0.0.1:0\"", "5"), ":1:10", "listen"),
        (good.replace("[[site]]", "[[site"), ":5:", "site"),
    ] {
        std::fs::write(&file, bad).expect("written");
        let (fine, out, said) = check(&file).await;
        assert!(!fine && out.is_empty(), "{out}");
        assert!(said.contains(&format!("larder.toml{place}")) && said.contains(help), "{said}");
    }
    let (fine, _, said) = check(&folder.0.join("missing.toml")).await;
    assert!(!fine && said.contains("missing.toml"), "{said}");
}

/// The log's lines, once `count` of them are there.
async fn lines(file: &Path, count: usize) -> Vec<String> {
    let read = || std::fs::read_to_string(file).unwrap_or_default();
    eventually("the access log", async || read().lines().count() >= count).await;
    read().lines().map(str::to_owned).collect()
}

/// Makes a miss, a hit, a POST and a malformed request.
async fn logged_requests(stage: &Stage) {
    stage.origin.on("/page", Script::cacheable("page"));
    stage.origin.on("/form", Script::ok("", "thanks"));
    let fields = "Referer: http://other.test/\"x\"\r\nUser-Agent: test/1\r\n";
    stage.ask("GET", "/page?a=1", fields).await;
    stage.ask("GET", "/page?a=1", fields).await;
    stage.ask("POST", "/form", "Content-Length: 0\r\n").await;
    stage.exchange("GET", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n").await;
}

#[tokio::test]
async fn the_access_log_has_combined_lines() {
    let folder = Folder::new("combined");
    let file = folder.0.join("access.log");
    let top = format!("access_log = \"{}\"", file.display());
    let stage = Setup { top: &top, ..Setup::default() }.start().await;
    logged_requests(&stage).await;
    let lines = lines(&file, 4).await;
    for (method, bytes) in [("GET /page?a=1", 4), ("POST /form", 6)] {
        let request = format!("\"{method} HTTP/1.1\" 200 {bytes} ");
        let line = lines.iter().find(|l| l.contains(&request)).expect(method);
        assert!(line.starts_with("127.0.0.1 - - ["), "{line}");
    }
    let with_fields =
        lines.iter().filter(|l| l.ends_with("\"http://other.test/\\x22x\\x22\" \"test/1\""));
    assert_eq!(with_fields.count(), 2, "{lines:?}");
    assert!(lines.iter().any(|l| l.contains("] \"GET / HTTP/1.1\" 400 ")), "{lines:?}");
}

#[tokio::test]
async fn the_access_log_has_json_lines_and_is_complete_at_the_end() {
    let folder = Folder::new("json");
    let file = folder.0.join("access.log");
    let top = format!("access_log = {{ path = \"{}\", format = \"json\" }}", file.display());
    let stage = Setup { top: &top, ..Setup::default() }.start().await;
    logged_requests(&stage).await;
    send(&stage.daemon, Signal::TERM);
    let mut daemon = stage.daemon;
    let ended = tokio::task::spawn_blocking(move || daemon.wait()).await.expect("no panic");
    assert!(ended.expect("it ends").success());
    let parsed: Vec<serde_json::Value> = std::fs::read_to_string(&file)
        .expect("a log")
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(parsed.len(), 4);
    let mut cache: Vec<_> = parsed
        .iter()
        .filter(|line| line["target"] == "/page?a=1")
        .map(|line| line["cache"].as_str().unwrap_or_default())
        .collect();
    cache.sort_unstable();
    assert_eq!(cache, ["HIT", "MISS"]);
    let post = parsed.iter().find(|line| line["method"] == "POST").expect("the POST");
    assert_eq!((&post["status"], &post["bytes"]), (&200.into(), &6.into()));
    assert_eq!((&post["host"], &post["client"]), (&"larder.test".into(), &"127.0.0.1".into()));
    assert!(parsed.iter().any(|line| line["status"] == 400));
}

#[tokio::test]
async fn a_moved_log_is_opened_anew_on_request() {
    let folder = Folder::new("rotate");
    let file = folder.0.join("access.log");
    let top = format!("access_log = \"{}\"", file.display());
    let stage = Setup { top: &top, ..Setup::default() }.start().await;
    stage.origin.on("/page", Script::cacheable("page"));
    stage.get("/page").await;
    lines(&file, 1).await;
    std::fs::rename(&file, folder.0.join("access.log.1")).expect("moved");
    send(&stage.daemon, Signal::USR1);
    eventually("the new log", async || file.exists()).await;
    assert!(is_hit(&stage.get("/page").await));
    assert_eq!(lines(&file, 1).await.len(), 1);
}

#[tokio::test]
async fn an_unknown_host_gets_an_error_and_nothing_is_fetched() {
    let origin = ScriptedOrigin::start().await.expect("a port");
    let config = Setup::default().file(&origin).replace("host = \"*\"", "host = \"larder.test\"");
    let daemon = Daemon::start(&config).expect("larder starts");
    let mut raw = RawClient::connect(daemon.addr()).await.expect("a connection");
    raw.send(b"GET /page HTTP/1.1\r\nHost: other.test\r\n\r\n", WriteSplit::Whole)
        .await
        .expect("sent");
    match raw.reply("GET").await {
        ReplyOutcome::Complete(reply) => assert_eq!(reply.status, 421),
        other => panic!("{other:?}"),
    }
    assert_eq!(origin.targets(), [""; 0]);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn memory_arrives_in_small_pages() {
    let stage = Stage::new().await;
    let status = std::fs::read_to_string(format!("/proc/{}/status", stage.daemon.pid()));
    let status = status.expect("a running process has one");
    let huge = status.lines().find_map(|line| line.strip_prefix("THP_enabled:"));
    assert_eq!(huge.map(str::trim), Some("0"));
}

#[tokio::test]
async fn a_stop_is_over_in_its_time_whatever_hangs() {
    let stage = Setup { limits: "drain_time = \"300ms\"", ..Setup::default() }.start().await;
    stage.origin.on("/hung", Script::default().hang());
    let mut client = stage.connect().await;
    client.send(&request("GET", "/hung", ""), WriteSplit::Whole).await.expect("sent");
    eventually("the exchange that hangs", async || stage.origin.seen("/hung") == 1).await;
    send(&stage.daemon, Signal::TERM);
    let Stage { origin: _origin, mut daemon } = stage;
    let ended = tokio::task::spawn_blocking(move || (daemon.wait(), daemon.log())).await;
    let (ended, log) = ended.expect("no panic");
    assert!(ended.expect("it ends").success());
    assert!(log.contains("1 connections open: 1 downloads (limit: drain_time)"), "{log}");
}

#[tokio::test]
async fn a_blocked_core_is_counted_and_logged() {
    let stage = Stage::new().await;
    send(&stage.daemon, Signal::STOP);
    support::pause(500).await;
    send(&stage.daemon, Signal::CONT);
    eventually("it is counted", async || stage.metric("larder_long_turns_total").await > 0).await;
    assert!(stage.metric("larder_longest_turn_ms").await > 100);
    eventually("it is told", async || stage.daemon.log().contains("was blocked by one task for"))
        .await;
}

/// A running demo.
struct Demo {
    child: std::process::Child,
    /// Output of the demo's start.
    said: String,
}

impl Demo {
    async fn start() -> Self {
        let started = tokio::task::spawn_blocking(|| {
            use std::io::{BufRead, BufReader};
            let mut command = std::process::Command::new(binary().expect("a binary"));
            command.args(["demo", "--listen", "127.0.0.1:0"]).stdout(std::process::Stdio::piped());
            let mut child = command.spawn().expect("it starts");
            let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
            let mut said = String::new();
            while !said.contains("requests/s") {
                said.push_str(&lines.next().expect("more").expect("text"));
                said.push('\n');
            }
            // Writing to a closed pipe would end it.
            std::thread::spawn(move || lines.for_each(drop));
            Self { child, said }
        });
        started.await.expect("no panic")
    }

    /// The word behind another in its output.
    fn word(&self, before: &str) -> &str {
        let (_, rest) = self.said.split_once(before).expect(before);
        rest.split_whitespace().next().expect("a word")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_has_a_link_that_signs_in_and_leaves_nothing_however_it_ends() {
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        let mut demo = Demo::start().await;
        let link = demo.word("dashboard ").strip_prefix("http://").expect("a link").to_owned();
        let (address, token) = link.split_once("/#token=").expect("a token in the fragment");
        let mut client =
            RawClient::connect(address.parse().expect("an address")).await.expect("connected");
        let ask = format!(
            "GET /stats HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
        );
        client.send(ask.as_bytes(), WriteSplit::Whole).await.expect("sent");
        assert_eq!(whole(client.reply("GET").await, "/stats").status, 200);

        let socket = PathBuf::from(demo.word("--admin-socket "));
        let folder = socket.parent().expect("a folder").to_owned();
        let output = run(&["stat", "--json", "--admin-socket", demo.word("--admin-socket ")]).await;
        assert!(output.status.success(), "{}", text(&output.stderr));
        let mut stream = tokio::net::UnixStream::connect(&socket).await.expect("its socket");
        let ring = ring_of(&mut stream).await;
        assert!(folder.is_dir() && ring.is_dir(), "{}", ring.display());

        let pid = Pid::from_raw(demo.child.id() as i32).expect("a process");
        kill_process(pid, signal).expect("a signal");
        demo.child.wait().expect("it ends");
        eventually("nothing left", async || !folder.exists() && !ring.exists()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_has_visitors_of_its_own_and_urls_worth_explaining() {
    let mut demo = Demo::start().await;
    assert!(demo.said.contains("Requests of 8 visitors, for another "), "{}", demo.said);
    let socket = demo.word("--admin-socket ").to_owned();
    let explains = demo.said.lines().filter(|line| line.contains(" explain --admin-socket "));
    let urls: Vec<&str> = explains
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with("http://")))
        .collect();
    assert_eq!(urls.len(), 3, "{}", demo.said);
    for (url, served, advice) in [
        (urls[0], &["HIT", "STALE"][..], "the cache answers"),
        (urls[1], &["HIT-FOR-MISS"], "The application decides"),
        (urls[2], &["HIT-FOR-MISS"], "`demo_session`"),
    ] {
        // Only the visitors request it.
        eventually(url, async || {
            let output = run(&["explain", "--json", "--admin-socket", &socket, url]).await;
            let told: serde_json::Value =
                serde_json::from_slice(&output.stdout).unwrap_or_default();
            let word = told["outcome"]["served"].as_str().unwrap_or_default();
            served.contains(&word) && told["advice"].to_string().contains(advice)
        })
        .await;
    }
    kill_process(Pid::from_raw(demo.child.id() as i32).expect("a process"), Signal::TERM)
        .expect("a signal");
    demo.child.wait().expect("it ends");
}

/// The folder of a daemon's log ring.
async fn ring_of(socket: &mut tokio::net::UnixStream) -> PathBuf {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let ask = "GET /ring HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    socket.write_all(ask.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.expect("an answer");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
    let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
    body["folder"].as_str().expect("a folder").into()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_process_on_the_port_is_named_and_other_daemons_too() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let output = run(&["demo", "--listen", &address]).await;
    let said = text(&output.stderr);
    let own = format!("(pid {}) listens there", std::process::id());
    assert!(!output.status.success() && said.contains(&own), "{said}");

    let stage = Stage::new().await;
    let output = run(&["stat", "--json", "--admin-socket", "/nonexistent/admin.sock"]).await;
    let said = text(&output.stderr);
    assert!(said.contains("no running daemon answers") && said.contains("= help: "), "{said}");
    drop(stage);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_low_port_without_the_right_to_it_says_what_to_do() {
    use std::os::unix::process::CommandExt;
    let unprivileged = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
    let first: u16 = unprivileged.expect("a setting").trim().parse().expect("a number");
    if first == 0 || !rustix::process::geteuid().is_root() {
        eprintln!("skipped: it takes root to become nobody, and ports that are root's");
        return;
    }
    let folder = Folder::new("low-port");
    let copy = folder.0.join("larder");
    std::fs::copy(binary().expect("a binary"), &copy).expect("a copy that nobody may run");
    let mut command = std::process::Command::new(copy);
    command.args(["serve", "--origin", "http://127.0.0.1:1", "--listen", "127.0.0.1:1"]);
    command.arg("--admin-socket").arg("/nonexistent/admin.sock").uid(65534).gid(65534);
    let waited = tokio::task::spawn_blocking(move || command.output()).await;
    let output = waited.expect("no panic").expect("it starts");
    let said = text(&output.stderr);
    assert!(!output.status.success() && said.contains("127.0.0.1:1: Permission denied"), "{said}");
    assert!(said.contains("systemctl start larder") && said.contains("setcap"), "{said}");
}

#[tokio::test]
async fn lines_that_a_full_disk_has_no_room_for_are_counted() {
    let stage = Setup { top: "access_log = \"/dev/full\"\n", ..Setup::default() }.start().await;
    stage.origin.on("/a", Script::ok("Cache-Control: max-age=600\r\n", "a page"));
    for _ in 0..3 {
        assert_eq!(stage.get("/a").await.status, 200);
    }
    stage.daemon.assert_metric("larder_log_lost_total", 3).await;
    stage.daemon.assert_logged("larder: access log: /dev/full: No space left on device").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_says_what_takes_a_restart() {
    let mut setup = Setup { top: "access_log = \"stdout\"\n", ..Setup::default() };
    let stage = setup.start().await;
    setup = Setup { top: "via = \"edge\"\nhttp2 = false\n", ..Setup::default() };
    let file = setup.file(&stage.origin).replace("workers = 2", "workers = 1");
    std::fs::write(stage.daemon.config_file(), file).expect("written");
    let (done, said, _) = support::console::run(&stage.daemon, &["reload"]).await;
    let told = "configuration reloaded, but not workers, access_log: that takes a restart";
    assert!(done && said == format!("{told}\n"), "{said}");
    stage.daemon.assert_logged(&format!("larder: {told}")).await;
    let stays = serde_json::json!(["workers", "access_log"]);
    let status = support::console::look(&stage.daemon, "/api/v1/status").await;
    assert_eq!(status["waits_for_restart"], stays);
    for action in ["check", "reload"] {
        let ask = Ask::post(&format!("/api/v1/config/{action}"), &serde_json::Value::Null);
        let answer = json(&ask.send_locally(&stage.daemon).await);
        assert_eq!((&answer["good"], &answer["stays"]), (&true.into(), &stays), "{answer}");
    }
    // A hangup logs the same, and nothing more.
    let lines = |log: &str| log.lines().filter(|line| line.contains("reloaded")).count();
    let before = lines(&stage.daemon.log());
    send(&stage.daemon, Signal::HUP);
    eventually("the third reload", async || lines(&stage.daemon.log()) > before).await;
    let log = stage.daemon.log();
    assert!(log.lines().filter(|line| line.contains("reloaded")).all(|line| line.contains(told)));
    std::fs::write(stage.daemon.config_file(), {
        let file = Setup { top: "access_log = \"stdout\"\n", ..Setup::default() };
        file.file(&stage.origin)
    })
    .expect("written");
    let (done, said, _) = support::console::run(&stage.daemon, &["reload"]).await;
    assert!(done && said == "configuration reloaded\n", "{said}");
    let status = support::console::look(&stage.daemon, "/api/v1/status").await;
    assert_eq!(status["waits_for_restart"], serde_json::json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_without_header_fields_to_show_are_refused() {
    let stage = Stage::new().await;
    for more in [&[][..], &["--json"], &["-F", "%h %s"]] {
        let arguments = [&["log", "--secrets", "--once"], more].concat();
        let (done, _, said) = support::console::run(&stage.daemon, &arguments).await;
        assert!(!done && said.contains("--secrets is for values of header fields"), "{said}");
    }
}
