//! Kit for the tests: scripted servers, and a client with short methods for frequent steps.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use base::counters::Registry;
use base::{Counter, Limit, Limits};
use bytes::Bytes;
use message::{Framing, Method, Request};
use origin::{
    BodySource, CorePool, Error, Exchange, Origin, OriginConfig, RequestBody, SourceError,
};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixListener};

/// A deadline that only a hang exceeds.
pub(crate) const LONG: Duration = Duration::from_secs(30);

pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// A server's end of one connection.
pub(crate) struct Conn {
    io: Box<dyn Io>,
    buffer: Vec<u8>,
}

impl Conn {
    /// The next request's head; `None` if the client closed the connection.
    pub(crate) async fn head(&mut self) -> Option<String> {
        loop {
            if let Some(at) = self.buffer.windows(4).position(|w| w == b"\r\n\r\n") {
                let head: Vec<u8> = self.buffer.drain(..at + 4).collect();
                return Some(String::from_utf8(head).expect("an ASCII head"));
            }
            if !self.fill().await {
                return None;
            }
        }
    }

    /// Exactly `len` bytes.
    pub(crate) async fn bytes(&mut self, len: usize) -> Vec<u8> {
        while self.buffer.len() < len {
            assert!(self.fill().await, "the client closed the connection");
        }
        self.buffer.drain(..len).collect()
    }

    /// All bytes until the client closes the connection.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        while self.fill().await {}
        std::mem::take(&mut self.buffer)
    }

    async fn fill(&mut self) -> bool {
        self.io.read_buf(&mut self.buffer).await.unwrap_or(0) > 0
    }

    pub(crate) async fn send(&mut self, text: &str) {
        // The client may have left, which some tests are about.
        let _ = self.io.write_all(text.as_bytes()).await;
    }

    /// Keeps the connection open and silent.
    pub(crate) async fn hang(mut self) {
        self.rest().await;
        std::future::pending::<()>().await;
    }

    /// Answers every request with `response`.
    pub(crate) async fn answer_all(mut self, response: &str) {
        while self.head().await.is_some() {
            self.send(response).await;
        }
    }
}

/// A server that runs a script for each connection, which gets the connection's number from 0.
pub(crate) struct Scripted {
    pub(crate) url: String,
    connections: Arc<AtomicUsize>,
}

type Script = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Scripted {
    pub(crate) async fn new<F>(script: impl Fn(usize, Conn) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = count.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(script(number, Conn { io: Box::new(stream), buffer: Vec::new() }));
            }
        });
        Self { url: format!("http://127.0.0.1:{port}"), connections }
    }

    pub(crate) async fn unix(path: &Path, script: fn(usize, Conn) -> Script) -> Self {
        let listener = UnixListener::bind(path).expect("a free path");
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = count.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(script(number, Conn { io: Box::new(stream), buffer: Vec::new() }));
            }
        });
        Self { url: format!("unix:{}", path.display()), connections }
    }

    /// A server that answers every request with `response`.
    pub(crate) async fn answering(response: &'static str) -> Self {
        Self::new(move |_, conn| conn.answer_all(response)).await
    }

    /// The number of accepted connections.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// The URL of a port without a listener.
pub(crate) async fn refusing() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    format!("http://{}", listener.local_addr().expect("an address"))
}

/// One core's client.
pub(crate) struct Client {
    pub(crate) pool: CorePool,
    pub(crate) origin: Arc<Origin>,
    registry: Registry,
}

impl Client {
    pub(crate) fn new(urls: &[&str], change: impl FnOnce(&mut OriginConfig)) -> Self {
        Self::with_limits(urls, &Limits::default(), change)
    }

    pub(crate) fn with_limits(
        urls: &[&str],
        limits: &Limits,
        change: impl FnOnce(&mut OriginConfig),
    ) -> Self {
        let servers = urls.iter().map(|url| origin::parse_server(url).expect("a good URL"));
        let mut config = OriginConfig::with_limits("shop", servers.collect(), limits);
        change(&mut config);
        let registry = Registry::default();
        let pool = CorePool::new(registry.register(), limits);
        Self { pool, origin: Origin::new(config), registry }
    }

    pub(crate) fn count(&self, counter: Counter) -> u64 {
        self.registry.sum(counter)
    }

    pub(crate) fn limited(&self, limit: Limit) -> u64 {
        self.registry.limit_sum(limit)
    }

    pub(crate) async fn send(
        &self,
        request: &Request,
        body: RequestBody<'_>,
    ) -> Result<Exchange, Error> {
        let mut events = ();
        let caller = origin::OriginRequestContext::default();
        let sending = self.pool.send(&self.origin, request, body, 0, &caller, &mut events);
        tokio::time::timeout(LONG, sending).await.expect("an outcome")
    }

    /// Sends a GET and reads the response to its end.
    pub(crate) async fn get(&self) -> Result<String, Error> {
        let mut exchange = self.send(&request(Method::Get), RequestBody::None).await?;
        read(&mut exchange).await
    }
}

pub(crate) fn request(method: Method) -> Request {
    let mut request = Request::new();
    request.method = method;
    request.host = b"www.example".to_vec();
    request.target = b"/a?b".to_vec();
    request
}

pub(crate) fn upload(method: Method, framing: Framing) -> Request {
    let mut request = request(method);
    request.framing = framing;
    request
}

/// Reads the rest of the body.
pub(crate) async fn read(exchange: &mut Exchange) -> Result<String, Error> {
    let mut body = Vec::new();
    let reading = async {
        while exchange.next(&mut |bytes| body.extend_from_slice(bytes)).await? {}
        Ok::<(), Error>(())
    };
    tokio::time::timeout(LONG, reading).await.expect("an outcome")?;
    Ok(String::from_utf8(body).expect("a text"))
}

/// A body from a list; pending after its end if `open`.
#[derive(Default)]
pub(crate) struct Pieces {
    pub(crate) pieces: Vec<&'static str>,
    pub(crate) failing: Option<SourceError>,
    pub(crate) open: bool,
    pub(crate) taken: usize,
}

impl Pieces {
    pub(crate) fn of(pieces: &[&'static str]) -> Self {
        Self { pieces: pieces.to_vec(), ..Self::default() }
    }
}

impl BodySource for Pieces {
    fn poll_data(&mut self, _: &mut Context<'_>) -> Poll<Result<Option<Bytes>, SourceError>> {
        if let Some(piece) = self.pieces.get(self.taken) {
            self.taken += 1;
            return Poll::Ready(Ok(Some(Bytes::from_static(piece.as_bytes()))));
        }
        match self.failing.take() {
            Some(error) => Poll::Ready(Err(error)),
            None if self.open => Poll::Pending,
            None => Poll::Ready(Ok(None)),
        }
    }
}

pub(crate) fn stream(source: &mut Pieces) -> RequestBody<'_> {
    RequestBody::Stream(Box::new(source))
}

/// Waits until `what` returns true.
pub(crate) async fn eventually(mut what: impl FnMut() -> bool) {
    let waiting = async {
        while !what() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, waiting).await.expect("it happens");
}
