//! Probes: a small GET to a server at intervals, on a new connection, as in Varnish.

mod multiplexed;

use std::fmt;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;
use std::time::Duration;

use base::units::DurationMs;
use fastcgi::params::{self, Environment, Script};
use h1::{HeadLimits, ReadProgress, ResponseError, ResponseReader};
use message::{Method, Request, Response, Scheme, Status};
use rt::time::{Instant, MissedTickBehavior};

use self::multiplexed::ProbeCall;
use crate::config::{Address, HttpVersion, OriginConfig, ProbeConfig, Protocol, ServerConfig};
use crate::deadline::Deadline;
use crate::error::{Error, TimeoutStep};
use crate::fastcgi_exchange::{FastCgiContext, FastCgiResponse};
use crate::health::{Family, ProbeResult, ProbeVerdict};
use crate::journal::{HealthChange, Journal};
use crate::request_tries::opening;
use crate::server::Server;
use crate::stream::Stream;
use crate::upstream_connection::UpstreamConnection;

/// Longest head of a response to a probe; far above what a health page sends.
const HEAD_BYTES: usize = 16 << 10;

/// Bytes kept of a response that is judged by its first line.
const LINE_BYTES: usize = 128;

/// Shortest interval between probes: without one, probes would be a load test.
const INTERVAL_MIN_MS: u64 = 10;

/// Probes `server` of the named origin without end, and records the results.
pub(crate) async fn probe_for_ever(
    server: Arc<Server>,
    request: ProbeRequest,
    probe: ProbeConfig,
    origin: Arc<str>,
    journal: Option<Arc<dyn Journal>>,
) {
    let Some(window) = &server.probes else { return };
    let interval = Duration::from_millis(probe.interval_ms.max(INTERVAL_MIN_MS));
    let mut ticks = rt::time::interval(interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let begun = Instant::now();
        let mut seen = ProbeResult::default();
        let outcome = probe_once(&server, &request, &probe, &mut seen).await;
        seen.ended(&outcome);
        seen.seconds = begun.elapsed().as_secs_f64();
        let seconds = seen.seconds;
        let was_sick = window.state() == ProbeVerdict::Sick;
        if window.note(seen, probe.window, probe.threshold) {
            server.note_change();
            if was_sick {
                server.recovered(rt::now().mono_ms);
            }
            let why = outcome.as_ref().err().map(ToString::to_string);
            if let Some(journal) = &journal {
                journal.probed(&HealthChange {
                    origin: &origin,
                    server: &server.name,
                    healthy: window.state() == ProbeVerdict::Healthy,
                    good: window.bits().count_ones(),
                    window: probe.window,
                    threshold: probe.threshold,
                    seconds,
                    why: why.as_deref(),
                });
            }
        }
        if let Err(error) = outcome {
            server.note_error(format!("probe: {error}"));
        }
    }
}

/// A probe's request, in the forms of the versions that its server may choose.
pub(crate) struct ProbeRequest {
    /// HTTP/1.1, or FastCGI's records.
    head: Vec<u8>,
    /// HTTP/2.
    call: ProbeCall,
}

impl ProbeRequest {
    /// The request for `server`.
    pub(crate) fn new(server: &ServerConfig, origin: &OriginConfig, probe: &ProbeConfig) -> Self {
        let host = &host_of(server, origin, probe);
        let call = match &probe.grpc {
            None => ProbeCall::get(host, &probe.path),
            Some(service) => ProbeCall::health_check(host, service),
        };
        Self { head: request_head(server, origin, probe), call }
    }
}

/// The Host of a probe's request.
fn host_of(server: &ServerConfig, origin: &OriginConfig, probe: &ProbeConfig) -> String {
    let hosts = [&probe.host, &origin.host_header, &origin.host_default];
    hosts.into_iter().find_map(Clone::clone).unwrap_or_else(|| match &server.address {
        address @ (Address::Tcp { .. } | Address::Fixed { .. }) => address.to_string(),
        // A socket has no name for a Host field.
        Address::Unix(_) => "localhost".to_owned(),
    })
}

/// The probe's request for `server`. A FastCGI server gets a request for a script with the probe's
/// path, as PHP-FPM's `ping.path` expects.
fn request_head(server: &ServerConfig, origin: &OriginConfig, probe: &ProbeConfig) -> Vec<u8> {
    if let Some(request) = &probe.request {
        return request.clone();
    }
    let host = &host_of(server, origin, probe);
    if server.protocol == Protocol::FastCgi {
        return script_request(host, origin, probe);
    }
    format!(
        "GET {} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: larder-probe\r\nConnection: close\r\n\r\n",
        probe.path
    )
    .into_bytes()
}

fn script_request(host: &str, origin: &OriginConfig, probe: &ProbeConfig) -> Vec<u8> {
    let mut request = Request::new();
    request.host = host.as_bytes().to_vec();
    request.target = probe.path.as_bytes().to_vec();
    let root = origin.scripts.as_ref().map(|scripts| scripts.root.as_os_str().as_bytes());
    let env = Environment {
        script: Script { root: root.unwrap_or_default(), name: request.path(), path_info: b"" },
        client: None,
        client_port: None,
        server: None,
        software: "larder-probe",
        added: origin.scripts.as_ref().map_or(&[], |scripts| &scripts.params),
    };
    let mut out = Vec::new();
    fastcgi::encode::begin_request(&mut out, false);
    params::write(&mut out, &request, &env);
    out.extend_from_slice(fastcgi::encode::STDIN_END);
    out
}

/// The reason why a probe failed.
#[derive(Debug)]
enum ProbeError {
    Connect(Error),
    Timeout {
        after_ms: u64,
    },
    Io(io::Error),
    Closed,
    Response(ResponseError),
    Line,
    Script(Error),
    Status(Status),
    /// The version of HTTP/2 that the server did not choose.
    NotHttp2,
    Frames(h2::ConnectionError),
    Fields(h2::ResponseError),
    Reset(u32),
    /// A failed call, with its status.
    Call(String),
    NotServing,
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(error) | Self::Script(error) => error.fmt(f),
            Self::Timeout { after_ms } => write!(f, "no answer within {}", DurationMs(*after_ms)),
            Self::Io(error) => error.fmt(f),
            Self::Closed => f.write_str("closed before the end of the response's head"),
            Self::Response(error) => write!(f, "bad response: {error}"),
            Self::Line => f.write_str("the response is not HTTP"),
            Self::Status(status) => write!(f, "status {status}"),
            Self::NotHttp2 => f.write_str("the server does not speak HTTP/2"),
            Self::Frames(error) => write!(f, "bad HTTP/2: {error}"),
            Self::Fields(error) => write!(f, "bad response: {error}"),
            Self::Reset(code) => {
                write!(f, "ended without a response ({})", h2::Code::name(*code).unwrap_or("?"))
            }
            Self::Call(status) => write!(f, "grpc-status {status}"),
            Self::NotServing => f.write_str("the gRPC service is not serving"),
        }
    }
}

impl ProbeResult {
    /// Records the result of a probe.
    fn ended(&mut self, outcome: &Result<(), ProbeError>) {
        let broken = matches!(outcome, Err(ProbeError::Io(_) | ProbeError::Timeout { .. }))
            && self.connected.is_some();
        self.good = outcome.is_ok();
        self.unsent = broken && !self.sent;
        self.failed = broken && self.sent;
        self.received = self.sent && !broken && !matches!(outcome, Err(ProbeError::Closed));
    }
}

async fn probe_once(
    server: &Server,
    request: &ProbeRequest,
    probe: &ProbeConfig,
    seen: &mut ProbeResult,
) -> Result<(), ProbeError> {
    let deadline = Deadline::new(TimeoutStep::Connect, Instant::now(), probe.timeout_ms);
    let asking = async {
        let (stream, peer) = server
            .connect(deadline, server.http != HttpVersion::Http11)
            .await
            .map_err(ProbeError::Connect)?;
        seen.connected = Some(match peer {
            None => Family::Unix,
            Some(SocketAddr::V4(_)) => Family::V4,
            Some(SocketAddr::V6(_)) => Family::V6,
        });
        let mut link = UpstreamConnection::new(stream, peer);
        let mut first = opening(&server.opening, None, &link);
        let (http, tls) = (server.http, server.config.tls);
        let is_http2 = link.stream.chose_http2() || http == HttpVersion::Http2 && !tls;
        if is_http2 {
            let scheme = if tls { Scheme::Https } else { Scheme::Http };
            return request.call.ask(&mut link.stream, first, scheme, &mut seen.sent).await;
        }
        if http == HttpVersion::Http2 || probe.grpc.is_some() {
            return Err(ProbeError::NotHttp2);
        }
        first.extend_from_slice(&request.head);
        write(&mut link.stream, &first).await.map_err(ProbeError::Io)?;
        seen.sent = true;
        match server.config.protocol {
            Protocol::Http if probe.expect_close => read_line(&mut link.stream).await,
            Protocol::Http => read_status(&mut link.stream).await,
            Protocol::FastCgi => read_script_status(&mut link.stream, server).await,
        }
    };
    let status = rt::time::timeout_at(deadline.at, asking)
        .await
        .map_err(|_| ProbeError::Timeout { after_ms: probe.timeout_ms })??;
    if status.code() == probe.expected_status { Ok(()) } else { Err(ProbeError::Status(status)) }
}

async fn write(stream: &mut Stream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let bufs = [IoSlice::new(bytes)];
        match poll_fn(|cx| stream.poll_write_vectored(cx, &bufs)).await? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            taken => bytes = &bytes[taken..],
        }
    }
    Ok(())
}

/// The status in the first line of a response that the server ends by closing the connection.
async fn read_line(stream: &mut Stream) -> Result<Status, ProbeError> {
    let mut buffer = vec![0; HEAD_BYTES];
    let mut end = 0;
    loop {
        // Bytes beyond the first line are dropped: a long page must not fill the memory.
        let from = end.min(LINE_BYTES);
        match poll_fn(|cx| stream.poll_read(cx, &mut buffer[from..])).await {
            Err(error) => return Err(ProbeError::Io(error)),
            Ok(0) if end == 0 => return Err(ProbeError::Closed),
            Ok(0) => return status_of(&buffer[..end]).ok_or(ProbeError::Line),
            Ok(read) => end = (from + read).min(LINE_BYTES),
        }
    }
}

/// The status of a response that begins with `bytes`: the second part of its first line.
fn status_of(bytes: &[u8]) -> Option<Status> {
    let line = bytes.split(|b| matches!(b, b'\r' | b'\n')).next()?;
    let line = std::str::from_utf8(line.strip_prefix(b"HTTP/")?).ok()?;
    let mut words = line.split_ascii_whitespace();
    words.next()?.parse::<f32>().ok()?;
    Status::new(words.next()?.parse().ok()?)
}

/// The status of the final response. The connection is closed after the head.
async fn read_status(stream: &mut Stream) -> Result<Status, ProbeError> {
    let limits =
        HeadLimits { head_bytes: HEAD_BYTES, ..HeadLimits::from(&base::Limits::default()) };
    let mut reader = ResponseReader::new();
    let mut response = Response::new(Status::OK);
    let mut buffer = vec![0; HEAD_BYTES];
    let (mut start, mut end) = (0, 0);
    loop {
        match reader.read(&buffer[start..end], &limits, &Method::Get, &mut response) {
            Ok(ReadProgress::Complete(_)) if !response.status.is_interim() => {
                return Ok(response.status);
            }
            // Interim responses share the buffer with the final one, which limits them.
            Ok(ReadProgress::Complete(head)) => start += head.consumed,
            Ok(ReadProgress::Partial) if end == buffer.len() => return Err(ProbeError::Closed),
            Ok(ReadProgress::Partial) => {
                let read = poll_fn(|cx| stream.poll_read(cx, &mut buffer[end..])).await;
                match read.map_err(ProbeError::Io)? {
                    0 => return Err(ProbeError::Closed),
                    read => end += read,
                }
            }
            Err(error) => return Err(ProbeError::Response(error)),
        }
    }
}

/// The status of a script's response.
async fn read_script_status(stream: &mut Stream, server: &Server) -> Result<Status, ProbeError> {
    let limits = base::Limits::default();
    let reading = FastCgiContext {
        server: &server.name,
        limits: fastcgi::HeadLimits {
            head_bytes: HEAD_BYTES,
            field_bytes: HEAD_BYTES,
            field_count: usize::try_from(limits.header_count).unwrap_or(usize::MAX),
            tag_bytes: 0,
        },
        stderr_bytes: 0,
    };
    let mut talk = FastCgiResponse::default();
    let mut response = Response::new(Status::OK);
    let mut buffer = vec![0; HEAD_BYTES];
    loop {
        let end = poll_fn(|cx| stream.poll_read(cx, &mut buffer)).await.map_err(ProbeError::Io)?;
        if end == 0 {
            return Err(ProbeError::Closed);
        }
        let (read, method) = (&buffer[..end], &Method::Get);
        let head = talk.read_head(read, &mut 0, &reading, method, &mut response, false);
        if head.map_err(ProbeError::Script)?.is_some() {
            return Ok(response.status);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_the_second_word_of_the_first_line() {
        let code = |text: &str| status_of(text.as_bytes()).map(Status::code);
        for good in
            ["HTTP/1.1 200 OK\r\n", "HTTP/1.0 200\nno field", "HTTP/1.1  200 ", "HTTP/2 200"]
        {
            assert_eq!(code(good), Some(200), "{good}");
        }
        for bad in
            ["", "foo\r\n", "HTTP/1.1\r\n200", "HTTP/x 200", "HTTP/1.1 2000", "\r\nHTTP/1.1 200"]
        {
            assert_eq!(code(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_probe_names_the_host_it_is_told_to() {
        let server = crate::parse_server("http://10.0.0.1:8080").expect("a good URL");
        let mut origin =
            OriginConfig::with_limits("o", vec![server.clone()], &base::Limits::default());
        let mut probe = ProbeConfig { path: "/up".to_owned(), ..ProbeConfig::default() };
        let head = |origin: &OriginConfig, probe: &ProbeConfig| {
            String::from_utf8(request_head(&server, origin, probe)).expect("ASCII")
        };
        assert!(head(&origin, &probe).starts_with("GET /up HTTP/1.1\r\nHost: 10.0.0.1:8080\r\n"));
        origin.host_header = Some("shop".to_owned());
        assert!(head(&origin, &probe).contains("\r\nHost: shop\r\n"));
        probe.host = Some("health".to_owned());
        assert!(head(&origin, &probe).contains("\r\nHost: health\r\n"));
    }
}
