//! Load on a daemon: clients of every kind. Each fails the test at the first response that is not
//! whole and right.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use testkit::client::{RawClient, WriteSplit, request};
use testkit::h2::Client as H2Client;
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};
use testkit::reply::Reply;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::{ask, closes};
use crate::support::tls::{Authority, Client as TlsClient, Kind};
use crate::support::{PATIENCE, pattern, pause, whole};

/// Bytes of a download and of an upload.
const LARGE: usize = 256 << 10;
/// Pieces that they come in, with a pause after each.
const PIECES: usize = 16;
const PAUSE_MS: u64 = 10;

/// A daemon with a plain listener and one with TLS, an origin, and a server of WebSockets.
pub(super) struct Scene {
    pub(super) daemon: Daemon,
    _origin: ScriptedOrigin,
    authority: Authority,
    config: String,
    _chat: JoinHandle<()>,
}

impl Scene {
    pub(super) async fn start() -> Self {
        let authority = Authority::new();
        authority.sign("site", &["larder.test"], Kind::Elliptic);
        let origin = ScriptedOrigin::start().await.expect("a port for the origin");
        origin.on("/page", Script::cacheable("page"));
        let large = String::from_utf8(pattern(LARGE)).expect("letters");
        origin.on("/large", Script::cacheable(&large));
        origin.on("/upload", Script::ok("Cache-Control: no-store\r\n", "taken"));
        let miss = "Cache-Control: no-store\r\n";
        origin.otherwise(Script::ok(miss, "missed"));
        let (chat_addr, chat) = serve_chat().await;
        let config = format!(
            "listen = [\"127.0.0.1:0 h2c\", \"127.0.0.1:0 tls\"]\nworkers = 2\n\
             [tls]\n{}\n[[site]]\nhost = \"chat.test\"\norigin = \"http://{chat_addr}\"\n\
             [[site]]\nhost = \"*\"\norigin = \"http://{}\"\n",
            authority.pair("site").replace(", ", "\n"),
            origin.addr()
        );
        let daemon = Daemon::start(&config).expect("larder starts");
        Self { daemon, _origin: origin, authority, config, _chat: chat }
    }

    /// Sets the number of cores of the next process.
    pub(super) fn set_workers(&self, workers: usize) {
        let text = self.config.replacen("workers = 2", &format!("workers = {workers}"), 1);
        std::fs::write(self.daemon.config_file(), text).expect("written");
    }
}

/// A server that agrees to every WebSocket, and sends back what it gets.
async fn serve_chat() -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let serving = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let Ok(byte) = stream.read_u8().await else { return };
                    head.push(byte);
                }
                let agreed = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
                              Connection: Upgrade\r\n\
                              Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
                _ = stream.write_all(agreed.as_bytes()).await;
                let (mut incoming, mut outgoing) = stream.split();
                _ = tokio::io::copy(&mut incoming, &mut outgoing).await;
            });
        }
    });
    (address, serving)
}

/// State that the clients share.
struct Shared {
    plain: SocketAddr,
    secure: SocketAddr,
    tls: TlsClient,
    is_over: AtomicBool,
}

impl Shared {
    fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
    }

    async fn connect(&self) -> RawClient {
        RawClient::connect(self.plain).await.expect("a connection").patience(PATIENCE)
    }
}

/// The clients of one kind.
struct ClientKind {
    name: &'static str,
    served: Arc<AtomicU64>,
    work: JoinHandle<()>,
}

/// Clients of every kind, until they are ended.
pub(super) struct Load {
    shared: Arc<Shared>,
    kinds: Vec<ClientKind>,
}

impl Load {
    pub(super) fn begin(scene: &Scene) -> Self {
        let addrs = scene.daemon.addrs();
        let shared = Arc::new(Shared {
            plain: addrs[0],
            secure: addrs[1],
            tls: scene.authority.client(),
            is_over: AtomicBool::new(false),
        });
        let mut load = Self { shared, kinds: Vec::new() };
        load.add("new connections", new_connections);
        load.add("kept connections", kept_connections);
        load.add("misses", misses);
        load.add("HTTP/2", second_version);
        load.add("TLS", tls);
        load.add("downloads", downloads);
        load.add("uploads", uploads);
        load.add("WebSockets", websockets);
        load
    }

    fn add<F>(&mut self, name: &'static str, client: fn(Arc<Shared>, Arc<AtomicU64>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let served = Arc::new(AtomicU64::new(0));
        let work = tokio::spawn(client(Arc::clone(&self.shared), Arc::clone(&served)));
        self.kinds.push(ClientKind { name, served, work });
    }

    /// The number of responses so far, kind by kind.
    pub(super) fn counts(&self) -> Vec<u64> {
        for kind in &self.kinds {
            assert!(!kind.work.is_finished(), "{} have failed", kind.name);
        }
        self.kinds.iter().map(|kind| kind.served.load(Ordering::Relaxed)).collect()
    }

    /// Ends the clients.
    ///
    /// # Panics
    /// If one has failed.
    pub(super) async fn end(self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        for kind in self.kinds {
            kind.work.await.unwrap_or_else(|error| panic!("{}: {error}", kind.name));
        }
    }
}

fn is(reply: &Reply, text: &str) {
    assert_eq!((reply.status, reply.text().as_str()), (200, text));
}

fn count(served: &AtomicU64) {
    served.fetch_add(1, Ordering::Relaxed);
}

async fn new_connections(shared: Arc<Shared>, served: Arc<AtomicU64>) {
    while shared.goes_on() {
        is(&ask(&mut shared.connect().await, "/page").await, "page");
        count(&served);
    }
}

async fn kept_connections(shared: Arc<Shared>, served: Arc<AtomicU64>) {
    while shared.goes_on() {
        let mut raw = shared.connect().await;
        while shared.goes_on() {
            let reply = ask(&mut raw, "/page").await;
            is(&reply, "page");
            count(&served);
            if closes(&reply) {
                break;
            }
        }
    }
}

async fn misses(shared: Arc<Shared>, served: Arc<AtomicU64>) {
    let mut number = 0;
    while shared.goes_on() {
        number += 1;
        let mut raw = shared.connect().await;
        is(&ask(&mut raw, &format!("/miss/{number}")).await, "missed");
        count(&served);
    }
}

async fn second_version(shared: Arc<Shared>, served: Arc<AtomicU64>) {
    while shared.goes_on() {
        let client = H2Client::connect(shared.plain).await.expect("a connection");
        let mut client = client.patience(PATIENCE);
        client.greet(&[]).await.expect("a greeting is taken");
        while shared.goes_on() && client.judge().goaways().is_empty() {
            assert_eq!(client.get("/page").await.answer("/page").text(), "page");
            count(&served);
        }
    }
}

async fn tls(shared: Arc<Shared>, served: Arc<AtomicU64>) {
    while shared.goes_on() {
        is(&shared.tls.get(shared.secure, "larder.test", "/page").await, "page");
        count(&served);
    }
}

/// A client that reads slowly.
async fn downloads(shared: Arc<Shared>, served: Arc<AtomicU64>) {
    while shared.goes_on() {
        let mut stream = TcpStream::connect(shared.plain).await.expect("a connection");
        let asked = "GET /large HTTP/1.1\r\nHost: larder.test\r\nConnection: close\r\n\r\n";
        stream.write_all(asked.as_bytes()).await.expect("sent");
        let mut received = Vec::new();
        while stream.read_buf(&mut received).await.expect("no reset") > 0 {
            if received.len() < LARGE {
                pause(PAUSE_MS / 2).await;
            }
        }
        assert!(received.starts_with(b"HTTP/1.1 200 "), "a head");
        assert!(received.ends_with(&pattern(LARGE)), "{} bytes", received.len());
        count(&served);
    }
}

async fn uploads(shared: Arc<Shared>, served: Arc<AtomicU64>) {
    let body = pattern(LARGE);
    while shared.goes_on() {
        let mut raw = shared.connect().await;
        let fields = format!("Content-Length: {LARGE}\r\n");
        raw.send(&request("POST", "/upload", &fields), WriteSplit::Whole).await.expect("sent");
        for piece in body.chunks(LARGE / PIECES) {
            raw.send(piece, WriteSplit::Whole).await.expect("sent");
            pause(PAUSE_MS).await;
        }
        is(&whole(raw.reply("POST").await, "/upload"), "taken");
        count(&served);
    }
}

async fn websockets(shared: Arc<Shared>, served: Arc<AtomicU64>) {
    while shared.goes_on() {
        let mut stream = TcpStream::connect(shared.plain).await.expect("a connection");
        let opening = "GET /chat HTTP/1.1\r\nHost: chat.test\r\nConnection: Upgrade\r\n\
                       Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        stream.write_all(opening.as_bytes()).await.expect("sent");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.expect("no end"));
        }
        assert!(head.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&head));
        for number in 0..PIECES as u8 {
            stream.write_all(&[number; 100]).await.expect("sent");
            let mut echo = [0; 100];
            stream.read_exact(&mut echo).await.expect("no end");
            assert_eq!(echo, [number; 100]);
            pause(PAUSE_MS).await;
        }
        count(&served);
    }
}
