//! Stats: the daemon's figures under Varnish's public names, as `varnishstat` prints them. A figure
//! without a counterpart here is left out, rather than always zero.

use base::{Counter, Limit};
use flow::vcl::link::BackendOrigin;
use serde_json::{Map, Value, json};
use vcl::backend::Backend;
use vcl::counts;
use vcl::text::calendar;

use crate::state::Daemon;

/// One figure.
struct Figure {
    name: String,
    about: &'static str,
    /// `c` for a counter, `g` for a gauge, `b` for a bitmap.
    flag: &'static str,
    /// `i` for a number, `B` for bytes, `d` for seconds, `b` for bits.
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

/// All figures, as `varnishstat -j` prints them.
pub(crate) fn json(daemon: &Daemon) -> String {
    let mut map = Map::new();
    for Figure { name, about, flag, format, value } in figures(daemon) {
        let one = json!({ "description": about, "flag": flag, "format": format, "value": value });
        map.insert(name, one);
    }
    let time = stamp(rt::now().unix_secs());
    let all = json!({ "version": 1, "timestamp": time, "counters": map });
    format!("{all:#}\n")
}

/// Names and values alone.
pub(crate) fn values(daemon: &Daemon) -> Value {
    figures(daemon).into_iter().map(|figure| (figure.name, Value::from(figure.value))).collect()
}

fn figures(daemon: &Daemon) -> Vec<Figure> {
    let mut all = common(daemon);
    all.extend(clients(daemon));
    all.extend(bans(daemon));
    let vcl = &daemon.shared.vcl.counts;
    all.extend(
        counts::TABLE.iter().map(|(count, name, about)| {
            Figure::count(format!("MAIN.{name}"), about, vcl.sum(*count))
        }),
    );
    let store = daemon.shared.cache.stats();
    let (size, room) = (store.bytes, store.budget.saturating_sub(store.bytes));
    // All storages share one memory: the first shows it.
    if let Some(storage) = daemon.vcls.storages().first() {
        let name = |what: &str| format!("SMA.{}.{what}", storage.name);
        all.push(Figure::bytes(name("g_bytes"), "Bytes outstanding", size));
        all.push(Figure::bytes(name("g_space"), "Bytes available", room));
    }
    all.extend(backends(daemon));
    all
}

/// The end of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SessionClose {
    /// Between requests.
    Left,
    /// While a request was awaited: an error, but not counted as closed.
    Late,
    /// After a response.
    Served,
    /// By an error.
    Failed,
}

/// Name, description and count of a reason for closing connections, and Varnish's class of it.
type SessionEnd = (&'static str, &'static str, u64, SessionClose);

/// The reasons for closing connections, and how Varnish counts them.
fn session_ends(sum: &impl Fn(Counter) -> u64, by_reply: u64) -> [SessionEnd; 13] {
    [
        ("rem_close", "Closed by the client", sum(Counter::ClosedByClient), SessionClose::Left),
        ("rx_close_idle", "Closed without a request", sum(Counter::ClosedIdle), SessionClose::Left),
        ("rx_timeout", "Closed for a slow request", sum(Counter::ClosedHead), SessionClose::Late),
        (
            "req_close",
            "Closed as the request asked",
            sum(Counter::ClosedAsAsked),
            SessionClose::Served,
        ),
        ("resp_close", "Closed as the response asked", by_reply, SessionClose::Served),
        ("tx_pipe", "Closed as a pipe", sum(Counter::ClosedTunnel), SessionClose::Served),
        ("tx_eof", "Closed to end a response", sum(Counter::ClosedByEnd), SessionClose::Served),
        ("req_http10", "Closed after HTTP/1.0", sum(Counter::ClosedHttp10), SessionClose::Failed),
        (
            "rx_junk",
            "Closed for a request's form",
            sum(Counter::ClosedMalformed),
            SessionClose::Failed,
        ),
        (
            "req_http20",
            "Closed for HTTP/2, switched off",
            sum(Counter::ClosedHttp2Off),
            SessionClose::Failed,
        ),
        (
            "rx_overflow",
            "Closed for a request's size",
            sum(Counter::ClosedTooLarge),
            SessionClose::Late,
        ),
        ("rx_body", "Closed for a request's body", sum(Counter::ClosedBody), SessionClose::Failed),
        ("tx_error", "Closed while sending", sum(Counter::ClosedSending), SessionClose::Failed),
    ]
}

/// Figures of clients' connections and requests.
fn clients(daemon: &Daemon) -> Vec<Figure> {
    let sum = |counter: Counter| daemon.shared.counters.sum(counter);
    let limits = |limit: Limit| daemon.shared.limit_hits(limit);
    let failed = daemon.shared.vcl.counts.sum(counts::Count::ScVclFailure);
    let of_programs = failed.min(sum(Counter::ClosedByReply));
    let by_reply = sum(Counter::ClosedByReply) - of_programs;
    let ends = session_ends(&sum, by_reply);
    let total = |such: [SessionClose; 2]| {
        let such = ends.iter().filter(|(_, _, _, end)| such.contains(end));
        such.map(|(_, _, value, _)| value).sum::<u64>()
    };
    let unbegun = sum(Counter::ClosedHandshake);
    let closed = total([SessionClose::Served, SessionClose::Failed]) + of_programs + unbegun;
    let broken = total([SessionClose::Late, SessionClose::Failed]) + of_programs + unbegun;
    let otherwise = sum(Counter::BadExpectations) + sum(Counter::ClosedHttp2Off);
    let refused = sum(Counter::BadRequests).saturating_sub(otherwise);
    let mut all: Vec<Figure> = [
        ("sess_conn", "Connections accepted", sum(Counter::Connections)),
        ("s_sess", "Connections seen", sum(Counter::Connections)),
        ("sess_closed", "Connections ended from this side", closed),
        ("sess_closed_err", "Connections ended by an error", broken),
        ("sess_fail", "Connections that could not be accepted", sum(Counter::AcceptErrors)),
        ("sess_dropped", "Connections refused by a limit", sum(Counter::ConnectionsRefused)),
        ("pipe_limited", "Pipes refused by a limit", limits(Limit::Tunnels)),
        ("client_req_400", "Requests refused for their form", refused),
        ("client_req_417", "Requests refused for what they expect", sum(Counter::BadExpectations)),
        ("s_pipe_in", "Bytes of pipes from clients", sum(Counter::TunnelBytesIn)),
        ("s_pipe_out", "Bytes of pipes to clients", sum(Counter::TunnelBytesOut)),
        ("s_req_hdrbytes", "Bytes of requests' heads", sum(Counter::HeadBytesIn)),
        ("s_req_bodybytes", "Bytes of requests' bodies", sum(Counter::BodyBytesIn)),
        ("s_resp_hdrbytes", "Bytes of responses' heads", sum(Counter::HeadBytesOut)),
        ("s_resp_bodybytes", "Bytes of responses' bodies", sum(Counter::BodyBytesOut)),
    ]
    .map(|(name, about, value)| Figure::count(format!("MAIN.{name}"), about, value))
    .into();
    all.extend(
        ends.iter()
            .map(|(name, about, value, _)| Figure::count(format!("MAIN.sc_{name}"), about, *value)),
    );
    all
}

/// Figures of bans, and of tests against them.
fn bans(daemon: &Daemon) -> Vec<Figure> {
    let store = daemon.shared.cache.stats();
    let bans = daemon.shared.cache.bans();
    let many = bans.len() as u64;
    let of_requests = bans.iter().filter(|listed| listed.ban.text().contains("req.")).count();
    let over = bans.iter().filter(|listed| listed.over).count() as u64;
    let now = |name, about, value| Figure::now(format!("MAIN.{name}"), about, value);
    let count = |name, about, value| Figure::count(format!("MAIN.{name}"), about, value);
    vec![
        now("bans", "Bans kept", many),
        now("bans_completed", "Of these, tested against all", over),
        now("bans_req", "Of these, bans that need a request", of_requests as u64),
        now("bans_obj", "Of these, the others", many - of_requests as u64),
        count("bans_added", "Bans made", store.bans),
        count("bans_deleted", "Bans deleted", store.bans.saturating_sub(many)),
        count("bans_dups", "Bans that took an equal one's place", store.ban_repeats),
        count("bans_tested", "Responses tested when found", store.ban_lookups),
        count("bans_obj_killed", "Of these, banned", store.ban_lookups_met),
        count("bans_lurker_tested", "Responses tested by sweeps", store.ban_sweeps),
        count("bans_lurker_obj_killed", "Of these, banned", store.ban_sweeps_met),
    ]
}

/// Figures that count with programs and with settings.
fn common(daemon: &Daemon) -> Vec<Figure> {
    let sum = |counter: Counter| daemon.shared.counters.sum(counter);
    // The blocks of counters are read one after the other, so that a gauge's sum can be negative
    // for a moment.
    let gauge = |counter: Counter| u64::try_from(sum(counter) as i64).unwrap_or(0);
    let (uptime, store) = (daemon.uptime().as_secs(), daemon.shared.cache.stats());
    let loaded = daemon.vcls.loaded();
    let discarded = daemon.vcls.going() as u64;
    let full = |limit: Limit| daemon.shared.limit_hits(limit);
    vec![
        Figure::count(
            "MAIN.ws_client_overflow",
            "Requests that found `workspace_client` full",
            full(Limit::VclWorkspaceClient),
        ),
        Figure::count(
            "MAIN.ws_backend_overflow",
            "Fetches that found `workspace_backend` full",
            full(Limit::VclWorkspaceBackend),
        ),
        Figure::seconds("MGT.uptime", "Seconds since the start", uptime),
        Figure::count("MGT.child_start", "Starts of what serves", 1),
        Figure::seconds("MAIN.uptime", "Seconds since the start", uptime),
        Figure::count(
            "MAIN.backend_retry",
            "Fetches repeated on a new connection",
            sum(Counter::OriginRetries),
        ),
        Figure::now("MAIN.n_pipe", "Piped connections open", gauge(Counter::TunnelsOpen)),
        Figure::count("MAIN.backend_conn", "Connections made", sum(Counter::OriginConnects)),
        Figure::count("MAIN.backend_reuse", "Connections used again", sum(Counter::OriginReuse)),
        Figure::count("MAIN.backend_recycle", "Connections kept", sum(Counter::OriginKept)),
        Figure::now("MAIN.n_object", "Responses stored", store.objects),
        Figure::now("MAIN.n_objectcore", "Responses stored", store.objects + store.markers),
        Figure::now("MAIN.n_objecthead", "Keys", daemon.shared.cache.keys()),
        Figure::count("MAIN.n_expired", "Responses that expired", store.expired),
        Figure::count("MAIN.n_lru_nuked", "Responses evicted to make room", store.evictions),
        Figure::now("MAIN.threads", "Threads that serve clients", daemon.cores() as u64),
        Figure::now("MAIN.n_backend", "Backends", leaves(daemon).len() as u64),
        Figure::now("MAIN.n_vcl", "VCLs loaded", loaded.len() as u64 + discarded),
        Figure::now("MAIN.n_vcl_avail", "VCLs that can be used", loaded.len() as u64),
        Figure::now("MAIN.n_vcl_discard", "VCLs discarded that still have requests", discarded),
        Figure::now("MAIN.vmods", "VMODs there are", vcl::vmods::all().len() as u64),
    ]
}

/// Every backend with a connection, and its program's name.
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
        let Some(connected) = BackendOrigin::of(leaf) else { continue };
        if !daemon.vcls.is_warm(&program) {
            continue;
        }
        let Some(status) = connected.status() else { continue };
        let name = |what: &str| format!("VBE.{program}.{}.{what}", leaf.name);
        let happy = Figure::count(name("happy"), "Good probes, one bit each", status.history.good);
        all.push(Figure { flag: "b", format: "b", ..happy });
        let in_use = u64::from(status.in_flight);
        all.push(Figure::now(name("conn"), "Connections in use", in_use));
        let (moved, turned_away) = (status.moved, connected.turned_away());
        let sent = status.requests.saturating_sub(moved.unconnected() + moved.held);
        let counts = [
            ("req", "Requests sent", sent),
            ("unhealthy", "Requests not sent: sick", turned_away),
            ("busy", "Requests not sent: too many connections", moved.busy),
            ("fail", "Connections that failed", moved.unconnected()),
            ("fail_econnrefused", "Of these, refused", moved.refused),
            ("fail_etimedout", "Of these, timed out", moved.timed_out),
            ("fail_enetunreach", "Of these, without a way", moved.unreachable),
            ("fail_eacces", "Of these, not allowed", moved.denied),
            ("fail_eaddrnotavail", "Of these, without an address", moved.no_address),
            ("fail_other", "Of these, for another reason", moved.unconnected_otherwise),
            ("helddown", "Connections not tried, so soon after a failure", moved.held),
        ];
        all.extend(counts.map(|(what, about, value)| Figure::count(name(what), about, value)));
        let bytes = [
            ("bereq_hdrbytes", "Bytes of requests' heads", moved.head_out),
            ("bereq_bodybytes", "Bytes of requests' bodies", moved.body_out),
            ("beresp_hdrbytes", "Bytes of responses' heads", moved.head_in),
            ("beresp_bodybytes", "Bytes of responses' bodies", moved.body_in),
        ];
        let bytes = bytes.map(|(what, about, value)| Figure {
            format: "B",
            ..Figure::count(name(what), about, value)
        });
        all.extend(bytes);
    }
    all
}

/// Seconds since 1970 as `varnishstat` writes them, in UTC: `2026-11-22T14:48:27`.
fn stamp(unix_secs: u64) -> String {
    let text = calendar::strftime(unix_secs as f64, b"%FT%T");
    String::from_utf8_lossy(&text).into_owned()
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
