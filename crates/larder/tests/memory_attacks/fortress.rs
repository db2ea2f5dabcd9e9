//! A daemon of little memory, its origin, and what of them is judged.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use testkit::client::{Raw, request};
use testkit::h2::{Frame, PREFACE, Request};
use testkit::larder::Daemon;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Mutex, MutexGuard};
use tokio::task::JoinHandle;

use crate::support::{self, PATIENCE, eventually, whole};

/// Attacks take turns: each wants most of the machine.
static TURN: Mutex<()> = Mutex::const_new(());

/// What the daemon may take.
const MEMORY_MIB: u64 = 64;
/// Connections to the origin that its limit lets be.
const ORIGIN_CONNECTIONS: u64 = 1_000;
/// HTTP/2's SETTINGS_INITIAL_WINDOW_SIZE.
const WINDOW: u16 = 4;

/// An origin that answers as the target says: `/pass/...` is for one client and everything else may
/// be kept; `bytes=N` is the body's length.
#[derive(Default)]
struct Behaviour {
    open: AtomicU64,
    most: AtomicU64,
}

impl Behaviour {
    async fn serve(self: Arc<Self>, stream: TcpStream) -> io::Result<()> {
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
            let kept = if target.starts_with("/pass") { "no-store" } else { "max-age=600" };
            let head = format!(
                "HTTP/1.1 200 OK\r\nCache-Control: {kept}\r\nContent-Length: {length}\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).await?;
            let piece = vec![b'x'; 16 * 1024];
            let mut left = length;
            while left > 0 {
                let now = left.min(piece.len());
                stream.write_all(&piece[..now]).await?;
                left -= now;
            }
        }
    }
}

/// The daemon under attack.
pub(crate) struct Fortress {
    pub(crate) daemon: Daemon,
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
    /// With nothing but defaults, and a site of its own kind where `site` says so.
    pub(crate) async fn start() -> Self {
        Self::with(|origin| {
            format!(
                "[[origin]]\nname = \"app\"\nservers = \"http://{origin}\"\n\
                 [[site]]\nhost = \"*\"\norigin = \"app\"\n"
            )
        })
        .await
    }

    /// With the origins and sites that `sites` writes for an origin at an address.
    pub(crate) async fn with(sites: impl FnOnce(SocketAddr) -> String) -> Self {
        let turn = TURN.lock().await;
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
        let file = format!(
            "listen = \"127.0.0.1:0 h2c\"\nworkers = 2\n[memory]\nsize = \"{MEMORY_MIB}MiB\"\n{}",
            sites(address)
        );
        let daemon = Daemon::start(&file).expect("larder starts");
        let fortress = Self { daemon, origin, listening, asked: AtomicU64::new(0), _turn: turn };
        for _ in 0..3 {
            fortress.ask("/stored").await;
        }
        fortress
    }

    /// What another client gets.
    async fn ask(&self, target: &str) {
        let raw = Raw::connect(self.daemon.addr()).await.expect("a connection").patience(PATIENCE);
        let reply = whole(raw.exchange(&request("GET", target, "")).await, target);
        assert_eq!(reply.status, 200, "{target}: {}", reply.text());
    }

    /// Asserts that other clients are served, and memory and origin connections are within bounds.
    pub(crate) async fn stands(&self, when: &str) {
        for _ in 0..5 {
            let n = self.asked.fetch_add(1, Ordering::Relaxed);
            self.ask("/stored").await;
            self.ask(&format!("/new{n}")).await;
            self.ask(&format!("/pass/{n}")).await;
        }
        self.within_bounds(when);
    }

    /// Asserts that memory and origin connections are within bounds.
    pub(crate) fn within_bounds(&self, when: &str) {
        let (taken, most) = (self.private_bytes(), (MEMORY_MIB << 20) / 10 * 11);
        println!("{when}: {} KiB", taken / 1024);
        assert!(taken <= most, "{when}: {taken} bytes, {most} allowed");
        let connections = self.origin.most.load(Ordering::Relaxed);
        assert!(connections <= ORIGIN_CONNECTIONS, "{when}: {connections} origin connections");
    }

    /// Waits until the daemon holds nothing for clients and takes less than `bytes` of memory.
    pub(crate) async fn gives_back(&self, bytes: u64) {
        eventually("memory is given back", async || {
            let held = self.daemon.metric("larder_memory_held_bytes", "").await.expect("metrics");
            held == 0.0 && self.private_bytes() < bytes
        })
        .await;
    }

    /// Asserts that a limit was reached.
    pub(crate) async fn reached(&self, limit: &str) {
        let label = format!("limit=\"{limit}\"");
        let hits = self.daemon.metric("larder_limit_hits_total", &label).await.expect("metrics");
        assert!(hits > 0.0, "{limit} was reached");
    }

    /// Resident memory of the daemon without the pages of files, in bytes.
    fn private_bytes(&self) -> u64 {
        let file = format!("/proc/{}/status", self.daemon.pid());
        let status = std::fs::read_to_string(file).expect("the daemon's status");
        let of = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
            let kib = line.split_ascii_whitespace().next().and_then(|n| n.parse::<u64>().ok());
            kib.expect("a number") * 1024
        };
        of("RssAnon:") + of("RssShmem:")
    }

    /// A connection of HTTP/2 that opens a hundred streams, whose windows never open.
    pub(crate) async fn hundred(&self, mut block: impl FnMut(usize) -> Vec<u8>) -> TcpStream {
        let mut bytes = PREFACE.to_vec();
        bytes.extend(Frame::settings(&[(WINDOW, 0)]).bytes());
        for n in 0..100 {
            bytes.extend(Frame::headers(2 * n as u32 + 1, block(n), true).bytes());
        }
        let mut stream = TcpStream::connect(self.daemon.addr()).await.expect("a connection");
        // A connection that is told off reads no more of it.
        _ = stream.write_all(&bytes).await;
        stream
    }

    /// A connection of HTTP/1 that sends `bytes` and takes as little as there can be of an answer.
    pub(crate) async fn deaf(&self, bytes: &[u8]) -> TcpStream {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(2 * 1024).expect("a small buffer");
        let mut stream = socket.connect(self.daemon.addr()).await.expect("a connection");
        stream.write_all(bytes).await.expect("sent");
        stream
    }
}

/// The field block of a GET of `target`.
pub(crate) fn get(target: &str) -> Vec<u8> {
    Request::get(target).block().bytes().to_vec()
}
