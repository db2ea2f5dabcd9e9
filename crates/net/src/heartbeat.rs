//! Heartbeats of the cores: a core that no longer does its periodic work shows by a count that
//! stands still.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of periodic rounds of each core, one a second.
#[derive(Clone, Debug)]
pub struct Heartbeats(Arc<[CoreHeartbeat]>);

#[derive(Debug, Default)]
struct CoreHeartbeat {
    beats: AtomicU64,
    /// The longest turn of the event loop since the last [`Heartbeats::take_longest`], in
    /// milliseconds.
    turn_ms: AtomicU64,
}

impl Heartbeats {
    /// Heartbeats of `cores` cores.
    pub fn new(cores: usize) -> Self {
        Self((0..cores).map(|_| CoreHeartbeat::default()).collect())
    }

    /// Counts a round of core `index`.
    pub fn beat(&self, index: usize) {
        if let Some(core) = self.0.get(index) {
            core.beats.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notes a long turn of core `index`.
    pub fn turned(&self, index: usize, ms: u64) {
        if let Some(core) = self.0.get(index) {
            core.turn_ms.fetch_max(ms, Ordering::Relaxed);
        }
    }

    /// Takes the longest turn since the last call, with the number of its core.
    pub fn take_longest(&self) -> Option<(usize, u64)> {
        let turns = self.0.iter().map(|core| core.turn_ms.swap(0, Ordering::Relaxed));
        turns.enumerate().filter(|(_, ms)| *ms > 0).max_by_key(|(_, ms)| *ms)
    }

    /// The rounds of each core since the start.
    pub fn beats(&self) -> Vec<u64> {
        self.0.iter().map(|core| core.beats.load(Ordering::Relaxed)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_turn_is_told_once() {
        let heartbeats = Heartbeats::new(2);
        assert_eq!(heartbeats.take_longest(), None);
        heartbeats.turned(0, 120);
        heartbeats.turned(1, 300);
        heartbeats.turned(1, 200);
        assert_eq!(heartbeats.take_longest(), Some((1, 300)));
        assert_eq!(heartbeats.take_longest(), None);
    }
}
