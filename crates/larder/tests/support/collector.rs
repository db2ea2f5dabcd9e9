//! A collector of traces (OTLP over HTTP), which keeps the spans that it gets. It decodes them by
//! its own description of OpenTelemetry's messages.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use flate2::read::GzDecoder;
use parking_lot::Mutex;
use prost::{Message, Oneof};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::eventually;

/// Numbers of span kinds.
pub(crate) const SERVER: i32 = 2;
pub(crate) const CLIENT: i32 = 3;
/// Status code of a failed span.
pub(crate) const ERROR: i32 = 2;

#[derive(Clone, PartialEq, Message)]
struct Request {
    #[prost(message, repeated, tag = "1")]
    resources: Vec<OfResource>,
}

#[derive(Clone, PartialEq, Message)]
struct OfResource {
    #[prost(message, required, tag = "1")]
    resource: Resource,
    #[prost(message, repeated, tag = "2")]
    scopes: Vec<OfScope>,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<Attribute>,
}

#[derive(Clone, PartialEq, Message)]
struct OfScope {
    #[prost(message, repeated, tag = "2")]
    spans: Vec<Span>,
}

/// A span.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Span {
    #[prost(bytes = "vec", tag = "1")]
    trace: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    id: Vec<u8>,
    #[prost(string, tag = "3")]
    pub(crate) state: String,
    #[prost(bytes = "vec", tag = "4")]
    parent: Vec<u8>,
    #[prost(int32, tag = "6")]
    pub(crate) kind: i32,
    #[prost(fixed64, tag = "7")]
    pub(crate) start_ns: u64,
    #[prost(fixed64, tag = "8")]
    pub(crate) end_ns: u64,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<Attribute>,
    #[prost(message, optional, tag = "15")]
    pub(crate) status: Option<SpanStatus>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SpanStatus {
    #[prost(int32, tag = "3")]
    pub(crate) code: i32,
}

#[derive(Clone, PartialEq, Message)]
struct Attribute {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, required, tag = "2")]
    value: Value,
}

#[derive(Clone, PartialEq, Message)]
struct Value {
    #[prost(oneof = "ValueKind", tags = "1, 3")]
    kind: Option<ValueKind>,
}

#[derive(Clone, PartialEq, Oneof)]
enum ValueKind {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(int64, tag = "3")]
    Number(i64),
}

#[derive(Clone, PartialEq, Message)]
struct Partial {
    #[prost(message, required, tag = "1")]
    partial: PartialSuccess,
}

#[derive(Clone, PartialEq, Message)]
struct PartialSuccess {
    #[prost(int64, tag = "1")]
    rejected: i64,
    #[prost(string, tag = "2")]
    words: String,
}

impl Span {
    /// The trace id in hexadecimal digits.
    pub(crate) fn trace(&self) -> String {
        HEXLOWER.encode(&self.trace)
    }

    /// The span id in hexadecimal digits.
    pub(crate) fn id(&self) -> String {
        HEXLOWER.encode(&self.id)
    }

    /// The parent's id, or the empty string.
    pub(crate) fn parent(&self) -> String {
        HEXLOWER.encode(&self.parent)
    }
}

/// An attribute of a span, or the empty string.
pub(crate) fn attribute(span: &Span, key: &str) -> String {
    text_of(&span.attributes, key)
}

fn text_of(attributes: &[Attribute], key: &str) -> String {
    let found = attributes.iter().find(|own| own.key == key);
    match found.and_then(|own| own.value.kind.as_ref()) {
        Some(ValueKind::Text(text)) => text.clone(),
        Some(ValueKind::Number(number)) => number.to_string(),
        None => String::new(),
    }
}

/// A response to one delivery.
pub(crate) struct Answer {
    status: u16,
    fields: &'static str,
    body: Vec<u8>,
}

impl Answer {
    /// A rejection; `fields` are lines with their CRLF.
    pub(crate) fn refusal(status: u16, fields: &'static str, body: &str) -> Self {
        Self { status, fields, body: body.as_bytes().to_vec() }
    }

    /// A response that rejects so many spans.
    pub(crate) fn rejecting(rejected: i64, words: &str) -> Self {
        let partial = PartialSuccess { rejected, words: words.to_owned() };
        let body = Partial { partial }.encode_to_vec();
        Self { status: 200, fields: "Content-Type: application/x-protobuf\r\n", body }
    }
}

#[derive(Default)]
struct Kept {
    spans: Vec<Span>,
    heads: Vec<String>,
    connections: usize,
    answers: VecDeque<Answer>,
}

/// A collector that keeps what it gets.
pub(crate) struct Collector {
    pub(crate) port: u16,
    kept: Arc<Mutex<Kept>>,
}

impl Collector {
    pub(crate) async fn start() -> Self {
        Self::listen(None).await
    }

    /// A collector with TLS.
    pub(crate) async fn secure(acceptor: TlsAcceptor) -> Self {
        Self::listen(Some(acceptor)).await
    }

    async fn listen(acceptor: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let kept = Arc::<Mutex<Kept>>::default();
        let own = Arc::clone(&kept);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (kept, acceptor) = (Arc::clone(&own), acceptor.clone());
                kept.lock().connections += 1;
                tokio::spawn(async move {
                    match acceptor {
                        Some(acceptor) => {
                            if let Ok(stream) = acceptor.accept(stream).await {
                                serve(stream, &kept).await;
                            }
                        }
                        None => serve(stream, &kept).await,
                    }
                });
            }
        });
        Self { port, kept }
    }

    /// Sets the responses to the next deliveries; further ones are accepted.
    pub(crate) fn answer(&self, answers: impl IntoIterator<Item = Answer>) {
        self.kept.lock().answers.extend(answers);
    }

    /// Waits for `count` spans.
    pub(crate) async fn spans(&self, count: usize) -> Vec<Span> {
        eventually("the spans", async || self.kept.lock().spans.len() >= count).await;
        let spans = self.kept.lock().spans.clone();
        assert_eq!(spans.len(), count, "{spans:#?}");
        spans
    }

    /// The heads of all deliveries.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.kept.lock().heads.clone()
    }

    /// Connections so far.
    pub(crate) fn connections(&self) -> usize {
        self.kept.lock().connections
    }
}

/// Serves deliveries until the connection ends.
async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, kept: &Mutex<Kept>) {
    let mut bytes = Vec::new();
    while let Some((head, body)) = take(&mut stream, &mut bytes).await {
        let is_gzip = head.contains("\r\nContent-Encoding: gzip\r\n");
        let spans = spans_of(&body, is_gzip);
        let answer = {
            let mut kept = kept.lock();
            kept.heads.push(head);
            let answer = kept.answers.pop_front();
            let answer = answer.unwrap_or(Answer { status: 200, fields: "", body: Vec::new() });
            if answer.status == 200 {
                kept.spans.extend(spans);
            }
            answer
        };
        let Answer { status, fields, body } = answer;
        let length = body.len();
        let head = format!("HTTP/1.1 {status} x\r\n{fields}Content-Length: {length}\r\n\r\n");
        let answer = [head.as_bytes(), &body].concat();
        if stream.write_all(&answer).await.is_err() || stream.flush().await.is_err() {
            return;
        }
    }
}

/// Reads one delivery: its head and its body.
async fn take(
    stream: &mut (impl AsyncRead + Unpin),
    bytes: &mut Vec<u8>,
) -> Option<(String, Vec<u8>)> {
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..end + 2].to_vec()).expect("a head");
            assert!(head.starts_with("POST /otlp/v1/traces HTTP/1.1\r\n"), "{head}");
            assert!(head.contains("\r\nContent-Type: application/x-protobuf\r\n"), "{head}");
            let length = head.split("\r\nContent-Length: ").nth(1).expect("a length");
            let length: usize = length.split("\r\n").next().expect("a line").parse().expect("it");
            let whole = end + 4 + length;
            if bytes.len() >= whole {
                let body = bytes[end + 4..whole].to_vec();
                bytes.drain(..whole);
                return Some((head, body));
            }
        }
        if !matches!(stream.read_buf(bytes).await, Ok(1..)) {
            assert!(bytes.is_empty(), "cut off: {}", String::from_utf8_lossy(bytes));
            return None;
        }
    }
}

fn spans_of(body: &[u8], is_gzip: bool) -> Vec<Span> {
    let mut plain = Vec::new();
    match is_gzip {
        true => _ = GzDecoder::new(body).read_to_end(&mut plain).expect("gzip"),
        false => plain.extend_from_slice(body),
    }
    let request = Request::decode(&*plain).expect("a message");
    let [of_resource] = &*request.resources else { panic!("{request:#?}") };
    assert_eq!(text_of(&of_resource.resource.attributes, "service.name"), "larder");
    let spans = of_resource.scopes.iter().flat_map(|scope| &scope.spans);
    spans.cloned().inspect(|span| assert_eq!((span.trace.len(), span.id.len()), (16, 8))).collect()
}
