//! Gates: the authentication checks of a site and of its routes, as configured.

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

/// Slots of the client counter for each password that may wait. Two clients share a slot only if a
/// few are all taken.
const PLACES_EACH: usize = 8;

/// The authentication checks of a site and of its routes.
#[derive(Debug)]
pub struct SiteAuthChecks {
    /// The site's checks, then those of each route in order.
    routes: Vec<RouteAuthChecks>,
    /// The permits to check passwords, and the requests that wait for one.
    pub(crate) queue: Arc<Queue>,
    pub(crate) bounds: QueueBounds,
    /// The number of passwords being checked for each client.
    pub(crate) clients: Arc<ConcurrencyLimiter>,
    /// Passwords of one client that are checked at once.
    pub(crate) each: u32,
    /// Passwords being checked, by digests of credentials: a browser sends its password many times
    /// at once, and to several cores.
    under_way: Mutex<HashMap<[u8; 32], Weak<OnceCell<bool>>>>,
    /// Milliseconds for which a password is cached.
    pub(crate) keep_ms: u64,
}

/// The authentication checks of one route.
#[derive(Clone, Debug, Default)]
pub(crate) struct RouteAuthChecks {
    pub(crate) password: Option<Arc<BasicAuthCheck>>,
    pub(crate) forward_auth: Option<Arc<ForwardAuthCheck>>,
}

#[derive(Debug)]
pub(crate) struct BasicAuthCheck {
    pub(crate) rule: Arc<BasicAuth>,
    pub(crate) users: Arc<Users>,
    /// The origin gets the user's name, so its responses are personal.
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

/// The client of a request, as the site's policy determines it.
#[derive(Clone, Copy)]
pub(crate) struct ClientIdentity {
    /// The client for whom the request is made.
    pub(crate) who: ConnectionPeer,
    /// The client's scheme.
    pub(crate) scheme: Scheme,
}

impl ClientIdentity {
    /// The client of `request`, which `peer` sends, by its site's policy.
    pub(crate) fn of(policy: &dyn Policy, request: &Request, peer: ConnectionPeer) -> Self {
        Self { who: policy.client(request, peer), scheme: policy.scheme(request, peer) }
    }
}

impl RouteAuthChecks {
    /// The fields that pass the user to the origin.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &FieldName> {
        let user = self.password.iter().filter_map(|gate| gate.rule.user_field.as_ref());
        user.chain(self.forward_auth.iter().flat_map(|gate| &gate.rule.copy))
    }

    /// Returns true if a field for the origin makes its responses personal.
    pub(crate) fn is_personal(&self) -> bool {
        self.password.as_ref().is_some_and(|gate| gate.is_personal)
            || self.forward_auth.as_ref().is_some_and(|gate| gate.is_personal)
    }
}

impl SiteAuthChecks {
    /// The checks in the rules of `site`; `None` without any. `users` finds the users of a file;
    /// `origins` are those of the configuration.
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
            forward_auth: settings.forward_auth.as_ref().and_then(|rule| {
                let is_personal = rule.copy.iter().any(|field| !is_in_key(settings, field));
                let origin = Arc::clone(origins.get(rule.origin)?);
                // The rule contains only a number, which may mean another server after a reload.
                let (servers, text) = (origin.servers(), format!("{rule:?}"));
                let names = servers.iter().map(|server| server.name.as_bytes());
                let parts = [site.as_bytes(), text.as_bytes(), origin.name().as_bytes()];
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
        let is_any =
            routes.iter().any(|gate| gate.password.is_some() || gate.forward_auth.is_some());
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

    /// The checks for a request: those of its route, and of another route that the origin may
    /// select.
    pub(crate) fn of(&self, routes: Routes) -> impl Iterator<Item = &RouteAuthChecks> {
        let of = |route: u32| self.routes.get(route as usize).unwrap_or(&self.routes[0]);
        std::iter::once(of(routes.own)).chain(routes.also.map(of))
    }

    /// The shared verdict on credentials, by their digest; empty until a check completes.
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

    /// Returns true if a gate sets the field `name` for origins.
    pub(crate) fn reads_field(&self, name: &[u8]) -> bool {
        self.routes.iter().flat_map(RouteAuthChecks::fields).any(|field| field.is_spelt(name))
    }

    /// Forecasts the checks of a request with these routes.
    pub(crate) fn foretell(&self, routes: Routes) -> Vec<DecisionStep> {
        let mut steps = Vec::new();
        for gate in self.of(routes) {
            if let Some(gate) = &gate.password {
                let why = "a password is asked for first, and without one the answer is 401; what \
                           follows is for who has shown one";
                let step = DecisionStep::new("basic_auth", why);
                let users = gate.users.len().to_string();
                let step = step.fact("users", users);
                steps.push(step.fact("file", gate.rule.file.display().to_string()));
            }
            if let Some(gate) = &gate.forward_auth {
                let why =
                    "another server is asked first; the next steps are for clients that it admits";
                let step = DecisionStep::new("forward_auth", why)
                    .fact("origin", gate.origin.name().to_string());
                steps.push(step.fact("path", gate.rule.shown_path()));
            }
        }
        steps
    }
}

/// A share in the verdict on a password, which is dropped with the last share.
pub(crate) struct PasswordVerdict {
    gates: Arc<SiteAuthChecks>,
    digest: [u8; 32],
    pub(crate) cell: Option<Arc<OnceCell<bool>>>,
}

impl Drop for PasswordVerdict {
    fn drop(&mut self) {
        let mut under_way = self.gates.under_way.lock();
        // Under the lock, so that of two shares the later one is the last.
        self.cell = None;
        if under_way.get(&self.digest).is_some_and(|verdict| verdict.strong_count() == 0) {
            under_way.remove(&self.digest);
        }
    }
}

/// Returns true if `field` distinguishes stored responses.
fn is_in_key(settings: &Settings, field: &FieldName) -> bool {
    settings.key_headers.iter().any(|key| key.as_bytes().eq_ignore_ascii_case(field.as_bytes()))
}

/// A digest of `parts` that no other parts have.
pub(crate) fn digest_of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> [u8; 32] {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    digest.finalize().into()
}
