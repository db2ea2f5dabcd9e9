//! Pace of lookups of host names that clients choose: it limits the queries per second to name
//! servers.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rt::time::Instant;

/// A rate limit shared by many lookups. Two are equal if their rates are.
#[derive(Debug)]
pub struct LookupPace {
    per_second: AtomicU32,
    /// The earliest time of the next lookup.
    next: Mutex<Option<Instant>>,
}

impl PartialEq for LookupPace {
    fn eq(&self, other: &Self) -> bool {
        self.rate() == other.rate()
    }
}

impl Eq for LookupPace {}

impl LookupPace {
    /// A limit of `per_second` lookups, at least one.
    pub fn new(per_second: u32) -> Self {
        Self { per_second: AtomicU32::new(per_second), next: Mutex::default() }
    }

    /// Sets the number of lookups per second.
    pub fn set(&self, per_second: u32) {
        self.per_second.store(per_second, Ordering::Relaxed);
    }

    fn rate(&self) -> u32 {
        self.per_second.load(Ordering::Relaxed).max(1)
    }

    /// Waits until the calling lookup may start.
    pub(crate) async fn turn(&self) {
        rt::time::sleep_until(self.slot(Instant::now())).await;
    }

    /// The time at which a lookup requested `now` may start.
    fn slot(&self, now: Instant) -> Instant {
        let mut next = self.next.lock();
        let at = next.map_or(now, |next| next.max(now));
        *next = Some(at + Duration::from_secs(1) / self.rate());
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookups_begin_one_after_the_other() {
        let (pace, start) = (LookupPace::new(10), Instant::now());
        let slot = |pace: &LookupPace, ms: u64| {
            let at = pace.slot(start + Duration::from_millis(ms));
            at.duration_since(start).as_millis()
        };
        let slots: Vec<_> = (0..4).map(|_| slot(&pace, 0)).collect();
        assert_eq!(slots, [0, 100, 200, 300]);
        pace.set(1);
        assert_eq!([slot(&pace, 50), slot(&pace, 60)], [400, 1_400]);
        // Unused lookups are not saved up.
        assert_eq!([slot(&pace, 9_000), slot(&pace, 9_000)], [9_000, 10_000]);
    }

    #[tokio::test]
    async fn a_lookup_waits_for_its_turn() {
        let (pace, start) = (LookupPace::new(20), Instant::now());
        pace.turn().await;
        pace.turn().await;
        assert!(start.elapsed() >= Duration::from_millis(50));
    }
}
