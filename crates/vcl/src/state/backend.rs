//! Backends and directors as a running program knows them. Whoever holds the sockets hangs its own
//! part to a [`Leaf`].

mod address;

use std::any::Any;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::state::ctx::Ctx;

pub use address::{locate, split};

/// A `BACKEND`.
#[derive(Clone, Debug, Default)]
pub enum Backend {
    /// `backend x none;`, or none at all: fetches from it fail.
    #[default]
    None,
    /// One that can be connected to.
    Leaf(Arc<Leaf>),
    /// One that chooses among others.
    Director(Arc<dyn Director>),
}

/// The health of a backend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Health {
    /// Requests may go to it.
    pub is_healthy: bool,
    /// When that changed last, in seconds since 1970.
    pub changed: f64,
}

/// A VCL construct that selects one of several backends.
pub trait Director: fmt::Debug + Send + Sync {
    /// The name that `new` gave it.
    fn name(&self) -> &str;

    /// Its kind, as `backend.list` tells it: `round-robin`.
    fn kind(&self) -> &'static str;

    /// The backend for this fetch; `None` if no healthy one is there. May be asked again.
    fn resolve(&self, ctx: &mut Ctx<'_>) -> Option<Arc<Leaf>>;

    /// Its health: it is healthy if one of its backends is.
    fn health(&self) -> Health;

    /// Returns true if one of its backends is healthy for the request at hand. By default, the
    /// answer is the same for all requests.
    fn is_healthy_for(&self, _ctx: &Ctx<'_>) -> bool {
        self.health().is_healthy
    }

    /// Its backends with their health, for `backend.list -p`.
    fn members(&self) -> Vec<Backend>;

    /// Details of the director and its members for `backend.list -p`, besides their health. `now`
    /// is in seconds since 1970.
    fn listing(&self, _now: f64) -> Listing {
        Listing::Plain
    }

    /// Where an operator's word about it is kept; `None` where it can have none.
    fn word(&self) -> Option<&AdminHealth> {
        None
    }
}

/// Details of a director that `backend.list -p` shows. Lists have an entry for each of its members.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Listing {
    /// Nothing, not even its members (`hash`).
    Hidden,
    /// Its members and their health alone.
    #[default]
    Plain,
    /// `fallback`
    Fallback {
        /// The director stays with the member that it has come to.
        sticky: bool,
        /// The number of the member that it is at.
        current: Option<usize>,
    },
    /// `random`: the weights.
    Random(Vec<f64>),
    /// `shard`
    Shard {
        /// The probability of `warmup`.
        warmup: f64,
        /// The seconds for which a member's share grows after the member became healthy.
        rampup: f64,
        /// Its members on the ring.
        members: Vec<ShardMember>,
    },
}

/// A member of a `shard` director.
#[derive(Clone, Debug, PartialEq)]
pub struct ShardMember {
    /// Its name on the ring.
    pub ident: Box<str>,
    /// The part of its share that it has, 0 to 1. It is 0 while the member is sick.
    pub share: f64,
    /// For how many seconds that still grows.
    pub remaining: f64,
}

/// An operator's order about a director (`backend.set_health`).
#[derive(Debug, Default)]
pub struct AdminHealth {
    /// 0 nothing, 1 healthy, 2 sick.
    said: AtomicU8,
    /// When, as the bits of seconds since 1970.
    since: AtomicU64,
}

impl AdminHealth {
    /// Nothing yet, about a director that is there since `now`, in seconds since 1970.
    pub fn since(now: f64) -> Self {
        let word = Self::default();
        word.set_order(None, now);
        word
    }

    /// Has the operator say it is healthy, or sick, or nothing, `now` in seconds since 1970.
    pub fn set_order(&self, healthy: Option<bool>, now: f64) {
        let said = healthy.map_or(0, |healthy| if healthy { 1 } else { 2 });
        self.said.store(said, Ordering::Relaxed);
        self.since.store(now.to_bits(), Ordering::Relaxed);
    }

    /// Returns the order: true for healthy, false for sick, `None` without an order.
    pub fn order(&self) -> Option<bool> {
        match self.said.load(Ordering::Relaxed) {
            1 => Some(true),
            2 => Some(false),
            _ => None,
        }
    }

    /// The health of a director whose members' is `of_members`, and when it changed last.
    pub fn override_health(&self, of_members: Health) -> Health {
        let since = f64::from_bits(self.since.load(Ordering::Relaxed));
        Health {
            is_healthy: self.order().unwrap_or(of_members.is_healthy),
            changed: since.max(of_members.changed),
        }
    }
}

/// A backend that can be connected to.
pub struct Leaf {
    /// Its name in the program.
    pub name: Box<str>,
    /// Its attributes in the program.
    pub spec: BackendSpec,
    /// The part that the owner of the sockets attaches.
    link: OnceLock<Arc<dyn BackendLink>>,
}

/// The part of a backend that the owner of the sockets attaches.
pub trait BackendLink: Any + Send + Sync {
    /// Returns true if requests may go to the backend. The operator's order decides; without an
    /// order, the probe does.
    fn is_healthy(&self) -> bool;

    /// When that changed last, in seconds since 1970.
    fn changed(&self) -> f64;

    /// Tells whether the backend's address is known. `None` while its name is being looked up for
    /// the first time.
    fn is_found(&self) -> Option<bool>;

    /// Connections in use.
    fn in_use(&self) -> u32;

    /// Itself, for who made it.
    fn as_any(&self) -> &dyn Any;
}

impl Leaf {
    /// A backend nobody has connected yet.
    pub fn new(name: impl Into<Box<str>>, spec: BackendSpec) -> Arc<Self> {
        Arc::new(Self { name: name.into(), spec, link: OnceLock::new() })
    }

    /// The link that was attached.
    pub fn link(&self) -> Option<&Arc<dyn BackendLink>> {
        self.link.get()
    }

    /// Hangs `link` to it, the first time; says whether that was now.
    pub fn set_link(&self, link: Arc<dyn BackendLink>) -> bool {
        self.link.set(link).is_ok()
    }

    /// Returns true if requests may go to the backend. A backend that nobody watches counts as
    /// healthy.
    pub fn is_healthy(&self) -> bool {
        self.link().is_none_or(|link| link.is_healthy())
    }
}

impl fmt::Debug for Leaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leaf").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Backend {
    /// Its name; `none` where it is absent.
    pub fn name(&self) -> &str {
        match self {
            Self::None => "none",
            Self::Leaf(leaf) => &leaf.name,
            Self::Director(director) => director.name(),
        }
    }

    /// Returns true if both are the same backend.
    pub fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) => true,
            (Self::Leaf(a), Self::Leaf(b)) => Arc::ptr_eq(a, b),
            (Self::Director(a), Self::Director(b)) => {
                std::ptr::addr_eq(Arc::as_ptr(a), Arc::as_ptr(b))
            }
            _ => false,
        }
    }

    /// The health of the backend: requests may go to it or not, and since when.
    pub fn health(&self) -> Health {
        match self {
            Self::None => Health { is_healthy: false, changed: 0.0 },
            Self::Leaf(leaf) => Health {
                is_healthy: leaf.is_healthy(),
                changed: leaf.link().map_or(0.0, |link| link.changed()),
            },
            Self::Director(director) => match director.word() {
                Some(word) => word.override_health(director.health()),
                None => director.health(),
            },
        }
    }

    /// Returns true if the request at hand may go to the backend.
    pub fn is_healthy_for(&self, ctx: &Ctx<'_>) -> bool {
        match self {
            Self::None => false,
            Self::Leaf(leaf) => leaf.is_healthy(),
            Self::Director(director) => {
                let is_healthy = director.is_healthy_for(ctx);
                director.word().and_then(AdminHealth::order).unwrap_or(is_healthy)
            }
        }
    }

    /// The backend to connect to for this fetch.
    pub fn resolve(&self, ctx: &mut Ctx<'_>) -> Option<Arc<Leaf>> {
        match self {
            Self::None => None,
            Self::Leaf(leaf) => Some(Arc::clone(leaf)),
            Self::Director(director) => director.resolve(ctx),
        }
    }
}

/// The attributes of a `backend`. Times in seconds; none for the parameter of that name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BackendSpec {
    /// `.host`
    pub host: Box<str>,
    /// `.port`; empty without one: it stands in `.host`, or is 80.
    pub port: Box<str>,
    /// Where that is, as [`locate`] says, in the order the addresses are tried. Empty with a
    /// `path`.
    pub addresses: Vec<SocketAddr>,
    /// Its name is looked up for as long as the backend lives, instead of once: its addresses, of
    /// which there may be many, take turns (`dynamic`).
    pub follows: bool,
    /// When such a name is looked up again.
    pub lookups: Option<Lookups>,
    /// `.path` of a unix socket.
    pub path: Option<Box<str>>,
    /// `.host_header`; without one `.host`.
    pub host_header: Option<Box<str>>,
    /// `.connect_timeout`
    pub connect_timeout: Option<f64>,
    /// `.first_byte_timeout`
    pub first_byte_timeout: Option<f64>,
    /// `.between_bytes_timeout`
    pub between_bytes_timeout: Option<f64>,
    /// `.max_connections`; 0 for any number.
    pub max_connections: u32,
    /// `.wait_limit`: fetches that may wait for one of these.
    pub wait_limit: Option<u32>,
    /// `.wait_timeout`
    pub wait_timeout: Option<f64>,
    /// `.proxy_header`: 1 or 2; 0 for none.
    pub proxy_header: u8,
    /// `.probe`
    pub probe: Option<ProbeSpec>,
    /// `.preamble`: sent first on every connection.
    pub preamble: Option<bytes::Bytes>,
    /// `.via`: the proxy that is connected to in its place, and told its address.
    pub via: Option<Box<Self>>,
    /// `.authority`: the name that such a proxy is told; empty for none. Without one
    /// `.host_header` or `.host`, where they are names.
    pub authority: Option<Box<str>>,
}

/// When a name that is followed is looked up again. Times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lookups {
    /// The source of the time for which an answer counts: `cfg` (the time below), `dns` (the
    /// answer), `min` or `max` (the shorter or longer of the two).
    pub from: &'static str,
    /// The time below.
    pub ttl: f64,
    /// From a failed lookup to the next.
    pub retry: f64,
}

/// The attributes of a `probe`. Times in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeSpec {
    /// `.url`
    pub url: Box<str>,
    /// `.request`, sent instead of what is made for `url`: every line with its CRLF, then an empty
    /// one.
    pub request: Option<Box<[u8]>>,
    /// `.expected_response`
    pub expected_response: u16,
    /// `.timeout`
    pub timeout: f64,
    /// `.interval`
    pub interval: f64,
    /// `.window`
    pub window: u32,
    /// `.threshold`
    pub threshold: u32,
    /// `.initial`: good probes assumed at the start; one less than the threshold when not given.
    pub initial: Option<u32>,
    /// `.expect_close`
    pub expect_close: bool,
}

impl Default for ProbeSpec {
    fn default() -> Self {
        Self {
            url: "/".into(),
            request: None,
            expected_response: 200,
            timeout: 2.0,
            interval: 5.0,
            window: 8,
            threshold: 3,
            initial: None,
            expect_close: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operators_word_goes_before_the_members() {
        let word = AdminHealth::default();
        let health = |is_healthy: bool, changed: f64| Health { is_healthy, changed };
        assert_eq!(word.override_health(health(true, 7.0)), health(true, 7.0));
        word.set_order(Some(false), 9.0);
        assert_eq!(
            (word.override_health(health(true, 7.0)), word.order()),
            (health(false, 9.0), Some(false))
        );
        word.set_order(None, 10.0);
        assert_eq!(word.override_health(health(true, 11.0)), health(true, 11.0));
    }
}
