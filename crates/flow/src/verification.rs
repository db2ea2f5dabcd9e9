//! Verification of hits: for a share of them the origin is asked, too, in the background and with
//! the visitor's own request, to see if the stored page is right for this visitor. A page that
//! differs by visitor is purged.
//!
//! Must never delay or change a response, and never store one of those that it compares.

mod fingerprint;
pub(crate) mod observation;
mod visitors;

use std::fmt;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::{Account, Counter, HeldBytes, KeyBuf, Limit, Now};
use cache::Object;
use files::accel;
use message::{HeaderId, Method, Request, cookie};
use origin::{Exchange, OriginRequestContext, RequestBody};
use policy::{
    ConnectionPeer, DecisionStep, Declared, FetchCtx, FetchVerdict, Notes, ReceiveVerdict,
};
use purge::{InvalidationTarget, ResponseSelector, Sites};

use self::fingerprint::{Comparison, Fingerprint, Precision, compare};
use self::visitors::Visitors;
use crate::disposition::Start;
use crate::gathered_body::GatheredBody;
use crate::origin_messages::{self, FetchPurpose};
use crate::refinement::{Bounds, decode};
use crate::siblings::url_of;
use crate::state::core::CoreState;
use crate::state::finding_notices::FindingNotice;
use crate::state::invalidate::InvalidationMode;
use crate::state::live_configuration::LiveRef;
use crate::state::reply::{CacheOutcome, HeadSource};
use crate::state::request_context::RequestContext;
use crate::state::site::Site;
use crate::state::site_context::SiteContext;
use crate::state::task_slots::TaskPermit;
use crate::state::verification::{
    AddedFinding, DifferenceCause, Finding, FindingScope, SiteVerification, network_of, page_of,
};
use crate::stored_heads::stored_head;

/// Cookies and fields that are tried as the cause, at most.
const CAUSES_MAX: usize = 8;

/// The verdict on a request that would be looked up and has, as it came, a cookie by which its page
/// was seen to differ: it passes the cache, with all its `cookies`. `None` for other verdicts.
pub(crate) fn overrule(
    request: &mut Request,
    notes: &mut Notes,
    verdict: &ReceiveVerdict,
    cookies: &[u8],
) -> Option<ReceiveVerdict> {
    matches!(verdict, ReceiveVerdict::Lookup).then(|| {
        request.headers.set(HeaderId::Cookie, cookies);
        notes.rule = Declared::VERIFY;
        ReceiveVerdict::Pass
    })
}

/// Tells that a request bypasses the cache because of one of its cookies.
pub(crate) fn told(site: &Site, notes: &Notes) -> DecisionStep {
    let why = "it has a cookie by which a page was seen to differ, and which the rules ignore";
    DecisionStep::new("verify", why)
        .at(site.policy.place(notes, "cache.verify"))
        .decisive()
        .advise("See `larder status`; put the cookie into `bypass.cookies` or `cookies.key`.")
}

/// Compares with the origin the hit that `start` may be, if it is one of those to be compared.
#[inline(never)]
pub(crate) fn begin(
    core: &Rc<CoreState>,
    own: &SiteVerification,
    ctx: &RequestContext<'_>,
    start: &mut Start,
) {
    let Some(object) = stored_page(ctx, start) else { return };
    compare_hit(core, own, ctx, object);
}

/// Compares a hit with `object`, if it is one of those to be compared.
fn compare_hit(
    core: &Rc<CoreState>,
    own: &SiteVerification,
    ctx: &RequestContext<'_>,
    object: Arc<Object>,
) {
    if !core.verification.is_due(own.one_in(ctx.notes.route)) {
        return;
    }
    let (limits, request) = (&ctx.live.limits, ctx.request);
    if object.length().is_none_or(|length| length > limits.verify_bytes) {
        return core.counters.limit(Limit::VerifyBytes);
    }
    let cookies = ctx.cookies.unwrap_or_default();
    if cookie::pairs([cookies]).count() as u64 > limits.verify_cookies {
        return core.counters.limit(Limit::VerifyCookies);
    }
    let Some(permit) = core.verification.slots.take(limits.verifications) else {
        return core.counters.limit(Limit::Verifications);
    };
    // The visitor's request, a neutral one, a bare one, one that is sent, and the cookies.
    let bytes = request.headers.memory() + request.target.len() + cookies.len();
    let Ok(held) = core.background.hold(5 * bytes as u64) else {
        return core.counters.limit(Limit::ClientMemory);
    };
    let mut key = KeyBuf::new();
    core.make_key(ctx.site, request, &ctx.notes, None, &mut key);
    let verification = Verification {
        core: Rc::clone(core),
        live: Rc::clone(ctx.live),
        site: Arc::clone(ctx.site),
        notes: ctx.notes,
        client: ctx.notes.client.and_then(ConnectionPeer::address),
        key,
        object,
        request: request.clone(),
        cookies: cookies.to_vec(),
        _held: (permit, held),
    };
    rt::spawn_local(Box::pin(verification.run()));
}

/// The stored page that answers a client's plain request.
fn stored_page(ctx: &RequestContext<'_>, start: &mut Start) -> Option<Arc<Object>> {
    let reply = start.reply()?;
    let HeadSource::Stored(object) = &reply.head else { return None };
    let is_hit = reply.served == CacheOutcome::Hit && object.whole().is_some();
    (is_hit && is_plain(ctx)).then(|| Arc::clone(object))
}

/// Returns true for a client's request for a page that the origin would send to others, too.
fn is_plain(ctx: &RequestContext<'_>) -> bool {
    ctx.request.method == Method::Get
        && ctx.downstream.is_of_client()
        && !ctx.request.headers.contains(HeaderId::Authorization)
}

/// A comparison of a stored page with the origin's responses.
struct Verification {
    core: Rc<CoreState>,
    live: LiveRef,
    site: Arc<Site>,
    notes: Notes,
    client: Option<IpAddr>,
    key: KeyBuf,
    object: Arc<Object>,
    /// The visitor's request as the policy has received it.
    request: Request,
    /// The visitor's cookies as they came.
    cookies: Vec<u8>,
    _held: (TaskPermit, HeldBytes),
}

/// No comparable response was there.
struct Incomparable;

impl Verification {
    async fn run(self) {
        let most = Duration::from_millis(self.live.limits.verify_timeout);
        let counters = &self.core.counters;
        counters.inc(match rt::time::timeout(most, self.compare()).await {
            Ok(Ok(Comparison::Same)) => Counter::VerifiedSame,
            Ok(Ok(Comparison::Changed)) => Counter::VerifiedChanged,
            Ok(Ok(Comparison::Unsteady)) => Counter::VerifiedUnsteady,
            Ok(Ok(Comparison::Differs(_))) => Counter::VerifiedDiffering,
            Ok(Err(Incomparable)) => Counter::VerifyFailures,
            Err(_) => {
                counters.limit(Limit::VerifyTimeout);
                Counter::VerifyFailures
            }
        });
    }

    async fn compare(&self) -> Result<Comparison, Incomparable> {
        let stored = self.stored().await?;
        let visitors = Visitors::of(self);
        let own = self.ask(visitors.own()).await?;
        if own.is(&stored) {
            return Ok(Comparison::Same);
        }
        let neutral = self.ask(visitors.neutral()).await?;
        let own = [own, self.ask(visitors.own()).await?];
        let neutral = [neutral, self.ask(visitors.neutral()).await?];
        let comparison = compare(&stored, &own, &neutral);
        match comparison {
            Comparison::Same | Comparison::Unsteady => {}
            // It may be another visitor's page that a neutral one has got. A bare request tells
            // that from a page that depends on a field of both.
            Comparison::Changed => {
                if self.ask(visitors.bare()).await?.is(&stored) {
                    self.report(&visitors);
                    return Ok(Comparison::Differs(Precision::Exact));
                }
                self.purge(false, self.core.now());
            }
            Comparison::Differs(by) => {
                let cause = self.cause(&visitors, &neutral[0], by).await;
                self.act(&visitors, cause);
            }
        }
        Ok(comparison)
    }

    /// The fingerprint of the stored page.
    async fn stored(&self) -> Result<Fingerprint, Incomparable> {
        let (object, bounds) = (Arc::clone(&self.object), Bounds::of(&self.live.limits));
        let account = Account::open_large(self.core.shared.cache.memory());
        let made = rt::run_blocking(move || {
            let mut held = account.hold(object.length()?).ok()?;
            let plain = decode(object.whole()?, object.flags().coding, bounds, &mut held).ok()?;
            let head = stored_head(&object)?;
            let place = head.headers.value(HeaderId::Location).unwrap_or_default();
            Some(Fingerprint::of(object.status(), place, &plain))
        });
        made.await.ok_or(Incomparable)
    }

    /// The fingerprint of the origin's response to `request`.
    async fn ask(&self, request: &Request) -> Result<Fingerprint, Incomparable> {
        let Self { core, live, site, notes, .. } = self;
        let site_ctx = SiteContext { live, site };
        let ctx = RequestContext::new(site_ctx, request, *notes, core.now(), &core.background);
        let mut asked = origin_messages::origin_request(&ctx, &FetchPurpose::Store(None));
        asked.headers.remove(HeaderId::AcceptEncoding);
        let mut notes = *notes;
        let mut policy_ctx = FetchCtx { request: &mut asked, pass: false, notes: &mut notes };
        let FetchVerdict::Fetch = site.policy.fetch(&mut policy_ctx) else {
            return Err(Incomparable);
        };
        let origin = &site.origin(&notes).ok_or(Incomparable)?.origin;
        if !origin.has_room(ctx.now.mono_ms) {
            return Err(Incomparable);
        }
        let caller =
            OriginRequestContext { client: self.client, ..OriginRequestContext::default() };
        let (pool, hash) = (core.pool(), self.key.hash());
        let sent = pool.send(origin, &asked, RequestBody::None, hash, &caller, &mut ()).await;
        self.read(sent.map_err(|_| Incomparable)?).await
    }

    async fn read(&self, mut exchange: Exchange) -> Result<Fingerprint, Incomparable> {
        let most = self.live.limits.verify_bytes;
        let accel = self.site.origin(&self.notes).and_then(|own| own.accel.as_ref());
        let now_s = self.core.now().unix_secs();
        let said = accel::take(&mut exchange.response.headers, accel, now_s);
        let headers = &exchange.response.headers;
        let status = exchange.response.status;
        // An error may be an answer to what a visitor sends, rather than the visitor's page.
        let is_page = status == self.object.status() || status.code() / 100 == 3;
        if !is_page || said.file.is_some() || headers.contains(HeaderId::ContentEncoding) {
            return Err(Incomparable);
        }
        let length = exchange.framing.length();
        let place = headers.value(HeaderId::Location).unwrap_or_default().to_vec();
        let too_large = || {
            self.core.counters.limit(Limit::VerifyBytes);
            Incomparable
        };
        if length.is_some_and(|length| length > most) {
            return Err(too_large());
        }
        let account = Account::open_large(self.core.shared.cache.memory());
        let mut body = GatheredBody::new(&account, length).map_err(|_| Incomparable)?;
        loop {
            let mut taken = Ok(());
            let mut sink = |data: &[u8]| taken = taken.and_then(|()| body.push(data));
            let more = exchange.next(&mut sink).await.map_err(|_| Incomparable)?;
            taken.map_err(|_| Incomparable)?;
            if body.len() > most {
                return Err(too_large());
            }
            if !more {
                break;
            }
        }
        let body = body.into_bytes();
        Ok(rt::run_blocking(move || Fingerprint::of(status, &place, &body)).await)
    }

    /// The part of the visitor's request without which the origin's response is the neutral one.
    async fn cause(
        &self,
        visitors: &Visitors,
        neutral: &Fingerprint,
        by: Precision,
    ) -> DifferenceCause {
        let all = visitors.all_cookies();
        for cause in visitors.differences().iter().take(CAUSES_MAX).chain(&all) {
            let Ok(without) = self.ask(&visitors.without(cause)).await else { continue };
            if by.are_equal(&without, neutral) {
                return cause.clone();
            }
        }
        DifferenceCause::Unknown
    }

    /// Keeps the finding, and purges what may be wrong because of it.
    fn act(&self, visitors: &Visitors, cause: DifferenceCause) {
        let finding = self.finding(visitors, cause, FindingScope::Page);
        let added = self.keep(finding.clone());
        let is_new = added.is_some_and(|added| added.is_new);
        let is_everywhere = is_new
            && added.is_some_and(|added| added.scope == FindingScope::Site)
            && self.is_in_stored_pages(&finding.cause);
        if is_new {
            let with = if is_everywhere { ", with all pages of the site" } else { "" };
            tell(&self.site, &finding, format_args!("it is purged{with}"));
        }
        self.purge(is_everywhere, self.core.now());
    }

    /// Keeps the finding that the page depends on another field than those that make visitors
    /// known. Nothing is purged: it is right for all who do not send that field.
    fn report(&self, visitors: &Visitors) {
        let finding = self.finding(visitors, DifferenceCause::Unknown, FindingScope::Report);
        if self.keep(finding.clone()).is_some_and(|added| added.is_new) {
            tell(&self.site, &finding, format_args!("it stays, for those who send less"));
        }
    }

    fn finding(&self, visitors: &Visitors, cause: DifferenceCause, scope: FindingScope) -> Finding {
        let now = self.core.now();
        Finding {
            url: String::from_utf8_lossy(&url_of(visitors.own())).into_owned(),
            route: match self.notes.route {
                0 => String::new(),
                route => self.site.policy.route_name(route).to_owned(),
            },
            cause,
            scope,
            unix_ms: now.unix_ms,
            until_ms: now.mono_ms.saturating_add(self.live.limits.verify_hold),
            key: self.key.hash(),
            page: page_of(visitors.own()),
            network: self.client.map(network_of),
        }
    }

    /// Adds a finding to those of the site in force: the configuration may have been replaced.
    fn keep(&self, finding: Finding) -> Option<AddedFinding> {
        let core = &self.core;
        let live = core.live();
        let in_force = live.sites.listed.iter().find(|other| other.name == self.site.name)?;
        let own = in_force.verification.as_deref()?;
        let now_ms = core.now().mono_ms;
        let added = own.add(finding.clone(), self.live.limits.verify_findings, now_ms);
        if added.drops {
            core.counters.limit(Limit::VerifyFindings);
        }
        let notice = FindingNotice { site: Arc::clone(&self.site.name), finding };
        if added.is_new && !core.shared.notices.push(notice, self.live.limits.webhook_queue) {
            core.counters.limit(Limit::WebhookQueue);
        }
        Some(added)
    }

    /// Returns true if other stored pages may have been made by a request with the cookies: the
    /// policy lets one of them reach the origin.
    fn is_in_stored_pages(&self, cause: &DifferenceCause) -> bool {
        let DifferenceCause::Cookies(names) = cause else { return false };
        let mut kept = cookie::pairs(self.request.headers.values(HeaderId::Cookie));
        kept.any(|pair| names.iter().any(|name| name == pair.name))
    }

    fn purge(&self, is_everywhere: bool, now: Now) {
        let (core, invalidator) = (&self.core, &self.core.shared.invalidator);
        let (target, sites) = match is_everywhere {
            true => {
                let all = ResponseSelector::terms(Vec::new());
                (InvalidationTarget::Many(all), Sites::one(&self.site.name))
            }
            false => (InvalidationTarget::key(&self.key), Sites::Every),
        };
        let untrue = invalidator.invalidation(target, false, sites, now);
        let mode = InvalidationMode::Regardless;
        let done = invalidator.invalidate_at_once(Some(&self.live), [untrue], now, mode);
        core.counters.add(Counter::Invalidations, done.unwrap_or_default().objects);
    }
}

/// Reports a finding in the daemon's log, and what follows from it.
fn tell(site: &Site, Finding { url, route, cause, .. }: &Finding, then: fmt::Arguments<'_>) {
    let place = match &route[..] {
        "" => site.name.to_string(),
        route => format!("{}, route {route}", site.name),
    };
    base::tell!(
        Alert,
        "verify: the stored page of {url} (site {place}) is another one by {cause}, which the \
         cache does not look at; {then}"
    );
}
