//! Allowance of processor time for making further forms of stored bodies, and the counts of
//! requests that a file must reach before it gets a form.
//!
//! Must never let two forms be made at once, nor make a request wait.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use parking_lot::Mutex;

/// Milliseconds for which unused time is saved up.
const SAVED_MS: u64 = 10_000;
/// Milliseconds for which a refusal stands before the allowance is tried again.
const REFUSED_MS: u64 = 50;
/// Slots of the request counts.
const ASKED: usize = 4096;
/// Microseconds charged for a form at least, whatever the clock's resolution.
const LEAST_US: u64 = 100;

/// The making of further forms, for all cores.
#[derive(Debug, Default)]
pub(crate) struct FormWork {
    /// The share of time for it.
    pub(crate) allowance: Allowance,
    /// Counts of requests for files that may be worth a form.
    pub(crate) file_hits: FileHits,
}

/// A share of processor time that fills steadily and is charged for each form made. One form may
/// overdraw it.
#[derive(Debug, Default)]
pub(crate) struct Allowance {
    state: Mutex<State>,
    /// Monotonic milliseconds until which no request tries; hits read only this.
    refused_until_ms: AtomicU64,
}

/// The reason for which no form may be made now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AllowanceRefusal {
    /// Another form is being made, or the last refusal still stands.
    Busy,
    /// The time is used up.
    UsedUp,
}

#[derive(Debug, Default)]
struct State {
    /// Microseconds that are left; negative if overdrawn.
    left_us: i64,
    filled_ms: Option<u64>,
    is_busy: bool,
}

impl Allowance {
    /// Takes the permit to make one form.
    ///
    /// # Errors
    /// Another form is being made, or the time is used up; then all further calls fail for a while.
    pub(crate) fn begin(&self, now_ms: u64, percent: u64) -> Result<(), AllowanceRefusal> {
        if percent == 0 || now_ms < self.refused_until_ms.load(Ordering::Relaxed) {
            return Err(AllowanceRefusal::Busy);
        }
        let Some(mut state) = self.state.try_lock() else { return Err(AllowanceRefusal::Busy) };
        let most_us = (SAVED_MS * percent * 10) as i64;
        let since_ms = state.filled_ms.map_or(SAVED_MS, |before| now_ms.saturating_sub(before));
        let more_us = (since_ms.min(SAVED_MS) * percent * 10) as i64;
        state.left_us = state.left_us.saturating_add(more_us).min(most_us);
        state.filled_ms = Some(now_ms);
        let may = !state.is_busy && state.left_us > 0;
        state.is_busy |= may;
        if may {
            return Ok(());
        }
        self.refused_until_ms.store(now_ms + REFUSED_MS, Ordering::Relaxed);
        Err(if state.is_busy { AllowanceRefusal::Busy } else { AllowanceRefusal::UsedUp })
    }

    /// Returns the permit after `used_us` microseconds of work.
    pub(crate) fn end(&self, used_us: u64) {
        let mut state = self.state.lock();
        state.is_busy = false;
        state.left_us = state.left_us.saturating_sub(used_us.max(LEAST_US) as i64);
        if state.left_us > 0 {
            // A page of many fragments wants a form of each: requests refused meanwhile try again
            // at once.
            self.refused_until_ms.store(0, Ordering::Relaxed);
        }
    }
}

/// Counts of requests for files without a form, by hash. Files that share a slot are coded a little
/// sooner.
#[derive(Debug)]
pub(crate) struct FileHits(Box<[AtomicU8]>);

impl Default for FileHits {
    fn default() -> Self {
        Self(std::iter::repeat_with(AtomicU8::default).take(ASKED).collect())
    }
}

impl FileHits {
    /// Counts a request. Returns true if `hits` requests came before it.
    pub(crate) fn is_due(&self, hash: u64, hits: u32) -> bool {
        let Some(place) = self.0.get(hash as usize % ASKED) else { return false };
        let before = place.load(Ordering::Relaxed);
        // Of two simultaneous requests one may go uncounted.
        place.store(before.saturating_add(1), Ordering::Relaxed);
        u32::from(before) >= hits.min(u32::from(u8::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_allowance_fills_with_time_and_is_used_by_one_at_a_time() {
        let allowance = Allowance::default();
        assert_eq!(allowance.begin(0, 0), Err(AllowanceRefusal::Busy), "no share is no time");
        assert_eq!(allowance.begin(1000, 10), Ok(()));
        assert_eq!(allowance.begin(1000, 10), Err(AllowanceRefusal::Busy), "one at a time");
        // Ten seconds' share at a tenth is one second; two are used.
        allowance.end(2_000_000);
        assert_eq!(
            allowance.begin(1001, 10),
            Err(AllowanceRefusal::Busy),
            "the next request is refused too"
        );
        assert_eq!(allowance.begin(2000, 10), Err(AllowanceRefusal::UsedUp));
        assert_eq!(allowance.begin(10_000, 10), Err(AllowanceRefusal::UsedUp));
        assert_eq!(allowance.begin(12_000, 10), Ok(()));
        assert_eq!(allowance.begin(12_000, 10), Err(AllowanceRefusal::Busy));
        allowance.end(100);
        assert_eq!(allowance.begin(12_000, 10), Ok(()), "there is time left for the next");
    }
}
