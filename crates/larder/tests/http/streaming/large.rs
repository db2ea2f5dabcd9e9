//! Tests of bodies larger than the daemon's memory: byte for byte, through plain connections and
//! TLS. `LARDER_TEST_FULL=1` uses 2 GiB.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;
use std::io;

use testkit::larder::Daemon;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::ends::{End, Next};
use crate::support::tls::{Authority, Kind};
use crate::support::{is_full_run, pattern, pause};

const BLOCK: usize = 1 << 20;
/// Bytes by which the daemon's memory may grow: buffers of a few connections, not a body.
const MEMORY_BYTES: u64 = 24 << 20;

/// The number of blocks of a body: more than the largest that is stored.
fn blocks() -> usize {
    if is_full_run() { 2048 } else { 72 }
}

/// The largest memory of the daemon so far, in bytes.
fn peak(daemon: &Daemon) -> u64 {
    let file = format!("/proc/{}/status", daemon.pid());
    let status = std::fs::read_to_string(file).expect("a process");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("a peak");
    let kilobytes = line.split_whitespace().nth(1).and_then(|n| n.parse::<u64>().ok());
    kilobytes.expect("a number") * 1024
}

/// Length and sum of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sum {
    length: u64,
    hash: u64,
}

#[derive(Default)]
struct Summing(u64, DefaultHasher);

impl Summing {
    fn add(&mut self, bytes: &[u8]) {
        self.0 += bytes.len() as u64;
        self.1.write(bytes);
    }

    fn sum(&self) -> Sum {
        Sum { length: self.0, hash: self.1.finish() }
    }
}

/// The sum of a whole body.
fn whole(block: &[u8]) -> Sum {
    let mut summing = Summing::default();
    (0..blocks()).for_each(|_| summing.add(block));
    summing.sum()
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (key, value) = line.split_once(": ")?;
        key.eq_ignore_ascii_case(name).then_some(value)
    })
}

/// Framing of a whole body.
fn framing(chunked: bool) -> String {
    match chunked {
        true => "Transfer-Encoding: chunked".to_owned(),
        false => format!("Content-Length: {}", BLOCK * blocks()),
    }
}

async fn send_body<S: AsyncWrite + Unpin>(
    stream: &mut S,
    block: &[u8],
    chunked: bool,
) -> io::Result<()> {
    for _ in 0..blocks() {
        if chunked {
            stream.write_all(format!("{:x}\r\n", block.len()).as_bytes()).await?;
        }
        stream.write_all(block).await?;
        if chunked {
            stream.write_all(b"\r\n").await?;
        }
    }
    if chunked {
        stream.write_all(b"0\r\n\r\n").await?;
    }
    stream.flush().await
}

impl<S: AsyncRead + AsyncWrite + Unpin> End<S> {
    async fn take(&mut self, mut left: u64, summing: &mut Summing) {
        while left > 0 {
            let bytes = self.some().await;
            assert!(!bytes.is_empty(), "the end, {left} bytes before that of the body");
            let part = left.min(bytes.len() as u64) as usize;
            summing.add(&bytes[..part]);
            self.put_back(&bytes[part..]);
            left -= part as u64;
        }
    }

    async fn line(&mut self) -> String {
        let mut line = Vec::new();
        loop {
            let bytes = self.some().await;
            assert!(!bytes.is_empty(), "the end in the middle of a line");
            line.extend_from_slice(&bytes);
            if let Some(at) = line.windows(2).position(|w| w == b"\r\n") {
                self.put_back(&line[at + 2..]);
                line.truncate(at);
                return String::from_utf8(line).expect("ASCII");
            }
        }
    }

    /// Reads the body that follows `head`.
    async fn body(&mut self, head: &str) -> Sum {
        let mut summing = Summing::default();
        if let Some(length) = field(head, "content-length") {
            self.take(length.parse().expect("a number"), &mut summing).await;
            return summing.sum();
        }
        assert_eq!(field(head, "transfer-encoding"), Some("chunked"), "{head}");
        loop {
            let size = u64::from_str_radix(&self.line().await, 16).expect("a chunk's size");
            self.take(size, &mut summing).await;
            assert_eq!(self.line().await, "");
            if size == 0 {
                return summing.sum();
            }
        }
    }
}

/// Serves requests by target: `/length` and `/chunks` with a body, `/sum` with the sum of the
/// request's body.
async fn serve(mut end: End<TcpStream>, block: Vec<u8>) {
    loop {
        let first = end.some().await;
        if first.is_empty() {
            return;
        }
        end.put_back(&first);
        let head = end.head().await;
        let target = head.split(' ').nth(1).unwrap_or_default();
        let control = if target.ends_with("?stored") { "max-age=60" } else { "no-store" };
        let begin = format!("Cache-Control: {control}\r\nETag: \"x\"\r\n");
        let done = if target.starts_with("/sum") {
            let Sum { length, hash } = end.body(&head).await;
            let text = format!("{length} {hash}");
            let length = text.len();
            end.send(format!("HTTP/1.1 200 OK\r\n{begin}Content-Length: {length}\r\n\r\n{text}"))
                .await;
            Ok(())
        } else if let Some(range) = field(&head, "range") {
            let total = BLOCK * blocks();
            let (first, last) =
                range.strip_prefix("bytes=").and_then(|it| it.split_once('-')).expect("a range");
            let at = |text: &str| text.parse::<usize>().expect("a number").min(total - 1);
            let (first, last) = (at(first), at(last));
            let body: Vec<u8> = (first..=last).map(|at| block[at % BLOCK]).collect();
            let length = body.len();
            end.send(format!(
                "HTTP/1.1 206 Partial Content\r\n{begin}Content-Length: {length}\r\n\
                 Content-Range: bytes {first}-{last}/{total}\r\n\r\n"
            ))
            .await;
            end.stream.write_all(&body).await
        } else {
            let chunked = target.starts_with("/chunks");
            end.send(format!("HTTP/1.1 200 OK\r\n{begin}{}\r\n\r\n", framing(chunked))).await;
            send_body(&mut end.stream, &block, chunked).await
        };
        if done.is_err() {
            return;
        }
    }
}

struct Files {
    daemon: Daemon,
    block: Vec<u8>,
    server: JoinHandle<()>,
}

impl Drop for Files {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Files {
    async fn start(listen: &str, top: &str, site: &str) -> Self {
        let block = pattern(BLOCK);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let origin = listener.local_addr().expect("an address");
        let config = format!(
            "listen = \"{listen}\"\nworkers = 2\n{top}\n[limits]\nrequest_body_bytes = \"4GiB\"\n\
             [[site]]\nhost = \"*\"\norigin = \"http://{origin}\"\n{site}\n"
        );
        let served = block.clone();
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(End::new(stream), served.clone()));
            }
        });
        Self { daemon: Daemon::start(&config).expect("larder starts"), block, server }
    }

    async fn plain() -> Self {
        Self::start("127.0.0.1:0", "", "").await
    }

    async fn client(&self) -> End<TcpStream> {
        End::new(TcpStream::connect(self.daemon.addr()).await.expect("a connection"))
    }
}

fn request(method: &str, target: &str, fields: &str) -> String {
    format!("{method} {target} HTTP/1.1\r\nHost: larder.test\r\n{fields}\r\n")
}

/// Sends every kind of body down and up over one connection.
async fn all_ways<S: AsyncRead + AsyncWrite + Unpin>(
    files: &Files,
    client: &mut End<S>,
    what: &str,
) {
    let expected = whole(&files.block);
    // The connection's own memory is not counted.
    client.send(request("GET", "/length", "Range: bytes=1048570-1048579\r\nCookie: a=1\r\n")).await;
    let head = client.head().await;
    assert_eq!(client.body(&head).await.length, 10);
    let before = peak(&files.daemon);
    for target in ["/length", "/chunks", "/length?stored"] {
        client.send(request("GET", target, "")).await;
        let head = client.head().await;
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        assert_eq!(client.body(&head).await, expected, "{what} {target}");
    }
    for chunked in [false, true] {
        client.send(request("POST", "/sum", &format!("{}\r\n", framing(chunked)))).await;
        send_body(&mut client.stream, &files.block, chunked).await.expect("sent");
        let head = client.head().await;
        let Sum { length, hash } = expected;
        client.body_is(&head, &format!("{length} {hash}")).await;
    }
    let more = peak(&files.daemon) - before;
    println!("{what}: {} MiB each way, {} KiB more memory", blocks(), more >> 10);
    assert!(more < MEMORY_BYTES, "{what}: {more} bytes more");
}

impl<S: AsyncRead + AsyncWrite + Unpin> End<S> {
    async fn body_is(&mut self, head: &str, text: &str) {
        assert_eq!(field(head, "content-length"), Some(text.len().to_string().as_str()), "{head}");
        self.expect(text).await;
    }
}

#[tokio::test]
async fn whole_over_a_plain_connection() {
    let files = Files::plain().await;
    all_ways(&files, &mut files.client().await, "plain").await;
}

#[tokio::test]
async fn whole_over_tls() {
    let authority = Authority::new();
    authority.sign("site", &["larder.test"], Kind::Elliptic);
    let top = format!("tls = {{ {} }}", authority.pair("site"));
    let files = Files::start("127.0.0.1:0 tls", &top, "").await;
    let connection = authority.client().connect(files.daemon.addr(), "larder.test").await;
    all_ways(&files, &mut End::new(connection.stream), "TLS").await;
}

#[tokio::test]
async fn one_that_proves_too_large_to_be_stored_arrives_whole() {
    let files = Files::plain().await;
    let mut client = files.client().await;
    for _ in 0..2 {
        client.send(request("GET", "/chunks?stored", "")).await;
        let head = client.head().await;
        assert_eq!(client.body(&head).await, whole(&files.block));
    }
}

#[tokio::test]
async fn a_client_that_stalls_holds_the_origin_back() {
    let files = Files::plain().await;
    let mut client = files.client().await;
    client.send(request("GET", "/length", "")).await;
    let head = client.head().await;
    pause(1500).await;
    let came = files.daemon.metric("larder_origin_bytes_in_total", "").await.expect("metrics");
    // The window, and the buffers of both sockets to the client.
    assert!(came < (BLOCK * blocks()) as f64 / 2.0, "{came} bytes came");
    assert_eq!(client.body(&head).await, whole(&files.block));
}

#[tokio::test]
async fn ranges_of_what_is_not_stored_are_the_origins() {
    for site in ["cache = false", ""] {
        let files = Files::start("127.0.0.1:0", "", site).await;
        let mut client = files.client().await;
        let range = request("GET", "/length", "Range: bytes=1048570-1048579\r\n");
        if site.is_empty() {
            // The first request is for the whole, to be stored. That it may not be stored is known
            // only then.
            client.send(request("GET", "/length", "")).await;
            let head = client.head().await;
            client.body(&head).await;
        }
        client.send(range).await;
        let head = client.head().await;
        assert!(head.starts_with("HTTP/1.1 206 "), "{head}");
        let total = BLOCK * blocks();
        let expected = format!("bytes 1048570-1048579/{total}");
        assert_eq!(field(&head, "content-range"), Some(expected.as_str()));
        client.expect([&files.block[BLOCK - 6..], &files.block[..4]].concat()).await;
    }
}

#[tokio::test]
async fn ranges_of_what_is_too_large_to_be_stored_are_exact() {
    let files = Files::plain().await;
    let mut client = files.client().await;
    for _ in 0..2 {
        client.send(request("GET", "/length?stored", "Range: bytes=1048570-1048579\r\n")).await;
        let head = client.head().await;
        assert!(head.starts_with("HTTP/1.1 206 "), "{head}");
        client.expect([&files.block[BLOCK - 6..], &files.block[..4]].concat()).await;
    }
}

#[tokio::test]
async fn a_slow_upload_with_pauses_arrives() {
    let files = Files::plain().await;
    let mut client = files.client().await;
    let text = "x".repeat(40_000);
    let fields = format!("Content-Length: {}\r\nExpect: 100-continue\r\n", 4 * text.len());
    client.send(request("POST", "/sum", &fields)).await;
    assert_eq!(client.head().await, "HTTP/1.1 100 Continue\r\n\r\n");
    for _ in 0..4 {
        pause(600).await;
        client.send(&text).await;
    }
    let mut sum = Summing::default();
    sum.add(text.repeat(4).as_bytes());
    let Sum { length, hash } = sum.sum();
    let head = client.head().await;
    client.body_is(&head, &format!("{length} {hash}")).await;
}

#[tokio::test]
async fn an_upload_that_the_origin_rejects_early_gets_the_response() {
    for (ends, chunked) in [(false, false), (false, true), (true, false), (true, true)] {
        let scene = super::ends::Scene::with("request_body_bytes = \"4GiB\"", "").await;
        let client = scene.client().await;
        let head = request("POST", "/form", &format!("{}\r\n", framing(chunked)));
        let (reads, mut writes) = client.stream.into_split();
        let block = pattern(BLOCK);
        let upload = tokio::spawn(async move {
            writes.write_all(head.as_bytes()).await?;
            send_body(&mut writes, &block, chunked).await
        });
        let mut origin = scene.origin().await;
        origin.head().await;
        let page =
            "HTTP/1.1 413 Too Large\r\nContent-Length: 7\r\nConnection: close\r\n\r\nno more";
        origin.send(page).await;
        if ends {
            drop(origin);
        } else {
            tokio::spawn(async move {
                while !matches!(origin.next().await, Next::Closed | Next::Reset) {}
            });
        }
        let mut client = End::new(tokio::io::join(reads, tokio::io::sink()));
        let head = client.head().await;
        assert!(head.starts_with("HTTP/1.1 413 "), "ends {ends}, chunked {chunked}: {head}");
        client.expect("no more").await;
        upload.abort();
    }
}
