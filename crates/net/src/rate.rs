//! Least rates of streams: how far a transfer is behind the slowest that is allowed.
//!
//! Time counts only while the client is what the transfer waits for, so that neither a slow origin
//! nor other streams are held against it. What was moved faster is no credit for later: whoever
//! took megabytes may not hold an origin's connection for hours after that.

/// Longest time between two looks that is held against the client: a machine that stood still is
/// none of its doing.
const LOOK_MS: u64 = 5_000;

/// Bytes that a transfer is behind the least rate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Behind(u64);

impl Behind {
    /// Bytes have moved.
    pub(crate) fn moved(&mut self, bytes: u64) {
        self.0 = self.0.saturating_sub(bytes);
    }

    /// The client was waited for, for so long; whether it has been below `rate`, in bytes per
    /// second, for longer than `leeway_ms`.
    pub(crate) fn waited(&mut self, ms: u64, rate: u64, leeway_ms: u64) -> bool {
        self.0 = self.0.saturating_add(rate.saturating_mul(ms.min(LOOK_MS)) / 1000);
        self.0 > rate.saturating_mul(leeway_ms) / 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds after which a client that moves `bytes` every second is too slow, of an hour.
    fn ends(bytes: u64) -> Option<u64> {
        let mut behind = Behind::default();
        (1..=3600).find(|_| {
            behind.moved(bytes);
            behind.waited(1_000, 1024, 60_000)
        })
    }

    #[test]
    fn slower_than_the_rate_is_allowed_for_the_leeway() {
        assert_eq!(ends(0), Some(61));
        assert_eq!(ends(1), Some(61));
        assert_eq!(ends(512), Some(120));
        assert_eq!(ends(1024), None);
    }

    #[test]
    fn what_was_taken_faster_is_no_credit() {
        let mut behind = Behind::default();
        behind.moved(1 << 30);
        let ended = (1..).find(|_| behind.waited(1_000, 1024, 60_000));
        assert_eq!(ended, Some(61));
    }

    #[test]
    fn without_a_rate_nothing_is_too_slow_and_a_machine_that_stood_still_is_not_held_against_it() {
        let mut behind = Behind::default();
        assert!(!behind.waited(u64::MAX, 0, 0));
        assert!(!behind.waited(3_600_000, 1024, 10_000));
    }
}
