//! Warm lanes: for each origin, how many fetches warm the cache at the same time, and how many may.
//!
//! A lane has no queue: what waits for it waits in its site's queue, where a hotter page passes it.
//! It must never hold a place for a fetch that has ended.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::adaptive_window::AdaptiveWindow;

/// Failures in a row after which an origin is left alone for a while. A few pages that fail are no
/// failing origin.
const FAILURES: u32 = 3;
/// The shortest and longest rest of an origin that fails, in milliseconds.
const REST_MS: u64 = 1_000;
const REST_MAX_MS: u64 = 60_000;

/// The lanes of all origins, by name.
#[derive(Debug, Default)]
pub(crate) struct WarmLanes {
    lanes: Mutex<HashMap<Arc<str>, OriginLane>>,
    /// Told of each fetch that ends.
    left: Notify,
}

#[derive(Debug, Default)]
struct OriginLane {
    running: u64,
    window: AdaptiveWindow,
    /// Failures since the last success.
    failures: u32,
    /// The end of its rest, in milliseconds of the monotonic clock.
    rests_until_ms: u64,
}

/// The terms of an origin at the moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneTerms {
    /// Most fetches at the same time: the share of its connections.
    pub(crate) most: u64,
    /// A request of a visitor would not wait for a connection.
    pub(crate) has_room: bool,
}

/// The state of a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneListing {
    /// The origin.
    pub origin: Arc<str>,
    /// Fetches under way.
    pub running: u64,
    /// Fetches that its first-byte time allows.
    pub window: u64,
    /// The median of its last first-byte times, in microseconds.
    pub median_us: Option<u64>,
    /// It fails, and is left alone for a while.
    pub rests: bool,
}

/// The permit for one fetch, which ends when it is dropped.
#[derive(Debug)]
pub(crate) struct WarmPermit {
    lanes: Arc<WarmLanes>,
    origin: Arc<str>,
    most: u64,
}

impl WarmLanes {
    /// Enters the lane of `origin`, unless the fetch would be in the way of visitors or of others.
    pub(crate) fn try_enter(
        self: &Arc<Self>,
        origin: &Arc<str>,
        terms: LaneTerms,
        now_ms: u64,
    ) -> Option<WarmPermit> {
        let mut lanes = self.lanes.lock();
        let lane = lanes.entry(Arc::clone(origin)).or_default();
        let may = lane.window.size().min(terms.most.max(1));
        if !terms.has_room || lane.running >= may || now_ms < lane.rests_until_ms {
            return None;
        }
        lane.running += 1;
        Some(WarmPermit { lanes: Arc::clone(self), origin: Arc::clone(origin), most: terms.most })
    }

    /// Waits until a fetch ends.
    pub(crate) async fn wait(&self) {
        self.left.notified().await;
    }

    /// The lanes in use, by name.
    pub(crate) fn list(&self, now_ms: u64) -> Vec<LaneListing> {
        let lanes = self.lanes.lock();
        let mut listed: Vec<_> = lanes
            .iter()
            .map(|(origin, lane)| LaneListing {
                origin: Arc::clone(origin),
                running: lane.running,
                window: lane.window.size(),
                median_us: lane.window.median_us(),
                rests: now_ms < lane.rests_until_ms,
            })
            .collect();
        listed.sort_by(|a, b| a.origin.cmp(&b.origin));
        listed
    }

    /// Forgets the lanes of origins for which `is_known` returns false.
    pub(crate) fn retain(&self, is_known: impl Fn(&str) -> bool) {
        self.lanes.lock().retain(|origin, lane| lane.running > 0 || is_known(origin));
    }
}

impl WarmPermit {
    /// Notes that the origin has answered after this time.
    pub(crate) fn note_answer(&self, first_byte_us: u64) {
        if let Some(lane) = self.lanes.lanes.lock().get_mut(&self.origin) {
            lane.failures = 0;
            lane.window.note(first_byte_us, self.most.max(1));
        }
    }

    /// Notes that the origin has failed.
    pub(crate) fn note_failure(&self, now_ms: u64) {
        if let Some(lane) = self.lanes.lanes.lock().get_mut(&self.origin) {
            lane.failures = lane.failures.saturating_add(1);
            lane.window.halve();
            if let Some(more) = lane.failures.checked_sub(FAILURES) {
                let rest_ms = REST_MS.saturating_mul(1 << more.min(10)).min(REST_MAX_MS);
                lane.rests_until_ms = now_ms.saturating_add(rest_ms);
            }
        }
    }
}

impl Drop for WarmPermit {
    fn drop(&mut self) {
        if let Some(lane) = self.lanes.lanes.lock().get_mut(&self.origin) {
            lane.running = lane.running.saturating_sub(1);
        }
        self.lanes.left.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TERMS: LaneTerms = LaneTerms { most: 3, has_room: true };

    fn lanes() -> (Arc<WarmLanes>, Arc<str>) {
        (Arc::default(), "app".into())
    }

    #[test]
    fn a_lane_begins_with_one_fetch_and_yields_to_visitors() {
        let (lanes, app) = lanes();
        assert!(lanes.try_enter(&app, LaneTerms { has_room: false, ..TERMS }, 0).is_none());
        let first = lanes.try_enter(&app, TERMS, 0).expect("a place");
        assert!(lanes.try_enter(&app, TERMS, 0).is_none());
        assert!(lanes.try_enter(&"other".into(), TERMS, 0).is_some(), "it has its own");
        drop(first);
        let permit = lanes.try_enter(&app, TERMS, 0).expect("a place");
        (0..4).for_each(|_| permit.note_answer(1_000));
        assert!(lanes.try_enter(&app, TERMS, 0).is_some(), "the window has grown");
        assert_eq!(lanes.list(0)[0].window, 2);
    }

    #[test]
    fn an_origin_that_fails_rests_for_longer_each_time() {
        let (lanes, app) = lanes();
        let permit = lanes.try_enter(&app, TERMS, 0).expect("a place");
        (0..2).for_each(|_| permit.note_failure(0));
        drop(permit);
        let permit = lanes.try_enter(&app, TERMS, 0).expect("two failures are no pattern");
        permit.note_failure(0);
        drop(permit);
        assert!(lanes.try_enter(&app, TERMS, 999).is_none() && lanes.list(999)[0].rests);
        let permit = lanes.try_enter(&app, TERMS, 1_000).expect("its rest is over");
        permit.note_failure(1_000);
        drop(permit);
        assert!(lanes.try_enter(&app, TERMS, 2_999).is_none());
        let permit = lanes.try_enter(&app, TERMS, 3_000).expect("its rest is over");
        permit.note_answer(1);
        permit.note_failure(3_000);
        drop(permit);
        assert!(lanes.try_enter(&app, TERMS, 3_000).is_some(), "an answer begins anew");
        lanes.retain(|_| false);
        assert!(lanes.list(0).is_empty());
    }

    proptest! {
        /// Fetches begin, answer, fail and end.
        #[test]
        fn never_more_run_than_the_share(
            steps in prop::collection::vec((0u8..4, 0usize..8, any::<bool>()), 0..200),
            most in 1u64..6,
        ) {
            let (lanes, app) = lanes();
            let mut running: Vec<WarmPermit> = Vec::new();
            for (at, (step, which, has_room)) in steps.into_iter().enumerate() {
                let now_ms = at as u64 * 500;
                let which = which % running.len().max(1);
                match (step, running.get(which)) {
                    (0, _) => {
                        let terms = LaneTerms { most, has_room };
                        let entered = lanes.try_enter(&app, terms, now_ms);
                        prop_assert!(has_room || entered.is_none());
                        running.extend(entered);
                    }
                    (1, Some(permit)) => permit.note_answer(which as u64 * 3_000),
                    (2, Some(permit)) => permit.note_failure(now_ms),
                    (_, Some(_)) => drop(running.swap_remove(which)),
                    _ => {}
                }
                prop_assert!(running.len() as u64 <= most);
            }
            let count = running.len() as u64;
            prop_assert_eq!(lanes.list(0).iter().map(|lane| lane.running).sum::<u64>(), count);
        }
    }
}
