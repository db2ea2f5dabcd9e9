//! The fetches that crawlers may have of one origin: a share of those for other clients, and some
//! in each minute whatever others fetch. What is not used is kept for a short while only. Pure.

/// A fetch of the share, in hundredths.
const FETCH: u64 = 100;
/// The most that is kept of the share.
const KEPT: u64 = 10 * FETCH;
/// A fetch of the time, in milliseconds of a minute.
const FETCH_MS: u64 = 60_000;

/// The rates at which a budget grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BudgetRates {
    /// Percent of the exchanges for other clients; 100: there is no limit.
    pub(crate) share: u64,
    /// Fetches in a minute.
    pub(crate) minute: u64,
}

/// The state of an origin that a budget depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OriginMoment {
    /// Milliseconds of the monotonic clock.
    pub(crate) now_ms: u64,
    /// Exchanges that were started with the origin, for all clients.
    pub(crate) exchanges: u64,
}

/// A budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FetchBudget {
    of_share: u64,
    of_time: u64,
    seen: OriginMoment,
    /// Fetches of crawlers whose exchanges may not be among those seen.
    unseen: u64,
}

impl FetchBudget {
    /// The budget of an origin from which crawlers have fetched nothing lately.
    pub(crate) fn new(at: OriginMoment) -> Self {
        Self { of_share: 0, of_time: FETCH_MS, seen: at, unseen: 0 }
    }

    /// Adds what has come in since the last look. `running` fetches of crawlers are under way.
    pub(crate) fn grow(&mut self, at: OriginMoment, rates: BudgetRates, running: u64) {
        let exchanges = at.exchanges.saturating_sub(self.seen.exchanges);
        let own = exchanges.min(self.unseen);
        let others = exchanges - own;
        // One that has ended has made its exchange, or none.
        self.unseen = (self.unseen - own).min(running);
        let share = others.saturating_mul(rates.share);
        self.of_share = self.of_share.saturating_add(share).min(KEPT);
        let passed_ms = at.now_ms.saturating_sub(self.seen.now_ms);
        let grown = passed_ms.saturating_mul(rates.minute);
        self.of_time = self.of_time.saturating_add(grown).min(FETCH_MS);
        self.seen = at;
    }

    /// Returns true if a fetch may begin.
    pub(crate) fn allows(&self, rates: BudgetRates) -> bool {
        rates.share >= 100 || self.of_share >= FETCH || self.of_time >= FETCH_MS
    }

    /// Notes that a fetch begins. It counts against both parts, so that together they give no more
    /// than the larger one.
    pub(crate) fn begin(&mut self) {
        self.of_share = self.of_share.saturating_sub(FETCH);
        self.of_time = self.of_time.saturating_sub(FETCH_MS);
        self.unseen += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RATES: BudgetRates = BudgetRates { share: 10, minute: 6 };

    fn at(now_ms: u64, exchanges: u64) -> OriginMoment {
        OriginMoment { now_ms, exchanges }
    }

    /// The fetches that may begin at once, which end at once.
    fn taken(budget: &mut FetchBudget) -> u64 {
        let mut number = 0;
        while budget.allows(RATES) && number < 100 {
            budget.begin();
            number += 1;
        }
        number
    }

    #[test]
    fn crawlers_have_a_share_of_what_others_fetch_and_some_whatever_others_do() {
        let mut budget = FetchBudget::new(at(0, 500));
        assert_eq!(taken(&mut budget), 1, "the first one, at once");
        budget.grow(at(9_999, 501), RATES, 0);
        assert_eq!(taken(&mut budget), 0);
        budget.grow(at(10_000, 501), RATES, 0);
        assert_eq!(taken(&mut budget), 1, "six in a minute");
        // Its own exchange is not counted; thirty of others are.
        budget.grow(at(10_001, 501 + 1 + 30), RATES, 0);
        assert_eq!(taken(&mut budget), 3);
        // Little is kept, and a restart of the count takes nothing away.
        budget.grow(at(10_002, 100_000), RATES, 0);
        budget.grow(at(10_003, 3), RATES, 0);
        assert_eq!(taken(&mut budget), 10);
        budget.grow(at(1_000_000, 3), RATES, 0);
        assert_eq!(taken(&mut budget), 1);
        let free = BudgetRates { share: 100, minute: 0 };
        assert!(budget.allows(free) && !budget.allows(RATES));
    }

    #[test]
    fn short_looks_lose_no_time() {
        let mut budget = FetchBudget::new(at(0, 0));
        taken(&mut budget);
        for now_ms in 1..=10_000 {
            assert!(!budget.allows(RATES), "{now_ms}");
            budget.grow(at(now_ms, 0), RATES, 0);
        }
        assert_eq!(taken(&mut budget), 1);
    }

    proptest! {
        /// Each step: milliseconds that pass, exchanges for others, and looks.
        #[test]
        fn no_more_than_both_parts_give(
            steps in prop::collection::vec((0u64..20_000, 0u64..50), 1..60),
        ) {
            let (mut budget, mut moment) = (FetchBudget::new(at(0, 0)), at(0, 0));
            let (mut fetches, mut others) = (0, 0);
            for (passed_ms, exchanges) in steps {
                moment.now_ms += passed_ms;
                moment.exchanges += exchanges;
                others += exchanges;
                budget.grow(moment, RATES, 0);
                let taken = taken(&mut budget);
                fetches += taken;
                moment.exchanges += taken;
                prop_assert!(fetches <= others / 10 + moment.now_ms / 10_000 + 1);
            }
        }
    }
}
