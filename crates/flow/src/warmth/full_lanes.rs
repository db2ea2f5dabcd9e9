//! Full lanes: how long a claim waits for the lanes that have no place for its tasks.
//!
//! It must never let the tasks of a full lane go round without a wait between two rounds.

use std::collections::HashMap;
use std::sync::Arc;

/// The first wait for a place, in milliseconds. Others of the site get their turn after it: their
/// origins may have one.
const WAIT_MS: u64 = 2_000;
/// The longest wait, which is as long as the longest rest of an origin that fails.
const WAIT_MAX_MS: u64 = 60_000;

/// The lanes that had no place since the last entry.
#[derive(Debug, Default)]
pub(super) struct FullLanes {
    lanes: HashMap<Arc<str>, FullLane>,
}

#[derive(Debug)]
struct FullLane {
    /// The last round whose tasks the lane had no place for.
    round: u32,
    wait_ms: u64,
    /// The end of the wait, which tasks of this round and earlier ones share.
    until_ms: u64,
}

impl FullLanes {
    /// Notes that a lane has no place for a task of this round. The wait begins with the first such
    /// task of a round, and is twice as long as that of the round before.
    pub(super) fn note(&mut self, lane: &Arc<str>, round: u32, now_ms: u64) {
        let wait_ms = match self.lanes.get(lane) {
            Some(full) if full.round >= round => return,
            Some(full) => full.wait_ms.saturating_mul(2).min(WAIT_MAX_MS),
            None => WAIT_MS,
        };
        let until_ms = now_ms.saturating_add(wait_ms);
        self.lanes.insert(Arc::clone(lane), FullLane { round, wait_ms, until_ms });
    }

    /// The round in which a task of `round` comes again, if the wait for the lane is over in its
    /// own.
    pub(super) fn round_after(&self, lane: &str, round: u32, now_ms: u64) -> Option<u32> {
        let full = self.lanes.get(lane)?;
        let is_over = full.round >= round && now_ms >= full.until_ms;
        is_over.then(|| full.round.saturating_add(1))
    }

    /// Notes that a task has entered the lane: the next wait is short again.
    pub(super) fn note_entry(&mut self, lane: &str) {
        self.lanes.remove(lane);
    }

    /// Forgets all lanes.
    pub(super) fn clear(&mut self) {
        self.lanes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_without_an_entry_waits_once_and_for_longer() {
        let (mut full, app): (_, Arc<str>) = (FullLanes::default(), "app".into());
        let mut now_ms = 0;
        for (round, wait_ms) in
            [2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000].iter().enumerate()
        {
            let round = round as u32;
            assert_eq!(full.round_after(&app, round, now_ms), None, "a new round waits");
            full.note(&app, round, now_ms);
            assert_eq!(full.round_after(&app, round, now_ms + wait_ms - 1), None);
            now_ms += wait_ms;
            // The others of the round do not wait.
            full.note(&app, round, now_ms);
            assert_eq!(full.round_after(&app, round, now_ms), Some(round + 1));
        }
        full.note_entry(&app);
        full.note(&app, 7, now_ms);
        assert_eq!(full.round_after(&app, 7, now_ms + 2_000), Some(8), "an entry begins anew");
    }

    #[test]
    fn new_tasks_share_the_wait_and_other_lanes_have_their_own() {
        let (mut full, app): (_, Arc<str>) = (FullLanes::default(), "app".into());
        full.note(&app, 3, 0);
        full.note(&app, 0, 1_999);
        assert_eq!(full.round_after(&app, 0, 1_999), None);
        assert_eq!(full.round_after(&app, 0, 2_000), Some(4), "it comes with the others");
        assert_eq!(full.round_after("other", 0, 2_000), None);
    }
}
