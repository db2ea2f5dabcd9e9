//! A document fetched by its URL, such as a sitemap.

use std::cell::RefCell;
use std::future::poll_fn;
use std::time::Duration;

use h1::HeadLimits;
use message::{HeaderId, Method};

use super::http1::{Http1, SCRATCH};
use super::stream::Endpoint;
use crate::settings::Tls;
use crate::target::TargetServer;

/// Most redirects that are followed.
const REDIRECTS: usize = 5;
/// Largest document, in bytes.
const DOCUMENT: usize = 64 << 20;
/// Time limit of the whole fetch.
const PATIENCE: Duration = Duration::from_secs(30);

/// Fetches a document, following redirects.
///
/// # Errors
/// The reason for which there is no document, with the response's status if there is one.
pub fn fetch(url: &str, tls: &Tls) -> Result<Vec<u8>, String> {
    let (target, path) = TargetServer::parse(url)?;
    fetch_from(&target, &path, tls)
}

/// Fetches a document from a server, which may listen on a unix socket.
///
/// # Errors
/// Those of [`fetch`].
pub(crate) fn fetch_from(target: &TargetServer, path: &str, tls: &Tls) -> Result<Vec<u8>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start a runtime: {error}"))?;
    runtime.block_on(async {
        tokio::time::timeout(PATIENCE, follow(target.clone(), path.to_owned(), tls))
            .await
            .unwrap_or_else(|_| Err(format!("no whole response in {} s", PATIENCE.as_secs())))
    })
}

async fn follow(mut target: TargetServer, mut path: String, tls: &Tls) -> Result<Vec<u8>, String> {
    for _ in 0..=REDIRECTS {
        match get(&target, &path, tls).await? {
            Got::Document(bytes) => return Ok(bytes),
            Got::Elsewhere(next) => (target, path) = TargetServer::parse(&next)?,
        }
    }
    Err(format!("more than {REDIRECTS} redirects"))
}

enum Got {
    Document(Vec<u8>),
    Elsewhere(String),
}

async fn get(target: &TargetServer, path: &str, tls: &Tls) -> Result<Got, String> {
    let authorities = tls.authorities.as_deref().filter(|_| target.secure);
    let upstream = tls::Upstream::new(authorities, None).map_err(|error| error.to_string())?;
    let endpoint = Endpoint::new(target, &upstream, false)?;
    let (stream, _) = endpoint.connect().await.map_err(|failure| failure.text().to_owned())?;
    let limits = HeadLimits::of_origins(&base::Limits::default());
    let mut connection = Http1::new(stream, limits).with_body_limit(DOCUMENT);
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\nUser-Agent: larder-bench/{}\r\nConnection: close\r\n\r\n",
        target.authority(),
        env!("CARGO_PKG_VERSION"),
    );
    connection.queue_bytes(request.as_bytes(), &Method::Get);
    let scratch = RefCell::new(vec![0; SCRATCH]);
    let answer = poll_fn(|cx| connection.poll_answer(cx, &scratch))
        .await
        .map_err(|failure| failure.text().to_owned())?;
    let location = connection.response().headers.value(HeaderId::Location);
    match (answer.status, location) {
        (200, _) => connection.take_body().map(Got::Document),
        (301 | 302 | 303 | 307 | 308, Some(next)) => {
            let next = String::from_utf8_lossy(next).into_owned();
            if next.starts_with("//") {
                return Ok(Got::Elsewhere(format!("{}:{next}", target.scheme())));
            }
            if next.starts_with('/') {
                let place = format!("{}://{}", target.scheme(), target.authority());
                return Ok(Got::Elsewhere(format!("{place}{next}")));
            }
            Ok(Got::Elsewhere(next))
        }
        (status, _) => Err(format!("status {status}")),
    }
}
