//! Failing keys: keys whose last fetch failed while a stale response could answer. For a second
//! such a fetch is not repeated.
//!
//! Must never make a request wait, and holds a bounded number of keys.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use message::freshness::Freshness;
use parking_lot::RwLock;

/// Milliseconds for which a failed fetch is not repeated while a stale response stands in.
const RETRY_MS: u64 = 1_000;
/// Keys that are remembered. Beyond this number the next request of a key fetches again.
const KEYS_MAX: usize = 100_000;

/// The last failed fetch of a key.
struct LastFailure {
    /// The origin could not be reached; otherwise it responded with an error.
    unreachable: bool,
    /// Monotonic milliseconds of the first failure since the last success.
    since_ms: u64,
    /// Monotonic milliseconds before which no request tries again.
    retry_ms: AtomicU64,
}

impl LastFailure {
    fn may_stand_in(&self, times: &Freshness, now_ms: u64) -> bool {
        match self.unreachable {
            true => times.may_serve_unreachable(now_ms),
            false => times.may_serve_on_error(now_ms),
        }
    }
}

/// The failing keys, by their hash.
#[derive(Default)]
pub(crate) struct FailingKeys {
    keys: RwLock<HashMap<u64, LastFailure>>,
    /// Their number: mostly 0, and then requests look no further.
    len: AtomicUsize,
}

impl FailingKeys {
    /// Notes the end of a fetch for the store at `now_ms`: `Some(unreachable)` if it failed.
    pub(crate) fn note(&self, key_hash: u64, failed: Option<bool>, now_ms: u64) {
        if failed.is_none() && self.is_empty() {
            return;
        }
        let mut keys = self.keys.write();
        match failed {
            Some(unreachable) if keys.len() < KEYS_MAX => {
                let since_ms = keys.get(&key_hash).map_or(now_ms, |failure| failure.since_ms);
                let retry_ms = AtomicU64::new(now_ms + RETRY_MS);
                keys.insert(key_hash, LastFailure { unreachable, since_ms, retry_ms });
            }
            Some(_) => {}
            None => _ = keys.remove(&key_hash),
        }
        self.len.store(keys.len(), Ordering::Relaxed);
    }

    fn is_empty(&self) -> bool {
        self.len.load(Ordering::Relaxed) == 0
    }

    /// Returns `Some` if a response with these times answers for the failing key without a wait.
    /// `Some(true)` has the caller fetch in the background, once a second.
    pub(crate) fn stands_in(&self, key_hash: u64, times: &Freshness, now_ms: u64) -> Option<bool> {
        if self.is_empty() {
            return None;
        }
        let keys = self.keys.read();
        let failure = keys.get(&key_hash)?;
        let may = failure.may_stand_in(times, now_ms);
        let retry_ms = failure.retry_ms.load(Ordering::Relaxed);
        let next_ms = now_ms + RETRY_MS;
        let (success, or) = (Ordering::Relaxed, Ordering::Relaxed);
        let claim = || failure.retry_ms.compare_exchange(retry_ms, next_ms, success, or).is_ok();
        may.then(|| now_ms >= retry_ms && claim())
    }

    /// Returns true if the last fetch of the key failed.
    pub(crate) fn is_failing(&self, key_hash: u64) -> bool {
        !self.is_empty() && self.keys.read().contains_key(&key_hash)
    }

    /// The result of [`FailingKeys::stands_in`] for a forecast: monotonic milliseconds since which
    /// the key fails, if a response with these times answers. Claims no retry.
    pub(crate) fn foresee(&self, key_hash: u64, times: &Freshness, now_ms: u64) -> Option<u64> {
        let keys = self.keys.read();
        let failure = keys.get(&key_hash)?;
        failure.may_stand_in(times, now_ms).then_some(failure.since_ms)
    }

    /// Forgets keys that were not requested during the last minute: their origin may work again.
    pub(crate) fn sweep(&self, now_ms: u64) {
        if self.is_empty() {
            return;
        }
        let mut keys = self.keys.write();
        keys.retain(|_, failure| now_ms < *failure.retry_ms.get_mut() + 60 * RETRY_MS);
        self.len.store(keys.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times() -> Freshness {
        Freshness {
            born_ms: 0,
            lifetime_ms: 1,
            grace_ms: 0,
            stale_if_error_ms: 1_000_000,
            stale_if_unreachable_ms: 1_000_000,
            must_validate: false,
        }
    }

    #[test]
    fn a_failing_key_is_tried_once_a_second_until_a_fetch_succeeds() {
        let failing = FailingKeys::default();
        assert_eq!(failing.stands_in(7, &times(), 10), None);
        failing.note(7, Some(true), 10);
        failing.note(7, Some(true), 10);
        assert_eq!(failing.foresee(7, &times(), 500), Some(10));
        assert_eq!(failing.stands_in(7, &times(), 11), Some(false));
        assert_eq!(failing.stands_in(7, &times(), 1_010), Some(true));
        assert_eq!(failing.stands_in(7, &times(), 1_011), Some(false));
        assert_eq!(failing.stands_in(8, &times(), 1_011), None);
        failing.note(7, None, 1_012);
        assert_eq!(failing.stands_in(7, &times(), 1_013), None);
    }

    #[test]
    fn a_key_is_forgotten_after_a_minute_without_requests() {
        let failing = FailingKeys::default();
        failing.note(7, Some(false), 0);
        failing.sweep(60_999);
        assert_eq!(failing.stands_in(7, &times(), 500), Some(false));
        failing.sweep(61_000);
        assert_eq!(failing.stands_in(7, &times(), 500), None);
    }
}
