//! Observation of a site whose requests all go to the origin: what its cache would do with each.
//! The pages that it would store are fetched in the background once they are asked for again, so
//! that later requests would hit them, and no client gets one.
//!
//! Must never change the request or its response.

use std::rc::Rc;
use std::sync::Arc;

use base::{HashSeed, KeyBuf};
use cache::{BeginOptions, CacheLookup, Object};
use message::Request;
use message::freshness::Freshness;
use policy::{Notes, ReceiveVerdict, StoreUse, Synthetic};

use super::{compare_hit, is_plain, overrule};
use crate::course::{self, CourseHandler};
use crate::crawlers::FetchPermit;
use crate::decisions::{LookupDecision, freshness};
use crate::reception::received;
use crate::stage::Entrant;
use crate::state::core::CoreState;
use crate::state::gate::SiteAdmission;
use crate::state::reply::{CacheOutcome, ForwardReason};
use crate::state::request_context::RequestContext;
use crate::state::tier::MissStep;
use crate::state::verification::{SiteVerification, WouldBe, joined_cookies};
use crate::{declared, files as from_files};

const SEC_PURPOSE: &[u8] = b"Sec-Purpose";

/// Looks what the cache would do with a client's request.
pub(crate) fn look_on(
    core: &Rc<CoreState>,
    own: &SiteVerification,
    entrant: &Entrant<'_>,
    request: &Request,
    admission: Option<&SiteAdmission>,
) {
    if !entrant.downstream.is_of_client() {
        return;
    }
    let (mut request, mut notes) = (request.clone(), Notes::default());
    let (cookies, now) = (joined_cookies(&request), entrant.now);
    let telling = own.telling_cookies(&request, now.mono_ms);
    let verdict =
        received(entrant, &mut request, admission, StoreUse::ByRules, &mut notes, |policy, ctx| {
            policy.receive(ctx)
        });
    let overruled =
        telling.and_then(|telling| overrule(&mut request, &mut notes, &verdict, &telling));
    let verdict = overruled.unwrap_or(verdict);
    let ctx = RequestContext::new(entrant.site_ctx, &request, notes, now, &core.background);
    let ctx = RequestContext { cookies: Some(&cookies), ..ctx };
    if let Some(would_be) = course::follow(&mut ObservingCore { core, own }, &ctx, verdict) {
        own.observed(would_be);
    }
}

/// A core that only looks on.
struct ObservingCore<'a> {
    core: &'a Rc<CoreState>,
    own: &'a SiteVerification,
}

impl CourseHandler for ObservingCore<'_> {
    /// `None` if neither cache nor origin would be asked.
    type End = Option<WouldBe>;
    type Key = Box<KeyBuf>;

    fn seed(&self) -> &HashSeed {
        &self.core.shared.seed
    }

    fn key(&self) -> Self::Key {
        Box::new(KeyBuf::new())
    }

    fn file(&mut self, _: &RequestContext<'_>, _: u32) -> Self::End {
        None
    }

    fn file_beside(&mut self, ctx: &RequestContext<'_>, _: &ReceiveVerdict) -> Option<Self::End> {
        from_files::likely(self.core, ctx).ok().flatten().map(|_| None)
    }

    fn other_file_beside(&mut self, ctx: &RequestContext<'_>) -> Option<Self::End> {
        from_files::known(self.core, ctx).map(|_| None)
    }

    fn find(&mut self, ctx: &RequestContext<'_>, key: &KeyBuf) -> CacheLookup {
        self.core.find(key, ctx.request, ctx.now)
    }

    fn times(&self, ctx: &RequestContext<'_>, object: &Object) -> Freshness {
        freshness(ctx.live, object, ctx.now.mono_ms)
    }

    fn deliver(
        &mut self,
        ctx: &RequestContext<'_>,
        key: &KeyBuf,
        object: Arc<Object>,
        served: CacheOutcome,
    ) -> Self::End {
        if served != CacheOutcome::Hit {
            if may_fetch(ctx) {
                self.core.refresh(ctx, key, &object);
            }
            return Some(WouldBe::Stale);
        }
        if is_plain(ctx) && object.whole().is_some() {
            compare_hit(self.core, self.own, ctx, object);
        }
        Some(WouldBe::Hit)
    }

    fn stand_in(
        &mut self,
        ctx: &RequestContext<'_>,
        key: &KeyBuf,
        object: &Arc<Object>,
    ) -> Option<Self::End> {
        let now_ms = ctx.now.mono_ms;
        let times = freshness(ctx.live, object, now_ms);
        let due = self.core.shared.failing.stands_in(key.hash(), &times, now_ms)?;
        if due && may_fetch(ctx) {
            self.core.refresh(ctx, key, object);
        }
        Some(Some(WouldBe::Stale))
    }

    fn page(
        &mut self,
        ctx: &RequestContext<'_>,
        _: &KeyBuf,
        _: &LookupDecision,
    ) -> Option<Self::End> {
        from_files::page(self.core, ctx).ok().flatten().map(|_| None)
    }

    fn fetch(&mut self, ctx: &RequestContext<'_>, key: &KeyBuf, next: LookupDecision) -> Self::End {
        Some(match next {
            LookupDecision::Alone(ForwardReason::Bypass) | LookupDecision::Pass => WouldBe::Pass,
            LookupDecision::Fetch(old) => {
                fetch(self.core, ctx, key, old.as_ref());
                WouldBe::Miss
            }
            LookupDecision::Alone(_) | LookupDecision::Deliver(..) => WouldBe::Miss,
        })
    }

    fn pass(&mut self, _: &RequestContext<'_>, _: ForwardReason) -> Self::End {
        Some(WouldBe::Pass)
    }

    fn upgrade(&mut self, _: &RequestContext<'_>) -> Self::End {
        Some(WouldBe::Pass)
    }

    fn answer(&mut self, _: &RequestContext<'_>, _: &Synthetic) -> Self::End {
        None
    }

    fn last_hop(&mut self, _: &RequestContext<'_>) -> Self::End {
        None
    }

    fn purge(&mut self, _: &RequestContext<'_>) -> Self::End {
        None
    }
}

/// Returns true if a page may be fetched for the store beside the client's own request: a plain
/// one of a person who waits, while the origin has a place.
fn may_fetch(ctx: &RequestContext<'_>) -> bool {
    let origin = ctx.site.origin(&ctx.notes);
    is_plain(ctx)
        && ctx.request.headers.value_named(SEC_PURPOSE).is_none()
        && origin.is_some_and(|own| own.origin.has_room(ctx.now.mono_ms))
}

/// Fetches the page of `key` for the store, unless that is under way. A page that is asked for once
/// is not: its URL may be for one use.
fn fetch(core: &Rc<CoreState>, ctx: &RequestContext<'_>, key: &KeyBuf, old: Option<&Arc<Object>>) {
    if !core.verification.is_asked_again(key.hash()) || !may_fetch(ctx) {
        return;
    }
    let Some(permit) = FetchPermit::at_once(core, ctx) else { return };
    let options = BeginOptions { rejected: old, ..BeginOptions::default() };
    let MissStep::Lead(lead) = core.begin(ctx, key, options) else { return };
    declared::refresh(core, ctx, key, lead, old, core.log.number(), permit);
}
