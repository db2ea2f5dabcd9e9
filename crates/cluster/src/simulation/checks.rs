//! The checks of a simulated cluster: its purges and requests, and the claims about every response.

use std::rc::Rc;

use super::events::SimulationEvent;
use super::message::{KEYS, ToServer};
use super::node::WaitingPurge;
use super::shape::Bug;
use super::simulated_cluster::{Promise, SimulatedCluster};
use crate::Level;
use crate::members::AppliedRuns;

impl SimulatedCluster {
    pub(super) fn serve(&mut self) {
        let in_ms = self.rng.u64(1..self.shape.serve_ms);
        self.later(in_ms, SimulationEvent::Serve);
        let at = self.rng.usize(..self.nodes.len());
        if self.nodes[at].up && !self.nodes[at].stopped {
            self.serve_at(at);
        }
    }

    /// A request at a node.
    pub(super) fn serve_at(&mut self, at: usize) {
        let key = self.rng.usize(..KEYS);
        let version = self.version_at(at, key);
        let (seed, now_ms, node) = (self.seed, self.now_ms, &self.nodes[at]);
        let is_stale = |key_of: usize, least: u64| key_of == key && version < least;
        for Promise { id, since_ms, of: (of, least), by } in &self.promised {
            // A node that was away gets it from the stream alone. If the stream has lost it without
            // notice, only nodes that have applied it can reveal the loss, once they are connected
            // again.
            let is_lost = self.server.lost.contains(id) && !by.contains(&node.run);
            if is_stale(*of, *least) && !is_lost {
                self.broken = Some(format!(
                    "seed {seed}: {} served {key} of version {version} at {now_ms}, and {least} \
                     was acknowledged by all at {since_ms}",
                    node.name
                ));
                return;
            }
        }
        let over_ms = self.shape.max_isolation_ms + self.shape.quorum_slack_ms();
        for (id, since_ms, (of, least)) in &self.quorum {
            // The stream may have lost it, in spite of its acknowledgement.
            let is_kept = !self.server.lost.contains(id);
            if is_stale(*of, *least) && is_kept && now_ms > since_ms + over_ms {
                self.broken = Some(format!(
                    "seed {seed}: {} served {key} of version {version} at {now_ms}, and the \
                     stream has had {least} since {since_ms}",
                    node.name
                ));
                return;
            }
        }
    }

    /// The version in a node's response.
    fn version_at(&mut self, at: usize, key: usize) -> u64 {
        let (now_ms, truth) = (self.now_ms, self.truth[key]);
        let node = &mut self.nodes[at];
        let until_ms = node.follower.trusted_until_ms();
        let has_no_end = self.shape.bug == Some(Bug::TrustsWithoutEnd) && until_ms > 0;
        let trusts = has_no_end || node.clock(now_ms) < until_ms;
        let doubted_ms = node.doubted_ms;
        let usable = |(_, stored_ms): &&(u64, u64)| trusts && *stored_ms > doubted_ms;
        let cached = node.cache.get(&key).filter(usable).copied();
        let (version, stored_ms) = cached.unwrap_or((truth, now_ms));
        node.cache.insert(key, (version, stored_ms));
        self.counts.served += 1;
        self.counts.from_cache += u64::from(cached.is_some());
        version
    }

    pub(super) fn purge(&mut self) {
        let most_ms = self.shape.purge_ms;
        if most_ms == 0 || self.now_ms >= self.shape.troubles_ms {
            return;
        }
        let in_ms = self.rng.u64(most_ms / 60..most_ms);
        self.later(in_ms, SimulationEvent::Purge);
        let (at, key) = (self.rng.usize(..self.nodes.len()), self.rng.usize(..KEYS));
        if !self.nodes[at].up || self.nodes[at].stopped {
            return;
        }
        self.truth[key] += 1;
        let levels = [Level::Local, Level::Quorum, Level::All, Level::All, Level::All];
        let level = levels[self.rng.usize(..levels.len())];
        let purged = (key, self.truth[key]);
        let entry = self.entry(at, level, purged);
        self.counts.made += 1;
        self.made.insert(entry.id, (self.now_ms, purged));
        self.nodes[at].apply(&entry);
        self.send(at, ToServer::Publish(Rc::clone(&entry)));
        let applied = AppliedRuns::from([self.nodes[at].run]);
        let (sent_ms, stored, checked) = (self.now_ms, None, None);
        let waiting = WaitingPurge { level, purged, sent_ms, entry, stored, checked, applied };
        self.nodes[at].waiting.push(waiting);
    }

    /// Checks, some time after all faults were healed, that all nodes have reached the stream's end
    /// and trust, and that no purge was lost that the stream has acknowledged or whose maker lives.
    pub(super) fn converged(&mut self) -> Result<(), String> {
        let (seed, now_ms) = (self.seed, self.now_ms);
        let (epoch, last) = (self.server.epoch, self.server.log.len() as u64);
        for node in self.nodes.iter().filter(|node| node.up) {
            let at = node.follower.position().map(|at| (at.epoch.0, at.sequence));
            let trusts = node.clock(now_ms) < node.follower.trusted_until_ms();
            if at != Some((epoch, last)) || !trusts {
                let name = &node.name;
                return Err(format!(
                    "seed {seed}: {name} is at {at:?} of {epoch} {last}, trusts: {trusts}"
                ));
            }
            if let Some(own) = node.waiting.iter().find(|own| own.stored.is_none()) {
                return Err(format!("seed {seed}: {:?} was never sent", own.entry));
            }
        }
        let alive: Vec<_> = self.nodes.iter().filter(|own| own.up).map(|own| own.run).collect();
        let mut least = [0; KEYS];
        for (id, (_, (key, version))) in &self.made {
            let is_told = self.server.stored.contains(id) || alive.contains(&id.run);
            if is_told && !self.server.lost.contains(id) {
                least[*key] = (*version).max(least[*key]);
            }
        }
        for at in 0..self.nodes.len() {
            if !self.nodes[at].up {
                continue;
            }
            for (key, least) in least.iter().enumerate() {
                let version = self.version_at(at, key);
                if version < *least {
                    return Err(format!(
                        "seed {seed}: n{at} has {key} of version {version} in the end, not {least}"
                    ));
                }
            }
        }
        Ok(())
    }
}
