//! Tests of privileges: a daemon started by root gives them up once its ports are open, and still
//! reads what only root may: renewed keys, its configuration, logs.
//!
//! Only root can run these tests; for other users they print that and pass.

use crate::support;

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use support::fleet::Fleet;
use support::folder::Folder;
use support::tls::{Authority, Kind, certificate};
use support::{PATIENCE, eventually, whole};
use testkit::client::{RawClient, WriteSplit};
use testkit::larder::{Daemon, binary};
use testkit::origin::{Script, ScriptedOrigin};

/// The daemon's user; every system has it.
const USER: &str = "nobody";

fn is_root() -> bool {
    let is = geteuid().is_root();
    if !is {
        eprintln!("skipped: only root can start what becomes somebody else");
    }
    is
}

/// The number of a user and its group.
fn ids() -> (String, String) {
    let users = fs::read_to_string("/etc/passwd").expect("users");
    let row = users.lines().find(|row| row.starts_with(&format!("{USER}:"))).expect("nobody");
    let columns: Vec<_> = row.split(':').collect();
    (columns[2].to_owned(), columns[3].to_owned())
}

/// A row of a process's or thread's status.
fn row(status: &str, name: &str) -> Vec<String> {
    let row = status.lines().find_map(|row| row.strip_prefix(name)).expect("a row");
    row.trim_start_matches(':').split_whitespace().map(str::to_owned).collect()
}

/// Asserts that no thread of the daemon has more rights than the user.
fn assert_lowered(pid: u32) {
    let (uid, gid) = ids();
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("threads");
    let mut count = 0;
    for thread in threads {
        let file = thread.expect("an entry").path().join("status");
        // A thread may end meanwhile.
        let Ok(status) = fs::read_to_string(file) else { continue };
        count += 1;
        assert_eq!(row(&status, "Uid"), vec![uid.clone(); 4], "{status}");
        assert_eq!(row(&status, "Gid"), vec![gid.clone(); 4], "{status}");
        assert!(row(&status, "Groups").iter().all(|own| *own == gid), "{status}");
        assert_eq!(row(&status, "NoNewPrivs"), ["1"], "{status}");
        for set in ["CapEff", "CapPrm", "CapInh", "CapAmb"] {
            assert_eq!(row(&status, set), ["0000000000000000"], "{set}: {status}");
        }
    }
    assert!(count > 2, "cores and a helper");
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).expect("limits");
    let cores = limits.lines().find(|row| row.starts_with("Max core file size")).expect("a row");
    assert_eq!(cores.split_whitespace().nth(4), Some("0"), "{cores}");
    // Files of a process that cannot be dumped belong to root.
    let owner = fs::metadata(format!("/proc/{pid}/environ")).expect("a file").uid();
    assert_eq!(owner, 0);
}

/// Child processes of the daemon.
fn children(daemon: &Daemon) -> Vec<u32> {
    let is_child = |pid: &u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        !status.is_empty() && row(&status, "PPid") == [daemon.pid().to_string()]
    };
    let all = fs::read_dir("/proc").expect("processes").flatten();
    let all = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    all.filter(is_child).collect()
}

fn signal(daemon: &Daemon, signal: Signal) {
    let pid = Pid::from_raw(daemon.pid() as i32).expect("a process");
    kill_process(pid, signal).expect("a signal");
}

/// A daemon with an origin, whose key and log are in folders that only root can enter.
struct Scene {
    authority: Authority,
    origin: ScriptedOrigin,
    daemon: Daemon,
    log: PathBuf,
}

impl Scene {
    async fn start() -> Self {
        let authority = Authority::new();
        authority.sign("site", &["larder.test"], Kind::Elliptic);
        fs::set_permissions(&authority.folder, Permissions::from_mode(0o700)).expect("a mode");
        let log = authority.folder.join("access.log");
        let origin = ScriptedOrigin::start().await.expect("an origin");
        origin.on("/page", Script::cacheable("a page"));
        let daemon = Daemon::start(&config(&authority, &origin, "site")).expect("it starts");
        Self { authority, origin, daemon, log }
    }

    /// Certificate that clients get.
    async fn shown(&self) -> Vec<u8> {
        // A client without tickets, since a resumed session presents no certificate.
        let client = self.authority.client();
        client.connect(self.daemon.addrs()[1], "larder.test").await.shown()
    }

    async fn get(&self) {
        get(self.daemon.addr()).await;
    }
}

async fn get(at: SocketAddr) {
    let mut client = RawClient::connect(at).await.expect("connected").patience(PATIENCE);
    let reply = whole(client.get("/page").await.expect("sent"), "/page");
    assert_eq!((reply.status, reply.text().as_str()), (200, "a page"));
}

fn config(authority: &Authority, origin: &ScriptedOrigin, pair: &str) -> String {
    format!(
        "listen = [\"127.0.0.1:0\", \"127.0.0.1:0 tls\"]\nworkers = 2\naccess_log = \"{}\"\n\
         [run]\nuser = \"{USER}\"\n[tls]\n{}\n[[site]]\nhost = \"*\"\norigin = \"http://{}\"\n",
        authority.path("access.log"),
        authority.pair(pair).replace(", ", "\n"),
        origin.addr()
    )
}

fn lines(log: &Path) -> usize {
    fs::read_to_string(log).unwrap_or_default().lines().count()
}

#[tokio::test(flavor = "multi_thread")]
async fn root_is_given_up_and_renewed_keys_reloads_and_logs_go_on() {
    if !is_root() {
        return;
    }
    let mut scene = Scene::start().await;
    assert_lowered(scene.daemon.pid());
    scene.get().await;
    let of = |file: &str| certificate(&scene.authority.folder.join(file));
    assert_eq!(scene.shown().await, of("site.crt"));

    scene.authority.sign("site", &["larder.test"], Kind::Elliptic);
    let new = of("site.crt");
    eventually("the renewed certificate", async || scene.shown().await == new).await;

    // Another pair, in a file that only root can read.
    scene.authority.sign("next", &["larder.test"], Kind::Elliptic);
    let file = scene.daemon.config_file();
    fs::write(&file, config(&scene.authority, &scene.origin, "next")).expect("written");
    fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("a mode");
    let reply = scene.daemon.ask_admin("POST", "/reload").await.expect("an answer");
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(scene.shown().await, of("next.crt"));

    eventually("a line of the log", async || lines(&scene.log) == 1).await;
    fs::rename(&scene.log, scene.log.with_extension("1")).expect("moved");
    signal(&scene.daemon, Signal::USR1);
    eventually("a new log", async || scene.log.exists()).await;
    scene.get().await;
    eventually("a line of the new log", async || lines(&scene.log) == 1).await;
    assert_lowered(scene.daemon.pid());

    let socket = scene.daemon.admin_socket();
    assert!(socket.exists());
    signal(&scene.daemon, Signal::TERM);
    assert!(scene.daemon.wait().expect("it ends").success());
    eventually("no socket left", async || !socket.exists()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_process_has_the_keeper_and_no_other_rights_than_the_old_one() {
    if !is_root() {
        return;
    }
    let mut scene = Scene::start().await;
    let keepers = children(&scene.daemon);
    let reply = scene.daemon.upgrade(None).await.expect("an answer");
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_lowered(scene.daemon.pid());
    scene.authority.sign("site", &["larder.test"], Kind::Elliptic);
    let new = certificate(&scene.authority.folder.join("site.crt"));
    eventually("the renewed certificate", async || scene.shown().await == new).await;
    fs::rename(&scene.log, scene.log.with_extension("1")).expect("moved");
    signal(&scene.daemon, Signal::USR1);
    eventually("a new log", async || scene.log.exists()).await;
    let (socket, keeper) = (scene.daemon.admin_socket(), keepers[0]);
    signal(&scene.daemon, Signal::TERM);
    // It takes the socket away when the new process has ended.
    let line = format!("/proc/{keeper}/cmdline");
    let is_over = || fs::read(&line).unwrap_or_default().is_empty();
    eventually("the end of the keeper", async || is_over() && !socket.exists()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_process_stays_root_opens_only_what_is_named_and_ends_with_the_daemon() {
    if !is_root() {
        return;
    }
    let scene = Scene::start().await;
    let keepers = children(&scene.daemon);
    let [keeper] = keepers[..] else { panic!("{keepers:?}") };
    let status = || fs::read_to_string(format!("/proc/{keeper}/status")).unwrap_or_default();
    assert_eq!(row(&status(), "Uid"), vec!["0"; 4]);
    assert_eq!(row(&status(), "NoNewPrivs"), ["1"]);

    // A file that the daemon may not read is not opened by the keeper on request.
    let secret = scene.authority.folder.join("secret.vcl");
    fs::write(&secret, "vcl 4.1; backend b none;").expect("written");
    let plain = config(&scene.authority, &scene.origin, "site");
    let open = plain.replace("[run]", &format!("vcl = \"{}\"\n[run]", secret.display()));
    let open = open.lines().filter(|line| !line.starts_with("origin")).collect::<Vec<_>>();
    let file = scene.daemon.config_file();
    // In this order: between the two the file must never be one that only root can write.
    fs::set_permissions(&file, Permissions::from_mode(0o666)).expect("a mode");
    fs::write(&file, open.join("\n")).expect("written");
    let reply = scene.daemon.ask_admin("POST", "/reload").await.expect("an answer");
    assert_eq!(reply.status, 422);
    assert!(reply.text().contains("Permission denied"), "{}", reply.text());
    // A file that only root can have written is read.
    fs::set_permissions(&file, Permissions::from_mode(0o644)).expect("a mode");
    let reply = scene.daemon.ask_admin("POST", "/reload").await.expect("an answer");
    assert_eq!(reply.status, 200, "{}", reply.text());

    let pid = Pid::from_raw(keeper as i32).expect("a process");
    kill_process(pid, Signal::TERM).expect("a signal");
    fs::write(&file, &plain).expect("written");
    let reply = scene.daemon.ask_admin("POST", "/reload").await.expect("an answer");
    assert_eq!(reply.status, 200, "it outlives whoever ends all of a service: {}", reply.text());

    signal(&scene.daemon, Signal::KILL);
    let socket = scene.daemon.admin_socket();
    eventually("the end of the keeper", async || {
        let status = status();
        status.is_empty() || row(&status, "State").first().is_some_and(|state| state == "Z")
    })
    .await;
    assert!(!socket.exists());
}

/// A process that ends with its test.
struct Own(Child);

impl Drop for Own {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// A service manager that acts as systemd with the package's units: it starts the daemon as a user
/// who never was root, and a keeper for each connection.
struct Manager {
    authority: Authority,
    origin: ScriptedOrigin,
    folder: Folder,
    ids: (u32, u32),
    keepers: Arc<Mutex<Vec<Own>>>,
}

impl Manager {
    /// A manager with configuration, keys and log in folders or files that only root can open.
    async fn new() -> Self {
        let authority = Authority::new();
        authority.sign("site", &["larder.test"], Kind::Elliptic);
        fs::set_permissions(&authority.folder, Permissions::from_mode(0o700)).expect("a mode");
        let origin = ScriptedOrigin::start().await.expect("an origin");
        let folder = Folder::new();
        folder.file("larder.toml", config(&authority, &origin, "site"));
        let file = folder.path().join("larder.toml");
        fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("a mode");
        let (uid, gid) = ids();
        let ids = (uid.parse().expect("a number"), gid.parse().expect("a number"));
        let manager = Self { authority, origin, folder, ids, keepers: Arc::default() };
        fs::create_dir(manager.run()).expect("a folder");
        chown(manager.run(), Some(ids.0), Some(ids.1)).expect("given");
        manager
    }

    fn run(&self) -> PathBuf {
        self.folder.path().join("run")
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("keeper")
    }

    /// Listens for daemons.
    fn listen(&self) {
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let door = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None);
        let door = door.expect("a socket");
        let socket = self.socket();
        rustix::net::bind(&door, &SocketAddrUnix::new(&socket).expect("a path")).expect("bound");
        rustix::net::listen(&door, 8).expect("it listens");
        chown(&socket, Some(self.ids.0), Some(self.ids.1)).expect("given");
        fs::set_permissions(&socket, Permissions::from_mode(0o600)).expect("a mode");
        let (started, config) = (Arc::clone(&self.keepers), self.folder.path().join("larder.toml"));
        // It ends with the test.
        thread::spawn(move || {
            while let Ok(daemon) = rustix::net::accept_with(&door, SocketFlags::CLOEXEC) {
                let mut keeper = Command::new(binary().expect("a binary"));
                keeper.args(["keeper", "--config"]).arg(&config).stdin(daemon);
                started.lock().push(Own(keeper.spawn().expect("it starts")));
            }
        });
    }

    /// The command that starts the daemon.
    fn daemon(&self) -> Command {
        let (run, (uid, gid)) = (self.run(), self.ids);
        let mut command = Command::new(binary().expect("a binary"));
        command.arg("serve").arg("--config").arg(self.folder.path().join("larder.toml"));
        command.arg("--keeper").arg(self.socket());
        command.arg("--admin-socket").arg(run.join("admin.sock"));
        command.arg("--log-ring").arg(run.join("ring")).uid(uid).gid(gid).stderr(Stdio::piped());
        command
    }

    /// The certificate that clients get at `at`.
    async fn shown(&self, at: SocketAddr) -> Vec<u8> {
        self.authority.client().connect(at, "larder.test").await.shown()
    }

    /// The certificate that is in the file now.
    fn signed(&self) -> Vec<u8> {
        certificate(&self.authority.folder.join("site.crt"))
    }
}

/// The daemon's addresses, without and with TLS; and its lines so far.
fn listens(daemon: &mut Own) -> (SocketAddr, SocketAddr, Vec<String>) {
    let mut said = BufReader::new(daemon.0.stderr.take().expect("a pipe")).lines();
    let mut all: Vec<String> = Vec::new();
    let mut at = Vec::new();
    while at.len() < 2 {
        let line = said.next().unwrap_or_else(|| panic!("it ended: {all:?}")).expect("text");
        if let Some(address) = line.strip_prefix("larder: listening on ") {
            let address = address.strip_suffix(" (TLS)").unwrap_or(address);
            at.push(address.parse().expect("an address"));
        }
        all.push(line);
    }
    // It is read to the end, or its writes would fail.
    thread::spawn(move || said.for_each(drop));
    (at[0], at[1], all)
}

/// Waits until a process has ended; returns true if it succeeded.
async fn ends_well(process: Own) -> bool {
    let process = Mutex::new(process);
    let status = || process.lock().0.try_wait().expect("a child");
    eventually("the end of a process", async || status().is_some()).await;
    status().is_some_and(|status| status.success())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_never_was_root_has_a_keeper_behind_a_socket() {
    if !is_root() {
        return;
    }
    let manager = Manager::new().await;
    manager.origin.on("/page", Script::cacheable("a page"));
    manager.listen();
    let mut daemon = Own(manager.daemon().spawn().expect("it starts"));
    let (plain, tls, said) = listens(&mut daemon);
    // Neither about its keeper, nor about `[run]`, which names its user already.
    assert!(!said.iter().any(|line| line.contains("only root")), "{said:?}");
    assert_lowered(daemon.0.id());
    assert_eq!(manager.shown(tls).await, manager.signed());
    get(plain).await;
    let log = manager.authority.folder.join("access.log");
    eventually("a line of the log", async || lines(&log) == 1).await;

    // Another keeper starts when one is gone.
    drop(manager.keepers.lock().pop().expect("a keeper"));
    manager.authority.sign("site", &["larder.test"], Kind::Elliptic);
    let new = manager.signed();
    eventually("the renewed certificate", async || manager.shown(tls).await == new).await;

    let pid = Pid::from_raw(daemon.0.id() as i32).expect("a process");
    kill_process(pid, Signal::TERM).expect("told");
    assert!(ends_well(daemon).await);
    let last = manager.keepers.lock().pop().expect("a second keeper");
    assert!(ends_well(last).await, "it ends with the daemon");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_finds_no_keeper_says_where_and_how_there_is_one() {
    if !is_root() {
        return;
    }
    let manager = Manager::new().await;
    let file = manager.folder.path().join("larder.toml");
    fs::set_permissions(&file, Permissions::from_mode(0o644)).expect("a mode");
    let ended = manager.daemon().output().expect("it ends");
    assert!(!ended.status.success());
    let said = String::from_utf8_lossy(&ended.stderr);
    let socket = manager.socket().display().to_string();
    let refused = |line: &&str| line.contains("site.crt") && !line.contains("warning");
    let line = said.lines().find(refused).unwrap_or_else(|| panic!("{said}"));
    for part in ["Permission denied", "systemctl start larder-keeper.socket", socket.as_str()] {
        assert!(line.contains(part), "{part}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_daemon_leaves_the_admin_socket_of_the_first() {
    if !is_root() {
        return;
    }
    let first = Scene::start().await;
    let socket = first.daemon.admin_socket();
    let owner = || fs::metadata(&socket).map(|found| found.uid()).ok();
    let owned = owner();
    // A file of another user could be forged by that user.
    let folder = Folder::new();
    let mut command = Command::new(binary().expect("a binary"));
    command.args(["serve", "--origin", "http://127.0.0.1:1", "--listen", "127.0.0.1:0"]);
    command.args(["--user", "daemon", "--admin-socket"]).arg(&socket);
    command.arg("--log-ring").arg(folder.path().join("ring"));
    let mut second = command.stderr(Stdio::piped()).spawn().expect("it starts");
    let mut said = BufReader::new(second.stderr.take().expect("a pipe")).lines();
    let mut all = Vec::new();
    while !all.iter().any(|line: &String| line.starts_with("larder: listening")) {
        all.push(said.next().expect("it serves").expect("text"));
    }
    assert!(all[0].ends_with("another daemon answers there"), "{all:?}");
    assert_eq!(owner(), owned, "the socket is still its user's");
    let pid = Pid::from_raw(second.id() as i32).expect("a process");
    kill_process(pid, Signal::TERM).expect("told");
    assert!(second.wait().expect("it ends").success(), "{all:?}");
    // Its end of standard error closes with its keeper, the last process.
    assert!(said.all(|line| line.is_ok()));
    let reply = first.daemon.ask_admin("POST", "/reload").await.expect("an answer");
    assert_eq!(reply.status, 200, "{}", reply.text());
}

/// A port that only root may bind, free at the moment.
fn low_port() -> u16 {
    let is_free = |port: &u16| {
        let address = ("127.0.0.1", *port);
        std::net::TcpListener::bind(address).is_ok() && std::net::UdpSocket::bind(address).is_ok()
    };
    (600..1024).rev().find(is_free).expect("a free port")
}

#[tokio::test(flavor = "multi_thread")]
async fn low_ports_of_other_tools_are_open_before_root_is_given_up() {
    if !is_root() {
        return;
    }
    let origin = ScriptedOrigin::start().await.expect("an origin");
    let port = low_port();
    let folder = Folder::new();
    folder.file("token", "0123456789abcdef0123456789abcdef");
    let token = folder.path().join("token");
    fs::set_permissions(&token, Permissions::from_mode(0o600)).expect("a mode");
    let config = format!(
        "listen = \"127.0.0.1:0\"\nhealth = {{ listen = \"127.0.0.3:{port}\" }}\n\
         metrics = {{ listen = \"127.0.0.2:{port}\", token_file = \"{}\" }}\n\
         varnish_cli = {{ listen = \"127.0.0.1:{port}\", secret = \"none\" }}\n\
         htcp = {{ listen = \"127.0.0.1:{port}\", allow = \"127.0.0.1\" }}\n\
         [run]\nuser = \"{USER}\"\n[[site]]\nhost = \"*\"\norigin = \"http://{}\"\n",
        token.display(),
        origin.addr()
    );
    let daemon = Daemon::start(&config).expect("it starts");
    assert_lowered(daemon.pid());
    let ports = [("Varnish CLI", 1), ("HTCP", 1), ("metrics", 2), ("health", 3)];
    for (port_of, host) in ports {
        let line = format!("larder: {port_of} listening on 127.0.0.{host}:{port}");
        eventually("a port", async || daemon.log().contains(&line)).await;
    }
    std::net::TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    // A token that only root can read is also read at a reload.
    let reply = daemon.ask_admin("POST", "/reload").await.expect("an answer");
    assert_eq!(reply.status, 200, "{}", reply.text());
}

#[test]
fn varnishds_jail_means_it() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    folder.file("default.vcl", "vcl 4.1; backend b none;");
    let vcl = folder.path().join("default.vcl");
    fs::set_permissions(&vcl, Permissions::from_mode(0o600)).expect("a mode");
    let mut command = Command::new(binary().expect("a binary"));
    command.args(["serve", "-a", "127.0.0.1:0", "-T", "127.0.0.1:0", "-F", "-j"]);
    command.arg(format!("unix,user={USER}")).arg("-f").arg(vcl);
    command.arg("-n").arg(folder.path().join("work")).arg("-P").arg(folder.path().join("pid"));
    let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
    let mut said = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let mut all = Vec::new();
    while !all.iter().any(|line: &String| line.starts_with("larder: listening")) {
        all.push(said.next().expect("it serves").expect("text"));
    }
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).expect("a status");
    assert_eq!(row(&status, "Uid"), vec![ids().0; 4]);
    assert!(folder.path().join("pid").exists());
    kill_process(Pid::from_raw(child.id() as i32).expect("a process"), Signal::TERM).expect("told");
    assert!(child.wait().expect("it ends").success(), "{all:?}");
    // Its end of standard error closes with the last process.
    assert!(said.all(|line| line.is_ok()));
    assert!(!folder.path().join("pid").exists());
}

#[tokio::test]
async fn who_is_to_be_become_must_exist() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    folder.file("socket/none", "");
    let start = |more: &[&str]| {
        let socket = folder.path().join("socket/admin.sock");
        let mut command = Command::new(binary().expect("a binary"));
        command.args(["serve", "--admin-socket"]).arg(socket).args(more);
        let output = command.output().expect("it runs");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let plain = ["--origin", "http://127.0.0.1:1", "--listen", "127.0.0.1:0", "--user"];
    let (good, said) = start(&[&plain[..], &["no-such-user"]].concat());
    assert!(!good && said.contains("there is no user `no-such-user`"), "{said}");
    let varnishd = ["-b", "none", "-a", "127.0.0.1:0", "-j", "unix,user=no-such-user"];
    let (good, said) = start(&varnishd);
    assert!(!good && said.contains("there is no user `no-such-user`"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_all_nodes_share_is_kept_as_the_users_own_and_opens_nothing_of_roots() {
    if !is_root() {
        return;
    }
    let mut fleet = Fleet::start(1).await;
    fleet.nodes[0].end(Signal::TERM).await;
    fleet.nodes[0].begin_as(|own| format!("{own}[run]\nuser = \"{USER}\"\n"));
    assert_lowered(fleet.nodes[0].daemon().pid());
    fleet.all_know(1).await;
    // The keeper would open these if the node's own file named them.
    let authority = Authority::new();
    authority.sign("site", &["larder.test"], Kind::Elliptic);
    fs::set_permissions(&authority.folder, Permissions::from_mode(0o700)).expect("a mode");
    let of_root = format!("{}tls = {{ {} }}\n", fleet.marked("root"), authority.pair("site"));
    let (done, said) = fleet.roll_out(&of_root, &["--wait"]).await;
    assert!(!done && said.contains("Permission denied"), "{said}");
    let version = fleet.all_take(&fleet.marked("one")).await;
    let kept = fleet.folder.path().join("n1/configuration.json");
    let found = fs::metadata(&kept).expect("it is kept");
    assert_eq!((found.uid().to_string(), found.mode() & 0o777), (ids().0, 0o600));
    fleet.nats.kill();
    fleet.nodes[0].end(Signal::TERM).await;
    fleet.nodes[0].begin();
    assert_lowered(fleet.nodes[0].daemon().pid());
    assert_eq!(fleet.nodes[0].in_force().await, version);
    assert_eq!(fleet.nodes[0].mark().await, "one");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_user_larder_it_becomes_nobody_and_says_what_that_cannot_read() {
    let users = fs::read_to_string("/etc/passwd").expect("users");
    if !is_root() || users.lines().any(|row| row.starts_with("larder:")) {
        return;
    }
    let folder = Folder::new();
    folder.file("shut/index.html", "root's");
    folder.file("open/index.html", "everyone's");
    let path = |name: &str| folder.path().join(name).display().to_string();
    mode(folder.path(), 0o755);
    mode(Path::new(&path("shut")), 0o700);
    mode(Path::new(&path("open")), 0o755);
    let config = format!(
        "listen = \"127.0.0.1:0\"\nworkers = 2\n[run]\n\
         [[site]]\nhost = \"shut.test\"\nfiles = \"{}\"\n\
         [[site]]\nhost = \"*\"\nfiles = \"{}\"\n",
        path("shut"),
        path("open")
    );
    let daemon = Daemon::start(&config).expect("it starts");
    assert_lowered(daemon.pid());
    let barred = format!("nobody may not enter {}", path("shut"));
    let log = daemon.assert_logged(&barred).await;
    let said = |line: &&str| line.contains("there is no user `larder`: running as `nobody`");
    assert_eq!(log.lines().filter(said).count(), 1, "{log}");
    assert!(!log.contains(&format!("enter {}", path("open"))), "{log}");
    for (host, expected) in [("shut.test", 403), ("open.test", 200)] {
        let mut client =
            RawClient::connect(daemon.addr()).await.expect("connected").patience(PATIENCE);
        let asked = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes();
        client.send(&asked, WriteSplit::Whole).await.expect("sent");
        assert_eq!(whole(client.reply("GET").await, host).status, expected, "{host}");
    }
    let said = checked(&daemon.config_file(), 0);
    assert!(said.0 && said.1.contains(&barred), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn root_stays_where_the_file_says_so() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    let config = disked("root", &folder.path().join("disk"));
    let daemon = Daemon::start(&config).expect("it starts");
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.pid())).expect("a status");
    assert_eq!(row(&status, "Uid"), vec!["0"; 4]);
    daemon.assert_logged("larder: the daemon stays root, as `[run] user` says").await;
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
}

/// The owner and mode of `path`.
fn owned(path: &Path) -> (String, u32) {
    let found = fs::symlink_metadata(path).expect("it is there");
    (found.uid().to_string(), found.mode() & 0o7777)
}

/// A configuration of a daemon that switches to `user` and has a disk cache in `volume`.
fn disked(user: &str, volume: &Path) -> String {
    format!(
        "listen = \"127.0.0.1:0\"\nworkers = 2\n[run]\nuser = \"{user}\"\n\
         [disk]\npath = \"{}\"\nsize = \"256MiB\"\n\
         [[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:1\"\n",
        volume.display()
    )
}

/// A daemon with a disk cache in use, and a umask that excludes others.
async fn with_disk(config: &str) -> Daemon {
    let mut command = Command::new("sh");
    command.args(["-c", "umask 077; exec \"$0\" \"$@\""]).arg(binary().expect("a binary"));
    let daemon = Daemon::start_command(command, config, &[]).expect("it starts");
    assert_lowered(daemon.pid());
    let up = daemon.metric("larder_disk_volume_up", "").await.expect("a figure");
    assert_eq!(up as u64, 1, "{}", daemon.log());
    daemon
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_folder_is_made_and_given_away_also_one_with_a_store_of_another_user() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    let volume = folder.path().join("srv/cache/larder");
    let config = disked(USER, &volume);
    let mut daemon = with_disk(&config).await;
    for above in ["srv", "srv/cache"] {
        assert_eq!(owned(&folder.path().join(above)), ("0".to_owned(), 0o755), "{above}");
    }
    let given = |file: &str, mode| assert_eq!(owned(&volume.join(file)), (ids().0, mode), "{file}");
    given("", 0o700);
    given("superblock", 0o600);
    signal(&daemon, Signal::TERM);
    assert!(daemon.wait().expect("it ends").success());

    // As left by a daemon that stayed root.
    for file in fs::read_dir(&volume).expect("a folder").flatten() {
        chown(file.path(), Some(0), Some(0)).expect("given");
    }
    chown(&volume, Some(0), Some(0)).expect("given");
    let daemon = with_disk(&config).await;
    ["superblock", "data-0000", "lock"].iter().for_each(|file| given(file, 0o600));
    assert!(!daemon.log().contains("was not whole"), "{}", daemon.log());
}

#[tokio::test]
async fn a_disk_folder_with_other_things_stays_roots_and_the_start_names_user_and_remedy() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    folder.file("photos/summer.jpeg", "the sea");
    let photos = folder.path().join("photos");
    mode(&photos, 0o750);
    let config = disked(USER, &photos);
    let refused = Daemon::start(&config).expect_err("it does not start").to_string();
    folder.file("larder.toml", &config);
    let (good, said) = checked(&folder.path().join("larder.toml"), 0);
    assert!(!good, "{said}");
    let why = format!(
        "the disk cache in {}: there are files that are not a cache's, so it is not given to \
         {USER}",
        photos.display()
    );
    for said in [refused, said] {
        assert!(said.contains(&why) && said.contains("name an empty directory"), "{said}");
        assert!(said.contains("larder.toml:6:"), "{said}");
    }
    assert_eq!(owned(&photos), ("0".to_owned(), 0o750));
    assert_eq!(owned(&photos.join("summer.jpeg")).0, "0");
    assert_eq!(fs::read_dir(&photos).expect("a folder").count(), 1);
}

#[tokio::test]
async fn check_by_root_judges_a_disk_folder_by_what_a_start_would_do_with_it() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    let shut = folder.path().join("shut");
    for name in ["shut", "roots"] {
        fs::create_dir(folder.path().join(name)).expect("a folder");
        mode(&folder.path().join(name), 0o700);
    }
    let check = |volume: &Path| {
        let file = folder.path().join("larder.toml");
        fs::write(&file, disked(USER, volume)).expect("written");
        checked(&file, 0)
    };
    let missing = folder.path().join("not/yet/there");
    for volume in [&missing, &folder.path().join("roots")] {
        let (good, said) = check(volume);
        assert!(good, "{said}");
    }
    assert!(!folder.path().join("not").exists(), "a check makes nothing");
    assert_eq!(owned(&folder.path().join("roots")).0, "0", "nor gives it away");
    let (good, said) = check(&shut.join("larder"));
    let barred = format!("{USER} may not enter {}", shut.display());
    assert!(!good && said.contains(&barred), "{said}");
    folder.file("file", "");
    let (good, said) = check(&folder.path().join("file"));
    assert!(!good && said.contains("is not a directory"), "{said}");
}

/// `larder disk` by root, on the volume of another user's daemon.
#[tokio::test(flavor = "multi_thread")]
async fn root_looks_after_a_volume_that_is_another_users() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    let volume = folder.path().join("larder");
    let mut daemon = with_disk(&disked(USER, &volume)).await;
    signal(&daemon, Signal::TERM);
    assert!(daemon.wait().expect("it ends").success());
    fs::remove_file(volume.join("lock")).expect("gone");
    for order in [&["stat"][..], &["check"], &["empty", "--yes"]] {
        let mut command = Command::new(binary().expect("a binary"));
        let output = command.arg("disk").args(order).arg("--path").arg(&volume).output();
        let output = output.expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(owned(&volume.join("lock")), (ids().0, 0o600), "{order:?}");
    }
    assert_eq!(owned(&volume), (ids().0, 0o700));
}

/// The result of `larder check` by `user`, and its output.
fn checked(file: &Path, user: u32) -> (bool, String) {
    let mut command = Command::new(binary().expect("a binary"));
    let output = command.uid(user).gid(user).arg("check").arg(file).output().expect("it runs");
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[tokio::test]
async fn a_cache_directory_of_the_services_user_passes_any_users_check() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    let volume = folder.path().join("volume");
    fs::create_dir(&volume).expect("a folder");
    chown(&volume, Some(12_345), Some(12_345)).expect("given away");
    mode(&volume, 0o700);
    mode(folder.path(), 0o755);
    let file = folder.path().join("larder.toml");
    let check = |path: &Path, user: u32| {
        fs::write(&file, disked(USER, path)).expect("written");
        checked(&file, user)
    };
    let (good, said) = check(&volume, ids().0.parse().expect("a number"));
    assert!(good, "{said}");
    // A missing folder is reported to every user.
    let (good, said) = check(&volume.join("more"), ids().0.parse().expect("a number"));
    assert!(!good && said.contains("may not make it in"), "{said}");
}
