//! Siblings: caches beside this one, such as a Squid. A miss asks them by HTCP, and fetches from
//! the first that has a response, before the origin.
//!
//! A sibling's response is judged and stored like an origin's, its age included. Siblings are asked
//! only for shared responses, by URL alone.
//!
//! A sibling must never undo a purge. One that gets purges is not asked until it has confirmed
//! them. For other invalidations the response's age must show that it is younger.

mod usable_answers;

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use base::{Counter, Limit};
use message::cache_control::{CacheControl, DirectiveScope};
use message::{HeaderId, Method, Request, Scheme};
use origin::{Exchange, Origin, OriginRequestContext, RequestBody};
use policy::DecisionStep;
use tokio::sync::oneshot;

pub(crate) use crate::state::siblings::sibling_miss::SiblingMiss;
pub use crate::state::siblings::{Sibling, SiblingPort, SiblingQuestion, Siblings};

use self::usable_answers::is_usable;
use crate::body_transfer::discard_response;
use crate::fetch::Fetch;
use crate::state::miss::Miss;

/// Request fields by which no cache selects a shared response.
const UNSELECTING: [HeaderId; 21] = [
    HeaderId::Authorization,
    HeaderId::CacheControl,
    HeaderId::CdnLoop,
    HeaderId::Cookie,
    HeaderId::Expect,
    HeaderId::Forwarded,
    HeaderId::Host,
    HeaderId::IfMatch,
    HeaderId::IfModifiedSince,
    HeaderId::IfNoneMatch,
    HeaderId::IfRange,
    HeaderId::IfUnmodifiedSince,
    HeaderId::MaxForwards,
    HeaderId::Pragma,
    HeaderId::Priority,
    HeaderId::Range,
    HeaderId::Referer,
    HeaderId::SurrogateCapability,
    HeaderId::Via,
    HeaderId::XForwardedFor,
    HeaderId::XVarnish,
];

/// Forecasts the siblings that would be asked about `miss`, if any.
pub(crate) fn foretell(siblings: &Siblings, miss: Miss<'_>) -> Option<DecisionStep> {
    if !miss.may_be_with_siblings() || !is_for_all(miss.changed.unwrap_or(miss.asked)) {
        return None;
    }
    let (mut open, mut left) = (Vec::new(), Vec::new());
    for sibling in siblings.of(&miss.site.name, miss.asked.scheme) {
        let list = if sibling.trusted_since().is_some() { &mut open } else { &mut left };
        list.push(sibling.origin.name().to_string());
    }
    let why = match (open.is_empty(), left.is_empty()) {
        (true, true) => return None,
        (true, false) => "no sibling would be asked now",
        (false, _) => "siblings would be asked before the origin",
    };
    let step = DecisionStep::new("siblings", why).fact("asked", open.join(", "));
    Some(step.fact("left alone", left.join(", ")))
}

impl SiblingMiss {
    /// Asks the siblings for `fetch.request` and returns the response of one; `None` if the origin
    /// must be asked.
    pub(crate) async fn ask(self: Box<Self>, fetch: &mut Fetch) -> Option<Box<Exchange>> {
        let request = &fetch.request;
        if !is_for_all(request) || !fetch.live.trust.holds(fetch.now().mono_ms) {
            return None;
        }
        let url = url_of(request);
        let mut fields = Vec::new();
        request.headers.write_end_to_end(&mut fields, &UNSELECTING);
        let question = SiblingQuestion { url: &url, fields: &fields };
        let those = self.siblings.of(&self.site.name, request.scheme);
        let waiting: Vec<_> = those.filter_map(|one| SiblingWait::begin(one, &question)).collect();
        if waiting.is_empty() {
            return None;
        }
        let counters = &fetch.core.counters;
        counters.inc(Counter::SiblingsAsked);
        let (sibling, since_ms) = first(fetch, waiting).await?;
        let (asked, started_us) = (to_sibling(request, url), fetch.core.micros());
        let asked_ms = fetch.now().mono_ms;
        let answered = send(fetch, &sibling.origin, &asked).await;
        let exchange = match answered {
            Some(exchange) if is_usable(&exchange.response, asked_ms, since_ms) => exchange,
            answered => {
                counters.inc(Counter::SiblingsFalse);
                answered.into_iter().for_each(discard_response);
                return None;
            }
        };
        counters.inc(Counter::SiblingsFound);
        note(fetch, &sibling.origin, &asked, &exchange, started_us);
        Some(exchange)
    }
}

/// Returns true if `request`, as sent to the origin, is not personal and permits a stored response.
fn is_for_all(request: &Request) -> bool {
    let headers = &request.headers;
    let wishes = CacheControl::parse(headers.values(HeaderId::CacheControl));
    request.method == Method::Get
        && !headers.contains_any(&[HeaderId::Authorization, HeaderId::Cookie, HeaderId::Pragma])
        && wishes.no_cache == DirectiveScope::Absent
        && !wishes.no_store
        && wishes.max_age != Some(0)
}

/// The absolute URL of `request`.
pub(crate) fn url_of(request: &Request) -> Vec<u8> {
    let scheme: &[u8] = match request.scheme {
        Scheme::Http => b"http://",
        Scheme::Https => b"https://",
    };
    let authority = match request.headers.value(HeaderId::Host) {
        Some(host) => host.to_ascii_lowercase(),
        None => {
            let port = request.port.map_or_else(String::new, |port| format!(":{port}"));
            [&request.host[..], port.as_bytes()].concat()
        }
    };
    [scheme, &authority, &request.target].concat()
}

/// `request` for a sibling: in absolute form, which a Squid accepts as accelerator and as proxy,
/// and only for what it has stored.
fn to_sibling(request: &Request, url: Vec<u8>) -> Request {
    let mut asked = request.clone();
    asked.target = url;
    asked.headers.push(HeaderId::CacheControl, b"only-if-cached");
    asked
}

/// A query in progress.
struct SiblingWait<'a> {
    sibling: &'a Sibling,
    since_ms: u64,
    number: u32,
    answer: oneshot::Receiver<bool>,
}

impl Drop for SiblingWait<'_> {
    fn drop(&mut self) {
        self.sibling.port.forget(self.number);
    }
}

impl<'a> SiblingWait<'a> {
    fn begin(sibling: &'a Sibling, question: &SiblingQuestion<'_>) -> Option<Self> {
        let since_ms = sibling.trusted_since()?;
        let (tell, answer) = oneshot::channel();
        let number = sibling.port.ask(question, tell)?;
        Some(Self { sibling, since_ms, number, answer })
    }
}

/// The first sibling that has the response, and the time since which it is trusted; `None` if none
/// has it in time.
async fn first<'a>(fetch: &Fetch, mut waiting: Vec<SiblingWait<'a>>) -> Option<(&'a Sibling, u64)> {
    let patience = Duration::from_millis(fetch.live.limits.sibling_timeout);
    let said = poll_fn(|cx| {
        let mut at = 0;
        while let Some(one) = waiting.get_mut(at) {
            match Pin::new(&mut one.answer).poll(cx) {
                Poll::Pending => at += 1,
                Poll::Ready(Ok(true)) => return Poll::Ready(Some((one.sibling, one.since_ms))),
                // The sibling lacks it or is unreachable.
                Poll::Ready(_) => drop(waiting.swap_remove(at)),
            }
        }
        if waiting.is_empty() { Poll::Ready(None) } else { Poll::Pending }
    });
    match rt::time::timeout(patience, said).await {
        Ok(said) => said,
        Err(_) => {
            fetch.core.counters.limit(Limit::SiblingTimeout);
            waiting.iter().for_each(|one| one.sibling.port.was_silent());
            None
        }
    }
}

/// Sends `request` to a sibling and returns the response's head; `None` if it is late.
async fn send(fetch: &Fetch, origin: &Arc<Origin>, request: &Request) -> Option<Box<Exchange>> {
    let core = &fetch.core;
    let caller = OriginRequestContext {
        timeouts: None,
        preferred: None,
        owner: None,
        ..fetch.caller.clone()
    };
    let (pool, mut nobody) = (core.pool(), ());
    let nothing = RequestBody::None;
    let sent = pool.send(origin, request, nothing, fetch.key_hash, &caller, &mut nobody);
    let patience = Duration::from_millis(fetch.live.limits.sibling_timeout);
    let Ok(sent) = rt::time::timeout(patience, sent).await else {
        core.counters.limit(Limit::SiblingTimeout);
        origin.was_late();
        return None;
    };
    sent.ok().map(Box::new)
}

/// Notes for the record that a sibling answered instead of an origin.
fn note(
    fetch: &mut Fetch,
    origin: &Origin,
    request: &Request,
    exchange: &Exchange,
    started_us: u64,
) {
    let core = &fetch.core;
    let answered_us = core.micros();
    core.log.note_bereq(fetch.trace.as_deref(), request, origin);
    core.log.note_beresp(fetch.trace.as_deref(), &exchange.response);
    fetch.note(|trace| {
        trace.note_begun(started_us);
        trace.note_answered(exchange, answered_us);
        trace.origin.set(None);
        *trace.backend.borrow_mut() = None;
        *trace.server.borrow_mut() = Some(Arc::clone(origin.name()));
    });
    // A sibling serves what it has stored, so it is not asked for ranges.
    fetch.asked = None;
}

#[cfg(test)]
mod tests;
