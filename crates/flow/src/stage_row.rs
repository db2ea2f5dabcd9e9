//! Stage row: the stages that each request for a site passes, before its policy or program receives
//! it.
//!
//! The order stands here only. A request follows it, waits at a stage and resumes there; a forecast
//! follows it without acting.

use std::rc::Rc;

use cache::Reader;
use message::Request;
use policy::ConnectionPeer;

use crate::crawlers;
use crate::disposition::{Marks, Start};
use crate::forecast::outcome::Ending;
use crate::forecast::steps::ForecastSteps;
use crate::gate::{AuthStage, HttpsRedirect, admit};
use crate::limit_stage::SiteLimits;
use crate::pages;
use crate::problem::Problem;
use crate::stage::{Clearance, Entrant, RowStage, StageOutcome, StageResult};
use crate::state::core::CoreState;
use crate::state::downstream::Downstream;
use crate::state::gate::parked_request::{ParkedRequest, StageWait};
use crate::state::reply::Reply;
use crate::state::request_context::RequestConnection;
use crate::state::site_context::SiteContext;

/// Declares the row: the stages in order, the question of each, and its possible results.
macro_rules! row {
    ($($(#[doc = $asks:literal])+ $stage:ident => $($outcome:ident),+;)+) => {
        /// The position on the row where a request resumes.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Station {
            First,
            $($stage,)+
            /// After the last stage.
            Policy,
        }

        /// Returns true if any stage applies to the request.
        #[inline(always)]
        fn is_any_for(entrant: &Entrant<'_>) -> bool {
            $($stage::is_for(entrant))||+
        }

        /// Takes a request along the row from a station on.
        fn act(
            core: &Rc<CoreState>,
            entrant: &Entrant<'_>,
            request: &mut Request,
            clearance: &mut Clearance,
            from: Station,
        ) -> StageResult {
            $(
                if from <= Station::$stage && $stage::is_for(entrant) {
                    let result = $stage::act(core, entrant, request, clearance);
                    debug_assert!([$(StageOutcome::$outcome),+].contains(&result.outcome()));
                    if !matches!(result, StageResult::On) {
                        return result;
                    }
                }
            )+
            StageResult::On
        }

        /// Forecasts a request's course along the row; the outcome if it would end there.
        pub(crate) fn look(
            forecast: &mut ForecastSteps<'_>,
            entrant: &Entrant<'_>,
            request: &mut Request,
            clearance: &mut Clearance,
        ) -> Option<Ending> {
            $(
                if $stage::is_for(entrant)
                    && let Some(ending) = $stage::look(forecast, entrant, request, clearance)
                {
                    return Some(ending);
                }
            )+
            None
        }
    };
}

// `cargo xtask docs` writes this table into ARCHITECTURE.md.
row! {
    /// how often the client has asked, and how much of it is under way (`rate`, `concurrent`)
    SiteLimits => GoesOn, Answered, Waits;
    /// whether it comes in the clear to a site whose gates take passwords, and HTTPS is wanted
    HttpsRedirect => GoesOn, Answered;
    /// a password, or another server (`basic_auth`, `forward_auth`)
    AuthStage => GoesOn, Answered, Waits;
}

/// Takes a request at its site along the row and has it received. Also returns the client for whom
/// it is made.
#[inline(always)]
pub(crate) fn enter(
    core: &Rc<CoreState>,
    entrant: &Entrant<'_>,
    request: &mut Request,
) -> (Start, ConnectionPeer) {
    note_arrival(entrant, request);
    if let Some(crawlers) = &entrant.site_ctx.site.crawlers {
        crawlers::classify(core, entrant, crawlers, request);
    }
    match is_any_for(entrant) {
        false => core.receive(entrant, request, None),
        true => go(core, entrant, request, Clearance::default(), Station::First),
    }
}

/// Notes the time of a request, once: its conditions must not change while it waits, or on its way
/// from the gates to its policy. A fragment has the time of its page.
#[inline(always)]
pub(crate) fn note_arrival(entrant: &Entrant<'_>, request: &mut Request) {
    if request.arrived_unix_ms == 0 {
        request.arrived_unix_ms = entrant.now.unix_ms;
    }
}

#[inline(never)]
fn go(
    core: &Rc<CoreState>,
    entrant: &Entrant<'_>,
    request: &mut Request,
    mut clearance: Clearance,
    from: Station,
) -> (Start, ConnectionPeer) {
    let (mut start, who) = match act(core, entrant, request, &mut clearance, from) {
        StageResult::On => core.receive(entrant, request, clearance.admission.as_ref()),
        StageResult::End(start, who) => (start, who),
    };
    clearance.marks.put(&mut start);
    (start, who)
}

/// Takes a request along the row that neither waits nor is refused there; `None` if it would.
pub(crate) fn pass(
    core: &Rc<CoreState>,
    entrant: &Entrant<'_>,
    request: &mut Request,
) -> Option<Clearance> {
    let mut clearance = Clearance::default();
    match act(core, entrant, request, &mut clearance, Station::First) {
        StageResult::On => Some(clearance),
        StageResult::End(..) => None,
    }
}

/// Waits at the stage where a request is parked, then resumes the row and returns the reply.
pub(crate) async fn resume(
    parked: Box<ParkedRequest>,
    mut marks: Marks,
    core: &Rc<CoreState>,
    site_ctx: SiteContext<'_>,
    asked: &Request,
    body: Option<Reader>,
    connection: RequestConnection<'_>,
) -> Reply {
    let ParkedRequest { wait, kept } = *parked;
    let client = kept.client(connection.account);
    let waited = match wait {
        StageWait::Turn(turn) => match &mut marks.limit_permit {
            Some(limit_permit) => {
                match Box::pin(limit_permit.wait(turn, core, site_ctx.site, asked)).await {
                    Ok(()) => Ok((Station::HttpsRedirect, None)),
                    Err(refusal) => Err(Box::new(refusal)),
                }
            }
            // Without a permit the request would bypass the limits.
            None => Err(Box::new(pages::problem(asked, Problem::Internal))),
        },
        StageWait::Check(check, identity) => {
            admit(check, identity, core, site_ctx, asked, connection.account)
                .await
                .map(|admission| (Station::Policy, Some(admission)))
        }
    };
    let (from, admission) = match waited {
        Ok(waited) => waited,
        Err(mut refusal) => {
            marks.put_on(&mut refusal);
            return *refusal;
        }
    };
    let mut request = asked.clone();
    let mut clearance = Clearance::default();
    clearance.let_in(admission, &mut request);
    clearance.marks.limit_permit = marks.limit_permit;
    let entrant =
        Entrant { site_ctx, client: &client, now: core.now(), downstream: &Downstream::Client };
    match go(core, &entrant, &mut request, clearance, from).0 {
        Start::Reply(reply) => reply,
        Start::Slow(slow) => Box::pin(slow.run(core, &request, body, connection)).await,
    }
}
