//! The progress through a stream, by the answers to questions. Pure.
//!
//! A server with an incomplete copy of a stream delivers what it has and then nothing, for as long
//! as it is followed. (NATS 2.9 has left such copies after partitions.) A node without progress
//! must begin a new session, so that another server may deliver.

/// Questions without progress, before the stream's end, after which a node begins again.
const QUESTIONS: u64 = 3;
/// The shortest time for that, in milliseconds.
const SHORTEST_MS: u64 = 1_000;

/// The sequence that a node has reached, and since when.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StreamProgress {
    at: u64,
    since_ms: u64,
}

impl StreamProgress {
    /// A node that has reached no sequence yet.
    pub(crate) fn new(now_ms: u64) -> Self {
        Self { at: 0, since_ms: now_ms }
    }

    /// Notes the sequence `at` in a stream that ends at `last`. Returns true if a node that asks
    /// every `question_ms` should begin again.
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
    fn a_node_without_progress_is_stuck_and_a_slow_one_is_not() {
        let mut own = StreamProgress::new(0);
        // At the end of the stream, no time is too long.
        assert!(!own.is_stuck(5, 5, 0, 500) && !own.is_stuck(5, 5, 90_000, 500));
        // The end has moved, and the time begins again.
        assert!(!own.is_stuck(5, 6, 91_499, 500) && own.is_stuck(5, 6, 91_500, 500));
        // Each step begins the time again.
        for step in 6..20 {
            assert!(!own.is_stuck(step, 90, 100_000 + 10_000 * step, 500));
        }
        assert!(!own.is_stuck(19, 99, 291_499, 500) && own.is_stuck(19, 99, 291_500, 500));
        // Frequent questions do not shorten it below a second.
        let mut own = StreamProgress::new(0);
        assert!(!own.is_stuck(1, 2, 0, 20) && !own.is_stuck(1, 2, 999, 20));
        assert!(own.is_stuck(1, 2, 1_000, 20));
    }
}
