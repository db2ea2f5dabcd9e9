//! The ring view: what dashboards show of the log ring: times of requests, URLs, clients, and
//! failed requests.

use std::collections::BTreeMap;
use std::path::Path;

use flow::explain::not_stored;
use observe::failed_requests::{FailedRequest, FailedRequests};
use observe::format::FieldPositions;
use observe::histogram::{DECADES, Histogram, HitHistograms, quantiles};
use observe::ring::{FollowStart, RingFollower};
use observe::tally::{FrequencyTable, GroupingKey, Sort, Sums};
use observe::text::Printable;
use observe::{Flags, Record};
use serde_json::{Value, json};

/// The time after which a request weighs a third, as in `larder top` and `larder hist`.
const PERIOD_S: f64 = 30.0;
/// Columns of the histogram for each power of ten.
const STEPS: usize = 10;
/// Rows of a table.
const ROWS: usize = 10;
/// Reasons for which responses are not stored.
const REASONS: usize = 32;
/// Failed requests that are kept.
const TROUBLES: usize = 50;
/// Polls in one look, each of at most a megabyte per core.
const POLLS: usize = 64;

/// A reader of the ring, and its counts.
pub(super) struct RingView {
    follower: RingFollower,
    fields: FieldPositions,
    /// The moment of opening, in microseconds. Requests that ended before do not count in rates:
    /// the ring may reach back for hours.
    opened_us: u64,
    whole: RequestCounts,
    /// The counts of selected sites.
    sites: BTreeMap<String, RequestCounts>,
    lost: u64,
}

/// The requests of all sites, or of one.
struct RequestCounts {
    times: HitHistograms,
    urls: FrequencyTable,
    clients: FrequencyTable,
    /// The URLs whose responses are not stored, by the token of the reason, or by `pass` and a
    /// rule.
    reasons: BTreeMap<Vec<u8>, FrequencyTable>,
    troubles: FailedRequests,
}

impl RingView {
    /// Opens the ring in `folder`; `None` if it cannot be read.
    pub(super) fn open(folder: &Path) -> Option<Self> {
        let follower = RingFollower::open(folder, FollowStart::Oldest).ok()?;
        Some(Self {
            fields: FieldPositions::new(follower.names()),
            follower,
            opened_us: rt::micros(),
            whole: RequestCounts::new(FailedRequests::new(TROUBLES)),
            sites: BTreeMap::new(),
            lost: 0,
        })
    }

    /// Counts what was written since the last look, also for each of `sites`; false when the ring
    /// is gone.
    pub(super) fn read_records(&mut self, sites: &[Option<String>]) -> bool {
        self.select_sites(sites);
        let Self { follower, fields, opened_us, whole, sites, .. } = self;
        for _ in 0..POLLS {
            let polled = follower.poll(&mut |record| {
                whole.add(record, fields, *opened_us);
                // Most daemons have few sites, and most dashboards show all of them.
                let own = sites.iter_mut().find(|(name, _)| name.as_bytes() == record.site);
                if let Some((_, own)) = own {
                    own.add(record, fields, *opened_us);
                }
            });
            match polled {
                Ok(polled) => {
                    self.lost += polled.lost;
                    if polled.records == 0 {
                        return true;
                    }
                }
                Err(_) => return false,
            }
        }
        true
    }

    /// Counts for these sites alone. A new one begins with its known failed requests.
    fn select_sites(&mut self, sites: &[Option<String>]) {
        self.sites.retain(|name, _| sites.iter().any(|own| own.as_ref() == Some(name)));
        for name in sites.iter().flatten() {
            if !self.sites.contains_key(name) {
                self.sites
                    .insert(name.clone(), RequestCounts::new(self.whole.troubles.of_site(name)));
            }
        }
    }

    /// Ages the counts by so many seconds.
    pub(super) fn pass(&mut self, seconds: f64) {
        self.whole.pass(seconds);
        self.sites.values_mut().for_each(|site| site.pass(seconds));
    }

    /// The figures for viewers of `site`, or of all together.
    pub(super) fn json(&self, site: Option<&str>) -> Value {
        let counted = site.map_or(Some(&self.whole), |name| self.sites.get(name));
        let mut told = counted.map(RequestCounts::json).unwrap_or_default();
        if !told.is_null() {
            told["lost"] = self.lost.into();
        }
        told
    }
}

impl RequestCounts {
    fn new(troubles: FailedRequests) -> Self {
        Self {
            times: HitHistograms::default(),
            urls: FrequencyTable::new(GroupingKey::Url, Some(PERIOD_S)),
            clients: FrequencyTable::new(GroupingKey::Client, Some(PERIOD_S)),
            reasons: BTreeMap::new(),
            troubles,
        }
    }

    fn add(&mut self, record: &Record<'_>, fields: &FieldPositions, opened_us: u64) {
        self.troubles.add(record, fields);
        if !record.is_client() || record.end_us() < opened_us {
            return;
        }
        // Requests that could not be parsed end at once, and would distort the times.
        if !record.flags.has(Flags::REFUSED) {
            self.times.add(record, record.phases.end);
        }
        self.urls.add(record, fields);
        self.clients.add(record, fields);
        note_reason(&mut self.reasons, record, fields);
    }

    fn pass(&mut self, seconds: f64) {
        self.times.fade((-seconds / PERIOD_S).exp());
        self.urls.advance(seconds);
        self.clients.advance(seconds);
        self.reasons.retain(|_, urls| {
            urls.advance(seconds);
            urls.rows(Sort::Requests, 1).len() == 1
        });
    }

    fn json(&self) -> Value {
        let per_second = self.urls.per_second();
        json!({
            "latency": {
                "columns_per_decade": STEPS,
                "hits": columns(&self.times.hits, per_second),
                "others": columns(&self.times.others, per_second),
                "hits_quantiles": quantiles(&self.times.hits),
                "others_quantiles": quantiles(&self.times.others),
            },
            "urls_by_misses": rows(&self.urls, Sort::Misses),
            "urls_by_time": rows(&self.urls, Sort::Time),
            "not_cached": self.not_cached(per_second),
            "clients": rows(&self.clients, Sort::Requests),
            "errors": self.troubles.latest().map(trouble).collect::<Vec<_>>(),
            "left": self.troubles.left(),
        })
    }

    /// The reasons for which responses are not stored, each with its most frequent URLs.
    fn not_cached(&self, per_second: f64) -> Vec<Value> {
        let all: f64 = self.reasons.values().map(|urls| urls.all().requests).sum();
        let mut reasons: Vec<_> = self.reasons.iter().collect();
        reasons.sort_by(|(_, a), (_, b)| b.all().requests.total_cmp(&a.all().requests));
        let told = |(reason, urls): (&Vec<u8>, &FrequencyTable)| {
            let reason = Printable(reason).to_string();
            let (about, rule) = match reason.strip_prefix("pass ") {
                Some(rule) => ("A rule sends it past the cache.", rule),
                None => not_stored(&reason).unwrap_or_default(),
            };
            let rows = urls.rows(Sort::Requests, ROWS).into_iter();
            json!({
                "reason": reason,
                "about": about,
                "rule": rule,
                "requests": urls.all().requests * per_second,
                "share": urls.all().requests / all.max(f64::MIN_POSITIVE),
                "urls": rows.map(|(key, sums)| row(key, sums, per_second)).collect::<Vec<_>>(),
            })
        };
        reasons.into_iter().map(told).collect()
    }
}

/// Counts a request whose response was not stored under the reason.
fn note_reason(
    reasons: &mut BTreeMap<Vec<u8>, FrequencyTable>,
    record: &Record<'_>,
    fields: &FieldPositions,
) {
    let reason = match record.not_stored {
        b"" => return,
        b"pass" => [b"pass ", record.rule].concat(),
        token => token.to_vec(),
    };
    if let Some(urls) = reasons.get_mut(&reason) {
        urls.add(record, fields);
    } else if reasons.len() < REASONS {
        let urls = reasons
            .entry(reason)
            .or_insert_with(|| FrequencyTable::new(GroupingKey::Url, Some(PERIOD_S)));
        urls.add(record, fields);
    }
}

/// Requests per second in each column, to three places.
fn columns(histogram: &Histogram, per_second: f64) -> Vec<f64> {
    let rate = |count: f64| (count * per_second * 1e3).round() / 1e3;
    histogram.columns(DECADES * STEPS).into_iter().map(rate).collect()
}

fn rows(tally: &FrequencyTable, sort: Sort) -> Vec<Value> {
    let per_second = tally.per_second();
    let rows = tally.rows(sort, ROWS);
    rows.into_iter().map(|(key, sums)| row(key, sums, per_second)).collect()
}

fn row(key: &[u8], sums: &Sums, per_second: f64) -> Value {
    json!({
        "key": Printable(key).to_string(),
        "secure": sums.secure * 2.0 > sums.requests,
        "requests": sums.requests * per_second,
        "waited": sums.waited * per_second,
        "errors": sums.errors * per_second,
        "bytes": sums.bytes * per_second,
        "hit_ratio": sums.hit_ratio(),
        "mean_us": sums.mean_us(),
        "time_us": sums.time_us * per_second,
    })
}

fn trouble(row: &FailedRequest) -> Value {
    json!({
        "time_ms": row.unix_ms,
        "count": row.count,
        "status": row.status,
        "served": row.served,
        "method": row.method,
        "url": row.url,
        "secure": row.secure,
        "error": row.error,
        "limit": row.limit,
        "server": row.server,
        "client": row.client,
        "agent": row.agent,
    })
}

#[cfg(test)]
mod tests {
    use observe::Record;
    use observe::record::{Phases, Served};
    use observe::ring::{Options, Ring};

    use super::*;

    /// Writes records into a ring of one core.
    fn write(ring: &mut observe::ring::Writer, records: &[Record<'_>]) {
        let mut bytes = Vec::new();
        records.iter().for_each(|record| record.write([None::<&[u8]>; 0], &mut bytes));
        ring.append(&bytes, records.len() as u32).expect("room");
    }

    fn record(target: &[u8], served: Served, end: u64, start_us: u64) -> Record<'_> {
        let fetch = (!served.is_hit()).then_some(1);
        let phases = Phases { fetch, end, ..Phases::default() };
        Record { host: b"a", target, status: 200, served, phases, start_us, ..Record::default() }
    }

    #[test]
    fn rates_count_from_when_somebody_looks_and_errors_from_before() {
        let folder = std::env::temp_dir().join(format!("larder-live-{}", std::process::id()));
        let options = Options {
            folder: folder.clone(),
            cores: 1,
            size: 1 << 20,
            names: Vec::new(),
            pid: std::process::id(),
            uid: rustix::process::geteuid().as_raw(),
            started_unix_ms: 0,
        };
        let ring = Ring::create(&options, None).expect("a ring");
        ring.publish().expect("renamed");
        let mut writer = ring.writer(0).expect("a writer");
        let early = record(b"/x", Served::Pass, 5, 0);
        let early = Record { status: 503, error: b"connect", site: b"shop", ..early };
        write(&mut writer, &[early]);
        let mut view = RingView::open(&folder).expect("opened");
        let now = rt::micros();
        let hit = record(b"/hit", Served::Hit, 50, now);
        write(&mut writer, &[hit, hit, record(b"/miss", Served::Miss, 20_000, now)]);
        assert!(view.read_records(&[]));
        view.pass(1.0);
        let told = view.json(None);
        assert_eq!(told["errors"][0]["url"], "a/x");
        assert_eq!(told["errors"][0]["error"], "connect");
        assert_eq!(told["urls_by_misses"].as_array().map(Vec::len), Some(1));
        assert_eq!(told["urls_by_misses"][0]["key"], "a/miss");
        assert_eq!(told["urls_by_time"][1]["key"], "a/hit");
        let sum = |name: &str| -> f64 {
            let columns = told["latency"][name].as_array().expect("columns");
            assert_eq!(columns.len(), DECADES * STEPS);
            columns.iter().filter_map(Value::as_f64).sum()
        };
        // A viewer selects a site: earlier failures are known, and counts begin.
        let chosen = [Some("shop".to_owned())];
        let of_shop = |target| Record { site: b"shop", ..record(target, Served::Miss, 9, now) };
        write(&mut writer, &[hit, of_shop(b"/cart"), Record { status: 499, ..of_shop(b"/left") }]);
        assert!(view.read_records(&chosen));
        view.pass(1.0);
        let shop = view.json(chosen[0].as_deref());
        let keys = |name: &str| -> Vec<&str> {
            shop[name]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|row| row["key"].as_str())
                .collect()
        };
        assert_eq!(keys("urls_by_misses").len(), 2);
        assert!(!keys("urls_by_time").contains(&"a/hit"), "{shop}");
        assert_eq!((&shop["errors"][0]["url"], &shop["left"]), (&json!("a/x"), &json!(1)));
        assert_eq!(shop["errors"].as_array().map(Vec::len), Some(1));
        assert_eq!(view.json(Some("unheard-of")), Value::Null);
        assert!(
            view.read_records(&[]) && view.json(chosen[0].as_deref()).is_null(),
            "nobody looks any more"
        );
        let (hits, others) = (sum("hits"), sum("others"));
        assert!(hits > 1.8 && hits < 2.1 && others > 0.9 && others < 1.1, "{hits} {others}");
        ring.end();
        _ = std::fs::remove_dir_all(folder);
    }
}
