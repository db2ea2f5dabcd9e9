//! The admin listener: metrics and counters for who may look, reload for who may change.
//!
//! The socket in the file system is open to the daemon's user alone and may do everything; a TCP
//! address only shows figures, and only under a host name of this machine, so that no web page can
//! be tricked into asking.

use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base::Limits;
use config::ListenSpec;
use h1::encode::{self, BodyFraming, ConnectionHeader};
use h1::{HeadLimits, Progress, RequestReader};
use message::{HeaderBlock, HeaderId, Method, Request, Scheme, Status};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};

use crate::metrics;
use crate::serve::Daemon;

/// A whole admin exchange may take this long.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Starts the listeners; one that cannot be had is told and does without.
pub(crate) fn start(daemon: &Arc<Daemon>, socket: &Path, tcp: Option<&ListenSpec>) {
    match bind_socket(socket) {
        Ok(listener) => _ = tokio::spawn(serve_unix(Arc::clone(daemon), listener)),
        Err(e) => eprintln!("larder: no admin socket at {}: {e}", socket.display()),
    }
    for address in tcp.into_iter().flat_map(|listen| &listen.addresses) {
        let (daemon, address) = (Arc::clone(daemon), *address);
        tokio::spawn(async move {
            match TcpListener::bind(address).await {
                Ok(listener) => {
                    if let Ok(bound) = listener.local_addr() {
                        eprintln!("larder: admin listening on {bound}");
                    }
                    serve_tcp(daemon, listener).await;
                }
                Err(e) => eprintln!("larder: no admin listener on {address}: {e}"),
            }
        });
    }
}

fn bind_socket(path: &Path) -> io::Result<UnixListener> {
    if let Some(dir) = path.parent()
        && !dir.exists()
    {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    if path.exists() {
        // A socket that nobody answers on was left behind by a daemon that did not end well.
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "another daemon answers there"));
        }
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

async fn serve_unix(daemon: Arc<Daemon>, listener: UnixListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let daemon = Arc::clone(&daemon);
                tokio::spawn(tokio::time::timeout(TIMEOUT, answer(daemon, stream, true)));
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn serve_tcp(daemon: Arc<Daemon>, listener: TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let daemon = Arc::clone(&daemon);
                tokio::spawn(tokio::time::timeout(TIMEOUT, answer(daemon, stream, false)));
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Reads one request and answers it.
async fn answer(
    daemon: Arc<Daemon>,
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    may_change: bool,
) -> io::Result<()> {
    let limits = HeadLimits::from(&Limits::default());
    let (mut reader, mut request) = (RequestReader::new(), Request::new());
    let mut input = Vec::new();
    let (code, kind, body) = loop {
        if stream.read_buf(&mut input).await? == 0 {
            return Ok(());
        }
        match reader.read(&input, &limits, Scheme::Http, &mut request) {
            Ok(Progress::Partial) => {}
            Ok(Progress::Complete(_)) => break route(&daemon, &request, may_change),
            Err(error) => break (error.status().code(), TEXT, format!("{error}\n")),
        }
    };
    let mut fields = HeaderBlock::new();
    fields.push(HeaderId::ContentType, kind);
    fields.push(HeaderId::CacheControl, b"no-store");
    let status = Status::new(code).unwrap_or(Status::OK);
    let mut out = Vec::new();
    encode::stored_head(&mut out, status, b"", &fields);
    let framing = BodyFraming::Length(body.len() as u64);
    encode::response_tail(&mut out, framing, ConnectionHeader::Close);
    out.extend_from_slice(body.as_bytes());
    stream.write_all(&out).await?;
    stream.shutdown().await
}

const TEXT: &[u8] = b"text/plain; charset=utf-8";
const JSON: &[u8] = b"application/json";
const PROMETHEUS: &[u8] = b"text/plain; version=0.0.4";

fn route(daemon: &Daemon, request: &Request, may_change: bool) -> (u16, &'static [u8], String) {
    if !may_change && !is_local_name(&request.host) {
        return (421, TEXT, "This address is not asked under that name.\n".to_owned());
    }
    match (&request.method, request.path()) {
        (Method::Get, b"/healthz") => (200, TEXT, "ok\n".to_owned()),
        (Method::Get, b"/metrics") => (200, PROMETHEUS, metrics::page(daemon)),
        (Method::Get, b"/stats") => (200, JSON, metrics::json(daemon)),
        (Method::Get, b"/ring") if may_change => ring(daemon),
        (Method::Post, b"/reload") if !may_change => {
            (403, TEXT, "Changes are taken on the admin socket only.\n".to_owned())
        }
        (Method::Post, b"/reload") => match daemon.reload() {
            Ok(()) => (200, TEXT, "configuration reloaded\n".to_owned()),
            Err(problems) => (422, TEXT, format!("{problems}\nthe running configuration stays\n")),
        },
        (_, b"/healthz" | b"/metrics" | b"/stats" | b"/reload") => {
            (405, TEXT, "Not with this method.\n".to_owned())
        }
        _ => (404, TEXT, "Nothing here.\n".to_owned()),
    }
}

/// Where the log ring is.
fn ring(daemon: &Daemon) -> (u16, &'static [u8], String) {
    match &daemon.ring {
        Some(ring) => {
            let folder = ring.folder().to_string_lossy();
            let answer = serde_json::json!({ "folder": folder, "size": ring.size() });
            (200, JSON, format!("{answer}\n"))
        }
        None => (404, TEXT, "The log ring is off: see `log_ring`.\n".to_owned()),
    }
}

/// Names under which a browser cannot be led here by somebody else's DNS.
fn is_local_name(host: &[u8]) -> bool {
    let text = String::from_utf8_lossy(host);
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    text == "localhost" || bare.parse::<std::net::IpAddr>().is_ok()
}
