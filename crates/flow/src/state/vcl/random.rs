//! Random numbers for programs: good enough to spread requests. They must never be used for
//! secrets.

use std::sync::atomic::{AtomicU64, Ordering};

use base::HashSeed;

/// A generator that all cores share.
#[derive(Debug)]
pub(crate) struct Random {
    seed: HashSeed,
    turn: AtomicU64,
}

impl Default for Random {
    fn default() -> Self {
        Self { seed: HashSeed::random(), turn: AtomicU64::new(0) }
    }
}

impl Random {
    /// A number from 0 to below 1: a keyed hash of the count of calls.
    pub(crate) fn next(&self) -> f64 {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let bits = self.seed.hash(&turn.to_le_bytes()) >> (u64::BITS - f64::MANTISSA_DIGITS);
        bits as f64 / (1_u64 << f64::MANTISSA_DIGITS) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spread_from_0_to_1() {
        let random = Random::default();
        let mut tenths = [0_u32; 10];
        for _ in 0..10_000 {
            let number = random.next();
            assert!((0.0..1.0).contains(&number));
            tenths[(number * 10.0) as usize] += 1;
        }
        assert!(tenths.iter().all(|n| (700..1300).contains(n)), "{tenths:?}");
    }
}
