//! Request context: a request with its configuration, site, client and notes, which each step
//! reads.
//!
//! Decides nothing.

use std::rc::Rc;
use std::sync::Arc;

use base::{Account, Limits, Now};
use cache::WindowLimit;
use message::cache_control::CacheControl;
use message::{HeaderId, Method, Request, Scheme};
use origin::{ClientEnds, Owner, logs_in};
use policy::{ConnectionPeer, Notes};

use crate::interims::Interims;
use crate::state::downstream::Downstream;
use crate::state::error_pages;
use crate::state::live_configuration::LiveRef;
use crate::state::miss::Miss;
use crate::state::reply::{HeadSource, Reply, ReplyOrigin};
use crate::state::site::Site;
use crate::state::site_context::SiteContext;
use crate::state::trace::{DecidingRule, Trace};
use crate::state::vcl::ExtraRequest;
use vcl::sub::Sub;

/// A request with its configuration, site, client and notes.
#[derive(Clone, Copy)]
pub(crate) struct RequestContext<'a> {
    pub(crate) live: &'a LiveRef,
    pub(crate) site: &'a Arc<Site>,
    pub(crate) request: &'a Request,
    pub(crate) notes: Notes,
    pub(crate) now: Now,
    /// The client's connection, for the needs of a waiting request.
    pub(crate) connection: RequestConnection<'a>,
    /// Notes on a waiting request, for its record.
    pub(crate) trace: Option<&'a Rc<Trace>>,
    pub(crate) downstream: &'a Downstream,
    /// The request's original cookies, if its response may have fragments: the policy may remove
    /// some that a fragment needs.
    pub(crate) cookies: Option<&'a [u8]>,
    /// Its way through the VCL beside the site's settings; `None` without one.
    pub(crate) extra: Option<&'a Rc<ExtraRequest>>,
}

/// The connection of a request, for its needs while it waits.
#[derive(Clone, Copy, Debug)]
pub struct RequestConnection<'a> {
    /// The client's queue of interim responses; `None` if it accepts none (HTTP/1.0).
    pub interims: Option<&'a Rc<Interims>>,
    /// Both ends of the connection.
    pub ends: Option<ClientEnds>,
    /// The window in bytes of a passing body, if the connection shares memory; 0 for the limit
    /// `window_bytes`.
    pub window: u64,
    /// The account of memory reserved for the connection.
    pub account: &'a Arc<Account>,
    /// The connection as owner of origin connections that a user has logged in to.
    pub owner: Option<&'a Owner>,
}

impl<'a> RequestConnection<'a> {
    /// The connection of a request that does not wait: its account only.
    pub fn of(account: &'a Arc<Account>) -> Self {
        Self { interims: None, ends: None, window: 0, account, owner: None }
    }

    /// The window of a body that passes to the client, and its account.
    pub(crate) fn passage(&self, limits: &Limits) -> WindowLimit {
        let bytes = if self.window == 0 { limits.window_bytes } else { self.window };
        WindowLimit { bytes, account: Arc::clone(self.account) }
    }
}

impl<'a> RequestContext<'a> {
    /// The context of a request that has not waited, with the account of its reply.
    pub(crate) fn new(
        SiteContext { live, site }: SiteContext<'a>,
        request: &'a Request,
        notes: Notes,
        now: Now,
        account: &'a Arc<Account>,
    ) -> Self {
        let (connection, downstream) = (RequestConnection::of(account), &Downstream::Client);
        let (trace, cookies, extra) = (None, None, None);
        Self { live, site, request, notes, now, connection, trace, downstream, cookies, extra }
    }

    /// The miss of the request under `key`; `is_new` if no stored response exists.
    pub(crate) fn miss(&self, key: &'a [u8], is_new: bool) -> Miss<'a> {
        let by_program = self.extra.is_some_and(|extra| extra.has(Sub::BackendFetch));
        let is_rewritten = by_program || self.site.policy.rewrites(&self.notes);
        let (site, asked, extra) = (self.site, self.request, self.extra.map(|own| &**own));
        Miss { site, asked, changed: None, key, is_new, is_rewritten, extra }
    }
}

impl RequestContext<'_> {
    /// The client's connection, unless it is a proxy's, which carries many clients' requests.
    pub(crate) fn owner(&self) -> Option<&Owner> {
        let peer = self.connection.ends?.client;
        let client = self.notes.client.and_then(ConnectionPeer::address)?;
        let is_passed_on = self.notes.passed_on || self.request.headers.contains(HeaderId::Via);
        self.connection.owner.filter(|_| client == peer.ip() && !is_passed_on)
    }

    /// Returns true if the response may belong to a user who logs in to a connection: it is fetched
    /// for this client alone.
    pub(crate) fn is_of_a_connection(&self) -> bool {
        logs_in(&self.request.headers) || self.owner().is_some_and(Owner::has_logged_in)
    }

    /// Notes a fact about a waiting request.
    pub(crate) fn note(&self, note: impl FnOnce(&Trace)) {
        if let Some(trace) = self.trace {
            note(trace);
        }
    }

    /// Adds the site's fields to the reply: Strict-Transport-Security, the deciding rule, and the
    /// site's error page. The log gets what the VCL beside the settings has done.
    pub(crate) fn sign(&self, reply: &mut Reply) {
        if let Some(trace) = self.extra.and_then(|extra| extra.take_trace()) {
            reply.about.program_trace = Some(trace);
        }
        complete(reply, self.site, self.request, &self.notes);
        sign(reply, self.site, &self.notes, self.request.scheme);
    }
}

/// Adds the site's fields and error page to a reply that was made here.
#[inline]
pub(crate) fn complete(reply: &mut Reply, site: &Site, request: &Request, notes: &Notes) {
    if reply.made != ReplyOrigin::No {
        complete_made(reply, site, request, notes);
    }
}

#[cold]
fn complete_made(reply: &mut Reply, site: &Site, request: &Request, notes: &Notes) {
    if std::mem::replace(&mut reply.made, ReplyOrigin::No) == ReplyOrigin::Plain {
        error_pages::put(reply, &site.error_pages, &request.method);
    }
    if let HeadSource::Owned(response) = &mut reply.head {
        site.policy.complete(request, notes, &mut response.headers);
    }
}

/// Adds the fields that all replies of `site` have.
pub(crate) fn sign(reply: &mut Reply, site: &Site, notes: &Notes, scheme: Scheme) {
    let Notes { rule, route, .. } = *notes;
    reply.about.decided = DecidingRule { site: site.number, rule, route };
    if scheme == Scheme::Https {
        reply.hsts = site.shown.hsts;
    }
}

/// Returns true if the client accepts only a stored response (RFC 9111 5.2.1.7). The directive
/// counts even if the site ignores client directives, as it spares the origin. It does not count
/// with an unsafe method, which only the origin can serve (RFC 9111 4).
pub(crate) fn only_if_cached(request: &Request) -> bool {
    matches!(request.method, Method::Get | Method::Head)
        && request.headers.contains(HeaderId::CacheControl)
        && CacheControl::parse(request.headers.values(HeaderId::CacheControl)).only_if_cached
}
