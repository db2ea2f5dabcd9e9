//! Whether every core still does its chores.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts each core's rounds of chores, one a second.
#[derive(Clone, Debug)]
pub struct Pulse(Arc<[AtomicU64]>);

impl Pulse {
    /// For so many cores.
    pub fn new(cores: usize) -> Self {
        Self((0..cores).map(|_| AtomicU64::new(0)).collect())
    }

    /// Counts a round of core `index`.
    pub fn beat(&self, index: usize) {
        if let Some(beats) = self.0.get(index) {
            beats.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The rounds so far, core by core.
    pub fn beats(&self) -> Vec<u64> {
        self.0.iter().map(|beats| beats.load(Ordering::Relaxed)).collect()
    }
}
