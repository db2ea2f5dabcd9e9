//! Conditions of a delay line: delay, jitter, rate and loss.

use std::num::NonZeroU64;
use std::time::Duration;

/// The conditions, equal in both directions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conditions {
    /// Time from one end to the other; a round trip takes twice as long.
    pub delay: Duration,
    /// Largest addition to the delay, drawn uniformly for each piece.
    pub jitter: Duration,
    /// Bytes per second in each direction of each connection; `None` for no limit.
    pub rate: Option<NonZeroU64>,
    /// Share of lost segments of 1,460 bytes, from 0 to 1. A lost segment, and all behind it,
    /// arrives later by a retransmission timeout: 200 ms, or a round trip if that is longer.
    pub loss: f64,
    /// Seed of random draws.
    pub seed: u64,
}
