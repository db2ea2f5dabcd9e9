//! Limit stage: the stage at which the limits of a site are applied (`rate`, `concurrent`).
//!
//! It comes before the policy or program, so that a refusal is cheap. A delayed request is looked
//! up only after its delay, so it sees later invalidations. Purges, fragments, health checks,
//! challenges and requests of other nodes are not limited.
//!
//! Limits of a path that the VCL beside a site's settings leads to are applied behind `vcl_recv`.

use std::rc::Rc;

use message::Request;
use policy::ConnectionPeer;

use crate::disposition::Start;
use crate::forecast::outcome::Ending;
use crate::forecast::steps::{ForecastSteps, answered};
use crate::limit_permit::{LimitPermit, limit_page};
use crate::pages;
use crate::stage::{Clearance, Entrant, RowStage, StageResult};
use crate::state::core::CoreState;
use crate::state::downstream::Downstream;
use crate::state::gate::parked_request::StageWait;
use crate::state::reply::Reply;
use crate::state::shared::SharedState;
use crate::throttle::{LimitDecision, LimitedClient, LimitedRequest};

/// The stage that applies a site's limits on the rate and concurrency of its clients.
pub(crate) struct SiteLimits;

impl RowStage for SiteLimits {
    #[inline(always)]
    fn is_for(entrant: &Entrant<'_>) -> bool {
        entrant.site_ctx.site.throttles.is_some()
            && matches!(entrant.downstream, Downstream::Client)
    }

    #[inline(never)]
    fn act(
        core: &Rc<CoreState>,
        entrant: &Entrant<'_>,
        request: &mut Request,
        clearance: &mut Clearance,
    ) -> StageResult {
        let site = entrant.site_ctx.site;
        let Some(throttles) = &site.throttles else { return StageResult::On };
        let limited_client = LimitedClient::of(&*site.policy, request, entrant.client.peer);
        let refused = |problem| {
            StageResult::End(
                Start::Reply(limit_page(site, request, problem)),
                limited_client.client,
            )
        };
        let (seed, now_ms) = (&core.shared.seed, entrant.now.mono_ms);
        let limited = LimitedRequest { seed, request, limited_client, now_ms, came: None };
        let (turn, spared) = match throttles.admit_by_rate(&limited, &core.counters) {
            LimitDecision::On(turn) => (turn, None),
            LimitDecision::Spared(turn, problem) => (turn, Some(problem)),
            LimitDecision::Refused(problem) => return refused(problem),
        };
        let mut limit_permit = LimitPermit { limited_client, permit: None, spared };
        if let Some(turn) = turn {
            clearance.marks.limit_permit = Some(Box::new(limit_permit));
            return StageResult::End(
                entrant.wait(request, StageWait::Turn(turn), clearance),
                limited_client.client,
            );
        }
        if let Err(problem) = limit_permit.enter(throttles, &limited, &core.counters) {
            return refused(problem);
        }
        if limit_permit.permit.is_some() || limit_permit.spared.is_some() {
            clearance.marks.limit_permit = Some(Box::new(limit_permit));
        }
        StageResult::On
    }

    fn look(
        forecast: &mut ForecastSteps<'_>,
        entrant: &Entrant<'_>,
        request: &mut Request,
        _: &mut Clearance,
    ) -> Option<Ending> {
        let site = entrant.site_ctx.site;
        let limited_client = LimitedClient::of(&*site.policy, request, entrant.client.peer);
        let (seed, now_ms) = (&forecast.shared.seed, entrant.now.mono_ms);
        let limited = LimitedRequest { seed, request, limited_client, now_ms, came: None };
        let (steps, refusal) = site.throttles.as_ref()?.foretell(&limited);
        forecast.steps.extend(steps);
        Some(answered(&pages::problem(request, refusal?), "with a refusal"))
    }
}

/// A request of `client` that `vcl_recv` has changed, and the request as it came.
pub(crate) struct LedRequest<'a> {
    pub(crate) came: &'a Request,
    pub(crate) request: &'a Request,
    pub(crate) client: ConnectionPeer,
}

impl LedRequest<'_> {
    /// Counts the request by the limits that apply to it and did not as it came.
    ///
    /// # Errors
    /// A limit refuses it, or would have it wait.
    pub(crate) fn count(
        &self,
        core: &CoreState,
        entrant: &Entrant<'_>,
    ) -> Result<Option<Box<LimitPermit>>, Box<Reply>> {
        let site = entrant.site_ctx.site;
        let Some(throttles) = &site.throttles else { return Ok(None) };
        self.with_limited(&core.shared, entrant, |limited| {
            let spared = match throttles.admit_by_rate(limited, &core.counters) {
                LimitDecision::On(_) => None,
                LimitDecision::Spared(_, problem) => Some(problem),
                LimitDecision::Refused(problem) => return Err(problem),
            };
            let limited_client = limited.limited_client;
            let mut limit_permit = LimitPermit { limited_client, permit: None, spared };
            limit_permit.enter(throttles, limited, &core.counters)?;
            let has_effect = limit_permit.permit.is_some() || limit_permit.spared.is_some();
            Ok(has_effect.then(|| Box::new(limit_permit)))
        })
        .unwrap_or(Ok(None))
        .map_err(|problem| Box::new(limit_page(site, self.request, problem)))
    }

    /// Forecasts [`LedRequest::count`].
    pub(crate) fn foretell(
        &self,
        forecast: &mut ForecastSteps<'_>,
        entrant: &Entrant<'_>,
    ) -> Option<Ending> {
        let throttles = entrant.site_ctx.site.throttles.as_ref()?;
        let (steps, refusal) =
            self.with_limited(forecast.shared, entrant, |limited| throttles.foretell(limited))?;
        forecast.steps.extend(steps);
        Some(answered(&pages::problem(self.request, refusal?), "with a refusal"))
    }

    /// Calls `then` with the request, if its site limits it.
    fn with_limited<R>(
        &self,
        shared: &SharedState,
        entrant: &Entrant<'_>,
        then: impl FnOnce(&LimitedRequest<'_>) -> R,
    ) -> Option<R> {
        let (policy, client) = (&*entrant.site_ctx.site.policy, self.client);
        let (seed, now_ms) = (&shared.seed, entrant.now.mono_ms);
        let of = |request| LimitedRequest {
            seed,
            request,
            limited_client: LimitedClient::known(policy, request, client),
            now_ms,
            came: None,
        };
        let came = of(self.came);
        let limited = LimitedRequest { came: Some(&came), ..of(self.request) };
        SiteLimits::is_for(entrant).then(|| then(&limited))
    }
}
