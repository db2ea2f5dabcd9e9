//! Caller: the client side of a connection that both engines share, with its endpoints, age,
//! account and the start of its requests.

use std::rc::Rc;
use std::sync::Arc;

use base::{Account, Limit, Limits};
use flow::finish::RequestStart;
use flow::{Client, ConnectionPeer, LiveRef, Start};
use message::{Request, Scheme};
use observe::CipherSuite;
use tls::SessionTerms;

use crate::core::CoreCtx;
use crate::exchange::ExchangeTimestamp;
use crate::guard::Guard;
use crate::proxy_header::{ConnectionAccess, ConnectionEndpoints, ConnectionView};
use crate::stream::Stream;

/// The client of one connection.
pub(crate) struct Caller {
    /// Results of the TLS handshake; `None` for a plain connection.
    secured: Option<Rc<SessionTerms>>,
    pub(crate) ends: ConnectionEndpoints,
    pub(crate) guard: Rc<Guard>,
    /// The account that its requests are charged to.
    pub(crate) account: Arc<Account>,
    view: ConnectionView,
    /// The number of requests received.
    pub(crate) served: u64,
    opened_ms: u64,
}

impl Caller {
    /// A client that connects now.
    pub(crate) fn new(
        secured: Option<Rc<SessionTerms>>,
        ends: ConnectionEndpoints,
        guard: Rc<Guard>,
        account: Arc<Account>,
        now_ms: u64,
    ) -> Self {
        let view = ConnectionView::default();
        Self { secured, ends, guard, account, view, served: 0, opened_ms: now_ms }
    }

    pub(crate) fn scheme(&self) -> Scheme {
        if self.secured.is_some() { Scheme::Https } else { Scheme::Http }
    }

    /// Checks the limits on the connection's age and number of requests.
    ///
    /// # Errors
    /// The limit that ends the connection after this request.
    pub(crate) fn may_stay(&self, limits: &Limits, now_ms: u64) -> Result<(), Limit> {
        if self.served >= limits.keepalive_requests {
            Err(Limit::KeepaliveRequests)
        } else if now_ms - self.opened_ms >= limits.connection_lifetime {
            Err(Limit::ConnectionLifetime)
        } else {
            Ok(())
        }
    }

    /// The start of a request that was received completely at `moment`; the caller sets its length.
    pub(crate) fn begun(&self, moment: ExchangeTimestamp) -> RequestStart {
        let ExchangeTimestamp { now: at, us } = moment;
        let suite = CipherSuite(self.secured.as_ref().map_or(0, |secured| secured.suite()));
        RequestStart { at, began_us: us, read_us: us, policy_us: us, head_bytes: 0, suite }
    }

    /// Starts a request: its reply if that needs no waiting, otherwise the waiting request.
    #[inline(always)]
    pub(crate) fn ask(
        &mut self,
        core: &CoreCtx,
        live: &LiveRef,
        stream: &mut Stream,
        request: &mut Request,
        started: &mut RequestStart,
    ) -> (Start, ConnectionPeer) {
        let now = started.at;
        let Self { secured, ends, guard, account, view, .. } = self;
        let secured = secured.as_ref();
        let link = ConnectionAccess { ends, stream: &mut *stream, guard, secured };
        let vcl_connection = view.line(core.flow.version(), live, link);
        let (peer, near) = (ends.peer, ends.is_near(stream));
        let asked = core.flow.start(
            live,
            request,
            &Client { peer, near, secured, vcl_connection, account },
            now,
        );
        started.policy_us = core.flow.log.micros(now);
        asked
    }
}
