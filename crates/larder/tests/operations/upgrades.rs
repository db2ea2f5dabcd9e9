//! Tests of upgrades: a new process takes a daemon's place while clients notice nothing, and one
//! that cannot serve changes nothing.

mod load;

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use testkit::client::{RawClient, WriteSplit, request};
use testkit::h2::Farewell;
use testkit::larder::{Daemon, binary};
use testkit::origin::Script;
use testkit::reply::{ConnectionEnd, Reply, ReplyOutcome};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use self::load::{Load, Scene};
use crate::support::console::{Ask, LISTENS, json, look, run};
use crate::support::disked::{Disked, Policy};
use crate::support::folder::Folder;
use crate::support::{PATIENCE, Setup, Stage, eventually, h2, is_hit, pause, whole};

/// Upgrades daemon and asserts that it succeeds.
async fn upgrade(daemon: &mut Daemon) {
    let before = daemon.pid();
    let reply = daemon.upgrade(None).await.expect("an answer");
    assert_eq!(reply.status, 200, "{}\n{}", reply.text(), daemon.log());
    assert_ne!(daemon.pid(), before);
}

/// The response to a GET on an open connection.
async fn ask(raw: &mut RawClient, target: &str) -> Reply {
    whole(raw.get(target).await.expect("sent"), target)
}

/// Returns true if the response is the connection's last.
fn closes(reply: &Reply) -> bool {
    reply.field("connection").is_some_and(|value| value == "close")
}

/// An executable script in `folder`.
fn program(folder: &Folder, name: &str, text: &str) -> PathBuf {
    folder.file(name, format!("#!/bin/sh\n{text}\n"));
    let path = folder.path().join(name);
    fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("a mode");
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_upgrades_in_a_row_lose_nothing() {
    let mut scene = Scene::start().await;
    let load = Load::begin(&scene);
    for round in 0..20 {
        // Another number of cores leaves no socket without one.
        scene.set_workers(1 + round % 3);
        let counted = load.counts();
        upgrade(&mut scene.daemon).await;
        eventually("every kind of client has been served", async || {
            load.counts().iter().zip(&counted).all(|(now, before)| now > before)
        })
        .await;
    }
    load.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_connection_ends_with_its_next_response_and_the_old_process_with_it() {
    let mut stage = h2::stage().await;
    stage.origin.on("/page", Script::cacheable("page"));
    let mut kept = stage.connect().await;
    assert!(!closes(&ask(&mut kept, "/page").await));
    let mut second = h2::client(&stage.daemon).await;
    second.get("/page").await.answer("/page");
    let old = stage.daemon.pid();
    upgrade(&mut stage.daemon).await;
    let in_order = Farewell { code: Some(0), end: ConnectionEnd::Closed };
    assert_eq!(second.rest().await, Ok(in_order), "an idle HTTP/2 connection is told");
    assert!(stage.daemon.is_running(old));
    let last = ask(&mut kept, "/page").await;
    assert_eq!((last.text().as_str(), closes(&last)), ("page", true));
    assert_eq!(kept.rest().await.1, ConnectionEnd::Closed);
    eventually("the old process ends", async || !stage.daemon.is_running(old)).await;
    assert_eq!(stage.get("/page").await.text(), "page");
    stage.daemon.assert_logged("has taken over; this one finishes its connections").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_reaches_both_processes_before_it_is_answered() {
    let site = "purge = { allow = [\"127.0.0.1\"] }";
    let mut stage = Setup { site, ..Setup::default() }.start().await;
    stage.origin.on("/page", Script::cacheable("first"));
    let [mut reader, mut purger] = [stage.connect().await, stage.connect().await];
    for raw in [&mut reader, &mut purger] {
        assert_eq!(ask(raw, "/page").await.text(), "first");
    }
    upgrade(&mut stage.daemon).await;
    assert_eq!(stage.get("/page").await.text(), "first");

    // A purge that the old process gets.
    stage.origin.on("/page", Script::cacheable("second"));
    purger.send(&request("PURGE", "/page", ""), WriteSplit::Whole).await.expect("sent");
    assert_eq!(whole(purger.reply("PURGE").await, "PURGE").status, 200);
    assert_eq!(stage.get("/page").await.text(), "second");

    // A purge that the new process gets.
    stage.origin.on("/page", Script::cacheable("third"));
    let order = Ask::post("/api/v1/purge", &json!({ "all": true }));
    assert_eq!(order.send_locally(&stage.daemon).await.status, 200);
    assert_eq!(ask(&mut reader, "/page").await.text(), "third");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_process_that_cannot_serve_changes_nothing() {
    let limits = "upgrade_timeout = \"500ms\"";
    let mut stage = Setup { limits, ..Setup::default() }.start().await;
    stage.origin.on("/page", Script::cacheable("page"));
    stage.get("/page").await;
    let mut kept = stage.connect().await;
    let (pid, folder) = (stage.daemon.pid(), Folder::new());
    let ends = program(&folder, "ends", "exit 3");
    let hangs = program(&folder, "hangs", "exec sleep 600");
    let missing = folder.path().join("missing");
    for (binary, why) in [
        (&ends, "the new process ended (exit status: 3) and gave no reason"),
        (&hangs, "the new process was not ready within 500ms (limit: upgrade_timeout)"),
        (&missing, "cannot start "),
    ] {
        let refused = stage.daemon.upgrade(Some(binary)).await.expect("an answer");
        let said = refused.text();
        assert!(refused.status == 422 && said.contains(why), "{} {said}", refused.status);
        assert_eq!(stage.daemon.pid(), pid);
        assert!(is_hit(&ask(&mut kept, "/page").await), "the store and connections stay");
        stage.daemon.assert_logged("larder: not upgraded, this process goes on: ").await;
    }
    let refused = Ask::post("/api/v1/upgrade", &json!({ "binary": "larder" }));
    assert_eq!(refused.send_locally(&stage.daemon).await.status, 422);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_process_serves_if_the_old_one_dies_in_between() {
    let mut stage = Stage::new().await;
    stage.origin.on("/page", Script::cacheable("page"));
    let (folder, larder) = (Folder::new(), binary().expect("a binary"));
    let text = "while [ ! -e \"$(dirname \"$0\")/go\" ]; do sleep 0.05; done";
    let waits = program(&folder, "waits", &format!("{text}\nexec {} \"$@\"", larder.display()));
    let order = Ask::post("/api/v1/upgrade", &json!({ "binary": waits })).bytes();
    let mut console = UnixStream::connect(stage.daemon.admin_socket()).await.expect("it listens");
    console.write_all(&order).await.expect("sent");
    let old = stage.daemon.pid();
    eventually_mut("the new process", || stage.daemon.adopt().is_some()).await;
    kill_process(Pid::from_raw(old.cast_signed()).expect("an id"), Signal::KILL).expect("ours");
    stage.daemon.wait().expect("it ends");
    // The connection waits in the queue, which is never closed.
    let mut raw = stage.connect().await;
    folder.file("go", "");
    assert_eq!(ask(&mut raw, "/page").await.text(), "page");
    stage.daemon.assert_logged("has ended before it was replaced").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_during_an_upgrade_are_answered_and_an_order_to_end_is_obeyed() {
    let (mut stage, folder) = (Stage::new().await, Folder::new());
    let waits = program(&folder, "waits", "exec sleep 600");
    let order = Ask::post("/api/v1/upgrade", &json!({ "binary": waits })).bytes();
    let mut console = UnixStream::connect(stage.daemon.admin_socket()).await.expect("it listens");
    console.write_all(&order).await.expect("sent");
    eventually("an upgrade is under way", async || {
        let (done, _, why) = run(&stage.daemon, &["reload"]).await;
        !done && why.contains("an upgrade or another reload is under way")
    })
    .await;
    let pid = Pid::from_raw(stage.daemon.pid().cast_signed()).expect("an id");
    kill_process(pid, Signal::TERM).expect("our own process");
    stage.daemon.wait().expect("it ends");
}

/// Waits until `holds`, which changes something.
async fn eventually_mut(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "never: {what}");
        pause(20).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_cannot_be_served_is_told_with_its_place() {
    let mut stage = Stage::new().await;
    stage.origin.on("/page", Script::cacheable("page"));
    stage.get("/page").await;
    let file = stage.daemon.config_file();
    let good = fs::read_to_string(&file).expect("a file");
    let held = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = held.local_addr().expect("an address");
    let other = format!("listen = [\"127.0.0.1:0\", \"{taken}\"]");
    for (text, why) in [
        (good.replacen("workers", "wrokers", 1), "wrokers".to_owned()),
        (good.replacen("listen = \"127.0.0.1:0\"", &other, 1), format!("cannot listen: {taken}")),
    ] {
        fs::write(&file, text).expect("written");
        let refused = stage.daemon.upgrade(None).await.expect("an answer");
        let said = refused.text();
        assert!(refused.status == 422 && said.contains(&why), "{} {said}", refused.status);
        assert!(is_hit(&stage.get("/page").await));
    }
    fs::write(&file, good).expect("written");
    let (done, said, why) = run(&stage.daemon, &["upgrade"]).await;
    assert!(done && said.contains("has taken over; process "), "{said}{why}");
    end_of(&stage, &said).await;
}

/// Ends the process that `larder upgrade` has told of.
async fn end_of(stage: &Stage, said: &str) {
    let pid = said.split_whitespace().nth(1).and_then(|pid| pid.parse().ok()).expect("an id");
    kill_process(Pid::from_raw(pid).expect("an id"), Signal::TERM).expect("our own process");
    let pid = pid.unsigned_abs();
    eventually("it ends", async || !stage.daemon.is_running(pid)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets_of_all_kinds_are_handed_over() {
    let folder = Folder::new();
    let socket = folder.path().join("web.sock");
    let token = folder.path().join("token");
    folder.file("token", "0123456789abcdef0123456789abcdef\n");
    fs::set_permissions(&token, Permissions::from_mode(0o600)).expect("its own file");
    let top = format!(
        "health = {{ listen = \"127.0.0.1:0\" }}\n\
         metrics = {{ listen = \"127.0.0.1:0\", token_file = \"{}\" }}\n\
         varnish_cli = {{ listen = \"127.0.0.1:0\", secret = \"none\" }}\n{LISTENS}",
        token.display()
    );
    let listen = format!("listen = [\"127.0.0.1:0\", \"unix:{}\"]", socket.display());
    let mut stage = Setup { top: &top, ..Setup::default() }.listening(&listen).await;
    stage.origin.otherwise(Script::cacheable("page"));
    for _ in 0..2 {
        upgrade(&mut stage.daemon).await;
        assert_eq!(stage.get("/page").await.text(), "page");
        let mut stream = UnixStream::connect(&socket).await.expect("it listens");
        let asked = request("GET", "/page", "Connection: close\r\n");
        stream.write_all(&asked).await.expect("sent");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.expect("an end");
        assert!(bytes.ends_with(b"\r\n\r\npage"), "{}", String::from_utf8_lossy(&bytes));
        for (name, status) in [("health", 200), ("metrics", 401)] {
            let address = stage.daemon.port(name).expect("a port");
            let target = if name == "health" { "/healthz" } else { "/metrics" };
            assert_eq!(Ask::get(target).send_to(address).await.status, status, "{name}");
        }
        let cli = stage.daemon.port("Varnish CLI").expect("a port");
        TcpStream::connect(cli).await.expect("it listens");
        assert_eq!(stage.daemon.metric("larder_ports_missing", "").await.expect("metrics"), 0.0);
    }
    let status = look(&stage.daemon, "/api/v1/status").await;
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_disk_is_handed_over_with_what_was_in_memory_and_with_its_purges() {
    let mut disked = Disked::start(Policy::Declared, "").await;
    for target in ["/page", "/gone", "/late"] {
        disked.origin.on(target, Script::cacheable("first"));
        assert_eq!(disked.get(target).await.text(), "first");
    }
    assert_eq!(disked.ask("PURGE", "/gone", "").await.status, 200);
    let addr = disked.daemon().addr();
    let mut kept = RawClient::connect(addr).await.expect("a connection").patience(PATIENCE);
    ask(&mut kept, "/page").await;
    for round in 1..3 {
        upgrade(disked.daemon_mut()).await;
        eventually("all is found", async || disked.is_found().await).await;
        assert!(is_hit(&disked.get("/page").await), "round {round}");
        assert_eq!(disked.origin.seen("/page"), 1);
        if round == 1 {
            // The old process writes no more, and the new one records the purge.
            kept.send(&request("PURGE", "/late", ""), WriteSplit::Whole).await.expect("sent");
            assert_eq!(whole(kept.reply("PURGE").await, "PURGE").status, 200);
        }
    }
    for target in ["/gone", "/late"] {
        disked.origin.on(target, Script::cacheable("second"));
        assert_eq!(disked.get(target).await.text(), "second");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_is_not_promised_while_a_process_that_is_gone_has_the_disk() {
    let mut disked = Disked::start(Policy::Declared, "").await;
    disked.origin.on("/page", Script::cacheable("first"));
    assert_eq!(disked.get("/page").await.text(), "first");
    let addr = disked.daemon().addr();
    let mut kept = RawClient::connect(addr).await.expect("a connection").patience(PATIENCE);
    ask(&mut kept, "/page").await;
    upgrade(disked.daemon_mut()).await;
    let new = Pid::from_raw(disked.daemon().pid().cast_signed()).expect("an id");
    kill_process(new, Signal::KILL).expect("our own process");
    kept.send(&request("PURGE", "/page", ""), WriteSplit::Whole).await.expect("sent");
    let reply = whole(kept.reply("PURGE").await, "PURGE");
    assert!(reply.status != 200, "{} {}", reply.status, reply.text());
    assert!(reply.text().contains("the disk may have what was purged"), "{}", reply.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_to_end_reaches_the_process_that_serves() {
    let mut stage = Stage::new().await;
    stage.origin.otherwise(Script::cacheable("page"));
    upgrade(&mut stage.daemon).await;
    let (addr, pid) = (stage.daemon.addr(), stage.daemon.pid());
    let named = Pid::from_raw(pid.cast_signed()).expect("an id");
    kill_process(named, Signal::TERM).expect("our own process");
    eventually("it ends", async || !stage.daemon.is_running(pid)).await;
    assert!(RawClient::connect(addr).await.is_err(), "nothing listens any more");
}

#[tokio::test(flavor = "multi_thread")]
async fn downloads_past_the_drain_time_are_cut_and_told_by_kind() {
    let limits = "drain_time = \"1s\"";
    let mut stage = Setup { limits, ..Setup::default() }.start().await;
    stage.origin.on("/hung", Script::default().hang());
    let mut client = stage.connect().await.patience(PATIENCE);
    client.send(&request("GET", "/hung", ""), WriteSplit::Whole).await.expect("sent");
    eventually("the exchange that hangs", async || stage.origin.seen("/hung") == 1).await;
    upgrade(&mut stage.daemon).await;
    assert!(!matches!(client.reply("GET").await, ReplyOutcome::Complete(_)));
    let said = "ends with 1 connections open: 1 downloads (limit: drain_time)";
    stage.daemon.assert_logged(said).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_answers_with_both_processes() {
    let mut stage = Stage::new().await;
    let old = stage.daemon.pid();
    let reply = stage.daemon.upgrade(None).await.expect("an answer");
    let done = json(&reply);
    assert_eq!(done["before"], old);
    assert_eq!(done["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(done["drain_ms"], 30_000);
    eventually("the old process ends", async || !stage.daemon.is_running(old)).await;
}
