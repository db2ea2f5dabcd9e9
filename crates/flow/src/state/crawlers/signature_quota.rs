//! Quota of signatures: how many a core verifies in a second. Verifying one takes as long as a
//! hundred hits.

use std::cell::Cell;

use base::Now;

/// The signatures that a core has verified in the present second.
#[derive(Debug, Default)]
pub(crate) struct SignatureQuota {
    second: Cell<u64>,
    verified: Cell<u64>,
}

impl SignatureQuota {
    /// Takes one of the `most` signatures of this second; false if none is left.
    pub(crate) fn take(&self, most: u64, now: Now) -> bool {
        let second = now.mono_ms / 1000;
        if self.second.replace(second) != second {
            self.verified.set(0);
        }
        let is_left = self.verified.get() < most;
        if is_left {
            self.verified.set(self.verified.get() + 1);
        }
        is_left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_has_a_quota_of_its_own() {
        let quota = SignatureQuota::default();
        let take = |mono_ms| quota.take(2, Now { mono_ms, unix_ms: 0 });
        assert_eq!(
            [0, 500, 999, 1000, 1001, 1999, 7000].map(take),
            [true, true, false, true, true, false, true]
        );
        assert!(!quota.take(0, Now { mono_ms: 9000, unix_ms: 0 }));
    }
}
