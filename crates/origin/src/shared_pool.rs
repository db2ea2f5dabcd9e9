//! Shared pool of idle connections, by address and way of connecting, for all origins, programs and
//! configurations.
//!
//! Each core has its own list per endpoint, and takes from other cores' lists before it opens a
//! connection. A list is locked for one access, mostly by its own core.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::config::{
    Address, HttpVersion, Opening, OriginConfig, Protocol, ServerConfig, TlsConfig,
};
use crate::journal::Journal;
use crate::owner::{Owner, OwnerHold};
use crate::reserved_addresses::ReservedAddresses;
use crate::spool::Space;
use crate::stream::IdleCheck;
use crate::upstream_connection::UpstreamConnection;

/// The address of a connection with everything that distinguishes it from another one to that
/// address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionKey {
    to: ConnectionTarget,
    protocol: Protocol,
    /// With the name that certificates are verified for.
    tls: Option<(TlsConfig, String)>,
    opening: Opening,
    http: HttpVersion,
    reserved: Arc<ReservedAddresses>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum ConnectionTarget {
    Addresses(Vec<SocketAddr>),
    Name(String, u16),
    Socket(PathBuf),
}

impl Hash for ConnectionKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.to.hash(state);
    }
}

impl ConnectionKey {
    /// The key of connections to `server` of `origin`.
    pub(crate) fn new(server: &ServerConfig, origin: &OriginConfig) -> Self {
        let to = match &server.address {
            Address::Unix(path) => ConnectionTarget::Socket(path.clone()),
            Address::Fixed { addresses, .. } => ConnectionTarget::Addresses(addresses.clone()),
            Address::Tcp { host, port } => match host.parse::<IpAddr>() {
                Ok(ip) => ConnectionTarget::Addresses(vec![SocketAddr::new(ip, *port)]),
                Err(_) => ConnectionTarget::Name(host.clone(), *port),
            },
        };
        let name = match &server.address {
            Address::Tcp { host, .. } => host.clone(),
            Address::Fixed { .. } | Address::Unix(_) => String::new(),
        };
        Self {
            to,
            protocol: server.protocol,
            tls: origin.tls.clone().filter(|_| server.tls).map(|tls| (tls, name)),
            opening: origin.opening.clone(),
            http: origin.http,
            reserved: Arc::clone(&origin.reserved),
        }
    }
}

/// The pools of all endpoints, shared by all cores.
#[derive(Default)]
pub struct SharedPool {
    endpoints: Mutex<HashMap<ConnectionKey, Weak<EndpointPool>>>,
    space: Arc<Space>,
    journal: Option<Arc<dyn Journal>>,
}

impl SharedPool {
    /// A shared pool whose servers' messages go to `journal`.
    pub fn with_journal(journal: Arc<dyn Journal>) -> Self {
        Self { journal: Some(journal), ..Self::default() }
    }

    /// The journal for servers' messages, if there is one.
    pub fn journal(&self) -> Option<&Arc<dyn Journal>> {
        self.journal.as_ref()
    }

    /// The space of spool files.
    pub(crate) fn space(&self) -> &Arc<Space> {
        &self.space
    }

    /// The pool of the endpoint `way`.
    pub(crate) fn endpoint(&self, way: ConnectionKey) -> Arc<EndpointPool> {
        let mut endpoints = self.endpoints.lock();
        if let Some(endpoint) = endpoints.get(&way).and_then(Weak::upgrade) {
            return endpoint;
        }
        endpoints.retain(|_, endpoint| endpoint.strong_count() > 0);
        let endpoint = Arc::new(EndpointPool::default());
        endpoints.insert(way, Arc::downgrade(&endpoint));
        endpoint
    }
}

/// One endpoint, with the idle connections of all cores.
#[derive(Debug, Default)]
pub(crate) struct EndpointPool {
    lists: Mutex<Vec<Weak<IdleConnections>>>,
}

impl EndpointPool {
    /// A new list for the calling core.
    pub(crate) fn new_list(&self) -> Arc<IdleConnections> {
        let list = Arc::new(IdleConnections::default());
        let mut lists = self.lists.lock();
        lists.retain(|list| list.strong_count() > 0);
        lists.push(Arc::downgrade(&list));
        list
    }

    /// Takes an idle connection of another core.
    pub(crate) fn take_over(&self, server: &dyn Terms, now_ms: u64) -> Option<UpstreamConnection> {
        let lists = self.lists.lock();
        let mut all = lists.iter().filter_map(Weak::upgrade);
        // This core cannot use the events that the other core's runtime has seen.
        let look = IdleCheck::Sure;
        all.find_map(|list| {
            list.take(server, now_ms, look, |link| link.stream.can_move())?.into_this_core()
        })
    }
}

/// The rules by which a server's idle connections are kept.
pub(crate) trait Terms: fmt::Debug + Send + Sync {
    /// Idle connections kept per core.
    fn idle_max(&self) -> usize;

    /// Milliseconds after which an idle connection is closed.
    fn idle_timeout_ms(&self) -> u64;

    /// Returns true if idle connections to it are kept.
    fn keeps_connections(&self) -> bool;

    /// Returns true if `peer` is still one of the server's known addresses.
    fn is_at(&self, peer: SocketAddr) -> bool;
}

/// One core's idle connections to one endpoint, the most recently used last.
#[derive(Debug, Default)]
pub(crate) struct IdleConnections {
    idle: Mutex<VecDeque<IdleConnection>>,
    /// Connections that belong to one client connection each.
    owned: Mutex<VecDeque<IdleConnection>>,
}

#[derive(Debug)]
struct IdleConnection {
    link: UpstreamConnection,
    since_ms: u64,
    /// The server of its last request.
    server: Arc<dyn Terms>,
}

impl IdleConnections {
    /// Takes the latest connection that `server` can use and that `fits`.
    pub(crate) fn take(
        &self,
        server: &dyn Terms,
        now_ms: u64,
        look: IdleCheck,
        fits: impl Fn(&UpstreamConnection) -> bool,
    ) -> Option<UpstreamConnection> {
        let mut all = self.idle.lock();
        while all.back().is_some_and(|latest| fits(&latest.link)) {
            let latest = all.pop_back()?;
            if latest.is_usable(server, now_ms, look) {
                return Some(latest.link);
            }
        }
        None
    }

    /// Takes the connection of `owner` that `server` can use. The socket is always checked, since a
    /// login would be lost with it.
    pub(crate) fn take_owned(
        &self,
        server: &dyn Terms,
        now_ms: u64,
        owner: &Owner,
    ) -> Option<UpstreamConnection> {
        let mut all = self.owned.lock();
        let at = all.iter().rposition(|idle| idle.is_of(owner))?;
        let latest = all.remove(at)?;
        latest.is_usable(server, now_ms, IdleCheck::Sure).then_some(latest.link)
    }

    /// Returns true if one of them belongs to `owner`.
    pub(crate) fn has_owned(&self, owner: &Owner) -> bool {
        self.owned.lock().iter().any(|idle| idle.is_of(owner))
    }

    /// Keeps a connection that `server` has just used; true if the oldest was closed for it.
    pub(crate) fn put(
        &self,
        server: Arc<dyn Terms>,
        link: UpstreamConnection,
        now_ms: u64,
    ) -> bool {
        let all = if link.hold.is_some() { &self.owned } else { &self.idle };
        let mut all = all.lock();
        let is_full = all.len() >= server.idle_max();
        if is_full {
            all.pop_front();
        }
        all.push_back(IdleConnection { link, since_ms: now_ms, server });
        is_full
    }

    /// Closes connections that are no longer usable.
    pub(crate) fn sweep(&self, now_ms: u64) -> SweepOutcome {
        let (mut late, mut left) = (0, 0);
        for all in [&self.idle, &self.owned] {
            let mut all = all.lock();
            all.retain(|idle| {
                late += usize::from(idle.is_late(&*idle.server, now_ms));
                idle.is_usable(&*idle.server, now_ms, IdleCheck::Sure)
            });
            left += all.len();
        }
        SweepOutcome { late, left }
    }

    pub(crate) fn len(&self) -> usize {
        self.idle.lock().len() + self.owned.lock().len()
    }
}

/// The result of [`IdleConnections::sweep`].
pub(crate) struct SweepOutcome {
    /// Connections that were idle for too long.
    pub(crate) late: usize,
    /// Connections that are left.
    pub(crate) left: usize,
}

impl IdleConnection {
    fn is_of(&self, owner: &Owner) -> bool {
        self.link.hold.as_ref().is_some_and(|hold| hold.is_of(owner))
    }

    fn is_late(&self, server: &dyn Terms, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.since_ms) >= server.idle_timeout_ms()
    }

    fn is_usable(&self, server: &dyn Terms, now_ms: u64, look: IdleCheck) -> bool {
        !self.is_late(server, now_ms)
            && self.link.hold.as_ref().is_none_or(OwnerHold::lasts)
            && server.keeps_connections()
            && self.link.peer.is_none_or(|peer| server.is_at(peer))
            && self.link.stream.is_quiet(look)
    }
}
