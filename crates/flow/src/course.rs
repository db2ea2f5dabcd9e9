//! The course of a request that its site's policy has received: files, the store, and what is left
//! for an origin. Requests take it, and forecasts only look.
//!
//! The order in which all that is asked stands here once; a [`Mode`] does it, or tells of it.

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

/// The deeds on the course of a request, or the words about them.
pub(crate) trait CourseHandler {
    /// The outcome for the request.
    type End;
    /// Room for a key.
    type Key: DerefMut<Target = KeyBuf>;

    fn seed(&self) -> &HashSeed;

    fn key(&self) -> Self::Key;

    /// The file of the request's path below a root of its site.
    fn file(&mut self, ask: &RequestContext<'_>, root: u32) -> Self::End;

    /// The file beside the scripts, where the request's path is likely to be one's; it comes before
    /// what policy said.
    fn file_beside(
        &mut self,
        ask: &RequestContext<'_>,
        verdict: &ReceiveVerdict,
    ) -> Option<Self::End>;

    /// The file beside the scripts, where only now it shows that the path is one's.
    fn other_file_beside(&mut self, ask: &RequestContext<'_>) -> Option<Self::End>;

    /// Looks up what is stored.
    fn find(&mut self, ask: &RequestContext<'_>, key: &KeyBuf) -> CacheLookup;

    /// Takes note that no file answers.
    fn note_found(&mut self, _: &RequestContext<'_>) {}

    /// The times of what was found.
    fn times(&self, ask: &RequestContext<'_>, object: &Object) -> Freshness;

    /// The answer from a stored response; or what a [`miss`] leads to, if its body cannot be had
    /// any more.
    fn deliver(
        &mut self,
        ask: &RequestContext<'_>,
        key: &KeyBuf,
        object: Arc<Object>,
        served: CacheOutcome,
    ) -> Self::End;

    /// The answer from a stale response whose origin has just failed.
    fn stand_in(
        &mut self,
        ask: &RequestContext<'_>,
        key: &KeyBuf,
        object: &Arc<Object>,
    ) -> Option<Self::End>;

    /// The page that a plugin of the application has written for the request; without it `next`
    /// would follow.
    fn page(
        &mut self,
        ask: &RequestContext<'_>,
        key: &KeyBuf,
        next: &LookupDecision,
    ) -> Option<Self::End>;

    /// A fetch that the lookup leads to.
    fn fetch(&mut self, ask: &RequestContext<'_>, key: &KeyBuf, next: LookupDecision) -> Self::End;

    /// A fetch past the store.
    fn pass(&mut self, ask: &RequestContext<'_>, reason: ForwardReason) -> Self::End;

    /// A fetch past the store, after which the connection may be a tunnel.
    fn upgrade(&mut self, ask: &RequestContext<'_>) -> Self::End;

    /// Policy's own answer.
    fn answer(&mut self, ask: &RequestContext<'_>, synthetic: &Synthetic) -> Self::End;

    /// The answer to a request that may go no further (RFC 9110 7.6.2).
    fn last_hop(&mut self, ask: &RequestContext<'_>) -> Self::End;

    /// The end of what is stored for the request.
    fn purge(&mut self, ask: &RequestContext<'_>) -> Self::End;
}

/// Follows policy's verdict; files that lie beside the scripts come before the store and the
/// origin, as nginx's `try_files` comes before its cache.
#[inline(always)]
pub(crate) fn follow<M: CourseHandler>(
    mode: &mut M,
    ask: &RequestContext<'_>,
    verdict: ReceiveVerdict,
) -> M::End {
    if let ReceiveVerdict::Lookup | ReceiveVerdict::Pass = verdict
        && let Some(end) = mode.file_beside(ask, &verdict)
    {
        return end;
    }
    go_on(mode, ask, verdict)
}

/// Follows it once no file beside the scripts answers.
#[inline(always)]
pub(crate) fn go_on<M: CourseHandler>(
    mode: &mut M,
    ask: &RequestContext<'_>,
    verdict: ReceiveVerdict,
) -> M::End {
    match decisions::course(ask, verdict) {
        Course::Files(root) => mode.file(ask, root),
        Course::Lookup => lookup(mode, ask),
        Course::LastHop => mode.last_hop(ask),
        Course::Pass(reason) => mode.pass(ask, reason),
        Course::Upgrade => mode.upgrade(ask),
        Course::Answer(synthetic) => mode.answer(ask, &synthetic),
        Course::Purge => mode.purge(ask),
    }
}

/// Asks the store.
#[inline(always)]
fn lookup<M: CourseHandler>(mode: &mut M, ask: &RequestContext<'_>) -> M::End {
    let mut room = mode.key();
    make_key(mode.seed(), &*ask.site.policy, ask.request, &ask.notes, &mut room);
    let key = &*room;
    let found = mode.find(ask, key);
    if !matches!(found, CacheLookup::Object(_))
        && let Some(end) = mode.other_file_beside(ask)
    {
        return end;
    }
    mode.note_found(ask);
    match decisions::next(ask, found, |object| mode.times(ask, object)) {
        LookupDecision::Deliver(object, served) => mode.deliver(ask, key, object, served),
        next => missed(mode, ask, key, next),
    }
}

/// Goes on where nothing that is stored answers.
#[inline(never)]
fn missed<M: CourseHandler>(
    mode: &mut M,
    ask: &RequestContext<'_>,
    key: &KeyBuf,
    next: LookupDecision,
) -> M::End {
    if let LookupDecision::Fetch(Some(object)) = &next
        && let Some(end) = mode.stand_in(ask, key, object)
    {
        return end;
    }
    miss(mode, ask, key, next)
}

/// Asks for a plugin's page, and then an origin.
pub(crate) fn miss<M: CourseHandler>(
    mode: &mut M,
    ask: &RequestContext<'_>,
    key: &KeyBuf,
    next: LookupDecision,
) -> M::End {
    if !matches!(next, LookupDecision::Pass)
        && let Some(end) = mode.page(ask, key, &next)
    {
        return end;
    }
    mode.fetch(ask, key, next)
}
