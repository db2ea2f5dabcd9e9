//! The gates of a site and of its routes, as the configuration has them.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use base::Limits;
use base::rate::ConcurrencyLimiter;
use message::{Request, Scheme};
use origin::Origin;
use parking_lot::Mutex;
use policy::headers::FieldName;
use policy::rules::Settings;
use policy::{
    BasicAuth, ConnectionPeer, DecisionStep, ForwardAuth, Policy, Routes, SiteRules, Users,
};
use sha2::{Digest as _, Sha256};
use tokio::sync::OnceCell;

use super::queue::{Queue, QueueBounds};

/// Places in the count of clients for each that may wait: a client shares its place with another
/// where all of a few are taken.
const PLACES_EACH: usize = 8;

/// The gates of a site and of its routes.
#[derive(Debug)]
pub struct SiteAuthChecks {
    /// Those of the site, then those of its routes in their order.
    routes: Vec<RouteAuthChecks>,
    /// The places of passwords that are checked at once, and those who wait for one.
    pub(crate) queue: Arc<Queue>,
    pub(crate) bounds: QueueBounds,
    /// The number of passwords of each client that are checked at present.
    pub(crate) clients: Arc<ConcurrencyLimiter>,
    /// Passwords of one client that are checked at once.
    pub(crate) each: u32,
    /// Those that are checked at present, by digests of what was shown: a browser shows its
    /// password many times at once, and to several cores.
    under_way: Mutex<HashMap<[u8; 32], Weak<OnceCell<bool>>>>,
    /// Milliseconds for which a password is remembered.
    pub(crate) keep_ms: u64,
}

/// The gates of one route.
#[derive(Clone, Debug, Default)]
pub(crate) struct RouteAuthChecks {
    pub(crate) password: Option<Arc<BasicAuthCheck>>,
    pub(crate) word: Option<Arc<ForwardAuthCheck>>,
}

#[derive(Debug)]
pub(crate) struct BasicAuthCheck {
    pub(crate) rule: Arc<BasicAuth>,
    pub(crate) users: Arc<Users>,
    /// The origin is told the user, and its responses are one user's own.
    pub(crate) is_personal: bool,
}

#[derive(Debug)]
pub(crate) struct ForwardAuthCheck {
    pub(crate) rule: Arc<ForwardAuth>,
    pub(crate) origin: Arc<Origin>,
    /// A digest of the rule, with its server and the name of its site.
    pub(crate) digest: [u8; 32],
    pub(crate) is_personal: bool,
}

/// The client of a request, as its site's policy names it.
#[derive(Clone, Copy)]
pub(crate) struct ClientIdentity {
    /// On whose behalf the request is made.
    pub(crate) who: ConnectionPeer,
    /// The scheme by which it is.
    pub(crate) scheme: Scheme,
}

impl ClientIdentity {
    /// The client of `request`, which `peer` makes, by its site's policy.
    pub(crate) fn of(policy: &dyn Policy, request: &Request, peer: ConnectionPeer) -> Self {
        Self { who: policy.client(request, peer), scheme: policy.scheme(request, peer) }
    }
}

impl RouteAuthChecks {
    /// The fields in which the origin is told of the user.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &FieldName> {
        let user = self.password.iter().filter_map(|gate| gate.rule.user_field.as_ref());
        user.chain(self.word.iter().flat_map(|gate| &gate.rule.copy))
    }

    /// Returns true if what the origin is told makes its responses one user's own.
    pub(crate) fn is_personal(&self) -> bool {
        self.password.as_ref().is_some_and(|gate| gate.is_personal)
            || self.word.as_ref().is_some_and(|gate| gate.is_personal)
    }
}

impl SiteAuthChecks {
    /// The gates of the site with these rules, whose name is `site`; `None` if it has none. `users`
    /// finds the users of a file, `origins` are all there are.
    pub fn new(
        rules: &SiteRules,
        site: &str,
        users: impl Fn(&Path) -> Option<Arc<Users>>,
        origins: &[Arc<Origin>],
        limits: &Limits,
    ) -> Option<Arc<Self>> {
        let gate = |settings: &Settings| RouteAuthChecks {
            password: settings.basic_auth.as_ref().map(|rule| {
                let is_told = rule.user_field.as_ref();
                let is_personal = is_told.is_some_and(|field| !is_in_key(settings, field));
                let users = users(&rule.file).unwrap_or_else(|| Arc::new(Users::nobody()));
                Arc::new(BasicAuthCheck { rule: Arc::clone(rule), users, is_personal })
            }),
            word: settings.forward_auth.as_ref().and_then(|rule| {
                let is_personal = rule.copy.iter().any(|field| !is_in_key(settings, field));
                let origin = Arc::clone(origins.get(rule.origin)?);
                // The rule has only its number, which may be another server's after a reload.
                let (servers, told) = (origin.servers(), format!("{rule:?}"));
                let names = servers.iter().map(|server| server.name.as_bytes());
                let parts = [site.as_bytes(), told.as_bytes(), origin.name().as_bytes()];
                let digest = digest_of(parts.into_iter().chain(names));
                Some(Arc::new(ForwardAuthCheck {
                    rule: Arc::clone(rule),
                    origin,
                    digest,
                    is_personal,
                }))
            }),
        };
        let routes = rules.routes.iter().map(|route| &route.settings);
        let routes: Vec<_> = std::iter::once(&rules.settings).chain(routes).map(gate).collect();
        let is_any = routes.iter().any(|gate| gate.password.is_some() || gate.word.is_some());
        is_any.then(|| {
            let size = |limit: u64| usize::try_from(limit).unwrap_or(usize::MAX);
            let (places, most) = (size(limits.password_checks), size(limits.password_queue));
            let clients = most.saturating_add(places).clamp(128, 1 << 16) * PLACES_EACH;
            Arc::new(Self {
                routes,
                queue: Queue::new(places),
                bounds: QueueBounds { most, wait: Duration::from_millis(limits.password_wait) },
                clients: ConcurrencyLimiter::new(clients),
                each: u32::try_from(limits.password_checks_client).unwrap_or(u32::MAX).max(1),
                under_way: Mutex::default(),
                keep_ms: limits.password_keep,
            })
        })
    }

    /// The gates that a request passes: those of its route, and of another one that an origin may
    /// take it for.
    pub(crate) fn of(&self, routes: Routes) -> impl Iterator<Item = &RouteAuthChecks> {
        let of = |route: u32| self.routes.get(route as usize).unwrap_or(&self.routes[0]);
        std::iter::once(of(routes.own)).chain(routes.also.map(of))
    }

    /// The verdict on a password by the digest of what was shown, empty until somebody has found
    /// out; all who show the same meanwhile have the same one.
    pub(crate) fn verdict(self: &Arc<Self>, digest: [u8; 32]) -> PasswordVerdict {
        let mut under_way = self.under_way.lock();
        let known = under_way.get(&digest).and_then(Weak::upgrade);
        let cell = known.unwrap_or_else(|| {
            let cell = Arc::default();
            under_way.insert(digest, Arc::downgrade(&cell));
            cell
        });
        drop(under_way);
        PasswordVerdict { gates: Arc::clone(self), digest, cell: Some(cell) }
    }

    /// Returns true if a gate tells origins something in a field called `name`.
    pub(crate) fn speak_in(&self, name: &[u8]) -> bool {
        self.routes.iter().flat_map(RouteAuthChecks::fields).any(|field| field.is_spelt(name))
    }

    /// Tells what the gates of a request are, for a forecast.
    pub(crate) fn foretell(&self, policy: &dyn Policy, request: &Request) -> Vec<DecisionStep> {
        let mut steps = Vec::new();
        for gate in self.of(policy.routes(request)) {
            if let Some(gate) = &gate.password {
                let why = "a password is asked for first, and without one the answer is 401; what \
                           follows is for who has shown one";
                let step = DecisionStep::new("basic_auth", why);
                let users = gate.users.len().to_string();
                let step = step.fact("users", users);
                steps.push(step.fact("file", gate.rule.file.display().to_string()));
            }
            if let Some(gate) = &gate.word {
                let why = "another server is asked first, and what follows is for whom it lets in";
                let step = DecisionStep::new("forward_auth", why)
                    .fact("origin", gate.origin.name().to_string());
                steps.push(step.fact("path", gate.rule.shown_path()));
            }
        }
        steps
    }
}

/// A share in a verdict on a password. It is forgotten with the last one.
pub(crate) struct PasswordVerdict {
    gates: Arc<SiteAuthChecks>,
    digest: [u8; 32],
    pub(crate) cell: Option<Arc<OnceCell<bool>>>,
}

impl Drop for PasswordVerdict {
    fn drop(&mut self) {
        let mut under_way = self.gates.under_way.lock();
        // Behind the lock, so that of two the later one is the last.
        self.cell = None;
        if under_way.get(&self.digest).is_some_and(|verdict| verdict.strong_count() == 0) {
            under_way.remove(&self.digest);
        }
    }
}

/// Returns true if the values of `field` tell stored responses apart.
fn is_in_key(settings: &Settings, field: &FieldName) -> bool {
    settings.key_headers.iter().any(|key| key.as_bytes().eq_ignore_ascii_case(field.as_bytes()))
}

/// A digest of `parts`, which no other parts have.
pub(crate) fn digest_of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> [u8; 32] {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    digest.finalize().into()
}
