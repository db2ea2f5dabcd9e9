//! Decisions on a request's course, separate from acting on them:
//! [`CoreState`](crate::state::core::CoreState) acts on them, and `explain` reports them.
//!
//! Nothing here changes state, counts or waits.

use std::sync::Arc;

use bytes::Bytes;
use cache::{CacheLookup, Object};
use message::forwarding::is_last_hop;
use message::freshness::{Freshness, State};
use message::{Framing, HeaderId, Method, Request, conditional, target};
use origin::Protocol;
use policy::{HitCtx, HitVerdict, ReceiveVerdict, Synthetic};

use crate::challenge::Challenges;
use crate::origin_messages;
use crate::problem::Problem;
use crate::purge::{self, PurgeRequest, Refusal};
use crate::state::client::Client;
use crate::state::live_configuration::LiveConfiguration;
use crate::state::reply::{CacheOutcome, ForwardReason};
use crate::state::request_context::{RequestContext, only_if_cached};
use crate::state::site::Site;

/// The destination of a request.
pub(crate) enum RequestDestination<'l> {
    /// The pending challenge of a certificate authority, with its answer.
    Challenge(Bytes),
    /// The health check.
    Health,
    /// None: the request is refused.
    Refused(Problem),
    /// A purge on this site.
    Purge(&'l Arc<Site>, Result<PurgeRequest, Refusal>),
    /// This site.
    Site(&'l Arc<Site>),
}

/// Returns the destination of `request`, and normalises its path. A site's program sees the path as
/// it came, as in Varnish.
#[inline(always)]
pub(crate) fn enter<'l>(
    challenges: &Challenges,
    live: &'l LiveConfiguration,
    request: &mut Request,
    client: &Client<'_>,
) -> RequestDestination<'l> {
    if let Some(answer) = challenges.answer(request) {
        return RequestDestination::Challenge(answer);
    }
    let found = live.sites.by_host.find(&request.host);
    if found.is_none_or(|site| site.vcl.is_none()) {
        target::canonical(request);
    }
    let Some(site) = found else {
        return match purge::find(live, None, request, client) {
            Some((site, read)) => RequestDestination::Purge(site, read),
            None if is_health_check(live, request) => RequestDestination::Health,
            None => RequestDestination::Refused(Problem::NoSite),
        };
    };
    if let Err(problem) = client.admit(&request.host, site.client_check.as_ref()) {
        return RequestDestination::Refused(problem);
    }
    let may_be_purge =
        site.purges.by_request.is_some() || !matches!(request.method, Method::Get | Method::Head);
    if may_be_purge && let Some((site, read)) = purge::find(live, Some(site), request, client) {
        return RequestDestination::Purge(site, read);
    }
    RequestDestination::Site(site)
}

fn is_health_check(live: &LiveConfiguration, request: &Request) -> bool {
    let safe = matches!(request.method, Method::Get | Method::Head | Method::Options);
    safe && live.health_check.as_deref().is_some_and(|path| path == request.path())
}

/// The step that follows the policy's verdict, after the files beside the scripts.
pub(crate) enum Course {
    /// Answer from the root of this number.
    Files(u32),
    /// Look up in the store.
    Lookup,
    /// Answer here: the request may not be forwarded.
    LastHop,
    /// Fetch, past the store.
    Pass(ForwardReason),
    /// Fetch past the store; the connection may become a tunnel.
    Upgrade,
    /// Answer as the policy says.
    Answer(Arc<Synthetic>),
    /// Purge the responses stored for the request.
    Purge,
}

/// Returns the step for `verdict`.
#[inline(always)]
pub(crate) fn course(ctx: &RequestContext<'_>, verdict: ReceiveVerdict) -> Course {
    let request = ctx.request;
    match verdict {
        ReceiveVerdict::Files(root) => Course::Files(root),
        ReceiveVerdict::Lookup if request.framing == Framing::None => Course::Lookup,
        ReceiveVerdict::Lookup | ReceiveVerdict::Pass if is_last_hop(request) => Course::LastHop,
        // A request body is not part of the key, so a cacheable request with one bypasses the
        // store.
        ReceiveVerdict::Lookup | ReceiveVerdict::Pass => Course::Pass(match request.method {
            Method::Get | Method::Head => ForwardReason::Bypass,
            _ => ForwardReason::Method,
        }),
        // An application behind FastCGI cannot change the protocol: the Upgrade is ignored.
        ReceiveVerdict::Upgrade => match ctx.site.origin(&ctx.notes) {
            Some(own) if own.origin.protocol() == Protocol::FastCgi => {
                Course::Pass(ForwardReason::Bypass)
            }
            _ => Course::Upgrade,
        },
        ReceiveVerdict::Synth(synthetic) => Course::Answer(synthetic),
        ReceiveVerdict::Purge => Course::Purge,
    }
}

/// The step that follows a lookup.
#[derive(Clone)]
pub(crate) enum LookupDecision {
    /// Deliver this object.
    Deliver(Arc<Object>, CacheOutcome),
    /// Take part in the one fetch for the key; a 304 may confirm this stored object.
    Fetch(Option<Arc<Object>>),
    /// Fetch past the store.
    Pass,
    /// Fetch without waiting for others; the response may be stored.
    Alone(ForwardReason),
}

/// Returns the step after a lookup. `freshness` computes an object's times.
#[inline(always)]
pub(crate) fn next(
    ctx: &RequestContext<'_>,
    found: CacheLookup,
    freshness: impl FnOnce(&Object) -> Freshness,
) -> LookupDecision {
    match found {
        CacheLookup::Object(object) => match judge_by(ctx, &object, &freshness(&object)) {
            Judgement::Deliver(served) => LookupDecision::Deliver(object, served),
            Judgement::Fetch => LookupDecision::Fetch(Some(object)),
            Judgement::Pass => LookupDecision::Pass,
            Judgement::Private => LookupDecision::Alone(ForwardReason::Bypass),
        },
        CacheLookup::HitForMiss => LookupDecision::Alone(ForwardReason::HitForMiss),
        CacheLookup::Nothing if ctx.notes.personal => LookupDecision::Alone(ForwardReason::UriMiss),
        CacheLookup::Nothing => LookupDecision::Fetch(None),
    }
}

/// The judgement on a found object.
pub(crate) enum Judgement {
    /// The object answers.
    Deliver(CacheOutcome),
    /// The object must be fetched or revalidated first.
    Fetch,
    /// The request goes to the origin, past the store.
    Pass,
    /// The request is personal and the object is not shared: fetch without waiting for others.
    Private,
}

/// Judges by freshness, privacy and policy whether a stored response answers.
pub(crate) fn judge(ctx: &RequestContext<'_>, object: &Arc<Object>) -> Judgement {
    judge_by(ctx, object, &freshness(ctx.live, object, ctx.now.mono_ms))
}

#[inline]
fn judge_by(ctx: &RequestContext<'_>, object: &Arc<Object>, freshness: &Freshness) -> Judgement {
    match ground(ctx, object, freshness) {
        JudgementReason::Personal => Judgement::Private,
        JudgementReason::Condition | JudgementReason::Passed => Judgement::Pass,
        JudgementReason::Fresh => Judgement::Deliver(CacheOutcome::Hit),
        JudgementReason::Grace | JudgementReason::MaxStale => {
            Judgement::Deliver(CacheOutcome::Stale)
        }
        JudgementReason::Unwanted | JudgementReason::Stale => Judgement::Fetch,
    }
}

/// The reason of a [`Judgement`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JudgementReason {
    /// The request is personal, and the object is not shared.
    Personal,
    /// The request has a condition that only the origin can evaluate (RFC 9110 13.1).
    Condition,
    /// The object could answer, but the policy passes the request.
    Passed,
    /// The object could answer, but the policy or the client refuses it.
    Unwanted,
    Fresh,
    Grace,
    /// The object is stale, and the client's `max-stale` accepts it.
    MaxStale,
    Stale,
}

/// Returns the reason for judging a stored response.
#[inline(always)]
pub(crate) fn ground(
    ctx: &RequestContext<'_>,
    object: &Object,
    freshness: &Freshness,
) -> JudgementReason {
    if ctx.notes.personal && !object.flags().shared {
        return JudgementReason::Personal;
    }
    if conditional::belongs_to_origin(&ctx.request.headers) {
        return JudgementReason::Condition;
    }
    let now_ms = ctx.now.mono_ms;
    let policy_ctx = HitCtx { request: ctx.request, notes: &ctx.notes, freshness, now_ms };
    match (freshness.state(now_ms), ctx.site.policy.hit(&policy_ctx)) {
        (State::Fresh | State::Grace, HitVerdict::Miss) => JudgementReason::Unwanted,
        (State::Fresh | State::Grace, HitVerdict::Pass) => JudgementReason::Passed,
        (State::Fresh, _) => JudgementReason::Fresh,
        (State::Grace, _) => JudgementReason::Grace,
        (State::Stale, HitVerdict::DeliverStale) if may_be_stale(object, freshness) => {
            JudgementReason::MaxStale
        }
        (State::Stale, _) => JudgementReason::Stale,
    }
}

/// The times of a stored response, soft purges applied.
#[inline]
pub(crate) fn freshness(live: &LiveConfiguration, object: &Object, now_ms: u64) -> Freshness {
    freshness_until(live, object, object.fresh_until_ms(), now_ms)
}

/// The times of a stored response that is fresh until `until_ms`.
#[inline]
pub(crate) fn freshness_until(
    live: &LiveConfiguration,
    object: &Object,
    until_ms: i64,
    now_ms: u64,
) -> Freshness {
    let born_ms = object.born_ms();
    let lifetime_ms = until_ms.saturating_sub(born_ms);
    Freshness {
        born_ms,
        lifetime_ms: u64::try_from(lifetime_ms).unwrap_or(0),
        grace_ms: object.grace_ms(),
        stale_if_error_ms: object.stale_if_error_ms(),
        stale_if_unreachable_ms: object.stale_if_unreachable_ms(),
        must_validate: object.flags().must_validate
            || live.trust.wants_validation(until_ms, now_ms),
    }
}

/// Returns true if nothing forbids serving the object stale: neither its origin (RFC 9111 4.2.4),
/// nor invalidations that may have been missed.
fn may_be_stale(object: &Object, freshness: &Freshness) -> bool {
    !freshness.must_validate && !object.flags().never_stale
}

/// Returns the problem that refuses a request instead of letting it wait.
pub(crate) fn refusal(request: &Request, live: &LiveConfiguration) -> Option<Problem> {
    if origin_messages::loops(request, live) {
        return Some(Problem::Loop);
    }
    only_if_cached(request).then_some(Problem::NotCached)
}

/// Returns true if the request must not wait for another's fetch: an `EventSource` gets a response
/// of its own, and a looping request would wait for the fetch that sent it.
pub(crate) fn goes_alone(request: &Request, live: &LiveConfiguration) -> bool {
    follows_events(request) || origin_messages::was_here(request, live)
}

/// Returns true if the client is an `EventSource`: its response is not shared, and may begin late.
fn follows_events(request: &Request) -> bool {
    let accept = request.headers.value(HeaderId::Accept);
    accept.is_some_and(|accept| accept.eq_ignore_ascii_case(b"text/event-stream"))
}
