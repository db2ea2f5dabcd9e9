//! The gates of a site: who may enter, by a password or by another server's word. Requests pass
//! them behind the site's limits and before its policy or its program, under both alike.
//!
//! Each core remembers for itself what a gate has found out, so that a hit stays one: it costs a
//! digest and a look into a table. Otherwise the request waits, and enters the site from there. A
//! gate that cannot find out lets nobody in. A fragment of a page comes in with its page, if that
//! has passed the same gates. What a gate tells the origin of a client takes the place of what the
//! client says itself.

mod check;
mod known;
mod passed;
mod queue;
mod right;
mod visitor;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use base::rate::Crowd;
use base::{Counter, Limits, Now};
use message::{HeaderId, Request, Scheme};
use origin::Origin;
use parking_lot::Mutex;
use policy::headers::FieldName;
use policy::rules::Settings;
use policy::users::basic_credentials;
use policy::{BasicAuth, Declared, ForwardAuth, Peer, SiteRules, Step, Users};
use sha2::{Digest as _, Sha256};
use tokio::sync::OnceCell;

use crate::core::Core;
use crate::guard::refusal;
use crate::live::Site;
use crate::problem::Problem;
use crate::reply::{Head, Reply};
use crate::trace::User;

use self::queue::Queue;

pub(crate) use self::check::Check;
pub(crate) use self::known::{Admitted, Known, Proof};
pub(crate) use self::passed::{inherit, leave_behind, may_include};
pub(crate) use self::right::RightPasswords;
pub(crate) use self::visitor::Visitor;

/// Places in the count of clients for each that may wait: a client shares its place with another
/// where all of a few are taken.
const PLACES_EACH: usize = 8;

/// The gates of a site and of its routes.
#[derive(Debug)]
pub struct Gates {
    /// Those of the site, then those of its routes in their order.
    routes: Vec<RouteGates>,
    /// The places of passwords that are checked at once, and those who wait for one.
    queue: Arc<Queue>,
    /// Bounds of the wait: who may wait, and for how long.
    patience: (usize, Duration),
    /// The number of passwords of each client that are checked at present.
    clients: Arc<Crowd>,
    /// Passwords of one client that are checked at once.
    each: u32,
    /// Those that are checked at present, by digests of what was shown: a browser shows its
    /// password many times at once, and to several cores.
    under_way: Mutex<HashMap<[u8; 32], Weak<OnceCell<bool>>>>,
    /// Milliseconds for which a password is remembered.
    keep_ms: u64,
}

/// The gates of one route.
#[derive(Clone, Debug, Default)]
struct RouteGates {
    password: Option<Arc<PasswordGate>>,
    word: Option<Arc<WordGate>>,
}

#[derive(Debug)]
pub(crate) struct PasswordGate {
    rule: Arc<BasicAuth>,
    users: Arc<Users>,
    /// The origin is told the user, and its responses are one user's own.
    is_personal: bool,
}

#[derive(Debug)]
pub(crate) struct WordGate {
    rule: Arc<ForwardAuth>,
    origin: Arc<Origin>,
    /// A digest of the rule, with its server and the name of its site.
    digest: [u8; 32],
    is_personal: bool,
}

/// The client of a request, as its site's policy names it.
#[derive(Clone, Copy)]
pub(crate) struct Guest {
    /// On whose behalf the request is made.
    pub(crate) who: Peer,
    /// The scheme by which it is.
    pub(crate) scheme: Scheme,
}

impl Guest {
    /// The client of `request`, which `peer` makes for `site`.
    pub(crate) fn of(site: &Site, request: &Request, peer: Peer) -> Self {
        let who = site.policy.client(request, peer);
        Self { who, scheme: site.policy.scheme(request, peer) }
    }
}

/// The gates' verdict on a request.
pub(crate) enum Looked {
    /// It may enter, so.
    In(Entering),
    Refused(Box<Reply>),
    /// It is not known yet.
    Waits(Box<Check>),
}

/// The way in which a request enters a site.
#[derive(Debug, Default)]
pub(crate) struct Entering {
    /// The user, by the name that the password was shown for.
    pub(crate) user: Option<Arc<User>>,
    /// Its responses are for one user alone.
    pub(crate) is_personal: bool,
    /// The password stays here.
    keeps_password: bool,
    /// Fields that are the gates' to say.
    own: Vec<FieldName>,
    /// Their values, in the order of the gates.
    told: Vec<(FieldName, Box<[u8]>)>,
}

impl RouteGates {
    /// The fields in which the origin is told of the user.
    fn fields(&self) -> impl Iterator<Item = &FieldName> {
        let user = self.password.iter().filter_map(|gate| gate.rule.user_field.as_ref());
        user.chain(self.word.iter().flat_map(|gate| &gate.rule.copy))
    }

    /// Returns true if what the origin is told makes its responses one user's own.
    fn is_personal(&self) -> bool {
        self.password.as_ref().is_some_and(|gate| gate.is_personal)
            || self.word.as_ref().is_some_and(|gate| gate.is_personal)
    }
}

impl Gates {
    /// The gates of a site with these rules, and by this name; `None` if it has none. `users` finds
    /// the users of a file, `origins` are all there are.
    pub fn new(
        (rules, site): (&SiteRules, &str),
        users: impl Fn(&Path) -> Option<Arc<Users>>,
        origins: &[Arc<Origin>],
        limits: &Limits,
    ) -> Option<Arc<Self>> {
        let gate = |settings: &Settings| RouteGates {
            password: settings.basic_auth.as_ref().map(|rule| {
                let is_told = rule.user_field.as_ref();
                let is_personal = is_told.is_some_and(|field| !is_in_key(settings, field));
                let users = users(&rule.file).unwrap_or_else(|| Arc::new(Users::nobody()));
                Arc::new(PasswordGate { rule: Arc::clone(rule), users, is_personal })
            }),
            word: settings.forward_auth.as_ref().and_then(|rule| {
                let is_personal = rule.copy.iter().any(|field| !is_in_key(settings, field));
                let origin = Arc::clone(origins.get(rule.origin)?);
                // The rule has only its number, which may be another server's after a reload.
                let (servers, told) = (origin.servers(), format!("{rule:?}"));
                let names = servers.iter().map(|server| server.name.as_bytes());
                let parts = [site.as_bytes(), told.as_bytes(), origin.name().as_bytes()];
                let digest = digest_of(parts.into_iter().chain(names));
                Some(Arc::new(WordGate { rule: Arc::clone(rule), origin, digest, is_personal }))
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
                patience: (most, Duration::from_millis(limits.password_wait)),
                clients: Crowd::new(clients),
                each: u32::try_from(limits.password_checks_client).unwrap_or(u32::MAX).max(1),
                under_way: Mutex::default(),
                keep_ms: limits.password_keep,
            })
        })
    }

    /// The gates that a request passes: those of its route, and of another one that an origin may
    /// take it for.
    fn of(&self, (route, also): (u32, Option<u32>)) -> impl Iterator<Item = &RouteGates> {
        let of = |route: u32| self.routes.get(route as usize).unwrap_or(&self.routes[0]);
        std::iter::once(of(route)).chain(also.map(of))
    }

    /// The verdict on a password by the digest of what was shown, empty until somebody has found
    /// out; all who show the same meanwhile have the same one.
    fn verdict(self: &Arc<Self>, digest: [u8; 32]) -> PasswordVerdict {
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
        self.routes.iter().flat_map(RouteGates::fields).any(|field| field.is_spelt(name))
    }

    /// Tells what the gates of a request are, for a forecast.
    pub(crate) fn foretell(&self, site: &Site, request: &Request) -> Vec<Step> {
        let mut steps = Vec::new();
        for gate in self.of(site.policy.routes(request)) {
            if let Some(gate) = &gate.password {
                let why = "a password is asked for first, and without one the answer is 401; what \
                           follows is for who has shown one";
                let step = Step::new("basic_auth", why);
                let users = gate.users.len().to_string();
                let step = step.fact("users", users);
                steps.push(step.fact("file", gate.rule.file.display().to_string()));
            }
            if let Some(gate) = &gate.word {
                let why = "another server is asked first, and what follows is for whom it lets in";
                let step =
                    Step::new("forward_auth", why).fact("origin", gate.origin.name().to_string());
                steps.push(step.fact("path", gate.rule.shown_path()));
            }
        }
        steps
    }
}

/// A share in a verdict on a password. It is forgotten with the last one.
struct PasswordVerdict {
    gates: Arc<Gates>,
    digest: [u8; 32],
    cell: Option<Arc<OnceCell<bool>>>,
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
fn digest_of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> [u8; 32] {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    digest.finalize().into()
}

impl Core {
    /// Looks at the gates before `site` for a request of `guest`. What `proofs` say is known, too.
    pub(crate) fn look(
        &self,
        (gates, site): (&Gates, &Site),
        request: &Request,
        guest: Guest,
        (proofs, now): (&[Proof], Now),
    ) -> Looked {
        let mut entering = Entering::default();
        let known = |digest: &[u8; 32]| {
            let proof = proofs.iter().find(|proof| proof.digest == *digest);
            let proven = proof.map(|proof| proof.entered.clone());
            proven.or_else(|| self.known.borrow().get(digest, now.mono_ms).cloned())
        };
        let routes = site.policy.routes(request);
        let mut is_any = false;
        for gate in gates.of(routes) {
            is_any |= gate.password.is_some() || gate.word.is_some();
            if let Some(gate) = &gate.password {
                match gate.look(request, known) {
                    Ok(entered) => gate.let_in(entered, &mut entering),
                    Err(Some(check)) => match self.learn(&check, now) {
                        Some(entered) => gate.let_in(entered, &mut entering),
                        None => return Looked::Waits(Box::new(check)),
                    },
                    Err(None) => {
                        let reply = self.ask_for_password(site, request, gate);
                        return Looked::Refused(Box::new(reply));
                    }
                }
            }
            if let Some(gate) = &gate.word {
                let digest = gate.digest_of(request, guest);
                match known(&digest) {
                    Some(entered) => gate.let_in(entered, &mut entering),
                    None => {
                        let keeps_password = entering.keeps_password;
                        let gate = Arc::clone(gate);
                        return Looked::Waits(Box::new(Check::Word {
                            gate,
                            digest,
                            keeps_password,
                        }));
                    }
                }
            }
        }
        // The key is that of one route, and may lack what the other's gates tell.
        entering.is_personal |= routes.1.is_some() && !entering.own.is_empty();
        if is_any && proofs.is_empty() {
            self.counters.inc(Counter::GateRemembered);
        }
        Looked::In(entering)
    }

    /// The user whose password another core has checked; this one remembers it, too.
    fn learn(&self, check: &Check, now: Now) -> Option<Admitted> {
        let Check::Password { digest, .. } = check else { return None };
        let (user, until_ms) = self.shared.right.entered(digest, now.mono_ms)?;
        let entered = Admitted { user: Some(user), ..Admitted::default() };
        self.remember((*digest, &entered), (now.mono_ms, until_ms), &self.live().limits);
        Some(entered)
    }

    /// The answer to who has shown no password, or a wrong one.
    fn ask_for_password(&self, site: &Site, request: &Request, gate: &PasswordGate) -> Reply {
        self.counters.inc(Counter::GateRefused);
        let mut reply = refusal(site, request, Problem::PasswordNeeded, Declared::BASIC_AUTH);
        if let Head::Owned(head) = &mut reply.head {
            let challenge = format!("Basic realm=\"{}\", charset=\"UTF-8\"", gate.rule.realm);
            head.headers.push(HeaderId::WwwAuthenticate, challenge.as_bytes());
        }
        reply
    }
}

impl PasswordGate {
    /// Tells what is known of who shows a password; otherwise how that is found out, if one is
    /// shown.
    fn look(
        self: &Arc<Self>,
        request: &Request,
        known: impl Fn(&[u8; 32]) -> Option<Admitted>,
    ) -> Result<Admitted, Option<Check>> {
        let mut values = request.headers.values(HeaderId::Authorization);
        let (Some(shown), None) = (values.next(), values.next()) else { return Err(None) };
        let digest = digest_of([&self.users.digest()[..], shown]);
        if let Some(entered) = known(&digest) {
            return Ok(entered);
        }
        let Some((user, password)) = basic_credentials(shown) else { return Err(None) };
        let gate = Arc::clone(self);
        Err(Some(Check::Password { gate, digest, user, password }))
    }

    fn let_in(&self, entered: Admitted, entering: &mut Entering) {
        if let Some(field) = &self.rule.user_field {
            let user = entered.user.as_ref().map_or("", |user| &user.0);
            entering.add(field, [user.as_bytes()]);
        }
        entering.user = entered.user;
        entering.keeps_password |= !self.rule.forward;
        entering.is_personal |= self.is_personal;
    }
}

impl WordGate {
    /// A digest of all that the other server may go by, as far as the rule knows it.
    fn digest_of(&self, request: &Request, guest: Guest) -> [u8; 32] {
        let client = guest.who.to_string();
        let port = request.port.unwrap_or_default().to_be_bytes();
        let mut parts = vec![&self.digest[..], client.as_bytes(), &request.host, &port];
        parts.push(if guest.scheme == Scheme::Https { b"s" } else { b"" });
        if !self.rule.whole_site {
            parts.extend([request.method.token(), &request.target]);
        }
        let headers = &request.headers;
        // Without their number a value could be taken for one of the next field.
        let counts =
            self.rule.by.iter().map(|name| (name.values(headers).count() as u64).to_le_bytes());
        let counts: Vec<_> = counts.collect();
        for (name, count) in self.rule.by.iter().zip(&counts) {
            parts.push(count);
            parts.extend(name.values(headers));
        }
        digest_of(parts)
    }

    fn let_in(&self, entered: Admitted, entering: &mut Entering) {
        for field in &self.rule.copy {
            let values = entered.fields.iter().filter(|(name, _)| name == field);
            entering.add(field, values.map(|(_, value)| &**value));
        }
        entering.is_personal |= self.is_personal;
    }
}

impl Entering {
    /// Has the origin told these values of `field`, unless another gate has a say in it already: of
    /// two routes that a path may mean both may have the same gate.
    fn add<'a>(&mut self, field: &FieldName, values: impl IntoIterator<Item = &'a [u8]>) {
        if self.own.iter().any(|own| own.is_spelt(field.as_bytes())) {
            return;
        }
        self.own.push(field.clone());
        self.told.extend(values.into_iter().map(|value| (field.clone(), value.into())));
    }

    /// Takes off `request` what is not for the site, and what only the gates may say.
    pub(crate) fn take_off(&self, request: &mut Request) {
        let headers = &mut request.headers;
        if self.keeps_password {
            headers.remove(HeaderId::Authorization);
        }
        if !self.own.is_empty() {
            headers.retain(|field| !self.own.iter().any(|own| own.is_spelt(field.name)));
        }
    }

    /// Says in `request` what the gates have to say. Returns true if the response is for one user
    /// alone.
    pub(crate) fn tell(&self, request: &mut Request) -> bool {
        for (name, value) in &self.told {
            request.headers.push_named(name.as_bytes(), value);
        }
        self.is_personal
    }
}
