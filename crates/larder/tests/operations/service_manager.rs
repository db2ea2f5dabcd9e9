//! Tests of messages to the service manager, and of sockets that it hands over.

use crate::support;

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use rustix::process::{Pid, Signal, kill_process};
use support::{PATIENCE, Setup, whole};
use testkit::client::{RawClient, request};
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};

/// A manager's end of the notification socket.
struct Manager {
    socket: UnixDatagram,
    folder: Option<std::path::PathBuf>,
    name: String,
}

impl Manager {
    /// In the abstract namespace.
    fn hidden(name: &str) -> Self {
        let name = format!("larder-{name}-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("an address");
        let socket = UnixDatagram::bind_addr(&address).expect("a socket");
        Self::new(socket, None, format!("@{name}"))
    }

    /// In the file system.
    fn filed(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("larder-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("notify");
        let socket = UnixDatagram::bind(&path).expect("a socket");
        Self::new(socket, Some(folder), path.display().to_string())
    }

    fn new(socket: UnixDatagram, folder: Option<std::path::PathBuf>, name: String) -> Self {
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Self { socket, folder, name }
    }

    /// The next message to it.
    fn told(&self) -> String {
        let mut bytes = [0; 1024];
        let length = self.socket.recv(&mut bytes).expect("a word in time");
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    /// Messages to the manager, up to one that begins with `beginning`.
    fn told_until(&self, beginning: &str) -> Vec<String> {
        let mut all = vec![self.told()];
        while !all.last().is_some_and(|last| last.starts_with(beginning)) {
            all.push(self.told());
        }
        all
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        _ = self.folder.as_ref().map(std::fs::remove_dir_all);
    }
}

fn send(daemon: &Daemon, signal: Signal) {
    let pid = Pid::from_raw(daemon.pid() as i32).expect("a process");
    kill_process(pid, signal).expect("a signal");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_manager_hears_of_start_reload_and_stop() {
    let origin = ScriptedOrigin::start().await.expect("a port for the origin");
    let text = Setup::default().file(&origin);
    for manager in [Manager::hidden("notify"), Manager::filed("notify")] {
        let environment = [("NOTIFY_SOCKET", manager.name.as_str())];
        let mut daemon = Daemon::start_in(&text, &environment).expect("larder starts");
        assert_eq!(manager.told(), "READY=1\nSTATUS=serving");

        send(&daemon, Signal::HUP);
        let reloading = manager.told();
        let usec = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").expect("a reload");
        assert!(usec.lines().next().is_some_and(|usec| usec.parse::<u64>().is_ok()), "{usec}");
        assert_eq!(manager.told(), "READY=1\nSTATUS=serving");

        std::fs::write(daemon.config_file(), "nonsense").expect("written");
        let refused = daemon.ask_admin("POST", "/reload").await.expect("an answer");
        assert_eq!(refused.status, 422);
        assert!(manager.told().starts_with("RELOADING=1\n"));
        assert!(manager.told().starts_with("READY=1\nSTATUS=serving; the last reload was refused"));

        send(&daemon, Signal::TERM);
        assert!(manager.told().starts_with("STOPPING=1\n"));
        assert!(daemon.wait().expect("it ends").success());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_manager_hears_which_process_is_the_main_one_and_of_no_stop() {
    let origin = ScriptedOrigin::start().await.expect("a port for the origin");
    let text = Setup::default().file(&origin);
    let manager = Manager::hidden("main");
    let environment = [
        ("NOTIFY_SOCKET", manager.name.as_str()),
        ("WATCHDOG_USEC", "100000"),
        ("WATCHDOG_PID", "1"),
    ];
    let mut daemon = Daemon::start_in(&text, &environment).expect("larder starts");
    let old = daemon.pid();
    let reply = daemon.upgrade(None).await.expect("an answer");
    assert_eq!(reply.status, 200, "{}", reply.text());
    let told = manager.told_until(&format!("MAINPID={}\n", daemon.pid()));
    support::eventually("the old process ends", async || !daemon.is_running(old)).await;
    // The watchdog that was the old process's is the new one's.
    let later = manager.told_until("WATCHDOG=1");
    assert!(!told.iter().chain(&later).any(|word| word.starts_with("STOPPING")), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_watchdog_is_fed_only_when_it_is_this_process_that_is_watched() {
    let origin = ScriptedOrigin::start().await.expect("a port for the origin");
    let text = Setup::default().file(&origin);
    let manager = Manager::hidden("watchdog");
    let watched = [("NOTIFY_SOCKET", manager.name.as_str()), ("WATCHDOG_USEC", "100000")];
    let daemon = Daemon::start_in(&text, &watched).expect("larder starts");
    for _ in 0..3 {
        manager.told_until("WATCHDOG=1");
    }
    drop(daemon);

    let other = Manager::hidden("no-watchdog");
    let watched = [
        ("NOTIFY_SOCKET", other.name.as_str()),
        ("WATCHDOG_USEC", "100000"),
        ("WATCHDOG_PID", "1"),
    ];
    let mut daemon = Daemon::start_in(&text, &watched).expect("larder starts");
    send(&daemon, Signal::TERM);
    let told = other.told_until("STOPPING=1");
    assert!(!told.iter().any(|word| word.starts_with("WATCHDOG")), "{told:?}");
    assert!(daemon.wait().expect("it ends").success());
}

/// A free port, found by listening on it.
fn free_port() -> std::net::SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address")
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets_that_were_handed_over_are_listened_on_by_name() {
    let activate = "/usr/bin/systemd-socket-activate";
    if !std::path::Path::new(activate).exists() {
        // There is no manager that hands sockets over.
        return;
    }
    let origin = ScriptedOrigin::start().await.expect("a port for the origin");
    origin.otherwise(Script::cacheable("page"));
    let (web, other) = (free_port(), free_port());
    let text = Setup::default().file(&origin).replacen("127.0.0.1:0", "fd:web", 1);
    let mut command = std::process::Command::new(activate);
    command.args(["-l", &web.to_string(), "-l", &other.to_string(), "--fdname=web:other"]);
    command.arg(testkit::larder::binary().expect("a binary"));
    // The first connection starts it, and is answered.
    let first = tokio::spawn(async move {
        let mut raw = None;
        while raw.is_none() {
            raw = RawClient::connect(web).await.ok();
            support::pause(20).await;
        }
        let raw = raw.expect("a connection").patience(PATIENCE);
        raw.exchange(&request("GET", "/page", "")).await
    });
    let daemon = tokio::task::spawn_blocking(move || Daemon::start_command(command, &text, &[]));
    let mut daemon = daemon.await.expect("no panic").expect("larder starts");
    assert_eq!(whole(first.await.expect("no panic"), "/page").text(), "page");
    assert_eq!(daemon.addr(), web);
    for _ in 0..20 {
        let mut raw = RawClient::connect(web).await.expect("a connection");
        assert_eq!(whole(raw.get("/page").await.expect("sent"), "/page").text(), "page");
    }
    assert_eq!(origin.seen("/page"), 1);
    daemon.assert_logged(&format!("the socket `other` ({other})")).await;
    send(&daemon, Signal::TERM);
    assert!(daemon.wait().expect("it ends").success());
}

#[tokio::test]
async fn a_socket_that_was_not_handed_over_is_named() {
    let origin = ScriptedOrigin::start().await.expect("a port for the origin");
    let text = Setup::default().file(&origin).replacen("127.0.0.1:0", "fd:web", 1);
    // Meant for another process.
    let environment = [("LISTEN_FDS", "1"), ("LISTEN_PID", "1"), ("LISTEN_FDNAMES", "web")];
    let error = Daemon::start_in(&text, &environment).expect_err("no socket").to_string();
    assert!(error.contains("no socket called `web` was handed over; none was"), "{error}");
}
