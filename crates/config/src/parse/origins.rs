//! `[[origin]]`, and origins that sites name by URL.

use origin::{
    Address, Balance, HttpVersion, OriginConfig, Protocol, RetryOn, ServerConfig, parse_server,
};
use policy::rules::{Settings, SiteRules};

use super::probes::{EJECT, PROBE, eject, host, probe};
use super::scripts::{self, SCRIPTS_ROWS};
use super::sticky::{self, STICKY};
use super::{files, tls};
use crate::keys::{BOOLEAN, COUNT, DURATION, PATHS, TABLE};
use crate::model::{NamedHost, NamedPath};
use crate::origin_table::{OriginEntry, Origins};
use crate::page::SettingsPage;
use crate::reader::{Reader, SettingValue, TomlTable};
use crate::rows::{self, put, section};
use crate::suggestions;

section! {
    pub(crate) ORIGIN, ORIGIN_ROWS: OriginEntry, SCRIPTS_ROWS; "[[origin]]",
    "An origin: one or more servers with the same content. Limits that are not set here come from \
     `[limits]`.";
    @needed("an origin without a name", "add `name = \"app\"`; a site's `origin` names it")
    "name", "a string", "required", "Name by which sites refer to the origin.",
        |r, item, to| name(r, item, to);
    @needed("an origin without servers", "add `servers = [\"http://127.0.0.1:8080\"]`")
    @table(SERVER) "servers", "a URL, or a list of URLs or { url, weight, backup, id } tables", "required", "Servers of the origin: `http://host:port`, `https://host:port`, `unix:/path`, `fastcgi://host:port` or `fastcgi+unix:/path`. `host:port` alone means HTTP. `weight` is a server's share of the requests, relative to the others. A `backup` gets requests only while no other server is in use. Larder does not use link-local addresses (169.254.169.254) from DNS.",
        |r, item, to| servers(r, item, to);
    @table(STICKY) "sticky", "a cookie's name, or a table", "none", "Cookie that brings a client back to the server that answered it before: see `[origin.sticky]`.",
        |r, item, to| to.sticky = sticky::sticky(r, item);
    "accel", "true, or a table such as { \"/protected/\" = \"/srv/private\" }", "false", "Whether Larder obeys the origin's X-Accel-Expires and X-Accel-Charset. A table also permits X-Accel-Redirect: a path that begins with a key is a file in that key's directory. With `false`, Larder removes X-Accel-* from responses. `X-Accel-Expires: 0` always prevents storage.",
        |r, item, to| files::accel(r, item, &mut to.config.accel);
    "x_sendfile", PATHS, "none", "Directories whose files the origin may name in X-Sendfile. Without this setting, Larder removes X-Sendfile from responses.",
        |r, item, to| files::sendfile(r, item, &mut to.config.accel);
    "balance", "\"round-robin\", \"least-requests\" or \"hash\"", "\"round-robin\"", "How requests are distributed over the servers.",
        |r, item, to| put(&mut to.config.balance, r.word(item, &BALANCES));
    "host", "a string", "the client's", "Host field of requests to the servers.",
        |r, item, to| to.config.host_header = host(r, item);
    "http_version", "\"1.1\", \"2\" or \"auto\"", "\"1.1\"", "Version of HTTP towards the servers. `2`: many requests share a connection; a server without TLS must accept HTTP/2 without an upgrade (h2c). `auto`: the version that a server with TLS chooses; without TLS, 1.1. A switch to another protocol (WebSocket) always uses a connection of HTTP/1.1. Probes use the same version.",
        |r, item, to| put(&mut to.config.http, r.word(item, &VERSIONS));
    @table(tls::ORIGIN_TLS) "tls", TABLE, "none", "TLS to `https://` servers: see `[origin.tls]`.",
        |r, item, to| to.tls = tls::origin(r, item, &to.config);
    @table(PROBE) "probe", "a table or a path", "none", "Active health checks: see `[origin.probe]`.",
        |r, item, to| to.config.probe = probe(r, item);
    @table(EJECT) "eject", "a table", "none", "Passive health checks: see `[origin.eject]`.",
        |r, item, to| to.config.eject = eject(r, item);
    "connect_timeout", DURATION, "as in [limits]", "Maximum time to connect to a server.",
        |r, item, to| time(r, item, 1, &mut to.config.timeouts.connect_ms);
    "first_byte_timeout", DURATION, "as in [limits]", "Maximum time from the request's last byte to the response's head.",
        |r, item, to| time(r, item, 1, &mut to.config.timeouts.first_byte_ms);
    "between_bytes_timeout", DURATION, "as in [limits]", "Maximum time without a new byte of a response's body.",
        |r, item, to| time(r, item, 1, &mut to.config.timeouts.between_bytes_ms);
    "total_timeout", DURATION, "as in [limits]", "Maximum time of one exchange.",
        |r, item, to| time(r, item, 1, &mut to.config.timeouts.total_ms);
    "connections", count32(0, u32::MAX) config.max_connections, "as in [limits]", "Maximum number of connections in use to one server. 0: no limit.";
    "client_share", "a whole number of percent", "as in [limits]", "Maximum share of the connections to one server that one client may use; see the limit `origin_share`.",
        |r, item, to| put(&mut to.config.client_share_percent, r.count32(item, 0, 100));
    "queue", count32(0, u32::MAX) config.queue, "as in [limits]", "Maximum number of requests that wait for a connection to one server.";
    "queue_timeout", DURATION, "as in [limits]", "Maximum time that a request waits for a connection.",
        |r, item, to| time(r, item, 0, &mut to.config.queue_timeout_ms);
    "idle", count32(0, u32::MAX) config.idle_max, "as in [limits]", "Maximum number of idle connections per server and core. For FastCGI the default is 0, because each connection occupies a worker process of the server.";
    "idle_timeout", DURATION, "as in [limits]", "Time after which an idle connection is closed.",
        |r, item, to| time(r, item, 1, &mut to.config.idle_timeout_ms);
    "store_close_delimited", boolean config.store_close_delimited, "false", "Whether Larder stores bodies that end with their connection (HTTP/1.0, CGI programs, `php -S`). Only a clean end counts: FIN, or close_notify over TLS; never a reset. A server that crashes may also end a connection cleanly.";
    "lenient_origin", boolean config.lenient, "false", "Whether lines of the origin's response heads may end without CR, as old CGI programs write them. With `false`, such a response becomes a 502.";
    "retries", count32(0, 10) config.retries, "as in [limits]", "Maximum number of further attempts for one request.";
    "retry_on", "a list of \"connect\", \"drop\", \"timeout\" and statuses such as \"503\"", "[\"connect\", \"drop\", \"timeout\"]", "Failures after which an idempotent request is tried again. `connect`: no connection. `drop`: the connection ended before a response. `timeout`: the response took too long. A status (400 to 527): the response had it. For the last two, Larder tries another server.",
        |r, item, to| to.config.retry_on = retry_on(r, item);
    "slow_start", DURATION, "0s", "Time in which a recovered server's share of the requests grows evenly to the full share.",
        |r, item, to| time(r, item, 0, &mut to.config.slow_start_ms);
    "retry_budget", "a whole number of percent", "as in [limits]", "Maximum share of retried requests among all requests.",
        |r, item, to| put(&mut to.config.retry_budget_percent, r.count32(item, 0, 100));
}

section! {
    pub(crate) SERVER, SERVER_ROWS: ServerDraft; "{ url, weight, backup, id }",
    "One server of an origin.";
    @needed("a server without `url`", "")
    "url", "a string", "required", "URL of the server, as in `servers`.",
        |r, item, to| to.server = server_url(r, item);
    "weight", COUNT, "1", "Share of the requests, relative to the other servers.",
        |r, item, to| {
            let weight = r.count32(item, 1, 1000);
            to.server.iter_mut().for_each(|server| put(&mut server.weight, weight));
        };
    "backup", BOOLEAN, "false", "Whether the server gets requests only while no other server of the origin is in use (all are unhealthy by their probes, or ejected), and requests that all others have failed.",
        |r, item, to| {
            let backup = r.boolean(item);
            to.server.iter_mut().for_each(|server| put(&mut server.backup, backup));
        };
    "id", "letters, digits, `-` and `_`", "its number in the list", "Value that stands for the server in the cookie of `sticky`. With a value of its own, a server keeps its clients when others are added or removed.",
        |r, item, to| to.id = sticky::id(r, item);
}

/// A server while it is read.
#[derive(Default)]
pub(crate) struct ServerDraft {
    server: Option<ServerConfig>,
    /// The value that stands for it in a cookie.
    id: Option<String>,
}

/// Reads every `[[origin]]`.
pub(super) fn origins(r: &mut Reader, item: &SettingValue<'_>) {
    for table in r.tables(item, &ORIGIN) {
        let config = OriginConfig::with_limits("", Vec::new(), &r.origins.limits);
        let mut known = OriginEntry::new(config);
        // Read even without a name: its other problems are reported, too.
        rows::read(r, &table, ORIGIN_ROWS, &mut known);
        scripts::scripts(r, &table, &mut known.config);
        known.runs_everywhere = table.item("no_scripts").is_some_and(|item| item.is_off());
        sticky::check(r, &table, &known);
        check_version(r, &table, &known.config);
        known.times_heads = table.item("first_byte_timeout").is_some();
        let (Some(span), name) = (known.name.clone(), &known.config.name) else { continue };
        if let Some(earlier) = r.origins.known.iter().find(|known| known.config.name == *name) {
            let related = earlier.name.clone().map(|span| (span, "the first one".to_owned()));
            r.error(span, format!("two origins are called `{name}`")).related = related;
        } else {
            r.origins.known.push(known);
        }
    }
}

/// The index of the origin that `item` names, or a new one when it is a URL.
pub(super) fn find(r: &mut Reader, item: &SettingValue<'_>) -> Option<usize> {
    let text = r.text(item)?;
    let origins = &mut r.origins;
    if let Some(at) = origins.known.iter().position(|known| known.config.name == text) {
        origins.known[at].used = true;
        return Some(at);
    }
    // A name has no colon, so this is a URL.
    if text.contains(':') {
        let server = server_url(r, item)?;
        if server.protocol == Protocol::FastCgi {
            r.error(item.span.clone(), "a FastCGI server needs to know where its scripts are")
                .help =
                Some("write an [[origin]] with this URL and a `root`, and its name here".into());
            return None;
        }
        let config = OriginConfig::with_limits(text, vec![server], &r.origins.limits);
        let place = r.location(&item.span);
        let tls = tls::uses_tls(&config).then(|| tls::plain_origin(place));
        r.origins.known.push(OriginEntry { tls, used: true, ..OriginEntry::new(config) });
        return Some(r.origins.known.len() - 1);
    }
    let names = origins.known.iter().filter(|known| known.name.is_some());
    let close = suggestions::closest(text, names.map(|known| known.config.name.as_str()));
    let help = match close {
        Some(name) => format!("did you mean `{name}`?"),
        None => {
            "define it in an [[origin]], or write a URL such as \"http://127.0.0.1:8080\"".into()
        }
    };
    r.error(item.span.clone(), format!("no origin is called `{text}`")).help = Some(help);
    None
}

/// The index in the site's list of the origin that `item` names.
pub(super) fn find_of_site(r: &mut Reader, item: &SettingValue<'_>) -> Option<u32> {
    let index = find(r, item)?;
    let indices = &mut r.origins.site.indices;
    let at = indices.iter().position(|own| *own == index).unwrap_or_else(|| {
        indices.push(index);
        indices.len() - 1
    });
    u32::try_from(at).ok()
}

/// The index among all origins of the one that gets copies of the requests for the site's origin
/// `of`; `None` for `false`.
pub(super) fn mirror(r: &mut Reader, item: &SettingValue<'_>, of: u32) -> Option<usize> {
    if item.is_off() {
        return None;
    }
    let index = find(r, item)?;
    let own = usize::try_from(of).ok().and_then(|at| r.origins.site.indices.get(at));
    if own == Some(&index) {
        r.error(item.span.clone(), "`mirror` is the origin itself");
        return None;
    }
    if r.origins.known.get(index).is_some_and(|known| known.config.scripts.is_some()) {
        r.error(item.span.clone(), "a mirror speaks HTTP, not FastCGI");
        return None;
    }
    Some(index)
}

/// Removes mirrors that are the origin itself, as a route that inherits a mirror may name it.
pub(super) fn drop_own_mirrors(origins: &Origins, rules: &mut SiteRules) {
    for route in &mut rules.routes {
        let own = usize::try_from(route.settings.origin).ok();
        let own = own.and_then(|at| origins.site.indices.get(at)).copied();
        route.settings.mirror = route.settings.mirror.filter(|mirror| Some(*mirror) != own);
    }
}

/// Shows the origin, and what it never runs.
pub(super) fn show(page: &mut SettingsPage<'_>, settings: &Settings) {
    let at = usize::try_from(settings.origin).ok().and_then(|at| page.site.origins.get(at));
    let Some(origin) = at.and_then(|at| page.config.origins.get(*at)) else { return };
    page.line("origin", &origin.name);
    if let Some(scripts) = &origin.scripts {
        page.list("no scripts below", &scripts.rules.barred);
    }
}

/// Warns of unused origins, and of origins that run any uploaded script.
pub(super) fn warn(r: &mut Reader) {
    let mut found = Vec::new();
    for OriginEntry { config, name, used, runs_everywhere, .. } in &r.origins.known {
        let Some(span) = name else { continue };
        if !used {
            let message = format!("no site uses the origin `{}`", config.name);
            found.push((span.clone(), message, None));
        }
        let runs_all = config.scripts.as_ref().is_some_and(|scripts| {
            scripts.rules.barred.is_empty() && scripts.rules.runs_what_is_there()
        });
        if runs_all && !runs_everywhere {
            let name = &config.name;
            let message = format!("`{name}` runs scripts wherever they are below its `root`");
            let help = "`no_scripts = [\"/uploads\"]`, or a `preset`; `no_scripts = false` without uploads";
            found.push((span.clone(), message, Some(help.to_owned())));
        }
    }
    for (span, message, help) in found {
        r.warning(span, message).help = help;
    }
}

fn name(r: &mut Reader, item: &SettingValue<'_>, known: &mut OriginEntry) {
    let Some(name) = r.text(item) else { return };
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    if name.is_empty() || !name.bytes().all(allowed) {
        let message = "an origin's name has only letters, digits, `-`, `_` and `.`";
        r.error(item.span.clone(), message);
        return;
    }
    (known.config.name, known.name) = (name.to_owned(), Some(item.span.clone()));
}

/// The keywords of `balance`.
const BALANCES: [(&str, Balance); 3] = [
    ("round-robin", Balance::RoundRobin),
    ("least-requests", Balance::LeastRequests),
    ("hash", Balance::Hash),
];

/// The keywords of `http_version`.
const VERSIONS: [(&str, HttpVersion); 3] =
    [("1.1", HttpVersion::Http11), ("2", HttpVersion::Http2), ("auto", HttpVersion::Auto)];

/// Refuses a version of HTTP for servers that speak none.
fn check_version(r: &mut Reader, table: &TomlTable<'_>, config: &OriginConfig) {
    let speaks_none = config.servers.iter().any(|server| server.protocol == Protocol::FastCgi);
    if let Some(item) = table.item("http_version")
        && speaks_none
    {
        r.error(item.span, "a FastCGI server has no version of HTTP");
    }
    let checks_service = config.probe.as_ref().is_some_and(|probe| probe.grpc.is_some());
    if checks_service
        && config.http == HttpVersion::Http11
        && let Some(item) = table.item("probe")
    {
        r.error(item.span, "a gRPC health check needs HTTP/2").help =
            Some("add `http_version = \"2\"`, or \"auto\", to the origin".to_owned());
    }
}

/// Reads a time of at least `least` milliseconds.
fn time(r: &mut Reader, item: &SettingValue<'_>, least: u64, to: &mut u64) {
    match r.duration(item) {
        Some(ms) if ms >= least => *to = ms,
        Some(_) => {
            let message = format!("`{}` must be longer than nothing", item.name);
            r.error(item.span.clone(), message);
        }
        None => {}
    }
}

/// Applies the defaults that depend on the servers.
fn servers(r: &mut Reader, item: &SettingValue<'_>, known: &mut OriginEntry) {
    let each = item.each();
    if each.is_empty() {
        r.error(item.span.clone(), "`servers` names no server");
    }
    let drafts: Vec<_> = each.iter().map(|item| server(r, item)).collect();
    known.ids = drafts.iter().map(|draft| draft.id.clone()).collect();
    let servers: Vec<_> = drafts.into_iter().filter_map(|draft| draft.server).collect();
    if !servers.is_empty() && servers.iter().all(|server| server.backup) {
        r.error(item.span.clone(), "`servers` has only backups").help =
            Some("a backup stands in for servers without `backup`: name at least one".to_owned());
    }
    known.config = OriginConfig::with_limits(&known.config.name, servers, &r.origins.limits);
    let place = r.location(&item.table.span);
    known.tls = tls::uses_tls(&known.config).then(|| tls::plain_origin(place));
}

fn server(r: &mut Reader, item: &SettingValue<'_>) -> ServerDraft {
    if item.value.is_str() {
        return ServerDraft { server: server_url(r, item), id: None };
    }
    let mut draft = ServerDraft::default();
    rows::read_table(r, item, &SERVER, SERVER_ROWS, &mut draft);
    draft
}

/// A server's URL.
fn server_url(r: &mut Reader, item: &SettingValue<'_>) -> Option<ServerConfig> {
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
        let (setting, path, place) =
            (item.name.to_owned(), path.to_owned(), r.location(&item.span));
        r.sockets.push(NamedPath { setting, path, place });
    }
    if let Address::Tcp { host, port } = &server.address {
        let (setting, host, port) = (item.name.to_owned(), host.clone(), *port);
        let place = r.location(&item.span);
        r.hosts.push(NamedHost { setting, host, port, place });
    }
    Some(server)
}

fn retry_on(r: &mut Reader, item: &SettingValue<'_>) -> RetryOn {
    let mut on = RetryOn::NOTHING;
    for item in item.each() {
        match r.text(&item) {
            Some("connect") => on.connect = true,
            Some("drop") => on.drop = true,
            Some("timeout") => on.timeout = true,
            Some(text) if text.parse().is_ok_and(|code| on.statuses.insert(code)) => {}
            Some(text) => {
                let close = suggestions::closest(text, ["connect", "drop", "timeout"]);
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
