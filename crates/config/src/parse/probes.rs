//! `[origin.probe]` and `[origin.eject]`: health of servers.

use origin::{EjectConfig, ProbeConfig};

use crate::keys::{COUNT, DURATION, TEXTS};
use crate::reader::{Reader, SettingValue};
use crate::rows::{self, put, section};

section! {
    pub(crate) PROBE, PROBE_ROWS: ProbeConfig; "[origin.probe]",
    "Active health checks of every server. A string instead of a table sets `path`.";
    "path", "a path", "\"/\"", "Path that the probe requests.",
        |r, item, to| put(&mut to.path, probe_path(r, item));
    "grpc", "true, or a service's name", "false", "Whether the probe is a gRPC health check (`grpc.health.v1`) instead of a GET: of the whole server, or of a service. Needs `http_version = \"2\"`, or `\"auto\"` and a server that chooses HTTP/2.",
        |r, item, to| to.grpc = service(r, item);
    "host", "a string", "as for requests", "Host field of the probe.",
        |r, item, to| to.host = host(r, item);
    "interval", DURATION, "\"5s\"", "Time from one probe to the next.",
        |r, item, to| put(&mut to.interval_ms, from_100ms(r, item));
    "timeout", DURATION, "\"2s\"", "Maximum time of one probe.",
        |r, item, to| put(&mut to.timeout_ms, from_100ms(r, item));
    "window", COUNT, "8", "Number of latest probes that count, 1 to 64.",
        window;
    "threshold", COUNT, "3", "Number of probes in `window` that must succeed for the server to be healthy.",
        |r, item, to| put(&mut to.threshold, r.count32(item, 1, to.window));
    "status", COUNT, "200", "Status of a successful probe.",
        |r, item, to| put(&mut to.expected_status, status(r, item));
}

section! {
    pub(crate) EJECT, EJECT_ROWS: EjectConfig; "[origin.eject]",
    "Passive health checks: a server that fails requests gets none for some time.";
    "failures", count32(0, u32::MAX) failures, "3", "Number of consecutive failures after which a server is ejected. 0: no server is ejected.";
    "time", DURATION, "\"10s\"", "Time for which an ejected server gets no requests. Then one request tries the server.",
        |r, item, to| put(&mut to.for_ms, r.duration(item));
    "statuses", TEXTS, "none", "Response statuses that count as failures, such as \"503\": 400 to 527.",
        statuses;
}

pub(super) fn probe(r: &mut Reader, item: &SettingValue<'_>) -> Option<ProbeConfig> {
    let mut probe = ProbeConfig::default();
    if item.value.is_str() {
        probe.path = probe_path(r, item)?;
        return Some(probe);
    }
    let table = r.table(item, &PROBE)?;
    rows::read(r, &table, PROBE_ROWS, &mut probe);
    Some(probe)
}

/// Reads the service of a gRPC health check.
fn service(r: &mut Reader, item: &SettingValue<'_>) -> Option<String> {
    if !item.value.is_str() {
        return r.boolean(item)?.then(String::new);
    }
    let text = r.text(item)?;
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'/');
    if text.is_empty() || text.len() > 127 || !text.bytes().all(allowed) {
        r.error(item.span.clone(), "a gRPC service is named like `package.Service`");
        return None;
    }
    Some(text.to_owned())
}

fn from_100ms(r: &mut Reader, item: &SettingValue<'_>) -> Option<u64> {
    let ms = r.duration(item)?;
    if ms < 100 {
        r.error(item.span.clone(), format!("`{}` must be at least 100ms", item.name));
        return None;
    }
    Some(ms)
}

/// Reads the probe window. A smaller window needs fewer good probes.
fn window(r: &mut Reader, item: &SettingValue<'_>, probe: &mut ProbeConfig) {
    if let Some(window) = r.count32(item, 1, 64) {
        probe.window = window;
        probe.threshold = probe.threshold.min(window);
    }
}

fn status(r: &mut Reader, item: &SettingValue<'_>) -> Option<u16> {
    r.count(item, 200, 599).and_then(|status| status.try_into().ok())
}

fn probe_path(r: &mut Reader, item: &SettingValue<'_>) -> Option<String> {
    let path = r.text(item)?;
    if path.starts_with('/') && path.bytes().all(|b| b.is_ascii_graphic() && b != b'#') {
        return Some(path.to_owned());
    }
    r.error(item.span.clone(), "a probe's path begins with `/` and has no spaces");
    None
}

/// Reads a host, optionally with a port, for the Host field.
pub(super) fn host(r: &mut Reader, item: &SettingValue<'_>) -> Option<String> {
    let text = r.text(item)?;
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !text.ends_with(']') => (name, Some(port)),
        _ => (text, None),
    };
    let port_ok = port.is_none_or(|p| p.parse::<u16>().is_ok_and(|p| p != 0));
    let name_ok = !name.contains('*') && policy::hosts::canonical(name).is_some();
    if !port_ok || !name_ok {
        r.error(item.span.clone(), "`host` is a host name or an address, perhaps with a port");
        return None;
    }
    Some(text.to_owned())
}

pub(super) fn eject(r: &mut Reader, item: &SettingValue<'_>) -> EjectConfig {
    let mut eject = EjectConfig::default();
    rows::read_table(r, item, &EJECT, EJECT_ROWS, &mut eject);
    eject
}

fn statuses(r: &mut Reader, item: &SettingValue<'_>, eject: &mut EjectConfig) {
    for item in item.each() {
        if let Some(text) = r.text(&item)
            && !text.parse().is_ok_and(|code| eject.statuses.insert(code))
        {
            r.error(item.span.clone(), "expected a status from 400 to 527, such as \"503\"");
        }
    }
}
