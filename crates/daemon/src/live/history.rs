//! The history: rates of past moments, of all sites together and of each of the busiest ones.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};

use super::figures::FigureReading;

/// Readings that are kept unchanged: ten minutes of seconds.
const RECENT: usize = 600;
/// The shortest interval between readings that gives a row.
const LEAST_S: f64 = 0.5;
/// Milliseconds of the interval that an older row is the mean of.
const MINUTE_MS: u64 = 60_000;

/// The columns of a row, behind its time.
const KEPT: [&str; 21] = [
    "hits",
    "stale",
    "revalidated",
    "misses",
    "passes",
    "requests",
    "successes",
    "redirects",
    "client_errors",
    "errors",
    "bytes_out",
    "origin_requests",
    "spared_s",
    "from_store",
    "judged",
    "hits_p50_us",
    "hits_p90_us",
    "hits_p99_us",
    "others_p50_us",
    "others_p90_us",
    "others_p99_us",
];

/// A time in milliseconds since 1970, and the rates then: single precision suffices for a chart.
type RateSample = (u64, [f32; KEPT.len()]);

/// The last rows of rates. Their memory is allocated at once.
#[derive(Debug)]
struct Rows {
    most: usize,
    rows: VecDeque<RateSample>,
}

impl Rows {
    fn new(most: usize) -> Self {
        Self { most, rows: VecDeque::with_capacity(most) }
    }

    /// Adds the rates of `site` between two readings, in place of the oldest row of a full table.
    fn note(&mut self, before: &FigureReading, now: &FigureReading, site: Option<&str>) {
        let rates = now.rates(before, site);
        if self.rows.len() >= self.most {
            self.rows.pop_front();
        }
        let of = |name: &str| rates.get(name).copied().unwrap_or(0.0) as f32;
        self.rows.push_back((now.unix_ms(), KEPT.map(of)));
    }

    /// A row is the time, then numbers, or `null` without a count.
    fn json(&self) -> Vec<Vec<Value>> {
        let number = |rate: &f32| json!((f64::from(*rate) * 1e3).round() / 1e3);
        let row = |(unix_ms, rates): &RateSample| {
            [json!(unix_ms)].into_iter().chain(rates.iter().map(number)).collect()
        };
        self.rows.iter().map(row).collect()
    }
}

/// The history of one site, or of all together: the last readings unchanged, and means of whole
/// minutes before them.
#[derive(Debug)]
struct Track {
    recent: Rows,
    minutes: Rows,
    /// The start of the current minute.
    minute: Option<FigureReading>,
}

impl Track {
    /// An empty history that reaches back so many minutes.
    fn new(minutes: usize) -> Self {
        Self { recent: Rows::new(RECENT), minutes: Rows::new(minutes), minute: None }
    }

    /// Adds the rates between two readings.
    fn note(&mut self, before: &FigureReading, now: &FigureReading, site: Option<&str>) {
        self.recent.note(before, now, site);
        let start = self.minute.get_or_insert_with(|| before.counts(site));
        if now.unix_ms() / MINUTE_MS != start.unix_ms() / MINUTE_MS {
            self.minutes.note(start, now, site);
            self.minute = Some(now.counts(site));
        }
    }
}

/// The history of all sites together, and of each of the busiest ones. A site has memory only while
/// it is one of these.
#[derive(Debug)]
pub(super) struct History {
    minutes: usize,
    /// The reading up to which rows reach.
    last: Option<FigureReading>,
    whole: Track,
    sites: BTreeMap<String, Track>,
}

impl History {
    /// An empty history that reaches back so many minutes.
    pub(super) fn new(minutes: usize) -> Self {
        Self { minutes, last: None, whole: Track::new(minutes), sites: BTreeMap::new() }
    }

    /// Adds the rates since the last reading with a row. A reading too close to that one counts in
    /// the next row.
    pub(super) fn note(&mut self, now: &FigureReading) {
        if self.last.as_ref().is_some_and(|last| now.since(last) < LEAST_S) {
            return;
        }
        if let Some(before) = self.last.replace(now.counts(None)) {
            self.add(&before, now);
        }
    }

    fn add(&mut self, before: &FigureReading, now: &FigureReading) {
        self.whole.note(before, now, None);
        let busiest = now.busiest();
        self.sites.retain(|name, _| busiest.contains(&name));
        for name in busiest {
            let track = match self.sites.get_mut(name) {
                Some(track) => track,
                None => self.sites.entry(name.clone()).or_insert_with(|| Track::new(self.minutes)),
            };
            track.note(before, now, Some(name));
        }
    }

    /// The history of one site, or of all together: the names of the columns, and both kinds of
    /// rows, the oldest first. Only the busiest sites have rows.
    pub(super) fn json(&self, site: Option<&str>) -> Value {
        let track = site.map_or(Some(&self.whole), |name| self.sites.get(name));
        let rows =
            |kind: fn(&Track) -> &Rows| track.map(|track| kind(track).json()).unwrap_or_default();
        let columns: Vec<&str> = ["time_ms"].into_iter().chain(KEPT).collect();
        json!({
            "columns": columns,
            "reach_s": self.minutes * 60,
            "rows": rows(|track| &track.recent),
            "minutes": rows(|track| &track.minutes),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::{at, reading, site};
    use super::*;

    #[test]
    fn each_kept_rate_is_counted_for_all_and_for_a_site() {
        for site in [None, Some("a")] {
            let rates = reading(1, 0).rates(&reading(0, 0), site);
            let missing: Vec<_> = KEPT.iter().filter(|name| !rates.contains_key(*name)).collect();
            assert!(missing.is_empty(), "{site:?}: {missing:?}");
        }
    }

    /// A history and its JSON, after readings every `step` seconds. The counters grow by one a
    /// second.
    fn noted(minutes: usize, step: u64, last: u64) -> (History, Value) {
        let mut history = History::new(minutes);
        for second in (0..=last).step_by(step as usize) {
            history.note(&reading(second, second));
        }
        let told = history.json(None);
        (history, told)
    }

    fn rows(told: &Value, name: &str) -> Vec<Vec<Option<f64>>> {
        serde_json::from_value(told[name].clone()).expect("rows of numbers")
    }

    #[test]
    fn the_last_readings_are_kept_as_they_were_taken() {
        let (_, told) = noted(10, 1, RECENT as u64 + 5);
        let rows = rows(&told, "rows");
        assert_eq!(rows.len(), RECENT);
        assert_eq!(rows[0][0], Some(6_000.0));
        assert_eq!(Some(rows[0].len()), told["columns"].as_array().map(Vec::len));
        assert_eq!(rows[0][1], Some(1.0));
        assert_eq!(rows[0].last(), Some(&None), "without a request there is no quantile");
    }

    #[test]
    fn two_looks_at_one_moment_are_one_row_and_nothing_of_the_second_is_lost() {
        let mut history = History::new(10);
        history.note(&reading(0, 0));
        history.note(&reading(10, 50));
        history.note(&at(10_002_000, reading(10, 56)));
        assert_eq!(rows(&history.json(None), "rows").len(), 1);
        history.note(&reading(12, 56));
        let rows = rows(&history.json(None), "rows");
        assert_eq!((rows.len(), rows[1][1]), (2, Some(3.0)));
    }

    #[test]
    fn minutes_behind_them_are_means_of_all_that_happened_in_one() {
        let mut history = History::new(60);
        // Nothing for half a minute, then two a second.
        for taken in [reading(0, 0), reading(30, 0), reading(59, 58)] {
            history.note(&taken);
        }
        assert!(rows(&history.json(None), "minutes").is_empty());
        history.note(&reading(60, 60));
        let minutes = rows(&history.json(None), "minutes");
        assert_eq!(minutes.len(), 1);
        assert_eq!(minutes[0][..2], [Some(60_000.0), Some(1.0)]);
    }

    #[test]
    fn a_day_of_minutes_takes_no_more_than_was_taken_at_the_start() {
        let day = 24 * 60;
        let capacity = History::new(day).whole.minutes.rows.capacity();
        let (history, told) = noted(day, 10, 3 * 86_400);
        assert_eq!(history.whole.minutes.rows.capacity(), capacity);
        let minutes = rows(&told, "minutes");
        assert_eq!(minutes.len(), day);
        assert_eq!(told["reach_s"], 86_400);
        assert_eq!(minutes[0][..2], [Some((2.0 * 86_400.0 + 60.0) * 1e3), Some(1.0)]);
        assert_eq!(minutes.last().map(|row| row[0]), Some(Some(3.0 * 86_400.0 * 1e3)));
        // As the reference describes it: a time, and single precision.
        assert!(size_of::<RateSample>() <= 96, "{}", size_of::<RateSample>());
    }

    #[test]
    fn a_site_has_a_time_before_of_its_own_while_it_is_one_of_the_busiest() {
        let mut history = History::new(10);
        let before = site(site(reading(0, 0), "small", 0), "large", 0);
        let now = site(site(reading(60, 0), "small", 60), "large", 600);
        history.note(&before);
        history.note(&now);
        for (name, hits) in [("small", 1.0), ("large", 10.0)] {
            let told = history.json(Some(name));
            for kind in ["rows", "minutes"] {
                assert_eq!(rows(&told, kind)[0][1], Some(hits), "{name}: {kind}");
            }
        }
        let none = history.json(Some("unheard-of"));
        assert_eq!((rows(&none, "rows").len(), &none["reach_s"]), (0, &json!(600)));
        // Busier sites come, and replace it.
        let many = 0..super::super::figures::SITES;
        let later = many
            .fold(site(now.counts(None), "small", 61), |all, n| site(all, &format!("{n}"), 900));
        history.note(&at(61_000_000, later));
        assert_eq!(history.sites.len(), super::super::figures::SITES);
        assert!(rows(&history.json(Some("small")), "rows").is_empty());
    }
}
