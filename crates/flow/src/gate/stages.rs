//! Stages of the gates: the redirect that keeps passwords from being sent in the clear, then the
//! checks.

use std::rc::Rc;

use message::Request;
use policy::{Notes, ReceiveCtx, ReceiveVerdict, StoreUse};

use super::gate_verdict::AuthVerdict;
use super::{inherit, is_gated};
use crate::disposition::Start;
use crate::forecast::outcome::Ending;
use crate::forecast::steps::ForecastSteps;
use crate::pages;
use crate::problem::Problem;
use crate::stage::{Clearance, Entrant, RowStage, StageResult};
use crate::state::core::CoreState;
use crate::state::downstream::Downstream;
use crate::state::gate::ClientIdentity;
use crate::state::gate::parked_request::StageWait;
use crate::state::request_context::RequestContext;

/// The redirect to HTTPS of a request whose check would need a password in the clear.
pub(crate) struct HttpsRedirect;

/// The stage of a site's checks.
pub(crate) struct AuthStage;

impl RowStage for HttpsRedirect {
    #[inline(always)]
    fn is_for(entrant: &Entrant<'_>) -> bool {
        entrant.site_ctx.site.gates.is_some() && matches!(entrant.downstream, Downstream::Client)
    }

    #[inline(never)]
    fn act(
        _: &Rc<CoreState>,
        entrant: &Entrant<'_>,
        request: &mut Request,
        _: &mut Clearance,
    ) -> StageResult {
        let policy = &entrant.site_ctx.site.policy;
        let identity = ClientIdentity::of(&**policy, request, entrant.client.peer);
        match policy.wants_https(request, identity.scheme) {
            true => StageResult::End(answer_outside(entrant, request), identity.who),
            false => StageResult::On,
        }
    }

    fn look(
        _: &mut ForecastSteps<'_>,
        _: &Entrant<'_>,
        _: &mut Request,
        _: &mut Clearance,
    ) -> Option<Ending> {
        // The policy reports it, which is next; a forecast has no password to protect.
        None
    }
}

impl RowStage for AuthStage {
    #[inline(always)]
    fn is_for(entrant: &Entrant<'_>) -> bool {
        entrant.site_ctx.site.gates.is_some()
    }

    #[inline(never)]
    fn act(
        core: &Rc<CoreState>,
        entrant: &Entrant<'_>,
        request: &mut Request,
        clearance: &mut Clearance,
    ) -> StageResult {
        let site = entrant.site_ctx.site;
        match entrant.downstream {
            Downstream::Client => {}
            // The gates there have admitted the client, or those of the page.
            Downstream::Node(_) => {
                let client = site.policy.client(request, entrant.client.peer);
                clearance.let_in(inherit(site, request, client), request);
                return StageResult::On;
            }
            Downstream::Page(context) => {
                clearance.let_in(inherit(site, request, context.top.peer), request);
                return StageResult::On;
            }
            // Nobody has a password or a cookie. The server of `forward_auth` is not asked.
            Downstream::Warmth if is_gated(site, request, entrant.client.peer) => {
                let refusal = pages::problem(request, Problem::PasswordNeeded);
                return StageResult::End(Start::Reply(refusal), entrant.client.peer);
            }
            Downstream::Warmth => return StageResult::On,
        }
        let identity = ClientIdentity::of(&*site.policy, request, entrant.client.peer);
        match core.auth_memory.look(entrant.site_ctx, request, identity, &[], entrant.now) {
            AuthVerdict::In(admission) => {
                clearance.let_in(Some(admission), request);
                StageResult::On
            }
            AuthVerdict::Refused(refusal) => StageResult::End(Start::Reply(*refusal), identity.who),
            AuthVerdict::Waits(check) => {
                let wait = StageWait::Check(check, identity);
                StageResult::End(entrant.wait(request, wait, clearance), identity.who)
            }
        }
    }

    fn look(
        forecast: &mut ForecastSteps<'_>,
        entrant: &Entrant<'_>,
        request: &mut Request,
        clearance: &mut Clearance,
    ) -> Option<Ending> {
        let site = entrant.site_ctx.site;
        let policy = &*site.policy;
        let scheme = policy.scheme(request, entrant.client.peer);
        let client = policy.client(request, entrant.client.peer);
        if !policy.wants_https(request, scheme) {
            let routes = policy.routes(request, client);
            forecast.steps.extend(site.gates.as_ref()?.foretell(routes));
        }
        // Later steps see a client that has passed the gates.
        clearance.let_in(inherit(site, request, client), request);
        None
    }
}

/// Answers a request that may only pass if the policy answers it by itself: nothing else is
/// reachable before the gates.
#[cold]
fn answer_outside(entrant: &Entrant<'_>, request: &mut Request) -> Start {
    let mut notes = Notes::default();
    let (site, now) = (entrant.site_ctx.site, entrant.now);
    let mut ctx = ReceiveCtx {
        request,
        client: entrant.client.peer,
        now,
        store: StoreUse::ByRules,
        notes: &mut notes,
    };
    let ReceiveVerdict::Synth(synthetic) = site.policy.receive(&mut ctx) else {
        return Start::Reply(pages::problem(request, Problem::Internal));
    };
    let mut reply = pages::synthetic(request, &synthetic);
    RequestContext::new(entrant.site_ctx, request, notes, now, entrant.client.account)
        .sign(&mut reply);
    Start::Reply(reply)
}
