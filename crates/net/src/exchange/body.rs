//! Bodies of requests: the verdict before the first byte, the faults that end a body early, and
//! their error pages.

use base::{Counters, Limit, Limits};
use flow::{Reply, WaitingRequest, pages};
use message::{Framing, Request, Status, Upgrade, grpc};

use super::note::DeferredRequest;
use crate::account;

/// The way in which a waiting request's body is received.
#[derive(Debug)]
pub(crate) enum Intake {
    /// The request has no body.
    None,
    /// The body is rejected.
    Refused(BodyFault),
    Taken {
        /// The client waits for a 100 (RFC 9110 10.1.1), which its connection sends.
        continues: bool,
        /// The request waits until `body_buffer_bytes` of the body were received.
        gathers: bool,
    },
}

impl Intake {
    /// The intake for a request, whose head `ends` it if it has no body.
    pub(crate) fn of(
        request: &Request,
        ends: bool,
        slow: &WaitingRequest,
        limits: &Limits,
        counters: &Counters,
    ) -> Self {
        if let Framing::Length(length) = request.framing
            && let Some(fault) = BodyFault::of_declared(length, limits, counters)
        {
            return Self::Refused(fault);
        }
        if ends {
            return Self::None;
        }
        // The fetch sends the 100 when it needs the body.
        let late = request.expect_continue && slow.continues_late();
        Self::Taken {
            continues: request.expect_continue && !late,
            // The server may answer the first message of a gRPC call before the second is sent.
            gathers: limits.body_buffer_bytes > 0
                && request.upgrade == Upgrade::None
                && !late
                && !grpc::is_call(request),
        }
    }
}

/// The reason why a request's body cannot be received further.
#[derive(Debug)]
pub(crate) struct BodyFault {
    status: u16,
    reason: String,
    limit: Option<Limit>,
}

impl BodyFault {
    /// The body exceeds the limit; counted here.
    pub(crate) fn too_large(counters: &Counters) -> Self {
        let limit = Limit::RequestBodyBytes;
        counters.limit(limit);
        let reason = format!("The request's body is too large (limit: {}).", limit.name());
        Self { status: 413, reason, limit: Some(limit) }
    }

    /// The client was too slow by `limit`, which the caller has counted.
    pub(crate) fn slow(limit: Limit) -> Self {
        let reason = format!("The request's body came too slowly (limit: {}).", limit.name());
        Self { status: 408, reason, limit: Some(limit) }
    }

    /// The client has left before the body was complete.
    pub(crate) fn gone() -> Self {
        let reason = "The request's body ended early.".to_owned();
        Self { status: 400, reason, limit: None }
    }

    /// The framing is malformed; counted here if a limit is the cause.
    pub(crate) fn framing(error: &h1::BodyError, counters: &Counters) -> Self {
        error.limit().into_iter().for_each(|limit| counters.limit(limit));
        Self { status: 400, reason: error.to_string(), limit: error.limit() }
    }

    /// Rejects a body whose declared length is too large, before a byte of it is asked for.
    pub(crate) fn of_declared(length: u64, limits: &Limits, counters: &Counters) -> Option<Self> {
        (length > limits.request_body_bytes).then(|| Self::too_large(counters))
    }

    /// The error page.
    pub(crate) fn page(&self) -> Option<Reply> {
        let status = Status::new(self.status)?;
        Some(pages::refused(status, &self.reason).because_of(self.limit))
    }
}

/// The error page for a response whose body failed before its first byte was sent, perhaps for lack
/// of memory, which was counted where it occurred.
pub(crate) fn broke_off(deferred: &DeferredRequest, is_starved: bool) -> Reply {
    if is_starved {
        return account::no_room();
    }
    let (request, began_ms) = (&deferred.request, deferred.started.at.mono_ms);
    let is_late = grpc::timeout_ms(request)
        .is_some_and(|ms| rt::now().mono_ms + TICK_MS >= began_ms.saturating_add(ms));
    let page = match Status::new(504).filter(|_| is_late) {
        Some(late) => pages::refused(late, "The call took longer than its deadline."),
        None => {
            let reason = "The origin's response ended before the first byte of its body.";
            pages::refused(Status::BAD_GATEWAY, reason)
        }
    };
    pages::refusal_of(request, page)
}

/// The differences of timers that fire at the same time.
const TICK_MS: u64 = 10;
