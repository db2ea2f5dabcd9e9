//! The figures of a moment, and the rates between two moments.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::counters::Counter;
use base::limits;
use base::tally::{Latency, Outcome, SiteSums, Speed, hit_ratio};
use flow::{Campaign, Finding};
use origin::ServerStatus;
use serde_json::{Map, Value, json};

use crate::rollout;
use crate::servers;
use crate::state::Daemon;
use crate::volumes::{self, Volume};

/// Sites with rates of their own and a row in the table: those with most requests.
pub(super) const SITES: usize = 12;
/// Certificates that are shown, the first to expire first.
const CERTIFICATES: usize = 20;
/// Pages that were seen to differ by visitor, and are shown.
const FINDINGS: usize = 5;
/// Campaigns that warm the store, and are shown.
const CAMPAIGNS: usize = 5;
/// Nodes of a cluster that are shown, those that are not ready first.
const NODES: usize = 50;

/// Sums of counters, each under the name of its rate. Exactly one of the first nine counts each
/// reply, in the order of [`Outcome::ALL`].
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
    ("successes", &[Counter::Status2xx]),
    ("redirects", &[Counter::Status3xx]),
    ("client_errors", &[Counter::Status4xx]),
    ("errors", &[Counter::Status5xx]),
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

/// Rates by status, in the order of [`SiteSums::statuses`].
const STATUSES: [&str; 4] = ["successes", "redirects", "client_errors", "errors"];

/// Quantiles of times, in microseconds, each of one kind of response.
const QUANTILES: [(&str, Speed, f64); 6] = [
    ("hits_p50_us", Speed::Hits, 0.5),
    ("hits_p90_us", Speed::Hits, 0.9),
    ("hits_p99_us", Speed::Hits, 0.99),
    ("others_p50_us", Speed::Others, 0.5),
    ("others_p90_us", Speed::Others, 0.9),
    ("others_p99_us", Speed::Others, 0.99),
];

/// Classes of clients, each with the counters of its requests, hits and fetches.
const CLASSES: [(&str, [Counter; 3]); 5] = [
    ("human", [Counter::HumanRequests, Counter::HumanHits, Counter::HumanFetches]),
    ("search", [Counter::SearchRequests, Counter::SearchHits, Counter::SearchFetches]),
    ("ai", [Counter::AiRequests, Counter::AiHits, Counter::AiFetches]),
    ("tool", [Counter::ToolRequests, Counter::ToolHits, Counter::ToolFetches]),
    ("unknown", [Counter::UnknownRequests, Counter::UnknownHits, Counter::UnknownFetches]),
];

/// Figures of a moment by name: rates per second, and quantiles, which are NaN without requests.
pub(super) type Rates = BTreeMap<&'static str, f64>;

/// The figures of one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct FigureReading {
    unix_ms: u64,
    us: u64,
    uptime_s: u64,
    counted: Vec<u64>,
    evictions: u64,
    times: [Latency; Speed::ALL.len()],
    gauges: Vec<(&'static str, u64)>,
    limits: Vec<u64>,
    /// Requests, hits and fetches of each class of clients.
    classes: Vec<[u64; 3]>,
    /// The origins of each site.
    origins: BTreeMap<String, Vec<String>>,
    sites: BTreeMap<String, SiteSums>,
    servers: Vec<(String, ServerStatus)>,
    /// The number of responses of each origin's servers, and the sum of microseconds until they
    /// began.
    answers: BTreeMap<String, (u64, u64)>,
    volumes: Vec<Volume>,
    /// Site, name, and seconds until expiry of each certificate.
    certificates: Vec<(String, String, i64)>,
    /// Pages that were seen to differ by visitor, the latest first.
    differing: Vec<Finding>,
    /// Campaigns that warm the store, the latest first.
    campaigns: Vec<Arc<Campaign>>,
    cluster: Option<cluster::Status>,
    /// The configuration that all nodes share, in short.
    configuration: Value,
}

impl FigureReading {
    /// Takes a reading.
    pub(super) fn take(daemon: &Daemon) -> Self {
        let (registry, cache) = (&daemon.shared.counters, &daemon.shared.cache);
        let store = cache.stats();
        let sum = |counters: &[Counter]| counters.iter().map(|c| registry.sum(*c)).sum();
        let sums = daemon.shared.tallies.sum();
        let servers = daemon.servers();
        let mut answers = BTreeMap::<String, (u64, u64)>::new();
        for (origin, server) in &servers {
            let sum = answers.entry(origin.clone()).or_default();
            *sum = (sum.0 + server.answers.0, sum.1 + server.answers.1);
        }
        Self {
            unix_ms: rt::now().unix_ms,
            us: rt::micros(),
            uptime_s: daemon.uptime().as_secs(),
            counted: COUNTED.iter().map(|(_, counters)| sum(counters)).collect(),
            evictions: store.evictions,
            times: sums.times(),
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
            classes: CLASSES.iter().map(|(_, own)| own.map(|own| registry.sum(own))).collect(),
            origins: daemon.with_config(origins),
            sites: sums.sites,
            servers,
            answers,
            volumes: volumes::all(daemon),
            certificates: daemon.expiries(),
            differing: differing(daemon),
            campaigns: daemon.shared.warmth.campaigns().into_iter().rev().take(CAMPAIGNS).collect(),
            cluster: daemon.cluster().map(|cluster| cluster.status()),
            configuration: rollout::short(daemon),
        }
    }

    /// The part of a reading from which the rates of `site`, or of all together, are made.
    pub(super) fn counts(&self, site: Option<&str>) -> Self {
        let of_one =
            |name| self.sites.get_key_value(name).map(|(name, sums)| (name.clone(), *sums));
        Self {
            unix_ms: self.unix_ms,
            us: self.us,
            counted: self.counted.clone(),
            evictions: self.evictions,
            times: self.times,
            sites: site
                .map_or_else(|| self.sites.clone(), |name| of_one(name).into_iter().collect()),
            ..Self::default()
        }
    }

    /// Milliseconds since 1970 UTC.
    pub(super) fn unix_ms(&self) -> u64 {
        self.unix_ms
    }

    /// Seconds since an earlier reading.
    pub(super) fn since(&self, before: &Self) -> f64 {
        (self.us.saturating_sub(before.us) as f64 / 1e6).max(1e-3)
    }

    /// The growth per second of a counter, from `was` to `is`.
    fn rate(&self, before: &Self, was: u64, is: u64) -> f64 {
        let rate = is.saturating_sub(was) as f64 / self.since(before);
        (rate * 1e3).round() / 1e3
    }

    /// Every rate by its name, of all sites together or of one.
    pub(super) fn rates(&self, before: &Self, site: Option<&str>) -> Rates {
        let mut rates = match site {
            None => self.rates_of_all(before),
            Some(site) => self.rates_of_site(before, site),
        };
        // Both parts of the hit ratio, so that a mean over several of them needs no formula.
        let judged =
            [("from_store", Outcome::is_hit as fn(_) -> _), ("judged", Outcome::is_judged)];
        for (name, such) in judged {
            let parts = Outcome::ALL.into_iter().filter(|outcome| such(*outcome));
            rates.insert(name, parts.map(|part| rates[COUNTED[part as usize].0]).sum());
        }
        let (is, was) = (self.times_of(site), before.times_of(site));
        for (name, speed, part) in QUANTILES {
            let times = is[speed as usize].since(&was[speed as usize]);
            rates.insert(name, times.quantile_us(part).map_or(f64::NAN, f64::round));
        }
        rates
    }

    fn rates_of_all(&self, before: &Self) -> Rates {
        let counted = COUNTED.iter().zip(self.counted.iter().zip(&before.counted));
        let mut rates: Rates =
            counted.map(|((name, _), (is, was))| (*name, self.rate(before, *was, *is))).collect();
        rates.insert("evictions", self.rate(before, before.evictions, self.evictions));
        let spared =
            |counted: &Self| self.sites.keys().map(|site| self.spared_us(counted, site)).sum();
        rates.insert("spared_s", self.rate(before, spared(before), spared(self)) / 1e6);
        rates
    }

    /// The rates of one site, under the names of the overall rates.
    fn rates_of_site(&self, before: &Self, site: &str) -> Rates {
        let sums = |reading: &Self| reading.sites.get(site).copied().unwrap_or_default();
        let (is, was) = (sums(self), sums(before));
        let rate = |was: u64, is: u64| self.rate(before, was, is);
        let mut rates = Rates::new();
        for outcome in Outcome::ALL {
            let at = outcome as usize;
            rates.insert(COUNTED[at].0, rate(was.requests[at], is.requests[at]));
        }
        for (name, (is, was)) in STATUSES.iter().zip(is.statuses.iter().zip(&was.statuses)) {
            rates.insert(name, rate(*was, *is));
        }
        rates.insert("requests", rate(was.all(), is.all()));
        rates.insert("bytes_out", rate(was.bytes, is.bytes));
        // An origin may serve other sites, too; the time waited for it here is this site's.
        let waited = ["revalidated", "misses", "passes"].iter().map(|name| rates[name]).sum();
        rates.insert("origin_requests", waited);
        let spared = rate(self.spared_us(before, site), self.spared_us(self, site)) / 1e6;
        rates.insert("spared_s", spared);
        rates
    }

    fn times_of(&self, site: Option<&str>) -> [Latency; Speed::ALL.len()] {
        let of = |name: &str| self.sites.get(name).map(|sums| sums.times).unwrap_or_default();
        site.map_or(self.times, of)
    }

    /// Microseconds of origin time that the hits of `counted` have saved `site`: each as long as
    /// the mean response time of the site's origins since the start.
    fn spared_us(&self, counted: &Self, site: &str) -> u64 {
        let from_store = counted.sites.get(site).map_or(0, from_store);
        (from_store as f64 * self.mean_us(site)) as u64
    }

    /// The mean response time of a site's origins, in microseconds; of all origins if the site's
    /// are unknown, as with a program.
    fn mean_us(&self, site: &str) -> f64 {
        let own = self.origins.get(site).filter(|own| !own.is_empty());
        let theirs =
            self.answers.iter().filter(|(name, _)| own.is_none_or(|own| own.contains(name)));
        let (answers, us) = theirs.fold((0, 0), |sum, (_, more)| (sum.0 + more.0, sum.1 + more.1));
        if answers == 0 { 0.0 } else { us as f64 / answers as f64 }
    }

    /// The figures for viewers, of all sites together or of one; rates are those since `before`.
    pub(super) fn json(&self, before: &Self, site: Option<&str>) -> Value {
        let mut now: Map<_, _> =
            self.gauges.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        let is_shown = |name: &str| site.is_none_or(|site| site == name);
        let shown = || self.sites.iter().filter(|(name, _)| is_shown(name));
        let spared: u64 = shown().map(|(_, sums)| from_store(sums)).sum();
        let spared_us: u64 = shown().map(|(name, _)| self.spared_us(self, name)).sum();
        now.insert("spared_requests".to_owned(), json!(spared));
        now.insert("spared_s".to_owned(), json!(spared_us / 1_000_000));
        let chosen = site.map(|name| json!({ "name": name, "origins": self.origins.get(name) }));
        json!({
            "time_ms": self.unix_ms,
            "uptime_s": self.uptime_s,
            "site": chosen,
            "rates": self.rates(before, site),
            "now": now,
            "sites": self.sites(before),
            "servers": self.servers(before),
            "disk": self.volumes(before),
            "certificates": self.certificates(),
            "differing": self.differing.iter().map(finding_row).collect::<Vec<_>>(),
            "warmth": self.campaigns.iter().map(|own| campaign_row(own)).collect::<Vec<_>>(),
            "cluster": self.cluster.clone().map(|status| nodes(status, &self.configuration)),
            "limits": self.limits(before),
            "classes": self.classes(before),
        })
    }

    /// The names of the sites with most requests, the busiest first.
    pub(super) fn busiest(&self) -> Vec<&String> {
        let mut rows: Vec<_> = self.sites.iter().collect();
        rows.sort_by_key(|(_, sums)| std::cmp::Reverse(sums.all()));
        rows.into_iter().take(SITES).map(|(name, _)| name).collect()
    }

    fn sites(&self, before: &Self) -> Vec<Value> {
        let row = |name: &String| {
            let sums = &self.sites[name];
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
                "requests": self.rate(before, was.all(), sums.all()),
                "cache": classes,
                "hit_ratio": hit_ratio(rate),
                "errors": self.rate(before, was.errors(), sums.errors()),
                "bytes": self.rate(before, was.bytes, sums.bytes),
                "requests_total": sums.all(),
                "cache_total": totals,
            })
        };
        self.busiest().into_iter().map(row).collect()
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

    /// The classes of clients that have made requests, on sites that tell classes apart.
    fn classes(&self, before: &Self) -> Vec<Value> {
        let earlier = before.classes.iter().copied().chain(std::iter::repeat([0; 3]));
        let rows = CLASSES.iter().zip(self.classes.iter().zip(earlier));
        rows.filter(|(_, ([requests, ..], _))| *requests > 0)
            .map(|((class, _), (own, was))| {
                let rate = |at: usize| self.rate(before, was[at], own[at]);
                json!({
                    "class": class,
                    "requests": rate(0),
                    "hits": rate(1),
                    "fetches": rate(2),
                    "requests_total": own[0],
                })
            })
            .collect()
    }
}

/// The number of responses from the store, which origins were spared.
fn from_store(sums: &SiteSums) -> u64 {
    let parts = Outcome::ALL.into_iter().filter(|outcome| outcome.is_hit());
    parts.map(|part| sums.requests[part as usize]).sum()
}

/// The origins of each site, with those of its routes.
fn origins(config: &config::Config) -> BTreeMap<String, Vec<String>> {
    let row = |site: &config::SiteConfig| {
        let names: BTreeSet<_> =
            site.origins.iter().map(|at| config.origins[*at].name.clone()).collect();
        Some((site.hosts.first()?.clone(), names.into_iter().collect()))
    };
    config.sites.iter().filter_map(row).collect()
}

/// A node's view of its cluster, cut to the nodes that are shown, with the number of all.
fn nodes(mut status: cluster::Status, configuration: &Value) -> Value {
    let all = status.members.len();
    // The sort is stable: nodes stay in the order of their names.
    status.members.sort_by_key(|own| (own.state == "ready", own.state == "left"));
    status.members.truncate(NODES);
    let mut told = serde_json::to_value(status).unwrap_or_default();
    (told["nodes"], told["configuration"]) = (all.into(), configuration.clone());
    told
}

/// The latest pages of all sites that were seen to differ by visitor.
fn differing(daemon: &Daemon) -> Vec<Finding> {
    let live = daemon.shared.live();
    let own = live.sites.listed.iter().filter_map(|site| site.verification.as_ref());
    let mut all: Vec<_> = own.flat_map(|own| own.findings()).collect();
    all.sort_by_key(|finding| std::cmp::Reverse(finding.unix_ms));
    all.dedup();
    all.truncate(FINDINGS);
    all
}

/// A campaign that warms the store.
pub(crate) fn campaign_row(campaign: &Campaign) -> Value {
    let (counts, took_ms) = (campaign.counts(), campaign.took_ms(rt::now().mono_ms));
    let (done, left) = (counts.done(), counts.found.saturating_sub(counts.done()));
    // Those that needed no fetch took no time.
    let fetched = done.saturating_sub(counts.fresh + counts.dropped);
    let left_ms = match left {
        0 => Some(0),
        left => took_ms.saturating_mul(left).checked_div(fetched),
    };
    json!({
        "number": campaign.number,
        "title": campaign.title,
        "found": counts.found,
        "fetched": counts.fetched,
        "fresh": counts.fresh,
        "unstored": counts.unstored,
        "failed": counts.failed,
        "dropped": counts.dropped,
        "over": campaign.is_over(),
        "stopped": campaign.is_stopped(),
        "took_ms": took_ms,
        "left_ms": left_ms,
        "faults": campaign.faults(),
    })
}

/// A finding of a comparison with the origin.
pub(crate) fn finding_row(finding: &Finding) -> Value {
    json!({
        "url": finding.url,
        "route": finding.route,
        "cause": finding.cause.to_string(),
        "unix_ms": finding.unix_ms,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use disk::{Reason, Stats, VolumeCondition};

    use super::*;

    /// A reading at this second in which every counter has this value.
    pub(in crate::live) fn reading(second: u64, value: u64) -> FigureReading {
        FigureReading {
            unix_ms: second * 1000,
            us: second * 1_000_000,
            counted: vec![value; COUNTED.len()],
            limits: vec![0; limits::TABLE.len()],
            ..FigureReading::default()
        }
    }

    /// A reading moved to this microsecond.
    pub(in crate::live) fn at(us: u64, reading: FigureReading) -> FigureReading {
        FigureReading { us, ..reading }
    }

    /// A reading with a site that has served so many requests from the store.
    pub(in crate::live) fn site(
        mut reading: FigureReading,
        name: &str,
        hits: u64,
    ) -> FigureReading {
        let mut sums = SiteSums { statuses: [hits, 0, 0, 0], ..SiteSums::default() };
        sums.requests[Outcome::Hit as usize] = hits;
        reading.sites.insert(name.to_owned(), sums);
        reading
    }

    #[test]
    fn a_site_has_rates_and_sums_of_its_own() {
        let with = |second, a, b, answers| {
            let mut own = site(site(reading(second, 0), "a", a), "b", b);
            own.origins.insert("a".to_owned(), vec!["app".to_owned()]);
            own.answers.insert("app".to_owned(), answers);
            own.answers.insert("other".to_owned(), (1, 9));
            own
        };
        let (before, now) = (with(0, 10, 0, (2, 400_000)), with(2, 20, 100, (4, 800_000)));
        let told = now.json(&before, Some("a"));
        assert_eq!(told["site"], json!({ "name": "a", "origins": ["app"] }));
        for name in ["requests", "hits", "successes", "from_store", "judged"] {
            assert_eq!(told["rates"][name], 5.0, "{name}");
        }
        assert_eq!(told["rates"]["errors"], 0.0);
        // 0.2 s for each of twenty hits, five a second.
        assert_eq!(
            (&told["now"]["spared_requests"], &told["now"]["spared_s"]),
            (&json!(20), &json!(4))
        );
        assert_eq!(told["rates"]["spared_s"], 1.0);
        assert_eq!(told["rates"]["hits_p50_us"], Value::Null, "no time was told");
        let all = now.json(&before, None);
        assert_eq!((&all["site"], &all["now"]["spared_requests"]), (&Value::Null, &json!(120)));
    }

    #[test]
    fn rates_are_by_the_second_whatever_time_has_passed() {
        let told = reading(12, 500).json(&reading(2, 100), None);
        assert_eq!(told["rates"]["requests"], 40.0);
        assert_eq!(told["rates"]["evictions"], 0.0);
        // Two readings of the same moment divide by nothing.
        assert!(reading(2, 5).json(&reading(2, 5), None)["rates"]["hits"].is_f64());
    }

    #[test]
    fn sites_come_by_their_requests_and_limits_once_they_were_reached() {
        let (mut before, mut now) = (reading(0, 0), reading(2, 0));
        let sums = |hits, passes| {
            let mut requests = [0; Outcome::ALL.len()];
            (requests[Outcome::Hit as usize], requests[Outcome::Pass as usize]) = (hits, passes);
            SiteSums { requests, statuses: [0, 0, 0, 1], bytes: 8, ..SiteSums::default() }
        };
        before.sites.insert("a".to_owned(), sums(10, 0));
        now.sites.insert("a".to_owned(), sums(20, 10));
        now.sites.insert("b".to_owned(), sums(100, 0));
        now.limits[3] = 4;
        let told = now.json(&before, None);
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
    fn classes_are_told_once_they_have_made_requests() {
        let (mut before, mut now) = (reading(0, 0), reading(2, 0));
        now.classes = vec![[0; 3]; CLASSES.len()];
        assert_eq!(now.json(&before, None)["classes"], json!([]));
        before.classes = vec![[10, 4, 2]; CLASSES.len()];
        now.classes[2] = [30, 14, 4];
        let told = now.json(&before, None);
        let ai = json!({
            "class": "ai", "requests": 10.0, "hits": 5.0, "fetches": 1.0, "requests_total": 30,
        });
        assert_eq!(told["classes"], json!([ai]));
    }

    #[test]
    fn volumes_tell_what_they_read_and_write_by_the_second() {
        let volume = |reads, out: bool| Volume {
            path: "/srv/disk".to_owned(),
            condition: if out { VolumeCondition::Out(Reason::Errors) } else { VolumeCondition::In },
            stats: Stats { reads, damaged_sum: 2, errors_read: 3, ..Stats::default() },
            absence: None,
        };
        let (mut before, mut now) = (reading(0, 0), reading(2, 0));
        assert_eq!(now.json(&before, None)["disk"], json!([]));
        before.volumes.push(volume(10, false));
        now.volumes.push(volume(30, true));
        let told = &now.json(&before, None)["disk"][0];
        assert_eq!((&told["path"], &told["is_in"]), (&json!("/srv/disk"), &json!(false)));
        assert_eq!(told["rates"]["reads"], 10.0);
        assert_eq!((&told["damaged"], &told["errors"]), (&json!(2), &json!(3)));
        assert!(told["state"].as_str().is_some_and(|state| state.starts_with("out of use: ")));
    }
}
