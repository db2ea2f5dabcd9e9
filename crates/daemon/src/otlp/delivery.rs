//! Delivery: requests to the collector over a kept connection, and the meaning of its responses
//! (OTLP, "OTLP/HTTP Response").

use std::rc::Rc;
use std::sync::Arc;

use base::Limits;
use base::counters::Registry;
use flow::SharedState;
use message::date::parse_retry_after_ms;
use message::{HeaderId, Response};
use origin::{CorePool, Exchange, Origin, OriginRequestContext, RequestBody};
use prost::Message;

use super::messages::{ExportTracePartialSuccess, ExportTraceServiceResponse, RpcStatus};
use super::spans::SpanBatch;
use crate::collector::{Collector, PROTOBUF};
use crate::managed_origin::{ManagedOrigin, tend};

/// Bytes of a response body that are read; a longer one ends its connection.
const ANSWER_BYTES: usize = 64 << 10;
/// Characters of a collector's text that are logged.
const WORDS: usize = 200;

/// The fate of a delivery.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DeliveryOutcome {
    /// The collector accepted it, but for `rejected` spans, with a message.
    Taken { rejected: u64, words: String },
    /// It may accept it later; after so many milliseconds, if it says.
    Later { why: String, wait_ms: Option<u64> },
    /// It never accepts it.
    Refused { why: String },
}

/// Deliveries to a collector.
pub(super) struct Deliveries {
    shared: Arc<SharedState>,
    pool: Rc<CorePool>,
    /// The origin of the last collector.
    way: Option<ManagedOrigin>,
}

impl Deliveries {
    /// Deliveries without a connection. They do not count as requests to origins.
    pub(super) fn new(shared: &Arc<SharedState>, limits: &Limits) -> Self {
        let pool = CorePool::new(Registry::default().register(), limits);
        Self { shared: Arc::clone(shared), pool: Rc::new(pool), way: None }
    }

    /// Closes connections that have been idle for too long.
    pub(super) fn sweep(&self) {
        self.pool.sweep(rt::now().mono_ms);
    }

    /// Delivers a batch.
    pub(super) async fn deliver(
        &mut self,
        collector: &Collector,
        batch: &SpanBatch,
    ) -> DeliveryOutcome {
        let origin = self.origin(collector);
        let request = collector.request(batch.body.len(), batch.is_gzip);
        let (body, caller) =
            (RequestBody::whole(batch.body.clone()), OriginRequestContext::default());
        let sent = self.pool.send(&origin, &request, body, 0, &caller, &mut ()).await;
        match sent {
            Ok(mut exchange) => {
                let body = body_of(&mut exchange).await;
                let now_secs = rt::now().unix_secs();
                let mut outcome = judged(&exchange.response, &body, now_secs);
                outcome.keep_secrets(collector);
                outcome
            }
            Err(error) => DeliveryOutcome::Later { why: error.to_string(), wait_ms: None },
        }
    }

    /// The collector as an origin; a new one only if its settings changed.
    fn origin(&mut self, collector: &Collector) -> Arc<Origin> {
        let known = self.way.take_if(|way| *way.origin.config() == collector.origin);
        let way =
            known.unwrap_or_else(|| tend(Origin::new(collector.origin.clone()), &self.shared));
        Arc::clone(&self.way.insert(way).origin)
    }
}

/// The start of a response's body, with a note if it is truncated.
async fn body_of(exchange: &mut Exchange) -> Vec<u8> {
    let mut body = Vec::new();
    while body.len() < ANSWER_BYTES
        && let Ok(true) = exchange.next(&mut |piece: &[u8]| body.extend_from_slice(piece)).await
    {
    }
    body
}

impl DeliveryOutcome {
    fn keep_secrets(&mut self, collector: &Collector) {
        let (Self::Taken { words: text, .. }
        | Self::Later { why: text, .. }
        | Self::Refused { why: text }) = self;
        *text = shown(&collector.without_secrets(text));
    }
}

/// The outcome that a response means.
fn judged(response: &Response, body: &[u8], now_secs: u64) -> DeliveryOutcome {
    let status = response.status.code();
    let media_type = response.headers.value(HeaderId::ContentType).unwrap_or_default();
    let is_protobuf = media_type.starts_with(PROTOBUF.as_bytes());
    if (200..=299).contains(&status) {
        let answer = ExportTraceServiceResponse::decode(body).ok().filter(|_| is_protobuf);
        let partial = answer.and_then(|answer| answer.partial_success).unwrap_or_default();
        let ExportTracePartialSuccess { rejected_spans, error_message } = partial;
        let rejected = u64::try_from(rejected_spans).unwrap_or(0);
        return DeliveryOutcome::Taken { rejected, words: error_message };
    }
    let words = match RpcStatus::decode(body) {
        Ok(status) if is_protobuf => status.message,
        Err(_) if is_protobuf => String::new(),
        _ => String::from_utf8_lossy(body).into_owned(),
    };
    let mut why = format!("it answers {status}");
    if !words.trim().is_empty() {
        why = format!("{why}: {}", words.trim());
    }
    match status {
        429 | 502 | 503 | 504 => {
            let wait = response.headers.value(HeaderId::RetryAfter);
            let wait_ms = wait.and_then(|value| parse_retry_after_ms(value, now_secs));
            DeliveryOutcome::Later { why, wait_ms }
        }
        _ => DeliveryOutcome::Refused { why },
    }
}

/// Foreign text, made safe for a line of the log.
fn shown(text: &str) -> String {
    let cut: String = text.chars().take(WORDS).collect();
    cut.escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use message::Status;

    use super::*;

    fn answer(status: u16, fields: &[(&str, &str)]) -> Response {
        let mut response = Response::new(Status::new(status).expect("a status"));
        for (name, value) in fields {
            response.headers.push_named(name.as_bytes(), value.as_bytes());
        }
        response
    }

    const TYPE: (&str, &str) = ("Content-Type", PROTOBUF);

    #[test]
    fn what_is_taken_may_be_taken_in_part() {
        let taken =
            |rejected, words: &str| DeliveryOutcome::Taken { rejected, words: words.to_owned() };
        let partial = |rejected_spans, words: &str| {
            let error_message = words.to_owned();
            let partial = ExportTracePartialSuccess { rejected_spans, error_message };
            ExportTraceServiceResponse { partial_success: Some(partial) }.encode_to_vec()
        };
        let outcome = |body: &[u8], fields: &[_]| judged(&answer(200, fields), body, 0);
        assert_eq!(outcome(b"", &[TYPE]), taken(0, ""));
        assert_eq!(outcome(&partial(3, "old"), &[TYPE]), taken(3, "old"));
        assert_eq!(outcome(&partial(-3, ""), &[TYPE]), taken(0, ""));
        // Neither is a response of OTLP.
        assert_eq!(outcome(b"{}", &[("Content-Type", "application/json")]), taken(0, ""));
        assert_eq!(outcome(&partial(3, "old"), &[]), taken(0, ""));
        assert_eq!(judged(&answer(202, &[TYPE]), b"\xff", 0), taken(0, ""));
    }

    #[test]
    fn four_statuses_are_tried_again_and_no_other() {
        for status in [429, 502, 503, 504] {
            let outcome = judged(&answer(status, &[("Retry-After", "7")]), b"", 0);
            let why = format!("it answers {status}");
            assert_eq!(outcome, DeliveryOutcome::Later { why, wait_ms: Some(7_000) });
        }
        for status in [301, 400, 401, 403, 404, 408, 413, 500, 501, 505] {
            let outcome = judged(&answer(status, &[("Retry-After", "7")]), b"", 0);
            assert_eq!(outcome, DeliveryOutcome::Refused { why: format!("it answers {status}") });
        }
    }

    #[test]
    fn a_refusal_is_reported_in_the_collectors_words() {
        let status = RpcStatus { message: "no such key".to_owned() }.encode_to_vec();
        let refused = |why: &str| DeliveryOutcome::Refused { why: why.to_owned() };
        let outcome = |body: &[u8], fields: &[_]| judged(&answer(401, fields), body, 0);
        assert_eq!(outcome(&status, &[TYPE]), refused("it answers 401: no such key"));
        assert_eq!(outcome(b"\xff", &[TYPE]), refused("it answers 401"));
        assert_eq!(outcome(b" denied\n", &[]), refused("it answers 401: denied"));
        assert_eq!(shown("a\n\u{1b}[0m"), "a\\n\\u{1b}[0m");
        assert_eq!(shown(&"x".repeat(999)).len(), WORDS);
    }
}
