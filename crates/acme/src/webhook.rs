//! Webhook: a small message to a server that an operator has named, sent over HTTPS beside the
//! cores.
//!
//! It must never follow a redirect: no other server gets the message.

use std::fmt;
use std::io;
use std::time::Duration;

use base::Limit;
use h1::encode;
use message::{Framing, HeaderId, HttpsUrl, Method, Request, Scheme};
use tls::Upstream;
use tokio::io::AsyncWriteExt;

use crate::client::{self, AGENT};
use crate::report::LimitError;

/// The most bytes of an answer that are read. Its content says nothing.
const ANSWER_BYTES: u64 = 64 << 10;

/// A receiver of messages.
#[derive(Clone)]
pub struct Webhook {
    /// The URL, which may have a secret in its path or query.
    pub url: HttpsUrl,
    /// The trust in the server's certificate.
    pub trust: Upstream,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.url.fmt(f)
    }
}

/// The reason why a message has not arrived.
#[derive(Debug)]
pub struct WebhookError {
    /// The reason in words, without the URL.
    pub why: String,
    /// False if the receiver refuses the message and would do so again.
    pub may_retry: bool,
    /// The limit that was exceeded, if any.
    pub limit: Option<Limit>,
}

impl From<io::Error> for WebhookError {
    fn from(error: io::Error) -> Self {
        let limit = LimitError::of(&error);
        let why = match limit {
            Some(limit) => format!("it is too slow (limit: {})", limit.name()),
            None => error.to_string(),
        };
        Self { why, may_retry: true, limit }
    }
}

impl Webhook {
    /// Posts a message of JSON, within `most_ms` milliseconds.
    ///
    /// # Errors
    /// There is no answer with a 2xx status.
    pub async fn post(&self, json: &[u8], most_ms: u64) -> Result<(), WebhookError> {
        let answered = rt::time::timeout(Duration::from_millis(most_ms), self.send(json, most_ms));
        let late = |_| io::Error::from(LimitError(Limit::WebhookTimeout));
        judged(answered.await.map_err(late).flatten()?)
    }

    /// Sends the message, and returns the status of the answer.
    async fn send(&self, json: &[u8], most_ms: u64) -> io::Result<u16> {
        let origin = self.url.origin();
        let (host, port) = (origin.host(), origin.port().unwrap_or(443));
        let mut stream = client::connect(&self.trust, host, port, most_ms).await?;
        let request = self.request(json.len());
        let mut out = Vec::new();
        encode::request_head(&mut out, &request);
        out.extend_from_slice(json);
        stream.write_all(&out).await?;
        stream.flush().await?;
        let limit = Limit::WebhookTimeout;
        let answer = client::read(&mut stream, &request.method, ANSWER_BYTES, limit).await?;
        Ok(answer.head.status.code())
    }

    fn request(&self, length: usize) -> Request {
        let mut request = Request::new();
        request.method = Method::Post;
        request.scheme = Scheme::Https;
        request.host = self.url.origin().host().as_bytes().to_vec();
        request.port = self.url.origin().port();
        request.target = self.url.target().as_bytes().to_vec();
        request.framing = Framing::Length(length as u64);
        request.headers.push(HeaderId::UserAgent, AGENT.as_bytes());
        request.headers.push(HeaderId::ContentType, b"application/json");
        request
    }
}

/// The outcome that an answer's status means.
fn judged(status: u16) -> Result<(), WebhookError> {
    if (200..300).contains(&status) {
        return Ok(());
    }
    let may_retry = status == 429 || status >= 500;
    Err(WebhookError { why: format!("it answers with status {status}"), may_retry, limit: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_goes_to_the_url_and_only_some_failures_pass() {
        let url = HttpsUrl::parse(b"https://Hooks.test:8443/a?key=1").expect("a URL");
        let hook = Webhook { url, trust: Upstream::new(None, None).expect("a client") };
        let mut out = Vec::new();
        encode::request_head(&mut out, &hook.request(7));
        let text = String::from_utf8(out).expect("text");
        let head = "POST /a?key=1 HTTP/1.1\r\nHost: hooks.test:8443\r\n";
        assert!(text.starts_with(head), "{text}");
        assert!(text.contains("\r\nContent-Type: application/json\r\n"), "{text}");
        assert!(text.contains("\r\nContent-Length: 7\r\n"), "{text}");
        let may_retry = |status| judged(status).map_err(|error| error.may_retry);
        assert!(matches!((may_retry(200), may_retry(204)), (Ok(()), Ok(()))));
        for (status, expected) in [(302, false), (404, false), (429, true), (503, true)] {
            assert_eq!(may_retry(status), Err(expected), "{status}");
        }
    }
}
