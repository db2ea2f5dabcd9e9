//! Tests of listening on unix sockets.

use crate::support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use support::{PATIENCE, Setup, Stage, eventually, sent_field};
use testkit::client::request;
use testkit::larder::{Daemon, binary};
use testkit::origin::{Script, ScriptedOrigin};
use testkit::reply::{ConnectionEnd, Reply, ReplyOutcome, read_reply};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

/// A socket's path in a folder of its own, removed with it.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("larder-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        Self(folder.join("http.sock"))
    }

    fn file(&self) -> &Path {
        &self.0
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        _ = self.0.parent().map(fs::remove_dir_all);
    }
}

/// The configuration of a daemon that also listens on `place`.
fn file(place: &Place, words: &str, top: &str, origin: &ScriptedOrigin) -> String {
    let unix = format!("[\"127.0.0.1:0\", \"unix:{}{words}\"]", place.file().display());
    let text = Setup { top, ..Setup::default() }.file(origin);
    text.replacen("\"127.0.0.1:0\"", &unix, 1)
}

async fn listening(place: &Place, words: &str, top: &str) -> Stage {
    let origin = ScriptedOrigin::start().await.expect("a port for the origin");
    let daemon = Daemon::start(&file(place, words, top, &origin)).expect("larder starts");
    origin.otherwise(Script::ok("Cache-Control: no-store\r\n", "here"));
    Stage { origin, daemon }
}

/// The response to `bytes`, a GET that ends its connection.
async fn ask(place: &Place, bytes: &[u8]) -> Reply {
    let mut stream = UnixStream::connect(place.file()).await.expect("a connection");
    stream.write_all(bytes).await.expect("sent");
    let mut received = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut received)).await;
    read.expect("in time").expect("an orderly end");
    match read_reply(&received, "GET", ConnectionEnd::Closed) {
        Some((ReplyOutcome::Complete(reply), _)) => reply,
        other => panic!("no whole answer but {other:?}"),
    }
}

fn closing(target: &str, fields: &str) -> Vec<u8> {
    request("GET", target, &format!("Connection: close\r\n{fields}"))
}

fn terminate(daemon: &Daemon) {
    let pid = Pid::from_raw(daemon.pid() as i32).expect("a process");
    kill_process(pid, Signal::TERM).expect("a signal");
}

#[tokio::test]
async fn requests_are_answered_and_the_file_is_gone_at_the_end() {
    let place = Place::new("unix");
    let mut stage = listening(&place, "", "").await;
    eventually("it says so", async || stage.daemon.log().contains("listening on unix:/")).await;
    let mode = fs::metadata(place.file()).expect("a socket").permissions().mode();
    assert_eq!(mode & 0o7777, 0o660);
    let large = "x".repeat(3 << 20);
    stage.origin.on("/large", Script::cacheable(&large));
    // Both cores accept from the one socket.
    for _ in 0..20 {
        assert_eq!(ask(&place, &closing("/page", "")).await.text(), "here");
        assert!(ask(&place, &closing("/large", "")).await.body == large.as_bytes());
    }
    assert_eq!(stage.origin.seen("/large"), 1);
    terminate(&stage.daemon);
    assert!(stage.daemon.wait().expect("it ends").success());
    assert!(!place.file().exists());
}

#[tokio::test]
async fn only_where_it_is_trusted_a_process_names_its_client() {
    let forged = "X-Forwarded-For: 198.51.100.1\r\nX-Forwarded-Proto: https\r\n";
    for (top, client, scheme) in [
        ("", "", "http"),
        ("trusted_proxies = [\"0.0.0.0/0\", \"::/0\"]", "", "http"),
        ("trusted_proxies = \"unix:\"", "198.51.100.1", "https"),
    ] {
        let place = Place::new("unix-trust");
        let stage = listening(&place, " mode=600", top).await;
        assert_eq!(ask(&place, &closing("/page", forged)).await.text(), "here");
        let sent = stage.sole_request("/page");
        assert_eq!(sent_field(&sent, "x-forwarded-for"), client, "{top}");
        assert_eq!(sent_field(&sent, "x-real-ip"), client, "{top}");
        assert_eq!(sent_field(&sent, "x-forwarded-proto"), scheme, "{top}");
    }
}

#[tokio::test]
async fn lists_of_addresses_have_processes_only_as_unix() {
    for (site, status) in [
        ("allow = [\"0.0.0.0/0\", \"::/0\"]", 403),
        ("allow = \"unix:\"", 200),
        ("deny = \"unix:\"", 403),
        ("deny = [\"0.0.0.0/0\", \"::/0\"]", 200),
    ] {
        let place = Place::new("unix-lists");
        let origin = ScriptedOrigin::start().await.expect("a port for the origin");
        let text = format!("{}{site}\n", file(&place, "", "", &origin));
        let _daemon = Daemon::start(&text).expect("larder starts");
        origin.otherwise(Script::ok("Cache-Control: no-store\r\n", "here"));
        assert_eq!(ask(&place, &closing("/page", "")).await.status, status, "{site}");
    }
}

#[tokio::test]
async fn the_proxy_protocol_names_clients_over_unix_sockets_too() {
    let place = Place::new("unix-proxy");
    let stage = listening(&place, " proxy", "trusted_proxies = \"unix:\"").await;
    let line = b"PROXY TCP4 192.0.2.1 198.51.100.2 4711 80\r\n";
    let bytes = [&line[..], &closing("/page", "")].concat();
    assert_eq!(ask(&place, &bytes).await.text(), "here");
    assert_eq!(sent_field(&stage.sole_request("/page"), "x-forwarded-for"), "192.0.2.1");
    drop(stage);

    // Without trust no client is admitted.
    let stage = listening(&place, " proxy", "trusted_proxies = \"127.0.0.1\"").await;
    let mut stream = UnixStream::connect(place.file()).await.expect("a connection");
    _ = stream.write_all(&bytes).await;
    let mut received = Vec::new();
    _ = stream.read_to_end(&mut received).await;
    assert_eq!(received, b"");
    stage.daemon.assert_metric("larder_proxy_refused_total", 1).await;
}

#[tokio::test]
async fn a_socket_left_behind_is_replaced_and_one_in_use_is_not() {
    let place = Place::new("unix-stale");
    drop(std::os::unix::net::UnixListener::bind(place.file()).expect("a socket"));
    let stage = listening(&place, "", "").await;
    assert_eq!(ask(&place, &closing("/page", "")).await.text(), "here");
    let text = file(&place, "", "", &stage.origin);
    let error = Daemon::start(&text).expect_err("the socket is in use").to_string();
    assert!(error.contains("another process listens on the socket"), "{error}");
    assert_eq!(ask(&place, &closing("/page", "")).await.text(), "here");

    // Another process's socket in its place stays.
    fs::remove_file(place.file()).expect("removed");
    let other = std::os::unix::net::UnixListener::bind(place.file()).expect("a socket");
    terminate(&stage.daemon);
    let mut daemon = stage.daemon;
    assert!(daemon.wait().expect("it ends").success());
    assert!(place.file().exists());
    drop(other);

    // So does a file that is no socket.
    fs::remove_file(place.file()).expect("removed");
    fs::write(place.file(), "precious").expect("a file");
    let error = Daemon::start(&text).expect_err("a file is there").to_string();
    assert!(error.contains("the file already exists"), "{error}");
    eventually("the file is untouched", async || {
        fs::read_to_string(place.file()).is_ok_and(|text| text == "precious")
    })
    .await;
}

#[tokio::test]
async fn a_file_in_the_place_of_the_admin_socket_is_left_alone() {
    let place = Place::new("admin-file");
    fs::write(place.file(), "precious").expect("a file");
    let config = place.file().with_file_name("larder.toml");
    let origin = ScriptedOrigin::start().await.expect("a port for the origin");
    fs::write(&config, Setup::default().file(&origin)).expect("a configuration");
    let errors = place.file().with_file_name("errors");
    let mut daemon = Command::new(binary().expect("a binary"))
        .args(["serve", "--config"])
        .arg(&config)
        .arg("--admin-socket")
        .arg(place.file())
        .stdout(Stdio::null())
        .stderr(fs::File::create(&errors).expect("a file"))
        .spawn()
        .expect("it starts");
    let said = async |what: &str| {
        eventually(what, async || {
            fs::read_to_string(&errors).is_ok_and(|said| said.contains(what))
        })
        .await;
    };
    said("is no socket, and is kept").await;
    // It serves nevertheless.
    said("listening on").await;
    daemon.kill().expect("a child");
    daemon.wait().expect("a child");
    assert_eq!(fs::read_to_string(place.file()).expect("it is there"), "precious");
}
