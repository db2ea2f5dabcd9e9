//! Budgets for frames that cost a client less than this server.

use base::Limit;

use crate::error::ConnectionError;

/// The period of a budget.
const PERIOD_MS: u64 = 10_000;

/// Control frames for which each request, and each frame of a response's body, gives a client
/// reason: window updates of stream and connection, and a PING that measures the way (gRPC).
pub(crate) const EARNED: u64 = 3;

/// A number of frames per period.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: Limit,
    most: u64,
    spent: u64,
    since_ms: u64,
}

impl Budget {
    pub(crate) fn new(limit: Limit, most: u64, now_ms: u64) -> Self {
        Self { limit, most, spent: 0, since_ms: now_ms }
    }

    /// Counts one frame.
    ///
    /// # Errors
    /// If the budget is exceeded; the connection must end then.
    pub(crate) fn spend(
        &mut self,
        now_ms: u64,
        reason: &'static str,
    ) -> Result<(), ConnectionError> {
        if now_ms.saturating_sub(self.since_ms) >= PERIOD_MS {
            (self.since_ms, self.spent) = (now_ms, 0);
        }
        self.spent += 1;
        if self.spent > self.most {
            Err(ConnectionError::limit(self.limit, reason))
        } else {
            Ok(())
        }
    }

    /// Takes back up to `frames` counted ones: the peer has reason for as many more.
    #[inline]
    pub(crate) fn earn(&mut self, frames: u64) {
        self.spent = self.spent.saturating_sub(frames);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_spent_and_comes_again() {
        let mut budget = Budget::new(Limit::H2Resets, 2, 1_000);
        assert_eq!(budget.spend(1_000, "x"), Ok(()));
        assert_eq!(budget.spend(10_999, "x"), Ok(()));
        assert_eq!(budget.spend(10_999, "x"), Err(ConnectionError::limit(Limit::H2Resets, "x")));
        assert_eq!(budget.spend(11_000, "x"), Ok(()));
        assert_eq!(budget.spend(11_000, "x"), Ok(()));
        budget.earn(1);
        assert_eq!(budget.spend(11_000, "x"), Ok(()));
        assert!(budget.spend(11_000, "x").is_err());
    }
}
