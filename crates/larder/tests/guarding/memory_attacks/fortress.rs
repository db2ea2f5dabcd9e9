//! The fortress: a daemon with little memory, its origin, and the checks on them.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use testkit::client::{RawClient, request};
use testkit::h2::{Frame, PREFACE, Request};
use testkit::larder::Daemon;
use testkit::reply::ReplyOutcome;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Mutex, MutexGuard};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::texts;
use crate::support::folder::Folder;
use crate::support::{self, PATIENCE, eventually};

/// Attacks take turns: each needs most of the machine.
static TURN: Mutex<()> = Mutex::const_new(());

/// Memory that the daemon may take, in bytes.
const MEMORY: u64 = 64 << 20;
/// Bytes beside what the daemon stores and holds: its own data, and memory that the allocator
/// keeps.
const OWN: u64 = 24 << 20;
/// The limit of origin connections.
const ORIGIN_CONNECTIONS: u64 = 1_000;
/// The interval of memory readings.
const LOOK: Duration = Duration::from_millis(5);
/// Requests of a flood on one connection: fewer than the limit `keepalive_requests`.
const PER_CONNECTION: usize = 500;
/// Pause before a slow response, and between its pieces.
const SLOW: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(5);
/// Time until nothing of an attack is left. A client that has pipelined more than the limit is not
/// watched, so its request may wait until the origin's first-byte timeout (30 s).
const GIVEN_BACK: Duration = Duration::from_secs(90);
/// Addresses of the attacker and of other clients, as the proxy in front names them.
pub(crate) const ATTACKER: &str = "192.0.2.1";
pub(crate) const ATTACKS: &str = "X-Forwarded-For: 192.0.2.1\r\n";
const OTHERS: &str = "X-Forwarded-For: 198.51.100.7\r\n";
/// HTTP/2's SETTINGS_INITIAL_WINDOW_SIZE.
const WINDOW: u16 = 4;

/// An origin that answers as the target says: `/pass/...` is for one client and everything else may
/// be stored; `/slow/...` is slow, `/never/...` never answers; `bytes=N` is the body's length.
/// `/tunnel/...` becomes one, which sends bytes without end except `/tunnel/idle`; `/refused/...`
/// is a 401. Text is as [`texts::answer`] makes it.
#[derive(Default)]
struct Behaviour {
    open: AtomicU64,
    most: AtomicU64,
}

impl Behaviour {
    async fn serve(self: Arc<Self>, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let now = self.open.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(now, Ordering::Relaxed);
        let served = self.answer_all(stream).await;
        self.open.fetch_sub(1, Ordering::Relaxed);
        served
    }

    async fn answer_all(&self, stream: TcpStream) -> io::Result<()> {
        let mut stream = BufReader::new(stream);
        loop {
            let mut first = String::new();
            if stream.read_line(&mut first).await? == 0 {
                return Ok(());
            }
            let mut line = String::new();
            while line != "\r\n" {
                line.clear();
                stream.read_line(&mut line).await?;
            }
            let target = first.split(' ').nth(1).unwrap_or_default();
            let length = target.split_once("bytes=").and_then(|(_, n)| n.parse().ok());
            let length: usize = length.unwrap_or(1_000);
            if let Some(answer) = texts::answer(target, length) {
                stream.write_all(&answer).await?;
                continue;
            }
            let status = if target.starts_with("/refused") { "401 Unauthorized" } else { "200 OK" };
            let kept = if target.starts_with("/pass") { "no-store" } else { "max-age=600" };
            let head = format!(
                "HTTP/1.1 {status}\r\nCache-Control: {kept}\r\nContent-Length: {length}\r\n\r\n"
            );
            if target.starts_with("/never") {
                std::future::pending::<()>().await;
            }
            if target.starts_with("/tunnel") {
                let head = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
                            Upgrade: websocket\r\n\
                            Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
                stream.write_all(head.as_bytes()).await?;
                if target == "/tunnel/idle" {
                    std::future::pending::<()>().await;
                }
                loop {
                    stream.write_all(&[b'x'; 16 * 1024]).await?;
                }
            }
            let is_slow = target.starts_with("/slow");
            if is_slow {
                sleep(SLOW).await;
            }
            stream.write_all(head.as_bytes()).await?;
            let piece = vec![b'x'; 16 * 1024];
            let mut left = length;
            while left > 0 {
                let now = left.min(piece.len());
                stream.write_all(&piece[..now]).await?;
                left -= now;
                if is_slow {
                    sleep(PAUSE).await;
                }
            }
        }
    }
}

/// The daemon under attack.
pub(crate) struct Fortress {
    pub(crate) daemon: Daemon,
    /// The daemon's control group, if it has one.
    _container: Option<Container>,
    /// The ceiling of the daemon's memory, and the largest reading.
    memory: u64,
    taken: Arc<AtomicU64>,
    origin: Arc<Behaviour>,
    listening: JoinHandle<()>,
    asked: AtomicU64,
    _turn: MutexGuard<'static, ()>,
}

impl Drop for Fortress {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Fortress {
    /// Starts a daemon with mostly defaults.
    pub(crate) async fn start() -> Self {
        Self::with(site).await
    }

    /// Starts a daemon with the origins and sites that `sites` writes for an origin at an address.
    pub(crate) async fn with(sites: impl FnOnce(SocketAddr) -> String) -> Self {
        Self::listening("", sites).await
    }

    /// Starts a daemon with one more listener.
    pub(crate) async fn listening(
        listener: &str,
        sites: impl FnOnce(SocketAddr) -> String,
    ) -> Self {
        let turn = TURN.lock().await;
        Self::built(turn, listener, sites, Room::Bytes(MEMORY)).await
    }

    /// Starts a daemon with a site that has a VCL, in which `PORT` is the origin's.
    pub(crate) async fn of_program(program: &str) -> Self {
        let folder = Folder::new();
        let sites = |origin: SocketAddr| {
            folder.file("site.vcl", program.replace("PORT", &origin.port().to_string()));
            let path = folder.path().join("site.vcl");
            format!("[[site]]\nhost = \"*\"\nvcl = \"{}\"\n", path.display())
        };
        Self::with(sites).await
    }

    /// Starts a daemon with a share of a container of `container` bytes; `None` without containers.
    pub(crate) async fn contained(container: u64) -> Option<Self> {
        let turn = TURN.lock().await;
        let room = Room::Of(Container::new(container)?);
        let mut fortress = Self::built(turn, "", site, room).await;
        // A tenth more is for the kernel.
        fortress.memory = container / 11 * 10;
        Some(fortress)
    }

    async fn built(
        turn: MutexGuard<'static, ()>,
        more: &str,
        sites: impl FnOnce(SocketAddr) -> String,
        room: Room,
    ) -> Self {
        support::raise_descriptors();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let origin = Arc::<Behaviour>::default();
        let serving = Arc::clone(&origin);
        let listening = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(Arc::clone(&serving).serve(stream));
            }
        });
        let binary = testkit::larder::binary().expect("a binary");
        let (size, memory, command, container) = match room {
            Room::Bytes(bytes) => {
                (format!("{}MiB", bytes >> 20), bytes, Command::new(binary), None)
            }
            Room::Of(container) => {
                ("auto".to_owned(), MEMORY, container.command(&binary), Some(container))
            }
        };
        let file = format!(
            "listen = [\"127.0.0.1:0 h2c\", {more}]\nworkers = 2\ntrusted_proxies = \"127.0.0.1\"\n\
             [memory]\nsize = \"{size}\"\n{}",
            sites(address)
        );
        let daemon = Daemon::start_command(command, &file, &[]).expect("larder starts");
        let (taken, asked) = (watch(daemon.pid()), AtomicU64::new(0));
        let (_container, _turn) = (container, turn);
        let fortress = Self { daemon, _container, memory, taken, origin, listening, asked, _turn };
        for _ in 0..3 {
            fortress.ask("/stored").await;
        }
        fortress
    }

    /// Asserts that the request of another client is answered with 200.
    pub(crate) async fn ask(&self, target: &str) {
        let raw =
            RawClient::connect(self.daemon.addr()).await.expect("a connection").patience(PATIENCE);
        let asked = Instant::now();
        let seen = raw.exchange(&request("GET", target, OTHERS)).await;
        if !matches!(&seen, ReplyOutcome::Complete(reply) if reply.status == 200) {
            let counters = self.counters().await;
            panic!("{target}: {seen:?} after {:?}\n{counters}", asked.elapsed());
        }
    }

    /// The counters that explain a refusal.
    async fn counters(&self) -> String {
        let metrics = self.daemon.metrics().await.expect("metrics");
        let of_interest = |line: &&str| {
            let names = ["larder_memory", "larder_limit", "larder_connections"];
            names.iter().any(|name| line.starts_with(name)) && !line.ends_with(" 0")
        };
        metrics.lines().filter(of_interest).collect::<Vec<_>>().join("\n")
    }

    /// Asserts that other clients are served, and that memory and origin connections are bounded.
    pub(crate) async fn stands(&self, when: &str) {
        for _ in 0..5 {
            let n = self.asked.fetch_add(1, Ordering::Relaxed);
            self.ask("/stored").await;
            self.ask(&format!("/new{n}")).await;
            self.ask(&format!("/pass/{n}")).await;
        }
        self.within_bounds(when);
    }

    /// Asserts that memory and origin connections are bounded.
    pub(crate) fn within_bounds(&self, when: &str) {
        let now = self.private_bytes();
        let (taken, most) = (self.taken.load(Ordering::Relaxed), self.memory / 10 * 11);
        println!("{when}: {} KiB, {} at most", now / 1024, taken / 1024);
        assert!(taken <= most, "{when}: {taken} bytes, {most} allowed");
        let connections = self.origin.most.load(Ordering::Relaxed);
        assert!(connections <= ORIGIN_CONNECTIONS, "{when}: {connections} origin connections");
    }

    /// Ends the attackers' connections, and waits until nothing of the attack is left.
    pub(crate) async fn recovers_from(&self, attackers: Vec<TcpStream>) {
        drop(attackers);
        self.gives_back().await;
        self.stands("afterwards").await;
    }

    /// Waits until the daemon holds this many bytes for clients besides their connections.
    pub(crate) async fn holds(&self, what: &str, bytes: RangeInclusive<f64>) {
        eventually(what, async || {
            let of = async |name| self.daemon.metric(name, "").await.expect("metrics");
            let open = of("larder_memory_connections_bytes").await;
            bytes.contains(&(of("larder_memory_held_bytes").await - open))
        })
        .await;
    }

    /// Waits until the daemon holds nothing for clients, and has little more memory than it stores.
    pub(crate) async fn gives_back(&self) {
        let of = async |name| self.daemon.metric(name, "").await.expect("metrics");
        let started = Instant::now();
        loop {
            let (held, stored) =
                (of("larder_memory_held_bytes").await, of("larder_memory_bytes").await);
            let taken = self.private_bytes();
            if held == 0.0 && taken < stored as u64 + OWN {
                return;
            }
            let figures = format!("{held} bytes held, {stored} stored, {taken} taken");
            assert!(started.elapsed() < GIVEN_BACK, "memory is not given back: {figures}");
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Sends `count` requests of one kind, and reads each response.
    pub(crate) async fn flood(&self, count: usize, target: impl Fn(usize) -> String) {
        for from in (0..count).step_by(PER_CONNECTION) {
            let to = count.min(from + PER_CONNECTION);
            let ask = |n| {
                let last = if n + 1 == to { "Connection: close\r\n" } else { "" };
                request("GET", &target(n), last)
            };
            let bytes: Vec<u8> = (from..to).flat_map(ask).collect();
            let mut stream = TcpStream::connect(self.daemon.addr()).await.expect("a connection");
            let (mut read, mut write) = stream.split();
            let mut taken = vec![0; 64 * 1024];
            let take = async { while read.read(&mut taken).await.expect("an answer") > 0 {} };
            let (sent, ()) = tokio::join!(write.write_all(&bytes), take);
            sent.expect("sent");
        }
    }

    /// Asserts that a limit was reached.
    pub(crate) async fn reached(&self, limit: &str) {
        let label = format!("limit=\"{limit}\"");
        let hits = async || self.daemon.metric("larder_limit_hits_total", &label).await;
        eventually(limit, async || hits().await.expect("metrics") > 0.0).await;
    }

    /// Memory of the daemon, in bytes.
    fn private_bytes(&self) -> u64 {
        private_bytes(self.daemon.pid()).expect("the daemon's status")
    }

    /// A figure of the daemon.
    pub(crate) async fn figure(&self, name: &str) -> f64 {
        self.daemon.metric(name, "").await.expect("metrics")
    }

    /// A connection of HTTP/2 with a hundred streams, whose windows never open.
    pub(crate) async fn hundred(&self, block: impl FnMut(usize) -> Vec<u8>) -> TcpStream {
        self.hundred_of(0, block).await
    }

    /// A connection of HTTP/2 with a hundred streams with windows of `window` bytes, which it never
    /// extends.
    pub(crate) async fn hundred_of(
        &self,
        window: u32,
        mut block: impl FnMut(usize) -> Vec<u8>,
    ) -> TcpStream {
        let mut bytes = opens(window);
        for n in 0..100 {
            bytes.extend(Frame::headers(2 * n as u32 + 1, block(n), true).bytes());
        }
        let mut stream = TcpStream::connect(self.daemon.addr()).await.expect("a connection");
        // A connection that was refused is not read any more.
        _ = stream.write_all(&bytes).await;
        stream
    }

    /// The bytes of an HTTP/2 client that opens `count` streams, a hundred at a time as they end.
    /// The client's windows are open.
    pub(crate) fn eager(&self, count: u32, block: impl Fn() -> Vec<u8>) -> Vec<u8> {
        let mut bytes = opens(1 << 30);
        bytes.extend(Frame::window_update(0, 1 << 30).bytes());
        for n in 0..count {
            bytes.extend(Frame::headers(2 * n + 1, block(), true).bytes());
        }
        bytes
    }

    /// A connection of HTTP/1 that sends `bytes` and reads as little as possible of a response.
    pub(crate) async fn deaf(&self, bytes: &[u8]) -> TcpStream {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(2 * 1024).expect("a small buffer");
        let mut stream = socket.connect(self.daemon.addr()).await.expect("a connection");
        stream.write_all(bytes).await.expect("sent");
        stream
    }
}

/// The configuration of an origin at an address, with one site.
pub(crate) fn site(origin: SocketAddr) -> String {
    format!(
        "[[origin]]\nname = \"app\"\nservers = \"http://{origin}\"\nconnect_timeout = \"30s\"\n\
         [[site]]\nhost = \"*\"\norigin = \"app\"\n"
    )
}

/// Memory of a daemon.
enum Room {
    /// A number of bytes, by its settings.
    Bytes(u64),
    /// A share of the container's memory.
    Of(Container),
}

/// A control group with bounded memory. Only a daemon is put into it: this process runs other
/// tests.
struct Container {
    group: PathBuf,
}

impl Container {
    fn new(bytes: u64) -> Option<Self> {
        let mounted = Path::new("/sys/fs/cgroup");
        // Version 1 has a hierarchy for memory; version 2 has a single one.
        let (hierarchy, limit) = match mounted.join("memory").is_dir() {
            true => (mounted.join("memory"), "memory.limit_in_bytes"),
            false => (mounted.to_owned(), "memory.max"),
        };
        let group = hierarchy.join(format!("larder-{}", std::process::id()));
        fs::create_dir(&group).ok()?;
        let container = Self { group };
        fs::write(container.group.join(limit), bytes.to_string()).ok().map(|()| container)
    }

    /// A command that runs `program`, with the arguments that follow, inside.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]);
        command.arg(self.group.join("cgroup.procs")).arg(program);
        command
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // The daemon has ended: it is empty.
        _ = fs::remove_dir(&self.group);
    }
}

/// Resident memory of a process without the pages of files, in bytes.
fn private_bytes(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_ascii_whitespace().next()?.parse::<u64>().ok()
    };
    Some((of("RssAnon:")? + of("RssShmem:")?) * 1024)
}

/// Records the largest memory of a process, until the result is dropped.
fn watch(pid: u32) -> Arc<AtomicU64> {
    let most = Arc::new(AtomicU64::new(0));
    let weak = Arc::downgrade(&most);
    std::thread::spawn(move || {
        while let (Some(most), Some(taken)) = (weak.upgrade(), private_bytes(pid)) {
            most.fetch_max(taken, Ordering::Relaxed);
            std::thread::sleep(LOOK);
        }
    });
    most
}

/// The preface of an HTTP/2 client whose streams have windows of `window` bytes.
pub(crate) fn opens(window: u32) -> Vec<u8> {
    [PREFACE.to_vec(), Frame::settings(&[(WINDOW, window)]).bytes()].concat()
}

/// The field block of a GET of `target`.
pub(crate) fn get(target: &str) -> Vec<u8> {
    Request::get(target).set("x-forwarded-for", ATTACKER).block().bytes().to_vec()
}
