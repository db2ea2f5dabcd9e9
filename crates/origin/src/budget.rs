//! Budget of retries, as a share of requests, so that a failing origin never gets a multiple of its
//! load.

use std::sync::atomic::{AtomicU32, Ordering};

/// Tokens that one retry costs; a request adds its percentage of them.
const RETRY: u32 = 100;

/// Retries permitted at once after a quiet time. Small compared to any harmful load, large enough
/// for a site with a request every few seconds.
const BURST: u32 = 10;

/// A token bucket filled by requests and emptied by retries, shared by all cores.
#[derive(Debug)]
pub(crate) struct RetryBudget {
    tokens: AtomicU32,
    percent: u32,
}

impl RetryBudget {
    /// A full bucket; with `percent` 0 an empty one that stays empty.
    pub(crate) fn new(percent: u32) -> Self {
        let full = if percent == 0 { 0 } else { RETRY * BURST };
        Self { tokens: AtomicU32::new(full), percent }
    }

    /// Counts a request.
    pub(crate) fn deposit(&self) {
        let add = |n: u32| {
            let full = if self.percent == 0 { 0 } else { RETRY * BURST };
            (n < full).then(|| n.saturating_add(self.percent).min(full))
        };
        // A full bucket, the usual state, is only read.
        let _ = self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Takes a retry from the budget, if there is one.
    pub(crate) fn withdraw(&self) -> bool {
        let take = |n: u32| n.checked_sub(RETRY);
        self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_stay_within_their_share_of_requests() {
        let budget = RetryBudget::new(20);
        let mut retries = 0;
        for _ in 0..10_000 {
            budget.deposit();
            retries += u32::from(budget.withdraw());
        }
        assert!((2_000..=2_000 + BURST).contains(&retries), "{retries}");
    }

    #[test]
    fn quiet_times_save_up_no_more_than_a_burst() {
        let budget = RetryBudget::new(100);
        for _ in 0..1_000 {
            budget.deposit();
        }
        let retries = (0..1_000).filter(|_| budget.withdraw()).count();
        assert_eq!(retries, BURST as usize);
    }

    #[test]
    fn no_share_means_no_retries() {
        let budget = RetryBudget::new(0);
        budget.deposit();
        assert!(!budget.withdraw());
    }
}
