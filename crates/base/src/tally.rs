//! Counts by site and by duration: too many numbers for a fixed table.
//!
//! A core counts for itself and hands over once a second, in one piece, unless somebody reads just
//! then: it never waits. So these figures are up to a second old.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// Upper bounds of the times that are told apart, in microseconds; one more is for what is longer.
pub const BOUNDS_US: [u64; 16] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000,
];

/// The cache's part in an answer, as coarse as figures want it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Answered from the store, fresh or stale, or from a file.
    Hit,
    /// Waited for an origin's answer that might have been stored.
    Miss,
    /// Sent to the origin past the store.
    Pass,
    /// Answered by policy or an error page.
    Synth,
}

impl Outcome {
    /// All of them, in the order of the tables below.
    pub const ALL: [Self; 4] = [Self::Hit, Self::Miss, Self::Pass, Self::Synth];

    /// Its word in labels.
    pub fn word(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Miss => "miss",
            Self::Pass => "pass",
            Self::Synth => "synth",
        }
    }
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
        let at = BOUNDS_US.iter().position(|bound| us <= *bound).unwrap_or(BOUNDS_US.len());
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
        assert_eq!(sites["one"], SiteSums { requests: [2, 0, 1, 0], errors: 1, bytes: 12 });
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
        assert_eq!((bounds[0], bounds[1], bounds[15]), ((100, 2), (250, 3), (10_000_000, 3)));
        assert_eq!((latency.count(), latency.sum_us()), (4, 20_000_201));
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
