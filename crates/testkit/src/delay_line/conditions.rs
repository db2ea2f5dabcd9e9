//! The properties of a line.

use std::num::NonZeroU64;
use std::time::Duration;

/// Properties of a line, the same in both directions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conditions {
    /// Time from one end to the other; a round trip takes twice as long.
    pub delay: Duration,
    /// The most that is added to the delay. What is added is drawn evenly for each piece read.
    pub jitter: Duration,
    /// Bytes a second in each direction of each connection; `None` if there is no bound.
    pub rate: Option<NonZeroU64>,
    /// Share of the segments of 1,460 bytes that are lost, from 0 to 1. A lost one, and all that
    /// is behind it, comes later by a retransmission timeout: 200 ms, or a round trip if longer.
    pub loss: f64,
    /// Seed of what is drawn.
    pub seed: u64,
}
