//! The tally of a run: its figures.

use super::network::Traffic;

/// The figures of a run.
#[derive(Debug, Default)]
pub(super) struct RunFigures {
    pub(super) served: u64,
    pub(super) from_cache: u64,
    pub(super) all: u64,
    pub(super) quorum: u64,
    pub(super) doubts: u64,
    pub(super) made: u64,
    /// By region: milliseconds from a purge until a node of it had applied it.
    pub(super) in_force_ms: Vec<Vec<u64>>,
    /// Milliseconds until a purge with `all` was acknowledged.
    pub(super) all_ms: Vec<u64>,
    pub(super) traffic: Traffic,
}

impl RunFigures {
    pub(super) fn new(regions: usize) -> Self {
        let in_force_ms = vec![Vec::new(); regions];
        Self { in_force_ms, traffic: Traffic::new(regions), ..Self::default() }
    }
}
