//! Permit of a site's limits for one request: it counts the request as in progress until its reply
//! ends.

use std::rc::Rc;
use std::time::Duration;

use base::Counters;
use base::rate::ConcurrencyPermit;
use message::Request;
use policy::Declared;

use crate::pages::refusal;
use crate::problem::Problem;
use crate::state::core::CoreState;
use crate::state::reply::Reply;
use crate::state::site::Site;
use crate::throttle::{LimitDecision, LimitedClient, LimitedRequest, Throttles};

/// The permit of a request that the limits let through.
pub(crate) struct LimitPermit {
    pub(crate) limited_client: LimitedClient,
    pub(crate) permit: Option<ConcurrencyPermit>,
    /// The refusal that `dry_run` has turned into a log entry.
    pub(crate) spared: Option<Problem>,
}

impl LimitPermit {
    /// Waits for `turn`, then asks the limits on concurrency.
    ///
    /// # Errors
    /// Too many requests are in progress by then.
    pub(crate) async fn wait(
        &mut self,
        turn: Duration,
        core: &Rc<CoreState>,
        site: &Site,
        request: &Request,
    ) -> Result<(), Reply> {
        rt::time::sleep(turn).await;
        let Some(throttles) = &site.throttles else { return Ok(()) };
        let (seed, limited_client, now_ms) =
            (&core.shared.seed, self.limited_client, core.now().mono_ms);
        let limited = LimitedRequest { seed, request, limited_client, now_ms, came: None };
        self.enter(throttles, &limited, &core.counters)
            .map_err(|problem| limit_page(site, request, problem))
    }

    /// Counts the request as in progress, if the limits permit it.
    pub(crate) fn enter(
        &mut self,
        throttles: &Throttles,
        limited: &LimitedRequest<'_>,
        counters: &Counters,
    ) -> Result<(), Problem> {
        match throttles.admit_by_concurrency(limited, counters) {
            LimitDecision::On(permit) => self.permit = permit,
            LimitDecision::Spared(permit, problem) => {
                (self.permit, self.spared) = (permit, Some(problem));
            }
            LimitDecision::Refused(problem) => return Err(problem),
        }
        Ok(())
    }

    /// Takes over what `other` has counted for the same request.
    pub(crate) fn join(&mut self, other: Self) {
        let (own, counted) = (self.permit.take(), other.permit);
        self.permit = match own {
            Some(own) => Some(own.with(counted)),
            None => counted,
        };
        self.spared = self.spared.take().or(other.spared);
    }

    /// Keeps the request counted until its reply ends, and logs a refusal that `dry_run` spared.
    pub(crate) fn mark(self, reply: &mut Reply) {
        if let Some(permit) = self.permit {
            reply.about.guarded.note_permit(permit);
        }
        if let Some(problem) = self.spared
            && reply.about.failure.is_none()
        {
            let mut failure = problem.failure();
            failure.error = format!("dry run: {}", failure.error).into();
            reply.about.failure = Some(Box::new(failure));
        }
    }
}

/// The page that refuses a request of `site` because of a limit.
pub(crate) fn limit_page(site: &Site, request: &Request, problem: Problem) -> Reply {
    let rule = match problem {
        Problem::TooManyAtOnce { .. } => Declared::CONCURRENT,
        _ => Declared::RATE,
    };
    refusal(site, request, problem, rule)
}
