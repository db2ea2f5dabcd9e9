//! Nodes of a cluster that share their stores, and the owner of each key.

use std::fmt;
use std::sync::Arc;

use base::HashSeed;
use origin::Origin;
use policy::DecisionStep;
use tls::{ClientAuth, Roster};

/// Exchanges with one node that count as few, whatever the others have.
const FEW: u64 = 16;

/// A position in the cluster's stream of invalidations, with all entries before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidationPosition {
    /// The stream's creation: another stream numbers its entries anew.
    pub epoch: u64,
    /// The last entry.
    pub sequence: u64,
    /// When the stream stored the entry, in nanoseconds since 1970, if known: a stream that has
    /// lost entries reuses their positions.
    pub stored_ns: Option<u64>,
}

/// The node's standing in its cluster, as far as sharing depends on it.
pub trait ClusterStanding: fmt::Debug + Send + Sync {
    /// The node's position, if it contains all its own invalidations and stored responses are
    /// trusted; `None` if no node should be asked.
    fn asks(&self) -> Option<InvalidationPosition>;
    /// Returns true if this node has applied that position, and stored responses are trusted.
    fn has_applied(&self, applied: InvalidationPosition) -> bool;
}

/// A node of the cluster.
#[derive(Debug)]
pub struct PeerNode {
    name: Box<str>,
    /// The seed of its rank among owners.
    seed: HashSeed,
    /// The origin by which it is reached; `None` for this node.
    origin: Option<Arc<Origin>>,
}

impl PeerNode {
    /// The node `name`, reached by `origin`; without one it is this node.
    pub fn new(name: &str, origin: Option<Arc<Origin>>) -> Self {
        let number = HashSeed::from_u64(0).hash(name.as_bytes());
        Self { name: name.into(), seed: HashSeed::from_u64(number), origin }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The origin by which it is reached; `None` for this node.
    pub fn origin(&self) -> Option<&Arc<Origin>> {
        self.origin.as_ref()
    }
}

/// The nodes that share their stores.
#[derive(Debug)]
pub struct Peers {
    /// The nodes that own keys, with their names.
    pub nodes: Vec<PeerNode>,
    /// The certificate check of the other nodes' connections.
    pub auth: ClientAuth,
    /// The nodes that are accepted.
    pub roster: Arc<Roster>,
    /// The TLS server of the port for nodes.
    pub server: Arc<tls::ServerContext>,
    /// This node's standing.
    pub standing: Arc<dyn ClusterStanding>,
}

impl Peers {
    /// The node that owns `key`: the first healthy one in the key's order of nodes that is not
    /// busier than others. All nodes agree on the order; an additional node takes over only the
    /// keys that it owns.
    pub(crate) fn owner(&self, key: &[u8]) -> Option<&PeerNode> {
        let origins = || self.nodes.iter().filter_map(|node| node.origin.as_ref());
        let in_flight: u64 = origins().map(|origin| u64::from(origin.in_flight())).sum();
        let mean = in_flight / (origins().count() as u64).max(1);
        let most = (mean + mean / 4).max(FEW);
        let is_open =
            |origin: &Arc<Origin>| origin.is_healthy() && u64::from(origin.in_flight()) <= most;
        let open = self.nodes.iter().filter(|node| node.origin.as_ref().is_none_or(is_open));
        open.max_by_key(|node| node.seed.hash(key))
    }

    /// Forecasts the owner of `key`, if there is one.
    pub(crate) fn foretell(&self, key: &[u8]) -> Option<DecisionStep> {
        let owner = self.owner(key)?;
        let why = match &owner.origin {
            Some(_) => {
                format!("node `{}` owns it, and would be asked before the origin", owner.name)
            }
            None => "this node owns it, and fetches it for all".to_owned(),
        };
        Some(DecisionStep::new("node", why).fact("nodes that own", self.nodes.len().to_string()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn nodes(names: &[&str]) -> Vec<PeerNode> {
        names.iter().map(|name| PeerNode::new(name, None)).collect()
    }

    fn owners(nodes: &[PeerNode]) -> BTreeMap<u32, Box<str>> {
        let first = |key: u32| {
            let order = |node: &&PeerNode| node.seed.hash(format!("/{key}").as_bytes());
            nodes.iter().max_by_key(order).expect("one").name.clone()
        };
        (0..10_000).map(|key| (key, first(key))).collect()
    }

    #[test]
    fn nodes_own_as_much_as_each_other_and_one_more_takes_only_its_own() {
        let (few, more) = (nodes(&["a", "b", "c", "d"]), nodes(&["a", "b", "c", "d", "e"]));
        let (before, after) = (owners(&few), owners(&more));
        for node in &more {
            let own = after.values().filter(|owner| ***owner == *node.name).count();
            assert!((1_800..2_200).contains(&own), "{}: {own} of 10,000", node.name);
        }
        let moved: Vec<_> = before.iter().filter(|(key, owner)| after[key] != **owner).collect();
        assert!(moved.len() <= 2_200, "{} of 10,000: 1.1 / 5", moved.len());
        assert!(moved.iter().all(|(key, _)| &*after[*key] == "e"), "no other key moves");
    }
}
