//! Slow path: the course of a request that waits, for the disk, a body, an invalidation, another
//! request's fetch, or its own.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::{Counter, KeyBuf, Limit};
use cache::{BeginOptions, Object, Reader, WaiterOutcome};
use message::{Request, Response, Status};
use policy::ReceiveVerdict;

use crate::course;
use crate::crawlers::FetchPermit;
use crate::decisions::{Judgement, freshness, goes_alone, judge, refusal};
use crate::declared::{self, PolicyJudge, SubstituteAnswer};
use crate::disposition::{RequestDisposition, Start, WaitingRequest};
use crate::fast_path::ServingCore;
use crate::fetch::{self, FetchResult, Job, Upload};
use crate::invalidate::Level;
use crate::key::select_by;
use crate::peers::{self, PeerRefusal};
use crate::problem::Problem;
use crate::purge::{self, Answers, PurgeContext, PurgeOrder, Share};
use crate::state::assemble::Draft;
use crate::state::core::CoreState;
use crate::state::duty::{Duty, FetchPause};
use crate::state::reply::{CacheOutcome, ForwardReason, Reply};
use crate::state::request_context::{RequestConnection, RequestContext};
use crate::state::site_context::SiteContext;
use crate::state::trace::Trace;
use crate::vcl::start as program;
use crate::verdict::RevalidationJudge;
use crate::wait::{FetchPart, PauseContext, PauseEnd, Role, Verdict};
use crate::{files as from_files, pages, prefetch, stage_row};

/// The number of other requests' fetches that a request waits for, if it can use none of their
/// responses, before it fetches alone.
const WAITS_MAX: u32 = 3;

/// 102 (Processing, RFC 2518 10.1): a fetch is in progress.
const PROCESSING: u16 = 102;

impl WaitingRequest {
    /// Waits for the reply. `body` is the request's body, which the connection feeds meanwhile.
    pub async fn run(
        mut self,
        core: &Rc<CoreState>,
        request: &Request,
        body: Option<Reader>,
        connection: RequestConnection<'_>,
    ) -> Reply {
        let marks = std::mem::take(&mut self.marks);
        if let RequestDisposition::Row(parked) = self.disposition {
            let site_ctx = SiteContext { live: &self.live, site: &self.site };
            return stage_row::resume(parked, marks, core, site_ctx, request, body, connection)
                .await;
        }
        let mut reply = self.run_on(core, request, body, connection).await;
        marks.put_on(&mut reply);
        reply
    }

    /// Waits for the reply to a request that the policy has received.
    async fn run_on(
        self,
        core: &Rc<CoreState>,
        request: &Request,
        body: Option<Reader>,
        connection: RequestConnection<'_>,
    ) -> Reply {
        if self.downstream.is_node() {
            return self.run_for_node(core, request, connection).await;
        }
        match self.disposition {
            RequestDisposition::Draft(draft) => draft.run(core, connection),
            _ => self.reply(core, request, body, connection).await,
        }
    }

    /// Waits for the reply to another node, which first gets an interim response that a fetch is in
    /// progress.
    async fn run_for_node(
        self,
        core: &Rc<CoreState>,
        request: &Request,
        connection: RequestConnection<'_>,
    ) -> Reply {
        if let (Some(interims), Some(status)) = (connection.interims, Status::new(PROCESSING)) {
            interims.put(Response::new(status));
        }
        let reply = Box::pin(self.reply(core, request, None, connection)).await;
        peers::for_node_only(reply)
    }

    async fn reply(
        mut self,
        core: &Rc<CoreState>,
        request: &Request,
        body: Option<Reader>,
        connection: RequestConnection<'_>,
    ) -> Reply {
        let (live, site, notes) = (Rc::clone(&self.live), Arc::clone(&self.site), self.notes);
        let (cookies, extra) = (self.cookies.take(), self.extra.take());
        let now = core.now();
        let trace = Rc::new(Trace::default());
        let ctx = RequestContext {
            live: &live,
            site: &site,
            request,
            notes,
            now,
            connection,
            trace: Some(&trace),
            downstream: &self.downstream.clone(),
            cookies: cookies.as_deref(),
            extra: extra.as_ref(),
        };
        if let RequestDisposition::Vcl(waiting) = self.disposition {
            let site_ctx = SiteContext { live: &live, site: &site };
            // Boxed, so that other waiting requests stay small.
            let run = program::run(*waiting, core, site_ctx, request, connection, body, &trace);
            let mut reply = Box::pin(run).await;
            reply.about.trace = Some(trace);
            return reply;
        }
        let mut reply = self.answer(core, &ctx, body).await;
        ctx.sign(&mut reply);
        reply.about.key = trace.key.get();
        reply.about.trace = Some(trace);
        if let Some(extra) = extra {
            extra.end(core);
        }
        reply
    }

    async fn answer(
        self,
        core: &Rc<CoreState>,
        ctx: &RequestContext<'_>,
        body: Option<Reader>,
    ) -> Reply {
        let request = ctx.request;
        match self.disposition {
            RequestDisposition::File(root) => {
                let look = from_files::look_up_with_disk(core, ctx, &root).await;
                from_files::answer(Some(core), ctx, &look)
            }
            RequestDisposition::Beside(verdict) => match look_beside(core, ctx, verdict).await {
                Start::Reply(reply) => reply,
                Start::Slow(slow) => Box::pin(slow.answer(core, ctx, body)).await,
            },
            RequestDisposition::Draft(draft) => put_together(core, ctx, draft),
            RequestDisposition::Page(disposition) => {
                match from_files::page_with_disk(core, ctx).await {
                    Some(reply) => reply,
                    None => {
                        Box::pin(Self { disposition: *disposition, ..self }.answer(core, ctx, body))
                            .await
                    }
                }
            }
            RequestDisposition::Recorded(reply) => {
                core.shared.invalidator.wait_for_records().await;
                *reply
            }
            // Boxed: a purge is rare, and larger than a fetch.
            RequestDisposition::Purge(order, answers) => {
                Box::pin(purge(core, ctx, *order, answers)).await
            }
            // `run` has handled these.
            RequestDisposition::Vcl(_) | RequestDisposition::Row(_) => {
                pages::problem(request, Problem::Internal)
            }
            _ if let Some(problem) = refusal(request, ctx.live) => pages::problem(request, problem),
            RequestDisposition::Pass(reason) => {
                let job = PolicyJudge::pass(core, ctx);
                fetch_past_the_store(core, ctx, job, reason, body).await
            }
            RequestDisposition::Upgrade => {
                let job = PolicyJudge::upgrade(core, ctx);
                fetch_past_the_store(core, ctx, job, ForwardReason::Bypass, body).await
            }
            RequestDisposition::Alone { .. } | RequestDisposition::Fetch { .. }
                if ctx.is_of_a_connection() =>
            {
                let job = PolicyJudge::pass(core, ctx);
                fetch_past_the_store(core, ctx, job, ForwardReason::Bypass, body).await
            }
            RequestDisposition::Alone { key, reason } => {
                take_part(core, *ctx, &key, None, reason, false).await
            }
            RequestDisposition::Fetch { key, old } => {
                let reason =
                    if old.is_some() { ForwardReason::Stale } else { ForwardReason::UriMiss };
                let coalesce = !goes_alone(request, ctx.live);
                take_part(core, *ctx, &key, old, reason, coalesce).await
            }
        }
    }
}

/// Carries a purge out and answers with its counts.
async fn purge(
    core: &Rc<CoreState>,
    ctx: &RequestContext<'_>,
    order: PurgeOrder,
    answers: Answers,
) -> Reply {
    let level = match Level::of_request(ctx.request) {
        Ok(level) => level,
        Err(why) => {
            let status = Status::new(400).unwrap_or(Status::OK);
            return pages::purge_refused(ctx.request, status, why);
        }
    };
    let invalidator = &core.shared.invalidator;
    let done = match order {
        PurgeOrder::Url { target, soft } => {
            invalidator.purge_url(&PurgeContext::of(ctx), &target, soft, level).await
        }
        PurgeOrder::Many { what, soft } => {
            let sites = vec![ctx.site.number];
            purge::purge_shares(invalidator, ctx, vec![Share { what, soft, sites }], level).await
        }
        PurgeOrder::Shared(shares) => purge::purge_shares(invalidator, ctx, shares, level).await,
        PurgeOrder::List => {
            let names = invalidator.names(ctx.live, ctx.site).await;
            core.counters.inc(Counter::Purges);
            return pages::listed(ctx.request, &names);
        }
    };
    match done {
        Ok(outcome) => purge::done(&core.counters, ctx.request, outcome, answers),
        Err(why) => purge::not_done(ctx.request, &why),
    }
}

/// Looks for a file in front of the origin; without one, goes on by the policy's verdict.
async fn look_beside(
    core: &Rc<CoreState>,
    ctx: &RequestContext<'_>,
    verdict: ReceiveVerdict,
) -> Start {
    if let Some(root) = from_files::front_root(ctx) {
        let look = from_files::look_up_with_disk(core, ctx, root).await;
        if let Some(reply) = from_files::found(Some(core), ctx, &look) {
            return Start::Reply(reply);
        }
    }
    course::go_on(&mut ServingCore(core), ctx, verdict)
}

/// Takes part in the one fetch of this key, or fetches alone if it does not `coalesce`. `old` may
/// be confirmed, or answer in place of a failing origin.
async fn take_part(
    core: &Rc<CoreState>,
    mut ctx: RequestContext<'_>,
    key: &KeyBuf,
    mut old: Option<Arc<Object>>,
    reason: ForwardReason,
    coalesce: bool,
) -> Reply {
    ctx.note(|trace| trace.key.set(key.hash()));
    // A request that fetches alone considers every stored object.
    let mut part = FetchPart::new(coalesce, old.clone().filter(|_| coalesce), WAITS_MAX);
    let mut permit = None;
    loop {
        let begin = |options: BeginOptions<'_>| core.begin(&ctx, key, options).into();
        let verdict = |object: &_, coalesces| judge_found(core, &ctx, object, coalesces, &mut old);
        let mut role = part.take(begin, verdict);
        if let Role::Pause(pause) = role {
            // Another request's fetch needs no permit of this one.
            permit = None;
            role = match paused(core, &mut ctx, key, pause, &mut part, old.as_ref(), reason).await {
                Ok(Some(role)) => role,
                Ok(None) => continue,
                Err(reply) => return reply,
            };
        }
        role = match permitted(core, &ctx, role, &mut permit).await {
            Ok(Some(role)) => role,
            Ok(None) => {
                ctx.now = core.now();
                continue;
            }
            Err(refusal) => return refusal,
        };
        let (mut job, reason) = match role {
            Role::End(HitOutcome::Reply(reply)) => return reply,
            Role::Full => {
                core.counters.limit(Limit::Waiters);
                return pages::problem(ctx.request, Problem::TooManyWaiters);
            }
            // The pause is over.
            Role::Pause(_) => continue,
            // The response is not for another node.
            Role::End(_) if ctx.downstream.is_node() => return peers::silent(PeerRefusal::Nothing),
            Role::Fetch(Duty { lead, is_alone: true }) if ctx.downstream.is_node() => {
                lead.refuse(None);
                return peers::silent(PeerRefusal::Nothing);
            }
            Role::Fetch(Duty { lead, is_alone: false }) => {
                (PolicyJudge::store(core, &ctx, key, lead, old), reason)
            }
            Role::Fetch(Duty { lead, .. }) => {
                let marked = part.coalesces() && !lead.is_detached();
                let reason = if marked { ForwardReason::HitForMiss } else { reason };
                (PolicyJudge::alone(core, &ctx, key, lead, old), reason)
            }
            Role::End(HitOutcome::Pass) => (PolicyJudge::pass(core, &ctx), ForwardReason::Bypass),
            Role::End(HitOutcome::Beside) => (PolicyJudge::beside(core, &ctx, old), reason),
        };
        job.fetch.permit = permit.unwrap_or_default();
        return fetch_own(core, &ctx, job, reason, None).await;
    }
}

/// Waits until `pause` is over. Returns the role that follows, `None` if the request takes part
/// again, or the reply if it ends here.
async fn paused(
    core: &Rc<CoreState>,
    ctx: &mut RequestContext<'_>,
    key: &KeyBuf,
    pause: FetchPause,
    part: &mut FetchPart,
    old: Option<&Arc<Object>>,
    reason: ForwardReason,
) -> Result<Option<Role<HitOutcome>>, Reply> {
    let limit = Duration::from_millis(ctx.live.limits.wait_timeout);
    let patience = stand_in(core, ctx, old).map(|_| limit);
    let end = {
        let (request, judge) = (ctx.request, RevalidationJudge::of(ctx));
        let trace = ctx.trace.map(|t| &**t);
        PauseContext { core, request, judge, trace, patience }.wait(pause).await
    };
    ctx.now = core.now();
    Ok(match end {
        PauseEnd::Fetch(duty) => Some(Role::Fetch(duty)),
        PauseEnd::Read(lent) => {
            part.take_lent(lent);
            None
        }
        PauseEnd::Waited(ended) => match waited(core, ctx, key, ended, old, reason) {
            Verdict::End(reply) => return Err(reply),
            Verdict::Alone => {
                part.go_alone();
                None
            }
            Verdict::Replace => None,
        },
    })
}

/// Returns the role, if it is to fetch nothing or has the permit. Otherwise waits for the permit,
/// with which the request takes part again: nothing that others wait for may wait in the queue.
async fn permitted(
    core: &Rc<CoreState>,
    ctx: &RequestContext<'_>,
    role: Role<HitOutcome>,
    permit: &mut Option<FetchPermit>,
) -> Result<Option<Role<HitOutcome>>, Reply> {
    let fetches = matches!(role, Role::Fetch(_) | Role::End(HitOutcome::Pass | HitOutcome::Beside));
    if !fetches || permit.is_some() {
        return Ok(Some(role));
    }
    if let Some(problem) = prefetch::refusal(ctx) {
        if let Role::Fetch(duty) = role {
            duty.lead.hand_back();
        }
        return Err(refuse_prefetch(core, ctx, problem));
    }
    *permit = FetchPermit::at_once(core, ctx);
    if permit.is_some() {
        return Ok(Some(role));
    }
    if let Role::Fetch(duty) = role {
        duty.lead.hand_back();
    }
    // Boxed, so that other waiting requests stay small.
    match Box::pin(FetchPermit::wait(core, ctx)).await {
        Ok(own) => {
            *permit = Some(own);
            Ok(None)
        }
        Err(problem) => Err(pages::problem(ctx.request, problem)),
    }
}

/// The use of a stored object that a request finds instead of fetching.
#[expect(clippy::large_enum_variant, reason = "it lives for a moment")]
enum HitOutcome {
    Reply(Reply),
    /// Past the store.
    Pass,
    /// Past the store: the object is for others, and stays.
    Beside,
}

/// The verdict on a stored response. A stale one becomes `old`, and may be confirmed.
fn judge_found(
    core: &Rc<CoreState>,
    ctx: &RequestContext<'_>,
    object: &Arc<Object>,
    coalesces: bool,
    old: &mut Option<Arc<Object>>,
) -> Verdict<HitOutcome> {
    match judge(ctx, object) {
        Judgement::Deliver(served) if coalesces => match take(core, ctx, object, served) {
            Some(reply) => Verdict::End(HitOutcome::Reply(reply)),
            None if object.is_live() => Verdict::Alone,
            // The disk has lost the body, so no lookup finds the object again.
            None => Verdict::Replace,
        },
        Judgement::Pass if coalesces => Verdict::End(HitOutcome::Pass),
        Judgement::Private if coalesces => Verdict::Alone,
        Judgement::Fetch if coalesces => {
            *old = Some(Arc::clone(object));
            Verdict::Replace
        }
        Judgement::Deliver(_) => Verdict::End(
            take(core, ctx, object, CacheOutcome::Hit)
                .map_or(HitOutcome::Beside, HitOutcome::Reply),
        ),
        _ => Verdict::End(HitOutcome::Beside),
    }
}

/// The stored response, if it may answer while its origin is unreachable.
fn stand_in<'o>(
    core: &CoreState,
    ctx: &RequestContext<'_>,
    old: Option<&'o Arc<Object>>,
) -> Option<&'o Arc<Object>> {
    let now_ms = core.now().mono_ms;
    old.filter(|old| freshness(ctx.live, old, now_ms).may_serve_unreachable(now_ms))
}

/// The verdict after waiting for another request's fetch; `None` if `old` may answer because the
/// fetch is late.
fn waited(
    core: &Rc<CoreState>,
    ctx: &RequestContext<'_>,
    key: &KeyBuf,
    ended: Option<WaiterOutcome>,
    old: Option<&Arc<Object>>,
    reason: ForwardReason,
) -> Verdict<Reply> {
    match ended {
        Some(WaiterOutcome::Ready(object)) => {
            // A ban may have been made after that fetch began and before this request.
            let is_for_it = core.shared.cache.may_use(&object)
                && object.matches(&mut select_by(&ctx.request.headers))
                && matches!(judge(ctx, &object), Judgement::Deliver(_));
            if !is_for_it {
                return Verdict::Replace;
            }
            let served =
                CacheOutcome::Fetched { reason, stored: object.is_live(), collapsed: true };
            take(core, ctx, &object, served).map_or(Verdict::Alone, Verdict::End)
        }
        Some(WaiterOutcome::Refused) => Verdict::Alone,
        Some(WaiterOutcome::Again) => Verdict::Replace,
        ended => {
            if ended.is_none() {
                // Other requests need not wait for that fetch to find out.
                core.note_fetch(key.hash(), Some(true));
            }
            Verdict::End(match stand_in(core, ctx, old) {
                Some(object) => stored(core, ctx, object, CacheOutcome::StaleOnError),
                None => unanswered(core, ctx, Problem::SharedFetchFailed),
            })
        }
    }
}

/// The reply from a stored response; `None` if its body passes to earlier requests only.
fn take(
    core: &Rc<CoreState>,
    ctx: &RequestContext<'_>,
    object: &Arc<Object>,
    served: CacheOutcome,
) -> Option<Reply> {
    let mut start = declared::stored(Some(core), ctx, object, served);
    let is_to_be_fetched = start.reply().is_some_and(|it| it.is_to_be_fetched(ctx.request));
    (!is_to_be_fetched).then(|| whole(core, ctx, start))
}

/// The reply from a stored response.
fn stored(
    core: &Rc<CoreState>,
    ctx: &RequestContext<'_>,
    object: &Arc<Object>,
    served: CacheOutcome,
) -> Reply {
    whole(core, ctx, declared::stored(Some(core), ctx, object, served))
}

/// The reply of a delivery; a page is assembled first.
fn whole(core: &Rc<CoreState>, ctx: &RequestContext<'_>, start: Start) -> Reply {
    match start {
        Start::Reply(reply) => reply,
        Start::Slow(slow) => match slow.disposition {
            RequestDisposition::Draft(draft) => put_together(core, ctx, draft),
            _ => pages::problem(ctx.request, Problem::Internal),
        },
    }
}

/// Assembles a page that answers a waiting request.
fn put_together(
    core: &Rc<CoreState>,
    ctx: &RequestContext<'_>,
    mut draft: Box<dyn Draft>,
) -> Reply {
    ctx.sign(draft.reply());
    draft.reply().about.trace = ctx.trace.cloned();
    draft.run(core, ctx.connection)
}

#[cold]
fn refuse_prefetch(core: &CoreState, ctx: &RequestContext<'_>, problem: Problem) -> Reply {
    core.counters.inc(Counter::PrefetchesRefused);
    pages::bare(ctx.request, problem)
}

/// Fetches past the store, once the request has the permit.
async fn fetch_past_the_store(
    core: &Rc<CoreState>,
    ctx: &RequestContext<'_>,
    mut job: Box<Job<PolicyJudge>>,
    reason: ForwardReason,
    body: Option<Reader>,
) -> Reply {
    if let Some(problem) = prefetch::refusal(ctx) {
        return refuse_prefetch(core, ctx, problem);
    }
    match Box::pin(FetchPermit::wait(core, ctx)).await {
        Ok(permit) => job.fetch.permit = permit,
        Err(problem) => return pages::problem(ctx.request, problem),
    }
    fetch_own(core, ctx, job, reason, body).await
}

/// Starts a fetch and makes the reply from its result.
async fn fetch_own(
    core: &Rc<CoreState>,
    ctx: &RequestContext<'_>,
    mut job: Box<Job<PolicyJudge>>,
    reason: ForwardReason,
    body: Option<Reader>,
) -> Reply {
    job.fetch.upload = Upload::of(body);
    let fetched = fetch::start(job).await;
    let served = |stored| CacheOutcome::Fetched { reason, stored, collapsed: false };
    let ctx = &RequestContext { now: core.now(), ..*ctx };
    let Ok((fetched, report)) = fetched else {
        // A panic ended the fetch, and is counted there.
        return pages::problem(ctx.request, Problem::Internal);
    };
    if let Some((extra, report)) = ctx.extra.zip(report) {
        extra.take_report(*report);
    }
    let instead = match fetched {
        FetchResult::Object { object, stored, reader } => {
            return whole(core, ctx, declared::fetched(core, ctx, &object, served(stored), reader));
        }
        // A response for this client only is not for other nodes.
        FetchResult::Confirmed { stored: false, .. } | FetchResult::Passing(_)
            if ctx.downstream.is_node() =>
        {
            return peers::silent(PeerRefusal::Nothing);
        }
        FetchResult::Confirmed { object, .. } => {
            return stored(core, ctx, &object, CacheOutcome::Revalidated);
        }
        FetchResult::Passing(passing) => {
            return whole(core, ctx, declared::passing(ctx, *passing, served(false)));
        }
        FetchResult::Instead(instead) => instead,
    };
    match instead {
        SubstituteAnswer::Switched(switched) => declared::switched(ctx, *switched, served(false)),
        SubstituteAnswer::File(name) => beside_scripts(core, ctx, &name).await,
        SubstituteAnswer::Named(named) => from_files::named(core, ctx, &named).await,
        SubstituteAnswer::Synthetic(synthetic) => pages::synthetic(ctx.request, &synthetic),
        SubstituteAnswer::Failed(failure) => match failure.stale {
            Some(object) => {
                let mut reply = stored(core, ctx, &object, CacheOutcome::StaleOnError);
                failure.problem.note(&mut reply.about);
                reply
            }
            None => unanswered(core, ctx, failure.problem),
        },
    }
}

/// The page for a request that no origin has answered.
fn unanswered(core: &CoreState, ctx: &RequestContext<'_>, problem: Problem) -> Reply {
    let known = ctx.trace.map_or(0, |trace| trace.number.get());
    let number = if known == 0 { core.log.number() } else { known };
    if let Some(trace) = ctx.trace {
        trace.number.set(number);
    }
    // Without a log, transactions have no numbers.
    pages::numbered(ctx.request, problem, Some(number).filter(|number| *number != 0))
}

/// The reply from a file that the origin's rules found instead of a script.
async fn beside_scripts(core: &Rc<CoreState>, ctx: &RequestContext<'_>, name: &[u8]) -> Reply {
    match from_files::front_root(ctx) {
        Some(root) => {
            let look = from_files::look_up_path_with_disk(core, ctx, root, name).await;
            from_files::answer(Some(core), ctx, &look)
        }
        None => pages::problem(ctx.request, Problem::NoFile),
    }
}
