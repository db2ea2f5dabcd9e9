//! Explanation of a request: a forecast of its outcome, with the reason of each step. Operators
//! read it to learn why a response is not cached.
//!
//! The decisions are made by `decisions` and the site's policy, as for requests; this module only
//! words them. It must never change state: nothing is counted, fetched or waited for, and no queue
//! of the store moves.

mod advice;
mod builder;
mod dry_run;
mod fetch;
mod form;
mod lookup;
mod pieces;
mod stale_if_error;

use std::rc::Rc;
use std::sync::Arc;

use base::{Account, Now};
use files::Root;
use message::{Request, Scheme};
use policy::decision_steps::shown;
use policy::{ConnectionPeer, DecisionStep, Notes, Policy, ReceiveCtx, Routes, StoreUse};

use crate::course;
use crate::decisions::{self, RequestDestination};
use crate::limit_stage::LedRequest;
use crate::problem::Problem;
use crate::purge::{PurgeRequest, Refusal};
use crate::reception::{identified, received, received_beside};
use crate::stage::{Clearance, Entrant};
use crate::state::assemble::Dialect;
use crate::state::client::Client;
use crate::state::downstream::Downstream;
use crate::state::gate::SiteAdmission;
use crate::state::live_configuration::{LiveConfiguration, LiveRef};
use crate::state::reply::Reply;
use crate::state::request_context::RequestContext;
use crate::state::shared::SharedState;
use crate::state::site::Site;
use crate::state::site_context::SiteContext;
use crate::vcl::extra;
use crate::vcl::foretell::foretell;
use crate::{crawlers, files as from_files, pages, prefetch, stage_row, verification};

pub use crate::forecast::outcome::ForecastOutcome;
pub use advice::{Application, OF_MARK, not_stored_advice};
use builder::{ComposablePage, ForecastBuilder, error_of, look};

use crate::forecast::outcome::Ending;
use crate::forecast::steps::{ForecastSteps, answered};
pub use crate::forecast::words::not_stored;

/// The forecast of a request.
#[derive(Clone)]
pub struct Explanation {
    /// The outcome.
    pub outcome: ForecastOutcome,
    /// The outcome in one sentence, without a full stop.
    pub summary: String,
    /// The steps to the outcome, in the order of their decision.
    pub steps: Vec<DecisionStep>,
    /// The request in canonical form, after the policy's changes.
    pub request: Request,
    /// Hash of the cache key; 0 without a key.
    pub key: u64,
    /// The first host of the site; `None` if no site matches.
    pub site: Option<String>,
    /// The site and its policy's notes; `None` if no policy was asked.
    decided: Option<(Arc<Site>, Notes)>,
}

impl Explanation {
    /// The place in the configuration of a rule or setting that the outcome depends on.
    pub fn place(&self, rule: &str) -> Option<&policy::SettingLocation> {
        let (site, notes) = self.decided.as_ref()?;
        site.policy.place(notes, rule)
    }
}

/// Forecasts the outcome of `request` now, from `peer`, over a connection without a client
/// certificate.
///
/// It may read directories, so it must not run on a core's thread.
pub fn explain(
    shared: &Arc<SharedState>,
    live: &Arc<LiveConfiguration>,
    request: Request,
    peer: ConnectionPeer,
    now: Now,
) -> Explanation {
    let live: LiveRef = Rc::new(Arc::clone(live));
    let came = request.clone();
    let (mut explanation, page) = forecast(shared, &live, request, peer, now);
    if let Some(page) = page {
        explanation.steps.extend(pieces::of_page(shared, &live, page, came, peer, now));
    }
    explanation
}

/// A forecast without the pieces of a page, and the page that would be assembled, if any.
fn forecast(
    shared: &Arc<SharedState>,
    live: &LiveRef,
    mut request: Request,
    peer: ConnectionPeer,
    now: Now,
) -> (Explanation, Option<ComposablePage>) {
    // A forecast reserves no memory.
    let account = &Account::open(shared.cache.memory(), 0);
    let client = Client { peer, near: false, secured: None, vcl_connection: None, account };
    let forecast = ForecastSteps { shared, steps: vec![asked(&request)] };
    let mut builder =
        ForecastBuilder { forecast, key: 0, site: None, decided: None, page: None, findings: None };
    let (outcome, summary) = builder.forecast(live, &mut request, &client, now);
    let ForecastBuilder { forecast: ForecastSteps { steps, .. }, key, site, decided, page, .. } =
        builder;
    (Explanation { outcome, summary, steps, request, key, site, decided }, page)
}

impl ForecastBuilder<'_> {
    fn forecast(
        &mut self,
        live: &LiveRef,
        request: &mut Request,
        client: &Client<'_>,
        now: Now,
    ) -> Ending {
        let site = match decisions::enter(&self.forecast.shared.challenges, live, request, client) {
            RequestDestination::Site(site) => Arc::clone(site),
            RequestDestination::Challenge(_) => {
                let why = "a certificate authority's question, which is answered here";
                self.forecast.steps.push(DecisionStep::new("ACME", why).decisive());
                return answered(&pages::challenge(request, bytes::Bytes::new()), "by ACME");
            }
            RequestDestination::Health => {
                self.forecast
                    .steps
                    .push(DecisionStep::new("health_check", "no site's, but this path").decisive());
                return answered(
                    &pages::health(request, live.trust.readiness(now.mono_ms)),
                    "by health_check",
                );
            }
            RequestDestination::Refused(problem) => return self.turned_away(request, problem),
            RequestDestination::Purge(site, read) => {
                let site = Arc::clone(site);
                self.forecast.steps.push(about_site(live, &site, request));
                return self.purge_request(&site, read);
            }
        };
        self.site = Some(site.name.to_string());
        self.forecast.steps.push(about_site(live, &site, request));
        self.tell_observation(&site);
        let (site_ctx, mut clearance) = (SiteContext { live, site: &site }, Clearance::default());
        let entrant = Entrant { site_ctx, client, now, downstream: &Downstream::Client };
        stage_row::note_arrival(&entrant, request);
        crawlers::look(&mut self.forecast, &entrant, request);
        if let Some(ending) = stage_row::look(&mut self.forecast, &entrant, request, &mut clearance)
        {
            return ending;
        }
        if let Some(instance) = &site.vcl {
            let told = foretell(self.forecast.shared, instance, &entrant, request);
            self.forecast.steps.extend(told.steps);
            self.key = told.key;
            self.page = told.page.map(|object| ComposablePage {
                object,
                site: Arc::clone(&site),
                dialect: Dialect::Varnish,
                routes: Routes::default(),
            });
            *request = told.request;
            return (told.outcome, told.summary);
        }
        self.follow_policy(&entrant, request, clearance.admission.as_ref())
    }

    /// Forecasts the declared steps, and the subroutines of the VCL beside them.
    fn follow_policy(
        &mut self,
        entrant: &Entrant<'_>,
        request: &mut Request,
        admission: Option<&SiteAdmission>,
    ) -> Ending {
        let Entrant { site_ctx, client, now, .. } = *entrant;
        let (site, shared) = (site_ctx.site, self.forecast.shared);
        let mut notes = Notes::default();
        let received_by = site.extra.as_ref().and_then(|instance| {
            notes = identified(entrant, request);
            let who = notes.client.unwrap_or(client.peer);
            extra::foretell(shared, instance, entrant, request, who)
        });
        let (own, store) = match received_by {
            None => (None, StoreUse::ByRules),
            Some((own, extra::ExtraVerdict::On(store))) => (Some(own), store),
            Some((own, extra::ExtraVerdict::End(reply))) => {
                self.forecast.steps.extend(own.take_steps());
                return answered(&reply, "by the VCL beside its settings");
            }
        };
        if let Some(own) = &own {
            self.forecast.steps.extend(own.take_steps());
            let who = notes.client.unwrap_or(client.peer);
            let led = LedRequest { came: &own.turn.borrow().req, request, client: who };
            if let Some(ending) = led.foretell(&mut self.forecast, entrant) {
                return ending;
            }
        }
        let receive =
            |policy: &dyn Policy, policy_ctx: &mut ReceiveCtx<'_>| policy.explain(policy_ctx);
        let verification = site.verification.as_deref();
        let telling = verification.and_then(|own| own.telling_cookies(request, now.mono_ms));
        let (mut verdict, told) = match &site.extra {
            Some(_) => received_beside(entrant, request, admission, store, &mut notes, receive),
            None => received(entrant, request, admission, store, &mut notes, receive),
        };
        self.forecast.steps.extend(told);
        if let Some(cookies) = telling
            && let Some(pass) = verification::overrule(request, &mut notes, &verdict, &cookies)
        {
            verdict = pass;
            self.forecast.steps.push(verification::told(site, &notes));
        }
        self.decided = Some((Arc::clone(site), notes));
        if let Some(own) = &own
            && !extra::foretell_hash(shared, own, entrant, request, &verdict)
        {
            self.forecast.steps.extend(own.take_steps());
            return answered(&pages::problem(request, Problem::Program), "with an error page");
        }
        let ctx = RequestContext::new(site_ctx, request, notes, now, client.account);
        let ending = course::follow(self, &RequestContext { extra: own.as_ref(), ..ctx }, verdict);
        if let Some(own) = &own {
            self.forecast.steps.extend(own.take_steps());
        }
        ending
    }

    /// Tells that the site only observes, if it does.
    fn tell_observation(&mut self, site: &Site) {
        if site.verification.as_ref().is_some_and(|own| own.observes()) {
            let why = "the site only observes: the request goes to the origin, whatever follows";
            let step = DecisionStep::new("observe", why).decisive();
            self.forecast.steps.push(step.advise("`mode = \"cache\"` has the cache serve it."));
        }
    }

    /// Forecasts the error page of a request that no site takes.
    fn turned_away(&mut self, request: &Request, problem: Problem) -> Ending {
        let is_unknown = matches!(problem, Problem::NoSite);
        let reply = pages::problem(request, problem);
        let mut step = DecisionStep::new("site", error_of(&reply)).decisive();
        if is_unknown {
            let host = shown(&request.host);
            step = step.advise(format!("Name the host in a site: `host = [\"{host}\"]`."));
        }
        self.forecast.steps.push(step);
        answered(&reply, "with an error page")
    }

    /// The reply from the file below `root` for the request's path, if there is one.
    fn found(&mut self, ctx: &RequestContext<'_>, root: &Arc<Root>) -> Option<Reply> {
        let reply = from_files::found(None, ctx, &look(ctx, root))?;
        let why =
            "a file of this path lies in the origin's `root`, and answers before the origin does";
        let advice = "Nothing: files need no cache in front of them.";
        self.forecast.steps.push(DecisionStep::new("file", why).decisive().advise(advice));
        Some(reply)
    }

    fn purge_request(&mut self, site: &Site, read: Result<PurgeRequest, Refusal>) -> Ending {
        let place = site.policy.place(&Notes::default(), "purge").cloned();
        let (why, summary) = match read {
            Ok(PurgeRequest::Refresh) => (
                "a purge request of a client that may: its URL is fetched anew",
                "would have its URL fetched anew",
            ),
            Ok(PurgeRequest::Store(..)) => (
                "a purge request of a client that may, in a dialect of this site",
                "would purge what it names",
            ),
            Err(Refusal::Access) => (
                "a purge request that is refused: wrong address, or no token",
                "would be refused: this client may not purge",
            ),
            Err(Refusal::Host) => (
                "a purge of one URL, and no site has the host",
                "would be refused: its Host names no site",
            ),
            Err(_) => (
                "a purge request that no dialect of this site understands",
                "would be refused: not a purge that this site takes",
            ),
        };
        let advice = "`[site.purge]` says who may purge, and in which dialects.";
        self.forecast
            .steps
            .push(DecisionStep::new("purge", why).at(place.as_ref()).decisive().advise(advice));
        (ForecastOutcome::Purge, summary.to_owned())
    }

    /// Forecasts the refusal of a request that must wait, if it is refused.
    fn refused(&mut self, ctx: &RequestContext<'_>) -> Option<Ending> {
        let problem = decisions::refusal(ctx.request, ctx.live)?;
        let reply = pages::problem(ctx.request, problem);
        self.forecast.steps.push(DecisionStep::new("refused", error_of(&reply)).decisive());
        Some(answered(&reply, "with an error page"))
    }

    /// Forecasts the refusal of a prefetch while its origin is busy; and the queue of a crawler's
    /// fetch, with its refusal if the queue is full.
    fn queued(&mut self, ctx: &RequestContext<'_>) -> Option<Ending> {
        if let Some((step, problem)) = prefetch::foretell(ctx) {
            self.forecast.steps.push(step);
            if let Some(problem) = problem {
                return Some(answered(&pages::bare(ctx.request, problem), "with a refusal"));
            }
        }
        let (step, problem) = crawlers::foretell(self.forecast.shared, ctx)?;
        self.forecast.steps.push(step);
        Some(answered(&pages::problem(ctx.request, problem?), "with a refusal"))
    }
}

fn asked(request: &Request) -> DecisionStep {
    let why = format!("{} {}", request.method, url_of(request));
    let fields: Vec<String> = request
        .headers
        .iter()
        .filter(|field| !field.name.eq_ignore_ascii_case(b"host"))
        .map(|field| shown(field.name))
        .collect();
    DecisionStep::new("request", why).fact("with fields", fields.join(", "))
}

/// The URL of a request in canonical form.
fn url_of(request: &Request) -> String {
    let port = request.port.map(|port| format!(":{port}")).unwrap_or_default();
    let (host, target) = (shown(&request.host), shown(&request.target));
    format!("{}://{host}{port}{target}", request.scheme.as_str())
}

fn about_site(live: &LiveConfiguration, site: &Site, request: &Request) -> DecisionStep {
    let pattern = live.sites.by_host.pattern(&request.host).unwrap_or_default();
    let (host, name) = (shown(&request.host), &site.name);
    let why = match pattern.as_str() {
        "*" => format!("`{name}`: its host `*` is for every host that no other site names"),
        exact if exact == host => format!("`{name}`: `{host}` is one of its hosts"),
        below => format!("`{name}`: its host `{below}` is for `{host}`"),
    };
    let place = site.policy.place(&Notes::default(), "host");
    let mut step = DecisionStep::new("site", why).at(place);
    if site.client_check.is_some() && request.scheme == Scheme::Https {
        let note = "as from a client without a certificate: the site checks its clients'";
        step = step.fact("assumed", note);
    }
    step
}
