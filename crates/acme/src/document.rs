//! Remote document: a small file of a server that an operator has named, fetched over HTTPS beside
//! the cores.
//!
//! It must never follow a redirect: no other server is asked.

use std::fmt;
use std::io;
use std::time::Duration;

use base::Limit;
use h1::encode;
use message::cache_control::{CacheControl, DirectiveScope, delta_secs};
use message::{HeaderId, HttpsOrigin, Request, Response, Scheme, Status};
use tls::Upstream;
use tokio::io::AsyncWriteExt;

use crate::client::{self, AGENT};
use crate::report::LimitError;

/// The place of a document.
#[derive(Clone)]
pub struct DocumentSource {
    /// The server.
    pub origin: HttpsOrigin,
    /// The path.
    pub path: &'static str,
    /// The media type to ask for.
    pub accept: &'static str,
    /// The trust in the server's certificate.
    pub trust: Upstream,
}

impl fmt::Debug for DocumentSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin, self.path)
    }
}

/// The limits of a fetch, and the rows of `base::limits` that they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocumentBounds {
    /// The time of the exchange, in milliseconds.
    pub exchange_ms: u64,
    /// The row of the time.
    pub exchange_limit: Limit,
    /// Bytes of the document.
    pub body_bytes: u64,
    /// The row of the bytes.
    pub body_limit: Limit,
}

/// A document as it was fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteDocument {
    /// Its bytes.
    pub body: Vec<u8>,
    /// Seconds for which its server says that it stays fresh; `None` if it says nothing.
    pub fresh_s: Option<u64>,
}

/// The reason why a document could not be fetched.
#[derive(Debug)]
pub struct DocumentError {
    /// The reason in words.
    pub why: String,
    /// The limit that was exceeded, if any.
    pub limit: Option<Limit>,
}

impl From<io::Error> for DocumentError {
    fn from(error: io::Error) -> Self {
        let limit = LimitError::of(&error);
        let why = match limit {
            Some(limit) => format!("it is too slow or too large (limit: {})", limit.name()),
            None => error.to_string(),
        };
        Self { why, limit }
    }
}

/// Fetches a document, within the limits.
///
/// # Errors
/// There is no whole response with status 200.
pub async fn fetch_document(
    source: &DocumentSource,
    bounds: DocumentBounds,
) -> Result<RemoteDocument, DocumentError> {
    let bound = Duration::from_millis(bounds.exchange_ms);
    let fetched = rt::time::timeout(bound, fetch(source, bounds)).await;
    let late = |_| io::Error::from(LimitError(bounds.exchange_limit));
    Ok(fetched.map_err(late).flatten()?)
}

async fn fetch(source: &DocumentSource, bounds: DocumentBounds) -> io::Result<RemoteDocument> {
    let (host, port) = (source.origin.host(), source.origin.port().unwrap_or(443));
    let mut stream = client::connect(&source.trust, host, port, bounds.exchange_ms).await?;
    let request = question(source);
    let mut out = Vec::new();
    encode::request_head(&mut out, &request);
    stream.write_all(&out).await?;
    stream.flush().await?;
    let (most, limit) = (bounds.body_bytes, bounds.body_limit);
    let answer = client::read(&mut stream, &request.method, most, limit).await?;
    if answer.head.status != Status::OK {
        let why = format!("it answers with status {}", answer.head.status);
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    Ok(RemoteDocument { fresh_s: fresh_s(&answer.head), body: answer.body })
}

fn question(source: &DocumentSource) -> Request {
    let mut request = Request::new();
    request.scheme = Scheme::Https;
    request.host = source.origin.host().as_bytes().to_vec();
    request.port = source.origin.port();
    request.target = source.path.as_bytes().to_vec();
    request.headers.push(HeaderId::Accept, source.accept.as_bytes());
    request.headers.push(HeaderId::UserAgent, AGENT.as_bytes());
    request
}

/// Seconds for which a response stays fresh (RFC 9111 4.2), as far as Cache-Control says it.
fn fresh_s(head: &Response) -> Option<u64> {
    let control = CacheControl::parse(head.headers.values(HeaderId::CacheControl));
    if control.no_store || control.no_cache != DirectiveScope::Absent {
        return Some(0);
    }
    let age = head.headers.value(HeaderId::Age).and_then(delta_secs).unwrap_or(0);
    control.max_age.map(|max_age| u64::from(max_age.saturating_sub(age)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_is_for_the_servers_path() {
        let source = DocumentSource {
            origin: HttpsOrigin::parse(b"https://Agent.test:8443").expect("an origin"),
            path: "/.well-known/keys",
            accept: "application/json",
            trust: Upstream::new(None, None).expect("a client"),
        };
        let mut out = Vec::new();
        encode::request_head(&mut out, &question(&source));
        let text = String::from_utf8(out).expect("text");
        let head = "GET /.well-known/keys HTTP/1.1\r\nHost: agent.test:8443\r\n";
        assert!(text.starts_with(head), "{text}");
        assert!(text.contains("\r\nAccept: application/json\r\n"), "{text}");
        assert_eq!(format!("{source:?}"), "https://agent.test:8443/.well-known/keys");
    }

    #[test]
    fn a_document_is_fresh_for_as_long_as_its_server_says() {
        for (control, age, fresh_s_expected) in [
            ("", "", None),
            ("public", "", None),
            ("max-age=60, public", "", Some(60)),
            ("max-age=60", "20", Some(40)),
            ("max-age=60", "90", Some(0)),
            ("max-age=60, no-cache", "", Some(0)),
            ("no-store", "", Some(0)),
        ] {
            let mut head = Response::new(Status::OK);
            for (id, value) in [(HeaderId::CacheControl, control), (HeaderId::Age, age)] {
                if !value.is_empty() {
                    head.headers.push(id, value.as_bytes());
                }
            }
            assert_eq!(fresh_s(&head), fresh_s_expected, "{control} {age}");
        }
    }
}
