//! The hosts that a director has backends for. Clients may choose them: there are at most so many,
//! and those that were never found are the first to go.

use std::collections::HashMap;
use std::sync::Arc;

use base::Limit;
use parking_lot::Mutex;

use super::host_port::{host_port_of, port_of};
use crate::state::backend::{Backend, BackendSpec, Director, Health, Leaf};
use crate::state::ctx::Ctx;
use crate::sub::TaskSide;

/// A director.
#[derive(Debug)]
pub(super) struct Domains {
    pub(super) name: Box<str>,
    /// Attributes that all backends have in common, with the director's own port.
    spec: BackendSpec,
    /// For how long one is kept that nobody asks for, in seconds.
    usage_timeout: f64,
    /// Time for which a name is believed not to exist, in seconds.
    retry_after: f64,
    /// By host and port: `host:port`.
    made: Mutex<HashMap<Box<str>, Domain>>,
}

#[derive(Debug)]
struct Domain {
    leaf: Arc<Leaf>,
    /// When it was made, in seconds since 1970.
    since: f64,
    /// When it was asked for last, likewise.
    used: f64,
}

impl Domain {
    /// Tells whether the host's address is known. `None` while its name is being looked up.
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

    /// Of itself it knows no host: that of the request.
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

    /// The backend for a host and a port (empty for the director's own), made when it is not there.
    pub(super) fn leaf(&self, host: &str, port: &str, ctx: &Ctx<'_>) -> Option<Arc<Leaf>> {
        let port = if port.is_empty() { &self.spec.port } else { port };
        let port = port_of(port)?;
        let place = format!("{host}:{port}").into_boxed_str();
        let mut made = self.made.lock();
        if let Some(domain) = made.get_mut(&place) {
            domain.used = ctx.now;
            let is_over = domain.is_found() == Some(false)
                && ctx.now - domain.since >= self.retry_after.max(1.0);
            // Where it cannot be looked up again it stays what it is: not found.
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

/// Returns true if one more host is looked up now. A host that a program names as it starts always
/// is.
fn admitted(ctx: &Ctx<'_>) -> bool {
    if ctx.sub.side() == TaskSide::Housekeeping
        || ctx.world.shared().newcomers.admit(ctx.session.client, ctx.now)
    {
        return true;
    }
    ctx.world.limit(Limit::DirectorNewHosts);
    false
}

/// Forgets one when there are as many as there may be: of those that were not found, or else of
/// all, the one that was not asked for for longest. None where there may be no backend at all.
fn make_room(made: &mut HashMap<Box<str>, Domain>, ctx: &Ctx<'_>) -> Option<()> {
    if made.len() < ctx.world.shared().most_backends() {
        return Some(());
    }
    ctx.world.limit(Limit::DirectorBackends);
    let rank = |domain: &Domain| (domain.is_found() == Some(true), domain.used);
    let worst = made.iter().min_by(|(_, a), (_, b)| {
        let ((a_found, a_used), (b_found, b_used)) = (rank(a), rank(b));
        a_found.cmp(&b_found).then(a_used.total_cmp(&b_used))
    });
    let worst = worst?.0.clone();
    made.remove(&worst);
    Some(())
}
