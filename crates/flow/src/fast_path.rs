//! Fast path: the part of a request's course that never waits. It finds the site, passes the row of
//! stages, has the policy receive the request, looks up the key and judges the object found. A site
//! with a program hands the request to `vcl`.
//!
//! Must never block: a request that must wait is returned as [`Start::Slow`].

use std::cell::RefMut;
use std::rc::Rc;
use std::sync::Arc;

use base::{Counter, HashSeed, KeyBuf, Now};
use cache::{CacheLookup, Object};
use files::WouldBlock;
use message::freshness::Freshness;
use message::{HeaderId, Method, Request, cookie};
use policy::{ConnectionPeer, Declared, Notes, ReceiveCtx, ReceiveVerdict, StoreUse, Synthetic};

use crate::course::{self, CourseHandler};
use crate::crawlers::FetchPermit;
use crate::decisions::{self, LookupDecision, RequestDestination, freshness};
use crate::disposition::{Marks, RequestDisposition, Start, WaitingRequest};
use crate::invalidate::{InvalidationTarget, Sites};
use crate::limit_stage::LedRequest;
use crate::peers::{self, NodeRequest, PeerRefusal};
use crate::problem::Problem;
use crate::purge::{self, Answers, PurgeRequest, Refusal};
use crate::reception::{identified, received, received_beside};
use crate::stage::Entrant;
use crate::stage_row;
use crate::state::assemble::FragmentContext;
use crate::state::client::Client;
use crate::state::core::CoreState;
use crate::state::downstream::Downstream;
use crate::state::gate::SiteAdmission;
use crate::state::live_configuration::LiveRef;
use crate::state::reply::{CacheOutcome, ForwardReason, Reply};
use crate::state::request_context::RequestContext;
use crate::state::site::Site;
use crate::state::site_context::SiteContext;
use crate::state::trace::Trace;
use crate::state::vcl::ExtraRequest;
use crate::state::verification::SiteVerification;
use crate::vcl::extra::{self, ExtraVerdict};
use crate::vcl::start as program;
use crate::verification::{self, observation};
use crate::{declared, files as from_files, pages};
use vcl::program::Instance;

impl CoreState {
    /// Serves a request as far as possible without waiting. Also returns the client for whom it is
    /// made.
    pub fn start(
        self: &Rc<Self>,
        live: &LiveRef,
        request: &mut Request,
        client: &Client<'_>,
        now: Now,
    ) -> (Start, ConnectionPeer) {
        if client.secured.is_some_and(|secured| secured.auth().is_some())
            && let Some(begun) = peers::begin(&self.shared.peers, request, client)
        {
            return match begun {
                Ok(NodeRequest { client, added_key }) => {
                    let downstream = &Downstream::Node(added_key);
                    self.start_for_node(live, request, &client, now, downstream)
                }
                Err(reply) => (Start::Reply(reply), client.peer),
            };
        }
        self.counters.inc(Counter::Requests);
        let site = match decisions::enter(&self.shared.challenges, live, request, client) {
            RequestDestination::Site(site) => site,
            RequestDestination::Challenge(answer) => {
                self.counters.inc(Counter::AcmeChallenges);
                return (Start::Reply(pages::challenge(request, answer)), client.peer);
            }
            RequestDestination::Health => {
                return (
                    Start::Reply(pages::health(request, live.trust.readiness(now.mono_ms))),
                    client.peer,
                );
            }
            RequestDestination::Refused(problem) => {
                return (Start::Reply(pages::problem(request, problem)), client.peer);
            }
            RequestDestination::Purge(site, read) => {
                return self.start_purge(live, site, request, client, now, read);
            }
        };
        let entrant = Entrant {
            site_ctx: SiteContext { live, site },
            client,
            now,
            downstream: &Downstream::Client,
        };
        stage_row::enter(self, &entrant, request)
    }

    /// Serves another node's request as far as possible without waiting. The response is a stored
    /// one or none.
    #[cold]
    fn start_for_node(
        self: &Rc<Self>,
        live: &LiveRef,
        request: &mut Request,
        client: &Client<'_>,
        now: Now,
        downstream: &Downstream,
    ) -> (Start, ConnectionPeer) {
        let silent = || Start::Reply(peers::silent(PeerRefusal::Nothing));
        let start = match decisions::enter(&self.shared.challenges, live, request, client) {
            RequestDestination::Site(site)
                if site.client_check.is_none()
                    // What the VCL there has changed is for a site that has it.
                    && (site.extra.is_some() || downstream.key_of_node().is_none()) =>
            {
                let site_ctx = SiteContext { live, site };
                let entrant = Entrant { site_ctx, client, now, downstream };
                stage_row::enter(self, &entrant, request).0
            }
            _ => silent(),
        };
        let start = match start {
            Start::Reply(reply) => Start::Reply(peers::for_node_only(reply)),
            Start::Slow(slow) if slow.is_past_the_store() => silent(),
            slow @ Start::Slow(_) => slow,
        };
        (start, client.peer)
    }

    /// Serves a fragment's request as far as possible without waiting.
    pub(crate) fn start_fragment(
        self: &Rc<Self>,
        site_ctx: SiteContext<'_>,
        request: &mut Request,
        context: &Rc<FragmentContext>,
        now: Now,
    ) -> Start {
        let (peer, vcl_connection, account) =
            (context.top.peer, context.top.vcl_connection.as_ref(), &context.top.account);
        let client = &Client { peer, near: false, secured: None, vcl_connection, account };
        let downstream = &Downstream::Page(Rc::clone(context));
        stage_row::enter(self, &Entrant { site_ctx, client, now, downstream }, request).0
    }

    /// Has the site's policy or program receive a request that has passed the row of stages, and
    /// serves it as far as possible without waiting.
    #[inline(always)]
    pub(crate) fn receive(
        self: &Rc<Self>,
        entrant: &Entrant<'_>,
        request: &mut Request,
        admission: Option<&SiteAdmission>,
    ) -> (Start, ConnectionPeer) {
        let Entrant { site_ctx, client, now, downstream } = *entrant;
        if let Some(instance) = &site_ctx.site.vcl {
            return (program::start(self, instance, entrant, request), client.peer);
        }
        if site_ctx.site.extra.is_some() || site_ctx.site.verification.is_some() {
            return self.receive_watched(entrant, request, admission);
        }
        let kept = self.keep_cookies(site_ctx.site, request);
        let mut notes = Notes::default();
        let verdict = received(
            entrant,
            request,
            admission,
            StoreUse::ByRules,
            &mut notes,
            |policy, policy_ctx| policy.receive(policy_ctx),
        );
        let ctx = RequestContext::new(site_ctx, request, notes, now, client.account);
        let ctx = RequestContext { downstream, cookies: kept.cookies.as_deref(), ..ctx };
        let who = notes.client.unwrap_or(client.peer);
        (self.judged(&ctx, verdict), who)
    }

    /// Has the policy receive a request of a site with a VCL beside its settings, or whose hits are
    /// compared with the origin. Apart from other sites' requests, whose replies it would move.
    #[inline(never)]
    fn receive_watched(
        self: &Rc<Self>,
        entrant: &Entrant<'_>,
        request: &mut Request,
        admission: Option<&SiteAdmission>,
    ) -> (Start, ConnectionPeer) {
        let Entrant { site_ctx, client, now, downstream } = *entrant;
        let verification = site_ctx.site.verification.as_deref();
        if let Some(own) = verification.filter(|own| own.observes()) {
            return self.receive_observed(own, entrant, request, admission);
        }
        let kept = self.keep_cookies(site_ctx.site, request);
        if let Some(instance) = &site_ctx.site.extra {
            let cookies = kept.cookies.as_deref();
            let arrival = SiteArrival { admission, cookies, is_limited: true };
            let then = |ctx: &RequestContext<'_>, verdict| self.judged(ctx, verdict);
            return self.receive_beside(instance, entrant, request, arrival, then);
        }
        let telling = verification.and_then(|own| own.telling_cookies(request, now.mono_ms));
        let mut notes = Notes::default();
        let mut verdict = received(
            entrant,
            request,
            admission,
            StoreUse::ByRules,
            &mut notes,
            |policy, policy_ctx| policy.receive(policy_ctx),
        );
        if let Some(cookies) = telling {
            let overruled = verification::overrule(request, &mut notes, &verdict, &cookies);
            verdict =
                overruled.inspect(|_| self.counters.inc(Counter::VerifyPasses)).unwrap_or(verdict);
        }
        let ctx = RequestContext::new(site_ctx, request, notes, now, client.account);
        let ctx = RequestContext { downstream, cookies: kept.cookies.as_deref(), ..ctx };
        let who = notes.client.unwrap_or(client.peer);
        // Made in the caller's place: a move of a reply costs some 30 instructions.
        let mut started = (self.judged(&ctx, verdict), who);
        if let Some(own) = verification {
            verification::begin(self, own, &ctx, &mut started.0);
        }
        started
    }

    /// Has the policy receive a request of a site that only observes: it goes to the origin.
    #[cold]
    fn receive_observed(
        self: &Rc<Self>,
        own: &SiteVerification,
        entrant: &Entrant<'_>,
        request: &mut Request,
        admission: Option<&SiteAdmission>,
    ) -> (Start, ConnectionPeer) {
        let Entrant { site_ctx, client, now, downstream } = *entrant;
        observation::look_on(self, own, entrant, request, admission);
        let kept = self.keep_cookies(site_ctx.site, request);
        let mut notes = Notes::default();
        let verdict = received(
            entrant,
            request,
            admission,
            StoreUse::Untouched,
            &mut notes,
            |policy, policy_ctx| policy.receive(policy_ctx),
        );
        let ctx = RequestContext::new(site_ctx, request, notes, now, client.account);
        let ctx = RequestContext { downstream, cookies: kept.cookies.as_deref(), ..ctx };
        (self.judged(&ctx, verdict), notes.client.unwrap_or(client.peer))
    }

    /// Has the policy of a site receive a request between the subroutines of the VCL beside its
    /// settings; `then` follows its verdict.
    #[inline(never)]
    fn receive_beside(
        self: &Rc<Self>,
        instance: &Arc<Instance>,
        entrant: &Entrant<'_>,
        request: &mut Request,
        arrival: SiteArrival<'_>,
        then: impl FnOnce(&RequestContext<'_>, ReceiveVerdict) -> Start,
    ) -> (Start, ConnectionPeer) {
        let Entrant { site_ctx, client, now, downstream } = *entrant;
        let SiteArrival { admission, cookies, is_limited } = arrival;
        let mut notes = identified(entrant, request);
        let who = notes.client.unwrap_or(client.peer);
        let mut limit_permit = None;
        let (own, store) = match extra::receive(self, instance, entrant, request, who) {
            None => (None, StoreUse::ByRules),
            Some((own, ExtraVerdict::On(store))) => {
                let counted = is_limited.then(|| {
                    LedRequest { came: &own.turn.borrow().req, request, client: who }
                        .count(self, entrant)
                });
                match counted.unwrap_or(Ok(None)) {
                    Ok(counted) => limit_permit = counted,
                    Err(mut reply) => {
                        reply.about.program_trace = own.take_trace();
                        own.end(self);
                        return (Start::Reply(*reply), who);
                    }
                }
                (Some(own), store)
            }
            Some((own, ExtraVerdict::End(reply))) => {
                return (self.answered_beside(entrant, request, own, reply), who);
            }
        };
        let verdict =
            received_beside(entrant, request, admission, store, &mut notes, |policy, ctx| {
                policy.receive(ctx)
            });
        let own = match own {
            Some(own) if !extra::hash(self, &own, entrant, request, &verdict) => {
                let reply = pages::problem(request, Problem::Program);
                return (self.answered_beside(entrant, request, own, reply), who);
            }
            own => own,
        };
        let ctx = RequestContext::new(site_ctx, request, notes, now, client.account);
        let mut start =
            then(&RequestContext { downstream, cookies, extra: own.as_ref(), ..ctx }, verdict);
        Marks { limit_permit, user: None }.put(&mut start);
        if let Some(own) = own {
            own.end(self);
        }
        (start, who)
    }

    /// The answer of a site's VCL in place of the declared steps.
    fn answered_beside(
        self: &Rc<Self>,
        entrant: &Entrant<'_>,
        request: &Request,
        own: Rc<ExtraRequest>,
        mut reply: Reply,
    ) -> Start {
        let Entrant { site_ctx, client, now, downstream } = *entrant;
        let notes = Notes { rule: Declared::VCL, ..Notes::default() };
        let ctx = RequestContext::new(site_ctx, request, notes, now, client.account);
        let ctx = RequestContext { downstream, extra: Some(&own), ..ctx };
        ctx.sign(&mut reply);
        own.end(self);
        Start::Reply(reply)
    }

    /// Keeps the cookies of a request whose response may have fragments or be compared with the
    /// origin, in the core's scratch buffer.
    #[inline(always)]
    fn keep_cookies(&self, site: &Site, request: &Request) -> KeptCookies<'_> {
        let cookies = (site.includes.any() || site.verification.is_some()).then(|| {
            // Without cookies it needs no room.
            if !request.headers.contains(HeaderId::Cookie) {
                return Vec::new();
            }
            let mut kept = self.scratch.cookies.take();
            kept.clear();
            cookie::write_joined(request.headers.values(HeaderId::Cookie), &mut kept);
            kept
        });
        KeptCookies { core: self, cookies }
    }

    /// Follows the policy's verdict as far as possible without waiting.
    #[inline(always)]
    fn judged(self: &Rc<Self>, ctx: &RequestContext<'_>, verdict: ReceiveVerdict) -> Start {
        let mut start = course::follow(&mut ServingCore(self), ctx, verdict);
        match start.reply() {
            Some(reply) => ctx.sign(reply),
            None => return start,
        }
        if matches!(start, Start::Slow(_)) {
            start = start.begin(self);
        }
        start
    }

    /// Serves a purge. Also returns the client.
    fn start_purge(
        self: &Rc<Self>,
        live: &LiveRef,
        site: &Arc<Site>,
        request: &mut Request,
        client: &Client<'_>,
        now: Now,
        read: Result<PurgeRequest, Refusal>,
    ) -> (Start, ConnectionPeer) {
        let (peer, account) = (client.peer, client.account);
        let asker = site.policy.asker(request, peer);
        let site_ctx = SiteContext { live, site };
        let mut notes = Notes::default();
        let start = match read {
            Err(refusal) => Start::Reply(purge::refused(&self.counters, request, refusal)),
            Ok(PurgeRequest::Refresh) => {
                self.counters.inc(Counter::Purges);
                let kept = self.keep_cookies(site, request);
                make_reader(request);
                let cookies = kept.cookies.as_deref();
                let then = |ctx: &RequestContext<'_>, verdict| match verdict {
                    ReceiveVerdict::Lookup if !ctx.notes.personal => self.fetch_anew(ctx),
                    verdict => self.judged(ctx, verdict),
                };
                if let Some(instance) = &site.extra {
                    let downstream = &Downstream::Client;
                    let entrant = &Entrant { site_ctx, client, now, downstream };
                    // Purges are not limited.
                    let arrival = SiteArrival { admission: None, cookies, is_limited: false };
                    self.receive_beside(instance, entrant, request, arrival, then).0
                } else {
                    let notes = &mut notes;
                    let policy_ctx = &mut ReceiveCtx {
                        request,
                        client: peer,
                        now,
                        store: StoreUse::ByRules,
                        notes,
                    };
                    let verdict = site.policy.receive(policy_ctx);
                    let ctx = RequestContext::new(site_ctx, request, *notes, now, account);
                    then(&RequestContext { cookies, ..ctx }, verdict)
                }
            }
            Ok(PurgeRequest::Store(order, answers)) => {
                notes.client = Some(asker);
                let ctx = RequestContext::new(site_ctx, request, notes, now, account);
                self.slow(&ctx, RequestDisposition::Purge(Box::new(order), answers))
            }
        };
        (start, asker)
    }

    /// Invalidates the stored responses of the request and fetches anew.
    fn fetch_anew(self: &Rc<Self>, ctx: &RequestContext<'_>) -> Start {
        let mut key = KeyBuf::new();
        let extra = ctx.extra.map(|extra| extra.key_addition());
        self.make_key(ctx.site, ctx.request, &ctx.notes, extra, &mut key);
        // A fetch in progress began before this request.
        let under_way = self.shared.invalidator.invalidation(
            InvalidationTarget::key(&key),
            true,
            Sites::Every,
            ctx.now,
        );
        if let Err(why) = self.invalidate(ctx, [under_way]) {
            return Start::Reply(purge::not_done(ctx.request, &why));
        }
        let old = match self.find(&key, ctx.request, ctx.now) {
            CacheLookup::Object(object) => Some(object),
            CacheLookup::HitForMiss | CacheLookup::Nothing => None,
        };
        self.slow(ctx, RequestDisposition::Fetch { key, old })
    }

    fn slow(&self, ctx: &RequestContext<'_>, disposition: RequestDisposition) -> Start {
        Start::Slow(self.waiting(ctx, disposition))
    }

    /// The waiting request with this disposition.
    pub(crate) fn waiting(
        &self,
        ctx: &RequestContext<'_>,
        disposition: RequestDisposition,
    ) -> Box<WaitingRequest> {
        Box::new(WaitingRequest {
            notes: ctx.notes,
            downstream: ctx.downstream.clone(),
            cookies: ctx.cookies.map(Box::from),
            extra: ctx.extra.cloned(),
            ..WaitingRequest::on(SiteContext { live: ctx.live, site: ctx.site }, disposition)
        })
    }

    /// Starts the background fetch of a stale object unless one is running, or the queue for
    /// crawlers has no place for it. Returns the trace of
    /// the causing request, with its transaction number.
    pub(crate) fn refresh(
        self: &Rc<Self>,
        ctx: &RequestContext<'_>,
        key: &KeyBuf,
        object: &Arc<Object>,
    ) -> Option<Rc<Trace>> {
        let permit = FetchPermit::at_once(self, ctx)?;
        let lead = self.shared.cache.begin_refresh(key, object)?;
        let cause = self.log.number();
        declared::refresh(self, ctx, key, lead, Some(object), cause, permit);
        Some(Trace::numbered(cause))
    }
}

impl CoreState {
    /// Starts the background fetch of a fresh object that is popular and near its end.
    #[inline(never)]
    fn refresh_ahead(
        self: &Rc<Self>,
        ctx: &RequestContext<'_>,
        key: &KeyBuf,
        object: &Arc<Object>,
    ) {
        let (hash, now_ms) = (key.hash(), ctx.now.mono_ms);
        let times = freshness(ctx.live, object, now_ms);
        if ctx.site.warmth.is_due(hash, object.hits(), &times, now_ms)
            && !self.shared.failing.is_failing(hash)
            && self.refresh(ctx, key, object).is_some()
        {
            self.counters.inc(Counter::RefreshedAhead);
        }
    }
}

/// The arrival of a request at the policy of a site with a VCL beside its settings.
struct SiteArrival<'a> {
    admission: Option<&'a SiteAdmission>,
    /// The cookies as they came, where fragments need them.
    cookies: Option<&'a [u8]>,
    /// The limits of what `vcl_recv` leads to count the request.
    is_limited: bool,
}

/// A request's cookies in the core's scratch buffer, which gets its memory back on drop.
struct KeptCookies<'c> {
    core: &'c CoreState,
    cookies: Option<Vec<u8>>,
}

impl Drop for KeptCookies<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(cookies) = self.cookies.take().filter(|cookies| cookies.capacity() > 0) {
            self.core.scratch.cookies.set(cookies);
        }
    }
}

/// Notes on a reply from the store how it was found. Returns true if its body must be fetched anew.
#[inline(always)]
fn note(
    start: &mut Start,
    ctx: &RequestContext<'_>,
    key: &KeyBuf,
    cause: Option<Rc<Trace>>,
) -> bool {
    let Some(reply) = start.reply() else { return false };
    reply.about.key = key.hash();
    reply.about.trace = cause;
    reply.is_to_be_fetched(ctx.request)
}

/// A core that acts on a request's course.
pub(crate) struct ServingCore<'a>(pub(crate) &'a Rc<CoreState>);

impl<'a> CourseHandler for ServingCore<'a> {
    type End = Start;
    type Key = RefMut<'a, KeyBuf>;

    #[inline(always)]
    fn seed(&self) -> &HashSeed {
        &self.0.shared.seed
    }

    #[inline(always)]
    fn key(&self) -> Self::Key {
        self.0.scratch.key.borrow_mut()
    }

    fn file(&mut self, ctx: &RequestContext<'_>, root: u32) -> Start {
        let Some(root) = ctx.site.files.get(root as usize) else {
            return Start::Reply(pages::problem(ctx.request, Problem::NoFile));
        };
        match from_files::look(self.0, ctx, root) {
            Ok(look) => Start::Reply(from_files::answer(Some(self.0), ctx, &look)),
            Err(WouldBlock) => self.0.slow(ctx, RequestDisposition::File(Arc::clone(root))),
        }
    }

    #[inline(always)]
    fn file_beside(&mut self, ctx: &RequestContext<'_>, verdict: &ReceiveVerdict) -> Option<Start> {
        match from_files::likely(self.0, ctx) {
            Ok(reply) => reply.map(Start::Reply),
            Err(WouldBlock) => Some(self.0.slow(ctx, RequestDisposition::Beside(verdict.clone()))),
        }
    }

    #[inline(always)]
    fn other_file_beside(&mut self, ctx: &RequestContext<'_>) -> Option<Start> {
        // A file that is not open yet is found by the origin's rules, during a fetch.
        from_files::known(self.0, ctx).map(Start::Reply)
    }

    #[inline(always)]
    fn find(&mut self, ctx: &RequestContext<'_>, key: &KeyBuf) -> CacheLookup {
        self.0.find(key, ctx.request, ctx.now)
    }

    #[inline(always)]
    fn times(&self, ctx: &RequestContext<'_>, object: &Object) -> Freshness {
        freshness(ctx.live, object, ctx.now.mono_ms)
    }

    #[inline(always)]
    fn deliver(
        &mut self,
        ctx: &RequestContext<'_>,
        key: &KeyBuf,
        object: Arc<Object>,
        served: CacheOutcome,
    ) -> Start {
        let mut cause = None;
        if served == CacheOutcome::Stale {
            cause = self.0.refresh(ctx, key, &object);
        } else if ctx.site.warmth.refresh_ahead.is_some() {
            self.0.refresh_ahead(ctx, key, &object);
        }
        let mut start = declared::stored(Some(self.0), ctx, &object, served);
        if note(&mut start, ctx, key, cause) {
            let next = match object.is_live() {
                true => LookupDecision::Alone(ForwardReason::UriMiss),
                // The record has left the disk, and no lookup finds it.
                false => LookupDecision::Fetch(None),
            };
            start = course::miss(self, ctx, key, next);
        }
        start
    }

    /// Once a second the object is also fetched in the background.
    fn stand_in(
        &mut self,
        ctx: &RequestContext<'_>,
        key: &KeyBuf,
        object: &Arc<Object>,
    ) -> Option<Start> {
        let (core, now_ms) = (self.0, ctx.now.mono_ms);
        let times = freshness(ctx.live, object, now_ms);
        let due = core.shared.failing.stands_in(key.hash(), &times, now_ms)?;
        let cause = if due { core.refresh(ctx, key, object) } else { None };
        let mut start = declared::stored(Some(core), ctx, object, CacheOutcome::StaleOnError);
        note(&mut start, ctx, key, cause);
        Some(start)
    }

    #[inline(always)]
    fn page(
        &mut self,
        ctx: &RequestContext<'_>,
        key: &KeyBuf,
        next: &LookupDecision,
    ) -> Option<Start> {
        match from_files::page(self.0, ctx) {
            Ok(reply) => reply.map(Start::Reply),
            Err(WouldBlock) => {
                let disposition = Box::new(RequestDisposition::after(next.clone(), key));
                Some(self.0.slow(ctx, RequestDisposition::Page(disposition)))
            }
        }
    }

    fn fetch(&mut self, ctx: &RequestContext<'_>, key: &KeyBuf, next: LookupDecision) -> Start {
        self.0.slow(ctx, RequestDisposition::after(next, key))
    }

    fn pass(&mut self, ctx: &RequestContext<'_>, reason: ForwardReason) -> Start {
        self.0.slow(ctx, RequestDisposition::Pass(reason))
    }

    fn upgrade(&mut self, ctx: &RequestContext<'_>) -> Start {
        self.0.slow(ctx, RequestDisposition::Upgrade)
    }

    fn answer(&mut self, ctx: &RequestContext<'_>, synthetic: &Synthetic) -> Start {
        Start::Reply(pages::synthetic(ctx.request, synthetic))
    }

    fn last_hop(&mut self, ctx: &RequestContext<'_>) -> Start {
        Start::Reply(pages::options(ctx.request))
    }

    fn purge(&mut self, ctx: &RequestContext<'_>) -> Start {
        let (core, request) = (self.0, ctx.request);
        let stored = core.removal(
            SiteContext { live: ctx.live, site: ctx.site },
            request,
            &ctx.notes,
            ctx.now,
        );
        match core.invalidate(ctx, [stored]) {
            Ok(outcome) => {
                let reply = purge::done(&core.counters, request, outcome, Answers::Always);
                match outcome.recorded {
                    true => core.slow(ctx, RequestDisposition::Recorded(Box::new(reply))),
                    false => Start::Reply(reply),
                }
            }
            Err(why) => Start::Reply(purge::not_done(request, &why)),
        }
    }
}

impl RequestDisposition {
    /// The disposition after a lookup by `key`.
    fn after(next: LookupDecision, key: &KeyBuf) -> Self {
        match next {
            LookupDecision::Fetch(old) => Self::Fetch { key: key.clone(), old },
            LookupDecision::Alone(reason) => Self::Alone { key: key.clone(), reason },
            // `Deliver` has no fetch.
            LookupDecision::Pass | LookupDecision::Deliver(..) => Self::Pass(ForwardReason::Bypass),
        }
    }
}

/// Gives a request that fetches a page anew the method and the fields of a reader's request.
fn make_reader(request: &mut Request) {
    request.method = Method::Get;
    for id in [HeaderId::CacheControl, HeaderId::Pragma, HeaderId::Authorization] {
        request.headers.remove(id);
    }
}
