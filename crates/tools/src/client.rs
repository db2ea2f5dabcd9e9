//! The client of the admin socket, and the verbs that are one request to it: `reload` and `purge`.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::Limits;
use clap::Args;
use h1::{HeadLimits, ReadProgress, ResponseReader};
use message::{Framing, Method, Response, Status};
use serde_json::{Map, Value, json};

use crate::socket_help;

/// Time limit of a response. Counting the objects that a purge selects takes some seconds, and an
/// upgrade copies memory to the disk.
const PATIENCE: Duration = Duration::from_secs(90);

/// The daemon's admin socket.
#[derive(Clone, Debug, Args)]
pub struct AdminArgs {
    /// The daemon's admin socket; by default /run/larder/admin.sock for root, and
    /// $XDG_RUNTIME_DIR/larder-admin.sock for others.
    #[arg(
        long,
        value_name = "PATH",
        default_value_os_t = default_socket(),
        hide_default_value = true
    )]
    pub admin_socket: PathBuf,
}

/// The default socket: in `/run/larder` for root, in the session's runtime folder for others.
pub fn default_socket() -> PathBuf {
    if rustix::process::geteuid().is_root() {
        return PathBuf::from("/run/larder/admin.sock");
    }
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(dir) => PathBuf::from(dir).join("larder-admin.sock"),
        None => std::env::temp_dir()
            .join(format!("larder-{}", rustix::process::geteuid().as_raw()))
            .join("admin.sock"),
    }
}

/// Runs `larder reload`.
///
/// # Errors
/// A message for standard error.
pub fn reload(socket: &Path) -> Result<(), String> {
    match ask(socket, "POST", "/reload")? {
        (200, body) => {
            base::show!("{}", body.trim_end());
            Ok(())
        }
        (_, body) => Err(body),
    }
}

/// The objects that a purge selects.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  \
                  larder purge https://example.org/page\n  \
                  larder purge --prefix https://example.org/shop/\n  \
                  larder purge --tag product-17 --tag product-18 --soft\n  \
                  larder purge --ban 'req.http.host == example.org && obj.status == 404'")]
#[group(id = "what", required = true, multiple = true)]
pub(crate) struct PurgeSelection {
    /// Purge these URLs, with scheme and host: every variant, over http and https.
    #[arg(value_name = "URL")]
    urls: Vec<String>,
    /// Purge the objects with this surrogate key; repeatable. With --host, only those of that host.
    #[arg(long, value_name = "TAG", conflicts_with = "urls")]
    tag: Vec<String>,
    /// Purge the objects of this host.
    #[arg(long, value_name = "HOST", conflicts_with = "urls")]
    host: Option<String>,
    /// Purge the objects whose URL begins like this; a path alone applies to every host.
    #[arg(long, value_name = "URL", conflicts_with_all = ["urls", "tag", "host"])]
    prefix: Option<String>,
    /// Purge the objects that match this expression in Varnish's ban language.
    #[arg(long, value_name = "EXPRESSION", conflicts_with_all = ["urls", "tag", "host", "prefix"])]
    ban: Option<String>,
    /// Purge all objects.
    #[arg(long, conflicts_with_all = ["urls", "tag", "host", "prefix", "ban"])]
    all: bool,
}

/// Invalidate stored objects. Once the daemon has answered, it serves none of them as fresh.
#[derive(Clone, Debug, Args)]
#[command(arg_required_else_help = true)]
pub struct PurgeArgs {
    #[command(flatten)]
    what: PurgeSelection,
    /// Make the objects stale instead of removing them: they may be served while one fetch renews
    /// them.
    #[arg(long)]
    soft: bool,
    /// In a cluster: answer when the purge is in force on this node, when the stream has stored it,
    /// or when every live node has applied it. The default is `[cluster] acknowledge`.
    #[arg(long, value_name = "LEVEL", value_parser = ["local", "quorum", "all"])]
    wait: Option<String>,
    /// Print the response as JSON: `purged` and `pending`.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    admin: AdminArgs,
}

/// Runs `larder purge`.
///
/// # Errors
/// A message for standard error.
pub fn purge(args: &PurgeArgs) -> Result<(), String> {
    let PurgeSelection { urls, tag, host, prefix, ban, all } = &args.what;
    let mut wanted = Map::new();
    let mut put = |name: &str, value: Value| _ = wanted.insert(name.to_owned(), value);
    if !urls.is_empty() {
        put("url", json!(urls));
    }
    if !tag.is_empty() {
        put("tags", json!(tag));
    }
    for (name, text) in [("host", host), ("prefix", prefix), ("ban", ban)] {
        if let Some(text) = text {
            put(name, json!(text));
        }
    }
    if *all {
        put("all", json!(true));
    }
    put("soft", json!(args.soft));
    if let Some(level) = &args.wait {
        put("wait", json!(level));
    }
    let answer = call(&args.admin.admin_socket, "/api/v1/purge", &Value::Object(wanted))?;
    if args.json {
        base::show!("{answer}");
        return Ok(());
    }
    let count = answer["purged"].as_u64().unwrap_or_default();
    let verb = if args.soft { "made stale" } else { "purged" };
    let responses = if count == 1 { "response" } else { "responses" };
    let line = match (count, answer["pending"].as_bool().unwrap_or_default()) {
        (_, true) => {
            format!("{verb}: {count} {responses} so far; the others are already invalid")
        }
        (0, false) if urls.iter().any(|url| url.ends_with('*')) => {
            "no stored object matches; `--prefix` selects all URLs that begin so".to_owned()
        }
        (0, false) => "no stored object matches".to_owned(),
        (_, false) => format!("{verb}: {count} {responses}"),
    };
    base::show!("{line}");
    Ok(())
}

/// Purges all objects of the daemon at `socket`.
///
/// # Errors
/// A message for standard error.
pub fn purge_all(socket: &Path) -> Result<(), String> {
    call(socket, "/api/v1/purge", &json!({ "all": true })).map(drop)
}

/// Sends a POST with JSON. A status other than 200 is an error with the daemon's reason.
pub(crate) fn call(socket: &Path, path: &str, body: &Value) -> Result<Value, String> {
    let (status, text) = exchange(socket, "POST", path, Some(&body.to_string()))?;
    let answer: Value = serde_json::from_str(&text).unwrap_or_default();
    match (status, answer["error"].as_str()) {
        (200, _) => Ok(answer),
        (_, Some(why)) => Err(format!("larder: {why}")),
        (404, None) => {
            Err("larder: the running daemon is of a version that does not support this".to_owned())
        }
        (_, None) => Err(format!("larder: unexpected answer ({status}): {}", text.trim_end())),
    }
}

/// Sends a request to the admin socket. Returns status and body.
pub(crate) fn ask(socket: &Path, method: &str, path: &str) -> Result<(u16, String), String> {
    exchange(socket, method, path, None)
}

/// Sends a POST with JSON. Returns status and body.
pub(crate) fn post(socket: &Path, path: &str, body: &Value) -> Result<(u16, String), String> {
    exchange(socket, "POST", path, Some(&body.to_string()))
}

fn exchange(
    socket: &Path,
    method: &str,
    path: &str,
    body: Option<&str>,
) -> Result<(u16, String), String> {
    let failed =
        |e: io::Error| format!("larder: no running daemon answers at {}: {e}", socket.display());
    let mut stream =
        UnixStream::connect(socket).map_err(|error| socket_help::unanswered(socket, &error))?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    let fields = body.map_or_else(String::new, |body| {
        format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len())
    });
    let body = body.unwrap_or_default();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{fields}\r\n{body}"
    );
    stream.write_all(request.as_bytes()).map_err(failed)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).map_err(failed)?;
    read(&answer, method).ok_or_else(|| "larder: the daemon's answer cannot be read".to_owned())
}

/// Parses a complete response to status and body.
fn read(bytes: &[u8], method: &str) -> Option<(u16, String)> {
    let mut response = Response::new(Status::OK);
    let limits = HeadLimits::from(&Limits::default());
    let method = Method::from_token(method.as_bytes());
    let read = ResponseReader::new().read(bytes, &limits, &method, &mut response);
    let Ok(ReadProgress::Complete(head)) = read else { return None };
    let body = &bytes[head.consumed..];
    let whole = head.framing == Framing::Length(body.len() as u64);
    whole.then(|| (response.status.code(), String::from_utf8_lossy(body).into_owned()))
}
