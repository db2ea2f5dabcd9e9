//! The client of an authority: one HTTPS exchange for each connection, with the project's own
//! parser and TLS library.
//!
//! It must use only `https://` (RFC 8555 6.1). The time of an exchange, the head and the body are
//! limited.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::{Limit, Limits, Now};
use bytes::Bytes;
use h1::{BodyReader, HeadLimits, ReadProgress, ResponseReader, encode};
use http_body_util::BodyExt;
use instant_acme::{BodyWrapper, BytesBody, BytesResponse, HttpClient};
use message::date::parse_retry_after_ms;
use message::{Framing, HeaderId, Method, Request, Response, Scheme, Status};
use tls::Upstream;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::plan::Bounds;
use crate::report::LimitError;

/// The User-Agent, which RFC 8555 6.1 requires.
pub(crate) const AGENT: &str = concat!("larder/", env!("CARGO_PKG_VERSION"));

/// The divisor of an exchange's time: an address gets this share before the next is tried.
const ADDRESS_SHARE: u64 = 4;

/// A client of the authority. Copies share the time before which it must not be asked.
#[derive(Clone)]
pub(crate) struct Client {
    trust: Upstream,
    bounds: Bounds,
    /// The earliest time of the next request that the authority wants, on the monotonic clock.
    spared_until_ms: Arc<AtomicU64>,
}

impl Client {
    pub(crate) fn new(trust: &Upstream, bounds: Bounds) -> Self {
        Self { trust: trust.clone(), bounds, spared_until_ms: Arc::default() }
    }

    /// Milliseconds for which the authority wants no request, by its last rejection (429 or 503
    /// with Retry-After).
    pub(crate) fn spared_ms(&self) -> u64 {
        self.spared_until_ms.load(Ordering::Relaxed).saturating_sub(rt::now().mono_ms)
    }

    /// Notes the Retry-After of a rejection.
    fn note_refusal(&self, head: &Response, now: Now) {
        if matches!(head.status.code(), 429 | 503) {
            let wait = head.headers.value(HeaderId::RetryAfter);
            let wait_ms = wait.and_then(|value| parse_retry_after_ms(value, now.unix_secs()));
            let until_ms = now.mono_ms.saturating_add(wait_ms.unwrap_or(0));
            self.spared_until_ms.store(until_ms, Ordering::Relaxed);
        }
    }

    async fn ask(
        &self,
        request: http::Request<BodyWrapper<Bytes>>,
    ) -> io::Result<AuthorityResponse> {
        let (parts, body) = request.into_parts();
        let Ok(body) = body.collect().await.map(http_body_util::Collected::to_bytes);
        let request = canonical(&parts, body.len())?;
        let host = String::from_utf8_lossy(&request.host).into_owned();
        let port = request.port.unwrap_or(443);
        let mut stream = connect(&self.trust, &host, port, self.bounds.exchange_ms).await?;
        let mut out = Vec::new();
        encode::request_head(&mut out, &request);
        out.extend_from_slice(&body);
        stream.write_all(&out).await?;
        stream.flush().await?;
        let most = self.bounds.answer_bytes;
        read(&mut stream, &request.method, most, Limit::AcmeAnswerBytes).await
    }

    /// The first address that connects: a machine may have addresses without a route.
    pub(crate) async fn first_of(
        addresses: &[SocketAddr],
        exchange_ms: u64,
    ) -> io::Result<TcpStream> {
        let share = Duration::from_millis(exchange_ms / ADDRESS_SHARE);
        let mut last = io::Error::new(io::ErrorKind::NotFound, "its name has no address");
        for address in addresses {
            last = match rt::time::timeout(share, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => io::Error::new(error.kind(), format!("{address}: {error}")),
                Err(_) => io::Error::new(io::ErrorKind::TimedOut, format!("{address}: no answer")),
            };
        }
        Err(last)
    }
}

/// Connects to a host, whose certificate must be its own.
pub(crate) async fn connect(
    trust: &Upstream,
    host: &str,
    port: u16,
    exchange_ms: u64,
) -> io::Result<TlsStream<TcpStream>> {
    let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let peer = trust.peer(&bare);
    let peer =
        peer.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not a host name"))?;
    let addresses: Vec<_> = tokio::net::lookup_host((bare, port)).await?.collect();
    let tcp = Client::first_of(&addresses, exchange_ms).await?;
    tcp.set_nodelay(true)?;
    let connecting = TlsConnector::from(peer.config()).connect(peer.name(), tcp);
    connecting.await.map_err(tls::explained)
}

impl HttpClient for Client {
    fn request(
        &self,
        request: http::Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, instant_acme::Error>> + Send>> {
        let client = self.clone();
        Box::pin(async move {
            let bound = Duration::from_millis(client.bounds.exchange_ms);
            let answer = rt::time::timeout(bound, client.ask(request)).await;
            let late = |_| LimitError(Limit::AcmeTimeout).into();
            let answer = answer.map_err(late).flatten().map_err(other)?;
            client.note_refusal(&answer.head, rt::now());
            answer.into_response()
        })
    }
}

fn other(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> instant_acme::Error {
    instant_acme::Error::Other(error.into())
}

/// A complete response of the authority.
pub(crate) struct AuthorityResponse {
    pub(crate) head: Response,
    pub(crate) body: Vec<u8>,
}

impl AuthorityResponse {
    fn into_response(self) -> Result<BytesResponse, instant_acme::Error> {
        let mut response = http::Response::builder().status(self.head.status.code());
        for field in self.head.headers.iter() {
            response = response.header(field.name, field.value);
        }
        let (parts, ()) = response.body(())?.into_parts();
        let body: Box<dyn BytesBody> = Box::new(Bytes::from(self.body));
        Ok(BytesResponse { parts, body })
    }
}

/// Converts a request of the ACME library to the canonical form.
fn canonical(parts: &http::request::Parts, body: usize) -> io::Result<Request> {
    let wrong = |what| io::Error::new(io::ErrorKind::InvalidInput, what);
    let method = Method::from_token(parts.method.as_str().as_bytes());
    if parts.uri.scheme_str() != Some("https") {
        return Err(wrong("the authority names a URL without https"));
    }
    let host = parts.uri.host().ok_or_else(|| wrong("the authority names a URL without host"))?;
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let mut request = Request::new();
    request.framing = match body {
        0 => Framing::None,
        length => Framing::Length(length as u64),
    };
    request.method = method;
    request.scheme = Scheme::Https;
    request.host = host.to_ascii_lowercase().into_bytes();
    request.port = parts.uri.port_u16().filter(|port| *port != 443);
    request.target = target.as_bytes().to_vec();
    for (name, value) in &parts.headers {
        if *name != http::header::USER_AGENT {
            request.headers.push_named(name.as_str().as_bytes(), value.as_bytes());
        }
    }
    request.headers.push(HeaderId::UserAgent, AGENT.as_bytes());
    Ok(request)
}

/// Reads one response and ignores any bytes behind it. Its body has at most `body_max` bytes.
pub(crate) async fn read(
    stream: &mut (impl AsyncRead + Unpin),
    method: &Method,
    body_max: u64,
    limit: Limit,
) -> io::Result<AuthorityResponse> {
    let broken = |error: &dyn std::fmt::Display| {
        io::Error::new(io::ErrorKind::InvalidData, format!("its answer cannot be read: {error}"))
    };
    let limits = HeadLimits::from(&Limits::default());
    let (mut reader, mut head) = (ResponseReader::new(), Response::new(Status::OK));
    let mut received = Vec::new();
    let framing = loop {
        match reader.read(&received, &limits, method, &mut head).map_err(|e| broken(&e))? {
            ReadProgress::Complete(read) => {
                received.drain(..read.consumed);
                if !head.status.is_interim() {
                    break read.framing;
                }
            }
            ReadProgress::Partial => more(stream, &mut received).await?,
        }
    };
    let mut body = Vec::new();
    let mut reader = BodyReader::for_response(framing, limits.head_bytes);
    while !reader.is_done() {
        let step = reader.read(&received).map_err(|e| broken(&e))?;
        body.extend_from_slice(&received[step.data]);
        received.drain(..step.consumed);
        if body.len() as u64 > body_max {
            return Err(LimitError(limit).into());
        }
        if step.done || !received.is_empty() {
            continue;
        }
        if stream.read_buf(&mut received).await? == 0 {
            reader.at_eof().map_err(|e| broken(&e))?;
            break;
        }
    }
    Ok(AuthorityResponse { head, body })
}

async fn more(stream: &mut (impl AsyncRead + Unpin), received: &mut Vec<u8>) -> io::Result<()> {
    match stream.read_buf(received).await? {
        0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it closed without an answer")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a response from bytes.
    async fn answered(bytes: &[u8], body_max: u64) -> io::Result<(u16, Vec<u8>)> {
        let limit = Limit::AcmeAnswerBytes;
        let answer = read(&mut &bytes[..], &Method::Get, body_max, limit).await?;
        Ok((answer.head.status.code(), answer.body))
    }

    #[tokio::test]
    async fn answers_are_read_whole_or_not_at_all() {
        let interim = b"HTTP/1.1 103 x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc";
        assert_eq!(answered(interim, 9).await.expect("an answer"), (200, b"ab".to_vec()));
        let chunked = b"HTTP/1.1 201 x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n";
        assert_eq!(answered(chunked, 9).await.expect("an answer"), (201, b"ab".to_vec()));
        let until_close = b"HTTP/1.0 200 OK\r\n\r\nabc";
        assert_eq!(answered(until_close, 9).await.expect("an answer"), (200, b"abc".to_vec()));
        assert!(answered(until_close, 2).await.is_err(), "too long");
        assert!(answered(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na", 9).await.is_err());
        assert!(answered(b"HTTP/1.1 200 OK\r\nContent-", 9).await.is_err());
        assert!(answered(b"", 9).await.is_err());
        assert!(answered(b"junk\r\n\r\n", 9).await.is_err());
    }

    #[test]
    fn only_https_is_spoken_and_the_request_is_made_anew() {
        let parts = |uri: &str| {
            let request = http::Request::post(uri).header("user-agent", "x").header("a", "b");
            request.body(()).expect("a request").into_parts().0
        };
        for uri in ["http://ca.test/dir", "/dir"] {
            assert!(canonical(&parts(uri), 0).is_err(), "{uri}");
        }
        let request = canonical(&parts("https://CA.test:14000/dir?a"), 3).expect("a request");
        let mut out = Vec::new();
        encode::request_head(&mut out, &request);
        let text = String::from_utf8(out).expect("text");
        let head = "POST /dir?a HTTP/1.1\r\nHost: ca.test:14000\r\n";
        assert!(text.starts_with(head), "{text}");
        assert!(text.contains("\r\na: b\r\n") && text.contains(AGENT), "{text}");
        assert!(text.contains("\r\nContent-Length: 3\r\n") && !text.contains(": x"), "{text}");
    }

    #[test]
    fn an_authority_is_spared_for_as_long_as_it_wants() {
        let bounds =
            Bounds { exchange_ms: 1, answer_bytes: 1, order_ms: 1, retry_ms: 1, retry_max_ms: 1 };
        let client = Client::new(&Upstream::new(None, None).expect("a client"), bounds);
        let copy = client.clone();
        let mut head = Response::new(Status::OK);
        head.headers.push(HeaderId::RetryAfter, b"600");
        client.note_refusal(&head, rt::now());
        assert_eq!(client.spared_ms(), 0);
        head.status = Status::new(429).expect("a status");
        client.note_refusal(&head, rt::now());
        assert!((500_000..=600_000).contains(&copy.spared_ms()));
    }
}
