//! The verdict of a site's limits on a request that goes on.

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

/// The verdict of the limits on a request that goes on.
pub(crate) struct LimitPermit {
    pub(crate) visitor: LimitedClient,
    pub(crate) stay: Option<ConcurrencyPermit>,
    /// The refusal that a dry run has spared it.
    pub(crate) spared: Option<Problem>,
}

impl LimitPermit {
    /// Waits for the request's `turn`, and then asks how much is under way.
    ///
    /// # Errors
    /// Too many are under way then.
    pub(crate) async fn wait(
        &mut self,
        turn: Duration,
        core: &Rc<CoreState>,
        site: &Site,
        request: &Request,
    ) -> Result<(), Reply> {
        rt::time::sleep(turn).await;
        let Some(throttles) = &site.throttles else { return Ok(()) };
        let (seed, visitor, now_ms) = (&core.shared.seed, self.visitor, core.now().mono_ms);
        let visit = LimitedRequest { seed, request, visitor, now_ms };
        self.enter(throttles, &visit, &core.counters)
            .map_err(|problem| limited(site, request, problem))
    }

    /// Has the request be under way.
    pub(crate) fn enter(
        &mut self,
        throttles: &Throttles,
        visit: &LimitedRequest<'_>,
        counters: &Counters,
    ) -> Result<(), Problem> {
        match throttles.admit_by_concurrency(visit, counters) {
            LimitDecision::On(stay) => self.stay = stay,
            LimitDecision::Spared(stay, problem) => {
                (self.stay, self.spared) = (stay, Some(problem));
            }
            LimitDecision::Refused(problem) => return Err(problem),
        }
        Ok(())
    }

    /// Has the request be under way until its reply ends, and the log tell what it was spared.
    pub(crate) fn mark(self, reply: &mut Reply) {
        if let Some(stay) = self.stay {
            reply.about.guarded.note_stay(stay);
        }
        if let Some(problem) = self.spared
            && reply.about.trouble.is_none()
        {
            let mut trouble = problem.trouble();
            trouble.error = format!("dry run: {}", trouble.error).into();
            reply.about.trouble = Some(Box::new(trouble));
        }
    }
}

/// The page that refuses a request of `site` that meets a limit.
pub(crate) fn limited(site: &Site, request: &Request, problem: Problem) -> Reply {
    let rule = match problem {
        Problem::TooManyAtOnce { .. } => Declared::CONCURRENT,
        _ => Declared::RATE,
    };
    refusal(site, request, problem, rule)
}
