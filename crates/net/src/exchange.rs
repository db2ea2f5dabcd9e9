//! An exchange as every engine has it: the reasons why a request's body is not taken further, the
//! pages that say so, and the note of an exchange for the log.
//!
//! It knows nothing of frames and sockets. An engine says what happened.

use std::rc::Rc;

use base::{Counter, Counters, Limit, Limits, Now};
use flow::finish::{Started, Told};
use flow::{LiveRef, Peer, Reply, pages};
use message::{Request, Status};
use observe::CipherSuite;
use tls::Secured;

use crate::account;
use crate::core::CoreCtx;

/// The status that nginx logs for a client that left before its answer; never sent.
const CLIENT_CLOSED: u16 = 499;

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

/// The reply that the log has of a client that left before its answer came. The log says so as
/// nginx's does; nothing of it is sent.
pub(crate) fn client_left() -> Option<Reply> {
    let reason = "The client left before its answer came.";
    Status::new(CLIENT_CLOSED).map(|status| pages::refused(status, reason))
}

/// The cipher suite of a connection, as logs tell it.
pub(crate) fn suite(secured: Option<&Rc<Secured>>) -> CipherSuite {
    CipherSuite(secured.map_or(0, |secured| secured.suite()))
}

/// A moment, by the clock and as the log tells it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) now: Now,
    /// Microseconds of the log's clock.
    pub(crate) us: u64,
}

impl Moment {
    /// The present one.
    pub(crate) fn now(core: &CoreCtx) -> Self {
        let now = core.flow.now();
        Self { now, us: core.flow.log.micros(now) }
    }
}

/// Facts about an exchange for the log that are known before its answer is sent.
pub(crate) struct Note<'a> {
    pub(crate) client: Peer,
    pub(crate) live: &'a LiveRef,
    pub(crate) request: &'a Request,
    pub(crate) started: &'a Started,
    /// When the answer was ready; `None` if it was so at once.
    pub(crate) reply_us: Option<u64>,
}

/// Bytes that an exchange moved.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moved {
    pub(crate) head_out: u64,
    pub(crate) body_out: u64,
    pub(crate) body_in: u64,
}

impl<'a> Note<'a> {
    /// For an exchange whose answer is ready only now.
    pub(crate) fn ready_now(
        core: &CoreCtx,
        client: Peer,
        live: &'a LiveRef,
        request: &'a Request,
        started: &'a Started,
    ) -> Self {
        let reply_us = Some(core.flow.log.micros(core.flow.now()));
        Self { client, live, request, started, reply_us }
    }

    /// Tells the log of an exchange that is over.
    pub(crate) fn over(&self, core: &CoreCtx, reply: &Reply, moved: Moved, cut_off: bool) {
        let Self { client, live, request, started, reply_us } = *self;
        let told = Told {
            request: Some(request),
            reply_us,
            head_out: moved.head_out,
            body_in: moved.body_in,
            body_out: moved.body_out,
            cut_off,
            ..Told::new(client, live, started)
        };
        core.flow.log.answered(reply, &told);
    }

    /// Tells it of a client that has left before its answer came.
    pub(crate) fn gone(&self, core: &CoreCtx, body_in: u64) {
        core.flow.counters.inc(Counter::Aborted);
        if let Some(reply) = client_left() {
            self.over(core, &reply, Moved { body_in, ..Moved::default() }, true);
        }
    }
}
