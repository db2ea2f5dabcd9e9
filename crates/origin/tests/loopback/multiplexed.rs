//! Tests of HTTP/2: many requests over a connection, and what ends one request, or all of them.

use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use base::Counter;
use bytes::Bytes;
use h2::Decoder;
use message::{Framing, Method};
use origin::{BodySource, Error, HttpVersion, RequestBody, SourceError, TimeoutStep};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::LocalSet;

use super::kit::{Client, LONG, Pieces, read, request, upload};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// `:status: 200`
const OK: &[u8] = &[0x88];

/// A frame that the server has read.
struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

/// A server's side of a connection.
struct Peer {
    io: TcpStream,
    decoder: Decoder,
    number: usize,
    /// Bodies come back.
    echoes: bool,
    /// Every byte of a body makes room for another, on its stream and on the connection.
    pours: bool,
    go_on: Arc<Notify>,
    /// The stream of a request that is answered once a PING has come.
    late: Option<u32>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Peer {
    async fn frame(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.io.read_exact(&mut head).await.ok()?;
        let [a, b, c, kind, flags, d, e, f, g] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        self.io.read_exact(&mut payload).await.ok()?;
        Some(Frame { kind, flags, stream: u32::from_be_bytes([d, e, f, g]), payload })
    }

    async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
        let [d, e, f, g] = stream.to_be_bytes();
        let mut frame = vec![a, b, c, kind, flags, d, e, f, g];
        frame.extend_from_slice(payload);
        // The client may have left, which some tests are about.
        let _ = self.io.write_all(&frame).await;
    }

    async fn answer(&mut self, stream: u32, body: &[u8]) {
        self.send(HEADERS, END_HEADERS, stream, OK).await;
        self.send(DATA, END_STREAM, stream, body).await;
    }

    fn note(&self, what: &str) {
        self.seen.lock().push(format!("{} {what}", self.number));
    }

    fn path(&mut self, block: &[u8]) -> String {
        let mut path = String::new();
        let read = self.decoder.block(block, |_, name, value| {
            if name == b":path" {
                path = String::from_utf8_lossy(value).into_owned();
            }
            true
        });
        assert_eq!(read, Ok(()));
        path
    }

    async fn serve(mut self, streams: u8) {
        let mut preface = [0; 24];
        if self.io.read_exact(&mut preface).await.is_err() {
            return;
        }
        if preface != PREFACE {
            return self.serve_single(preface.to_vec()).await;
        }
        self.send(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, streams, 0, 6, 0, 0, 0x10, 0]).await;
        while let Some(Frame { kind, flags, stream, payload }) = self.frame().await {
            match kind {
                HEADERS => {
                    let path = self.path(&payload);
                    self.note(&path);
                    if !self.act(&path, stream).await {
                        return;
                    }
                }
                DATA if self.pours && flags & END_STREAM != 0 => self.answer(stream, b"done").await,
                DATA if self.pours && !payload.is_empty() => {
                    let more = (payload.len() as u32).to_be_bytes();
                    self.send(WINDOW_UPDATE, 0, stream, &more).await;
                    self.send(WINDOW_UPDATE, 0, 0, &more).await;
                }
                DATA if !self.echoes => {}
                DATA if flags & END_STREAM != 0 => {
                    self.send(DATA, 0, stream, &payload).await;
                    self.send(DATA, END_STREAM, stream, b"!").await;
                }
                DATA => self.send(DATA, 0, stream, &payload).await,
                PING if self.late.is_some() => {
                    self.send(PING, ACK, 0, &payload).await;
                    if let Some(stream) = self.late.take() {
                        self.answer(stream, b"late").await;
                    }
                }
                WINDOW_UPDATE if stream > 0 => {
                    let more = payload.iter().fold(0, |more, byte| more << 8 | u32::from(*byte));
                    self.note(&format!("room {more}"));
                }
                RESET => self.note(&format!("reset {}", payload[3])),
                _ => {}
            }
        }
    }

    /// Answers requests of HTTP/1.1. The first begins with `head`.
    async fn serve_single(mut self, mut head: Vec<u8>) {
        loop {
            while !head.ends_with(b"\r\n\r\n") {
                let Ok(byte) = self.io.read_u8().await else { return };
                head.push(byte);
            }
            let text = String::from_utf8_lossy(&head).into_owned();
            let path = text.split(' ').nth(1).unwrap_or_default();
            self.note(&format!("{path} HTTP/1.1"));
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{path}", path.len());
            // The client may have left.
            let _ = self.io.write_all(answer.as_bytes()).await;
            head.clear();
        }
    }

    /// Does what the path says; false to end the connection.
    async fn act(&mut self, path: &str, stream: u32) -> bool {
        let is_first = self.number == 0;
        match path {
            "/silent" => {}
            "/late" => self.late = Some(stream),
            "/half" => {
                self.send(HEADERS, END_HEADERS, stream, OK).await;
                for _ in 0..3 {
                    self.send(DATA, 0, stream, &[b'x'; 16 << 10]).await;
                }
            }
            "/pour" => {
                self.echoes = false;
                self.pours = true;
            }
            "/stuck" => {
                self.send(WINDOW_UPDATE, 0, 0, &[0x7f, 0, 0, 0]).await;
                self.send(WINDOW_UPDATE, 0, stream, &[0x7f, 0, 0, 0]).await;
                // It reads no more.
                self.go_on.notified().await;
                self.answer(stream, b"/stuck").await;
                std::future::pending::<()>().await;
            }
            "/old" => self.send(RESET, 0, stream, &[0, 0, 0, 13]).await,
            "/early" => self.send(HEADERS, END_HEADERS, stream, OK).await,
            "/refuse" if is_first => self.send(RESET, 0, stream, &[0, 0, 0, 7]).await,
            "/fail" => self.send(RESET, 0, stream, &[0, 0, 0, 2]).await,
            "/leave" if is_first => {
                let last = (stream - 2).to_be_bytes();
                self.send(GOAWAY, 0, 0, &[&last[..], &[0; 4]].concat()).await;
            }
            "/close" if is_first => return false,
            "/cut" => {
                self.send(HEADERS, END_HEADERS, stream, OK).await;
                self.send(DATA, 0, stream, b"half").await;
                return false;
            }
            "/short" => {
                let head = [OK, &[0x0f, 0x0d, 1, b'9']].concat();
                self.send(HEADERS, END_HEADERS, stream, &head).await;
                self.send(DATA, END_STREAM, stream, b"half").await;
            }
            "/trailers" => {
                self.send(HEADERS, END_HEADERS, stream, OK).await;
                self.send(DATA, 0, stream, b"body").await;
                let block = b"\0\x05x-end\x03yes";
                self.send(HEADERS, END_HEADERS | END_STREAM, stream, block).await;
            }
            "/full" => {
                self.echoes = false;
                self.send(HEADERS, END_HEADERS | END_STREAM, stream, &[0x08, 3, b'4', b'1', b'3'])
                    .await;
            }
            _ => self.answer(stream, path.as_bytes()).await,
        }
        true
    }
}

/// A server that permits this many streams of a connection.
pub(crate) struct Server {
    pub(crate) url: String,
    /// Lets a server that waits go on.
    pub(crate) go_on: Arc<Notify>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(crate) async fn start(streams: u8) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let noted = Arc::clone(&seen);
        let go_on = Arc::<Notify>::default();
        let told = Arc::clone(&go_on);
        tokio::spawn(async move {
            for number in 0.. {
                let Ok((io, _)) = listener.accept().await else { return };
                let seen = Arc::clone(&noted);
                let decoder = Decoder::new(4096);
                let go_on = Arc::clone(&told);
                let peer = Peer {
                    io,
                    decoder,
                    number,
                    echoes: true,
                    pours: false,
                    go_on,
                    late: None,
                    seen,
                };
                tokio::spawn(peer.serve(streams));
            }
        });
        Self { url, go_on, seen }
    }

    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().clone()
    }

    /// Waits until the server has seen `what`.
    pub(crate) async fn sees(&self, what: &str) {
        let seen = async {
            while !self.seen().iter().any(|seen| seen == what) {
                tokio::task::yield_now().await;
            }
        };
        assert!(tokio::time::timeout(LONG, seen).await.is_ok(), "{what}: {:?}", self.seen());
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(&[&self.url], |config| config.http = HttpVersion::Http2)
    }
}

pub(crate) async fn local<F: Future>(test: F) -> F::Output {
    LocalSet::new().run_until(test).await
}

pub(crate) fn to(path: &str) -> message::Request {
    let mut request = request(Method::Get);
    request.target = path.as_bytes().to_vec();
    request
}

pub(crate) async fn ask(client: &Client, path: &str) -> Result<String, Error> {
    read(&mut client.send(&to(path), RequestBody::None).await?).await
}

#[tokio::test]
async fn requests_at_the_same_time_share_a_connection() {
    local(async {
        let server = Server::start(100).await;
        let client = Rc::new(server.client());
        let one = |number: usize| {
            let client = Rc::clone(&client);
            tokio::task::spawn_local(async move {
                let path = format!("/{number}");
                assert_eq!(ask(&client, &path).await.expect("a response"), path);
            })
        };
        for done in (0..50).map(one).collect::<Vec<_>>() {
            done.await.expect("no panic");
        }
        assert_eq!(client.count(Counter::OriginConnects), 1);
        assert_eq!(client.count(Counter::OriginReuse), 49);
        assert_eq!((server.seen().len(), client.pool.idle_connections()), (50, 1));
    })
    .await;
}

#[tokio::test]
async fn another_connection_is_opened_when_streams_run_out() {
    local(async {
        let server = Server::start(2).await;
        let client = Rc::new(server.client());
        let mut open = Vec::new();
        for _ in 0..5 {
            open.push(client.send(&to("/early"), RequestBody::None).await.expect("a head"));
        }
        let connections: Vec<_> =
            server.seen().iter().map(|seen| seen.as_bytes()[0] - b'0').collect();
        assert_eq!(connections, [0, 0, 1, 1, 2]);
        drop(open);
        // Places that have become free are taken again.
        server.sees("0 reset 8").await;
        assert_eq!(ask(&client, "/").await.expect("a response"), "/");
        assert_eq!(client.count(Counter::OriginConnects), 3);
    })
    .await;
}

#[tokio::test]
async fn a_request_that_was_certainly_not_processed_is_sent_again() {
    local(async {
        for path in ["/leave", "/refuse"] {
            let server = Server::start(100).await;
            let client = server.client();
            assert_eq!(ask(&client, "/").await.expect("a response"), "/");
            let mut post = to(path);
            post.method = Method::Post;
            let sent = client.send(&post, RequestBody::None).await;
            // A server that refuses may do so again: only another one would help.
            match path {
                "/leave" => {
                    let mut exchange = sent.expect("a response");
                    assert_eq!(read(&mut exchange).await.expect("a body"), path);
                    assert_eq!(server.seen(), ["0 /", "0 /leave", "1 /leave"]);
                }
                _ => {
                    assert_eq!(client.count(Counter::OriginRetries), 2);
                    assert!(matches!(sent, Err(Error::Refused { .. })), "{sent:?}");
                }
            }
        }
    })
    .await;
}

#[tokio::test]
async fn what_may_have_been_acted_on_is_sent_once() {
    local(async {
        let server = Server::start(100).await;
        let client = server.client();
        let mut post = to("/fail");
        post.method = Method::Post;
        let failed = client.send(&post, RequestBody::None).await.expect_err("a reset");
        assert!(matches!(failed, Error::Reset { code: 2, in_body: false, .. }), "{failed:?}");
        assert!(failed.to_string().contains("INTERNAL_ERROR"), "{failed}");
        // The connection goes on, and a connection that ends is replaced.
        assert_eq!(ask(&client, "/after").await.expect("a response"), "/after");
        assert_eq!(ask(&client, "/close").await.expect("a response"), "/close");
        assert_eq!(server.seen(), ["0 /fail", "0 /after", "0 /close", "1 /close"]);
        // The head was written, so the server may have acted on it.
        let server = Server::start(100).await;
        let client = server.client();
        assert_eq!(ask(&client, "/").await.expect("a response"), "/");
        let mut post = to("/close");
        post.method = Method::Post;
        client.send(&post, RequestBody::None).await.expect_err("an end");
        assert_eq!(server.seen(), ["0 /", "0 /close"]);
    })
    .await;
}

#[tokio::test]
async fn a_body_that_is_cut_never_ends_cleanly() {
    local(async {
        let server = Server::start(100).await;
        let client = server.client();
        for path in ["/cut", "/short"] {
            let failed = ask(&client, path).await.expect_err("an end too early");
            assert!(
                matches!(failed, Error::Truncated { .. } | Error::Fields { .. }),
                "{path}: {failed:?}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn trailers_come_with_the_end() {
    local(async {
        let server = Server::start(100).await;
        let client = server.client();
        let sent = client.send(&to("/trailers"), RequestBody::None).await;
        let mut exchange = sent.expect("a head");
        assert_eq!(exchange.framing, Framing::Chunked);
        assert_eq!(read(&mut exchange).await.expect("a body"), "body");
        let trailers = exchange.take_trailers().expect("trailers");
        assert_eq!(trailers.lines(), b"x-end: yes\r\n");
    })
    .await;
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_stream_and_not_the_connection() {
    local(async {
        let server = Server::start(100).await;
        let client = server.client();
        drop(client.send(&to("/early"), RequestBody::None).await.expect("a head"));
        server.sees("0 reset 8").await;
        let silent = to("/silent");
        let waiting = client.send(&silent, RequestBody::None);
        let left = tokio::select! {
            biased;
            _ = waiting => false,
            () = server.sees("0 /silent") => true,
        };
        assert!(left);
        assert_eq!(ask(&client, "/").await.expect("a response"), "/");
        assert_eq!(client.count(Counter::OriginConnects), 1);
    })
    .await;
}

#[tokio::test]
async fn a_server_that_says_nothing_gets_no_further_requests_on_that_connection() {
    local(async {
        let server = Server::start(100).await;
        let client = Client::new(&[&server.url], |config| {
            config.http = HttpVersion::Http2;
            config.timeouts.first_byte_ms = 50;
            config.retries = 0;
        });
        assert_eq!(ask(&client, "/").await.expect("a response"), "/");
        let late = ask(&client, "/silent").await.expect_err("a timeout");
        assert!(matches!(late, Error::Timeout { step: TimeoutStep::FirstByte, .. }), "{late:?}");
        assert_eq!(ask(&client, "/again").await.expect("a response"), "/again");
        assert_eq!(server.seen().last().map(String::as_str), Some("1 /again"));
    })
    .await;
}

/// A body whose pieces a test gives one by one.
#[derive(Clone, Default)]
struct Given(Rc<Cell<Vec<Option<&'static [u8]>>>>);

impl BodySource for Given {
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, SourceError>> {
        let mut pieces = self.0.take();
        let next = if pieces.is_empty() { None } else { Some(pieces.remove(0)) };
        self.0.set(pieces);
        match next {
            Some(piece) => Poll::Ready(Ok(piece.map(Bytes::from_static))),
            None => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }
}

impl Given {
    fn give(&self, piece: Option<&'static [u8]>) {
        let mut pieces = self.0.take();
        pieces.push(piece);
        self.0.set(pieces);
    }
}

#[tokio::test]
async fn a_request_goes_on_beside_its_response() {
    local(async {
        let server = Server::start(100).await;
        let client = server.client();
        let mut post = upload(Method::Post, Framing::Chunked);
        post.target = b"/early".to_vec();
        let mut given = Given::default();
        let body = RequestBody::Stream(Box::new(&mut given));
        let mut exchange = client.send(&post, body).await.expect("a head before the body");
        exchange.continue_upload(given.clone());
        let mut heard = Vec::new();
        for said in ["one", "two"] {
            given.give(Some(said.as_bytes()));
            let mut hear = |bytes: &[u8]| heard.extend_from_slice(bytes);
            let echo = exchange.next(&mut hear);
            assert!(tokio::time::timeout(LONG, echo).await.expect("an echo").expect("a body"));
            assert_eq!(heard, said.as_bytes());
            heard.clear();
        }
        given.give(None);
        assert_eq!(read(&mut exchange).await.expect("an end"), "!");
    })
    .await;
}

#[tokio::test]
async fn a_final_answer_ends_the_upload() {
    local(async {
        let server = Server::start(100).await;
        let client = server.client();
        let mut post = upload(Method::Post, Framing::Chunked);
        post.target = b"/full".to_vec();
        let mut pieces = Pieces { open: true, ..Pieces::of(&["some"]) };
        let body = RequestBody::Stream(Box::new(&mut pieces));
        let mut exchange = client.send(&post, body).await.expect("an answer");
        assert_eq!(exchange.response.status.code(), 413);
        assert_eq!(read(&mut exchange).await.expect("an end"), "");
        drop(exchange);
        server.sees("0 reset 8").await;
        assert_eq!(ask(&client, "/").await.expect("a response"), "/");
    })
    .await;
}
