//! Metrics: the daemon's figures for Prometheus (text format 0.0.4) and as JSON.

use std::fmt::Write as _;

use base::tally::{Outcome, Sums};
use base::{counters, limits};
use cluster::RollOutStage;
use origin::ServerStatus;

use crate::state::Daemon;
use crate::volumes::{self, Volume};
use crate::{process, rollout, stats};

/// Every figure by name: counters and the store's.
fn figures(daemon: &Daemon) -> Vec<(&'static str, counters::Kind, &'static str, u64)> {
    use counters::Kind::{Counter, Gauge};
    let registry = &daemon.shared.counters;
    let mut all: Vec<_> = counters::TABLE
        .iter()
        .map(|spec| (spec.name, spec.kind, spec.about, registry.sum(spec.counter)))
        .collect();
    let store = daemon.shared.cache.stats();
    all.extend([
        ("objects", Gauge, "Stored responses.", store.objects),
        ("memory_bytes", Gauge, "Bytes in use, stored or held for clients.", store.bytes),
        ("memory_budget_bytes", Gauge, "Bytes that may be in use.", store.budget),
        ("memory_held_bytes", Gauge, "Of the bytes in use, those held for clients.", store.held),
        (
            "memory_connections_bytes",
            Gauge,
            "Of the bytes held, those that client connections take by being open.",
            store.opened,
        ),
        (
            "memory_held_max_bytes",
            Gauge,
            "Bytes that may be held for clients (limit client_memory).",
            store.held_max,
        ),
        ("cache_evictions_total", Counter, "Stored responses evicted.", store.evictions),
        (
            "cache_expired_total",
            Counter,
            "Stored responses removed after they expired.",
            store.expired,
        ),
        ("bans_total", Counter, "Bans made: purges of more than one URL.", store.bans),
        ("bans", Gauge, "Bans kept.", daemon.shared.cache.bans().len() as u64),
    ]);
    all.extend(of_variants(&store));
    let about = "1 while the index of the disk is being read after the start.";
    all.push(("disk_finding", Gauge, about, daemon.shared.cache.lower().is_finding().into()));
    let index = daemon.shared.cache.index();
    all.extend([
        ("disk_index_bytes", Gauge, "Memory of the disk's index.", index.used()),
        (
            "disk_index_max_bytes",
            Gauge,
            "Most memory of the disk's index (limit disk_index_bytes).",
            index.most(),
        ),
    ]);
    if let Some(cluster) = daemon.cluster() {
        all.extend(of_cluster(&cluster.status()));
    }
    if let Some(bucket) = daemon.bucket() {
        all.extend(of_secrets(&bucket, daemon.ticket_keys_age()));
    }
    if let Some(own) = rollout::status(daemon) {
        all.extend(of_configuration(&own));
    }
    let uptime = daemon.uptime().as_secs();
    all.push(("uptime_seconds", Gauge, "How long the daemon has been running.", uptime));
    let missing = daemon.certificates().values().filter(|end| end.is_none()).count() as u64;
    let about = "Hosts that wait for their first certificate.";
    all.push(("certificates_missing", Gauge, about, missing));
    all
}

/// Figures of a cluster.
fn of_cluster(status: &cluster::Status) -> [(&'static str, counters::Kind, &'static str, u64); 13] {
    use counters::Kind::{Counter, Gauge};
    let live = status.members.iter().filter(|member| member.live).count() as u64;
    let counts = status.counts;
    let stands = status.stance == cluster::Stance::Member;
    let about = "1 while stored responses are used without validation: the node is in touch.";
    [
        ("cluster_connected", Gauge, "1 while the stream answers.", status.connected.into()),
        ("cluster_trusted", Gauge, about, status.trusted.into()),
        ("cluster_ready", Gauge, "1 while the node neither drains nor has left.", stands.into()),
        ("cluster_members", Gauge, "Nodes that trust their stored responses.", live),
        (
            "cluster_sequence",
            Gauge,
            "Sequence up to which the stream was applied.",
            status.sequence,
        ),
        ("cluster_last", Gauge, "The stream's last known sequence.", status.last),
        ("cluster_queued", Gauge, "Entries that wait to be published.", status.queued),
        ("cluster_told_total", Counter, "Entries of this node that the stream has.", counts.told),
        ("cluster_applied_total", Counter, "Entries that were applied.", counts.applied),
        (
            "cluster_doubts_total",
            Counter,
            "Times that all earlier responses had to be validated.",
            counts.doubts,
        ),
        (
            "cluster_not_reached_total",
            Counter,
            "Purges that were not acknowledged in time.",
            counts.not_reached,
        ),
        (
            "cluster_sessions_total",
            Counter,
            "Connections of the node to the servers.",
            counts.sessions,
        ),
        (
            "cluster_strange_total",
            Counter,
            "Invalid cards and acknowledgements, which were ignored.",
            counts.strange,
        ),
    ]
}

/// Figures of bodies that `Vary` selects.
fn of_variants(store: &cache::Stats) -> [(&'static str, counters::Kind, &'static str, u64); 2] {
    use counters::Kind::Counter;
    [
        (
            "cache_variants_total",
            Counter,
            "Bodies stored for some requests for their URL only, which `Vary` selects.",
            store.variants,
        ),
        (
            "cache_variants_equal_total",
            Counter,
            "Of these, bodies equal to that of another variant of the URL: its `Vary` may name a \
             field that changes nothing.",
            store.variants_equal,
        ),
    ]
}

/// Figures of what the nodes of a cluster share by `secret_file`.
fn of_secrets(
    bucket: &cluster::Bucket,
    tickets_age: u64,
) -> [(&'static str, counters::Kind, &'static str, u64); 8] {
    use counters::Kind::{Counter, Gauge};
    let status = bucket.status();
    let (counts, secrets) = (status.counts, &status.secrets);
    let bad = secrets.iter().filter(|secret| secret.refused.is_some()).count() as u64;
    let age = secrets.iter().map(|secret| secret.age_secs).min().unwrap_or(0);
    [
        ("cluster_secrets_connected", Gauge, "1 while all shared secrets are known.", {
            status.connected.into()
        }),
        ("cluster_secrets", Gauge, "Entries that nodes share.", secrets.len() as u64),
        ("cluster_secrets_bad", Gauge, "Of these, entries that cannot be used.", bad),
        ("cluster_secrets_age_seconds", Gauge, "The time since the last of them was written.", age),
        ("cluster_secrets_taken_total", Counter, "Entries of other nodes that were applied.", {
            counts.taken
        }),
        ("cluster_secrets_refused_total", Counter, "Entries that could not be used.", {
            counts.refused
        }),
        ("cluster_orders", Gauge, "1 while this node orders certificates for all.", {
            bucket.has_right().into()
        }),
        (
            "cluster_tickets_age_seconds",
            Gauge,
            "The time since the key was made with which session tickets are made: nodes make a new \
             one after six hours.",
            tickets_age,
        ),
    ]
}

/// Figures of the configuration that all nodes share.
fn of_configuration(
    own: &rollout::RolloutStatus,
) -> [(&'static str, counters::Kind, &'static str, u64); 3] {
    use counters::Kind::Gauge;
    let is = |stage: RollOutStage| own.stage.as_ref().is_some_and(|(_, own)| *own == stage).into();
    [
        (
            "cluster_configuration_wanted",
            Gauge,
            "1 while the shared configuration that this node is to run is in force.",
            own.is_wanted.into(),
        ),
        (
            "cluster_configuration_canary",
            Gauge,
            "1 while a version of it is on its canaries.",
            is(RollOutStage::Canary),
        ),
        (
            "cluster_configuration_failed",
            Gauge,
            "1 while the last version that was rolled out is one that failed.",
            is(RollOutStage::Failed),
        ),
    ]
}

/// A page of metrics under construction.
#[derive(Default)]
struct MetricsPage(String);

impl MetricsPage {
    fn head(&mut self, name: &str, kind: &str, about: &str) {
        // Writing to a String cannot fail.
        _ = writeln!(self.0, "# HELP larder_{name} {about}\n# TYPE larder_{name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        _ = write!(self.0, "larder_{name}");
        for (n, (label, text)) in labels.iter().enumerate() {
            let sign = if n == 0 { '{' } else { ',' };
            _ = write!(self.0, "{sign}{label}=\"{}\"", escaped(text));
        }
        let end = if labels.is_empty() { "" } else { "}" };
        _ = writeln!(self.0, "{end} {value}");
    }
}

/// A label's value, escaped for the exposition format.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The whole page.
pub(crate) fn page(daemon: &Daemon) -> String {
    let mut page = MetricsPage::default();
    page.head("build_info", "gauge", "Always 1; the labels describe the daemon.");
    page.sample("build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    for (name, kind, about, value) in figures(daemon) {
        let kind = match kind {
            counters::Kind::Counter => "counter",
            counters::Kind::Gauge | counters::Kind::Peak => "gauge",
        };
        page.head(name, kind, about);
        page.sample(name, &[], value);
    }
    if let Some(own) = rollout::status(daemon) {
        let name = "cluster_configuration_info";
        let about = "Always 1; the labels say which version of the shared configuration is in \
                     force, and which one was rolled out last, how far.";
        let (rolled, stage) = own.stage.unzip();
        let rolled = rolled.unwrap_or_default();
        let stage = stage.map_or("unknown", RollOutStage::word);
        page.head(name, "gauge", about);
        let labels = [("version", &*own.version), ("rolled_out", &rolled), ("stage", stage)];
        page.sample(name, &labels, 1);
    }
    page.head(
        "ports_missing",
        "gauge",
        "Ports of the admin listener, health checks, metrics, Varnish's CLI and HTCP that cannot \
         be had and are tried again.",
    );
    page.sample("ports_missing", &[], daemon.ports.count());
    let name = "certificate_expires_seconds";
    page.head(name, "gauge", "Until the certificate expires; fewer than none: it has.");
    for (site, certificate, left) in daemon.expiries() {
        page.sample(name, &[("site", &site), ("certificate", &certificate)], left);
    }
    page.head("limit_hits_total", "counter", "How often a limit was reached.");
    for spec in limits::TABLE {
        let value = daemon.shared.limit_hits(spec.limit);
        page.sample("limit_hits_total", &[("limit", spec.name)], value);
    }
    by_volume(&mut page, &volumes::all(daemon));
    if let Some(neighbours) = daemon.neighbours.get() {
        by_neighbour(&mut page, &neighbours.figures());
    }
    let mut sums = daemon.shared.tallies.sum();
    // A counter that begins above 0 hides from Prometheus what came before the first scrape.
    let sites: Vec<_> =
        daemon.with_config(|config| config.sites.iter().filter_map(first_host).collect());
    for site in sites {
        sums.sites.entry(site).or_default();
    }
    by_site(&mut page, &sums);
    by_time(&mut page, &sums);
    by_server(&mut page, &daemon.servers());
    process(&mut page);
    page.0
}

/// Figures of the process itself.
fn process(page: &mut MetricsPage) {
    for (name, kind, about, value) in process::figures() {
        // Writing to a String cannot fail.
        _ = writeln!(page.0, "# HELP {name} {about}\n# TYPE {name} {kind}\n{name} {value}");
    }
}

/// The host under which a site is counted.
fn first_host(site: &config::SiteConfig) -> Option<String> {
    site.hosts.first().cloned()
}

fn by_site(page: &mut MetricsPage, sums: &Sums) {
    let name = "site_requests_total";
    page.head(name, "counter", "Requests of a site, by how the cache took part.");
    for (site, row) in &sums.sites {
        for outcome in Outcome::ALL {
            let labels = [("site", site.as_str()), ("cache", outcome.word())];
            page.sample(name, &labels, row.requests[outcome as usize]);
        }
    }
    page.head("site_errors_total", "counter", "Responses of a site with a 5xx status.");
    for (site, row) in &sums.sites {
        page.sample("site_errors_total", &[("site", site)], row.errors());
    }
    page.head("site_bytes_out_total", "counter", "Bytes of bodies a site sent to clients.");
    for (site, row) in &sums.sites {
        page.sample("site_bytes_out_total", &[("site", site)], row.bytes);
    }
}

fn by_time(page: &mut MetricsPage, sums: &Sums) {
    let name = "request_seconds";
    let about = "From a request's first byte to its answer's last, by how the cache took part.";
    page.head(name, "histogram", about);
    let bucket = format!("{name}_bucket");
    for (outcome, latency) in Outcome::ALL.iter().zip(&sums.latency) {
        let cache = ("cache", outcome.word());
        for (bound_us, count) in latency.cumulative() {
            page.sample(&bucket, &[cache, ("le", &seconds(bound_us))], count);
        }
        page.sample(&bucket, &[cache, ("le", "+Inf")], latency.count());
        page.sample(&format!("{name}_sum"), &[cache], seconds(latency.sum_us()));
        page.sample(&format!("{name}_count"), &[cache], latency.count());
    }
}

/// Microseconds as seconds, without trailing zeros.
fn seconds(us: u64) -> String {
    process::decimal(us, 6)
}

type FigureRow = (&'static str, &'static str, &'static str, fn(&ServerStatus) -> u64);

fn by_server(page: &mut MetricsPage, servers: &[(String, ServerStatus)]) {
    let rows: [FigureRow; 6] = [
        ("server_up", "gauge", "Whether an origin's server gets requests.", |s| s.healthy.into()),
        ("server_backup", "gauge", "Whether a server is used only while no other is.", |s| {
            s.backup.into()
        }),
        ("server_requests_total", "counter", "Requests an origin's server was given.", |s| {
            s.requests
        }),
        ("server_failures_total", "counter", "Of these, without a usable answer.", |s| s.failed),
        ("server_in_flight", "gauge", "Exchanges under way with an origin's server.", |s| {
            s.in_flight.into()
        }),
        ("server_waiting", "gauge", "Requests waiting for a connection to it.", |s| {
            s.waiting.into()
        }),
    ];
    for (name, kind, about, value) in rows {
        page.head(name, kind, about);
        for (origin, server) in servers {
            page.sample(name, &[("origin", origin), ("server", &server.name)], value(server));
        }
    }
    let name = "server_answer_seconds";
    let about = "From the begin of an exchange with an origin's server, connecting included, until \
                 its answer's head.";
    page.head(name, "summary", about);
    for (origin, server) in servers {
        let labels = [("origin", &**origin), ("server", &*server.name)];
        let (answers, waited_us) = server.answers;
        page.sample(&format!("{name}_sum"), &labels, seconds(waited_us));
        page.sample(&format!("{name}_count"), &labels, answers);
    }
}

/// Figures of the neighbours that invalidations are sent to.
fn by_neighbour(page: &mut MetricsPage, neighbours: &[(String, u64, bool)]) {
    if neighbours.is_empty() {
        return;
    }
    page.head("neighbour_up", "gauge", "1 if the last delivery to the neighbour succeeded.");
    for (neighbour, _, is_well) in neighbours {
        page.sample("neighbour_up", &[("neighbour", neighbour)], u8::from(*is_well));
    }
    page.head("neighbour_waiting", "gauge", "Invalidations queued for the neighbour.");
    for (neighbour, left, _) in neighbours {
        page.sample("neighbour_waiting", &[("neighbour", neighbour)], left);
    }
}

/// Figures of the disk cache, by volume.
fn by_volume(page: &mut MetricsPage, volumes: &[Volume]) {
    let Some(first) = volumes.first() else { return };
    page.head("disk_volume_up", "gauge", "Whether a volume of the disk cache is in use.");
    for volume in volumes {
        page.sample("disk_volume_up", &[("volume", &volume.path)], u8::from(volume.is_in()));
    }
    let figures = |volume: &Volume| -> Vec<_> {
        let gauges = volume.stats.gauges().map(|(name, about, value)| (name, about, "", value));
        let counted = volume.stats.counted();
        gauges.chain(counted.map(|(name, about, value)| (name, about, "_total", value))).collect()
    };
    for (at, (name, about, end, _)) in figures(first).into_iter().enumerate() {
        let kind = if end.is_empty() { "gauge" } else { "counter" };
        let name = format!("disk_volume_{name}{end}");
        page.head(&name, kind, about);
        for volume in volumes {
            page.sample(&name, &[("volume", &volume.path)], figures(volume)[at].3);
        }
    }
}

/// The figures as JSON, under stable names.
pub(crate) fn json(daemon: &Daemon) -> serde_json::Value {
    let mut map = serde_json::Map::new();
    for (name, _, _, value) in figures(daemon) {
        map.insert(name.to_owned(), value.into());
    }
    let limits: serde_json::Map<_, _> = limits::TABLE
        .iter()
        .map(|spec| (spec.name.to_owned(), daemon.shared.limit_hits(spec.limit).into()))
        .collect();
    map.insert("limit_hits".to_owned(), limits.into());
    const DAY: i64 = 24 * 3600;
    let days: serde_json::Map<_, _> = daemon
        .expiries()
        .into_iter()
        .map(|(_, certificate, left)| (certificate, left.div_euclid(DAY).into()))
        .collect();
    map.insert("certificate_days".to_owned(), days.into());
    let volumes = volumes::all(daemon);
    if !volumes.is_empty() {
        let volumes: serde_json::Map<_, _> =
            volumes.iter().map(|volume| (volume.path.clone(), volume.json())).collect();
        map.insert("disk".to_owned(), volumes.into());
    }
    // Under Varnish's names, if a VCL decides.
    if !daemon.vcls.is_empty() {
        map.insert("varnish".to_owned(), stats::values(daemon));
    }
    serde_json::Value::Object(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_times_are_short() {
        let mut page = MetricsPage::default();
        page.sample("a", &[("x", "b\"c\\"), ("y", "")], 1);
        page.sample("b", &[], seconds(1_500_000));
        page.sample("c", &[], seconds(100));
        assert_eq!(page.0, "larder_a{x=\"b\\\"c\\\\\",y=\"\"} 1\nlarder_b 1.5\nlarder_c 0.0001\n");
        assert_eq!([seconds(0), seconds(10_000_000)], ["0", "10"]);
    }
}
