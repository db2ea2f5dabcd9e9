//! Counts by site and by duration: too many numbers for a fixed table.
//!
//! A core counts for itself and hands over once a second, in one piece, unless somebody reads just
//! then: it never waits. So these figures are up to a second old.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::Counter;

/// Upper bounds of the times that are told apart, in microseconds; one more is for what is longer.
pub const BOUNDS_US: [u64; 22] = [
    1, 2, 5, 10, 20, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000,
    250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000,
];

/// The column of every time up to this one is looked up: hits are that quick, and are not to be
/// slowed by a search.
const SHORT_US: usize = 100;

/// Columns of short times.
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

/// The cache's part in an answer: each request that is answered is of one of these classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Answered from a fresh stored response.
    Hit,
    /// Answered from a stale one: within its grace, or because the origin failed.
    Stale,
    /// Answered from a stored one that the origin had just confirmed.
    Revalidated,
    /// Answered by an origin's answer that was fetched for the store.
    Miss,
    /// Sent to the origin past the store.
    Pass,
    /// Answered with a file.
    File,
    /// Answered by policy or an error page.
    Synth,
    /// Answered with an error before the request was read whole.
    Refused,
    /// Answered another node of the cluster, which had asked for a client of its own.
    Peer,
}

impl Outcome {
    /// All of them, in the order of the tables below.
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

    /// Its word in labels.
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

    /// The counters that count it, each answer once.
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

    /// The number of answers of this class, by what its counters say.
    pub fn counted(self, sum: impl Fn(Counter) -> u64) -> u64 {
        self.counters().iter().map(|counter| sum(*counter)).sum()
    }

    /// Returns true for what the hit ratio counts as a hit: the store has answered, with no word
    /// of an origin.
    pub const fn is_hit(self) -> bool {
        matches!(self, Self::Hit | Self::Stale)
    }

    /// Returns true for what the hit ratio is a part of: a stored response or an origin has
    /// answered.
    pub const fn is_judged(self) -> bool {
        matches!(self, Self::Hit | Self::Stale | Self::Revalidated | Self::Miss | Self::Pass)
    }
}

/// The hit ratio, the one formula of all figures: hits and stale answers by these, revalidated
/// ones, misses and passes. `None` where nothing of all this has been.
pub fn hit_ratio(count: impl Fn(Outcome) -> f64) -> Option<f64> {
    let sum = |such: fn(Outcome) -> bool| -> f64 {
        Outcome::ALL.into_iter().filter(|outcome| such(*outcome)).map(&count).sum()
    };
    let judged = sum(Outcome::is_judged);
    (judged > 0.0).then(|| sum(Outcome::is_hit) / judged)
}

/// A histogram of durations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    counts: [u64; BOUNDS_US.len() + 1],
    sum_us: u64,
}

impl Latency {
    /// Counts one.
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

    /// Each bound with how many took no longer.
    pub fn cumulative(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut sum = 0;
        BOUNDS_US.iter().zip(&self.counts).map(move |(bound, count)| {
            sum += count;
            (*bound, sum)
        })
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
    /// Answers with a 5xx status.
    pub errors: u64,
    /// Bytes of bodies sent.
    pub bytes: u64,
}

impl SiteSums {
    fn merge(&mut self, other: &Self) {
        for (own, more) in self.requests.iter_mut().zip(&other.requests) {
            *own += more;
        }
        self.errors += other.errors;
        self.bytes += other.bytes;
    }
}

/// Everything that is counted this way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// By site.
    pub sites: BTreeMap<String, SiteSums>,
    /// By time, in the order of [`Outcome::ALL`].
    pub latency: [Latency; Outcome::ALL.len()],
}

impl Sums {
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

/// One site's row of a core's own count.
#[derive(Debug, Default)]
struct Row {
    name: String,
    sums: SiteSums,
}

/// One core's count.
#[derive(Debug)]
pub struct Tally {
    rows: Vec<Row>,
    latency: [Latency; Outcome::ALL.len()],
    /// Of sites whose numbers have others by now.
    past: Sums,
    total: Arc<Mutex<Sums>>,
}

impl Tally {
    /// Counts a request of the site that has this number and name at present.
    pub fn site(
        &mut self,
        number: usize,
        name: &str,
        outcome: Outcome,
        is_error: bool,
        bytes: u64,
    ) {
        if self.rows.len() <= number {
            self.rows.resize_with(number + 1, Row::default);
        }
        let row = &mut self.rows[number];
        if row.name != name {
            let old = std::mem::replace(row, Row { name: name.to_owned(), ..Row::default() });
            self.past.sites.entry(old.name).or_default().merge(&old.sums);
        }
        row.sums.requests[outcome as usize] += 1;
        row.sums.errors += u64::from(is_error);
        row.sums.bytes += bytes;
    }

    /// Counts how long a request took.
    pub fn time(&mut self, outcome: Outcome, us: u64) {
        self.latency[outcome as usize].add(us);
    }

    /// Hands over what was counted; later, if somebody reads just now.
    pub fn hand_over(&mut self) {
        let Some(mut total) = self.total.try_lock() else { return };
        for row in &mut self.rows {
            let sums = std::mem::take(&mut row.sums);
            if sums != SiteSums::default() {
                self.past.sites.entry(row.name.clone()).or_default().merge(&sums);
            }
        }
        self.past.latency = std::mem::take(&mut self.latency);
        let past = std::mem::take(&mut self.past);
        total.merge(&past);
        // A number that was never any site's has no name.
        total.sites.remove("");
    }
}

/// All cores' counts.
#[derive(Debug, Default)]
pub struct Tallies {
    totals: Mutex<Vec<Arc<Mutex<Sums>>>>,
}

impl Tallies {
    /// The count of the calling core.
    pub fn register(&self) -> Tally {
        let total = Arc::default();
        self.totals.lock().push(Arc::clone(&total));
        Tally { rows: Vec::new(), latency: Default::default(), past: Sums::default(), total }
    }

    /// The sum of the counts that were handed over so far.
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
        a.site(3, "one", Outcome::Hit, false, 5);
        a.site(3, "one", Outcome::Pass, true, 5);
        // After a reload the number is another site's.
        a.site(3, "two", Outcome::Hit, false, 1);
        b.site(0, "one", Outcome::Hit, false, 2);
        assert_eq!(tallies.sum(), Sums::default(), "nothing is handed over yet");
        a.hand_over();
        b.hand_over();
        a.hand_over();
        let sites = tallies.sum().sites;
        assert_eq!(sites.keys().collect::<Vec<_>>(), ["one", "two"]);
        let mut requests = [0; Outcome::ALL.len()];
        (requests[Outcome::Hit as usize], requests[Outcome::Pass as usize]) = (2, 1);
        assert_eq!(sites["one"], SiteSums { requests, errors: 1, bytes: 12 });
        assert_eq!(sites["two"].requests[0], 1);
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
