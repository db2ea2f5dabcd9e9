//! Course of a request under a declared policy: the order of its steps after [`ReceiveVerdict`],
//! written down once. A [`CourseHandler`] acts on each step or only reports it.
//!
//! ```text
//! follow ─ file beside the scripts ─┐
//! go_on ── decisions::course ───────┼─ file, answer, purge, last hop, pass, upgrade
//! lookup ─ decisions::next ─────────┼─ deliver
//! missed ─ stale stands in ─────────┤
//! miss ─── plugin's page ───────────┴─ fetch
//! ```
//!
//! [`ServingCore`](crate::fast_path::ServingCore) is the handler of requests: its outcome is a
//! [`Start`](crate::disposition::Start), and it never waits. A step that needs the disk or an
//! origin ends in a waiting request, which `slow_path` resumes at [`go_on`] or [`miss`]. The
//! handler of `explain` returns a forecast and changes nothing. Both run the functions below, so a
//! forecast cannot differ from what a request does.
//!
//! The caller owns the request and its [`RequestContext`]; the handler owns the buffer of the key.
//! The policy has received the request before [`follow`]. No step may return to an earlier one: a
//! handler that finds a stored body gone goes on with [`miss`], and a request that waited goes on
//! behind the step at which it halted. A new kind of step belongs here, not in a handler.

use std::ops::DerefMut;
use std::sync::Arc;

use base::{HashSeed, KeyBuf};
use cache::{CacheLookup, Object};
use message::freshness::Freshness;
use policy::{ReceiveVerdict, Synthetic};

use crate::decisions::{self, Course, LookupDecision};
use crate::key::make_key;
use crate::state::reply::{CacheOutcome, ForwardReason};
use crate::state::request_context::RequestContext;

/// The actions on a request's course, or the report of them.
pub(crate) trait CourseHandler {
    /// The outcome of the course.
    type End;
    /// A borrowed key buffer.
    type Key: DerefMut<Target = KeyBuf>;

    fn seed(&self) -> &HashSeed;

    fn key(&self) -> Self::Key;

    /// Answers with the file of the request's path below the root of this number.
    fn file(&mut self, ctx: &RequestContext<'_>, root: u32) -> Self::End;

    /// Answers with a file beside the scripts, if the request's path likely means one. It precedes
    /// the policy's verdict.
    fn file_beside(
        &mut self,
        ctx: &RequestContext<'_>,
        verdict: &ReceiveVerdict,
    ) -> Option<Self::End>;

    /// Answers with a file beside the scripts, if the path means one only after the lookup missed.
    fn other_file_beside(&mut self, ctx: &RequestContext<'_>) -> Option<Self::End>;

    /// Looks up what is stored.
    fn find(&mut self, ctx: &RequestContext<'_>, key: &KeyBuf) -> CacheLookup;

    /// Notes that no file answers.
    fn note_found(&mut self, _: &RequestContext<'_>) {}

    /// The times of the object found.
    fn times(&self, ctx: &RequestContext<'_>, object: &Object) -> Freshness;

    /// Delivers a stored response. If its body is no longer available, the course goes on with
    /// [`miss`].
    fn deliver(
        &mut self,
        ctx: &RequestContext<'_>,
        key: &KeyBuf,
        object: Arc<Object>,
        served: CacheOutcome,
    ) -> Self::End;

    /// Answers with a stale response whose origin has just failed, if it may.
    fn stand_in(
        &mut self,
        ctx: &RequestContext<'_>,
        key: &KeyBuf,
        object: &Arc<Object>,
    ) -> Option<Self::End>;

    /// Answers with the page that a plugin of the application wrote, if there is one; `next`
    /// follows otherwise.
    fn page(
        &mut self,
        ctx: &RequestContext<'_>,
        key: &KeyBuf,
        next: &LookupDecision,
    ) -> Option<Self::End>;

    /// Fetches as the lookup decided.
    fn fetch(&mut self, ctx: &RequestContext<'_>, key: &KeyBuf, next: LookupDecision) -> Self::End;

    /// Fetches past the store.
    fn pass(&mut self, ctx: &RequestContext<'_>, reason: ForwardReason) -> Self::End;

    /// Fetches past the store; the connection may become a tunnel.
    fn upgrade(&mut self, ctx: &RequestContext<'_>) -> Self::End;

    /// Answers with the policy's own response.
    fn answer(&mut self, ctx: &RequestContext<'_>, synthetic: &Synthetic) -> Self::End;

    /// Answers a request that may not be forwarded (RFC 9110 7.6.2).
    fn last_hop(&mut self, ctx: &RequestContext<'_>) -> Self::End;

    /// Purges the responses stored for the request.
    fn purge(&mut self, ctx: &RequestContext<'_>) -> Self::End;
}

/// Follows the policy's verdict. Files beside the scripts precede the store and the origin, as
/// nginx's `try_files` precedes its cache.
#[inline(always)]
pub(crate) fn follow<M: CourseHandler>(
    mode: &mut M,
    ctx: &RequestContext<'_>,
    verdict: ReceiveVerdict,
) -> M::End {
    if let ReceiveVerdict::Lookup | ReceiveVerdict::Pass = verdict
        && let Some(end) = mode.file_beside(ctx, &verdict)
    {
        return end;
    }
    go_on(mode, ctx, verdict)
}

/// Follows the policy's verdict after the files beside the scripts.
#[inline(always)]
pub(crate) fn go_on<M: CourseHandler>(
    mode: &mut M,
    ctx: &RequestContext<'_>,
    verdict: ReceiveVerdict,
) -> M::End {
    match decisions::course(ctx, verdict) {
        Course::Files(root) => mode.file(ctx, root),
        Course::Lookup => lookup(mode, ctx),
        Course::LastHop => mode.last_hop(ctx),
        Course::Pass(reason) => mode.pass(ctx, reason),
        Course::Upgrade => mode.upgrade(ctx),
        Course::Answer(synthetic) => mode.answer(ctx, &synthetic),
        Course::Purge => mode.purge(ctx),
    }
}

/// Looks up the request's key and follows the decision.
#[inline(always)]
fn lookup<M: CourseHandler>(mode: &mut M, ctx: &RequestContext<'_>) -> M::End {
    let mut room = mode.key();
    let extra = ctx.extra.map(|extra| extra.key_addition());
    make_key(mode.seed(), &*ctx.site.policy, ctx.request, &ctx.notes, extra, &mut room);
    let key = &*room;
    let found = mode.find(ctx, key);
    if !matches!(found, CacheLookup::Object(_))
        && let Some(end) = mode.other_file_beside(ctx)
    {
        return end;
    }
    mode.note_found(ctx);
    match decisions::next(ctx, found, |object| mode.times(ctx, object)) {
        LookupDecision::Deliver(object, served) => mode.deliver(ctx, key, object, served),
        next => missed(mode, ctx, key, next),
    }
}

/// Goes on after a lookup without a usable response.
#[inline(never)]
fn missed<M: CourseHandler>(
    mode: &mut M,
    ctx: &RequestContext<'_>,
    key: &KeyBuf,
    next: LookupDecision,
) -> M::End {
    if let LookupDecision::Fetch(Some(object)) = &next
        && let Some(end) = mode.stand_in(ctx, key, object)
    {
        return end;
    }
    miss(mode, ctx, key, next)
}

/// Tries a plugin's page, then fetches.
pub(crate) fn miss<M: CourseHandler>(
    mode: &mut M,
    ctx: &RequestContext<'_>,
    key: &KeyBuf,
    next: LookupDecision,
) -> M::End {
    if !matches!(next, LookupDecision::Pass)
        && let Some(end) = mode.page(ctx, key, &next)
    {
        return end;
    }
    mode.fetch(ctx, key, next)
}
