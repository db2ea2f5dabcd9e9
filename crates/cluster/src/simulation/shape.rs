//! The shape of a simulated cluster: how many nodes in how many regions, its times, and what goes
//! wrong.

use std::ops::RangeInclusive;

/// A bug that a check has to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bug {
    /// A node takes what comes next behind a gap, and trusts.
    PassesOverGaps,
    /// Trust that has begun does not end.
    TrustsWithoutEnd,
    /// A node says that it has applied an entry, and applies it half a second later.
    SpeaksTooSoon,
    /// Nobody knows when an entry was stored: the same one that is stored again is the same.
    KnowsNoTimes,
    /// A node does not mind that another one has its name.
    SharesItsName,
}

/// A shape.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) nodes: RangeInclusive<usize>,
    /// The stream is in the first one.
    pub(super) regions: usize,
    pub(super) max_isolation_ms: u64,
    /// Nodes start within this time.
    pub(super) first_ms: u64,
    /// The longest pause between two purges; 0 for none.
    pub(super) purge_ms: u64,
    /// The longest pause between two requests.
    pub(super) serve_ms: u64,
    /// The longest pause between two troubles; 0 for none.
    pub(super) trouble_ms: u64,
    /// Until then there are troubles and purges. Then all is healed.
    pub(super) troubles_ms: u64,
    /// The time after that, in which all have to converge.
    pub(super) calm_ms: u64,
    /// One message of so many is lost between regions, and comes again a round trip later.
    pub(super) lost_one_in: u32,
    /// Two troubles of three are a stream that loses its end, or a node that hears nothing.
    pub(super) loses_often: bool,
    /// There is a copy of the first node, by its name, which runs at times.
    pub(super) has_twin: bool,
    pub(super) bug: Option<Bug>,
}

impl Shape {
    /// Some nodes, and another of the first one's name.
    pub(super) fn twins() -> Self {
        Self { has_twin: true, calm_ms: 20_000, ..Self::few() }
    }

    /// Some nodes in one place, with much trouble.
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

    /// The same where the stream often loses what it acknowledged, and nodes do not hear that it
    /// has acknowledged what they told.
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

    /// Nodes in regions, with trouble of regions, too.
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

    /// Many nodes with the times that nodes have unless told otherwise: purges on any of them, and
    /// `trouble_ms` between two troubles.
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

    /// The same without troubles, and with `purges` a second for `seconds`.
    pub(super) fn calm(self, purges: u64, seconds: u64) -> Self {
        let purge_ms = 2_000_u64.checked_div(purges).unwrap_or(0);
        Self { trouble_ms: 0, purge_ms, troubles_ms: seconds * 1_000, ..self }
    }

    /// Milliseconds after `max_isolation` within which a purge with `quorum` is in force: clocks
    /// differ by up to two in a hundred.
    pub(super) fn quorum_slack_ms(&self) -> u64 {
        self.max_isolation_ms / 40 + 200
    }
}

/// A number that the environment says.
pub(super) fn told(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|number| number.parse().ok())
}
