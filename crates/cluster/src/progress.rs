//! Progress through a stream, as the answers to questions show it. Pure.
//!
//! A server whose copy of a stream lacks what the others have delivers all it has, and no more, for
//! as long as it is followed. (NATS 2.9 with its servers cut off from each other has left such
//! copies behind.) Whoever gets no further begins anew: then another server may deliver.

/// Questions without any progress, behind the stream's end, after which a node begins anew.
const QUESTIONS: u64 = 3;
/// The shortest time for that, in milliseconds.
const SHORTEST_MS: u64 = 1_000;

/// The place that a node has come to, and since when.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StreamProgress {
    at: u64,
    since_ms: u64,
}

impl StreamProgress {
    /// A node that has come to no place yet.
    pub(crate) fn new(now_ms: u64) -> Self {
        Self { at: 0, since_ms: now_ms }
    }

    /// Takes note of the place `at` that was reached, of a stream that ends at `last`. Returns true
    /// if it is time to begin anew, for one who asks every `question_ms`.
    pub(crate) fn is_stuck(&mut self, at: u64, last: u64, now_ms: u64, question_ms: u64) -> bool {
        if at >= last || at != self.at {
            *self = Self { at, since_ms: now_ms };
            return false;
        }
        let patience_ms = (QUESTIONS * question_ms).max(SHORTEST_MS);
        now_ms.saturating_sub(self.since_ms) >= patience_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_gets_no_further_is_stuck_and_whoever_is_slow_is_not() {
        let mut own = StreamProgress::new(0);
        // Nothing is missing, for however long.
        assert!(!own.is_stuck(5, 5, 0, 500) && !own.is_stuck(5, 5, 90_000, 500));
        // The end has moved on; it has a time of its own from here on.
        assert!(!own.is_stuck(5, 6, 91_499, 500) && own.is_stuck(5, 6, 91_500, 500));
        // Each step begins the time anew.
        for step in 6..20 {
            assert!(!own.is_stuck(step, 90, 100_000 + 10_000 * step, 500));
        }
        assert!(!own.is_stuck(19, 99, 291_499, 500) && own.is_stuck(19, 99, 291_500, 500));
        // Questions that follow each other fast do not make it sooner than a second.
        let mut own = StreamProgress::new(0);
        assert!(!own.is_stuck(1, 2, 0, 20) && !own.is_stuck(1, 2, 999, 20));
        assert!(own.is_stuck(1, 2, 1_000, 20));
    }
}
