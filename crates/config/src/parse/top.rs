//! The top of the file: keys outside of tables.

use base::units;
use policy::forwarded::ClientField;
use policy::headers::FieldName;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::admin::{ADMIN, ADMIN_ROWS};
use super::health::{HEALTH, HEALTH_ROWS};
use super::lists::nets;
use super::tls::{TLS, TLS_ROWS};
use super::{
    admin, certificates, cluster, compression, crawlers, disk, health, limits, listen, log_ring,
    logs, neighbours, origins, ports, sites, tracing, webhook,
};
use crate::keys::{TABLE, TEXTS};
use crate::model::{CacheStatus, Config, MemoryConfig, MemorySize, Programs, ServiceAccount};
use crate::page::word;
use crate::reader::{Reader, SettingValue};
use crate::rows::{self, put, section};

/// Smallest useful memory of a cache.
const MEMORY_MIN: u64 = 8 << 20;

/// Largest plausible number of threads.
pub(crate) const WORKERS_MAX: u64 = 1024;

section! {
    pub(crate) TOP, pub(crate) TOP_ROWS: Config; "",
    "Keys before the first `[table]`, and the tables themselves.";
    #Own @restart("listen", |own, next| own.listen != next.listen)
    "listen", TEXTS, "\":80\"; with `[tls.acme]` also \":443 tls\"", "Addresses on which clients connect: `:80` for all addresses, `127.0.0.1:80` or `[::1]:80` for one. Add `tls` for TLS (`:443 tls`). Add `h2c` for balancers that speak HTTP/2 without TLS (`:80 h2c`). Add `proxy` behind a balancer that sends the PROXY protocol (`:80 proxy`, `:443 tls proxy`). `unix:/path` is a unix socket; `mode=660` sets its permissions. `fd:name` is a socket that systemd passes to the daemon.",
        |r, item, to| to.listen = listen::listen_list(r, item);
    "http2", boolean http2, "true", "Whether Larder offers HTTP/2 by ALPN to clients that use TLS. Without TLS, only listeners with `h2c` speak HTTP/2."
        => |page, own| page.line("http2", own.http2);
    "raw_utf8", boolean raw_utf8, "true", "Whether a URL may contain unescaped UTF-8, as clients other than browsers send it. Larder percent-encodes these bytes before any rule sees the URL. With `false`, such a request gets 400.";
    "health_check", "a path", "none", "Path, such as `/health`, that Larder itself answers with 200 if the request's Host belongs to no site. For balancers that check a server by its address. Requests for a site's host are not affected. See also `[health] origins_down`.",
        |r, item, to| to.health_check = health_check(r, item);
    #Own @restart("workers", |own, next| own.workers != next.workers)
    "workers", "a whole number or \"auto\"", "\"auto\"", "Number of worker threads. `auto`: one for each CPU core that the process may use.",
        |r, item, to| to.workers = workers(r, item)
        => |page, own| {
            let workers = own.workers.map(|count| count.to_string());
            page.line("workers", workers.unwrap_or_else(|| "auto".to_owned()));
        };
    "profile", "\"safe\" or \"rfc\"", "\"safe\"", "Defaults of all sites. `safe` keeps personal responses apart, and serves stale responses while an origin fails. `rfc` follows RFC 9111 to the letter.",
        |r, item, to| put(&mut to.profile, r.word(item, &sites::PROFILES))
        => |page, own| page.line("profile", word(&sites::PROFILES, &own.profile));
    "trusted_proxies", TEXTS, "none", "Addresses or networks of proxies and balancers in front of Larder; `unix:` for those that connect over a unix socket. Larder takes the client's address and scheme from their fields (see `client_field`). Listeners with `proxy` accept connections from these addresses only.",
        |r, item, to| to.trusted_proxies = nets(r, item);
    "client_field", "the name of a field", "\"X-Forwarded-For\"", "Request field from which Larder takes the client's address, if a trusted proxy sent it. `X-Forwarded-For`, `Forwarded` (RFC 7239), or a field with one address such as `X-Real-IP` or `CF-Connecting-IP`. Larder ignores all others.",
        |r, item, to| put(&mut to.client_field, client_field(r, item));
    "geoip", "an absolute path", "none", "Database of addresses in MaxMind's format, such as GeoLite2-Country.mmdb, for `country` in `[site.route.when]`. Read at the start and at each reload. It takes as much memory as the file; its maximum size is the limit `geoip_bytes`.",
        |r, item, to| to.geoip = r.path(item);
    "forwarded", boolean forwarded, "false", "Whether Larder also sends `Forwarded` (RFC 7239) to origins, besides the `X-Forwarded-` fields.";
    "x_cache", boolean x_cache, "false", "Whether responses have the field `X-Cache: HIT` or `X-Cache: MISS`."
        => |page, own| page.line("x_cache", own.x_cache);
    "cache_status", "\"on\", \"off\" or \"detail\"", "\"on\"", "Whether responses have the field `Cache-Status` (RFC 9211). `detail` also names the rule that decided.",
        |r, item, to| put(&mut to.cache_status, cache_status(r, item))
        => |page, own| page.line("cache_status", word(&STATUSES, &own.cache_status));
    "via", "a string", "\"larder\"", "Name of this cache in the fields `Via` and `Cache-Status`.",
        |r, item, to| put(&mut to.via, via(r, item))
        => |page, own| page.line("via", &own.via);
    "vcl", "an absolute path", "none", "VCL file for every site that names no VCL of its own. The VCL replaces all settings of the site except `host`, `tls`, `rate`, `concurrent`, `basic_auth` and `forward_auth`.",
        |r, item, to| put(&mut to.vcl, program(r, item));
    #Own @table(MEMORY) "memory", TABLE, "none", "Memory cache: see `[memory]`.",
        |r, item, to| _ = rows::read_table(r, item, &MEMORY, MEMORY_ROWS, &mut to.memory)
        => |page, own| rows::show(page, MEMORY_ROWS, &own.memory);
    #Own @restart("[disk]", |own, next| own.disk != next.disk)
    @table(disk::DISK) "disk", TABLE, "none", "Disk cache below the memory cache: see `[disk]`.",
        |r, item, to| to.disk = disk::disk(r, item);
    #Own @restart("[run]", |own, next| own.run != next.run)
    @table(RUN) "run", TABLE, "none", "User and group of the daemon: see `[run]`.",
        |r, item, to| put(&mut to.run, run(r, item));
    #Own @table(TLS) "tls", TABLE, "none", "Default certificate: see `[tls]`.",
        |r, item, to| _ = rows::read_table(r, item, &TLS, TLS_ROWS, to);
    #Own @restart("[admin]", |own, next| own.admin != next.admin)
    @table(ADMIN) "admin", TABLE, "none", "Admin listener: see `[admin]`.",
        |r, item, to| _ = rows::read_table(r, item, &ADMIN, ADMIN_ROWS, &mut to.admin);
    #Own @table(HEALTH) "health", TABLE, "none", "Listener for health checks: see `[health]`.",
        |r, item, to| _ = rows::read_table(r, item, &HEALTH, HEALTH_ROWS, &mut to.health);
    #Own @table(health::METRICS) "metrics", TABLE, "none", "Listener for Prometheus: see `[metrics]`.",
        |r, item, to| to.metrics = health::metrics(r, item, &to.certificates);
    #Own @table(ports::VARNISH_CLI) "varnish_cli", TABLE, "none", "Port for `varnishadm` and plugins: see `[varnish_cli]`.",
        |r, item, to| to.varnish_cli = ports::varnish_cli(r, item);
    #Own @restart("[htcp]", |own, next| own.htcp != next.htcp)
    @table(ports::HTCP) "htcp", TABLE, "none", "UDP port for HTCP: see `[htcp]`.",
        |r, item, to| to.htcp = ports::htcp(r, item);
    #Own @restart("[cluster]", |own, next| own.cluster != next.cluster)
    @table(cluster::CLUSTER) "cluster", TABLE, "none", "Invalidations and stored responses shared with other nodes: see `[cluster]`.",
        |r, item, to| to.cluster = cluster::cluster(r, item);
    // Records in the ring either have the traces' fields or do not.
    #Own @restart("[tracing]", |own, next| own.tracing.is_none() && next.tracing.is_some())
    @table(tracing::TRACING) "tracing", TABLE, "none", "Traces for a collector: see `[tracing]`.",
        |r, item, to| to.tracing = tracing::tracing(r, item);
    @table(webhook::WEBHOOK) "webhook", TABLE, "none", "Receiver of findings of `verify`: see `[webhook]`.",
        |r, item, to| to.webhook = webhook::webhook(r, item);
    @table(compression::COMPRESSION) "compression", TABLE, "none", "Compression of stored responses: see `[compression]`.",
        |r, item, to| to.compression = compression::compression(r, item);
    @table(crawlers::CRAWLERS) "crawlers", TABLE, "none", "List of crawlers, by which clients have a class: see `[crawlers]`.",
        |r, item, to| crawlers::crawlers(r, item, &mut to.crawlers);
    #Own @restart("access_log", |own, next| own.access_log != next.access_log)
    @table(logs::ACCESS_LOG) "access_log", "\"off\", \"stdout\", \"syslog\", a path, or a table", "\"off\"", "Destination of the access log; see `[access_log]`.",
        |r, item, to| to.access_log = logs::access_log(r, item);
    #Own @restart("error_log", |own, next| own.error_log.target != next.error_log.target)
    @table(logs::ERROR_LOG) "error_log", "\"stderr\", \"syslog\", a path, or a table", "\"stderr\"", "Destination of the daemon's own log; see `[error_log]`.",
        |r, item, to| put(&mut to.error_log, logs::error_log(r, item));
    #Own @restart("log_ring", |own, next| own.log_ring != next.log_ring)
    @table(log_ring::LOG_RING) "log_ring", "\"off\", a size, or a table", "\"32MiB\"", "Memory for records of the latest requests, which `larder log`, `top` and `hist` read; see `[log_ring]`.",
        |r, item, to| to.log_ring = log_ring::log_ring(r, item);
    @table(limits::LIMITS) "limits", TABLE, "none", "Limits of sizes, numbers and times: see `[limits]`.",
        |r, item, to| {
            to.limits = limits::limits(r, item);
            r.origins.limits = to.limits.clone();
        };
    @table(origins::ORIGIN) "origin", "a list of tables", "none", "Origins with a name: see `[[origin]]`.",
        |r, item, _| origins::origins(r, item);
    @table(sites::SITE) "site", "a list of tables", "none", "Sites: see `[[site]]`. At least one is required.",
        sites::sites;
    @table(neighbours::NEIGHBOUR) "neighbour", "a list of tables", "none", "Other caches to which Larder sends invalidations, and from which it can fetch misses: see `[[neighbour]]`.",
        |r, item, to| to.neighbours = neighbours::neighbours(r, item, &to.sites);
}

section! {
    pub(crate) MEMORY, MEMORY_ROWS: MemoryConfig; "[memory]",
    "The memory cache.";
    "size", "a size (\"1GiB\"), a percentage (\"50%\") or \"auto\"", "\"auto\"", "Maximum memory for the cache. Nine tenths hold stored responses with their metadata; one tenth covers what the allocator loses to fragmentation. Percentages refer to the machine's memory or to the control group's limit. `auto` is half of that.",
        memory_size
        => |page, own| page.line("memory.size", own.size);
}

section! {
    pub(crate) RUN, RUN_ROWS: ServiceAccount; "[run]",
    "User and group of a daemon that root starts. Larder reads this table at the start; a reload \
     does not change it.";
    "user", "a string", "\"larder\" if there is such a user, else \"nobody\"", "User that the daemon becomes once its ports are open, with all groups of that user. With `root`, it stays root.",
        |r, item, to| to.user = account(r, item);
    "group", "a string", "the user's", "Group that the daemon runs as.",
        |r, item, to| to.group = account(r, item);
}

/// Reads the whole document.
pub(super) fn config(r: &mut Reader, document: &Spanned<DeTable<'_>>) -> Config {
    let top = r.document(document, &TOP);
    r.is_partial = r.is_one_file() && cluster::shares_configuration(&top);
    let mut config = Config { listen: listen::usual(&top), ..Config::default() };
    config.memory.place = r.location(&top.span);
    rows::read(r, &top, TOP_ROWS, &mut config);
    if top.item("site").is_none() && !r.is_partial {
        r.error_nowhere("no [[site]]").help = Some(
            "add one: [[site]], then `host = [\"*\"]` and `origin = \"http://127.0.0.1:8080\"`"
                .into(),
        );
    }
    listen::check_proxy_listeners(r, &top, &config.listen);
    // With another error, the origin may only seem unused.
    if !r.is_partial && r.errors() == 0 {
        origins::warn(r);
    }
    for known in std::mem::take(&mut r.origins.known) {
        config.origins.push(known.config);
        config.origin_tls.push(known.tls);
    }
    admin::check_origins(r, &top, &config);
    admin::warn_of_loops(r, &top, &config);
    certificates::check(r, &top, &config);
    cluster::check(r, &top, &config);
    if top.item("disk").is_none() {
        disk::check_uses(r);
    }
    config.folders = std::mem::take(&mut r.folders);
    config.sockets = std::mem::take(&mut r.sockets);
    config.hosts = std::mem::take(&mut r.hosts);
    config
}

/// The field where trusted proxies name the client.
fn client_field(r: &mut Reader, item: &SettingValue<'_>) -> Option<ClientField> {
    if item.table.item("trusted_proxies").is_none() && !r.is_partial {
        r.warning(item.span.clone(), "`client_field` without `trusted_proxies`").help =
            Some("fields from peers that are not trusted are ignored".to_owned());
    }
    let text = r.text(item)?;
    r.check(item, FieldName::parse(text)).map(ClientField::of)
}

/// Reads the program for all sites that name none.
fn program(r: &mut Reader, item: &SettingValue<'_>) -> Option<Programs> {
    r.path(item).map(Programs::File)
}

fn workers(r: &mut Reader, item: &SettingValue<'_>) -> Option<usize> {
    match item.value {
        DeValue::String(text) if text == "auto" => None,
        _ => r.count(item, 1, WORKERS_MAX).and_then(|n| n.try_into().ok()),
    }
}

fn run(r: &mut Reader, item: &SettingValue<'_>) -> Option<ServiceAccount> {
    let table = r.table(item, &RUN)?;
    let span = table.item("user").map_or_else(|| table.span.clone(), |item| item.span);
    let place = Some(crate::ConfigLocation { file: r.source.clone(), span });
    let mut run = ServiceAccount { place, ..ServiceAccount::default() };
    rows::read(r, &table, RUN_ROWS, &mut run);
    Some(run)
}

/// Reads the name of a user or a group.
fn account(r: &mut Reader, item: &SettingValue<'_>) -> Option<String> {
    let text = r.text(item)?;
    let good = !text.is_empty() && !text.contains(['\0', ':', '/']);
    r.check(item, good.then(|| text.to_owned()).ok_or("takes the name of one"))
}

/// Parses `auto`, a percentage or a size.
fn memory_size(r: &mut Reader, item: &SettingValue<'_>, memory: &mut MemoryConfig) {
    let size = match item.value {
        DeValue::String(text) => r.check(item, parse_memory(text)),
        // A number of bytes, or a wrong type.
        _ => r.size(item).and_then(|bytes| r.check(item, enough(bytes))),
    };
    *memory = MemoryConfig { size: size.unwrap_or_default(), place: r.location(&item.span) };
}

/// Reads `auto`, a percentage or a size.
pub(crate) fn parse_memory(text: &str) -> Result<MemorySize, String> {
    let text = text.trim();
    if text == "auto" {
        return Ok(MemorySize::Auto);
    }
    if let Some(number) = text.strip_suffix('%') {
        return match number.trim_end().parse::<u8>() {
            Ok(percent @ 1..=90) => Ok(MemorySize::Percent(percent)),
            _ => Err("a percentage is a whole number from 1% to 90%".to_owned()),
        };
    }
    let bytes = units::parse_size(text).map_err(|why| match units::size_meant(text) {
        Some(meant) => format!("{why}; did you mean \"{meant}\"?"),
        None => format!("{why}; write a size (\"1GiB\"), a percentage (\"50%\") or \"auto\""),
    })?;
    let is_bare = text.bytes().all(|b| b.is_ascii_digit());
    enough(bytes).map_err(|why| match is_bare {
        true => format!("{why}; did you mean \"{text}MiB\"?"),
        false => why.to_owned(),
    })
}

fn enough(bytes: u64) -> Result<MemorySize, &'static str> {
    if bytes < MEMORY_MIN {
        Err("a cache needs at least 8MiB")
    } else {
        Ok(MemorySize::Bytes(bytes))
    }
}

fn health_check(r: &mut Reader, item: &SettingValue<'_>) -> Option<String> {
    let text = r.text(item)?;
    let good = text.starts_with('/') && text.bytes().all(|b| b.is_ascii_graphic() && b != b'?');
    r.check(item, good.then(|| text.to_owned()).ok_or("takes a path such as \"/health\""))
}

/// The keywords of `cache_status`.
const STATUSES: [(&str, CacheStatus); 3] =
    [("on", CacheStatus::On), ("off", CacheStatus::Off), ("detail", CacheStatus::Detail)];

fn cache_status(r: &mut Reader, item: &SettingValue<'_>) -> Option<CacheStatus> {
    match item.value {
        DeValue::Boolean(true) => Some(CacheStatus::On),
        DeValue::Boolean(false) => Some(CacheStatus::Off),
        _ => r.word(item, &STATUSES),
    }
}

fn via(r: &mut Reader, item: &SettingValue<'_>) -> Option<String> {
    let text = r.text(item)?;
    // RFC 9211 2 wants a token or a string in Cache-Status: a structured token begins with a letter
    // or `*`.
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic());
    if !starts || !message::header::is_token(text.as_bytes()) {
        r.error(
            item.span.clone(),
            "`via` is a word: a letter, then letters, digits, `-`, `_` or `.`",
        );
        return None;
    }
    Some(text.to_owned())
}
