//! Throttles: the limits on rate and concurrency of a site's clients (`rate`, `concurrent`).
//!
//! They decide at once and must never wait: the stage delays a client that has to wait. Counts
//! survive a reload if the limit is unchanged.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base::rate::{
    Admission, ConcurrencyLimiter, ConcurrencyPermit, Rate, RateTable, RemainingQuota,
};
use base::{Account, Counter, Counters, HashSeed, HeldBytes, Limit, Limits, MemoryBudget};
use message::{Request, Status};
use policy::acl::CidrSet;
use policy::rules::Settings;
use policy::{
    ConcurrencyRule, ConnectionPeer, DecisionStep, LimitKey, Policy, RateRule, Routes, SiteRules,
    Terms,
};

use crate::problem::Problem;

/// The limits of a site and of its routes.
#[derive(Debug)]
pub struct Throttles {
    /// The site's limits, then those of each route in order.
    routes: Vec<Throttle>,
}

/// The limits of one route. Routes that inherit the site's limits share them.
#[derive(Clone, Debug)]
struct Throttle {
    rates: Arc<[RateLimit]>,
    concurrency: Arc<[ConcurrencyLimit]>,
}

/// A limit of either kind.
#[derive(Debug)]
struct ClientLimit<R, T> {
    rule: R,
    /// The route that the limit is written in, or `site`.
    of: Box<str>,
    exempt: CidrSet,
    /// The clients that the table counts separately.
    clients: usize,
    table: OnceLock<Arc<LimitTable<T>>>,
}

type RateLimit = ClientLimit<(RateRule, Rate), RateTable>;
type ConcurrencyLimit = ClientLimit<ConcurrencyRule, Arc<ConcurrencyLimiter>>;

/// A table, and its reserved memory.
#[derive(Debug)]
struct LimitTable<T> {
    of: T,
    _held: Option<HeldBytes>,
}

/// A request that limits are checked for.
#[derive(Clone, Copy)]
pub(crate) struct LimitedRequest<'a> {
    pub(crate) seed: &'a HashSeed,
    pub(crate) request: &'a Request,
    pub(crate) limited_client: LimitedClient,
    pub(crate) now_ms: u64,
    /// The request as it came, by which it is counted already, if its site's VCL has changed it.
    pub(crate) came: Option<&'a Self>,
}

/// A client that limits are checked for, and its routes.
#[derive(Clone, Copy)]
pub(crate) struct LimitedClient {
    /// The client for whom the request is made.
    pub(crate) client: ConnectionPeer,
    routes: Routes,
}

impl LimitedClient {
    /// The client for whom `peer` makes the request, by the site's policy.
    pub(crate) fn of(policy: &dyn Policy, request: &Request, peer: ConnectionPeer) -> Self {
        Self::known(policy, request, policy.client(request, peer))
    }

    /// The client for whom the request is made, if it is known.
    pub(crate) fn known(policy: &dyn Policy, request: &Request, client: ConnectionPeer) -> Self {
        Self { client, routes: policy.routes(request, client) }
    }
}

/// The decision of the limits.
pub(crate) enum LimitDecision<T> {
    /// The request is permitted.
    On(T),
    /// The request is permitted, because the limit that refuses it is a dry run.
    Spared(T, Problem),
    Refused(Problem),
}

impl Throttles {
    /// The limits in a site's rules; `None` without any.
    pub fn new(rules: &SiteRules, limits: &Limits) -> Option<Arc<Self>> {
        let own = std::iter::once(("site", &rules.settings));
        let routes = rules.routes.iter().map(|route| (route.name.as_str(), &route.settings));
        let mut made: Vec<(&Settings, Throttle)> = Vec::new();
        for (name, settings) in own.chain(routes) {
            let throttle = Throttle::new(name, settings, &made, limits);
            made.push((settings, throttle));
        }
        let routes: Vec<_> = made.into_iter().map(|(_, throttle)| throttle).collect();
        let limits_any =
            |route: &Throttle| !route.rates.is_empty() || !route.concurrency.is_empty();
        routes.iter().any(limits_any).then(|| Arc::new(Self { routes }))
    }

    /// Takes over the counts of unchanged limits from sites of this name, and reserves memory for
    /// the others.
    pub(crate) fn take_over<'s>(
        &self,
        before: impl Iterator<Item = &'s Self> + Clone,
        memory: &Arc<MemoryBudget>,
    ) {
        for route in &self.routes {
            let earlier = || before.clone().flat_map(|site| &site.routes);
            for (nth, limit) in route.rates.iter().enumerate() {
                let same = earlier().filter_map(|route| route.rates.get(nth));
                limit.take_over(same, || {
                    let bytes = RateTable::bytes(limit.clients);
                    LimitTable {
                        of: RateTable::new(limit.clients),
                        _held: Some(held(memory, bytes)),
                    }
                });
            }
            for (nth, limit) in route.concurrency.iter().enumerate() {
                let same = earlier().filter_map(|route| route.concurrency.get(nth));
                limit.take_over(same, || {
                    let bytes = ConcurrencyLimiter::bytes(limit.clients);
                    LimitTable {
                        of: ConcurrencyLimiter::new(limit.clients),
                        _held: Some(held(memory, bytes)),
                    }
                });
            }
        }
    }

    /// The rates that the request is counted by, if they apply to it, and is not counted by yet.
    fn rates<'t>(
        &'t self,
        limited: &'t LimitedRequest<'_>,
    ) -> impl Iterator<Item = &'t RateLimit> + Clone {
        let is_counted = |limit: &&RateLimit| {
            limited.came.is_some_and(|came| {
                limit.is_for(came)
                    && self
                        .rates_of(came.limited_client.routes)
                        .any(|own| std::ptr::eq(own, *limit))
            })
        };
        self.rates_of(limited.limited_client.routes).filter(move |limit| !is_counted(limit))
    }

    fn rates_of(&self, routes: Routes) -> impl Iterator<Item = &RateLimit> + Clone {
        let own = self.of(routes.own);
        let also = routes.also.map(|also| self.of(also));
        let also = also.filter(|also| !Arc::ptr_eq(&also.rates, &own.rates));
        own.rates.iter().chain(also.into_iter().flat_map(|also| also.rates.iter()))
    }

    /// Limits on concurrency, as [`Throttles::rates`].
    fn concurrency<'t>(
        &'t self,
        limited: &'t LimitedRequest<'_>,
    ) -> impl Iterator<Item = &'t ConcurrencyLimit> + Clone {
        let is_counted = |limit: &&ConcurrencyLimit| {
            limited.came.is_some_and(|came| {
                let mut own = self.concurrency_of(came.limited_client.routes);
                limit.is_for(came) && own.any(|own| std::ptr::eq(own, *limit))
            })
        };
        self.concurrency_of(limited.limited_client.routes).filter(move |limit| !is_counted(limit))
    }

    fn concurrency_of(&self, routes: Routes) -> impl Iterator<Item = &ConcurrencyLimit> + Clone {
        let own = self.of(routes.own);
        let also = routes.also.map(|also| self.of(also));
        let also = also.filter(|also| !Arc::ptr_eq(&also.concurrency, &own.concurrency));
        own.concurrency.iter().chain(also.into_iter().flat_map(|also| also.concurrency.iter()))
    }

    fn of(&self, route: u32) -> &Throttle {
        // A route of another configuration would be a bug; it gets the site's limits.
        self.routes.get(route as usize).unwrap_or(&self.routes[0])
    }

    /// Counts a request by all its rates, or by none if one refuses it. Returns the delay of the
    /// request.
    pub(crate) fn admit_by_rate(
        &self,
        limited: &LimitedRequest<'_>,
        counters: &Counters,
    ) -> LimitDecision<Option<Duration>> {
        let rates = || self.rates(limited).filter(|limit| limit.is_for(limited));
        // With several rates, one may refuse what others have counted.
        if rates().nth(1).is_some() {
            let real = rates().filter(|limit| !limit.rule.0.terms.dry_run);
            for limit in real {
                if let (Admission::Refused(after), _) = limit.foresee(limited) {
                    return LimitDecision::Refused(limit.refuse(limited, counters, after));
                }
            }
        }
        let (mut wait, mut spared) = (None, None);
        for limit in rates() {
            let is_dry = limit.rule.0.terms.dry_run;
            match limit.admit(limited, counters) {
                Admission::Now => {}
                Admission::Later(_) if is_dry => {}
                Admission::Later(turn) => wait = wait.max(Some(turn)),
                Admission::Refused(after) if is_dry => {
                    counters.inc(Counter::LimitsDryRun);
                    spared = Some(limit.problem(after));
                }
                Admission::Refused(after) => {
                    return LimitDecision::Refused(limit.refuse(limited, counters, after));
                }
            }
        }
        if wait.is_some() {
            counters.inc(Counter::RateQueued);
        }
        match spared {
            Some(problem) => LimitDecision::Spared(wait, problem),
            None => LimitDecision::On(wait),
        }
    }

    /// Counts a request as in progress while the returned permit lives.
    pub(crate) fn admit_by_concurrency(
        &self,
        limited: &LimitedRequest<'_>,
        counters: &Counters,
    ) -> LimitDecision<Option<ConcurrencyPermit>> {
        let (mut permit, mut spared) = (None, None);
        for limit in self.concurrency(limited).filter(|limit| limit.is_for(limited)) {
            match limit.table().acquire(limit.mark(limited), limit.rule.requests) {
                Some(own) => permit = Some(own.with(permit)),
                None => {
                    let problem = limit.problem();
                    if !limit.rule.terms.dry_run {
                        counters.inc(Counter::ConcurrencyRefused);
                        return LimitDecision::Refused(problem);
                    }
                    counters.inc(Counter::LimitsDryRun);
                    spared = Some(problem);
                }
            }
        }
        match spared {
            Some(problem) => LimitDecision::Spared(permit, problem),
            None => LimitDecision::On(permit),
        }
    }

    /// Forecasts the decision of each limit without counting, and the refusal, if any.
    pub(crate) fn foretell(
        &self,
        limited: &LimitedRequest<'_>,
    ) -> (Vec<DecisionStep>, Option<Problem>) {
        let rates = self.rates(limited).map(|limit| limit.foretell(limited));
        let concurrency = self.concurrency(limited).map(|limit| limit.foretell(limited));
        let (steps, refusals): (Vec<_>, Vec<_>) = rates.chain(concurrency).unzip();
        (steps, refusals.into_iter().flatten().next())
    }
}

/// Reserves memory for tables of clients.
fn held(memory: &Arc<MemoryBudget>, bytes: u64) -> HeldBytes {
    Account::open(memory, u64::MAX).hold_anyway(bytes)
}

impl Throttle {
    /// The limits of the route `name`; inherited limits are looked up in `made`.
    fn new(name: &str, settings: &Settings, made: &[(&Settings, Self)], limits: &Limits) -> Self {
        let clients = |terms: &Terms| match terms.per {
            LimitKey::Site => 1,
            _ => usize::try_from(limits.limited_clients).unwrap_or(usize::MAX).clamp(1, 1 << 24),
        };
        let rates = settings.rate.as_ref().map(|rules| {
            let is_same = |(other, _): &&(&Settings, Self)| {
                other.rate.as_ref().is_some_and(|other| Arc::ptr_eq(other, rules))
            };
            match made.iter().find(is_same) {
                Some((_, throttle)) => Arc::clone(&throttle.rates),
                None => rules
                    .iter()
                    .map(|rule| {
                        let rate = rule.rate().with_wait_ms(limits.rate_wait);
                        ClientLimit::new(
                            (rule.clone(), rate),
                            name,
                            &rule.terms,
                            clients(&rule.terms),
                        )
                    })
                    .collect(),
            }
        });
        let concurrency = settings.concurrent.as_ref().map(|rules| {
            let is_same = |(other, _): &&(&Settings, Self)| {
                other.concurrent.as_ref().is_some_and(|other| Arc::ptr_eq(other, rules))
            };
            match made.iter().find(is_same) {
                Some((_, throttle)) => Arc::clone(&throttle.concurrency),
                None => rules
                    .iter()
                    .map(|rule| {
                        ClientLimit::new(rule.clone(), name, &rule.terms, clients(&rule.terms))
                    })
                    .collect(),
            }
        });
        Self { rates: rates.unwrap_or_default(), concurrency: concurrency.unwrap_or_default() }
    }
}

/// A rule with its terms.
trait LimitRule {
    fn terms(&self) -> &Terms;
}

impl LimitRule for (RateRule, Rate) {
    fn terms(&self) -> &Terms {
        &self.0.terms
    }
}

impl LimitRule for ConcurrencyRule {
    fn terms(&self) -> &Terms {
        &self.terms
    }
}

impl<R: LimitRule + PartialEq, T> ClientLimit<R, T> {
    fn new(rule: R, of: &str, terms: &Terms, clients: usize) -> Self {
        let exempt = terms.exempted();
        Self { rule, of: of.into(), exempt, clients, table: OnceLock::new() }
    }

    fn is_for(&self, limited: &LimitedRequest<'_>) -> bool {
        self.exception(limited).is_none()
    }

    /// The reason for which the limit does not apply to the request.
    fn exception(&self, limited: &LimitedRequest<'_>) -> Option<&'static str> {
        if !self.rule.terms().are_for(limited.request.path()) {
            return Some("not for this path");
        }
        self.exempt.has(limited.limited_client.client).then_some("this client is exempt")
    }

    fn mark(&self, limited: &LimitedRequest<'_>) -> u64 {
        self.rule.terms().per.mark(limited.seed, limited.request, limited.limited_client.client)
    }

    /// Takes the table of the `same` limit or makes one, unless there is a table.
    fn take_over<'s>(
        &'s self,
        mut same: impl Iterator<Item = &'s Self>,
        new: impl FnOnce() -> LimitTable<T>,
    ) {
        self.table.get_or_init(|| {
            let is_same = |other: &&Self| {
                (&other.of, other.clients) == (&self.of, self.clients) && other.rule == self.rule
            };
            let table = same.find(|other| is_same(other) && other.table.get().is_some());
            table.and_then(|other| other.table.get().cloned()).unwrap_or_else(|| Arc::new(new()))
        });
    }
}

impl RateLimit {
    fn table(&self) -> &RateTable {
        let new = || Arc::new(LimitTable { of: RateTable::new(self.clients), _held: None });
        &self.table.get_or_init(new).of
    }

    /// The rate for the request. Behind `vcl_recv` nothing waits.
    fn rate(&self, limited: &LimitedRequest<'_>) -> Rate {
        let (_, rate) = self.rule;
        if limited.came.is_some() { rate.without_queue() } else { rate }
    }

    fn admit(&self, limited: &LimitedRequest<'_>, counters: &Counters) -> Admission {
        let rate = self.rate(limited);
        let admitted = self.table().admit(&rate, self.mark(limited), limited.now_ms);
        if admitted.displaced {
            counters.limit(Limit::LimitedClients);
        }
        admitted.admission
    }

    fn foresee(&self, limited: &LimitedRequest<'_>) -> (Admission, RemainingQuota) {
        self.table().foresee(&self.rate(limited), self.mark(limited), limited.now_ms)
    }

    fn foretell(&self, limited: &LimitedRequest<'_>) -> (DecisionStep, Option<Problem>) {
        let (rule, _) = &self.rule;
        let why = format!("{} per {}", rule.told(), rule.terms.per.told());
        let step = DecisionStep::new("rate", why).fact("of", self.of.to_string());
        if let Some(why) = self.exception(limited) {
            return (step.fact("does not count", why), None);
        }
        let (said, RemainingQuota { at_once, waiting }) = self.foresee(limited);
        let step = step.fact(
            "left",
            match waiting {
                0 => format!("{at_once} at once"),
                _ => format!("{at_once} at once, {waiting} more would wait"),
            },
        );
        match said {
            Admission::Now => (step, None),
            Admission::Later(turn) => {
                (step.fact("would wait", format!("{} ms", turn.as_millis())), None)
            }
            Admission::Refused(_) if rule.terms.dry_run => {
                (step.fact("would be refused", "but for `dry_run`"), None)
            }
            Admission::Refused(after) => {
                let advice = "Nothing, if it is to be slowed down. Otherwise a higher `rate` or a \
                              larger `burst`, or `exempt` for its network.";
                (step.decisive().advise(advice), Some(self.problem(after)))
            }
        }
    }

    /// Counts a refusal.
    fn refuse(
        &self,
        limited: &LimitedRequest<'_>,
        counters: &Counters,
        after: Duration,
    ) -> Problem {
        counters.inc(Counter::RateLimited);
        let (rule, rate) = &self.rule;
        if limited.came.is_none() && *rate != rule.rate() {
            // Without the limit more requests would wait.
            counters.limit(Limit::RateWait);
        }
        self.problem(after)
    }

    fn problem(&self, after: Duration) -> Problem {
        let after_s = after.as_secs() + u64::from(after.subsec_nanos() > 0);
        Problem::TooOften { status: status(&self.rule.0.terms), after_s: after_s.max(1) }
    }
}

impl ConcurrencyLimit {
    fn table(&self) -> &Arc<ConcurrencyLimiter> {
        let new =
            || Arc::new(LimitTable { of: ConcurrencyLimiter::new(self.clients), _held: None });
        &self.table.get_or_init(new).of
    }

    fn foretell(&self, limited: &LimitedRequest<'_>) -> (DecisionStep, Option<Problem>) {
        let ConcurrencyRule { requests, terms } = &self.rule;
        let why = format!("{requests} at once per {}", terms.per.told());
        let step = DecisionStep::new("concurrent", why).fact("of", self.of.to_string());
        if let Some(why) = self.exception(limited) {
            return (step.fact("does not count", why), None);
        }
        let under_way = self.table().under_way(self.mark(limited));
        let step = step.fact("under way", under_way.to_string());
        match under_way >= u64::from(*requests) && !terms.dry_run {
            true => {
                let advice = "Nothing, if it is to wait for its own. Otherwise more `requests` in \
                              `concurrent`, or `exempt` for its network.";
                (step.decisive().advise(advice), Some(self.problem()))
            }
            false => (step, None),
        }
    }

    fn problem(&self) -> Problem {
        Problem::TooManyAtOnce { status: status(&self.rule.terms) }
    }
}

/// 429 (RFC 6585 4), or the configured status.
fn status(terms: &Terms) -> Status {
    terms.status.or_else(|| Status::new(429)).unwrap_or(Status::OK)
}
