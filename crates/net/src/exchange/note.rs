//! Note for the log: an exchange's times, bytes and end, and the request that it belongs to.

use std::cell::RefCell;

use base::{Counter, HeldBytes, Now};
use flow::finish::{RequestStart, TransactionFacts};
use flow::{ConnectionPeer, LiveRef, Reply, pages};
use message::{Request, Status};

use crate::account;
use crate::core::CoreCtx;

/// The status that nginx logs for a client that left before its reply; never sent.
const CLIENT_CLOSED: u16 = 499;

/// A time, by the monotonic clock and by the log's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExchangeTimestamp {
    pub(crate) now: Now,
    /// Microseconds of the log's clock.
    pub(crate) us: u64,
}

impl ExchangeTimestamp {
    /// The present time.
    pub(crate) fn now(core: &CoreCtx) -> Self {
        let now = core.flow.now();
        Self { now, us: core.flow.log.micros(now) }
    }
}

/// A request that is not answered at once, with its context.
pub(crate) struct DeferredRequest {
    pub(crate) request: Request,
    pub(crate) live: LiveRef,
    /// The client of the request.
    pub(crate) client: ConnectionPeer,
    pub(crate) started: RequestStart,
    /// The reservation for the waiting request.
    pub(crate) held: RefCell<Option<HeldBytes>>,
}

impl DeferredRequest {
    /// Releases the reservation, since the request has become a tunnel.
    pub(super) fn keep_for_tunnel(&self) {
        if let Some(held) = &mut *self.held.borrow_mut() {
            account::keep_for_tunnel(held, &self.request);
        }
    }
}

/// Facts for the log that are known before the reply is sent.
pub(crate) struct Note<'a> {
    pub(crate) client: ConnectionPeer,
    pub(crate) live: &'a LiveRef,
    pub(crate) request: &'a Request,
    pub(crate) started: &'a RequestStart,
    /// The time at which the reply was ready; `None` if it was at once.
    pub(crate) reply_us: Option<u64>,
}

/// Bytes of an exchange.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ExchangeBytes {
    pub(crate) head_out: u64,
    pub(crate) body_out: u64,
    pub(crate) body_in: u64,
}

impl<'a> Note<'a> {
    /// The note of an exchange whose reply was not ready at once.
    pub(crate) fn of(deferred: &'a DeferredRequest, reply_us: u64) -> Self {
        let DeferredRequest { request, live, client, started, .. } = deferred;
        Self { client: *client, live, request, started, reply_us: Some(reply_us) }
    }

    /// Logs an exchange that has completed.
    pub(crate) fn log_finished(&self, core: &CoreCtx, reply: &Reply, moved: ExchangeBytes) {
        self.tell(core, reply, moved, false);
    }

    /// Logs an exchange that did not complete; `reply` is `None` if the client left before its
    /// reply. The status is nginx's.
    pub(crate) fn log_aborted(&self, core: &CoreCtx, reply: Option<&Reply>, moved: ExchangeBytes) {
        core.flow.counters.inc(Counter::Aborted);
        if let Some(reply) = reply {
            return self.tell(core, reply, moved, true);
        }
        let Some(status) = Status::new(CLIENT_CLOSED) else { return };
        let page = pages::refused(status, "The client left before its response was ready.");
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
