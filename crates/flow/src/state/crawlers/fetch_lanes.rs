//! Fetch lanes: for each origin, how many fetches on behalf of crawlers run, its budget, and the
//! crawlers that wait for a fetch, in the order in which they came.
//!
//! Only crawlers enter a lane. It must never hold a place for a request that is gone.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::fetch_budget::{BudgetRates, FetchBudget, OriginMoment};

/// The lanes of all origins, by name.
#[derive(Debug, Default)]
pub(crate) struct FetchLanes {
    lanes: Mutex<HashMap<Arc<str>, Lane>>,
}

/// The lane of one origin. It stays, as its budget does; configurations name few origins.
#[derive(Debug)]
struct Lane {
    running: u64,
    /// The limits, as the last request has seen them.
    limits: LaneLimits,
    budget: FetchBudget,
    waiting: VecDeque<Waiter>,
}

/// A request that waits.
#[derive(Debug)]
struct Waiter {
    turn: oneshot::Sender<LanePermit>,
    is_budgeted: bool,
}

impl Lane {
    fn new(limits: LaneLimits, at: OriginMoment) -> Self {
        let budget = FetchBudget::new(at);
        Self { running: 0, limits, budget, waiting: VecDeque::new() }
    }

    /// Returns true if a fetch may begin.
    fn is_free(&self, is_budgeted: bool) -> bool {
        self.running < self.limits.fetches
            && (!is_budgeted || self.budget.allows(self.limits.rates))
    }

    fn begin(&mut self, is_budgeted: bool) {
        self.running += 1;
        if is_budgeted {
            self.budget.begin();
        }
    }

    /// The place in the queue of the first request that may fetch.
    fn next(&self) -> Option<usize> {
        self.waiting.iter().position(|waiter| self.is_free(waiter.is_budgeted))
    }
}

/// The limits of a lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneLimits {
    /// Most fetches at the same time.
    pub(crate) fetches: u64,
    /// Most requests that wait.
    pub(crate) queue: u64,
    /// The rates of the budget.
    pub(crate) rates: BudgetRates,
    /// The request needs a part of the budget.
    pub(crate) is_budgeted: bool,
}

/// A crawler's place in a lane.
#[derive(Debug)]
pub(crate) enum LaneEntry {
    /// It may fetch.
    Permit(LanePermit),
    /// It waits for its turn.
    Wait(oneshot::Receiver<LanePermit>),
    /// Too many wait.
    Full,
}

/// The permit for one fetch, which ends when it is dropped.
#[derive(Debug)]
pub(crate) struct LanePermit {
    lanes: Arc<FetchLanes>,
    origin: Arc<str>,
}

impl FetchLanes {
    /// Enters the lane of `origin`.
    pub(crate) fn enter(
        self: &Arc<Self>,
        origin: &Arc<str>,
        limits: LaneLimits,
        at: OriginMoment,
    ) -> LaneEntry {
        let mut lanes = self.lanes.lock();
        let lane = lanes.entry(Arc::clone(origin)).or_insert_with(|| Lane::new(limits, at));
        lane.limits = limits;
        lane.budget.grow(at, limits.rates, lane.running);
        lane.waiting.retain(|waiter| !waiter.turn.is_closed());
        let is_budgeted = limits.is_budgeted;
        if lane.is_free(is_budgeted) && lane.next().is_none() {
            lane.begin(is_budgeted);
            return LaneEntry::Permit(self.permit(origin));
        }
        if lane.waiting.len() as u64 >= limits.queue {
            return LaneEntry::Full;
        }
        let (turn, receiver) = oneshot::channel();
        lane.waiting.push_back(Waiter { turn, is_budgeted });
        drop(lanes);
        // A higher limit lets those go on that wait.
        self.go_on(origin);
        LaneEntry::Wait(receiver)
    }

    /// Enters the lane of `origin` only if there is a place at once.
    pub(crate) fn try_enter(
        self: &Arc<Self>,
        origin: &Arc<str>,
        limits: LaneLimits,
        at: OriginMoment,
    ) -> Option<LanePermit> {
        match self.enter(origin, LaneLimits { queue: 0, ..limits }, at) {
            LaneEntry::Permit(permit) => Some(permit),
            LaneEntry::Wait(_) | LaneEntry::Full => None,
        }
    }

    /// Returns true if a fetch could begin at once, and the number of those that wait.
    pub(crate) fn look(&self, origin: &str, limits: LaneLimits, at: OriginMoment) -> (bool, u64) {
        let lanes = self.lanes.lock();
        let Some(lane) = lanes.get(origin) else { return (true, 0) };
        let mut budget = lane.budget;
        budget.grow(at, limits.rates, lane.running);
        let has_place = |is_budgeted: bool| {
            lane.running < limits.fetches && (!is_budgeted || budget.allows(limits.rates))
        };
        let there = || lane.waiting.iter().filter(|waiter| !waiter.turn.is_closed());
        let is_next = !there().any(|waiter| has_place(waiter.is_budgeted));
        (has_place(limits.is_budgeted) && is_next, there().count() as u64)
    }

    /// Gives places to those that wait, as far as the budget has grown.
    pub(crate) fn grow(self: &Arc<Self>, origin: &Arc<str>, at: OriginMoment) {
        if let Some(lane) = self.lanes.lock().get_mut(origin) {
            lane.budget.grow(at, lane.limits.rates, lane.running);
        }
        self.go_on(origin);
    }

    /// Gives free places to those that wait.
    fn go_on(self: &Arc<Self>, origin: &Arc<str>) {
        while let Some(turn) = self.next_turn(origin) {
            // A request that has just gone drops its permit, which ends up here again.
            drop(turn.send(self.permit(origin)));
        }
    }

    /// The turn of the next waiting request, if there is a place for it.
    fn next_turn(&self, origin: &Arc<str>) -> Option<oneshot::Sender<LanePermit>> {
        let mut lanes = self.lanes.lock();
        let lane = lanes.get_mut(origin)?;
        while let Some(Waiter { turn, is_budgeted }) =
            lane.next().and_then(|at| lane.waiting.remove(at))
        {
            if !turn.is_closed() {
                lane.begin(is_budgeted);
                return Some(turn);
            }
        }
        None
    }

    fn permit(self: &Arc<Self>, origin: &Arc<str>) -> LanePermit {
        LanePermit { lanes: Arc::clone(self), origin: Arc::clone(origin) }
    }

    /// Ends a fetch.
    fn leave(self: &Arc<Self>, origin: &Arc<str>) {
        {
            let mut lanes = self.lanes.lock();
            let Some(lane) = lanes.get_mut(origin) else { return };
            lane.running = lane.running.saturating_sub(1);
        }
        self.go_on(origin);
    }
}

impl Drop for LanePermit {
    fn drop(&mut self) {
        self.lanes.leave(&self.origin);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const UNLIMITED: BudgetRates = BudgetRates { share: 100, minute: 0 };
    const LIMITS: LaneLimits =
        LaneLimits { fetches: 2, queue: 2, rates: UNLIMITED, is_budgeted: true };
    const NOW: OriginMoment = OriginMoment { now_ms: 0, exchanges: 0 };

    fn are_idle(lanes: &FetchLanes) -> bool {
        lanes.lanes.lock().values().all(|lane| lane.running == 0 && lane.waiting.is_empty())
    }

    fn origin() -> Arc<str> {
        "app".into()
    }

    fn permit(entry: LaneEntry) -> LanePermit {
        match entry {
            LaneEntry::Permit(permit) => permit,
            other => panic!("{other:?}"),
        }
    }

    fn wait(entry: LaneEntry) -> oneshot::Receiver<LanePermit> {
        match entry {
            LaneEntry::Wait(receiver) => receiver,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_lane_has_so_many_fetches_and_so_many_that_wait() {
        let (lanes, app) = (Arc::new(FetchLanes::default()), origin());
        let first = permit(lanes.enter(&app, LIMITS, NOW));
        let second = permit(lanes.enter(&app, LIMITS, NOW));
        let mut third = wait(lanes.enter(&app, LIMITS, NOW));
        let mut fourth = wait(lanes.enter(&app, LIMITS, NOW));
        assert!(matches!(lanes.enter(&app, LIMITS, NOW), LaneEntry::Full));
        assert!(lanes.try_enter(&app, LIMITS, NOW).is_none());
        assert_eq!(lanes.look(&app, LIMITS, NOW), (false, 2));
        // Another origin has its own.
        drop(permit(lanes.enter(&"other".into(), LIMITS, NOW)));
        drop(first);
        let third = third.try_recv().expect("its turn");
        assert!(fourth.try_recv().is_err());
        drop((second, third));
        drop(fourth.try_recv().expect("its turn"));
        assert!(are_idle(&lanes));
    }

    #[test]
    fn a_request_that_has_gone_holds_no_place() {
        let (lanes, app) = (Arc::new(FetchLanes::default()), origin());
        let limits = LaneLimits { fetches: 1, queue: 2, ..LIMITS };
        let first = permit(lanes.enter(&app, limits, NOW));
        drop(wait(lanes.enter(&app, limits, NOW)));
        drop(wait(lanes.enter(&app, limits, NOW)));
        let mut last = wait(lanes.enter(&app, limits, NOW));
        drop(first);
        // Its permit was sent and never read.
        let second = last.try_recv().expect("its turn");
        let unread = wait(lanes.enter(&app, limits, NOW));
        drop(second);
        drop(unread);
        assert!(are_idle(&lanes));
    }

    #[test]
    fn a_higher_limit_lets_those_go_on_that_wait() {
        let (lanes, app) = (Arc::new(FetchLanes::default()), origin());
        let few = LaneLimits { fetches: 1, queue: 9, ..LIMITS };
        let first = permit(lanes.enter(&app, few, NOW));
        let mut second = wait(lanes.enter(&app, few, NOW));
        let many = LaneLimits { fetches: 3, queue: 9, ..LIMITS };
        let mut third = wait(lanes.enter(&app, many, NOW));
        let (second, third) = (second.try_recv().expect("a turn"), third.try_recv().expect("too"));
        // A lower one waits until enough have ended.
        let mut fourth = wait(lanes.enter(&app, few, NOW));
        drop((first, second));
        assert!(fourth.try_recv().is_err());
        drop(third);
        drop(fourth.try_recv().expect("its turn"));
        assert!(are_idle(&lanes));
    }

    #[test]
    fn a_budget_lets_those_go_on_that_wait() {
        let (lanes, app) = (Arc::new(FetchLanes::default()), origin());
        let limits = LaneLimits { rates: BudgetRates { share: 10, minute: 6 }, ..LIMITS };
        let at = |now_ms, exchanges| OriginMoment { now_ms, exchanges };
        let first = permit(lanes.enter(&app, limits, at(0, 0)));
        let mut second = wait(lanes.enter(&app, limits, at(0, 0)));
        drop(first);
        assert!(second.try_recv().is_err(), "places are not all that counts");
        assert_eq!(lanes.look(&app, limits, at(10_000, 1)), (false, 1));
        lanes.grow(&app, at(5_000, 6));
        assert!(second.try_recv().is_err());
        lanes.grow(&app, at(5_001, 11));
        let second = second.try_recv().expect("its turn, after ten of others");
        assert!(lanes.try_enter(&app, limits, at(5_001, 12)).is_none());
        assert_eq!(lanes.look(&app, limits, at(15_001, 12)), (true, 0));
        drop(second);
        drop(permit(lanes.enter(&app, limits, at(15_001, 12))));
        // Others pass those that wait for the budget, not those that wait for a place.
        let mut third = wait(lanes.enter(&app, limits, at(15_001, 12)));
        let free = LaneLimits { is_budgeted: false, ..limits };
        let one = permit(lanes.enter(&app, free, at(15_001, 12)));
        let _other = permit(lanes.enter(&app, free, at(15_001, 12)));
        let mut fourth = wait(lanes.enter(&app, LaneLimits { queue: 3, ..free }, at(15_001, 12)));
        drop(one);
        assert!(third.try_recv().is_err() && fourth.try_recv().is_ok());
    }

    proptest! {
        /// Requests come (0, 1), end (2) and go away while they wait (3).
        #[test]
        fn no_more_run_than_may_and_none_is_forgotten(
            steps in prop::collection::vec((0u8..4, 0usize..8), 0..80),
            fetches in 1u64..4,
            queue in 0u64..4,
        ) {
            let (lanes, app) = (Arc::new(FetchLanes::default()), origin());
            let limits = LaneLimits { fetches, queue, ..LIMITS };
            let (mut running, mut waiting) = (Vec::new(), VecDeque::new());
            for (step, at) in steps {
                match step {
                    0 | 1 => match lanes.enter(&app, limits, NOW) {
                        LaneEntry::Permit(permit) => running.push(permit),
                        LaneEntry::Wait(receiver) => waiting.push_back(receiver),
                        LaneEntry::Full => prop_assert_eq!(waiting.len() as u64, queue),
                    },
                    2 if !running.is_empty() => drop(running.swap_remove(at % running.len())),
                    3 if !waiting.is_empty() => drop(waiting.remove(at % waiting.len())),
                    _ => {}
                }
                while let Some(permit) = waiting.front_mut().and_then(|turn| turn.try_recv().ok()) {
                    running.push(permit);
                    waiting.pop_front();
                }
                prop_assert!(running.len() as u64 <= fetches);
                prop_assert!(running.len() as u64 == fetches || waiting.is_empty());
            }
            drop((running, waiting));
            prop_assert!(are_idle(&lanes));
        }
    }
}
