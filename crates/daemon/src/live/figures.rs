//! The daemon's figures at a moment, and the rates between two moments.

use std::collections::{BTreeMap, VecDeque};

use base::counters::Counter;
use base::limits;
use base::tally::{Outcome, SiteSums, hit_ratio};
use origin::ServerStatus;
use serde_json::{Map, Value, json};

use crate::rollout;
use crate::servers;
use crate::state::Daemon;
use crate::volumes::{self, Volume};

/// Readings that are kept as they were taken: ten minutes of seconds.
const RECENT: usize = 600;
/// Readings closer than this are of one look: the second tells of no time.
const LEAST_S: f64 = 0.5;
/// Milliseconds that an older row is the mean of.
const MINUTE_MS: u64 = 60_000;
/// Sites that are shown, those with most requests.
const SITES: usize = 12;
/// Certificates that are shown, those that expire first.
const CERTIFICATES: usize = 20;
/// Nodes of a cluster that are shown, those that are not ready before the others.
const NODES: usize = 50;

/// Sums of counters, each under the name of its rate. One of the first nine counts each reply:
/// they are in the order of [`Outcome::ALL`].
const COUNTED: &[(&str, &[Counter])] = &[
    ("hits", Outcome::Hit.counters()),
    ("stale", Outcome::Stale.counters()),
    ("revalidated", Outcome::Revalidated.counters()),
    ("misses", Outcome::Miss.counters()),
    ("passes", Outcome::Pass.counters()),
    ("files", Outcome::File.counters()),
    ("synthetic", Outcome::Synth.counters()),
    ("refused", Outcome::Refused.counters()),
    ("peers", Outcome::Peer.counters()),
    ("requests", &[Counter::Requests]),
    ("errors", &[Counter::Status5xx]),
    ("client_errors", &[Counter::Status4xx]),
    ("handshakes", &[Counter::TlsHandshakes]),
    ("handshakes_tls12", &[Counter::Tls12]),
    ("aborted", &[Counter::Aborted]),
    ("bytes_out", &[Counter::BytesOut]),
    ("bytes_in", &[Counter::BytesIn]),
    ("origin_requests", &[Counter::Fetches]),
    ("origin_failures", &[Counter::FetchFailures]),
    ("origin_bytes", &[Counter::OriginBytesIn]),
    ("stores", &[Counter::Stores]),
    ("invalidations", &[Counter::Invalidations]),
];

/// Rates of one moment of the past, in this order behind its time.
const KEPT: [&str; 11] = [
    "hits",
    "stale",
    "revalidated",
    "misses",
    "passes",
    "requests",
    "errors",
    "bytes_out",
    "origin_requests",
    "from_store",
    "judged",
];

/// The figures of one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Reading {
    unix_ms: u64,
    us: u64,
    uptime_s: u64,
    counted: Vec<u64>,
    evictions: u64,
    gauges: Vec<(&'static str, u64)>,
    limits: Vec<u64>,
    sites: BTreeMap<String, SiteSums>,
    servers: Vec<(String, ServerStatus)>,
    volumes: Vec<Volume>,
    /// Each certificate's site, its name, and the seconds until it expires.
    certificates: Vec<(String, String, i64)>,
    cluster: Option<cluster::Status>,
    /// The configuration that all nodes share, in short.
    configuration: Value,
}

impl Reading {
    /// Reads them.
    pub(super) fn take(daemon: &Daemon) -> Self {
        let (registry, cache) = (&daemon.shared.counters, &daemon.shared.cache);
        let store = cache.stats();
        let sum = |counters: &[Counter]| counters.iter().map(|c| registry.sum(*c)).sum();
        Self {
            unix_ms: rt::now().unix_ms,
            us: rt::micros(),
            uptime_s: daemon.uptime().as_secs(),
            counted: COUNTED.iter().map(|(_, counters)| sum(counters)).collect(),
            evictions: store.evictions,
            gauges: vec![
                ("objects", store.objects),
                ("memory_bytes", store.bytes),
                ("memory_budget_bytes", store.budget),
                ("bans", cache.bans().len() as u64),
                ("connections", registry.sum(Counter::ConnectionsOpen)),
                ("tunnels", registry.sum(Counter::TunnelsOpen)),
                ("purges_lost", registry.sum(Counter::PurgesLost)),
                ("disk_finding", cache.lower().is_finding().into()),
                ("disk_index_bytes", cache.index().used()),
                ("disk_index_max_bytes", cache.index().most()),
                ("disk_index_short", cache.index().is_short().into()),
            ],
            limits: limits::TABLE.iter().map(|spec| daemon.shared.limit_hits(spec.limit)).collect(),
            sites: daemon.shared.tallies.sum().sites,
            servers: daemon.servers(),
            volumes: volumes::all(daemon),
            certificates: daemon.expiries(),
            cluster: daemon.cluster().map(|cluster| cluster.status()),
            configuration: rollout::short(daemon),
        }
    }

    /// The part of a reading that rates are made of, without the rows of sites and servers.
    fn counts(&self) -> Self {
        Self {
            unix_ms: self.unix_ms,
            us: self.us,
            counted: self.counted.clone(),
            evictions: self.evictions,
            ..Self::default()
        }
    }

    /// Seconds since an earlier one.
    pub(super) fn since(&self, before: &Self) -> f64 {
        (self.us.saturating_sub(before.us) as f64 / 1e6).max(1e-3)
    }

    /// The growth per second of a number that only grows, from `was` to `is`.
    fn rate(&self, before: &Self, was: u64, is: u64) -> f64 {
        let rate = is.saturating_sub(was) as f64 / self.since(before);
        (rate * 1e3).round() / 1e3
    }

    /// Every rate by its name.
    fn rates(&self, before: &Self) -> BTreeMap<&'static str, f64> {
        let counted = COUNTED.iter().zip(self.counted.iter().zip(&before.counted));
        let mut rates: BTreeMap<_, _> =
            counted.map(|((name, _), (is, was))| (*name, self.rate(before, *was, *is))).collect();
        rates.insert("evictions", self.rate(before, before.evictions, self.evictions));
        // Both parts of the hit ratio, so that whoever shows a mean of it needs no formula.
        let judged =
            [("from_store", Outcome::is_hit as fn(_) -> _), ("judged", Outcome::is_judged)];
        for (name, such) in judged {
            let parts = Outcome::ALL.into_iter().filter(|outcome| such(*outcome));
            rates.insert(name, parts.map(|part| rates[COUNTED[part as usize].0]).sum());
        }
        rates
    }

    /// The figures that viewers are sent; rates are those since `before`.
    pub(super) fn json(&self, before: &Self) -> Value {
        let now: Map<_, _> =
            self.gauges.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        json!({
            "time_ms": self.unix_ms,
            "uptime_s": self.uptime_s,
            "rates": self.rates(before),
            "now": now,
            "sites": self.sites(before),
            "servers": self.servers(before),
            "disk": self.volumes(before),
            "certificates": self.certificates(),
            "cluster": self.cluster.clone().map(|status| nodes(status, &self.configuration)),
            "limits": self.limits(before),
        })
    }

    fn sites(&self, before: &Self) -> Vec<Value> {
        let mut rows: Vec<_> = self.sites.iter().collect();
        let all = |sums: &SiteSums| sums.requests.iter().sum::<u64>();
        rows.sort_by_key(|(_, sums)| std::cmp::Reverse(all(sums)));
        rows.truncate(SITES);
        let row = |(name, sums): (&String, &SiteSums)| {
            let was = before.sites.get(name).copied().unwrap_or_default();
            let rate = |outcome: Outcome| {
                let at = outcome as usize;
                self.rate(before, was.requests[at], sums.requests[at])
            };
            let classes: BTreeMap<_, _> =
                Outcome::ALL.into_iter().map(|outcome| (outcome.word(), rate(outcome))).collect();
            let totals: BTreeMap<_, _> = Outcome::ALL
                .into_iter()
                .map(|outcome| (outcome.word(), sums.requests[outcome as usize]))
                .collect();
            json!({
                "site": name,
                "requests": self.rate(before, all(&was), all(sums)),
                "cache": classes,
                "hit_ratio": hit_ratio(rate),
                "errors": self.rate(before, was.errors, sums.errors),
                "bytes": self.rate(before, was.bytes, sums.bytes),
                "requests_total": all(sums),
                "cache_total": totals,
            })
        };
        rows.into_iter().map(row).collect()
    }

    fn servers(&self, before: &Self) -> Vec<Value> {
        let earlier = |origin: &String, server: &ServerStatus| {
            let same = |(o, s): &&(String, ServerStatus)| o == origin && s.name == server.name;
            before.servers.iter().find(same).map(|(_, server)| (server.requests, server.failed))
        };
        let row = |(origin, server): &(String, ServerStatus)| {
            let (requests, failed) = earlier(origin, server).unwrap_or_default();
            let mut told = servers::server(server);
            told["origin"] = json!(origin);
            told["rates"] = json!({
                "requests": self.rate(before, requests, server.requests),
                "failures": self.rate(before, failed, server.failed),
            });
            told
        };
        self.servers.iter().map(row).collect()
    }

    fn volumes(&self, before: &Self) -> Vec<Value> {
        let row = |volume: &Volume| {
            let was = before.volumes.iter().find(|was| was.path == volume.path);
            let was = was.map(|was| was.stats.clone()).unwrap_or_default();
            volume.row(|counter| self.rate(before, counter(&was), counter(&volume.stats)))
        };
        self.volumes.iter().map(row).collect()
    }

    /// The certificates, the first to expire first.
    fn certificates(&self) -> Vec<Value> {
        let mut rows: Vec<_> = self.certificates.iter().collect();
        rows.sort_by_key(|(.., left_s)| *left_s);
        rows.truncate(CERTIFICATES);
        let row = |(site, certificate, left_s): &(String, String, i64)| {
            json!({
                "site": site,
                "certificate": certificate,
                "left_s": left_s,
            })
        };
        rows.into_iter().map(row).collect()
    }

    /// Limits that were reached since the start.
    fn limits(&self, before: &Self) -> Vec<Value> {
        let rows = limits::TABLE.iter().zip(self.limits.iter().zip(&before.limits));
        rows.filter(|(_, (hits, _))| **hits > 0)
            .map(|(spec, (hits, was))| {
                json!({
                    "limit": spec.name,
                    "about": spec.about,
                    "hits": hits,
                    "rate": self.rate(before, *was, *hits),
                })
            })
            .collect()
    }
}

/// The last rows of rates. The memory for all of them is taken at once.
#[derive(Debug)]
struct Rows {
    most: usize,
    rows: VecDeque<(u64, [f64; KEPT.len()])>,
}

impl Rows {
    fn new(most: usize) -> Self {
        Self { most, rows: VecDeque::with_capacity(most) }
    }

    /// Adds what happened between two readings, in place of the oldest row when all are taken.
    fn note(&mut self, before: &Reading, now: &Reading) {
        let rates = now.rates(before);
        if self.rows.len() >= self.most {
            self.rows.pop_front();
        }
        let of = |name: &str| rates.get(name).copied().unwrap_or(0.0);
        self.rows.push_back((now.unix_ms, KEPT.map(of)));
    }

    fn json(&self) -> Vec<Vec<f64>> {
        let row = |(unix_ms, rates): &(u64, [f64; KEPT.len()])| {
            [*unix_ms as f64].iter().chain(rates).copied().collect()
        };
        self.rows.iter().map(row).collect()
    }
}

/// The time before: the last readings as they were taken, and means of whole minutes behind them.
#[derive(Debug)]
pub(super) struct History {
    recent: Rows,
    minutes: Rows,
    /// Where the minute that is not over began.
    minute: Option<Reading>,
}

impl History {
    /// Reaches back so many minutes, once it is as old.
    pub(super) fn new(minutes: usize) -> Self {
        Self { recent: Rows::new(RECENT), minutes: Rows::new(minutes), minute: None }
    }

    /// Adds what happened between two readings.
    pub(super) fn note(&mut self, before: &Reading, now: &Reading) {
        if now.since(before) >= LEAST_S {
            self.recent.note(before, now);
        }
        let start = self.minute.get_or_insert_with(|| before.counts());
        if now.unix_ms / MINUTE_MS != start.unix_ms / MINUTE_MS {
            self.minutes.note(start, now);
            self.minute = Some(now.counts());
        }
    }

    /// The names of the columns, and both kinds of rows, the oldest first.
    pub(super) fn json(&self) -> Value {
        let columns: Vec<&str> = ["time_ms"].into_iter().chain(KEPT).collect();
        json!({
            "columns": columns,
            "reach_s": self.minutes.most * 60,
            "rows": self.recent.json(),
            "minutes": self.minutes.json(),
        })
    }
}

/// A node's view of its cluster, with as many nodes as are shown, and the number of all.
fn nodes(mut status: cluster::Status, configuration: &Value) -> Value {
    let all = status.members.len();
    // The sort keeps the order of names.
    status.members.sort_by_key(|own| (own.state == "ready", own.state == "left"));
    status.members.truncate(NODES);
    let mut told = serde_json::to_value(status).unwrap_or_default();
    (told["nodes"], told["configuration"]) = (all.into(), configuration.clone());
    told
}

#[cfg(test)]
mod tests {
    use disk::{Condition, Reason, Stats};

    use super::*;

    /// A reading at this second in which everything that is counted has this value.
    fn reading(second: u64, value: u64) -> Reading {
        Reading {
            unix_ms: second * 1000,
            us: second * 1_000_000,
            counted: vec![value; COUNTED.len()],
            limits: vec![0; limits::TABLE.len()],
            ..Reading::default()
        }
    }

    #[test]
    fn rates_are_by_the_second_whatever_time_has_passed() {
        let told = reading(12, 500).json(&reading(2, 100));
        assert_eq!(told["rates"]["requests"], 40.0);
        assert_eq!(told["rates"]["evictions"], 0.0);
        // Two looks at the same moment divide by nothing.
        assert!(reading(2, 5).json(&reading(2, 5))["rates"]["hits"].is_f64());
    }

    #[test]
    fn each_kept_rate_is_counted() {
        let rates = reading(1, 0).rates(&reading(0, 0));
        assert!(KEPT.iter().all(|name| rates.contains_key(name)));
    }

    #[test]
    fn sites_come_by_their_requests_and_limits_once_they_were_reached() {
        let (mut before, mut now) = (reading(0, 0), reading(2, 0));
        let sums = |hits, passes| {
            let mut requests = [0; Outcome::ALL.len()];
            (requests[Outcome::Hit as usize], requests[Outcome::Pass as usize]) = (hits, passes);
            SiteSums { requests, errors: 1, bytes: 8 }
        };
        before.sites.insert("a".to_owned(), sums(10, 0));
        now.sites.insert("a".to_owned(), sums(20, 10));
        now.sites.insert("b".to_owned(), sums(100, 0));
        now.limits[3] = 4;
        let told = now.json(&before);
        assert_eq!(told["sites"][0]["site"], "b");
        assert_eq!(told["sites"][0]["requests"], 50.0);
        assert_eq!(told["sites"][1]["requests"], 10.0);
        assert_eq!(told["sites"][1]["cache"]["hit"], 5.0);
        assert_eq!(told["sites"][1]["errors"], 0.0);
        assert_eq!(told["limits"].as_array().map(Vec::len), Some(1));
        assert_eq!(told["limits"][0]["limit"], limits::TABLE[3].name);
        assert_eq!(told["limits"][0]["rate"], 2.0);
    }

    #[test]
    fn volumes_tell_what_they_read_and_write_by_the_second() {
        let volume = |reads, out: bool| Volume {
            path: "/srv/disk".to_owned(),
            condition: if out { Condition::Out(Reason::Errors) } else { Condition::In },
            stats: Stats { reads, damaged_sum: 2, errors_read: 3, ..Stats::default() },
            absence: None,
        };
        let (mut before, mut now) = (reading(0, 0), reading(2, 0));
        assert_eq!(now.json(&before)["disk"], json!([]));
        before.volumes.push(volume(10, false));
        now.volumes.push(volume(30, true));
        let told = &now.json(&before)["disk"][0];
        assert_eq!((&told["path"], &told["is_in"]), (&json!("/srv/disk"), &json!(false)));
        assert_eq!(told["rates"]["reads"], 10.0);
        assert_eq!((&told["damaged"], &told["errors"]), (&json!(2), &json!(3)));
        assert!(told["state"].as_str().is_some_and(|state| state.starts_with("out of use: ")));
    }

    /// A history and its JSON, after readings every `step` seconds. The counters grow by one a
    /// second.
    fn noted(minutes: usize, step: u64, last: u64) -> (History, Value) {
        let mut history = History::new(minutes);
        for second in (step..=last).step_by(step as usize) {
            history.note(&reading(second - step, second - step), &reading(second, second));
        }
        let told = history.json();
        (history, told)
    }

    fn rows(told: &Value, name: &str) -> Vec<Vec<f64>> {
        serde_json::from_value(told[name].clone()).expect("rows of numbers")
    }

    #[test]
    fn the_last_readings_are_kept_as_they_were_taken() {
        let (_, told) = noted(10, 1, RECENT as u64 + 5);
        let rows = rows(&told, "rows");
        assert_eq!(rows.len(), RECENT);
        assert_eq!(rows[0][0], 6_000.0);
        assert_eq!(Some(rows[0].len()), told["columns"].as_array().map(Vec::len));
        assert_eq!(rows[0][1], 1.0);
    }

    #[test]
    fn two_looks_at_one_moment_are_one_row() {
        let mut history = History::new(10);
        history.note(&reading(0, 0), &reading(10, 50));
        let again = Reading { us: 10_002_000, ..reading(10, 50) };
        history.note(&reading(10, 50), &again);
        assert_eq!(rows(&history.json(), "rows").len(), 1);
    }

    #[test]
    fn minutes_behind_them_are_means_of_all_that_happened_in_one() {
        let mut history = History::new(60);
        // Nothing for half a minute, then two a second.
        history.note(&reading(0, 0), &reading(30, 0));
        history.note(&reading(30, 0), &reading(59, 58));
        assert!(rows(&history.json(), "minutes").is_empty());
        history.note(&reading(59, 58), &reading(60, 60));
        let minutes = rows(&history.json(), "minutes");
        assert_eq!(minutes.len(), 1);
        assert_eq!(minutes[0][..2], [60_000.0, 1.0]);
    }

    #[test]
    fn a_day_of_minutes_takes_no_more_than_was_taken_at_the_start() {
        let day = 24 * 60;
        let capacity = History::new(day).minutes.rows.capacity();
        let (history, told) = noted(day, 10, 3 * 86_400);
        assert_eq!(history.minutes.rows.capacity(), capacity);
        let minutes = rows(&told, "minutes");
        assert_eq!(minutes.len(), day);
        assert_eq!(told["reach_s"], 86_400);
        assert_eq!(minutes[0][..2], [(2.0 * 86_400.0 + 60.0) * 1e3, 1.0]);
        assert_eq!(minutes.last().map(|row| row[0]), Some(3.0 * 86_400.0 * 1e3));
    }
}
