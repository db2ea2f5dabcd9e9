//! The stage of the limits that a request must pass before it is answered: those of its site.
//!
//! They are asked before the policy or the program is, so that a refusal costs little. A request
//! that is to wait for its turn goes on when that has come: what it held before others might wait
//! for, or have purged meanwhile. Nothing here is asked for purges, fragments of pages, health
//! checks, challenges, and requests of other nodes.

use std::rc::Rc;

use message::Request;

use crate::forecast::foreseen::Ending;
use crate::forecast::telling::{Telling, answered};
use crate::pages;
use crate::pass::{Pass, limited};
use crate::stage::{Clearance, Entrant, RowStage, StageResult};
use crate::state::core::Core;
use crate::state::downstream::Downstream;
use crate::state::gate::parked::Wait;
use crate::throttle::{Visit, Visitor, Word};
use crate::way::Start;

/// The limits of a site, on how often and how much at once its clients may ask.
pub(crate) struct Limits;

impl RowStage for Limits {
    #[inline(always)]
    fn is_for(entrant: &Entrant<'_>) -> bool {
        entrant.place.site.throttles.is_some() && matches!(entrant.downstream, Downstream::Client)
    }

    #[inline(never)]
    fn act(
        core: &Rc<Core>,
        entrant: &Entrant<'_>,
        request: &mut Request,
        clearance: &mut Clearance,
    ) -> StageResult {
        let site = entrant.place.site;
        let Some(throttles) = &site.throttles else { return StageResult::On };
        let visitor = Visitor::of(&*site.policy, request, entrant.client.peer);
        let refused = |problem| {
            StageResult::End(Start::Reply(limited(site, request, problem)), visitor.client)
        };
        let (seed, now_ms) = (&core.shared.seed, entrant.now.mono_ms);
        let visit = Visit { seed, request, visitor, now_ms };
        let (turn, spared) = match throttles.come(&visit, &core.counters) {
            Word::On(turn) => (turn, None),
            Word::Spared(turn, problem) => (turn, Some(problem)),
            Word::Refused(problem) => return refused(problem),
        };
        let mut pass = Pass { visitor, stay: None, spared };
        if let Some(turn) = turn {
            clearance.marks.pass = Some(Box::new(pass));
            return StageResult::End(
                entrant.wait(request, Wait::Turn(turn), clearance),
                visitor.client,
            );
        }
        if let Err(problem) = pass.enter(throttles, &visit, &core.counters) {
            return refused(problem);
        }
        if pass.stay.is_some() || pass.spared.is_some() {
            clearance.marks.pass = Some(Box::new(pass));
        }
        StageResult::On
    }

    fn look(
        telling: &mut Telling<'_>,
        entrant: &Entrant<'_>,
        request: &mut Request,
        _: &mut Clearance,
    ) -> Option<Ending> {
        let site = entrant.place.site;
        let visitor = Visitor::of(&*site.policy, request, entrant.client.peer);
        let (seed, now_ms) = (&telling.shared.seed, entrant.now.mono_ms);
        let visit = Visit { seed, request, visitor, now_ms };
        let (steps, refusal) = site.throttles.as_ref()?.foretell(&visit);
        telling.steps.extend(steps);
        Some(answered(&pages::problem(request, refusal?), "with a refusal"))
    }
}
