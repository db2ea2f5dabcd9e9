//! Keys whose last fetch failed while a stale response could stand in: for a second nobody repeats
//! the fetch.

use std::cell::RefCell;
use std::collections::HashMap;

use message::freshness::Freshness;

/// Milliseconds for which a failed fetch is not repeated while a stale response stands in.
const RETRY_MS: u64 = 1_000;
/// Keys remembered as failing. Beyond this number the next request of a key tries it again.
const KEYS_MAX: usize = 100_000;

/// The last failed fetch of a key.
#[derive(Clone, Copy)]
struct LastFailure {
    /// The origin could not be reached; otherwise it answered with an error.
    unreachable: bool,
    /// Monotonic milliseconds of the next try.
    retry_ms: u64,
}

/// One core's failing keys, by their hash.
#[derive(Default)]
pub(crate) struct Failing(RefCell<HashMap<u64, LastFailure>>);

impl Failing {
    /// Notes the end of a fetch for the store at `now_ms`: `Some(unreachable)` when it failed.
    pub(crate) fn note(&self, key_hash: u64, failed: Option<bool>, now_ms: u64) {
        let mut failing = self.0.borrow_mut();
        match failed {
            Some(unreachable) if failing.len() < KEYS_MAX => {
                failing.insert(key_hash, LastFailure { unreachable, retry_ms: now_ms + RETRY_MS });
            }
            Some(_) => {}
            None => _ = failing.remove(&key_hash),
        }
    }

    /// Tells whether a response with these times stands in for the failing key without a wait.
    /// `Some(true)` asks the caller to try the fetch again behind the answer, once a second.
    pub(crate) fn stands_in(&self, key_hash: u64, times: &Freshness, now_ms: u64) -> Option<bool> {
        let mut failing = self.0.borrow_mut();
        let failure = failing.get_mut(&key_hash)?;
        let may = match failure.unreachable {
            true => times.may_serve_unreachable(now_ms),
            false => times.may_serve_on_error(now_ms),
        };
        let due = may && now_ms >= failure.retry_ms;
        if due {
            failure.retry_ms = now_ms + RETRY_MS;
        }
        may.then_some(due)
    }

    /// Forgets keys that nobody has asked for during the last minute: their origin may be back.
    pub(crate) fn sweep(&self, now_ms: u64) {
        self.0.borrow_mut().retain(|_, failure| now_ms < failure.retry_ms + 60 * RETRY_MS);
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
        let failing = Failing::default();
        assert_eq!(failing.stands_in(7, &times(), 10), None);
        failing.note(7, Some(true), 10);
        assert_eq!(failing.stands_in(7, &times(), 11), Some(false));
        assert_eq!(failing.stands_in(7, &times(), 1_010), Some(true));
        assert_eq!(failing.stands_in(7, &times(), 1_011), Some(false));
        assert_eq!(failing.stands_in(8, &times(), 1_011), None);
        failing.note(7, None, 1_012);
        assert_eq!(failing.stands_in(7, &times(), 1_013), None);
    }

    #[test]
    fn a_key_is_forgotten_after_a_minute_without_requests() {
        let failing = Failing::default();
        failing.note(7, Some(false), 0);
        failing.sweep(60_999);
        assert_eq!(failing.stands_in(7, &times(), 500), Some(false));
        failing.sweep(61_000);
        assert_eq!(failing.stands_in(7, &times(), 500), None);
    }
}
