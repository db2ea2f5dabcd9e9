//! Stapling: OCSP responses (RFC 6960) for the certificates in use, fetched before the last ones
//! expire.
//!
//! No handshake may wait or fail for it: without a good response it goes on without one. The last
//! good response is stapled until it expires.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use base::{HashSeed, Limit};
use h1::encode;
use message::{Framing, HeaderId, Method, Request, Scheme, Status};
use tls::{CertificateKeyPair, Inquiry, Staple};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::client::{self, Client};
use crate::report::LimitError;

/// The most exchanges at once; others wait.
const AT_ONCE: usize = 8;
/// The longest sleep: clocks may be set, and machines may wake up.
const SLEEP_MAX_MS: u64 = 60_000;
/// A response is refreshed after half of its remaining time, at the latest after this.
const REFRESH_MOST_MS: u64 = 24 * 3_600_000;

/// The limits of stapling; see `base::limits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StapleBounds {
    /// The time of one exchange with a responder, in milliseconds.
    pub exchange_ms: u64,
    /// Bytes of one response.
    pub answer_bytes: u64,
    /// The time after a failed exchange about a certificate, in milliseconds.
    pub retry_ms: u64,
}

/// The certificates to staple for.
#[derive(Clone, Debug)]
pub struct StaplePlan {
    /// The certificates in use.
    pub pairs: Vec<Arc<CertificateKeyPair>>,
    /// The limits.
    pub bounds: StapleBounds,
}

/// A stapling event.
#[derive(Debug)]
pub enum StapleEvent {
    /// A responder is asked.
    Asking,
    /// A first response is stapled from now on, or one after a gap.
    Stapled {
        /// The certificate.
        of: String,
        /// The responder's URL.
        by: String,
        /// The end of the response's validity, in seconds since 1970.
        until_secs: u64,
    },
    /// A status could not be fetched.
    Failed {
        /// The certificate.
        of: String,
        /// The responder's URL.
        by: String,
        /// The reason.
        why: String,
        /// The limit that was exceeded, if any.
        limit: Option<Limit>,
        /// The response that handshakes use now.
        shown: StapleFallback,
    },
}

/// The response that handshakes use after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StapleFallback {
    /// The former one, which is still valid.
    Last,
    /// None.
    Nothing,
    /// None, although the certificate requires one.
    Missing,
}

impl fmt::Display for StapleEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asking => f.write_str("OCSP: request to a responder"),
            Self::Stapled { of, by, until_secs } => {
                let until = message::date::HttpDate::new(*until_secs);
                let until = String::from_utf8_lossy(until.as_bytes()).into_owned();
                write!(f, "OCSP: {of}: good until {until} by {by}; stapled from now on")
            }
            Self::Failed { of, by, why, shown, .. } => {
                write!(f, "OCSP: {of}: {by}: {why}; ")?;
                f.write_str(match shown {
                    StapleFallback::Last => "the last response stays stapled",
                    StapleFallback::Nothing => "no response is stapled",
                    StapleFallback::Missing => {
                        "no response is stapled, although the certificate requires one"
                    }
                })
            }
        }
    }
}

/// Keeps staples for the latest plan, until its sender is dropped.
pub async fn staple(
    mut wanted: watch::Receiver<Option<StaplePlan>>,
    note: impl Fn(StapleEvent) + Send,
) {
    let mut keeper = Staples::default();
    keeper.adopt(wanted.borrow_and_update().clone());
    loop {
        keeper.drop_ended();
        let sleep = keeper.begin(&note);
        tokio::select! {
            changed = wanted.changed() => match changed {
                Ok(()) => keeper.adopt(wanted.borrow_and_update().clone()),
                Err(_) => return,
            },
            Some(done) = keeper.running.join_next() => {
                // A task that panicked has no result; its certificate is asked about again.
                match done {
                    Ok(done) => keeper.take(done, &note),
                    Err(_) => keeper.restart(),
                }
            }
            () = rt::time::sleep(Duration::from_millis(sleep)) => {}
        }
    }
}

/// The result of an exchange.
struct StapleResult {
    leaf: Vec<u8>,
    by: String,
    came: Result<Staple, io::Error>,
}

#[derive(Default)]
struct Staples {
    wanted: Option<StaplePlan>,
    /// The state of each certificate, by its bytes.
    certificates: BTreeMap<Vec<u8>, State>,
    running: JoinSet<StapleResult>,
}

/// The state of a certificate.
#[derive(Default)]
struct State {
    /// The time of the next exchange, on the monotonic clock.
    next_ms: u64,
    /// True while an exchange is under way.
    running: bool,
    /// Failed exchanges in a row. Each selects the next responder of the certificate.
    failures: usize,
    /// True once the staple was reported to the operator.
    told: bool,
}

impl Staples {
    fn adopt(&mut self, wanted: Option<StaplePlan>) {
        let pairs = wanted.iter().flat_map(|wanted| &wanted.pairs);
        let mut before = std::mem::take(&mut self.certificates);
        for pair in pairs.filter(|pair| pair.inquiry().is_some()) {
            let state = before.remove(pair.leaf()).unwrap_or_default();
            self.certificates.insert(pair.leaf().to_vec(), state);
        }
        self.wanted = wanted;
    }

    fn pairs<'a>(&'a self, leaf: &'a [u8]) -> impl Iterator<Item = &'a Arc<CertificateKeyPair>> {
        let all = self.wanted.iter().flat_map(|wanted| &wanted.pairs);
        all.filter(move |pair| pair.leaf() == leaf)
    }

    /// Removes expired responses.
    fn drop_ended(&self) {
        let now_secs = rt::now().unix_secs();
        for pair in self.wanted.iter().flat_map(|wanted| &wanted.pairs) {
            if pair.stapled_until().is_some_and(|until| until <= now_secs) {
                pair.staple(None);
            }
        }
    }

    /// Starts the exchanges that are due. Returns the time until the next is due.
    fn begin(&mut self, note: &impl Fn(StapleEvent)) -> u64 {
        let Some(StaplePlan { pairs, bounds }) = self.wanted.clone() else { return SLEEP_MAX_MS };
        let (now_ms, now_secs) = (rt::now().mono_ms, rt::now().unix_secs());
        let mut sleep = SLEEP_MAX_MS;
        for pair in pairs {
            if let Some(until_secs) = pair.stapled_until() {
                sleep = sleep.min(until_secs.saturating_sub(now_secs).saturating_mul(1000));
            }
            let Some(inquiry) = pair.inquiry() else { continue };
            let Some(state) = self.certificates.get_mut(pair.leaf()) else { continue };
            if state.running || self.running.len() >= AT_ONCE {
                continue;
            }
            if state.next_ms > now_ms {
                sleep = sleep.min(state.next_ms - now_ms);
                continue;
            }
            let turn = state.failures % inquiry.urls.len().max(1);
            let Some(url) = inquiry.urls.get(turn) else { continue };
            state.running = true;
            note(StapleEvent::Asking);
            let (leaf, by, inquiry) = (pair.leaf().to_vec(), url.clone(), inquiry.clone());
            self.running.spawn(async move {
                let came = inquire(&inquiry, &by, bounds).await;
                StapleResult { leaf, by, came }
            });
        }
        sleep.max(1)
    }

    fn restart(&mut self) {
        let retry_ms = self.wanted.as_ref().map_or(0, |wanted| wanted.bounds.retry_ms);
        let next_ms = rt::now().mono_ms.saturating_add(retry_ms);
        for state in self.certificates.values_mut().filter(|state| state.running) {
            (state.running, state.next_ms) = (false, next_ms);
        }
    }

    fn take(&mut self, done: StapleResult, note: &impl Fn(StapleEvent)) {
        let now = rt::now();
        let StapleResult { leaf, by, came } = done;
        let Some(of) = self.pairs(&leaf).next().map(|pair| pair.name().to_owned()) else { return };
        let retry_ms = self.wanted.as_ref().map_or(0, |wanted| wanted.bounds.retry_ms);
        match came {
            Ok(staple) => {
                let until_secs = staple.until_secs;
                for pair in self.pairs(&leaf) {
                    pair.staple(Some(&staple));
                }
                let Some(state) = self.certificates.get_mut(&leaf) else { return };
                let told = std::mem::replace(&mut state.told, true);
                let left = until_secs.saturating_sub(now.unix_secs());
                let rest_ms = left.saturating_mul(500).min(REFRESH_MOST_MS).max(retry_ms);
                state.next_ms = now.mono_ms + spread(rest_ms);
                (state.running, state.failures) = (false, 0);
                if !told {
                    note(StapleEvent::Stapled { of, by, until_secs });
                }
            }
            Err(error) => {
                let shown =
                    self.pairs(&leaf).next().map_or(StapleFallback::Nothing, |pair| {
                        match (pair.stapled_until(), pair.must_staple()) {
                            (Some(_), _) => StapleFallback::Last,
                            (None, true) => StapleFallback::Missing,
                            (None, false) => StapleFallback::Nothing,
                        }
                    });
                let Some(state) = self.certificates.get_mut(&leaf) else { return };
                state.next_ms = now.mono_ms + spread(retry_ms);
                (state.running, state.told) = (false, false);
                state.failures += 1;
                let limit = LimitError::of(&error);
                let why = error.to_string();
                note(StapleEvent::Failed { of, by, why, limit, shown });
            }
        }
    }
}

/// A time of about `ms`, so that the exchanges of many caches are spread.
fn spread(ms: u64) -> u64 {
    ms - HashSeed::random().hash(b"wait") % (ms / 8).max(1)
}

/// Asks a responder, within the limits.
async fn inquire(inquiry: &Inquiry, url: &str, bounds: StapleBounds) -> io::Result<Staple> {
    let bound = Duration::from_millis(bounds.exchange_ms);
    let asked = rt::time::timeout(bound, ask(inquiry, url, bounds)).await;
    let answer = asked.map_err(|_| io::Error::from(LimitError(Limit::OcspTimeout))).flatten()?;
    let judged = inquiry.judge(&answer, rt::now().unix_secs());
    judged.map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why.to_string()))
}

async fn ask(inquiry: &Inquiry, url: &str, bounds: StapleBounds) -> io::Result<Vec<u8>> {
    let request = question(url, inquiry.request.len())?;
    let host = String::from_utf8_lossy(&request.host).into_owned();
    let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let addresses: Vec<_> =
        tokio::net::lookup_host((bare, request.port.unwrap_or(80))).await?.collect();
    let mut stream: TcpStream = Client::first_of(&addresses, bounds.exchange_ms).await?;
    let mut out = Vec::new();
    encode::request_head(&mut out, &request);
    out.extend_from_slice(&inquiry.request);
    stream.write_all(&out).await?;
    let (most, limit) = (bounds.answer_bytes, Limit::OcspAnswerBytes);
    let answer = client::read(&mut stream, &request.method, most, limit).await?;
    if answer.head.status != Status::OK {
        let why = format!("it answers with status {}", answer.head.status);
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    Ok(answer.body)
}

/// The request to a responder (RFC 6960 A.1): a POST, which every responder accepts.
fn question(url: &str, length: usize) -> io::Result<Request> {
    let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what.to_owned());
    let uri: http::Uri = url.parse().map_err(|_| wrong("not a URL"))?;
    if uri.scheme_str() != Some("http") {
        return Err(wrong("not a URL with http"));
    }
    let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(|| wrong("no host"))?;
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    let mut request = Request::new();
    request.method = Method::Post;
    request.scheme = Scheme::Http;
    request.framing = Framing::Length(length as u64);
    request.host = host.to_ascii_lowercase().into_bytes();
    request.port = uri.port_u16().filter(|port| *port != 80);
    request.target = target.as_bytes().to_vec();
    request.headers.push(HeaderId::ContentType, b"application/ocsp-request");
    request.headers.push(HeaderId::Accept, b"application/ocsp-response");
    request.headers.push(HeaderId::UserAgent, client::AGENT.as_bytes());
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_a_post_to_the_responders_url_over_plain_http() {
        let request = question("http://OCSP.test:8080/a?b", 3).expect("a request");
        let mut out = Vec::new();
        encode::request_head(&mut out, &request);
        let text = String::from_utf8(out).expect("text");
        assert!(text.starts_with("POST /a?b HTTP/1.1\r\nHost: ocsp.test:8080\r\n"), "{text}");
        assert!(text.contains("\r\nContent-Length: 3\r\n"), "{text}");
        for url in ["https://ocsp.test/", "ldap://x/", "/x", "", "http:///x", "http://a b/"] {
            assert!(question(url, 3).is_err(), "{url}");
        }
    }

    #[test]
    fn waits_are_spread_over_an_eighth_before_their_time() {
        for _ in 0..100 {
            assert!((876..=1000).contains(&spread(1000)));
        }
        assert_eq!(spread(1), 1);
    }
}
