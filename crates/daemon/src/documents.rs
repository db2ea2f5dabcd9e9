//! Documentation: the pages of `make site`, which the admin listener serves below `/docs/`.
//!
//! The pages hold no data, so they need no token. No file outside their folder is ever served.

use std::path::Path;
use std::sync::Arc;

use admin::{AdminResponse, Body};
use bytes::Bytes;
use files::{Config, Depth, HiddenNames, OpenFile, PathLookup, Root};
use http::StatusCode;
use tokio::sync::mpsc;

/// Bytes that are read at once.
const PIECE_BYTES: u64 = 64 << 10;

/// Pieces in flight to one client.
const PIECES_QUEUED: usize = 2;

/// Media types of the files that `make site` writes, by ending.
const TYPES: [(&str, &str); 8] = [
    (".html", "text/html; charset=utf-8"),
    (".css", "text/css; charset=utf-8"),
    (".js", "text/javascript; charset=utf-8"),
    (".json", "application/json"),
    (".png", "image/png"),
    (".svg", "image/svg+xml"),
    (".woff2", "font/woff2"),
    (".xml", "application/xml"),
];

/// Returns true if `folder` has the documentation's first page.
pub(crate) fn is_there(folder: Option<&Path>) -> bool {
    folder.is_some_and(|folder| folder.join("index.html").is_file())
}

/// The file at `path`, which begins with `/docs/`, of the documentation in `folder`.
pub(crate) async fn page(folder: Option<&Path>, path: &str) -> AdminResponse {
    let Some(folder) = folder else {
        return missing("`[admin] docs` is false: the documentation is not served here");
    };
    let content_type = match path.rsplit_once('/') {
        Some((_, "")) => Some(TYPES[0].1),
        _ => TYPES.iter().find(|(ending, _)| path.ends_with(ending)).map(|(_, kind)| *kind),
    };
    let (Some(content_type), Some(below)) = (content_type, path.strip_prefix("/docs")) else {
        return missing("the documentation has no such file");
    };
    let mut config = Config::new(folder.to_path_buf());
    config.hide = HiddenNames::default();
    let (root, below) = (Root::new(config), below.as_bytes().to_vec());
    let found = rt::run_blocking(move || root.look(&below, Depth::Full)).await;
    match found {
        Ok(PathLookup::Page(variants)) => {
            let (pieces, sent) = mpsc::channel(PIECES_QUEUED);
            rt::spawn(send(Arc::clone(variants.form(None)), pieces));
            AdminResponse { status: StatusCode::OK, content_type, body: Body::Stream(sent) }
        }
        Ok(PathLookup::Exhausted) => {
            let why = "no file descriptor was left to open the file";
            AdminResponse::refusal(StatusCode::SERVICE_UNAVAILABLE, why)
        }
        _ if is_there(Some(folder)) => missing("the documentation has no such file"),
        _ => {
            let folder = folder.display();
            missing(&format!("{folder} has no documentation: see `[admin] docs`"))
        }
    }
}

fn missing(why: &str) -> AdminResponse {
    AdminResponse::refusal(StatusCode::NOT_FOUND, why)
}

/// Sends the file's bytes until its end, or until the client has left.
async fn send(file: Arc<OpenFile>, pieces: mpsc::Sender<Bytes>) {
    let mut at = 0;
    while at < file.length() {
        let range = at..file.length().min(at + PIECE_BYTES);
        at = range.end;
        let own = Arc::clone(&file);
        let Ok(piece) = rt::run_blocking(move || own.read(range)).await else { return };
        if pieces.send(piece.into()).await.is_err() {
            return;
        }
    }
}
