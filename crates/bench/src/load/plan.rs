//! The plan of a run: its requests serialised, its servers resolved. Threads share it and never
//! change it.

use bytes::Bytes;
use h1::HeadLimits;
use message::Method;

use super::facts::Precondition;
use super::stream::Endpoint;
use crate::settings::{Protocol, Settings};
use crate::target::TargetServer;
use crate::urls::{Body, ListedRequest};

/// The data that the threads of a run share.
pub(crate) struct LoadPlan {
    pub(crate) settings: Settings,
    pub(crate) endpoints: Vec<Endpoint>,
    /// The requests; one with a path has an entry for each server.
    asks: Vec<PreparedRequest>,
    spread: usize,
    pub(crate) head_limits: HeadLimits,
}

/// A serialised request.
pub(crate) struct PreparedRequest {
    /// The request's number in the list.
    pub(crate) number: u32,
    /// The server's number.
    pub(crate) endpoint: usize,
    pub(crate) method: Method,
    /// The bytes for HTTP/1, and the offset of the end of the fields.
    pub(crate) bytes: Vec<u8>,
    pub(crate) fields_end: usize,
    head: http::Request<()>,
    pub(crate) body: Bytes,
}

impl PreparedRequest {
    /// The head for HTTP/2, with a precondition if there is one.
    pub(crate) fn head(&self, condition: Option<&Precondition>) -> http::Request<()> {
        let mut head = self.head.clone();
        if let Some(Precondition { name, value }) = condition
            && let Ok(value) = http::HeaderValue::from_str(value)
        {
            head.headers_mut().insert(*name, value);
        }
        head
    }
}

impl LoadPlan {
    /// Prepares a plan of `settings`.
    pub(crate) fn new(settings: &Settings) -> Result<Self, String> {
        if settings.list.is_empty() {
            return Err("the list of URLs is empty".to_owned());
        }
        let spread = settings.targets.len().max(1);
        let mut targets = settings.targets.clone();
        let mut asks = Vec::with_capacity(settings.list.asks().len() * spread);
        for (ask, number) in settings.list.asks().iter().zip(0..) {
            let body = body(ask)?;
            for turn in 0..spread {
                asks.push(prepared(ask, &body, number, turn, &mut targets, settings)?);
            }
        }
        let protocol: &[&str] = match settings.protocol {
            Protocol::Http1 { .. } => &["http/1.1"],
            Protocol::Http2 { .. } => &["h2"],
        };
        let secure = targets.iter().any(|target| target.secure);
        let authorities = settings.tls.authorities.as_deref().filter(|_| secure);
        let upstream = tls::Upstream::new(authorities, None)
            .map_err(|error| error.to_string())?
            .offering(protocol, settings.tls.resume);
        let http2 = matches!(settings.protocol, Protocol::Http2 { .. });
        let endpoints = targets
            .iter()
            .map(|target| Endpoint::new(target, &upstream, http2))
            .collect::<Result<_, _>>()?;
        let head_limits = HeadLimits::of_origins(&base::Limits::default());
        Ok(Self { settings: settings.clone(), endpoints, asks, spread, head_limits })
    }

    /// Request `number` of the list, for the `turn`th time: turns alternate between servers.
    pub(crate) fn ask(&self, number: u32, turn: usize) -> Option<&PreparedRequest> {
        self.asks.get(number as usize * self.spread + turn % self.spread)
    }
}

fn body(ask: &ListedRequest) -> Result<Bytes, String> {
    match &ask.body {
        Body::None => Ok(Bytes::new()),
        Body::Text(text) => Ok(Bytes::copy_from_slice(text.as_bytes())),
        Body::File(path) => std::fs::read(path)
            .map(Bytes::from)
            .map_err(|error| format!("body of {}: {}: {error}", ask.url, path.display())),
    }
}

/// Prepares a request to the server in its URL, or to the server whose turn it is.
fn prepared(
    ask: &ListedRequest,
    body: &Bytes,
    number: u32,
    turn: usize,
    targets: &mut Vec<TargetServer>,
    settings: &Settings,
) -> Result<PreparedRequest, String> {
    let (endpoint, path) = if ask.url.starts_with('/') {
        if settings.targets.is_empty() {
            return Err(format!("{}: a path needs a server: name one by its URL", ask.url));
        }
        (turn, ask.url.clone())
    } else {
        let (mut target, path) = TargetServer::parse(&ask.url)?;
        if let Some(same) = targets.iter().find(|own| {
            (own.secure, &own.host, own.port) == (target.secure, &target.host, target.port)
        }) {
            target.unix_socket.clone_from(&same.unix_socket);
        }
        let known = targets.iter().position(|own| *own == target);
        let endpoint = known.unwrap_or_else(|| {
            targets.push(target);
            targets.len() - 1
        });
        (endpoint, path)
    };
    let target = targets.get(endpoint).ok_or("a request without a server")?;
    let bytes = serialised(ask, &path, target, body, settings);
    Ok(PreparedRequest {
        number,
        endpoint,
        method: Method::from_token(ask.method.as_bytes()),
        // Offset of the empty line.
        fields_end: bytes.len().saturating_sub(body.len() + 2),
        bytes,
        head: head(ask, &path, target, body, settings)?,
        body: body.clone(),
    })
}

/// Serialises a request for HTTP/1. A field of the settings replaces a default one.
fn serialised(
    ask: &ListedRequest,
    path: &str,
    target: &TargetServer,
    body: &Bytes,
    settings: &Settings,
) -> Vec<u8> {
    let (old, keep_alive) = match settings.protocol {
        Protocol::Http1 { old, keep_alive, .. } => (old, keep_alive),
        Protocol::Http2 { .. } => (false, true),
    };
    let version = if old { "1.0" } else { "1.1" };
    let mut out = format!("{} {path} HTTP/{version}\r\n", ask.method);
    let mut field = |name: &str, value: &str| {
        out.push_str(name);
        out.push_str(": ");
        out.push_str(value);
        out.push_str("\r\n");
    };
    for (name, value) in own_fields(target, body, settings) {
        field(name, &value);
    }
    for (name, value) in &settings.headers {
        field(name, value);
    }
    match (old, keep_alive) {
        (false, false) => field("Connection", "close"),
        (true, true) => field("Connection", "keep-alive"),
        _ => {}
    }
    out.push_str("\r\n");
    let mut out = out.into_bytes();
    out.extend_from_slice(body);
    out
}

/// Default fields that the settings do not replace.
fn own_fields(
    target: &TargetServer,
    body: &Bytes,
    settings: &Settings,
) -> impl Iterator<Item = (&'static str, String)> {
    let length = (!body.is_empty()).then(|| ("Content-Length", body.len().to_string()));
    let given = |name: &str| settings.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
    let fields = [
        ("Host", target.authority()),
        ("User-Agent", format!("larder-bench/{}", env!("CARGO_PKG_VERSION"))),
        ("Accept", "*/*".to_owned()),
    ];
    let kept: Vec<_> = fields.into_iter().filter(|(name, _)| !given(name)).chain(length).collect();
    kept.into_iter()
}

/// Makes the head of a request for HTTP/2.
fn head(
    ask: &ListedRequest,
    path: &str,
    target: &TargetServer,
    body: &Bytes,
    settings: &Settings,
) -> Result<http::Request<()>, String> {
    let host = settings.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"));
    let authority = host.map_or_else(|| target.authority(), |(_, value)| value.clone());
    let mut builder = http::Request::builder()
        .method(ask.method.as_str())
        .uri(format!("{}://{authority}{path}", target.scheme()));
    for (name, value) in own_fields(target, body, settings) {
        if name != "Host" {
            builder = builder.header(name, value);
        }
    }
    for (name, value) in &settings.headers {
        if !name.eq_ignore_ascii_case("host") {
            builder = builder.header(name, value);
        }
    }
    builder.body(()).map_err(|error| format!("{} {}: {error}", ask.method, ask.url))
}
