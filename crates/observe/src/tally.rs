//! Frequency tables: records summed up by one of their fields, such as client or URL.
//!
//! With a period, counts decay: after that many seconds a request weighs less than half, so that
//! the table shows the present (as `varnishtop` does). Without a period, counts add up. Memory must
//! stay bounded, whatever clients request.

use std::collections::HashMap;
use std::io::Write as _;

use base::tally::{Outcome, hit_ratio};

use crate::format::FieldPositions;
use crate::record::{Flags, Record};

/// Most keys of a table. Beyond it the least frequent ones are removed, so that a scan over random
/// URLs costs no memory.
const KEYS_MAX: usize = 20_000;
/// Longest key, in bytes; the rest is cut off.
const KEY_BYTES: usize = 400;
/// A row with fewer requests than this is removed.
const FADED: f64 = 0.05;

macro_rules! words {
    ($(#[$about:meta])* $name:ident {
        $($variant:ident $word:literal $key:literal $what:literal;)*
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $(#[doc = $what] $variant,)* }

        impl $name {
            /// All values.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name on the command line and in JSON.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// The key on the keyboard that selects it.
            pub fn key(self) -> char {
                match self { $(Self::$variant => $key,)* }
            }
        }
    };
}

words! {
    /// The field by which records are grouped.
    GroupingKey {
        Url "url" 'u' "Host, port where it is not the scheme's own, and path with the query.";
        Client "client" 'c' "Client.";
        Agent "agent" 'a' "User-Agent.";
        Referer "referer" 'f' "Referer.";
        Status "status" 's' "Status.";
        Served "served" 'v' "Cache result.";
        Site "site" 'i' "Site.";
        Rule "rule" 'l' "Rule that decided.";
        Origin "origin" 'o' "Origin and server.";
        Error "error" 'x' "The error.";
    }
}

words! {
    /// The sum by which rows are sorted.
    Sort {
        Requests "requests" 'r' "Most requests.";
        Misses "misses" 'm' "Most requests that had to wait for an origin.";
        Bytes "bytes" 'b' "Most bytes.";
        Time "time" 't' "Most time in all.";
        Errors "errors" 'e' "Most errors (5xx).";
    }
}

/// The sums of one key.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// Requests.
    pub requests: f64,
    /// Requests by class, in the order of [`Outcome::ALL`].
    pub outcomes: [f64; Outcome::ALL.len()],
    /// Requests that waited for an origin.
    pub waited: f64,
    /// Requests with a 5xx response.
    pub errors: f64,
    /// Requests with the scheme `https`.
    pub secure: f64,
    /// Bytes sent, including heads.
    pub bytes: f64,
    /// Sum of the requests' times, in microseconds.
    pub time_us: f64,
}

impl Sums {
    fn add(&mut self, record: &Record<'_>) {
        let one = |is: bool| if is { 1.0 } else { 0.0 };
        let waited = record.phases.fetch.is_some() || record.phases.wait.is_some();
        self.requests += 1.0;
        self.outcomes[record.outcome() as usize] += 1.0;
        self.waited += one(waited);
        self.errors += one(record.status >= 500);
        self.secure += one(record.flags.has(Flags::TLS));
        self.bytes += record.body_out as f64 + f64::from(record.head_out);
        self.time_us += record.phases.end as f64;
    }

    fn scale(&mut self, by: f64) {
        let others = [&mut self.requests, &mut self.waited, &mut self.errors, &mut self.secure];
        let sums = [&mut self.bytes, &mut self.time_us];
        for number in others.into_iter().chain(sums).chain(&mut self.outcomes) {
            *number *= by;
        }
    }

    /// The sum that `sort` selects.
    pub fn weight(&self, sort: Sort) -> f64 {
        match sort {
            Sort::Requests => self.requests,
            Sort::Misses => self.waited,
            Sort::Bytes => self.bytes,
            Sort::Time => self.time_us,
            Sort::Errors => self.errors,
        }
    }

    /// The hit ratio; `None` without requests that count for it.
    pub fn hit_ratio(&self) -> Option<f64> {
        hit_ratio(|outcome| self.outcomes[outcome as usize])
    }

    /// Mean time of a request, in microseconds.
    pub fn mean_us(&self) -> f64 {
        if self.requests > 0.0 { self.time_us / self.requests } else { 0.0 }
    }
}

/// The table of the most frequent keys.
#[derive(Clone, Debug)]
pub struct FrequencyTable {
    by: GroupingKey,
    fade: Option<f64>,
    rows: HashMap<Vec<u8>, Sums>,
    all: Sums,
    seconds: f64,
    /// Buffer of the current key. Most keys are in the table already, and need no allocation.
    key: Vec<u8>,
}

impl FrequencyTable {
    /// Makes an empty table. With `period_s`, counts decay.
    pub fn new(by: GroupingKey, period_s: Option<f64>) -> Self {
        let fade = period_s.map(|period| (-1.0 / period.max(1.0)).exp());
        Self { by, fade, rows: HashMap::new(), all: Sums::default(), seconds: 0.0, key: Vec::new() }
    }

    /// The field by which the table groups.
    pub fn by(&self) -> GroupingKey {
        self.by
    }

    /// Counts a record.
    pub fn add(&mut self, record: &Record<'_>, fields: &FieldPositions) {
        self.all.add(record);
        self.key.clear();
        write_key(self.by, record, fields, &mut self.key);
        self.key.truncate(KEY_BYTES);
        if let Some(sums) = self.rows.get_mut(&self.key) {
            return sums.add(record);
        }
        if self.rows.len() >= KEYS_MAX {
            self.forget();
        }
        self.rows.entry(self.key.clone()).or_default().add(record);
    }

    /// Lets `seconds` pass: counts decay.
    pub fn advance(&mut self, seconds: f64) {
        self.seconds += seconds;
        let Some(fade) = self.fade else { return };
        let by = fade.powf(seconds);
        self.all.scale(by);
        self.rows.retain(|_, sums| {
            sums.scale(by);
            sums.requests > FADED
        });
    }

    /// Removes the less frequent half of the keys.
    fn forget(&mut self) {
        let mut counts: Vec<f64> = self.rows.values().map(|sums| sums.requests).collect();
        let middle = counts.len() / 2;
        let (_, least, _) = counts.select_nth_unstable_by(middle, f64::total_cmp);
        let least = *least;
        // Where most keys are equally frequent, half of these go.
        let mut spare = middle;
        self.rows.retain(|_, sums| {
            let goes = spare > 0 && sums.requests <= least;
            spare -= usize::from(goes);
            !goes
        });
    }

    /// The factor that turns a sum into a rate per second.
    pub fn per_second(&self) -> f64 {
        let weight = match self.fade {
            // The sum that one request per second would have by now.
            Some(fade) => (1.0 - fade.powf(self.seconds)) / (1.0 - fade),
            None => self.seconds,
        };
        1.0 / weight.max(1.0)
    }

    /// Seconds that have passed.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// The sums of all records.
    pub fn all(&self) -> &Sums {
        &self.all
    }

    /// Returns the first `count` rows, the heaviest first, without rows of weight zero.
    pub fn rows(&self, sort: Sort, count: usize) -> Vec<(&[u8], &Sums)> {
        let mut rows: Vec<_> = self.rows.iter().map(|(key, sums)| (key.as_slice(), sums)).collect();
        rows.retain(|(_, sums)| sums.weight(sort) > 0.0);
        rows.sort_by(|(a, x), (b, y)| y.weight(sort).total_cmp(&x.weight(sort)).then(a.cmp(b)));
        rows.truncate(count);
        rows
    }
}

fn write_key(by: GroupingKey, record: &Record<'_>, fields: &FieldPositions, out: &mut Vec<u8>) {
    let parts: [&[u8]; 3] = match by {
        GroupingKey::Url if record.port == 0 => [record.host, record.target, b""],
        GroupingKey::Url => {
            out.extend_from_slice(&record.address());
            return;
        }
        GroupingKey::Agent => [fields.agent(record).unwrap_or_default(), b"", b""],
        GroupingKey::Referer => [fields.referer(record).unwrap_or_default(), b"", b""],
        GroupingKey::Served => [record.served.word().as_bytes(), b"", b""],
        GroupingKey::Site => [record.site, b"", b""],
        GroupingKey::Rule => [record.rule, b"", b""],
        GroupingKey::Origin if record.origin.is_empty() => [b"", b"", b""],
        GroupingKey::Origin => [record.origin, b" ", record.server],
        GroupingKey::Error => [record.error, b"", b""],
        GroupingKey::Client | GroupingKey::Status => {
            // Writing to a Vec cannot fail.
            _ = match (by, record.client) {
                (GroupingKey::Status, _) => write!(out, "{}", record.status),
                (_, Some(client)) => write!(out, "{client}"),
                (_, None) => write!(out, "unix:"),
            };
            return;
        }
    };
    parts.iter().for_each(|part| out.extend_from_slice(part));
    if out.is_empty() {
        out.push(b'-');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Phases, Served};

    fn hit(target: &[u8]) -> Record<'_> {
        let phases = Phases { end: 10, ..Phases::default() };
        Record { host: b"a", target, status: 200, served: Served::Hit, phases, ..Record::default() }
    }

    fn miss(target: &[u8]) -> Record<'_> {
        let phases = Phases { fetch: Some(1), end: 1000, ..Phases::default() };
        Record { served: Served::Miss, body_out: 5000, phases, ..hit(target) }
    }

    #[test]
    fn rows_come_by_weight() {
        let mut tally = FrequencyTable::new(GroupingKey::Url, None);
        let fields = FieldPositions::default();
        for _ in 0..3 {
            tally.add(&hit(b"/often"), &fields);
        }
        tally.add(&miss(b"/large"), &fields);
        tally.advance(2.0);
        let names = |sort| -> Vec<String> {
            let rows = tally.rows(sort, 10);
            rows.iter().map(|(key, _)| String::from_utf8_lossy(key).into_owned()).collect()
        };
        assert_eq!(names(Sort::Requests), ["a/often", "a/large"]);
        assert_eq!(names(Sort::Bytes), ["a/large"]);
        assert_eq!(names(Sort::Misses), ["a/large"]);
        assert_eq!(names(Sort::Errors), [""; 0]);
        assert_eq!(tally.rows(Sort::Time, 1).len(), 1);
        assert_eq!(
            (tally.all().requests * tally.per_second(), tally.all().outcomes[0]),
            (2.0, 3.0)
        );
    }

    #[test]
    fn what_is_not_asked_for_any_more_fades() {
        let mut tally = FrequencyTable::new(GroupingKey::Status, Some(10.0));
        let fields = FieldPositions::default();
        for _ in 0..200 {
            tally.add(&hit(b"/"), &fields);
            tally.advance(1.0);
        }
        let rate = tally.all().requests * tally.per_second();
        assert!((0.8..1.2).contains(&rate), "{rate}");
        tally.advance(100.0);
        assert_eq!(tally.rows(Sort::Requests, 10), []);
    }

    #[test]
    fn a_scan_costs_no_memory_and_the_frequent_stay() {
        let mut tally = FrequencyTable::new(GroupingKey::Url, None);
        let fields = FieldPositions::default();
        for n in 0..3 * KEYS_MAX {
            tally.add(&hit(format!("/{n}").as_bytes()), &fields);
            tally.add(&hit(b"/often"), &fields);
        }
        assert!(tally.rows.len() <= KEYS_MAX);
        let rows = tally.rows(Sort::Requests, 1);
        assert_eq!((rows[0].0, rows[0].1.requests), (&b"a/often"[..], 3.0 * KEYS_MAX as f64));
    }

    #[test]
    fn keys_of_the_keyboard_differ() {
        let mut keys: Vec<char> = GroupingKey::ALL.iter().map(|by| by.key()).collect();
        keys.extend(Sort::ALL.iter().map(|sort| sort.key()));
        keys.push('q');
        let count = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), count);
    }
}
