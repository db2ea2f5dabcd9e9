//! Observation of a site whose requests all go to the origin: what its cache would do with each.
//! The pages that it would store are fetched in the background, so that later requests would hit
//! them, and no client gets one.
//!
//! Must never change the request or its response.

use std::rc::Rc;
use std::sync::Arc;

use base::KeyBuf;
use cache::{BeginOptions, Object};
use message::Request;
use policy::{Notes, ReceiveVerdict};

use super::{compare_hit, is_plain};
use crate::crawlers::FetchPermit;
use crate::decisions::{self, Course, LookupDecision, freshness};
use crate::declared;
use crate::reception::received;
use crate::stage::Entrant;
use crate::state::core::CoreState;
use crate::state::gate::SiteAdmission;
use crate::state::reply::{CacheOutcome, ForwardReason};
use crate::state::request_context::RequestContext;
use crate::state::site_context::SiteContext;
use crate::state::tier::MissStep;
use crate::state::verification::{SiteVerification, WouldBe, joined_cookies};

/// Looks what the cache would do with a client's request, if its site only observes.
pub(crate) fn look_on(
    core: &Rc<CoreState>,
    own: &SiteVerification,
    entrant: &Entrant<'_>,
    request: &Request,
    admission: Option<&SiteAdmission>,
) {
    let Some(shadow) = own.shadow().filter(|_| entrant.downstream.is_of_client()) else { return };
    let site_ctx = SiteContext { live: entrant.site_ctx.live, site: shadow };
    let entrant = Entrant { site_ctx, ..*entrant };
    let (mut request, mut notes) = (request.clone(), Notes::default());
    let cookies = joined_cookies(&request);
    let verdict =
        received(&entrant, &mut request, admission, &mut notes, |policy, ctx| policy.receive(ctx));
    let ctx = RequestContext::new(site_ctx, &request, notes, entrant.now, &core.background);
    let ctx = RequestContext { cookies: Some(&cookies), ..ctx };
    if let Some(would_be) = outcome(core, own, &ctx, verdict) {
        own.observed(would_be);
    }
}

/// The outcome that a request would have; `None` if it needs neither cache nor origin. Fetches the
/// page that would be stored.
fn outcome(
    core: &Rc<CoreState>,
    own: &SiteVerification,
    ctx: &RequestContext<'_>,
    verdict: ReceiveVerdict,
) -> Option<WouldBe> {
    match decisions::course(ctx, verdict) {
        Course::Lookup => {}
        Course::Pass(_) | Course::Upgrade => return Some(WouldBe::Pass),
        Course::Files(_) | Course::LastHop | Course::Answer(_) | Course::Purge => return None,
    }
    let mut key = KeyBuf::new();
    core.make_key(ctx.site, ctx.request, &ctx.notes, &mut key);
    let found = core.find(&key, ctx.request, ctx.now);
    let times = |object: &Object| freshness(ctx.live, object, ctx.now.mono_ms);
    Some(match decisions::next(ctx, found, times) {
        LookupDecision::Deliver(object, CacheOutcome::Hit) => {
            if is_plain(ctx) && object.whole().is_some() {
                compare_hit(core, own, ctx, object);
            }
            WouldBe::Hit
        }
        LookupDecision::Deliver(object, _) => {
            core.refresh(ctx, &key, &object);
            WouldBe::Stale
        }
        LookupDecision::Fetch(old) => {
            fetch(core, ctx, &key, old.as_ref());
            WouldBe::Miss
        }
        LookupDecision::Alone(ForwardReason::Bypass) | LookupDecision::Pass => WouldBe::Pass,
        LookupDecision::Alone(_) => WouldBe::Miss,
    })
}

/// Fetches the page of `key` for the store, unless that is under way.
fn fetch(core: &Rc<CoreState>, ctx: &RequestContext<'_>, key: &KeyBuf, old: Option<&Arc<Object>>) {
    let Some(permit) = FetchPermit::at_once(core, ctx) else { return };
    let options = BeginOptions { rejected: old, ..BeginOptions::default() };
    let MissStep::Lead(lead) = core.begin(ctx, key, options) else { return };
    declared::refresh(core, ctx, key, lead, old, core.log.number(), permit);
}
