//! Fetch under the declared policy: the judge that applies RFC 9111 first, then the site's rules.

use std::rc::Rc;
use std::sync::Arc;

use base::{KeyBuf, Now};
use cache::{DemotionPolicy, NewObject, Object, Record, Tags};
use codec::Coding;
use files::accel::{self, AccelDirectives, AccelFile};
use message::freshness::Freshness;
use message::store::{self, NotStored, Permit, StorePlan};
use message::trailers::are_taken;
use message::{Framing, HeaderId, Method, Request, Response, Status};
use origin::{Exchange, Origin, Protocol, Timeouts};
use policy::{
    BackendResponse, ConnectionPeer, FetchCtx, FetchVerdict, Notes, ResponseCtx, StorageChoice,
};
use vcl::trace::ProgramTrace;

use super::beside::StoredResponse;
use super::includes;
use super::object::{object_by, selector};
use super::sticky;
use super::substitute::{FetchFailure, SubstituteAnswer, UpgradedConnection};
use crate::body_transfer::TransferOutcome;
use crate::crawlers::FetchPermit;
use crate::decisions::freshness;
use crate::fetch::{
    self, Attempt, CollectedBody, Fetch, FetchTarget, InsertionPlan, Job, Judge, Mark,
    ResponseBodySource, ResponseFate, UnstoredEffects, UnstoredResponse,
};
use crate::files::NamedFile;
use crate::finish::BackgroundCause;
use crate::form::{self, Chooser, PassingForm};
use crate::origin_messages::{self, FetchPurpose};
use crate::problem::Problem;
use crate::recode::BodyRecoding;
use crate::slices::may_slice;
use crate::state::assemble::Dialect;
use crate::state::core::CoreState;
use crate::state::downstream::Downstream;
use crate::state::origin::SiteOrigin;
use crate::state::request_context::{RequestConnection, RequestContext};
use crate::state::site::Site;
use crate::state::site_context::SiteContext;
use crate::state::slices::{Probe, Shape, part_of};
use crate::state::tier::Lead;
use crate::trailers::{self, TrailerFilter};
use crate::unstored_reason::UnstoredReason;
use crate::vcl::extra_fetch::{ExtraFetch, Report};
use crate::verdict::{RevalidationJudge, hear};
use crate::{peers, surrogate, tags};
use codec::CompressionScope;

/// The declared policy's state during a fetch.
pub(crate) struct PolicyJudge {
    pub(super) site: Arc<Site>,
    /// The client's request.
    pub(super) request: Request,
    pub(super) notes: Notes,
    /// A stored object that a 304 does not confirm, but that may answer in place of a failing
    /// origin.
    spare: Option<Arc<Object>>,
    /// The client's own method, conditions and ranges are sent.
    own: bool,
    /// The client's Upgrade is sent.
    upgrade: bool,
    /// The response goes to a client, not into a page or to another node.
    is_for_client: bool,
    /// The fetch bypasses the store because of the object stored there.
    pub(super) beside: bool,
    /// The time of the last try.
    sent: Now,
    pub(super) tries: u64,
    /// The range that is requested instead of an unknown whole.
    probe: Option<Probe>,
    /// No such range was requested in vain yet.
    may_probe: bool,
    /// The subroutines of the VCL beside the site's settings.
    pub(super) extra: Option<Box<ExtraFetch>>,
}

/// A fetch that this policy judges.
type PolicyJob = Box<Job<PolicyJudge>>;

impl PolicyJudge {
    /// The demotion policy of the route's responses.
    pub(super) fn own_sinks(&self) -> DemotionPolicy {
        match self.site.policy.store_in(&self.notes) {
            StorageChoice::Memory => DemotionPolicy::Never,
            StorageChoice::Disk => DemotionPolicy::Always,
            StorageChoice::Both => DemotionPolicy::ByMerit,
        }
    }

    /// A fetch for the store, whose response answers all waiters.
    pub(crate) fn store(
        core: &Rc<CoreState>,
        ctx: &RequestContext<'_>,
        key: &KeyBuf,
        lead: Lead,
        old: Option<Arc<Object>>,
    ) -> PolicyJob {
        let mut own = Self::bare(core, ctx, key.hash());
        (own.fetch.lead, own.fetch.old) = (Some(lead), old);
        let verification = ctx.site.verification.as_deref();
        // Another node may have stored a page that is not stored here.
        let is_held = verification.is_some_and(|own| own.holds(key.hash(), ctx.now.mono_ms));
        if peers::may_have(ctx) && !is_held {
            let is_new = own.fetch.old.is_none();
            own.fetch.ask_others(ctx.miss(key.bytes(), is_new));
        }
        own
    }

    /// A fetch without waiting for others, whose response may be stored; `spare` may answer for a
    /// failing origin.
    pub(crate) fn alone(
        core: &Rc<CoreState>,
        ctx: &RequestContext<'_>,
        key: &KeyBuf,
        lead: Lead,
        spare: Option<Arc<Object>>,
    ) -> PolicyJob {
        let mut own = Self::bare(core, ctx, key.hash());
        own.fetch.lead = Some(lead);
        (own.judge.own, own.judge.spare) = (true, spare);
        own
    }

    /// A fetch past the store.
    pub(crate) fn pass(core: &Rc<CoreState>, ctx: &RequestContext<'_>) -> PolicyJob {
        let key_hash = core.shared.seed.hash(&ctx.request.target);
        let mut own = Self::bare(core, ctx, key_hash);
        own.judge.own = true;
        if let Some(extra) = &mut own.judge.extra {
            extra.pass();
        }
        own.fetch.caller.owner = ctx.owner().cloned();
        own
    }

    /// A fetch past the store, whose object is for others; `spare` may answer for a failing origin.
    pub(crate) fn beside(
        core: &Rc<CoreState>,
        ctx: &RequestContext<'_>,
        spare: Option<Arc<Object>>,
    ) -> PolicyJob {
        let mut own = Self::pass(core, ctx);
        (own.judge.beside, own.judge.spare) = (true, spare);
        own
    }

    /// A fetch past the store that may change the protocol.
    pub(crate) fn upgrade(core: &Rc<CoreState>, ctx: &RequestContext<'_>) -> PolicyJob {
        let mut own = Self::pass(core, ctx);
        own.judge.upgrade = true;
        own
    }

    fn bare(core: &Rc<CoreState>, ctx: &RequestContext<'_>, key_hash: u64) -> PolicyJob {
        let mut fetch = Fetch::new(core, ctx.live, &ctx.connection, key_hash);
        fetch.caller.client = ctx.notes.client.and_then(ConnectionPeer::address);
        fetch.caller.preferred = ctx.notes.server.map(usize::from);
        fetch.trace = ctx.trace.cloned();
        let judge = Self {
            site: Arc::clone(ctx.site),
            request: ctx.request.clone(),
            notes: ctx.notes,
            spare: None,
            own: false,
            upgrade: false,
            is_for_client: matches!(ctx.downstream, Downstream::Client),
            beside: false,
            sent: ctx.now,
            tries: 0,
            probe: None,
            may_probe: true,
            extra: ExtraFetch::of(ctx),
        };
        Job::new(fetch, judge)
    }
}

/// Starts the background fetch of a key, whose stale object is `old`, caused by `transaction`.
pub(crate) fn refresh(
    core: &Rc<CoreState>,
    ctx: &RequestContext<'_>,
    key: &KeyBuf,
    lead: Lead,
    old: Option<&Arc<Object>>,
    transaction: u64,
    permit: FetchPermit,
) {
    let ctx = &RequestContext {
        trace: None,
        connection: RequestConnection::of(&core.background),
        ..*ctx
    };
    let mut own = PolicyJudge::store(core, ctx, key, lead, old.cloned());
    own.fetch.permit = permit;
    let Notes { rule, route, .. } = ctx.notes;
    let cause = BackgroundCause { rule, route, key: key.hash(), transaction };
    fetch::start_behind(own, ctx.site, ctx.request, cause);
}

impl Judge for PolicyJudge {
    type Instead = SubstituteAnswer;
    type Facts = Option<Dialect>;
    type Pending = std::convert::Infallible;
    type Report = Option<Box<Report>>;

    const COUNTS_ON: bool = true;

    fn ends_with_client(&self, _: &Fetch) -> bool {
        self.own && self.request.method.is_safe()
    }

    fn sinks(&self) -> DemotionPolicy {
        self.own_sinks()
    }

    fn ask(&mut self, fetch: &mut Fetch) -> Attempt<Self> {
        fetch.request = self.origin_request(fetch);
        let pass = fetch.lead.is_none();
        let mut policy_ctx = FetchCtx { request: &mut fetch.request, pass, notes: &mut self.notes };
        if let FetchVerdict::Synth(synthetic) = self.site.policy.fetch(&mut policy_ctx) {
            return Attempt::Fate(ResponseFate::Instead(
                SubstituteAnswer::Synthetic(synthetic),
                None,
            ));
        }
        if let Some(fate) = self.ask_beside(fetch) {
            return Attempt::Fate(fate);
        }
        let Some(SiteOrigin { origin, front_files, .. }) = self.site.origin(&self.notes) else {
            let reason = "This site has no origin to ask.".to_owned();
            let problem = Problem::Origin { status: Status::BAD_GATEWAY, reason, limit: None };
            let failure = FetchFailure { problem, stale: None, unreachable: false };
            return Attempt::Fate(self.fail(fetch, failure));
        };
        if origin.protocol() == Protocol::Http {
            self.pass_trailers(fetch);
        }
        self.probe = self.probe_of(fetch, origin);
        if let Some(probe) = &self.probe {
            probe.ask(&mut fetch.request);
        }
        self.sent = fetch.now();
        fetch.note(|trace| trace.origin.set(Some(self.notes.origin)));
        Attempt::Send(FetchTarget {
            origin: Arc::clone(origin),
            timeouts: self.timeouts(origin),
            with_body: true,
            beside_scripts: front_files.is_some(),
            mirror: self.mirror(fetch),
            once: false,
        })
    }

    fn answered(&mut self, fetch: &mut Fetch, mut exchange: Box<Exchange>) -> ResponseFate<Self> {
        let accel = self.site.origin(&self.notes).and_then(|own| own.accel.as_ref());
        let said = accel::take(&mut exchange.response.headers, accel, self.sent.unix_secs());
        let status = exchange.response.status;
        if status == Status::NOT_MODIFIED && fetch.old.is_some() {
            return self.confirm(fetch, exchange, &said);
        }
        if let Some(probe) = self.probe.take()
            && let Some(fate) = self.probed(fetch, &mut exchange, &probe, said.file.is_some())
        {
            return fate;
        }
        let status = exchange.response.status;
        if is_unasked(&fetch.request, status) {
            return self.refuse(fetch, status);
        }
        if let Some(tunnel) = exchange.take_tunnel() {
            let mut response = exchange.response.clone();
            origin_messages::passable(
                &mut response,
                &self.site,
                &fetch.live,
                fetch.now().unix_secs(),
            );
            return ResponseFate::Instead(
                SubstituteAnswer::Switched(Box::new(UpgradedConnection { response, tunnel })),
                None,
            );
        }
        let plan = match self.plan(fetch, &mut exchange, &said) {
            ResponseVerdict::Use(plan) => plan,
            ResponseVerdict::Retry if self.may_try_again(fetch) => return ResponseFate::Try,
            ResponseVerdict::Retry | ResponseVerdict::Fail => return self.refuse(fetch, status),
        };
        if let Some(named) = said.file {
            let file = self.name_file(fetch, &exchange, &named);
            return ResponseFate::Instead(SubstituteAnswer::Named(Box::new(file)), Some(exchange));
        }
        self.settle(fetch, exchange, plan)
    }

    fn unanswered(&mut self, fetch: &mut Fetch, error: &origin::Error) -> ResponseFate<Self> {
        let unreachable = error.is_unreachable();
        let sent_ms = self.sent.mono_ms;
        let stale = self.stand_in(fetch, |times| match unreachable {
            true => times.may_serve_unreachable(sent_ms),
            false => times.may_serve_on_error(sent_ms),
        });
        let stale = stale.cloned();
        let (status, limit) = (error.status(), error.limit());
        let problem = Problem::Origin { status, reason: error.to_string(), limit };
        self.fail(fetch, FetchFailure { problem, stale, unreachable })
    }

    fn collected(
        &mut self,
        _: &mut Fetch,
        pending: std::convert::Infallible,
        _: Result<CollectedBody, String>,
    ) -> ResponseFate<Self> {
        match pending {}
    }

    fn judge_again(&self, fetch: &Fetch, record: &Record) -> Result<Permit, NotStored> {
        RevalidationJudge::Declared(&self.site, &self.request, &self.notes)
            .judge(record, fetch.now())
    }

    fn found_file(&mut self, fetch: &mut Fetch, name: Vec<u8>) -> ResponseFate<Self> {
        // Waiters fetch for themselves, and get the file too.
        self.leave_for_file(fetch, None);
        ResponseFate::Instead(SubstituteAnswer::File(name), None)
    }

    fn carried(&mut self, _: &TransferOutcome) {}

    fn report(&mut self) -> Option<Box<Report>> {
        // No decision needs the request any more.
        self.request = Request::new();
        self.extra.as_mut().map(|extra| Box::new(extra.report()))
    }

    fn program_trace(&mut self, report: Option<Box<Report>>) -> Option<Box<ProgramTrace>> {
        Some(self.extra.as_ref()?.trace(*report?))
    }
}

/// The policy's verdict on a response.
pub(super) enum ResponseVerdict {
    Use(StorePlan),
    Retry,
    Fail,
}

impl PolicyJudge {
    fn origin_request(&self, fetch: &Fetch) -> Request {
        let place = SiteContext { live: &fetch.live, site: &self.site };
        let account = &fetch.passage.account;
        let ctx = RequestContext::new(place, &self.request, self.notes, fetch.now(), account);
        let purpose = match (self.own, &fetch.lead) {
            (true, None) if self.upgrade => FetchPurpose::Upgrade,
            (true, None) => FetchPurpose::Own,
            (true, Some(_)) => FetchPurpose::Alone,
            (false, _) => FetchPurpose::Store(fetch.old.as_deref()),
        };
        origin_messages::origin_request(&ctx, &purpose)
    }

    /// The range to request from `origin` instead of the whole.
    fn probe_of(&self, fetch: &Fetch, origin: &Origin) -> Option<Probe> {
        let is_new = fetch.lead.is_some() && fetch.old.is_none() && !self.own;
        if !is_new || !self.may_probe || !self.request.headers.contains(HeaderId::Range) {
            return None;
        }
        let probe =
            Probe::of(&self.request, Shape::of(&fetch.live.limits)?, fetch.live.limits.ranges)?;
        let unprobed = &fetch.core.shared.slices.unprobed;
        let may = may_slice(fetch, origin) && !unprobed.has(origin.name(), fetch.now().mono_ms);
        may.then_some(probe)
    }

    /// Turns the response to `probe` into that of the whole: its head becomes the head of the
    /// whole. Returns the next step if the response is unusable.
    fn probed(
        &mut self,
        fetch: &mut Fetch,
        exchange: &mut Exchange,
        probe: &Probe,
        is_file: bool,
    ) -> Option<ResponseFate<Self>> {
        let response = &mut exchange.response;
        let extent = match response.status {
            Status::PARTIAL_CONTENT => part_of(response, exchange.framing, probe),
            // The origin knows the length, but its response does not describe the whole.
            Status::RANGE_NOT_SATISFIABLE => return Some(self.ask_for_whole()),
            Status::OK if !is_file => None,
            _ => return None,
        };
        let (asked, slices) = (&fetch.asked, &fetch.core.shared.slices);
        let is_large = fetch.edition.is_some();
        let from = Shape::of(&fetch.live.limits).map_or(u64::MAX, |shape| shape.from);
        // The origin claims to send ranges and sends others, or ranges that fit no whole.
        let is_contradictory = match &extent {
            None => is_large || response.status != Status::OK,
            Some(extent) => !is_large && extent.length >= from,
        };
        if let Some(origin) = asked.as_ref().filter(|_| is_contradictory) {
            slices.unsliced.note(origin.name(), fetch.core.rangeless_term());
        }
        let Some(extent) = extent else {
            if let Some(origin) = asked {
                slices.unprobed.note(origin.name(), fetch.core.rangeless_term());
            }
            // The whole was sent after all, or an unrequested part.
            return (response.status != Status::OK).then(|| self.ask_for_whole());
        };
        if !is_large && !extent.is_whole() {
            return Some(self.ask_for_whole());
        }
        extent.become_whole(response);
        fetch.part = is_large.then_some(extent);
        None
    }

    /// Tries again without a range.
    fn ask_for_whole(&mut self) -> ResponseFate<Self> {
        self.may_probe = false;
        ResponseFate::Try
    }

    /// Lets trailers pass and announces that to the origin. Trailers of a stored response are kept
    /// for all clients, and requested if the causing client accepts trailers.
    fn pass_trailers(&self, fetch: &mut Fetch) {
        let is_own = self.own && fetch.lead.is_none() && !self.upgrade;
        let takes = are_taken(&self.request.headers) && !self.upgrade;
        if !is_own && !takes && !fetch.upload.is_some() {
            return;
        }
        let filter = TrailerFilter::of_request(&self.site, self.notes, &self.request.headers);
        if is_own {
            trailers::announce_to_origin(&mut fetch.request, &self.request, &filter);
        } else if takes {
            trailers::ask_origin(&mut fetch.request);
        }
        fetch.upload.let_trailers_pass(filter);
    }

    /// The origin that gets a copy of the request: of one without a body, which can be copied.
    fn mirror(&self, fetch: &Fetch) -> Option<Arc<Origin>> {
        let mirror = self.site.mirrors.of_route(self.notes.route)?;
        let may = !self.upgrade && fetch.request.framing == Framing::None;
        (may && !fetch.upload.is_some()).then(|| Arc::clone(mirror))
    }

    /// The stored object that may answer instead of the response, by its times.
    fn stand_in<'a>(
        &'a self,
        fetch: &'a Fetch,
        may: impl FnOnce(Freshness) -> bool,
    ) -> Option<&'a Arc<Object>> {
        self.older(fetch).filter(|old| may(freshness(&fetch.live, old, fetch.now().mono_ms)))
    }

    /// The stored object that a response replaces.
    fn older<'a>(&'a self, fetch: &'a Fetch) -> Option<&'a Arc<Object>> {
        fetch.old.as_ref().or(self.spare.as_ref())
    }

    /// Counts one more try, if one is left and the request can be repeated.
    fn may_try_again(&mut self, fetch: &Fetch) -> bool {
        let may = !fetch.upload.is_some() && self.tries < fetch.live.limits.retries;
        self.tries += u64::from(may);
        may
    }

    /// Plans the storing of a response: RFC 9111 first, then policy. A server error yields to a
    /// stale object that may answer.
    fn plan(
        &mut self,
        fetch: &Fetch,
        exchange: &mut Exchange,
        said: &AccelDirectives,
    ) -> ResponseVerdict {
        let judged = self.rule(fetch, &mut exchange.response, said, None);
        let failed = matches!(exchange.response.status.code(), 500 | 502 | 503 | 504);
        let now_ms = fetch.now().mono_ms;
        let stand_in = self.stand_in(fetch, |times| times.may_serve_on_error(now_ms));
        match judged {
            ResponseVerdict::Use(_) if failed && stand_in.is_some() => ResponseVerdict::Fail,
            judged => judged,
        }
    }

    /// The verdict of RFC 9111 and policy on a response, from the origin or updated by a 304 that
    /// confirms `stored`. The policy may change the head, and the VCL beside it head and times.
    pub(super) fn rule(
        &mut self,
        fetch: &Fetch,
        response: &mut Response,
        said: &AccelDirectives,
        stored: Option<&StoredResponse<'_>>,
    ) -> ResponseVerdict {
        let (now, request) = (fetch.now(), &fetch.request);
        let times =
            store::ExchangeTimes { request_ms: self.sent.unix_ms, response_ms: now.unix_ms };
        let rules = self.site.policy.store_rules(&self.notes);
        let mut judged = self.site.policy.judged_head(&self.notes, response);
        hear(&mut judged, said);
        let mut plan = store::plan(request, self.notes.personal, &judged, times, rules);
        fetch.note_ignored(&judged);
        let mut policy_ctx = ResponseCtx { request, response, plan: &mut plan, notes: &self.notes };
        match self.site.policy.response(&mut policy_ctx) {
            BackendResponse::Retry => ResponseVerdict::Retry,
            BackendResponse::Fail => ResponseVerdict::Fail,
            BackendResponse::Deliver if self.extra.is_some() => {
                self.respond_beside(fetch, response, said, times, plan, stored)
            }
            BackendResponse::Deliver => {
                let verification = self.site.verification.as_deref();
                if verification.is_some_and(|own| own.holds(fetch.key_hash, now.mono_ms)) {
                    plan.refuse(NotStored::Differs, response.status);
                }
                ResponseVerdict::Use(plan)
            }
        }
    }

    /// Stores the response if the plan permits it; otherwise passes it.
    fn settle(
        &mut self,
        fetch: &Fetch,
        exchange: Box<Exchange>,
        mut plan: StorePlan,
    ) -> ResponseFate<Self> {
        let is_part = fetch.part.is_some();
        let tags = self.tags(fetch, &exchange.response, &mut plan).unwrap_or_default();
        // A body that ends with its connection may be cut off. It is stored only for origins that
        // are configured to end bodies so (RFC 9112 8).
        let is_framed = exchange.framing != Framing::UntilClose || self.keeps_until_close();
        match plan.permit() {
            Ok(permit) if fetch.lead.is_some() && is_framed => {
                self.keep(fetch, exchange, permit, &plan, tags)
            }
            // A part that is not stored in slices is not this client's response: it requested less.
            _ if is_part => self.ask_for_whole(),
            _ => self.pass_on(fetch, exchange, &plan),
        }
    }

    fn keep(
        &self,
        fetch: &Fetch,
        mut exchange: Box<Exchange>,
        permit: Permit,
        plan: &StorePlan,
        tags: Tags,
    ) -> ResponseFate<Self> {
        fetch.core.note_fetch(fetch.key_hash, None);
        let now = fetch.now();
        let framing = exchange.framing;
        let has_body = !matches!(framing, Framing::None | Framing::Length(0));
        let (compress, settings) = (self.site.compress, &fetch.live.compression);
        let length = framing.length();
        let dialect = includes::dialect(&self.site, &exchange.response);
        let filter = TrailerFilter::of_response(&self.site, self.notes, &exchange.response.headers);
        let own = &mut exchange.response;
        let form = match dialect {
            Some(_) => form::keep_page(own, length, has_body, compress, settings),
            None => form::keep(own, length, has_body, compress, settings),
        };
        let judged = self.site.policy.judged_head(&self.notes, &exchange.response);
        let selector = selector(&judged, &self.request, form.is_one);
        origin_messages::keepable(&mut exchange.response, &self.site, now.unix_secs());
        let note = surrogate::set_aside(&mut exchange.response.headers, &self.site);
        let mut new = NewObject { tags, note, ..object_by(&exchange.response, plan, now) };
        (new.flags.coding, new.flags.negotiated) = (form.coding, form.negotiated);
        let is_dictionary = exchange.response.headers.contains(HeaderId::UseAsDictionary);
        new.flags.dictionary = is_dictionary && dialect.is_none();
        includes::marks(&self.site, dialect, &mut new.flags);
        let (recode, sinks) = (form.recode, self.own_sinks());
        let (filter, attached, over) = (Some(filter), None, self.older(fetch).cloned());
        let plan = InsertionPlan { permit, over, new, selector, recode, filter, attached, sinks };
        ResponseFate::Store(ResponseBodySource::Exchange(exchange), Box::new(plan))
    }

    fn pass_on(
        &self,
        fetch: &Fetch,
        mut exchange: Box<Exchange>,
        plan: &StorePlan,
    ) -> ResponseFate<Self> {
        let now = fetch.now();
        let why = self.why_passing(fetch, plan);
        fetch.note(|trace| trace.note_why(why));
        self.note_evidence(fetch, &exchange.response, plan);
        let mark = match self.marked_until_ms(fetch, plan) {
            Some(until_ms) => Mark::HitForMiss(until_ms),
            None if self.foretells_storing(fetch, &exchange) => Mark::Ends,
            None => Mark::None,
        };
        let ends = plan.supersedes_stored(exchange.response.status);
        let effects = UnstoredEffects { mark, over: self.older(fetch).filter(|_| ends).cloned() };
        self.invalidate_after(fetch, &exchange.response);
        let dialect = includes::dialect(&self.site, &exchange.response);
        let framing = exchange.framing;
        let (recode, coding) = match dialect {
            Some(_) => {
                let (length, has_body) = (framing.length(), framing != Framing::None);
                let (own, settings) = (&mut exchange.response, &fetch.live.compression);
                let kept = form::keep_page(own, length, has_body, CompressionScope::Off, settings);
                (kept.recode, kept.coding)
            }
            None => self.recode_passing(fetch, &mut exchange.response, framing),
        };
        let response = &mut exchange.response;
        if response.status == Status::NOT_MODIFIED && self.site.compress != CompressionScope::Off {
            form::name_had(&self.request, &mut response.headers);
        }
        let filter = TrailerFilter::of_response(&self.site, self.notes, &response.headers);
        let announced = filter.announced(&response.headers, exchange.framing);
        origin_messages::passable(response, &self.site, &fetch.live, now.unix_secs());
        trailers::announce_to_client(response, announced);
        if self.is_for_client {
            let (site, notes, request) = (&self.site, &self.notes, &self.request);
            let asked = fetch.asked.as_ref();
            sticky::add_cookie(site, notes, request, response, asked, exchange.server);
        }
        let unstored = UnstoredResponse {
            head_length: exchange.response.content_length(),
            response: exchange.response.clone(),
            recode,
            coding,
            filter: Some(filter),
            facts: dialect,
        };
        ResponseFate::Pass(ResponseBodySource::Exchange(exchange), effects, Box::new(unstored))
    }

    /// Decides the form of a response that is not stored, and adapts its head.
    fn recode_passing(
        &self,
        fetch: &Fetch,
        response: &mut Response,
        framing: Framing,
    ) -> (BodyRecoding, Coding) {
        let is_own = self.own && fetch.lead.is_none();
        let asked = if is_own { Chooser::Client } else { Chooser::Larder };
        let passing = PassingForm {
            request: &self.request,
            asked,
            compress: self.site.compress,
            settings: &fetch.live.compression,
            memory: fetch.core.shared.cache.memory(),
        };
        match framing {
            Framing::None | Framing::Length(0) => (BodyRecoding::None, Coding::Identity),
            framing => passing.recode(response, framing.length()),
        }
    }

    /// The surrogate keys of a response that is to be stored, if any. With too many it is not
    /// stored.
    pub(super) fn tags(
        &self,
        fetch: &Fetch,
        response: &Response,
        plan: &mut StorePlan,
    ) -> Option<Tags> {
        if plan.verdict().is_err() {
            return None;
        }
        match tags::read(&response.headers, &fetch.live.limits) {
            Ok(tags) => tags,
            Err(limit) => {
                fetch.core.counters.limit(limit);
                fetch.note(|trace| trace.limit.set(Some(limit)));
                plan.refuse(NotStored::Tags, response.status);
                None
            }
        }
    }

    /// Gives up a response of `status`, which is unusable.
    pub(super) fn refuse(&self, fetch: &mut Fetch, status: Status) -> ResponseFate<Self> {
        let problem = match self.extra.as_ref().is_some_and(|extra| extra.has_failed()) {
            true => Problem::Program,
            false => Problem::Origin {
                status: Status::BAD_GATEWAY,
                reason: format!("The origin answered with status {status}."),
                limit: None,
            },
        };
        let sent_ms = self.sent.mono_ms;
        let stale = self.stand_in(fetch, |times| times.may_serve_on_error(sent_ms)).cloned();
        self.fail(fetch, FetchFailure { problem, stale, unreachable: false })
    }

    /// Ends the fetch without a usable response.
    pub(super) fn fail(&self, fetch: &mut Fetch, failure: FetchFailure) -> ResponseFate<Self> {
        fetch.note(|trace| {
            trace.note_why(UnstoredReason::Failed);
            trace.made_status.set(failure.problem.status().code());
            *trace.failure.borrow_mut() = Some(failure.problem.failure());
        });
        if failure.stale.is_some() && fetch.lead.is_some() {
            fetch.core.note_fetch(fetch.key_hash, Some(failure.unreachable));
        }
        if let Some(lead) = fetch.lead.take() {
            lead.fail();
        }
        ResponseFate::Instead(SubstituteAnswer::Failed(failure), None)
    }

    /// Takes the file that the origin named. It is for this request: it is not stored, and waiters
    /// do not wait for it.
    fn name_file(&self, fetch: &mut Fetch, exchange: &Exchange, named: &AccelFile) -> NamedFile {
        fetch.note(|trace| trace.note_why(UnstoredReason::File));
        let until_ms = fetch.now().mono_ms + fetch.live.limits.hit_for_miss_ttl;
        self.leave_for_file(fetch, Some(until_ms));
        self.invalidate_after(fetch, &exchange.response);
        let accel = self.site.origin(&self.notes).and_then(|own| own.accel.as_ref());
        let place = accel.and_then(|accel| accel.place(named));
        NamedFile {
            place: place.map(|(root, path)| (Arc::clone(root), path.to_vec())),
            headers: exchange.response.headers.clone(),
        }
    }

    /// Releases the lead, because a file answers in place of any stored response.
    fn leave_for_file(&self, fetch: &mut Fetch, hit_for_miss_until_ms: Option<u64>) {
        let Some(mut lead) = fetch.lead.take() else { return };
        self.older(fetch).inspect(|older| lead.renews(older));
        lead.supersede(hit_for_miss_until_ms);
    }

    /// The timeouts of the site's rules for `origin`.
    fn timeouts(&self, origin: &Origin) -> Option<Timeouts> {
        let first_byte_ms = self.site.policy.first_byte_ms(&self.notes)?;
        Some(Timeouts { first_byte_ms, ..origin.config().timeouts })
    }

    /// Returns true if bodies that end with their connection are stored.
    fn keeps_until_close(&self) -> bool {
        let own = self.site.origin(&self.notes);
        own.is_some_and(|own| own.origin.config().store_close_delimited)
    }

    /// The end of the hit-for-miss time after this uncacheable response, in monotonic milliseconds;
    /// `None` if the response says nothing about other requests.
    pub(super) fn marked_until_ms(&self, fetch: &Fetch, plan: &StorePlan) -> Option<u64> {
        let longest = fetch.live.limits.hit_for_miss_ttl;
        let ms = match plan.verdict() {
            // Storable except for its framing.
            Ok(()) => longest,
            Err(_) => plan.hit_for_miss_ms.min(longest),
        };
        (ms > 0).then(|| fetch.now().mono_ms + ms)
    }

    /// Returns true if a response to HEAD shows that the response to GET can be stored.
    fn foretells_storing(&self, fetch: &Fetch, exchange: &Exchange) -> bool {
        if fetch.request.method != Method::Head || fetch.lead.is_none() {
            return false;
        }
        let mut request = fetch.request.clone();
        request.method = Method::Get;
        let mut response = exchange.response.clone();
        let (request_ms, response_ms) = (self.sent.unix_ms, fetch.now().unix_ms);
        let times = store::ExchangeTimes { request_ms, response_ms };
        let rules = self.site.policy.store_rules(&self.notes);
        let judged = self.site.policy.judged_head(&self.notes, &response);
        let mut plan = store::plan(&request, self.notes.personal, &judged, times, rules);
        let (request, response, notes) = (&request, &mut response, &self.notes);
        let mut policy_ctx = ResponseCtx { request, response, plan: &mut plan, notes };
        let verdict = self.site.policy.response(&mut policy_ctx);
        verdict == BackendResponse::Deliver && plan.verdict().is_ok()
    }
}

/// Returns true if a response of `status` is partial or conditional although `request` did not ask
/// for that (RFC 9110 15.3.7, 15.4.5).
fn is_unasked(request: &Request, status: Status) -> bool {
    let has = |id| request.headers.contains(id);
    match status {
        Status::NOT_MODIFIED => !has(HeaderId::IfNoneMatch) && !has(HeaderId::IfModifiedSince),
        Status::PARTIAL_CONTENT => !has(HeaderId::Range),
        _ => false,
    }
}
