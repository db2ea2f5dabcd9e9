//! Ends of an exchange that the test controls: nothing is sent, read or closed unless it says so.

use std::io;
use std::time::Duration;

use testkit::larder::Daemon;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::support::PATIENCE;

/// The example of RFC 6455 1.3.
pub(crate) const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
pub(crate) const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// A browser's request to open a WebSocket; `more` are lines with their CRLF.
pub(crate) fn opening(more: &str) -> String {
    format!(
        "GET /chat HTTP/1.1\r\nHost: larder.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n{more}\r\n"
    )
}

/// The response of a server that agrees to [`opening`].
pub(crate) fn agreed() -> String {
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {ACCEPT}\r\n\r\n"
    )
}

/// Bytes that one read may take.
const ROOM: usize = 64 << 10;

/// An end of a connection.
pub(crate) struct End<S> {
    pub(crate) stream: S,
    received: Vec<u8>,
}

/// The next event on a connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Closed,
    Reset,
    Silence,
    Bytes(Vec<u8>),
}

impl<S: AsyncRead + AsyncWrite + Unpin> End<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, received: Vec::new() }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let sent = async {
            self.stream.write_all(bytes.as_ref()).await?;
            self.stream.flush().await
        };
        timeout(PATIENCE, sent).await.expect("in time").expect("sent");
    }

    /// Ends this side.
    pub(crate) async fn finish(&mut self) {
        self.stream.shutdown().await.expect("an end");
    }

    /// The next head, its blank line included.
    pub(crate) async fn head(&mut self) -> String {
        loop {
            if let Some(at) = self.received.windows(4).position(|w| w == b"\r\n\r\n") {
                let head: Vec<u8> = self.received.drain(..at + 4).collect();
                return String::from_utf8(head).expect("ASCII");
            }
            self.more().await;
        }
    }

    /// The next bytes received; none at the end.
    pub(crate) async fn some(&mut self) -> Vec<u8> {
        if self.received.is_empty() {
            let read = timeout(PATIENCE, self.read()).await;
            read.expect("in time").expect("bytes");
        }
        std::mem::take(&mut self.received)
    }

    /// Puts back bytes that were read too early.
    pub(crate) fn put_back(&mut self, bytes: &[u8]) {
        self.received.splice(..0, bytes.iter().copied());
    }

    /// Asserts that exactly these bytes come next.
    pub(crate) async fn expect(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        while self.received.len() < bytes.len() {
            self.more().await;
        }
        let got: Vec<u8> = self.received.drain(..bytes.len()).collect();
        let show =
            |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(300)]).into_owned();
        assert!(got == bytes, "{} instead of {}", show(&got), show(bytes));
    }

    async fn read(&mut self) -> io::Result<usize> {
        // Without a reserve, the next read would be one of 64 bytes.
        self.received.reserve(ROOM);
        self.stream.read_buf(&mut self.received).await
    }

    async fn more(&mut self) {
        let read = timeout(PATIENCE, self.read()).await;
        let read = read.unwrap_or_else(|_| panic!("silence after {:?}", self.text()));
        assert!(read.expect("bytes") > 0, "the end after {:?}", self.text());
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.received).into_owned()
    }

    /// The next event within `patience`.
    pub(crate) async fn next_within(&mut self, patience: Duration) -> Next {
        if !self.received.is_empty() {
            return Next::Bytes(std::mem::take(&mut self.received));
        }
        match timeout(patience, self.read()).await {
            Err(_) => Next::Silence,
            Ok(Ok(0)) => Next::Closed,
            Ok(Ok(_)) => Next::Bytes(std::mem::take(&mut self.received)),
            Ok(Err(_)) => Next::Reset,
        }
    }

    pub(crate) async fn next(&mut self) -> Next {
        self.next_within(PATIENCE).await
    }

    /// Returns true if nothing arrives, as far as a moment can show.
    pub(crate) async fn is_silent(&mut self) -> bool {
        self.next_within(Duration::from_millis(300)).await == Next::Silence
    }
}

/// A daemon and the listener of its origin.
pub(crate) struct Scene {
    pub(crate) daemon: Daemon,
    listener: TcpListener,
}

impl Scene {
    pub(crate) async fn new() -> Self {
        Self::with("", "").await
    }

    /// A scene with further lines in `[limits]` and `[[site]]`.
    pub(crate) async fn with(limits: &str, site: &str) -> Self {
        Self::with_top("", limits, site).await
    }

    /// A scene with further lines at the top, too.
    pub(crate) async fn with_top(top: &str, limits: &str, site: &str) -> Self {
        Self::start("127.0.0.1:0", top, limits, site).await
    }

    /// A scene with another listener.
    pub(crate) async fn listening(listen: &str, top: &str) -> Self {
        Self::start(listen, top, "", "").await
    }

    /// A scene with another listener, and further lines in `[limits]` and `[[site]]`.
    pub(crate) async fn listening_with(listen: &str, limits: &str, site: &str) -> Self {
        Self::start(listen, "", limits, site).await
    }

    async fn start(listen: &str, top: &str, limits: &str, site: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let origin = listener.local_addr().expect("an address");
        let config = format!(
            r#"listen = "{listen}"
workers = 2
{top}
[limits]
{limits}
[[origin]]
name = "app"
servers = "http://{origin}"
eject = {{ failures = 0 }}
retries = 0
[[site]]
host = "*"
origin = "app"
{site}
"#
        );
        Self { daemon: Daemon::start(&config).expect("larder starts"), listener }
    }

    pub(crate) async fn client(&self) -> End<TcpStream> {
        let stream = TcpStream::connect(self.daemon.addr()).await.expect("a connection");
        stream.set_nodelay(true).expect("an option");
        End::new(stream)
    }

    /// The next connection to the origin.
    pub(crate) async fn origin(&self) -> End<TcpStream> {
        let (stream, _) =
            timeout(PATIENCE, self.listener.accept()).await.expect("in time").expect("one");
        stream.set_nodelay(true).expect("an option");
        End::new(stream)
    }

    /// Returns true if the origin gets nothing, as far as a moment can show.
    pub(crate) async fn origin_is_silent(&self) -> bool {
        timeout(Duration::from_millis(300), self.listener.accept()).await.is_err()
    }

    /// A tunnel: the client's end and the origin's, with nothing sent yet.
    pub(crate) async fn tunnel(&self) -> (End<TcpStream>, End<TcpStream>) {
        let mut client = self.client().await;
        client.send(opening("")).await;
        let mut origin = self.origin().await;
        origin.head().await;
        origin.send(agreed()).await;
        let head = client.head().await;
        assert!(head.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{head}");
        (client, origin)
    }

    pub(crate) async fn metric(&self, name: &str) -> u64 {
        self.daemon.metric(name, "").await.expect("metrics") as u64
    }

    pub(crate) async fn limit_hits(&self, limit: &str) -> u64 {
        let label = format!("limit=\"{limit}\"");
        self.daemon.metric("larder_limit_hits_total", &label).await.expect("metrics") as u64
    }
}
