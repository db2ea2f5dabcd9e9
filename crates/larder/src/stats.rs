//! The daemon's figures under Varnish's public names, as `varnishstat` prints them. What has no
//! counterpart here is not among them, rather than zero for ever.

use base::Counter;
use base::clock::System;
use flow::vcl::counts;
use flow::vcl::link::Connected;
use serde_json::{Map, Value, json};
use vcl::backend::Backend;

use crate::serve::Daemon;

/// One figure.
struct Figure {
    name: String,
    about: &'static str,
    /// `c` counts, `g` is now, `b` is bits.
    flag: &'static str,
    /// `i` a number, `B` bytes, `d` seconds, `b` bits.
    format: &'static str,
    value: u64,
}

impl Figure {
    fn count(name: impl Into<String>, about: &'static str, value: u64) -> Self {
        Self { name: name.into(), about, flag: "c", format: "i", value }
    }

    fn now(name: impl Into<String>, about: &'static str, value: u64) -> Self {
        Self { flag: "g", ..Self::count(name, about, value) }
    }

    fn bytes(name: impl Into<String>, about: &'static str, value: u64) -> Self {
        Self { flag: "g", format: "B", ..Self::count(name, about, value) }
    }

    fn seconds(name: &str, about: &'static str, value: u64) -> Self {
        Self { format: "d", ..Self::count(name, about, value) }
    }
}

/// All of them, as `varnishstat -j` prints them.
pub(crate) fn json(daemon: &Daemon) -> String {
    let mut map = Map::new();
    for Figure { name, about, flag, format, value } in figures(daemon) {
        let one = json!({ "description": about, "flag": flag, "format": format, "value": value });
        map.insert(name, one);
    }
    let time = stamp(System.now().unix_secs());
    let all = json!({ "version": 1, "timestamp": time, "counters": map });
    format!("{all:#}\n")
}

/// Names and values alone.
pub(crate) fn values(daemon: &Daemon) -> Value {
    figures(daemon).into_iter().map(|figure| (figure.name, Value::from(figure.value))).collect()
}

fn figures(daemon: &Daemon) -> Vec<Figure> {
    let mut all = common(daemon);
    let vcl = &daemon.shared.vcl.counts;
    all.extend(
        counts::TABLE.iter().map(|(count, name, about)| {
            Figure::count(format!("MAIN.{name}"), about, vcl.sum(*count))
        }),
    );
    let store = daemon.shared.cache.stats();
    let (size, room) = (store.bytes, store.budget.saturating_sub(store.bytes));
    // One memory is behind all storages: the first has it.
    if let Some(storage) = daemon.vcls.storages().first() {
        let name = |what: &str| format!("SMA.{}.{what}", storage.name);
        all.push(Figure::bytes(name("g_bytes"), "Bytes outstanding", size));
        all.push(Figure::bytes(name("g_space"), "Bytes available", room));
    }
    all.extend(backends(daemon));
    all
}

/// What is counted whether programs decide or settings.
fn common(daemon: &Daemon) -> Vec<Figure> {
    let sum = |counter: Counter| daemon.shared.counters.sum(counter);
    // Of blocks that are read one after the other the sum can be below zero for a moment.
    let gauge = |counter: Counter| u64::try_from(sum(counter) as i64).unwrap_or(0);
    let (uptime, store) = (daemon.uptime().as_secs(), daemon.shared.cache.stats());
    let (connections, open) = (sum(Counter::Connections), gauge(Counter::ConnectionsOpen));
    let bans = daemon.shared.cache.bans();
    let over = bans.iter().filter(|listed| listed.over).count() as u64;
    let loaded = daemon.vcls.loaded();
    let discarded = daemon.vcls.going() as u64;
    vec![
        Figure::seconds("MGT.uptime", "Seconds since the start", uptime),
        Figure::count("MGT.child_start", "Starts of what serves", 1),
        Figure::seconds("MAIN.uptime", "Seconds since the start", uptime),
        Figure::count("MAIN.sess_conn", "Connections accepted", connections),
        Figure::count("MAIN.s_sess", "Connections seen", connections),
        Figure::count("MAIN.sess_closed", "Connections closed", connections.saturating_sub(open)),
        Figure::count(
            "MAIN.sess_dropped",
            "Connections closed at once because of a limit",
            sum(Counter::ConnectionsRefused),
        ),
        Figure::count(
            "MAIN.client_req_400",
            "Requests refused for their form",
            sum(Counter::BadRequests),
        ),
        Figure::count(
            "MAIN.backend_retry",
            "Fetches repeated on a new connection",
            sum(Counter::OriginRetries),
        ),
        Figure::now("MAIN.n_pipe", "Piped connections open", gauge(Counter::TunnelsOpen)),
        Figure::now("MAIN.n_object", "Responses stored", store.objects),
        Figure::count("MAIN.n_lru_nuked", "Responses evicted to make room", store.evictions),
        Figure::now("MAIN.n_backend", "Backends", leaves(daemon).len() as u64),
        Figure::now("MAIN.n_vcl", "VCLs loaded", loaded.len() as u64 + discarded),
        Figure::now("MAIN.n_vcl_avail", "VCLs that can be used", loaded.len() as u64),
        Figure::now("MAIN.n_vcl_discard", "VCLs discarded that still have requests", discarded),
        Figure::now("MAIN.bans", "Bans kept", bans.len() as u64),
        Figure::now("MAIN.bans_completed", "Of these, tested against all", over),
        Figure::count("MAIN.bans_added", "Bans made", store.bans),
        Figure::now("MAIN.vmods", "VMODs there are", vcl::vmods::all().len() as u64),
    ]
}

/// Every backend that can be connected to, with its program's name.
fn leaves(daemon: &Daemon) -> Vec<(String, Backend)> {
    let of = |(name, instance): (String, std::sync::Arc<vcl::program::Instance>)| {
        let all = instance.backends().into_iter();
        all.filter(|own| matches!(own, Backend::Leaf(_))).map(move |own| (name.clone(), own))
    };
    daemon.vcls.loaded().into_iter().flat_map(of).collect()
}

fn backends(daemon: &Daemon) -> Vec<Figure> {
    let mut all = Vec::new();
    for (program, backend) in leaves(daemon) {
        let Backend::Leaf(leaf) = &backend else { continue };
        let Some(status) = Connected::of(leaf).and_then(Connected::status) else { continue };
        let name = |what: &str| format!("VBE.{program}.{}.{what}", leaf.name);
        let happy = Figure::count(name("happy"), "Good probes, one bit each", status.history.good);
        all.push(Figure { flag: "b", format: "b", ..happy });
        let in_use = u64::from(status.in_flight);
        all.push(Figure::now(name("conn"), "Connections in use", in_use));
        all.push(Figure::count(name("req"), "Requests sent", status.requests));
        all.push(Figure::count(name("fail"), "Requests without a usable answer", status.failed));
    }
    all
}

/// Seconds since 1970 as `varnishstat` writes them, in UTC: `2026-11-22T14:48:27`.
fn stamp(unix_secs: u64) -> String {
    let (days, secs) = (unix_secs / 86_400, unix_secs % 86_400);
    // Days from civil, the other way round: eras of 400 years begin on the first of March.
    let z = days + 719_468;
    let (era, doe) = (z / 146_097, z % 146_097);
    let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let (day, month) = (doy - (153 * mp + 2) / 5 + 1, if mp < 10 { mp + 3 } else { mp - 9 });
    let year = yoe + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (secs / 3600, secs / 60 % 60, secs % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_varnishstat_does() {
        assert_eq!(stamp(0), "1970-01-01T00:00:00");
        assert_eq!(stamp(1_795_358_907), "2026-11-22T14:48:27");
        assert_eq!(stamp(1_709_164_800), "2024-02-29T00:00:00");
    }
}
