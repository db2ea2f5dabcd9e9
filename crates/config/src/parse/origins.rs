//! `[[origin]]`, and origins that sites name by URL.

use base::Limits;
use origin::{
    Address, Balance, EjectConfig, OriginConfig, ProbeConfig, Protocol, RetryOn, ServerConfig,
    parse_server,
};

use super::scripts::is_off;
use super::tls;
use crate::keys;
use crate::model::{NamedHost, NamedPath, OriginTls};
use crate::reader::{Item, Reader, Span, Table};
use crate::suggest;

/// The origins known so far.
#[derive(Debug)]
pub(super) struct Origins<'l> {
    limits: &'l Limits,
    known: Vec<Known>,
}

#[derive(Debug)]
struct Known {
    config: OriginConfig,
    tls: Option<OriginTls>,
    /// Where its name is written, if it has one.
    name: Option<Span>,
    used: bool,
    /// It says itself that scripts run everywhere (`no_scripts = false`).
    runs_everywhere: bool,
    /// It says itself how long its servers may take for a head.
    times_heads: bool,
}

/// Reads every `[[origin]]`.
pub(super) fn origins<'l>(r: &mut Reader, top: &Table<'_>, limits: &'l Limits) -> Origins<'l> {
    let mut origins = Origins { limits, known: Vec::new() };
    let tables = top.item("origin").map(|item| r.tables(&item, &keys::ORIGIN)).unwrap_or_default();
    for table in tables {
        let name = name(r, &table);
        // Read even without a name: its other problems are reported too.
        let config = origin(r, &table, name.as_ref().map_or("", |(name, _)| *name), limits);
        let tls = tls::origin(r, &table, &config);
        let Some((name, span)) = name else { continue };
        if let Some(earlier) = origins.known.iter().find(|known| known.config.name == name) {
            let related = earlier.name.clone().map(|span| (span, "the first one".to_owned()));
            r.error(span, format!("two origins are called `{name}`")).related = related;
        } else {
            let runs_everywhere = table.item("no_scripts").is_some_and(|item| is_off(&item));
            let name = Some(span);
            let times_heads = table.item("first_byte_timeout").is_some();
            let known = Known { config, tls, name, used: false, runs_everywhere, times_heads };
            origins.known.push(known);
        }
    }
    origins
}

impl Origins<'_> {
    /// Returns true if the origin of this index is a FastCGI origin with scripts.
    pub(super) fn runs_scripts(&self, index: usize) -> bool {
        self.known.get(index).is_some_and(|known| known.config.scripts.is_some())
    }

    /// Returns true if the origin of this index says itself how long its servers may take for a
    /// head.
    pub(super) fn times_heads(&self, index: usize) -> bool {
        self.known.get(index).is_some_and(|known| known.times_heads)
    }

    /// The settings of the origin of this index.
    pub(super) fn config(&self, index: usize) -> Option<&OriginConfig> {
        self.known.get(index).map(|known| &known.config)
    }

    /// The index of the origin that `item` names, or a new one when it is a URL.
    pub(super) fn find(&mut self, r: &mut Reader, item: &Item<'_>) -> Option<usize> {
        let text = r.text(item)?;
        if let Some(at) = self.known.iter().position(|known| known.config.name == text) {
            self.known[at].used = true;
            return Some(at);
        }
        // Names have no colon, so this is no name.
        if text.contains(':') {
            let server = server_url(r, item)?;
            if server.protocol == Protocol::FastCgi {
                r.error(
                    item.span.clone(),
                    "a FastCGI server needs to know where its scripts are",
                )
                .help = Some(
                    "write an [[origin]] with this URL and a `root`, and its name here".into(),
                );
                return None;
            }
            let config = OriginConfig::with_limits(text, vec![server], self.limits);
            let place = r.lasting(&item.span);
            let tls = tls::uses_tls(&config).then(|| tls::plain_origin(place));
            self.known.push(Known {
                config,
                tls,
                name: None,
                used: true,
                runs_everywhere: false,
                times_heads: false,
            });
            return Some(self.known.len() - 1);
        }
        let names = self.known.iter().filter(|known| known.name.is_some());
        let close = suggest::closest(text, names.map(|known| known.config.name.as_str()));
        let help = match close {
            Some(name) => format!("did you mean `{name}`?"),
            None => "define it in an [[origin]], or write a URL such as \"http://127.0.0.1:8080\""
                .into(),
        };
        r.error(item.span.clone(), format!("no origin is called `{text}`")).help = Some(help);
        None
    }

    /// Adds directories below which the scripts of these origins do not run, as presets name them.
    /// An origin that says `no_scripts = false` knows better.
    pub(super) fn bar(&mut self, indices: &[usize], directories: &[String]) {
        for index in indices {
            let Some(known) = self.known.get_mut(*index).filter(|known| !known.runs_everywhere)
            else {
                continue;
            };
            if let Some(scripts) = &mut known.config.scripts {
                scripts.rules.bar(directories);
            }
        }
    }

    /// Warns of origins that run whatever script a visitor may have uploaded.
    pub(super) fn warn_of_uploads(&self, r: &mut Reader) {
        for known in self.known.iter().filter(|known| !known.runs_everywhere) {
            let runs_all = known.config.scripts.as_ref().is_some_and(|scripts| {
                scripts.rules.barred.is_empty() && scripts.rules.runs_what_is_there()
            });
            if let (true, Some(span)) = (runs_all, &known.name) {
                let name = &known.config.name;
                let message = format!("`{name}` runs scripts wherever they are below its `root`");
                r.warning(span.clone(), message).help = Some(
                    "`no_scripts = [\"/uploads\"]`, or a `preset`; `no_scripts = false` without uploads"
                        .to_owned(),
                );
            }
        }
    }

    pub(super) fn warn_of_unused(&self, r: &mut Reader) {
        for known in self.known.iter().filter(|known| !known.used) {
            if let Some(span) = &known.name {
                r.warning(span.clone(), format!("no site uses the origin `{}`", known.config.name));
            }
        }
    }

    pub(super) fn into_configs(self) -> (Vec<OriginConfig>, Vec<Option<OriginTls>>) {
        self.known.into_iter().map(|known| (known.config, known.tls)).unzip()
    }
}

fn name<'a>(r: &mut Reader, table: &Table<'a>) -> Option<(&'a str, Span)> {
    let Some(item) = table.item("name") else {
        r.error(table.span.clone(), "an origin without a name").help =
            Some("add `name = \"app\"`; a site's `origin` names it".to_owned());
        return None;
    };
    let name = r.text(&item)?;
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    if name.is_empty() || !name.bytes().all(allowed) {
        r.error(item.span, "an origin's name has only letters, digits, `-`, `_` and `.`");
        return None;
    }
    Some((name, item.span))
}

fn origin(r: &mut Reader, table: &Table<'_>, name: &str, limits: &Limits) -> OriginConfig {
    let servers = servers(r, table);
    let mut config = OriginConfig::with_limits(name, servers, limits);
    if let Some(item) = table.item("balance") {
        let words = [
            ("round-robin", Balance::RoundRobin),
            ("least-requests", Balance::LeastRequests),
            ("hash", Balance::Hash),
        ];
        config.balance = r.word(&item, &words).unwrap_or_default();
    }
    config.host_header = table.item("host").and_then(|item| host(r, &item));
    if let Some(item) = table.item("retry_on") {
        config.retry_on = retry_on(r, &item);
    }
    config.probe = table.item("probe").and_then(|item| probe(r, &item));
    if let Some(item) = table.item("eject") {
        config.eject = eject(r, &item);
    }
    bounds(r, table, &mut config);
    let on = |r: &mut Reader, key| table.item(key).and_then(|item| r.boolean(&item));
    config.store_close_delimited = on(r, "store_close_delimited").unwrap_or_default();
    config.lenient = on(r, "lenient_origin").unwrap_or_default();
    config.accel = super::files::accel(r, table);
    config.scripts = super::scripts::scripts(r, table, &config.servers);
    config
}

fn bounds(r: &mut Reader, table: &Table<'_>, config: &mut OriginConfig) {
    let mut time = |key, slot: &mut u64, least: u64| {
        let Some(item) = table.item(key) else { return };
        match r.duration(&item) {
            Some(ms) if ms >= least => *slot = ms,
            Some(_) => drop(r.error(item.span, format!("`{key}` must be longer than nothing"))),
            None => {}
        }
    };
    time("connect_timeout", &mut config.timeouts.connect_ms, 1);
    time("first_byte_timeout", &mut config.timeouts.first_byte_ms, 1);
    time("between_bytes_timeout", &mut config.timeouts.between_bytes_ms, 1);
    time("total_timeout", &mut config.timeouts.total_ms, 1);
    time("slow_start", &mut config.slow_start_ms, 0);
    time("queue_timeout", &mut config.queue_timeout_ms, 0);
    time("idle_timeout", &mut config.idle_timeout_ms, 1);
    let mut count = |key, slot: &mut u32, most| {
        if let Some(value) = table.item(key).and_then(|item| r.count32(&item, 0, most)) {
            *slot = value;
        }
    };
    count("connections", &mut config.max_connections, u32::MAX);
    count("client_share", &mut config.client_share_percent, 100);
    count("queue", &mut config.queue, u32::MAX);
    count("idle", &mut config.idle_max, u32::MAX);
    count("retries", &mut config.retries, 10);
    count("retry_budget", &mut config.retry_budget_percent, 100);
}

fn servers(r: &mut Reader, table: &Table<'_>) -> Vec<ServerConfig> {
    let Some(item) = table.item("servers") else {
        r.error(table.span.clone(), "an origin without servers").help =
            Some("add `servers = [\"http://127.0.0.1:8080\"]`".to_owned());
        return Vec::new();
    };
    let each = item.each();
    if each.is_empty() {
        r.error(item.span, "`servers` names no server");
    }
    each.iter().filter_map(|item| server(r, item)).collect()
}

fn server(r: &mut Reader, item: &Item<'_>) -> Option<ServerConfig> {
    if item.value.is_str() {
        return server_url(r, item);
    }
    if !item.value.is_table() {
        r.wrong_type(item);
        return None;
    }
    let table = r.table(item, &keys::SERVER)?;
    let weight = table.item("weight").map_or(Some(1), |item| r.count32(&item, 1, 1000));
    let Some(url) = table.item("url") else {
        r.error(item.span.clone(), "a server without `url`");
        return None;
    };
    Some(ServerConfig { weight: weight?, ..server_url(r, &url)? })
}

/// A server's URL.
fn server_url(r: &mut Reader, item: &Item<'_>) -> Option<ServerConfig> {
    let url = r.text(item)?;
    let begins = |scheme: &str| url.trim_start().to_ascii_lowercase().starts_with(scheme);
    if begins("fastcgi:/") && !begins("fastcgi://") {
        r.error(item.span.clone(), "a FastCGI server's URL without host").help =
            Some("a socket is written \"fastcgi+unix:/run/php/php-fpm.sock\"".to_owned());
        return None;
    }
    let server = parse_server(url);
    let server = r.check(item, server)?;
    if let Some(path) = server.address.socket() {
        let (setting, path, place) = (item.name.to_owned(), path.to_owned(), r.lasting(&item.span));
        r.sockets.push(NamedPath { setting, path, place });
    }
    if let Address::Tcp { host, port } = &server.address {
        let (setting, host, port) = (item.name.to_owned(), host.clone(), *port);
        let place = r.lasting(&item.span);
        r.hosts.push(NamedHost { setting, host, port, place });
    }
    Some(server)
}

fn host(r: &mut Reader, item: &Item<'_>) -> Option<String> {
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

fn probe(r: &mut Reader, item: &Item<'_>) -> Option<ProbeConfig> {
    let mut probe = ProbeConfig::default();
    if item.value.is_str() {
        probe.path = probe_path(r, item)?;
        return Some(probe);
    }
    let table = r.table(item, &keys::PROBE)?;
    if let Some(path) = table.item("path").and_then(|item| probe_path(r, &item)) {
        probe.path = path;
    }
    probe.host = table.item("host").and_then(|item| host(r, &item));
    for (key, slot) in [("interval", &mut probe.interval_ms), ("timeout", &mut probe.timeout_ms)] {
        let Some(item) = table.item(key) else { continue };
        match r.duration(&item) {
            Some(ms @ 100..) => *slot = ms,
            Some(_) => drop(r.error(item.span, format!("`{key}` must be at least 100ms"))),
            None => {}
        }
    }
    if let Some(window) = table.item("window").and_then(|item| r.count32(&item, 1, 64)) {
        probe.window = window;
        probe.threshold = probe.threshold.min(window);
    }
    let threshold = table.item("threshold");
    if let Some(threshold) = threshold.and_then(|item| r.count32(&item, 1, probe.window)) {
        probe.threshold = threshold;
    }
    let status = table.item("status").and_then(|item| r.count(&item, 200, 599));
    if let Some(status) = status.and_then(|status| status.try_into().ok()) {
        probe.expected_status = status;
    }
    Some(probe)
}

fn probe_path(r: &mut Reader, item: &Item<'_>) -> Option<String> {
    let path = r.text(item)?;
    if path.starts_with('/') && path.bytes().all(|b| b.is_ascii_graphic() && b != b'#') {
        return Some(path.to_owned());
    }
    r.error(item.span.clone(), "a probe's path begins with `/` and has no spaces");
    None
}

fn retry_on(r: &mut Reader, item: &Item<'_>) -> RetryOn {
    let mut on = RetryOn::NOTHING;
    for item in item.each() {
        match r.text(&item) {
            Some("connect") => on.connect = true,
            Some("drop") => on.drop = true,
            Some("timeout") => on.timeout = true,
            Some(text) if text.parse().is_ok_and(|code| on.statuses.insert(code)) => {}
            Some(text) => {
                let close = suggest::closest(text, ["connect", "drop", "timeout"]);
                let message =
                    "expected \"connect\", \"drop\", \"timeout\" or a status from 400 to 527";
                r.error(item.span.clone(), message).help =
                    close.map(|word| format!("did you mean \"{word}\"?"));
            }
            None => {}
        }
    }
    on
}

fn eject(r: &mut Reader, item: &Item<'_>) -> EjectConfig {
    let mut eject = EjectConfig::default();
    if let Some(table) = r.table(item, &keys::EJECT) {
        if let Some(item) = table.item("failures") {
            eject.failures = r.count32(&item, 0, u32::MAX).unwrap_or_default();
        }
        if let Some(item) = table.item("time") {
            eject.for_ms = r.duration(&item).unwrap_or_default();
        }
        for item in table.item("statuses").iter().flat_map(Item::each) {
            if let Some(text) = r.text(&item)
                && !text.parse().is_ok_and(|code| eject.statuses.insert(code))
            {
                r.error(item.span.clone(), "expected a status from 400 to 527, such as \"503\"");
            }
        }
    }
    eject
}
