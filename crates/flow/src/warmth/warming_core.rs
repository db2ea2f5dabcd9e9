//! Warming core: the course of a task on a declared site, up to the point at which an origin would
//! be asked.
//!
//! Counts no hit, and changes nothing.

use std::cell::RefMut;
use std::rc::Rc;
use std::sync::Arc;

use base::{HashSeed, KeyBuf};
use cache::{CacheLookup, Object};
use message::Request;
use message::freshness::Freshness;
use origin::Origin;
use policy::{Notes, ReceiveVerdict, StoreUse, Synthetic};

use super::client_of;
use crate::course::{self, CourseHandler};
use crate::crawlers::FetchPermit;
use crate::decisions::{LookupDecision, freshness};
use crate::declared;
use crate::disposition::{RequestDisposition, WaitingRequest};
use crate::files as from_files;
use crate::key::select_by;
use crate::reception::received;
use crate::stage::Entrant;
use crate::stage_row;
use crate::state::core::CoreState;
use crate::state::downstream::Downstream;
use crate::state::live_configuration::LiveRef;
use crate::state::reply::{CacheOutcome, ForwardReason};
use crate::state::request_context::RequestContext;
use crate::state::site::Site;
use crate::state::site_context::SiteContext;
use crate::state::warmth::{WarmOutcome, WarmTicket};

/// The part of its lifetime in which a stored response counts as near its end: the last tenth.
const NEAR_END: u64 = 10;

/// The step that follows the look.
pub(super) enum WarmStep {
    /// Nothing is to be fetched.
    End(WarmOutcome),
    /// The response is missing.
    Fetch(Box<PageFetch>),
    /// The stored response is renewed.
    Renew(Box<Renewal>),
}

/// The fetch of a missing response.
pub(super) struct PageFetch {
    pub(super) waiting: Box<WaitingRequest>,
    /// As the policy has changed it: what its key was made of is what the origin is asked for.
    pub(super) request: Request,
}

/// The renewal of a stored response.
pub(super) struct Renewal {
    live: LiveRef,
    site: Arc<Site>,
    request: Request,
    notes: Notes,
    key: KeyBuf,
    object: Arc<Object>,
}

impl Renewal {
    /// Starts the background fetch, unless one is under way.
    pub(super) fn begin(self, core: &Rc<CoreState>, ticket: WarmTicket) {
        let Self { live, site, request, notes, key, object } = self;
        let site_ctx = SiteContext { live: &live, site: &site };
        let downstream = &Downstream::Warmth;
        let ctx = RequestContext::new(site_ctx, &request, notes, core.now(), &core.background);
        let ctx = RequestContext { downstream, ..ctx };
        match core.shared.cache.begin_refresh(&key, &object) {
            Some(lead) => {
                let permit = FetchPermit::of_warmth(ticket);
                declared::refresh(core, &ctx, &key, lead, Some(&object), core.log.number(), permit);
            }
            None => ticket.end(WarmOutcome::Fresh),
        }
    }
}

/// Takes `request` as far as its key, and looks what is stored. Also returns the origin that would
/// be asked.
pub(super) fn look(
    core: &Rc<CoreState>,
    site_ctx: SiteContext<'_>,
    request: &mut Request,
) -> (WarmStep, Option<Arc<Origin>>) {
    if site_ctx.site.extra.is_some() {
        // Its subroutines have a say in the key, and run for clients only.
        return (UNSTORED, None);
    }
    let (client, now) = (&client_of(core), core.now());
    let entrant = Entrant { site_ctx, client, now, downstream: &Downstream::Warmth };
    let Some(clearance) = stage_row::pass(core, &entrant, request) else {
        return (WarmStep::End(WarmOutcome::Unstored), None);
    };
    let mut notes = Notes::default();
    let admission = clearance.admission.as_ref();
    let verdict = received(
        &entrant,
        request,
        admission,
        StoreUse::ByRules,
        &mut notes,
        |policy, policy_ctx| policy.receive(policy_ctx),
    );
    let ctx = RequestContext::new(site_ctx, request, notes, now, client.account);
    let ctx = RequestContext { downstream: entrant.downstream, ..ctx };
    let origin = site_ctx.site.origin(&notes).map(|own| Arc::clone(&own.origin));
    if notes.personal {
        return (WarmStep::End(WarmOutcome::Unstored), origin);
    }
    (course::follow(&mut WarmingCore { core }, &ctx, verdict), origin)
}

/// A core that looks whether a response is to be fetched.
struct WarmingCore<'a> {
    core: &'a Rc<CoreState>,
}

/// The end of a task whose response is not for the store.
const UNSTORED: WarmStep = WarmStep::End(WarmOutcome::Unstored);

impl<'a> CourseHandler for WarmingCore<'a> {
    type End = WarmStep;
    type Key = RefMut<'a, KeyBuf>;

    fn seed(&self) -> &HashSeed {
        &self.core.shared.seed
    }

    fn key(&self) -> Self::Key {
        self.core.scratch.key.borrow_mut()
    }

    fn file(&mut self, _: &RequestContext<'_>, _: u32) -> WarmStep {
        UNSTORED
    }

    fn file_beside(&mut self, ctx: &RequestContext<'_>, _: &ReceiveVerdict) -> Option<WarmStep> {
        // A file that must be read from the disk is found by the origin's rules.
        from_files::likely(self.core, ctx).ok().flatten().map(|_| UNSTORED)
    }

    fn other_file_beside(&mut self, ctx: &RequestContext<'_>) -> Option<WarmStep> {
        from_files::known(self.core, ctx).map(|_| UNSTORED)
    }

    fn find(&mut self, ctx: &RequestContext<'_>, key: &KeyBuf) -> CacheLookup {
        let peek = self.core.shared.cache.peek(key, &mut select_by(&ctx.request.headers));
        match peek.found.and_then(|at| peek.variants.into_iter().nth(at)) {
            Some(variant) => CacheLookup::Object(variant.object),
            None if peek.marked_until_ms.is_some_and(|until_ms| ctx.now.mono_ms < until_ms) => {
                CacheLookup::HitForMiss
            }
            None => CacheLookup::Nothing,
        }
    }

    fn times(&self, ctx: &RequestContext<'_>, object: &Object) -> Freshness {
        // Bans that the object has not been tested against are seen at the fetch.
        freshness(ctx.live, object, ctx.now.mono_ms)
    }

    fn deliver(
        &mut self,
        ctx: &RequestContext<'_>,
        key: &KeyBuf,
        object: Arc<Object>,
        served: CacheOutcome,
    ) -> WarmStep {
        let times = freshness(ctx.live, &object, ctx.now.mono_ms);
        let is_fresh = served == CacheOutcome::Hit && !is_near_end(&times, ctx.now.mono_ms);
        if is_fresh {
            return WarmStep::End(WarmOutcome::Fresh);
        }
        WarmStep::Renew(Box::new(Renewal {
            live: Rc::clone(ctx.live),
            site: Arc::clone(ctx.site),
            request: ctx.request.clone(),
            notes: ctx.notes,
            key: key.clone(),
            object,
        }))
    }

    fn stand_in(
        &mut self,
        ctx: &RequestContext<'_>,
        key: &KeyBuf,
        object: &Arc<Object>,
    ) -> Option<WarmStep> {
        let (core, now_ms) = (self.core, ctx.now.mono_ms);
        let times = freshness(ctx.live, object, now_ms);
        // Its origin has just failed.
        let stands_in = core.shared.failing.stands_in(key.hash(), &times, now_ms);
        stands_in.map(|_| WarmStep::End(WarmOutcome::Failed))
    }

    fn page(
        &mut self,
        ctx: &RequestContext<'_>,
        _: &KeyBuf,
        _: &LookupDecision,
    ) -> Option<WarmStep> {
        from_files::page(self.core, ctx).ok().flatten().map(|_| UNSTORED)
    }

    fn fetch(&mut self, ctx: &RequestContext<'_>, key: &KeyBuf, next: LookupDecision) -> WarmStep {
        match next {
            LookupDecision::Fetch(old) => {
                let disposition = RequestDisposition::Fetch { key: key.clone(), old };
                let waiting = self.core.waiting(ctx, disposition);
                WarmStep::Fetch(Box::new(PageFetch { waiting, request: ctx.request.clone() }))
            }
            _ => UNSTORED,
        }
    }

    fn pass(&mut self, _: &RequestContext<'_>, _: ForwardReason) -> WarmStep {
        UNSTORED
    }

    fn upgrade(&mut self, _: &RequestContext<'_>) -> WarmStep {
        UNSTORED
    }

    fn answer(&mut self, _: &RequestContext<'_>, _: &Synthetic) -> WarmStep {
        UNSTORED
    }

    fn last_hop(&mut self, _: &RequestContext<'_>) -> WarmStep {
        UNSTORED
    }

    fn purge(&mut self, _: &RequestContext<'_>) -> WarmStep {
        UNSTORED
    }
}

/// Returns true if a fresh response is near its end.
fn is_near_end(times: &Freshness, now_ms: u64) -> bool {
    let now_ms = i64::try_from(now_ms).unwrap_or(i64::MAX);
    let age_ms = u64::try_from(now_ms.saturating_sub(times.born_ms)).unwrap_or(0);
    times.lifetime_ms.saturating_sub(age_ms) <= times.lifetime_ms / NEAR_END
}
