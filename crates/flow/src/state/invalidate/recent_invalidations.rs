//! Recent invalidations: the latest ones that reached something, with what they reached.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cache::Ban;
use parking_lot::Mutex;
use smallvec::SmallVec;

/// Invalidations that are remembered.
const RECENT_MAX: usize = 100;
/// Longest text of one.
const TEXT_CHARS_MAX: usize = 300;

/// An invalidation that was carried out.
#[derive(Clone, Debug)]
pub struct RecentInvalidation {
    /// The time at which it was made, in milliseconds since 1970.
    pub unix_ms: u64,
    /// The responses that it selects: a URL, or a ban's text.
    pub selection: Box<str>,
    /// True if responses only became stale.
    pub soft: bool,
    /// Stored responses that its keys selected.
    at_once: u64,
    /// Counters of its bans, which go on to reach responses. The bans themselves are kept by the
    /// store, only as long as it needs them.
    reached: SmallVec<[Arc<AtomicU64>; 1]>,
}

impl RecentInvalidation {
    pub(crate) fn new(
        unix_ms: u64,
        mut selection: String,
        soft: bool,
        at_once: u64,
        bans: &[Arc<Ban>],
    ) -> Self {
        // Short ones are not counted by characters.
        if selection.len() > TEXT_CHARS_MAX
            && let Some((end, _)) = selection.char_indices().nth(TEXT_CHARS_MAX)
        {
            selection.truncate(end);
        }
        let reached = bans.iter().map(|ban| ban.object_counter()).collect();
        Self { unix_ms, selection: selection.into(), soft, at_once, reached }
    }

    /// Stored responses that it has reached so far.
    pub fn objects(&self) -> u64 {
        let of_bans = self.reached.iter().map(|reached| reached.load(Ordering::Relaxed));
        self.at_once + of_bans.sum::<u64>()
    }
}

/// The latest invalidations.
#[derive(Debug, Default)]
pub(crate) struct RecentInvalidations(Mutex<VecDeque<RecentInvalidation>>);

impl RecentInvalidations {
    /// Notes an invalidation that selects by description, or has reached something.
    pub(crate) fn note(&self, invalidation: RecentInvalidation) {
        if invalidation.at_once == 0 && invalidation.reached.is_empty() {
            return;
        }
        let mut all = self.0.lock();
        if all.len() >= RECENT_MAX {
            all.pop_front();
        }
        all.push_back(invalidation);
    }

    /// All of them, the oldest first.
    pub(crate) fn list(&self) -> Vec<RecentInvalidation> {
        self.0.lock().iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_that_reached_something_are_remembered() {
        let recent = RecentInvalidations::default();
        for n in 0..RECENT_MAX as u64 + 5 {
            recent.note(RecentInvalidation::new(n, "http://a/".to_owned(), false, 1 + n % 2, &[]));
            recent.note(RecentInvalidation::new(n, "http://a/nothing".to_owned(), false, 0, &[]));
        }
        let all = recent.list();
        assert_eq!((all.len(), all[0].unix_ms, all[0].objects()), (RECENT_MAX, 5, 2));
        let long = RecentInvalidation::new(0, "é".repeat(1_000), true, 1, &[]);
        assert_eq!(long.selection.chars().count(), TEXT_CHARS_MAX);
    }
}
