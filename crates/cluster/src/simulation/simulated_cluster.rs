//! The state of a simulated cluster, and the path of messages in it.

use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::rc::Rc;

use fastrand::Rng;

use super::clock::Clock;
use super::events::{QueuedEvent, SimulationEvent};
use super::message::{KEYS, SimulatedPurge, StoredEntry, ToNode, ToServer, purge_bytes};
use super::network::Network;
use super::node::Node;
use super::shape::{Bug, Shape};
use super::tally::RunFigures;
use crate::Level;
use crate::entry::{Entry, EntryId};
use crate::members::Card;

/// The leading server.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) up: bool,
    pub(super) epoch: u64,
    pub(super) first: u64,
    pub(super) log: Vec<StoredEntry>,
    pub(super) clock: Clock,
    /// The last card of each name.
    pub(super) cards: BTreeMap<String, (u64, Rc<Card>)>,
    pub(super) cards_last: u64,
    /// Entries that it acknowledged and has lost.
    pub(super) lost: BTreeSet<EntryId>,
    /// All entries that it ever acknowledged.
    pub(super) stored: BTreeSet<EntryId>,
    /// By node: the subscription, and its last order number.
    pub(super) subscriptions: BTreeMap<usize, (u64, u64)>,
}

/// A purge that was acknowledged with `all`.
#[derive(Debug)]
pub(super) struct Promise {
    pub(super) id: EntryId,
    pub(super) since_ms: u64,
    pub(super) of: SimulatedPurge,
    /// Runs that acknowledged it.
    pub(super) by: Vec<u64>,
}

/// A cluster, and the claims about it.
pub(super) struct SimulatedCluster {
    pub(super) seed: u64,
    pub(super) rng: Rng,
    pub(super) now_ms: u64,
    pub(super) order: u64,
    pub(super) shape: Shape,
    pub(super) queue: BinaryHeap<QueuedEvent>,
    pub(super) network: Network,
    pub(super) server: Server,
    pub(super) nodes: Vec<Node>,
    pub(super) truth: [u64; KEYS],
    /// Purges after whose time no node may serve an older version.
    pub(super) promised: Vec<Promise>,
    /// Purges with `quorum`, which the stream may lose.
    pub(super) quorum: Vec<(EntryId, u64, SimulatedPurge)>,
    /// All purges, with their times.
    pub(super) made: BTreeMap<EntryId, (u64, SimulatedPurge)>,
    pub(super) counts: RunFigures,
    /// The first violated claim.
    pub(super) broken: Option<String>,
}

impl SimulatedCluster {
    pub(super) fn new(seed: u64, shape: Shape) -> Self {
        let mut rng = Rng::with_seed(seed);
        let server = Server {
            up: true,
            epoch: 1,
            first: 1,
            log: Vec::new(),
            clock: Clock::new(seed),
            cards: BTreeMap::new(),
            cards_last: 0,
            lost: BTreeSet::new(),
            stored: BTreeSet::new(),
            subscriptions: BTreeMap::new(),
        };
        let max_isolation_ms = shape.max_isolation_ms;
        let count = rng.usize(shape.nodes.clone()) as u64;
        let mut nodes: Vec<_> = (0..count)
            .map(|at| Node { run: at, ..Node::new(format!("n{at}"), &mut rng, max_isolation_ms) })
            .collect();
        if shape.has_twin {
            // A copy of the first node's machine, which is started later.
            let twin = Node {
                run: count,
                up: false,
                ..Node::new("n0".to_owned(), &mut rng, max_isolation_ms)
            };
            nodes.push(twin);
        }
        let network = Network::new(&shape, nodes.len(), &mut rng);
        let counts = RunFigures::new(shape.regions);
        let mut world = Self {
            seed,
            rng,
            now_ms: 0,
            order: 0,
            queue: BinaryHeap::new(),
            shape,
            network,
            server,
            nodes,
            truth: [1; KEYS],
            promised: Vec::new(),
            quorum: Vec::new(),
            made: BTreeMap::new(),
            counts,
            broken: None,
        };
        for node in 0..world.nodes.len() {
            let run = world.nodes[node].run;
            let in_ms = world.rng.u64(0..world.shape.first_ms);
            world.later(in_ms, SimulationEvent::Tick(node, run));
        }
        for first in [SimulationEvent::Serve, SimulationEvent::Purge, SimulationEvent::Trouble] {
            world.later(100, first);
        }
        world
    }

    pub(super) fn later(&mut self, in_ms: u64, what: SimulationEvent) {
        self.order += 1;
        self.queue.push(QueuedEvent(self.now_ms + in_ms, self.order, what));
    }

    pub(super) fn send(&mut self, node: usize, what: ToServer) {
        let (own, region) = (&self.nodes[node], self.network.region_of(node));
        if own.up && !own.cut.0 && !self.network.cut[region].0 && self.server.up {
            self.counts.traffic.add(region, self.network.to_server(&what), true);
            let at_ms = self.network.arrives(node, true, self.now_ms, &mut self.rng);
            self.later(at_ms - self.now_ms, SimulationEvent::AtServer(node, what));
        }
    }

    pub(super) fn answer(&mut self, node: usize, what: ToNode) {
        let (own, region) = (&self.nodes[node], self.network.region_of(node));
        if own.up && !own.cut.1 && !self.network.cut[region].1 {
            self.counts.traffic.add(region, self.network.to_node(&what), false);
            let run = own.run;
            let at_ms = self.network.arrives(node, false, self.now_ms, &mut self.rng);
            self.later(at_ms - self.now_ms, SimulationEvent::AtNode(node, run, what));
        }
    }

    pub(super) fn entry(&mut self, at: usize, level: Level, purged: SimulatedPurge) -> Rc<Entry> {
        let node = &mut self.nodes[at];
        node.numbers += 1;
        let id = EntryId { run: node.run, number: node.numbers };
        let invalidations = vec![purge_bytes(purged)];
        Rc::new(Entry { id, node: node.name.clone(), level, invalidations })
    }

    /// The time of an entry that is stored now.
    pub(super) fn stored_ns(&mut self) -> u64 {
        if self.shape.bug == Some(Bug::KnowsNoTimes) {
            return 0;
        }
        self.server.clock.stored_ns(self.now_ms)
    }
}
