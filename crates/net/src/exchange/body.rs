//! The verdict on a request's body before its first byte; reasons why a body is not taken or sent
//! further, and the pages that say so.

use base::{Counters, Limit, Limits};
use flow::{Reply, WaitingRequest, pages};
use message::{Framing, Request, Status, Upgrade};

use crate::account;

/// The way in which the body of a request that waits is taken.
#[derive(Debug)]
pub(crate) enum Intake {
    /// The request has none.
    None,
    /// It is not taken at all.
    Refused(BodyFault),
    Taken {
        /// The client waits for a 100 (RFC 9110 10.1.1), and its connection sends it.
        continues: bool,
        /// It is received as far as `body_buffer_bytes` says before the request goes on.
        gathers: bool,
    },
}

impl Intake {
    /// For a request that `ends` with its head or does not.
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
        // Then the body is first asked for, and the 100 sent, by what the request waits for.
        let late = request.expect_continue && slow.continues_late();
        Self::Taken {
            continues: request.expect_continue && !late,
            gathers: limits.body_buffer_bytes > 0 && request.upgrade == Upgrade::None && !late,
        }
    }
}

/// The reason why a request's body cannot be taken further.
#[derive(Debug)]
pub(crate) struct BodyFault {
    status: u16,
    reason: String,
    limit: Option<Limit>,
}

impl BodyFault {
    /// The body has more bytes than a request's may have; counted.
    pub(crate) fn too_large(counters: &Counters) -> Self {
        let limit = Limit::RequestBodyBytes;
        counters.limit(limit);
        let reason = format!("The request's body is too large (limit: {}).", limit.name());
        Self { status: 413, reason, limit: Some(limit) }
    }

    /// The client was too slow by `limit`, which is counted already.
    pub(crate) fn slow(limit: Limit) -> Self {
        let reason = format!("The request's body came too slowly (limit: {}).", limit.name());
        Self { status: 408, reason, limit: Some(limit) }
    }

    /// The client has left in the middle of it.
    pub(crate) fn gone() -> Self {
        let reason = "The request's body ended early.".to_owned();
        Self { status: 400, reason, limit: None }
    }

    /// Its framing is wrong; counted if that is a limit's doing.
    pub(crate) fn framing(error: &h1::BodyError, counters: &Counters) -> Self {
        error.limit().into_iter().for_each(|limit| counters.limit(limit));
        Self { status: 400, reason: error.to_string(), limit: error.limit() }
    }

    /// Refuses a body that is declared to be too large, before a byte of it is asked for.
    pub(crate) fn of_declared(length: u64, limits: &Limits, counters: &Counters) -> Option<Self> {
        (length > limits.request_body_bytes).then(|| Self::too_large(counters))
    }

    /// The page that says so.
    pub(crate) fn page(&self) -> Option<Reply> {
        let status = Status::new(self.status)?;
        Some(pages::refused(status, &self.reason).because_of(self.limit))
    }
}

/// The page for a response whose body broke off before anything of it had left, perhaps for want of
/// memory, which is counted where it was wanted.
pub(crate) fn broke_off(is_starved: bool) -> Reply {
    if is_starved {
        return account::no_room();
    }
    let reason = "The origin's answer broke off before the first byte of its body.";
    pages::refused(Status::BAD_GATEWAY, reason)
}
