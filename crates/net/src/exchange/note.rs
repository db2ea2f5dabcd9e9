//! A request as its exchange has it, and the note for the log: times, bytes, and how it ended.

use std::cell::RefCell;

use base::{Counter, HeldBytes, Now};
use flow::finish::{RequestStart, TransactionFacts};
use flow::{ConnectionPeer, LiveRef, Reply, pages};
use message::{Request, Status};

use crate::account;
use crate::core::CoreCtx;

/// The status that nginx logs for a client that left before its answer; never sent.
const CLIENT_CLOSED: u16 = 499;

/// A moment, by the clock and as the log tells it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExchangeTimestamp {
    pub(crate) now: Now,
    /// Microseconds of the log's clock.
    pub(crate) us: u64,
}

impl ExchangeTimestamp {
    /// The present one.
    pub(crate) fn now(core: &CoreCtx) -> Self {
        let now = core.flow.now();
        Self { now, us: core.flow.log.micros(now) }
    }
}

/// A request that is not answered at once, and what belongs to it.
pub(crate) struct DeferredRequest {
    pub(crate) request: Request,
    pub(crate) live: LiveRef,
    /// On whose behalf it is made.
    pub(crate) client: ConnectionPeer,
    pub(crate) started: RequestStart,
    /// Memory that it takes while it is here.
    pub(crate) held: RefCell<Option<HeldBytes>>,
}

impl DeferredRequest {
    /// Gives back what the request waited with: it has become a tunnel.
    pub(super) fn keep_for_tunnel(&self) {
        if let Some(held) = &mut *self.held.borrow_mut() {
            account::keep_for_tunnel(held, &self.request);
        }
    }
}

/// Facts about an exchange for the log that are known before its answer is sent.
pub(crate) struct Note<'a> {
    pub(crate) client: ConnectionPeer,
    pub(crate) live: &'a LiveRef,
    pub(crate) request: &'a Request,
    pub(crate) started: &'a RequestStart,
    /// When the answer was ready; `None` if it was so at once.
    pub(crate) reply_us: Option<u64>,
}

/// Bytes that an exchange moved.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ExchangeBytes {
    pub(crate) head_out: u64,
    pub(crate) body_out: u64,
    pub(crate) body_in: u64,
}

impl<'a> Note<'a> {
    /// For an exchange whose answer was not ready at once.
    pub(crate) fn of(asked: &'a DeferredRequest, reply_us: u64) -> Self {
        let DeferredRequest { request, live, client, started, .. } = asked;
        Self { client: *client, live, request, started, reply_us: Some(reply_us) }
    }

    /// Tells the log of an exchange that is over.
    pub(crate) fn log_finished(&self, core: &CoreCtx, reply: &Reply, moved: ExchangeBytes) {
        self.tell(core, reply, moved, false);
    }

    /// Tells it of one that did not come to its end; `reply` is `None` if the client left before
    /// its answer came. The log says so as nginx's does.
    pub(crate) fn log_aborted(&self, core: &CoreCtx, reply: Option<&Reply>, moved: ExchangeBytes) {
        core.flow.counters.inc(Counter::Aborted);
        if let Some(reply) = reply {
            return self.tell(core, reply, moved, true);
        }
        let Some(status) = Status::new(CLIENT_CLOSED) else { return };
        let page = pages::refused(status, "The client left before its answer came.");
        let reply_us = Some(ExchangeTimestamp::now(core).us);
        Self { reply_us, ..*self }.tell(core, &page, moved, true);
    }

    fn tell(&self, core: &CoreCtx, reply: &Reply, moved: ExchangeBytes, cut_off: bool) {
        let Self { client, live, request, started, reply_us } = *self;
        let ExchangeBytes { head_out, body_out, body_in } = moved;
        let told = TransactionFacts {
            request: Some(request),
            reply_us,
            head_out,
            body_in,
            body_out,
            cut_off,
            ..TransactionFacts::new(client, live, started)
        };
        core.flow.log.answered(reply, &told);
    }
}
