//! Tests of a second daemon on a first one's address: refused with the holder's name, unless it may
//! share.

use crate::support;

use std::fs::Permissions;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;

use rustix::process::{Pid, Signal, kill_process};
use socket2::{Domain, Socket, Type};
use support::console::{Ask, run};
use support::folder::Folder;
use support::{Setup, Stage, eventually};
use testkit::client::RawClient;
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};

/// The configuration of a daemon that listens on `listen`, one or several in quotes.
fn file_at(listen: &str, origin: &ScriptedOrigin) -> String {
    let listen = format!("listen = [{listen}]");
    Setup::default().file(origin).replacen("listen = \"127.0.0.1:0\"", &listen, 1)
}

/// The reason why a daemon on `listen` does not start.
fn refused(listen: &str, origin: &ScriptedOrigin) -> String {
    Daemon::start(&file_at(listen, origin)).expect_err("a refusal").to_string()
}

/// An address of this process alone, on every port.
fn own_address(port: u16) -> SocketAddr {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    (Ipv4Addr::new(127, 128 | high, middle, low), port).into()
}

async fn answer(at: SocketAddr) -> String {
    let mut raw = RawClient::connect(at).await.expect("a connection");
    support::whole(raw.get("/page").await.expect("sent"), "/page").text()
}

async fn stage_at(address: SocketAddr) -> Stage {
    let origin = ScriptedOrigin::start().await.expect("a port for the origin");
    origin.otherwise(Script::cacheable("page"));
    let text = file_at(&format!("\"{address}\""), &origin);
    Stage { origin, daemon: Daemon::start(&text).expect("larder starts") }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_daemon_is_rejected_with_the_name_of_the_first() {
    let stage = Stage::new().await;
    stage.origin.otherwise(Script::cacheable("page"));
    let addr = stage.daemon.addr();
    let file = stage.daemon.config_file();
    let who = format!("larder (pid {}, `serve --config {} ", stage.daemon.pid(), file.display());
    for listen in [addr, (Ipv4Addr::UNSPECIFIED, addr.port()).into()] {
        let said = refused(&format!("\"127.0.0.1:0\", \"{listen}\""), &stage.origin);
        for words in [
            &format!("cannot listen: {listen}: Address already in use"),
            &who,
            "listens there",
            "`larder reload` has that daemon read its configuration again",
            "--share-port",
        ] {
            assert!(said.contains(words), "{words}: {said}");
        }
        // It has neither bound nor logged anything else.
        assert!(!said.contains("listening on") && !said.contains("warning"), "{said}");
    }
    for _ in 0..20 {
        assert_eq!(answer(addr).await, "page");
    }
    stage.daemon.assert_metric("larder_requests_total", 20).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_daemon_that_shares_has_a_part_of_the_connections() {
    let mut stage = Stage::new().await;
    stage.origin.otherwise(Script::cacheable("page"));
    let addr = stage.daemon.addr();
    let text = file_at(&format!("\"{addr}\""), &stage.origin);
    let next = Daemon::start_with(&text, &["--share-port"]).expect("it shares");
    let answered = async |daemon: &Daemon| daemon.metric("larder_requests_total", "").await;
    eventually("both have answered", async || {
        assert_eq!(answer(addr).await, "page");
        let (old, new) = (answered(&stage.daemon).await, answered(&next).await);
        old.expect("metrics") > 0.0 && new.expect("metrics") > 0.0
    })
    .await;
    // A third daemon that does not share is refused by either.
    assert!(refused(&format!("\"{addr}\""), &stage.origin).contains("already in use"));
    let old = std::mem::replace(&mut stage.daemon, next);
    drop(old);
    assert_eq!(answer(addr).await, "page");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_daemons_that_start_at_once_one_serves() {
    let origin = ScriptedOrigin::start().await.expect("a port for the origin");
    origin.otherwise(Script::cacheable("page"));
    let address = own_address(8081);
    let text = file_at(&format!("\"{address}\""), &origin);
    let starts: Vec<_> = (0..4)
        .map(|_| {
            let text = text.clone();
            tokio::task::spawn_blocking(move || Daemon::start(&text))
        })
        .collect();
    let mut serving = Vec::new();
    for start in starts {
        match start.await.expect("no panic") {
            Ok(daemon) => serving.push(daemon),
            Err(refused) => {
                let said = refused.to_string();
                assert!(said.contains(&format!("cannot listen: {address}")), "{said}");
            }
        }
    }
    assert_eq!(serving.len(), 1);
    assert_eq!(answer(address).await, "page");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_was_killed_leaves_its_addresses_free() {
    let folder = Folder::new();
    let origin = ScriptedOrigin::start().await.expect("a port for the origin");
    origin.otherwise(Script::cacheable("page"));
    let address = own_address(8082);
    let socket = folder.path().join("web.sock");
    let text = file_at(&format!("\"{address}\", \"unix:{}\"", socket.display()), &origin);
    for _ in 0..2 {
        let mut daemon = Daemon::start(&text).expect("larder starts");
        // Connections that wait in the kernel for their timeout count, too.
        assert_eq!(answer(address).await, "page");
        let pid = Pid::from_raw(daemon.pid() as i32).expect("a process");
        kill_process(pid, Signal::KILL).expect("a signal");
        daemon.wait().expect("it ends");
        assert!(socket.exists());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unix_socket_has_one_daemon_and_it_is_named() {
    let folder = Folder::new();
    let socket = folder.path().join("web.sock");
    let origin = ScriptedOrigin::start().await.expect("a port for the origin");
    let listen = format!("\"127.0.0.1:0\", \"unix:{}\"", socket.display());
    let first = Daemon::start(&file_at(&listen, &origin)).expect("larder starts");
    for arguments in [&[][..], &["--share-port"]] {
        let second = Daemon::start_with(&file_at(&listen, &origin), arguments);
        let said = second.expect_err("a refusal").to_string();
        let who = format!("larder (pid {}, `serve --config ", first.pid());
        assert!(said.contains("cannot listen: unix:") && said.contains(&who), "{said}");
        assert!(!said.contains("--share-port"), "no way for a unix socket: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_program_that_would_share_is_named_and_may_be_joined() {
    let origin = ScriptedOrigin::start().await.expect("a port for the origin");
    let other = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    other.set_reuse_port(true).expect("an option");
    let any: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
    other.bind(&any.into()).and_then(|()| other.listen(1)).expect("a port");
    let other = TcpListener::from(other);
    let address = other.local_addr().expect("an address");
    let text = file_at(&format!("\"{address}\""), &origin);
    let said = Daemon::start(&text).expect_err("a refusal").to_string();
    let who = format!("(pid {}) listens there", std::process::id());
    assert!(said.contains(&who) && said.contains("which --share-port allows"), "{said}");
    assert!(!said.contains("larder reload"), "{said}");
    // A daemon without the option cannot be joined, and nothing is promised.
    assert!(Daemon::start_with(&text, &["--share-port"]).is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_may_have_an_address_and_all_of_its_port() {
    let origin = ScriptedOrigin::start().await.expect("a port for the origin");
    origin.otherwise(Script::cacheable("page"));
    // Below the ports that the kernel assigns, and apart from other runs of this test.
    let first = 20_000 + u16::try_from(std::process::id() % 10_000).expect("it is small");
    let free = |port: &u16| TcpListener::bind((Ipv4Addr::UNSPECIFIED, *port)).is_ok();
    let port = (first..first + 100).find(free).expect("a free port");
    let text = file_at(&format!("\"127.0.0.1:{port}\", \"0.0.0.0:{port}\""), &origin);
    let daemon = Daemon::start(&text).expect("larder starts");
    assert_eq!(daemon.addrs().len(), 2);
    for ip in [Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 0, 0, 2)] {
        assert_eq!(answer((ip, port).into()).await, "page");
        let said = refused(&format!("\"{ip}:{port}\""), &origin);
        assert!(said.contains(&format!("(pid {}, ", daemon.pid())), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_right_after_the_end_needs_no_sharing() {
    let address = own_address(8083);
    for _ in 0..3 {
        let mut stage = stage_at(address).await;
        assert_eq!(answer(address).await, "page");
        let pid = Pid::from_raw(stage.daemon.pid() as i32).expect("a process");
        kill_process(pid, Signal::TERM).expect("a signal");
        assert!(stage.daemon.wait().expect("it ends").success());
    }
}

/// Addresses of this process that are in use: admin, health, metrics, and HTCP.
struct Held {
    streams: Vec<TcpListener>,
    datagrams: UdpSocket,
}

impl Held {
    fn new() -> Self {
        let stream = |_| TcpListener::bind("127.0.0.1:0").expect("a port");
        let datagrams = UdpSocket::bind("127.0.0.1:0").expect("a port");
        Self { streams: (0..4).map(stream).collect(), datagrams }
    }

    /// In this order: admin, health, metrics, the CLI, and HTCP.
    fn addresses(&self) -> Vec<SocketAddr> {
        let streams = self.streams.iter().map(TcpListener::local_addr);
        let all = streams.chain([self.datagrams.local_addr()]);
        all.map(|address| address.expect("an address")).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ports_that_are_busy_are_tried_again_until_they_are_had() {
    let held = Held::new();
    let [admin, health, metrics, cli, htcp] = held.addresses()[..] else { panic!("five") };
    let folder = Folder::new();
    folder.file("token", "0123456789abcdef0123456789abcdef\n");
    let token = folder.path().join("token");
    std::fs::set_permissions(&token, Permissions::from_mode(0o600)).expect("its own file");
    let token = token.display();
    let top = format!(
        "admin = {{ listen = \"{admin}\" }}\n\
         health = {{ listen = \"{health}\" }}\n\
         metrics = {{ listen = \"{metrics}\", token_file = \"{token}\" }}\n\
         varnish_cli = {{ listen = \"{cli}\", secret = \"none\" }}\n\
         htcp = {{ listen = \"{htcp}\", allow = [\"127.0.0.1\"] }}\n"
    );
    let origin = ScriptedOrigin::start().await.expect("a port for the origin");
    let text = Setup { top: &top, ..Setup::default() }.file(&origin);
    let daemon = Daemon::start(&text).expect("it serves without them");
    let names = ["admin", "health", "metrics", "Varnish CLI", "HTCP"];
    let ports: Vec<_> = names.into_iter().zip(held.addresses()).collect();
    let ready = async || Ask::get("/readyz").send_locally(&daemon).await.text();
    let (said, told) = (daemon.log(), ready().await);
    assert!(told.starts_with("ready\n"), "{told}");
    let who = format!("(pid {}) listens there", std::process::id());
    for (name, at) in &ports {
        let lack = format!("{name} cannot listen on {at}: Address already in use (os error 98)");
        assert_eq!((said.matches(&lack).count(), told.matches(&lack).count()), (1, 1), "{said}");
        assert!(*name == "HTCP" || told.contains(&who), "{told}");
    }
    assert_eq!(daemon.metric("larder_ports_missing", "").await.expect("a metric"), 5.0);
    // A reload does not hide it.
    let (done, printed, _) = run(&daemon, &["reload"]).await;
    assert!(done && printed.contains(&format!("admin cannot listen on {admin}")), "{printed}");
    drop(held);
    for (name, at) in &ports {
        daemon.assert_logged(&format!("larder: {name} listening on {at}")).await;
    }
    assert_eq!(ready().await, "ready\n");
    assert_eq!(daemon.metric("larder_ports_missing", "").await.expect("a metric"), 0.0);
    let token = daemon.token("config").expect("a token");
    let ask = Ask::get("/api/v1/status").field("Authorization", &format!("Bearer {token}"));
    assert_eq!(ask.send_to(admin).await.status, 200);
    assert_eq!(Ask::get("/healthz").send_to(health).await.status, 200);
    assert_eq!(Ask::get("/metrics").send_to(metrics).await.status, 401);
    tokio::net::TcpStream::connect(cli).await.expect("it listens");
}
