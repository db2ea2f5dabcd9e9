//! The nodes of a cluster that share what they store, and which of them owns a key.

use std::fmt;
use std::sync::Arc;

use base::HashSeed;
use origin::Origin;
use policy::DecisionStep;
use tls::{ClientAuth, Roster};

/// Exchanges under way with one node that are few, whatever the others have.
const FEW: u64 = 16;

/// An entry of the cluster's stream of invalidations, and all before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidationPosition {
    /// The stream's creation: another stream counts anew.
    pub epoch: u64,
    /// The last entry.
    pub sequence: u64,
    /// When the stream stored it, in nanoseconds since 1970, if it is known: a stream that has lost
    /// it gives its place to another.
    pub stored_ns: Option<u64>,
}

/// The node's standing in its cluster, as far as sharing goes by it.
pub trait ClusterStanding: fmt::Debug + Send + Sync {
    /// All that it has applied, if everything that it has invalidated itself is among that, and it
    /// may use what it stores; `None` where it is better to ask nobody.
    fn asks(&self) -> Option<InvalidationPosition>;
    /// Returns true if it has applied as much, and may use what it stores.
    fn has_applied(&self, applied: InvalidationPosition) -> bool;
}

/// A node.
#[derive(Debug)]
pub struct PeerNode {
    name: Box<str>,
    /// Its place in the order of owners.
    seed: HashSeed,
    /// The way to it; `None` for this node.
    way: Option<Arc<Origin>>,
}

impl PeerNode {
    /// The node `name`, asked by `way`; by none it is this node.
    pub fn new(name: &str, way: Option<Arc<Origin>>) -> Self {
        let number = HashSeed::from_u64(0).hash(name.as_bytes());
        Self { name: name.into(), seed: HashSeed::from_u64(number), way }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The way to it; `None` for this node.
    pub fn way(&self) -> Option<&Arc<Origin>> {
        self.way.as_ref()
    }
}

/// The nodes that share.
#[derive(Debug)]
pub struct Peers {
    /// Those that own keys, by their names.
    pub nodes: Vec<PeerNode>,
    /// The check of connections to the node's own port for the others.
    pub auth: ClientAuth,
    /// Those that it lets in.
    pub roster: Arc<Roster>,
    /// The server that this port shakes hands with.
    pub server: Arc<tls::ServerContext>,
    /// The node's own standing.
    pub standing: Arc<dyn ClusterStanding>,
}

impl Peers {
    /// The node that owns `key`: the first in the key's own order of nodes that is well, and not
    /// busier than others. All nodes agree on the order, and a node more changes the owner of no
    /// more keys than become its own.
    pub(crate) fn owner(&self, key: &[u8]) -> Option<&PeerNode> {
        let ways = || self.nodes.iter().filter_map(|node| node.way.as_ref());
        let in_flight: u64 = ways().map(|way| u64::from(way.in_flight())).sum();
        let mean = in_flight / (ways().count() as u64).max(1);
        let most = (mean + mean / 4).max(FEW);
        let is_open = |way: &Arc<Origin>| way.is_healthy() && u64::from(way.in_flight()) <= most;
        let open = self.nodes.iter().filter(|node| node.way.as_ref().is_none_or(is_open));
        open.max_by_key(|node| node.seed.hash(key))
    }

    /// The owner of `key` in words, for a forecast, if there is one.
    pub(crate) fn foretell(&self, key: &[u8]) -> Option<DecisionStep> {
        let owner = self.owner(key)?;
        let why = match &owner.way {
            Some(_) => {
                format!("node `{}` owns it, and would be asked before the origin", owner.name)
            }
            None => "this one owns it, and fetches it for all".to_owned(),
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
