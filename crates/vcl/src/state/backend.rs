//! Backends and directors of a running program. It has no sockets: the owner of the connections
//! attaches a [`BackendLink`] to each [`Leaf`].

mod address;

use std::any::Any;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::state::ctx::Ctx;

pub use address::{locate, split};

/// A value of type `BACKEND`.
#[derive(Clone, Debug, Default)]
pub enum Backend {
    /// `backend x none;`, or no backend: fetches fail.
    #[default]
    None,
    /// A backend with an address.
    Leaf(Arc<Leaf>),
    /// A director, which selects a backend.
    Director(Arc<dyn Director>),
}

/// The health of a backend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Health {
    /// True if requests may be sent to the backend.
    pub is_healthy: bool,
    /// Time of the last change, in seconds since 1970.
    pub changed: f64,
}

/// A VCL construct that selects one of several backends.
pub trait Director: fmt::Debug + Send + Sync {
    /// Name of the object.
    fn name(&self) -> &str;

    /// Kind of the director in `backend.list`, such as `round-robin`.
    fn kind(&self) -> &'static str;

    /// The backend for this fetch; `None` if no member is healthy. It may be called again.
    fn resolve(&self, ctx: &mut Ctx<'_>) -> Option<Arc<Leaf>>;

    /// Health of the director: it is healthy if a member is.
    fn health(&self) -> Health;

    /// Returns true if a member is healthy for the current request. By default it does not depend
    /// on the request.
    fn is_healthy_for(&self, _ctx: &Ctx<'_>) -> bool {
        self.health().is_healthy
    }

    /// Members with their health, for `backend.list -p`.
    fn members(&self) -> Vec<Backend>;

    /// Details beside the members' health, for `backend.list -p`. `now` is in seconds since 1970.
    fn listing(&self, _now: f64) -> Listing {
        Listing::Plain
    }

    /// The operator's order about the director; `None` if it accepts none.
    fn admin_health(&self) -> Option<&AdminHealth> {
        None
    }
}

/// Details of a director in `backend.list -p`. Lists have one entry for each member.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Listing {
    /// No details and no members (`hash`).
    Hidden,
    /// Members and their health only.
    #[default]
    Plain,
    /// `fallback`
    Fallback {
        /// True if the director stays with its current member.
        sticky: bool,
        /// Number of the current member.
        current: Option<usize>,
    },
    /// `random`: the weights.
    Random(Vec<f64>),
    /// `shard`
    Shard {
        /// Probability of `warmup`.
        warmup: f64,
        /// Seconds in which a member's share grows after it became healthy.
        rampup: f64,
        /// Members on the ring.
        members: Vec<ShardMember>,
    },
}

/// A member of a `shard` director.
#[derive(Clone, Debug, PartialEq)]
pub struct ShardMember {
    /// Name of the member on the ring.
    pub ident: Box<str>,
    /// Fraction of the member's full share, 0 to 1; 0 while the member is sick.
    pub share: f64,
    /// Seconds until the share is full.
    pub remaining: f64,
}

/// The operator's order about a director (`backend.set_health`).
#[derive(Debug, Default)]
pub struct AdminHealth {
    /// 0 for none, 1 for healthy, 2 for sick.
    order: AtomicU8,
    /// Time of the order: bits of the seconds since 1970.
    since: AtomicU64,
}

impl AdminHealth {
    /// No order yet, for a director that exists since `now` (seconds since 1970).
    pub fn since(now: f64) -> Self {
        let word = Self::default();
        word.set_order(None, now);
        word
    }

    /// Sets the order to healthy, sick or none, at `now` (seconds since 1970).
    pub fn set_order(&self, healthy: Option<bool>, now: f64) {
        let order = healthy.map_or(0, |healthy| if healthy { 1 } else { 2 });
        self.order.store(order, Ordering::Relaxed);
        self.since.store(now.to_bits(), Ordering::Relaxed);
    }

    /// Returns the order: true for healthy, false for sick, `None` without an order.
    pub fn order(&self) -> Option<bool> {
        match self.order.load(Ordering::Relaxed) {
            1 => Some(true),
            2 => Some(false),
            _ => None,
        }
    }

    /// The director's health under the order; `of_members` is its members' health.
    pub fn override_health(&self, of_members: Health) -> Health {
        let since = f64::from_bits(self.since.load(Ordering::Relaxed));
        Health {
            is_healthy: self.order().unwrap_or(of_members.is_healthy),
            changed: since.max(of_members.changed),
        }
    }
}

/// A backend with an address.
pub struct Leaf {
    /// Name of the backend in the program.
    pub name: Box<str>,
    /// Attributes of the backend in the program.
    pub spec: BackendSpec,
    /// The link to the connections, once attached.
    link: OnceLock<Arc<dyn BackendLink>>,
}

/// The link from a backend to its connections. Their owner attaches it.
pub trait BackendLink: Any + Send + Sync {
    /// Returns true if requests may go to the backend. The operator's order decides; without an
    /// order, the probe does.
    fn is_healthy(&self) -> bool;

    /// Time of the last change of health, in seconds since 1970.
    fn changed(&self) -> f64;

    /// Returns true if the backend's address is known; `None` during the first lookup of its name.
    fn is_found(&self) -> Option<bool>;

    /// Connections in use.
    fn in_use(&self) -> u32;

    /// The link itself, for the code that attached it.
    fn as_any(&self) -> &dyn Any;
}

impl Leaf {
    /// A backend without a link yet.
    pub fn new(name: impl Into<Box<str>>, spec: BackendSpec) -> Arc<Self> {
        Arc::new(Self { name: name.into(), spec, link: OnceLock::new() })
    }

    /// The attached link.
    pub fn link(&self) -> Option<&Arc<dyn BackendLink>> {
        self.link.get()
    }

    /// Attaches `link`, unless there is one. Returns true if it was attached.
    pub fn set_link(&self, link: Arc<dyn BackendLink>) -> bool {
        self.link.set(link).is_ok()
    }

    /// Returns true if requests may be sent to the backend. Without a link it counts as healthy.
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
    /// Name of the backend; `none` for none.
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

    /// Health of the backend with the time of its last change.
    pub fn health(&self) -> Health {
        match self {
            Self::None => Health { is_healthy: false, changed: 0.0 },
            Self::Leaf(leaf) => Health {
                is_healthy: leaf.is_healthy(),
                changed: leaf.link().map_or(0.0, |link| link.changed()),
            },
            Self::Director(director) => match director.admin_health() {
                Some(word) => word.override_health(director.health()),
                None => director.health(),
            },
        }
    }

    /// Returns true if the current request may be sent to the backend.
    pub fn is_healthy_for(&self, ctx: &Ctx<'_>) -> bool {
        match self {
            Self::None => false,
            Self::Leaf(leaf) => leaf.is_healthy(),
            Self::Director(director) => {
                let is_healthy = director.is_healthy_for(ctx);
                director.admin_health().and_then(AdminHealth::order).unwrap_or(is_healthy)
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

/// Attributes of a `backend`. Times in seconds; `None` for the parameter's value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BackendSpec {
    /// `.host`
    pub host: Box<str>,
    /// `.port`; empty if the port is part of `.host`, or is 80.
    pub port: Box<str>,
    /// Addresses, resolved by [`locate`], in the order of attempts. Empty with a `path`.
    pub addresses: Vec<SocketAddr>,
    /// True if the name is resolved again while the backend lives (`dynamic`). Its addresses,
    /// possibly many, take turns.
    pub follows: bool,
    /// Intervals of such lookups.
    pub lookups: Option<Lookups>,
    /// `.path` of a unix socket.
    pub path: Option<Box<str>>,
    /// `.host_header`; `None` for `.host`.
    pub host_header: Option<Box<str>>,
    /// `.connect_timeout`
    pub connect_timeout: Option<f64>,
    /// `.first_byte_timeout`
    pub first_byte_timeout: Option<f64>,
    /// `.between_bytes_timeout`
    pub between_bytes_timeout: Option<f64>,
    /// `.max_connections`; 0 for no limit.
    pub max_connections: u32,
    /// `.wait_limit`: most fetches that wait for a connection.
    pub wait_limit: Option<u32>,
    /// `.wait_timeout`
    pub wait_timeout: Option<f64>,
    /// `.proxy_header`: 1 or 2; 0 for none.
    pub proxy_header: u8,
    /// `.probe`
    pub probe: Option<ProbeSpec>,
    /// `.preamble`: sent first on every connection.
    pub preamble: Option<bytes::Bytes>,
    /// `.via`: the proxy to connect to, which connects to this backend.
    pub via: Option<Box<Self>>,
    /// `.authority`: the TLV of that proxy's PROXY header; empty for none. `None` for
    /// `.host_header` or `.host`, if that is a name.
    pub authority: Option<Box<str>>,
}

/// Intervals of repeated lookups. Times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lookups {
    /// Source of the interval: `cfg` (`ttl`), `dns` (the answer's TTL), `min` or `max` (the shorter
    /// or longer of both).
    pub from: &'static str,
    /// The configured interval.
    pub ttl: f64,
    /// Interval after a failed lookup.
    pub retry: f64,
}

/// The attributes of a `probe`. Times in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeSpec {
    /// `.url`
    pub url: Box<str>,
    /// `.request`, sent in place of a request for `url`: each line with CRLF, then an empty line.
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
    /// `.initial`: good probes assumed at the start; `None` for one less than the threshold.
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
    fn an_operators_order_overrides_the_members() {
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
