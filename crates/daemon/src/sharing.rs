//! Sharing: the daemon as a node that shares its store: its certificate, its port for peers, and
//! the peers by their cards.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base::Limits;
use cluster::{Card, Cluster, Epoch, Position, Sharer, Stamp};
use flow::SharedState;
use flow::peers::{ClusterStanding, InvalidationPosition, PeerNode, Peers};
use origin::{Address, Origin, OriginConfig, Protocol, ServerConfig, TlsConfig};
use tls::{
    CertificateKeyPair, ClientAuth, Domain, Fingerprint, Roster, ServerContext, TicketKeys,
    Upstream,
};

/// The interval at which the peers are read again.
const PAUSE: Duration = Duration::from_millis(100);

/// A node that shares its store, and proves its identity to peers.
pub(crate) struct Sharing {
    address: SocketAddr,
    shows: Fingerprint,
    shields: bool,
    roster: Arc<Roster>,
    auth: ClientAuth,
    server: Arc<ServerContext>,
    upstream: Upstream,
    limits: Limits,
}

/// The origins that lead to peers, by the content of their cards.
#[derive(Default)]
struct NodeOrigins(BTreeMap<(String, SocketAddr, String), Arc<Origin>>);

impl Sharing {
    /// The node `name`, which serves peers at `address`, and shields or not.
    ///
    /// # Errors
    /// No certificate can be made.
    pub(crate) fn new(
        name: &str,
        address: SocketAddr,
        shields: bool,
        limits: &Limits,
    ) -> Result<Self, String> {
        let wrong = |error: tls::MaterialError| format!("larder: the node's certificate: {error}");
        let pair = Arc::new(CertificateKeyPair::for_node(name).map_err(wrong)?);
        let roster = Arc::new(Roster::default());
        let auth = ClientAuth::of_nodes(Arc::clone(&roster));
        let domain = Domain { pairs: vec![Arc::clone(&pair)], auth: Some(auth.clone()) };
        let keys = TicketKeys::new().map_err(wrong)?;
        let server = ServerContext::new(Vec::new(), Some(domain), Box::new(|_| None), false, &keys);
        let shows = Fingerprint::of(&pair);
        let upstream = Upstream::of_nodes(Arc::clone(&roster), pair).map_err(wrong)?;
        let server = Arc::new(server.map_err(wrong)?);
        Ok(Self { address, shows, shields, roster, auth, server, upstream, limits: limits.clone() })
    }

    /// Writes on the node's card how peers reach it.
    pub(crate) fn show(&self, card: &mut Card) {
        (card.peer, card.shows) = (self.address.to_string(), self.shows.to_string());
        card.shields = self.shields;
    }

    /// Keeps the peers in `shared` up to date.
    pub(crate) async fn follow(&self, shared: Arc<SharedState>, cluster: Arc<Cluster>) {
        let standing: Arc<dyn ClusterStanding> = Arc::new(NodeStanding(Arc::clone(&cluster)));
        let (mut changes, mut known, mut ways) =
            (cluster.changes(), Vec::new(), NodeOrigins::default());
        loop {
            changes.borrow_and_update();
            let sharers = cluster.sharers();
            if sharers != known || shared.peers.load().is_none() {
                let peers = self.peers(cluster.name(), &sharers, &mut ways, &standing);
                shared.peers.store(Some(Arc::new(peers)));
                known = sharers;
            }
            if changes.changed().await.is_err() {
                return;
            }
            // Most changes only concern peers' positions.
            rt::time::sleep(PAUSE).await;
        }
    }

    fn peers(
        &self,
        own: &str,
        sharers: &[Sharer],
        ways: &mut NodeOrigins,
        standing: &Arc<dyn ClusterStanding>,
    ) -> Peers {
        let named = |sharer: &Sharer| {
            Some((Fingerprint::parse(&sharer.shows)?, sharer.name.as_str().into()))
        };
        self.roster.set(sharers.iter().filter_map(named));
        let mut next = NodeOrigins::default();
        let mut node = |sharer: &Sharer| {
            let way = (sharer.name != own).then(|| {
                let known = (sharer.name.clone(), sharer.address, sharer.shows.clone());
                let way = ways.0.get(&known).cloned().unwrap_or_else(|| self.way(sharer));
                Arc::clone(next.0.entry(known).or_insert(way))
            });
            PeerNode::new(&sharer.name, way)
        };
        let is_shielded = sharers.iter().any(|sharer| sharer.owns && sharer.shields);
        let owns = |sharer: &&Sharer| sharer.owns && (sharer.shields || !is_shielded);
        let nodes = sharers.iter().filter(owns).map(&mut node).collect();
        *ways = next;
        Peers {
            nodes,
            auth: self.auth.clone(),
            roster: Arc::clone(&self.roster),
            server: Arc::clone(&self.server),
            standing: Arc::clone(standing),
        }
    }

    /// The origin that leads to a peer: one server without retries, which is ejected for a while
    /// after failures.
    fn way(&self, sharer: &Sharer) -> Arc<Origin> {
        let (name, addresses) = (sharer.address.to_string(), vec![sharer.address]);
        let address = Address::Fixed { name, addresses };
        let server =
            ServerConfig { address, protocol: Protocol::Http, weight: 1, backup: false, tls: true };
        let name = format!("node {}", sharer.name);
        let config = OriginConfig::with_limits(&name, vec![server], &self.limits);
        let upstream = self.upstream.clone();
        Origin::new(OriginConfig {
            retries: 0,
            client_share_percent: 100,
            tls: Some(TlsConfig { upstream, name: Some(sharer.name.clone()) }),
            ..config
        })
    }
}

/// The node's own standing.
struct NodeStanding(Arc<Cluster>);

impl fmt::Debug for NodeStanding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Own(..)")
    }
}

impl ClusterStanding for NodeStanding {
    fn asks(&self) -> Option<InvalidationPosition> {
        let Position { epoch, sequence, stamp } = self.0.asks()?;
        let stored_ns = stamp.map(|stamp| stamp.stored_ns);
        Some(InvalidationPosition { epoch: epoch.0, sequence, stored_ns })
    }

    fn has_applied(&self, applied: InvalidationPosition) -> bool {
        let InvalidationPosition { epoch, sequence, stored_ns } = applied;
        let stamp = stored_ns.map(|stored_ns| Stamp { id: None, stored_ns });
        self.0.has_applied(Position { epoch: Epoch(epoch), sequence, stamp })
    }
}
