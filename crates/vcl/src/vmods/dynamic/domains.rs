//! Domains of a director: the hosts that it has backends for. Clients may choose hosts, so their
//! number is limited, and hosts without an address are dropped first.

use std::collections::HashMap;
use std::sync::Arc;

use base::Limit;
use parking_lot::Mutex;

use super::host_port::{host_port_of, port_of};
use crate::state::backend::{Backend, BackendSpec, Director, Health, Leaf};
use crate::state::ctx::Ctx;
use crate::sub::TaskSide;

/// A director over host names.
#[derive(Debug)]
pub(super) struct Domains {
    pub(super) name: Box<str>,
    /// Attributes of all backends, with the director's default port.
    spec: BackendSpec,
    /// Seconds after which an unused host is dropped.
    usage_timeout: f64,
    /// Seconds for which a failed name is not looked up again.
    retry_after: f64,
    /// By `host:port`.
    made: Mutex<HashMap<Box<str>, Domain>>,
}

#[derive(Debug)]
struct Domain {
    leaf: Arc<Leaf>,
    /// Time of creation, in seconds since 1970.
    since: f64,
    /// Time of the last use, in seconds since 1970.
    used: f64,
}

impl Domain {
    /// Returns true if the host's address is known; `None` during its lookup.
    fn is_found(&self) -> Option<bool> {
        self.leaf.link()?.is_found()
    }
}

impl Director for Domains {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> &'static str {
        "dynamic"
    }

    /// Resolves the request's host: the director has no host of its own.
    fn resolve(&self, ctx: &mut Ctx<'_>) -> Option<Arc<Leaf>> {
        let (host, port) = host_port_of(ctx, "", "")?;
        self.leaf(&host, &port, ctx)
    }

    fn health(&self) -> Health {
        Health { is_healthy: true, changed: 0.0 }
    }

    fn members(&self) -> Vec<Backend> {
        let made = self.made.lock();
        let mut leaves: Vec<_> = made.values().map(|domain| Arc::clone(&domain.leaf)).collect();
        leaves.sort_by(|a, b| a.name.cmp(&b.name));
        leaves.into_iter().map(Backend::Leaf).collect()
    }
}

impl Domains {
    pub(super) fn new(name: &str, spec: BackendSpec, usage_timeout: f64) -> Self {
        let retry_after = spec.lookups.map_or(0.0, |lookups| lookups.retry);
        let made = Mutex::default();
        Self { name: name.into(), spec, usage_timeout, retry_after, made }
    }

    /// The backend for a host and a port (empty for the director's default), made if absent.
    pub(super) fn leaf(&self, host: &str, port: &str, ctx: &Ctx<'_>) -> Option<Arc<Leaf>> {
        let port = if port.is_empty() { &self.spec.port } else { port };
        let port = port_of(port)?;
        let place = format!("{host}:{port}").into_boxed_str();
        let mut made = self.made.lock();
        if let Some(domain) = made.get_mut(&place) {
            domain.used = ctx.now;
            let is_over = domain.is_found() == Some(false)
                && ctx.now - domain.since >= self.retry_after.max(1.0);
            // If it may not be looked up again, the host stays not found.
            if !is_over || !admitted(ctx) {
                return Some(Arc::clone(&domain.leaf));
            }
        } else {
            if !admitted(ctx) {
                return None;
            }
            made.retain(|_, domain| ctx.now - domain.used <= self.usage_timeout);
            make_room(&mut made, ctx)?;
        }
        let leaf = self.make(host, port);
        let domain = Domain { leaf: Arc::clone(&leaf), since: ctx.now, used: ctx.now };
        made.insert(place, domain);
        Some(leaf)
    }

    fn make(&self, host: &str, port: &str) -> Arc<Leaf> {
        let spec = BackendSpec {
            host: host.into(),
            port: port.into(),
            host_header: self.spec.host_header.clone().or_else(|| Some(host.into())),
            ..self.spec.clone()
        };
        Leaf::new(format!("{}({host}:{port})", self.name), spec)
    }
}

/// Returns true if one more host may be looked up now; in `vcl_init` always.
fn admitted(ctx: &Ctx<'_>) -> bool {
    if ctx.sub.side() == TaskSide::Housekeeping
        || ctx.environment.shared().host_limiter.admit(ctx.session.client, ctx.now)
    {
        return true;
    }
    ctx.environment.limit(Limit::DirectorNewHosts);
    false
}

/// Drops a host if the director is full: the least recently used one without an address, otherwise
/// of all. `None` if there may be no backend at all.
fn make_room(made: &mut HashMap<Box<str>, Domain>, ctx: &Ctx<'_>) -> Option<()> {
    if made.len() < ctx.environment.shared().most_backends() {
        return Some(());
    }
    ctx.environment.limit(Limit::DirectorBackends);
    let rank = |domain: &Domain| (domain.is_found() == Some(true), domain.used);
    let worst = made.iter().min_by(|(_, a), (_, b)| {
        let ((a_found, a_used), (b_found, b_used)) = (rank(a), rank(b));
        a_found.cmp(&b_found).then(a_used.total_cmp(&b_used))
    });
    let worst = worst?.0.clone();
    made.remove(&worst);
    Some(())
}
