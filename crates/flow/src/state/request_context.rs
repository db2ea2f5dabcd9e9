//! A request and what belongs to it while it is dealt with: the ground that every step stands on.
//!
//! Nothing here decides anything.

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

/// A request and what belongs to it while it is dealt with.
#[derive(Clone, Copy)]
pub(crate) struct RequestContext<'a> {
    pub(crate) live: &'a LiveRef,
    pub(crate) site: &'a Arc<Site>,
    pub(crate) request: &'a Request,
    pub(crate) notes: Notes,
    pub(crate) now: Now,
    /// The client's connection, as it serves the request while the request waits.
    pub(crate) front: RequestConnection<'a>,
    /// Where it is noted how a request that waits fares.
    pub(crate) trace: Option<&'a Rc<Trace>>,
    pub(crate) downstream: &'a Downstream,
    /// The cookies that the request came with, if its answer may have fragments: policy may take
    /// out for the page what a fragment needs.
    pub(crate) cookies: Option<&'a [u8]>,
}

/// The connection of a request, as it serves the request while the request waits.
#[derive(Clone, Copy, Debug)]
pub struct RequestConnection<'a> {
    /// Where the client waits for interim responses; `None` if it knows none (HTTP/1.0).
    pub interims: Option<&'a Rc<Interims>>,
    /// Both ends of that connection.
    pub ends: Option<ClientEnds>,
    /// Bytes of a passing body held for it, where the connection has to share with others; 0 for
    /// the limit `window_bytes`.
    pub window: u64,
    /// For whom bytes are held.
    pub account: &'a Arc<Account>,
    /// The connection, as owner of connections to origins that users log in to.
    pub owner: Option<&'a Owner>,
}

impl<'a> RequestConnection<'a> {
    /// The connection of a request that does not wait, or nobody's: of what it says there is only
    /// the account.
    pub fn of(account: &'a Arc<Account>) -> Self {
        Self { interims: None, ends: None, window: 0, account, owner: None }
    }

    /// Returns the bounds of a body that passes to the client: the bytes that it may hold, and the
    /// account for them.
    pub(crate) fn passage(&self, limits: &Limits) -> WindowLimit {
        let bytes = if self.window == 0 { limits.window_bytes } else { self.window };
        WindowLimit { bytes, account: Arc::clone(self.account) }
    }
}

impl<'a> RequestContext<'a> {
    /// A request that has not had to wait yet, for whose answer bytes are held on `account`.
    pub(crate) fn new(
        SiteContext { live, site }: SiteContext<'a>,
        request: &'a Request,
        notes: Notes,
        now: Now,
        account: &'a Arc<Account>,
    ) -> Self {
        let (front, downstream) = (RequestConnection::of(account), &Downstream::Client);
        Self { live, site, request, notes, now, front, trace: None, downstream, cookies: None }
    }

    /// The miss that the request is under `key`; `is_new` if nothing is stored in its place.
    pub(crate) fn miss(&self, key: &'a [u8], is_new: bool) -> Miss<'a> {
        Miss { site: self.site, asked: self.request, changed: None, key, is_new }
    }
}

impl RequestContext<'_> {
    /// The client's connection, if it is one client's: a proxy sends the requests of many over one.
    pub(crate) fn owner(&self) -> Option<&Owner> {
        let peer = self.front.ends?.client;
        let client = self.notes.client.and_then(ConnectionPeer::address)?;
        let is_passed_on = self.notes.passed_on || self.request.headers.contains(HeaderId::Via);
        self.front.owner.filter(|_| client == peer.ip() && !is_passed_on)
    }

    /// Returns true if the answer may be for a user who logs in to a connection, or has done so: it
    /// is fetched for this client alone.
    pub(crate) fn is_of_a_connection(&self) -> bool {
        logs_in(&self.request.headers) || self.owner().is_some_and(Owner::has_logged_in)
    }

    /// Notes something of how the request fares, if it is one that waits.
    pub(crate) fn note(&self, note: impl FnOnce(&Trace)) {
        if let Some(trace) = self.trace {
            note(trace);
        }
    }

    /// Adds to the reply what goes with every one of the site: Strict-Transport-Security, and who
    /// decided. The page of an error becomes the site's own.
    pub(crate) fn sign(&self, reply: &mut Reply) {
        complete(reply, self.site, self.request, &self.notes);
        sign(reply, self.site, self.notes.rule, self.request.scheme);
    }
}

/// Adds to a reply that was made here the fields of its site, and puts the site's own page of an
/// error into it.
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
        site.policy.complete(notes, &mut response.headers);
    }
}

/// Adds to the reply what goes with every one of `site`.
pub(crate) fn sign(reply: &mut Reply, site: &Site, rule: u32, scheme: Scheme) {
    reply.about.decided = DecidingRule { site: site.number, rule };
    if scheme == Scheme::Https {
        reply.hsts = site.shown.hsts;
    }
}

/// Returns true if the client wants nothing but a stored response (RFC 9111 5.2.1.7). The directive
/// counts even where the site ignores clients' directives, since it spares the origin. It does not
/// count in a request with an unsafe method, which only the origin can answer (RFC 9111 4).
pub(crate) fn only_if_cached(request: &Request) -> bool {
    matches!(request.method, Method::Get | Method::Head)
        && request.headers.contains(HeaderId::CacheControl)
        && CacheControl::parse(request.headers.values(HeaderId::CacheControl)).only_if_cached
}
