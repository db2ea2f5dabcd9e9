//! The applied invalidations, by identity: one that arrives again, from a journal or by a second
//! path through a cluster, must have no effect.

use crate::invalidation::Id;

/// Processes whose invalidations are remembered. Beyond this number the one silent for longest is
/// forgotten.
const NODES_MAX: usize = 256;
/// Runs of sequences remembered for a process. Beyond this number the oldest is forgotten; its
/// invalidations are applied again if they arrive again, which removes more than necessary, and
/// never less.
const RUNS_MAX: usize = 1_024;

/// Identities as runs of sequences by process, the latest process last.
#[derive(Debug, Default)]
pub struct AppliedInvalidations(Vec<Node>);

#[derive(Debug)]
struct Node {
    node: u64,
    /// First and last sequence of each run, in order, with gaps between runs.
    runs: Vec<(u64, u64)>,
}

impl AppliedInvalidations {
    /// Returns true if the invalidation with this identity was applied.
    pub fn has(&self, id: Id) -> bool {
        let node = self.0.iter().rev().find(|node| node.node == id.node);
        node.is_some_and(|node| {
            let at = node.after(id.sequence);
            at > 0 && node.runs[at - 1].1 >= id.sequence
        })
    }

    /// Adds an identity. Returns false if it was present.
    pub fn insert(&mut self, id: Id) -> bool {
        match self.0.iter().rposition(|node| node.node == id.node) {
            Some(at) => self.0[at..].rotate_left(1),
            None => {
                if self.0.len() == NODES_MAX {
                    self.0.remove(0);
                }
                self.0.push(Node { node: id.node, runs: Vec::new() });
            }
        }
        self.0.last_mut().is_some_and(|node| node.insert(id.sequence))
    }
}

impl Node {
    /// The index of the first run that begins behind `sequence`.
    fn after(&self, sequence: u64) -> usize {
        self.runs.partition_point(|(first, _)| *first <= sequence)
    }

    fn insert(&mut self, sequence: u64) -> bool {
        let at = self.after(sequence);
        let before = at.checked_sub(1).map(|at| self.runs[at].1);
        if before.is_some_and(|last| last >= sequence) {
            return false;
        }
        let joins_before = before.is_some_and(|last| last + 1 == sequence);
        let joins_after = self.runs.get(at).is_some_and(|(first, _)| *first == sequence + 1);
        match (joins_before, joins_after) {
            (true, true) => {
                self.runs[at - 1].1 = self.runs[at].1;
                self.runs.remove(at);
            }
            (true, false) => self.runs[at - 1].1 = sequence,
            (false, true) => self.runs[at].0 = sequence,
            (false, false) => {
                self.runs.insert(at, (sequence, sequence));
                if self.runs.len() > RUNS_MAX {
                    self.runs.remove(0);
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn id(node: u64, sequence: u64) -> Id {
        Id { node, sequence }
    }

    proptest! {
        #[test]
        fn it_remembers_as_a_set_does(ids in prop::collection::vec((0..3_u64, 0..40_u64), 0..200)) {
            let (mut applied, mut set) = (AppliedInvalidations::default(), BTreeSet::new());
            for (node, sequence) in ids {
                prop_assert_eq!(applied.has(id(node, sequence)), set.contains(&(node, sequence)));
                let new = applied.insert(id(node, sequence));
                prop_assert_eq!(new, set.insert((node, sequence)));
            }
            for node in &applied.0 {
                prop_assert!(node.runs.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0));
            }
        }
    }

    #[test]
    fn the_largest_sequence_is_one_like_others() {
        let mut applied = AppliedInvalidations::default();
        assert!(applied.insert(id(1, u64::MAX)) && applied.insert(id(1, u64::MAX - 1)));
        assert!(!applied.insert(id(1, u64::MAX)) && !applied.has(id(1, 0)));
    }

    #[test]
    fn what_is_beyond_the_bounds_is_forgotten_the_oldest_first() {
        let mut applied = AppliedInvalidations::default();
        for n in 0..=RUNS_MAX as u64 {
            assert!(applied.insert(id(0, 2 * n)));
        }
        assert!(!applied.has(id(0, 0)) && applied.has(id(0, 2)));
        for node in 1..=NODES_MAX as u64 {
            applied.insert(id(node, 1));
            applied.insert(id(1, 1));
        }
        assert_eq!(applied.0.len(), NODES_MAX);
        assert!(!applied.has(id(0, 2)) && applied.has(id(1, 1)));
    }
}
