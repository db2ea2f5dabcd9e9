//! Crawlers: the class of a request's client, and the queue in which fetches on behalf of crawlers
//! wait.
//!
//! A fetch for people must never wait here, nor anything that people wait for: a crawler leads a
//! fetch only once it has its permit. Fragments belong to their page, and requests of other nodes
//! to a fetch there. Neither needs a permit of its own: a fetch that has one could otherwise wait
//! for itself.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use agents::{Crawlers, OpenReason, SignatureContext, SignatureVerdict};
use base::{Counter, Limit};
use message::{ClassifiedClient, ClientClass, ClientProof, HeaderId, Method, Request};
use origin::Origin;
use policy::DecisionStep;
use tokio::sync::oneshot;

use crate::forecast::steps::ForecastSteps;
use crate::problem::Problem;
use crate::stage::Entrant;
use crate::state::core::CoreState;
use crate::state::crawlers::{
    BudgetRates, CrawlerClaim, FetchLanes, LaneEntry, LaneLimits, LanePermit, OriginMoment,
};
use crate::state::request_context::RequestContext;
use crate::state::shared::SharedState;
use crate::state::trace::Trace;
use crate::state::warmth::WarmTicket;

/// Milliseconds between two looks of a waiting crawler at the budget of its lane.
const GROWTH_MS: u64 = 200;

/// Notes the class of a request's client, once: by its signature, if a trusted agent has signed it,
/// else by its User-Agent. A claim that DNS must prove is looked up.
#[cold]
pub(crate) fn classify(
    core: &Rc<CoreState>,
    entrant: &Entrant<'_>,
    crawlers: &Crawlers,
    request: &mut Request,
) {
    if request.client.is_some() {
        return;
    }
    // Another node has judged the request as it was sent, which this one has not seen.
    let is_judged_here = !entrant.downstream.is_node() && crawlers.may_be_signed(request);
    let signed = is_judged_here
        .then(|| crawlers.signed_client(verify(core, entrant, crawlers, request)))
        .flatten();
    let client = signed.unwrap_or_else(|| class_of(&core.shared, entrant, crawlers, request));
    request.client = Some(client);
    if client.proof != ClientProof::Pending {
        return;
    }
    let peer = entrant.site_ctx.site.policy.client(request, entrant.client.peer);
    let (Some(name), Some(address)) = (crawlers.name(client), peer.address()) else { return };
    let claim = CrawlerClaim { name, address, domains: crawlers.domains(client) };
    let (most, now_ms) = (entrant.site_ctx.live.limits.crawler_checks, entrant.now.mono_ms);
    if !core.shared.crawlers.verification.order(claim, most, now_ms) {
        core.counters.limit(Limit::CrawlerChecks);
    }
}

/// Judges the signatures of a request, and counts the verdict.
fn verify(
    core: &CoreState,
    entrant: &Entrant<'_>,
    crawlers: &Crawlers,
    request: &Request,
) -> SignatureVerdict {
    let most = entrant.site_ctx.live.limits.signature_checks;
    let may_verify = || core.signatures.take(most, entrant.now);
    let verdict = judge(&core.shared, entrant, crawlers, request, may_verify);
    match verdict {
        SignatureVerdict::Absent => {}
        SignatureVerdict::True(_) => core.counters.inc(Counter::SignaturesTrue),
        SignatureVerdict::False(..) => core.counters.inc(Counter::SignaturesFalse),
        SignatureVerdict::Open(_, why) => {
            core.counters.inc(Counter::SignaturesOpen);
            if why == OpenReason::Busy {
                core.counters.limit(Limit::SignatureChecks);
            }
        }
    }
    verdict
}

fn judge(
    shared: &SharedState,
    entrant: &Entrant<'_>,
    crawlers: &Crawlers,
    request: &Request,
    may_verify: impl FnMut() -> bool,
) -> SignatureVerdict {
    let context = SignatureContext {
        fetched: &shared.crawlers.keys.load(),
        scheme: entrant.site_ctx.site.policy.scheme(request, entrant.client.peer),
        now_secs: entrant.now.unix_secs(),
        lifetime_s: entrant.site_ctx.live.limits.signature_lifetime / 1000,
    };
    crawlers.verify(request, context, may_verify)
}

fn class_of(
    shared: &SharedState,
    entrant: &Entrant<'_>,
    crawlers: &Crawlers,
    request: &Request,
) -> ClassifiedClient {
    let peer = entrant.site_ctx.site.policy.client(request, entrant.client.peer);
    // An unnamed client's address is that of its proxy.
    let address = match peer {
        policy::ConnectionPeer::Host(address) => Some(address),
        policy::ConnectionPeer::Local | policy::ConnectionPeer::Unnamed(_) => None,
    };
    let agents = request.headers.values(HeaderId::UserAgent);
    let proofs = &shared.crawlers.verification.proofs;
    crawlers.classify(agents, address, proofs, entrant.now.mono_ms)
}

/// Notes the class for a forecast, and reports it. Nothing is looked up.
pub(crate) fn look(forecast: &mut ForecastSteps<'_>, entrant: &Entrant<'_>, request: &mut Request) {
    let Some(crawlers) = &entrant.site_ctx.site.crawlers else { return };
    let verdict = match crawlers.may_be_signed(request) {
        true => judge(forecast.shared, entrant, crawlers, request, || true),
        false => SignatureVerdict::Absent,
    };
    let client = crawlers
        .signed_client(verdict)
        .unwrap_or_else(|| class_of(forecast.shared, entrant, crawlers, request));
    request.client = Some(client);
    let step = DecisionStep::new("class", in_words(crawlers, client));
    forecast.steps.push(match verdict {
        SignatureVerdict::Absent | SignatureVerdict::True(_) => step,
        SignatureVerdict::False(_, fault) => step.fact("signature", format!("false: {fault}")),
        SignatureVerdict::Open(_, why) => step.fact("signature", format!("not verified: {why}")),
    });
}

fn in_words(crawlers: &Crawlers, client: ClassifiedClient) -> String {
    let class = client.class.word();
    let Some(name) = crawlers.name(client) else {
        return format!("{class}: its User-Agent is not in the list of crawlers");
    };
    match client.proof {
        ClientProof::Claimed if client.class == ClientClass::Human => {
            format!("{class}: its User-Agent is a browser's")
        }
        ClientProof::Claimed => format!("{class}: its User-Agent names `{name}`"),
        ClientProof::Verified => format!("{class}: it is `{name}`, by its address"),
        ClientProof::Unverified => {
            format!("{class}: it claims to be `{name}`, and its address is none of that crawler's")
        }
        ClientProof::Signed => format!("{class}: it is `{name}`, by its signature"),
        ClientProof::Forged => {
            format!("{class}: it claims to be `{name}`, and its signature is false")
        }
        ClientProof::Pending => {
            format!("{class}: it claims to be `{name}`, which DNS has not confirmed yet")
        }
    }
}

/// Returns true if fetches of the request wait in the queue for crawlers. One for another node has
/// its place in that node's queue.
#[inline]
fn queues(ctx: &RequestContext<'_>) -> bool {
    ctx.downstream.is_of_client() && ctx.site.policy.serves_stored(&ctx.notes)
}

/// The limits for a request. Crawlers of language models that read have a budget; tools also call
/// interfaces, and are only kept from coming all at once.
fn limits(ctx: &RequestContext<'_>) -> LaneLimits {
    let limits = &ctx.live.limits;
    let rates = BudgetRates { share: limits.crawler_share, minute: limits.crawler_minute };
    let is_model = ctx.request.client.is_some_and(|client| client.class == ClientClass::Ai);
    let reads = matches!(ctx.request.method, Method::Get | Method::Head);
    LaneLimits {
        fetches: limits.crawler_fetches,
        queue: limits.crawler_queue,
        rates,
        is_budgeted: is_model && reads,
    }
}

/// The state of an origin that the budget of its lane depends on.
fn moment(origin: &Origin) -> OriginMoment {
    OriginMoment { now_ms: rt::now().mono_ms, exchanges: origin.exchanges() }
}

/// Waits for the turn of a request in the lane of `origin`, whose budget grows meanwhile; `None`
/// once it has waited for `most_ms`.
async fn turn(
    lanes: &Arc<FetchLanes>,
    origin: &Origin,
    mut turn: oneshot::Receiver<LanePermit>,
    most_ms: u64,
) -> Option<LanePermit> {
    let end_ms = rt::now().mono_ms.saturating_add(most_ms);
    loop {
        let now_ms = rt::now().mono_ms;
        if now_ms >= end_ms {
            return None;
        }
        let pause = Duration::from_millis(GROWTH_MS.min(end_ms - now_ms));
        match rt::time::timeout(pause, &mut turn).await {
            Ok(permit) => return permit.ok(),
            Err(_) => lanes.grow(origin.name(), moment(origin)),
        }
    }
}

/// The permit to fetch from the origin of a request, for as long as the fetch lasts. Only crawlers
/// need a place in a lane for it.
#[derive(Default)]
pub(crate) struct FetchPermit {
    _place: Option<LanePermit>,
    /// The task of warming that the fetch carries out.
    warmth: Option<Box<WarmTicket>>,
}

impl FetchPermit {
    /// The permit, if it can be had at once; `None` if the request must wait.
    pub(crate) fn at_once(core: &CoreState, ctx: &RequestContext<'_>) -> Option<Self> {
        let Some(own) = ctx.site.origin(&ctx.notes).filter(|_| queues(ctx)) else {
            return Some(Self::default());
        };
        let lanes = &core.shared.crawlers.lanes;
        let at = moment(&own.origin);
        lanes.try_enter(own.origin.name(), limits(ctx), at).map(Self::of)
    }

    fn of(place: LanePermit) -> Self {
        Self { _place: Some(place), warmth: None }
    }

    /// The permit of a fetch that warms the store.
    pub(crate) fn of_warmth(ticket: WarmTicket) -> Self {
        Self { _place: None, warmth: Some(Box::new(ticket)) }
    }

    /// Notes the trace of the fetch.
    pub(crate) fn note_trace(&mut self, trace: &Rc<Trace>) {
        if let Some(ticket) = &mut self.warmth {
            ticket.follow(trace);
        }
    }

    /// Waits for the permit.
    ///
    /// # Errors
    /// Too many crawlers wait, or this one has waited too long.
    pub(crate) async fn wait(core: &CoreState, ctx: &RequestContext<'_>) -> Result<Self, Problem> {
        let Some(own) = ctx.site.origin(&ctx.notes).filter(|_| queues(ctx)) else {
            return Ok(Self::default());
        };
        let refused = |limit| {
            core.counters.inc(Counter::CrawlersRefused);
            core.counters.limit(limit);
            Problem::TooManyCrawlers(limit)
        };
        let (origin, lanes) = (&*own.origin, &core.shared.crawlers.lanes);
        match lanes.enter(origin.name(), limits(ctx), moment(origin)) {
            LaneEntry::Permit(permit) => Ok(Self::of(permit)),
            LaneEntry::Wait(place) => {
                core.counters.inc(Counter::CrawlersQueued);
                ctx.note(|trace| {
                    trace.wait_us.set(trace.wait_us.get().or_else(|| Some(core.micros())));
                });
                let permit = turn(lanes, origin, place, ctx.live.limits.crawler_wait).await;
                permit.map(Self::of).ok_or_else(|| refused(Limit::CrawlerWait))
            }
            LaneEntry::Full => Err(refused(Limit::CrawlerQueue)),
        }
    }
}

/// Forecasts the queue of a request's fetch; the refusal if it is full.
pub(crate) fn foretell(
    shared: &SharedState,
    ctx: &RequestContext<'_>,
) -> Option<(DecisionStep, Option<Problem>)> {
    let own = ctx.site.origin(&ctx.notes).filter(|_| queues(ctx))?;
    let limits = limits(ctx);
    let at = moment(&own.origin);
    let (is_free, waiting) = shared.crawlers.lanes.look(own.origin.name(), limits, at);
    let why = "fetches of this request wait behind those of people (`serve = \"stored\"`)";
    let step = DecisionStep::new("queue", why).at(ctx.site.policy.place(&ctx.notes, "serve"));
    Some(match (is_free, waiting < limits.queue) {
        (true, _) => (step.fact("now", "it would be fetched at once"), None),
        (false, true) => (step.fact("now", format!("{waiting} wait, it would too")), None),
        (false, false) => {
            let step = step.fact("now", format!("{waiting} wait, so it would be refused"));
            (step.decisive(), Some(Problem::TooManyCrawlers(Limit::CrawlerQueue)))
        }
    })
}
