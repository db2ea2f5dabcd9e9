//! The shape of a simulated cluster: its nodes and regions, its times, and its faults.

use std::ops::RangeInclusive;

/// A bug that a check must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bug {
    /// A node accepts an entry behind a gap, and trusts.
    PassesOverGaps,
    /// A lease never ends.
    TrustsWithoutEnd,
    /// A node acknowledges an entry, and applies it half a second later.
    SpeaksTooSoon,
    /// Times of entries are ignored: an entry stored again counts as the same.
    KnowsNoTimes,
    /// A node ignores another with its name.
    SharesItsName,
}

/// A shape.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) nodes: RangeInclusive<usize>,
    /// The stream is in the first region.
    pub(super) regions: usize,
    pub(super) max_isolation_ms: u64,
    /// Nodes start within this time.
    pub(super) first_ms: u64,
    /// The longest pause between two purges; 0 for none.
    pub(super) purge_ms: u64,
    /// The longest pause between two requests.
    pub(super) serve_ms: u64,
    /// The longest pause between two faults; 0 for none.
    pub(super) trouble_ms: u64,
    /// The end of faults and purges. Then all faults are healed.
    pub(super) troubles_ms: u64,
    /// The time after that, in which all nodes must converge.
    pub(super) calm_ms: u64,
    /// One message of this many is lost between regions, and repeated a round trip later.
    pub(super) lost_one_in: u32,
    /// True if two faults of three are a stream that loses its end, or a node that gets no
    /// messages.
    pub(super) loses_often: bool,
    /// True if a copy of the first node, with its name, runs at times.
    pub(super) has_twin: bool,
    pub(super) bug: Option<Bug>,
}

impl Shape {
    /// Some nodes, and another one with the first one's name.
    pub(super) fn twins() -> Self {
        Self { has_twin: true, calm_ms: 20_000, ..Self::few() }
    }

    /// Some nodes in one region, with many faults.
    pub(super) fn few() -> Self {
        Self {
            nodes: 2..=5,
            regions: 1,
            max_isolation_ms: 3_000,
            first_ms: 1,
            purge_ms: 600,
            serve_ms: 20,
            trouble_ms: 4_000,
            troubles_ms: 60_000,
            calm_ms: 10_000,
            lost_one_in: 0,
            loses_often: false,
            has_twin: false,
            bug: None,
        }
    }

    /// [`Shape::few`] with a stream that often loses acknowledged entries, and nodes that miss
    /// acknowledgements.
    pub(super) fn losing() -> Self {
        Self {
            max_isolation_ms: 1_500,
            purge_ms: 1_000,
            serve_ms: 10,
            trouble_ms: 2_000,
            loses_often: true,
            ..Self::few()
        }
    }

    /// Nodes in regions, with faults of regions.
    pub(super) fn regions(nodes: usize, regions: usize) -> Self {
        Self {
            nodes: nodes..=nodes,
            regions,
            purge_ms: 200,
            serve_ms: 6,
            trouble_ms: 1_500,
            troubles_ms: 30_000,
            lost_one_in: 200,
            first_ms: 300,
            ..Self::few()
        }
    }

    /// Many nodes with default times: purges on any of them, and `trouble_ms` between two faults.
    pub(super) fn many(nodes: usize, regions: usize, max_isolation_ms: u64) -> Self {
        Self {
            max_isolation_ms,
            first_ms: 5_000,
            serve_ms: 2,
            trouble_ms: told("CLUSTER_TROUBLE_MS").unwrap_or(2_000),
            troubles_ms: 3 * max_isolation_ms,
            calm_ms: max_isolation_ms + 10_000,
            lost_one_in: 10_000,
            ..Self::regions(nodes, regions)
        }
    }

    /// This shape without faults, and with `purges` a second for `seconds`.
    pub(super) fn calm(self, purges: u64, seconds: u64) -> Self {
        let purge_ms = 2_000_u64.checked_div(purges).unwrap_or(0);
        Self { trouble_ms: 0, purge_ms, troubles_ms: seconds * 1_000, ..self }
    }

    /// Milliseconds after `max_isolation` within which a purge with `quorum` is in force: clocks
    /// differ by up to two percent.
    pub(super) fn quorum_slack_ms(&self) -> u64 {
        self.max_isolation_ms / 40 + 200
    }
}

/// A number from the environment.
pub(super) fn told(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|number| number.parse().ok())
}
