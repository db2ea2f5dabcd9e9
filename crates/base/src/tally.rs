//! The tally: counts by site and by duration, which do not fit a fixed table.
//!
//! A core counts for itself and hands its sums over many times a second, unless a reader holds the
//! lock: it must never wait. So the figures are a moment old.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::Counter;

/// Upper bounds of the histogram's columns, in microseconds. One more column is for longer times.
pub const BOUNDS_US: [u64; 22] = [
    1, 2, 5, 10, 20, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000,
    250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000,
];

/// The column of a time up to this one is looked up, so that a search does not slow hits.
const SHORT_US: usize = 100;

/// The columns of short times.
const SHORT: [u8; SHORT_US + 1] = {
    let mut columns = [0; SHORT_US + 1];
    let mut us = 1;
    while us <= SHORT_US {
        let last = columns[us - 1];
        columns[us] = last + (us as u64 > BOUNDS_US[last as usize]) as u8;
        us += 1;
    }
    columns
};

/// The cache's part in a response. Each request has one outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Served from a fresh stored response.
    Hit,
    /// Served from a stale one: in grace, or because the origin failed.
    Stale,
    /// Served from a stored one that the origin has just confirmed.
    Revalidated,
    /// Served from a fetch for the store.
    Miss,
    /// Sent to the origin past the store.
    Pass,
    /// Served from a file.
    File,
    /// Made by the policy, or an error page.
    Synth,
    /// Rejected with an error before the request was read completely.
    Refused,
    /// Served to another node of the cluster for one of its clients.
    Peer,
}

impl Outcome {
    /// All outcomes, in the order of the tables below.
    pub const ALL: [Self; 9] = [
        Self::Hit,
        Self::Stale,
        Self::Revalidated,
        Self::Miss,
        Self::Pass,
        Self::File,
        Self::Synth,
        Self::Refused,
        Self::Peer,
    ];

    /// Its name in labels.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Stale => "stale",
            Self::Revalidated => "revalidated",
            Self::Miss => "miss",
            Self::Pass => "pass",
            Self::File => "file",
            Self::Synth => "synth",
            Self::Refused => "refused",
            Self::Peer => "peer",
        }
    }

    /// The counters of the outcome, each response in one of them.
    pub const fn counters(self) -> &'static [Counter] {
        match self {
            Self::Hit => &[Counter::Hits],
            Self::Stale => &[Counter::StaleHits, Counter::StaleOnError],
            Self::Revalidated => &[Counter::RevalidatedAnswers],
            Self::Miss => &[Counter::Misses, Counter::HitForMiss, Counter::Collapsed],
            Self::Pass => &[Counter::Passes],
            Self::File => &[Counter::Files],
            Self::Synth => &[Counter::Synthetic],
            Self::Refused => &[Counter::Refused],
            Self::Peer => &[Counter::PeersHits, Counter::PeersFetches, Counter::PeersRefused],
        }
    }

    /// The number of responses with this outcome, by its counters.
    pub fn counted(self, sum: impl Fn(Counter) -> u64) -> u64 {
        self.counters().iter().map(|counter| sum(*counter)).sum()
    }

    /// Returns true for what the hit ratio counts as a hit: the store answered without the origin.
    pub const fn is_hit(self) -> bool {
        matches!(self, Self::Hit | Self::Stale)
    }

    /// Returns true for what the hit ratio is a part of: the store or an origin answered.
    pub const fn is_judged(self) -> bool {
        matches!(self, Self::Hit | Self::Stale | Self::Revalidated | Self::Miss | Self::Pass)
    }
}

/// The hit ratio, by the one formula of all figures: hits and stale responses, divided by these,
/// revalidated ones, misses and passes. `None` without any of them.
pub fn hit_ratio(count: impl Fn(Outcome) -> f64) -> Option<f64> {
    let sum = |such: fn(Outcome) -> bool| -> f64 {
        Outcome::ALL.into_iter().filter(|outcome| such(*outcome)).map(&count).sum()
    };
    let judged = sum(Outcome::is_judged);
    (judged > 0.0).then(|| sum(Outcome::is_hit) / judged)
}

/// The two kinds of responses whose times are counted separately for each site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speed {
    /// Served by the store without the origin ([`Outcome::is_hit`]).
    Hits,
    /// All others.
    Others,
}

impl Speed {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::Hits, Self::Others];

    /// The kind of this outcome.
    pub const fn of(outcome: Outcome) -> Self {
        if outcome.is_hit() { Self::Hits } else { Self::Others }
    }
}

/// A histogram of durations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    counts: [u64; BOUNDS_US.len() + 1],
    sum_us: u64,
}

impl Latency {
    /// Counts a duration.
    pub fn add(&mut self, us: u64) {
        let at = match usize::try_from(us).ok().and_then(|us| SHORT.get(us)) {
            Some(column) => usize::from(*column),
            None => BOUNDS_US.iter().position(|bound| us <= *bound).unwrap_or(BOUNDS_US.len()),
        };
        self.counts[at] += 1;
        self.sum_us = self.sum_us.saturating_add(us);
    }

    fn merge(&mut self, other: &Self) {
        for (own, more) in self.counts.iter_mut().zip(&other.counts) {
            *own += more;
        }
        self.sum_us = self.sum_us.saturating_add(other.sum_us);
    }

    /// Each bound with the number of durations up to it.
    pub fn cumulative(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut sum = 0;
        BOUNDS_US.iter().zip(&self.counts).map(move |(bound, count)| {
            sum += count;
            (*bound, sum)
        })
    }

    /// The durations counted since `earlier`, a former state.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut later = *self;
        for (own, was) in later.counts.iter_mut().zip(&earlier.counts) {
            *own = own.saturating_sub(*was);
        }
        later.sum_us = self.sum_us.saturating_sub(earlier.sum_us);
        later
    }

    /// The duration, in microseconds, that `part` of them do not exceed. Between two bounds,
    /// durations are assumed to be even on a logarithmic scale. `None` without any.
    pub fn quantile_us(&self, part: f64) -> Option<f64> {
        let wanted = self.count() as f64 * part;
        let mut below = 0.0;
        let mut low = 0.5;
        for (at, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            if at > 0 {
                low = BOUNDS_US[at - 1] as f64;
            }
            // A time beyond all bounds counts as the last bound.
            let Some(high) = BOUNDS_US.get(at) else { return Some(low) };
            let count = *count as f64;
            if below + count >= wanted {
                let share = ((wanted - below) / count).max(0.0);
                return Some(low * (*high as f64 / low).powf(share));
            }
            below += count;
        }
        None
    }

    /// The number of durations counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The sum of the durations, in microseconds.
    pub fn sum_us(&self) -> u64 {
        self.sum_us
    }
}

/// The counts of one site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteSums {
    /// Requests, in the order of [`Outcome::ALL`].
    pub requests: [u64; Outcome::ALL.len()],
    /// Responses by the first digit of their status: 2xx, 3xx, 4xx, 5xx. Others are not counted.
    pub statuses: [u64; 4],
    /// Bytes of bodies sent.
    pub bytes: u64,
    /// Times, in the order of [`Speed::ALL`].
    pub times: [Latency; Speed::ALL.len()],
}

impl SiteSums {
    /// Responses with a 5xx status.
    pub fn errors(&self) -> u64 {
        self.statuses[3]
    }

    /// The number of all requests.
    pub fn all(&self) -> u64 {
        self.requests.iter().sum()
    }

    fn merge(&mut self, other: &Self) {
        let own = self.requests.iter_mut().chain(&mut self.statuses);
        for (own, more) in own.zip(other.requests.iter().chain(&other.statuses)) {
            *own += more;
        }
        self.bytes += other.bytes;
        for (own, more) in self.times.iter_mut().zip(&other.times) {
            own.merge(more);
        }
    }
}

/// All counts of the tally.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Counts by site.
    pub sites: BTreeMap<String, SiteSums>,
    /// Times by outcome, in the order of [`Outcome::ALL`].
    pub latency: [Latency; Outcome::ALL.len()],
}

impl Sums {
    /// Times of all requests, in the order of [`Speed::ALL`].
    pub fn times(&self) -> [Latency; Speed::ALL.len()] {
        let mut times = [Latency::default(); Speed::ALL.len()];
        for (outcome, latency) in Outcome::ALL.iter().zip(&self.latency) {
            times[Speed::of(*outcome) as usize].merge(latency);
        }
        times
    }

    fn merge(&mut self, other: &Self) {
        for (name, sums) in &other.sites {
            match self.sites.get_mut(name) {
                Some(own) => own.merge(sums),
                None => _ = self.sites.insert(name.clone(), *sums),
            }
        }
        for (own, more) in self.latency.iter_mut().zip(&other.latency) {
            own.merge(more);
        }
    }
}

/// A response of a site, to be counted.
#[derive(Clone, Copy, Debug)]
pub struct AnswerSample {
    /// The cache's part in it.
    pub outcome: Outcome,
    /// Its status.
    pub status: u16,
    /// The bytes of its body.
    pub bytes: u64,
    /// Its duration in microseconds.
    pub us: u64,
}

/// The counts of one site on one core.
#[derive(Debug, Default)]
struct Row {
    /// `None` if the number was never a site's.
    name: Option<Arc<str>>,
    sums: SiteSums,
}

/// The counts of one core.
#[derive(Debug)]
pub struct CoreSums {
    rows: Vec<Row>,
    latency: [Latency; Outcome::ALL.len()],
    /// The counts of sites whose numbers have other sites now.
    past: Sums,
    total: Arc<Mutex<Sums>>,
}

impl CoreSums {
    /// Counts a response of the site with this number and name. Names are compared by address, so a
    /// hit reads no text.
    pub fn site(&mut self, number: usize, name: &Arc<str>, answered: AnswerSample) {
        if self.rows.len() <= number {
            self.rows.resize_with(number + 1, Row::default);
        }
        let row = &mut self.rows[number];
        if !row.name.as_ref().is_some_and(|own| Arc::ptr_eq(own, name)) {
            let new = Row { name: Some(Arc::clone(name)), ..Row::default() };
            std::mem::replace(row, new).hand_over(&mut self.past);
        }
        let AnswerSample { outcome, status, bytes, us } = answered;
        let sums = &mut row.sums;
        sums.requests[outcome as usize] += 1;
        if let Some(count) = sums.statuses.get_mut(usize::from(status / 100).wrapping_sub(2)) {
            *count += 1;
        }
        sums.bytes += bytes;
        sums.times[Speed::of(outcome) as usize].add(us);
    }

    /// Counts the duration of a request.
    pub fn time(&mut self, outcome: Outcome, us: u64) {
        self.latency[outcome as usize].add(us);
    }

    /// Hands the counts over, or keeps them while a reader holds the lock.
    pub fn hand_over(&mut self) {
        let Some(mut total) = self.total.try_lock() else { return };
        for row in &mut self.rows {
            row.hand_over(&mut self.past);
        }
        self.past.latency = std::mem::take(&mut self.latency);
        let past = std::mem::take(&mut self.past);
        total.merge(&past);
    }
}

impl Row {
    /// Adds the counts to `past`, and begins again.
    fn hand_over(&mut self, past: &mut Sums) {
        // Each request has one of these.
        if self.sums.all() == 0 {
            return;
        }
        let sums = std::mem::take(&mut self.sums);
        if let Some(name) = self.name.as_ref().filter(|name| !name.is_empty()) {
            past.sites.entry(name.to_string()).or_default().merge(&sums);
        }
    }
}

/// The counts of all cores.
#[derive(Debug, Default)]
pub struct Tallies {
    totals: Mutex<Vec<Arc<Mutex<Sums>>>>,
}

impl Tallies {
    /// The counts of the calling core.
    pub fn register(&self) -> CoreSums {
        let total = Arc::default();
        self.totals.lock().push(Arc::clone(&total));
        CoreSums { rows: Vec::new(), latency: Default::default(), past: Sums::default(), total }
    }

    /// The sum of the counts handed over so far.
    pub fn sum(&self) -> Sums {
        let mut sum = Sums::default();
        for total in self.totals.lock().iter() {
            sum.merge(&total.lock());
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_added_up_by_the_names_of_sites() {
        let tallies = Tallies::default();
        let (mut a, mut b) = (tallies.register(), tallies.register());
        let (one, two): (Arc<str>, Arc<str>) = ("one".into(), "two".into());
        let told = |outcome, status, bytes| AnswerSample { outcome, status, bytes, us: 40 };
        a.site(3, &one, told(Outcome::Hit, 200, 5));
        a.site(3, &one, told(Outcome::Pass, 503, 5));
        // After a reload the number is another site's, and names are new.
        a.site(3, &two, told(Outcome::Hit, 304, 1));
        b.site(0, &"one".into(), told(Outcome::Hit, 200, 2));
        assert_eq!(tallies.sum(), Sums::default(), "nothing is handed over yet");
        a.hand_over();
        b.hand_over();
        a.hand_over();
        let sites = tallies.sum().sites;
        assert_eq!(sites.keys().collect::<Vec<_>>(), ["one", "two"]);
        let of = &sites["one"];
        assert_eq!(
            (of.requests[Outcome::Hit as usize], of.requests[Outcome::Pass as usize]),
            (2, 1)
        );
        assert_eq!((of.statuses, of.errors(), of.all(), of.bytes), ([2, 0, 0, 1], 1, 3, 12));
        assert_eq!(of.times.map(|times| times.count()), [2, 1]);
        assert_eq!((sites["two"].requests[0], sites["two"].statuses), (1, [0, 1, 0, 0]));
    }

    #[test]
    fn a_status_that_is_none_of_the_four_is_not_counted() {
        let tallies = Tallies::default();
        let mut core = tallies.register();
        for status in [0, 101, 199, 600, 999] {
            core.site(
                0,
                &"one".into(),
                AnswerSample { outcome: Outcome::Pass, status, bytes: 0, us: 1 },
            );
        }
        core.hand_over();
        let sites = tallies.sum().sites;
        assert_eq!((sites["one"].statuses, sites["one"].all()), ([0; 4], 5));
    }

    #[test]
    fn quantiles_lie_within_the_bounds_of_what_was_counted() {
        let mut latency = Latency::default();
        assert_eq!(latency.quantile_us(0.5), None);
        let before = latency;
        (0..90).for_each(|_| latency.add(70));
        (0..10).for_each(|_| latency.add(30_000));
        let within = |part, low: f64, high: f64| {
            let us = latency.since(&before).quantile_us(part).expect("some");
            assert!(us > low && us <= high, "{part}: {us}");
        };
        within(0.5, 50.0, 100.0);
        within(0.9, 50.0, 100.0);
        within(0.99, 25_000.0, 50_000.0);
        assert_eq!(latency.since(&latency).quantile_us(0.5), None);
        let mut long = Latency::default();
        long.add(90_000_000);
        assert_eq!(long.quantile_us(0.99), Some(10_000_000.0));
    }

    #[test]
    fn times_are_counted_up_to_their_bounds() {
        let tallies = Tallies::default();
        let mut core = tallies.register();
        for us in [0, 100, 101, 20_000_000] {
            core.time(Outcome::Miss, us);
        }
        core.hand_over();
        let latency = &tallies.sum().latency[Outcome::Miss as usize];
        let bounds: Vec<_> = latency.cumulative().collect();
        let shown = (bounds[0], bounds[5], bounds[6], bounds[7], bounds[21]);
        assert_eq!(shown, ((1, 1), (50, 1), (100, 2), (250, 3), (10_000_000, 3)));
        assert_eq!((latency.count(), latency.sum_us()), (4, 20_000_201));
    }

    #[test]
    fn a_time_that_is_looked_up_is_where_a_search_finds_it() {
        for us in 0..=2 * SHORT_US as u64 {
            let mut latency = Latency::default();
            latency.add(us);
            let found = latency.cumulative().find(|(_, count)| *count > 0);
            let bound = BOUNDS_US.into_iter().find(|bound| us <= *bound);
            assert_eq!(found.map(|(bound, _)| bound), bound, "{us}");
        }
    }

    #[test]
    fn the_ratio_is_of_what_the_store_might_have_answered() {
        let ratio = |counts: [f64; 9]| hit_ratio(|outcome| counts[outcome as usize]);
        assert_eq!(ratio([3.0, 2.0, 1.0, 3.0, 1.0, 9.0, 9.0, 9.0, 9.0]), Some(0.5));
        assert_eq!(ratio([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]), Some(1.0));
        assert_eq!(ratio([0.0, 0.0, 0.0, 0.0, 0.0, 9.0, 9.0, 9.0, 9.0]), None);
    }

    #[test]
    fn no_counter_counts_two_outcomes() {
        let all: Vec<_> = Outcome::ALL.iter().flat_map(|outcome| outcome.counters()).collect();
        for (at, counter) in all.iter().enumerate() {
            assert!(!all[..at].contains(counter), "{counter:?}");
        }
    }

    #[test]
    fn a_reader_is_not_waited_for() {
        let tallies = Tallies::default();
        let mut core = tallies.register();
        core.time(Outcome::Hit, 1);
        let reading = Arc::clone(&core.total);
        let held = reading.lock();
        core.hand_over();
        drop(held);
        assert_eq!(tallies.sum().latency[0].count(), 0);
        core.hand_over();
        assert_eq!(tallies.sum().latency[0].count(), 1);
    }
}
