//! Origin as all cores share it.

use message::Request;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::balance::Balancer;
use crate::budget::RetryBudget;
use crate::config::{OriginConfig, Protocol};
use crate::health::{EjectionState, HealthOverride, ProbeHistory, ProbeVerdict, ProbeWindow};
use crate::server::Server;
use crate::traffic_counters::ServerTraffic;

/// An origin: its settings, and the state of its servers. Connections are in each core's
/// [`CorePool`](crate::CorePool).
#[derive(Debug)]
pub struct Origin {
    config: OriginConfig,
    name: Arc<str>,
    servers: Vec<Arc<Server>>,
    balancer: Balancer,
    budget: RetryBudget,
}

impl Origin {
    /// An origin with `config`. Servers configured by name have no address before
    /// [`run_background`](crate::run_background) finds one; the others can be used at once.
    pub fn new(config: OriginConfig) -> Arc<Self> {
        let server = |s: &_| Arc::new(Server::new(Clone::clone(s), &config));
        let servers: Vec<_> = config.servers.iter().map(server).collect();
        Arc::new(Self {
            name: config.name.as_str().into(),
            balancer: Balancer::new(config.balance, servers.len()),
            budget: RetryBudget::new(config.retry_budget_percent),
            servers,
            config,
        })
    }

    /// Its settings.
    pub fn config(&self) -> &OriginConfig {
        &self.config
    }

    /// The Host that replaces that of `request`; `None` if it is kept.
    pub fn host_for(&self, request: &Request) -> Option<&str> {
        let missing = self.config.host_default.as_deref().filter(|_| request.host.is_empty());
        self.config.host_header.as_deref().or(missing)
    }

    /// Its name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns true if a server is neither sick by its probes nor ejected for failed requests.
    /// Varnish: `std.healthy()`.
    pub fn is_healthy(&self) -> bool {
        let now_ms = rt::now().mono_ms;
        self.servers.iter().any(|server| server.is_healthy(now_ms))
    }

    /// Returns true if the addresses of one of its servers are known; `None` during the first
    /// lookup. Unix sockets need no lookup.
    pub fn is_found(&self) -> Option<bool> {
        let found = |known| self.servers.iter().any(|server| server.is_found() == known);
        if found(Some(true)) { Some(true) } else { (!found(None)).then_some(false) }
    }

    /// The number of exchanges in progress with its servers.
    pub fn in_flight(&self) -> u32 {
        self.servers.iter().map(|server| server.in_flight()).sum()
    }

    /// The number of exchanges that were started with its servers.
    pub fn exchanges(&self) -> u64 {
        self.servers.iter().map(|server| server.requests()).sum()
    }

    /// The time of the last change of health of one of its servers, in milliseconds since 1970.
    pub fn changed_ms(&self) -> u64 {
        self.servers.iter().map(|server| server.changed_ms()).max().unwrap_or_default()
    }

    /// One row per server, as on the admin page.
    pub fn servers(&self) -> Vec<ServerStatus> {
        let now = rt::now();
        self.servers.iter().map(|server| ServerStatus::of(server, now)).collect()
    }

    /// Returns true if a server that is in use at `now_ms` (of the monotonic clock) has a place for
    /// a request that need not wait. Backups are in use only while no other server is.
    pub fn has_room(&self, now_ms: u64) -> bool {
        let usable = |backup: bool| {
            let own = self.servers.iter().enumerate();
            own.filter(move |(at, server)| {
                server.config.backup == backup && self.is_usable(*at, now_ms)
            })
        };
        let is_backup = usable(false).next().is_none();
        usable(is_backup).any(|(_, server)| server.has_room())
    }

    /// Returns true if servers are in use at `now_ms` (of the monotonic clock), and a request would
    /// wait at each.
    pub fn is_full(&self, now_ms: u64) -> bool {
        !self.has_room(now_ms) && (0..self.servers.len()).any(|at| self.is_usable(at, now_ms))
    }

    /// The server for a request with this hash at `now_ms` (of the monotonic clock), which is the
    /// one at `preferred` while that is in use. `None` if probes report every server sick. Changes
    /// no state.
    pub fn likely(
        &self,
        hash: u64,
        preferred: Option<usize>,
        now_ms: u64,
    ) -> Option<LikelyServer<'_>> {
        let at = preferred.filter(|at| self.is_usable(*at, now_ms));
        let at = at.or_else(|| self.balancer.likely(&self.servers, hash, now_ms))?;
        let server = &self.servers[at];
        Some(LikelyServer { name: &server.name, is_backup: server.config.backup })
    }

    /// Sets the health override of the server with this name ([`ServerStatus::name`]); false for an
    /// unknown name.
    pub fn order(&self, server: &str, order: HealthOverride) -> bool {
        let mut found = false;
        for own in self.servers.iter().filter(|own| &*own.name == server) {
            own.set_order(order);
            found = true;
        }
        found
    }

    /// Counts a timeout against the server, if there is only one.
    pub fn was_late(&self) {
        let now_ms = rt::now().mono_ms;
        self.servers.first().inspect(|server| server.was_late(now_ms));
    }

    /// The protocol of all of its servers.
    pub fn protocol(&self) -> Protocol {
        self.config.servers.first().map_or_else(Protocol::default, |server| server.protocol)
    }

    pub(crate) fn shared(&self) -> &[Arc<Server>] {
        &self.servers
    }

    /// Returns true if the server at this index, if there is one, gets all requests: an ejected one
    /// whose trial is due gets that by its turn.
    pub(crate) fn is_usable(&self, at: usize, now_ms: u64) -> bool {
        let server = self.servers.get(at);
        server.is_some_and(|server| {
            !server.is_sick() && server.standing(now_ms) == EjectionState::Open
        })
    }

    pub(crate) fn pick(&self, hash: u64, tried: &[usize], now_ms: u64) -> Option<usize> {
        self.balancer.pick(&self.servers, hash, tried, now_ms)
    }

    /// Returns true if a server that is not in `tried` gets requests.
    pub(crate) fn has_other(&self, tried: &[usize]) -> bool {
        let now_ms = rt::now().mono_ms;
        let mut servers = self.servers.iter().enumerate();
        servers.any(|(at, server)| !tried.contains(&at) && server.is_healthy(now_ms))
    }

    pub(crate) fn budget(&self) -> &RetryBudget {
        &self.budget
    }
}

/// The server that would get a request.
#[derive(Clone, Copy, Debug)]
pub struct LikelyServer<'a> {
    /// The configured address.
    pub name: &'a str,
    /// It is a backup: no other server is in use.
    pub is_backup: bool,
}

/// The state of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerStatus {
    /// The configured address.
    pub name: Arc<str>,
    /// The present addresses of its name; empty for a unix socket.
    pub addresses: Vec<SocketAddr>,
    /// The weight.
    pub weight: u32,
    /// It gets requests only while no other server is in use.
    pub backup: bool,
    /// The server gets requests.
    pub healthy: bool,
    /// The operator's override.
    pub order: HealthOverride,
    /// The verdict of its probes.
    pub probed: ProbeVerdict,
    /// The latest probes as bits, the latest lowest; set for good ones.
    pub probes: u64,
    /// Counts of the latest probes.
    pub history: ProbeHistory,
    /// The time of the last change of its health or override, in milliseconds since 1970.
    pub changed_ms: u64,
    /// The time at which it went out of service, in milliseconds since 1970; `None` while it is in
    /// service. An ejected server is back after a successful request.
    pub down_since_ms: Option<u64>,
    /// Milliseconds left of its ejection; 0 if it is not ejected.
    pub ejected_ms: u64,
    /// Failed requests since its last response.
    pub failures: u32,
    /// Exchanges started.
    pub requests: u64,
    /// Of these, those without a usable response.
    pub failed: u64,
    /// Exchanges in progress, on all cores.
    pub in_flight: u32,
    /// Requests that wait for one of its connections.
    pub waiting: u32,
    /// The latest failure of a request, a probe or a name lookup, with its time in milliseconds
    /// since 1970.
    pub last_error: Option<(u64, String)>,
    /// The number of responses, and the sum of microseconds from the starts of their exchanges,
    /// including connecting, to their heads.
    pub answers: (u64, u64),
    /// Bytes in both directions, and failed connections by reason.
    pub moved: ServerTraffic,
}

impl ServerStatus {
    fn of(server: &Server, now: base::Now) -> Self {
        let now_ms = now.mono_ms;
        Self {
            name: Arc::clone(&server.name),
            addresses: server.addresses(),
            weight: server.config.weight,
            backup: server.config.backup,
            healthy: server.is_healthy(now_ms),
            order: server.order(),
            probed: server.probed(),
            probes: server.probes.as_ref().map_or(0, ProbeWindow::bits),
            history: server.probes.as_ref().map(ProbeWindow::history).unwrap_or_default(),
            changed_ms: server.changed_ms(),
            down_since_ms: server.down_since_ms(now),
            ejected_ms: server.ejection.left_ms(now_ms),
            failures: server.ejection.failures(),
            requests: server.requests(),
            failed: server.failures_in_all(),
            in_flight: server.in_flight(),
            waiting: server.waiting(),
            last_error: server.last_error(),
            answers: server.answers(),
            moved: server.traffic.moved(),
        }
    }
}
