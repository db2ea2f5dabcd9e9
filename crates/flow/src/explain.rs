//! Forecast of a request: what would happen to it now, and why, without its happening. It is for
//! operators who ask why something was not cached.
//!
//! The decisions are those of `decide` and of the site's policy, by which requests go, too; here
//! they are only put into words. Must never change anything: nothing is counted, nothing moves in
//! the store's queues, nothing is fetched or waited for.

mod advice;
mod failing;
mod fetch;
mod form;
mod pieces;
mod stored;

use std::rc::Rc;
use std::sync::Arc;

use base::{Account, Now};
use files::{Depth, Look, Root};
use message::{Request, Scheme};
use policy::told::shown;
use policy::{Notes, Peer, Place, ReceiveCtx, ReceiveVerdict, Step};

use crate::decide::{self, Course, Entry};
use crate::problem::Problem;
use crate::purge::{Asked, Refusal};
use crate::state::ask::Ask;
use crate::state::assemble::Dialect;
use crate::state::client::Client;
use crate::state::live::{Live, LiveRef, Shared, Site};
use crate::state::reply::{Reply, Served};
use crate::throttle::Visit;
use crate::vcl::foretell::foretell;
use crate::{files as from_files, gate, pages};

pub use crate::forecast::foreseen::Foreseen;
pub use advice::{Application, OF_MARK, not_stored_advice};

use crate::forecast::foreseen::Ending;
pub use crate::forecast::words::not_stored;

/// The forecast of a request.
#[derive(Clone)]
pub struct Explanation {
    /// The outcome.
    pub foreseen: Foreseen,
    /// The same in one sentence, without a full stop.
    pub summary: String,
    /// The steps that lead to the outcome, in the order in which they are decided.
    pub steps: Vec<Step>,
    /// The request as it is after policy has brought it into canonical form.
    pub request: Request,
    /// Hash of its cache key; 0 when none was made.
    pub key: u64,
    /// The site that is asked, by its first host; `None` if none is.
    pub site: Option<String>,
    /// The site, and what its policy noted; `None` where no policy was asked.
    decided: Option<(Arc<Site>, Notes)>,
}

impl Explanation {
    /// Where a rule or a setting that counts for the request is written.
    pub fn place(&self, rule: &str) -> Option<&Place> {
        let (site, notes) = self.decided.as_ref()?;
        site.policy.place(notes, rule)
    }
}

/// Foretells what would happen to `request` now if it came from `peer`, over a connection without a
/// client's certificate.
///
/// It may look for files, so it must not run where others wait for it.
pub fn explain(
    shared: &Arc<Shared>,
    live: &Arc<Live>,
    request: Request,
    peer: Peer,
    now: Now,
) -> Explanation {
    let live: LiveRef = Rc::new(Arc::clone(live));
    let came = request.clone();
    let (mut explanation, page) = forecast(shared, &live, request, peer, now);
    if let Some(page) = page {
        explanation.steps.extend(pieces::of_page(shared, &live, (page, came), peer, now));
    }
    explanation
}

/// The same without the pieces of a page; the page that would be put together, if it is one.
fn forecast(
    shared: &Arc<Shared>,
    live: &LiveRef,
    mut request: Request,
    peer: Peer,
    now: Now,
) -> (Explanation, Option<pieces::Whole>) {
    // Nothing is held for a forecast.
    let account = &Account::open(shared.cache.memory(), 0);
    let client = Client { peer, near: false, secured: None, line: None, account };
    let steps = vec![asked(&request)];
    let mut teller = Teller { shared, steps, key: 0, site: None, decided: None, page: None };
    let (foreseen, summary) = teller.tell(live, &mut request, &client, now);
    let Teller { steps, key, site, decided, page, .. } = teller;
    (Explanation { foreseen, summary, steps, request, key, site, decided }, page)
}

struct Teller<'s> {
    shared: &'s Arc<Shared>,
    steps: Vec<Step>,
    key: u64,
    site: Option<String>,
    decided: Option<(Arc<Site>, Notes)>,
    /// The page that would be put together.
    page: Option<pieces::Whole>,
}

impl Teller<'_> {
    fn tell(
        &mut self,
        live: &LiveRef,
        request: &mut Request,
        client: &Client<'_>,
        now: Now,
    ) -> Ending {
        let site = match decide::enter(self.shared, live, request, client) {
            Entry::Site(site) => Arc::clone(site),
            Entry::Challenge(_) => {
                let why = "a certificate authority's question, which is answered here";
                self.steps.push(Step::new("ACME", why).decisive());
                return answered(&pages::challenge(request, bytes::Bytes::new()), "by ACME");
            }
            Entry::Health => {
                self.steps.push(Step::new("health_check", "no site's, but this path").decisive());
                return answered(
                    &pages::health(request, live.trust.readiness(now.mono_ms)),
                    "by health_check",
                );
            }
            Entry::Refused(problem) => return self.turned_away(request, problem),
            Entry::Purge(site, read) => {
                let site = Arc::clone(site);
                self.steps.push(about_site(live, &site, request));
                return self.purge(&site, read);
            }
        };
        self.site = Some(site.name.to_string());
        self.steps.push(about_site(live, &site, request));
        if let Some(refused) = self.limits(&site, request, client.peer, now) {
            return refused;
        }
        self.gates(&site, request, client.peer);
        if let Some(instance) = &site.vcl {
            let told = foretell(self.shared, live, (&site, instance), request, client.peer, now);
            self.steps.extend(told.steps);
            self.key = told.key;
            self.page = told.page.map(|object| pieces::Whole {
                object,
                site: Arc::clone(&site),
                dialect: Dialect::Varnish,
            });
            *request = told.request;
            return (told.foreseen, told.summary);
        }
        let mut notes = Notes::default();
        // What follows is for one who has passed the gates.
        let entering = gate::inherit(&site, request);
        if let Some(entering) = &entering {
            entering.take_off(request);
        }
        let mut ctx = ReceiveCtx { request, client: client.peer, now, notes: &mut notes };
        let (verdict, told) = site.policy.explain(&mut ctx);
        self.steps.extend(told);
        if site.client_auth.is_some() {
            notes.personal |= client.tell(&mut request.headers, site.certificate_fields);
        }
        if let Some(entering) = &entering {
            notes.personal |= entering.tell(request);
        }
        self.decided = Some((Arc::clone(&site), notes));
        let ask = Ask::new(live, &site, (request, notes), now, client.account);
        self.follow(&ask, verdict)
    }

    /// Foretells the error page of a request that enters no site.
    fn turned_away(&mut self, request: &Request, problem: Problem) -> Ending {
        let is_unknown = matches!(problem, Problem::NoSite);
        let reply = pages::problem(request, problem);
        let mut step = Step::new("site", error_of(&reply)).decisive();
        if is_unknown {
            let host = shown(&request.host);
            step = step.advise(format!("Name the host in a site: `host = [\"{host}\"]`."));
        }
        self.steps.push(step);
        answered(&reply, "with an error page")
    }

    /// Foretells what the site's gates are, for a request that comes as far as them.
    fn gates(&mut self, site: &Site, request: &Request, peer: Peer) {
        let Some(gates) = &site.gates else { return };
        if !site.policy.wants_https(request, site.policy.scheme(request, peer)) {
            self.steps.extend(gates.foretell(&*site.policy, request));
        }
    }

    /// Foretells what the site's limits would say; the outcome if they refuse.
    fn limits(&mut self, site: &Site, request: &Request, peer: Peer, now: Now) -> Option<Ending> {
        let throttles = site.throttles.as_deref()?;
        let (client, routes) = (site.policy.client(request, peer), site.policy.routes(request));
        let (seed, now_ms) = (&self.shared.seed, now.mono_ms);
        let visit = Visit { seed, request, client, routes, now_ms };
        let (steps, refusal) = throttles.foretell(&visit);
        self.steps.extend(steps);
        let reply = pages::problem(request, refusal?);
        Some(answered(&reply, "with a refusal"))
    }

    fn follow(&mut self, ask: &Ask<'_>, verdict: ReceiveVerdict) -> Ending {
        let beside = from_files::likely_root(ask);
        if let ReceiveVerdict::Lookup | ReceiveVerdict::Pass = verdict
            && let Some(reply) = beside.and_then(|root| self.found(ask, root))
        {
            return answered(&reply, "from a file beside the scripts");
        }
        let rule = ask.site.policy.rule_name(ask.notes.rule).to_owned();
        match decide::course(ask, verdict) {
            Course::Lookup => self.lookup(ask),
            Course::Files(root) => self.file(ask, root),
            Course::LastHop => {
                let why = "Max-Forwards is 0: it goes no further (RFC 9110 7.6.2)";
                self.steps.push(Step::new("rule", why).decisive());
                answered(&pages::options(ask.request), "here")
            }
            Course::Pass(reason) => {
                let why = format!("would be passed to the origin: rule `{rule}`");
                self.pass(ask, reason, why)
            }
            Course::Upgrade => match self.refused(ask) {
                Some(told) => told,
                None => {
                    self.upgrade(ask);
                    let why = format!("would be passed to the origin as a tunnel: rule `{rule}`");
                    (Foreseen::Tunnel, why)
                }
            },
            Course::Answer(synthetic) => {
                let reply = pages::synthetic(ask.request, &synthetic);
                let (foreseen, _) = answered(&reply, "");
                let status = reply.status;
                (foreseen, format!("would be answered with status {status}: rule `{rule}`"))
            }
            Course::Purge => (Foreseen::Purge, format!("would purge its URL: rule `{rule}`")),
        }
    }

    /// Foretells the outcome of a request for files.
    fn file(&mut self, ask: &Ask<'_>, root: u32) -> Ending {
        let root = ask.site.files.get(root as usize).cloned();
        let reply = match root {
            Some(root) => from_files::answer(None, ask, &look(ask, &root)),
            None => pages::problem(ask.request, Problem::NoFile),
        };
        let what = match reply.served {
            Served::File => "the file is there".to_owned(),
            _ => error_of(&reply),
        };
        self.steps.push(Step::new("file", what));
        answered(&reply, "from a file")
    }

    /// The reply from the file below `root` that the request's path means, if there is one.
    fn found(&mut self, ask: &Ask<'_>, root: &Arc<Root>) -> Option<Reply> {
        let reply = from_files::found(None, ask, &look(ask, root))?;
        let why = "a file of this path lies beside the scripts, and answers before they do";
        let advice = "Nothing: files need no cache in front of them.";
        self.steps.push(Step::new("file", why).decisive().advise(advice));
        Some(reply)
    }

    fn purge(&mut self, site: &Site, read: Result<Asked, Refusal>) -> Ending {
        let place = site.policy.place(&Notes::default(), "purge").cloned();
        let (why, summary) = match read {
            Ok(Asked::Refresh) => (
                "a purge request of a client that may: its URL is fetched anew",
                "would have its URL fetched anew",
            ),
            Ok(Asked::Store(..)) => (
                "a purge request of a client that may, in a dialect of this site",
                "would purge what it names",
            ),
            Err(Refusal::Access) => (
                "a purge request, and from there, or without the token, nobody purges",
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
        self.steps.push(Step::new("purge", why).at(place.as_ref()).decisive().advise(advice));
        (Foreseen::Purge, summary.to_owned())
    }

    /// Foretells the refusal of a request that must wait, if it is refused.
    fn refused(&mut self, ask: &Ask<'_>) -> Option<Ending> {
        let problem = decide::refusal(ask.request, ask.live)?;
        let reply = pages::problem(ask.request, problem);
        self.steps.push(Step::new("refused", error_of(&reply)).decisive());
        Some(answered(&reply, "with an error page"))
    }
}

fn look(ask: &Ask<'_>, root: &Arc<Root>) -> Look {
    let mut room = Vec::new();
    let path = from_files::normal(ask.request, &mut room);
    path.and_then(|path| root.look(path, Depth::Full).ok()).unwrap_or(Look::Missing)
}

/// Returns the outcome that is the answer `reply`; `from` says where the answer is from.
fn answered(reply: &Reply, from: &str) -> Ending {
    let (served, status) = (reply.served, reply.status);
    let foreseen = Foreseen::Answer { served, status: Some(status) };
    (foreseen, format!("would be answered {from}, with status {status}"))
}

fn error_of(reply: &Reply) -> String {
    let trouble = reply.about.trouble.as_ref().map(|trouble| trouble.error.to_string());
    let text = trouble.unwrap_or_else(|| format!("status {}", reply.status));
    text.trim_end_matches('.').to_owned()
}

fn asked(request: &Request) -> Step {
    let why = format!("{} {}", request.method, url_of(request));
    let fields: Vec<String> = request
        .headers
        .iter()
        .filter(|field| !field.name.eq_ignore_ascii_case(b"host"))
        .map(|field| shown(field.name))
        .collect();
    Step::new("request", why).fact("with fields", fields.join(", "))
}

/// The URL of a request in canonical form.
fn url_of(request: &Request) -> String {
    let port = request.port.map(|port| format!(":{port}")).unwrap_or_default();
    let (host, target) = (shown(&request.host), shown(&request.target));
    format!("{}://{host}{port}{target}", request.scheme.as_str())
}

fn about_site(live: &Live, site: &Site, request: &Request) -> Step {
    let pattern = live.sites.pattern(&request.host).unwrap_or_default();
    let (host, name) = (shown(&request.host), &site.name);
    let why = match pattern.as_str() {
        "*" => format!("`{name}`: its host `*` is for every host that no other site names"),
        exact if exact == host => format!("`{name}`: `{host}` is one of its hosts"),
        below => format!("`{name}`: its host `{below}` is for `{host}`"),
    };
    let place = site.policy.place(&Notes::default(), "host");
    let mut step = Step::new("site", why).at(place);
    if site.client_auth.is_some() && request.scheme == Scheme::Https {
        let note = "as from a client without a certificate: the site checks its clients'";
        step = step.fact("assumed", note);
    }
    step
}
