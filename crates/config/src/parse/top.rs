//! The top of the file.

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
    admin, certificates, cluster, compression, disk, health, limits, listen, log_ring, logs,
    neighbours, origins, ports, sites, tracing,
};
use crate::keys::{TABLE, TEXTS};
use crate::model::{CacheStatus, Config, MemoryConfig, MemorySize, Programs, Run};
use crate::page::word;
use crate::reader::{Item, Reader};
use crate::rows::{self, put, section};

/// Least memory that a cache is of use with.
const MEMORY_MIN: u64 = 8 << 20;

/// Threads beyond which a number is a mistake.
pub(crate) const WORKERS_MAX: u64 = 1024;

section! {
    pub(crate) TOP, pub(crate) TOP_ROWS: Config; "",
    "Keys that stand before the first `[table]`, and the tables themselves.";
    #Own @restart("listen", |own, next| own.listen != next.listen)
    "listen", TEXTS, "\":80\"; with `[tls.acme]` also \":443 tls\"", "Where clients connect: `:80` for all addresses, `127.0.0.1:80` or `[::1]:80` for one; `:443 tls` for clients that speak TLS, `:80 h2c` for balancers that speak HTTP/2 without TLS; `:80 proxy` or `:443 tls proxy` behind a balancer that sends the PROXY protocol; `unix:/path` for a unix socket, with `mode=660` for its permissions; `fd:name` for sockets that systemd hands over.",
        |r, item, to| to.listen = listen::listen_list(r, item);
    "http2", boolean http2, "true", "Whether clients that speak TLS may speak HTTP/2, which ALPN agrees on. Without TLS, HTTP/2 is spoken where `listen` says `h2c`."
        => |page, own| page.line("http2", own.http2);
    "raw_utf8", boolean raw_utf8, "true", "Whether a URL may have UTF-8 in it that is not escaped, as clients other than browsers send it. It is escaped before anything looks at it; without this it is refused with 400.";
    "health_check", "a path", "none", "A path such as `/health` that is answered 200 when a request's Host names no site: for balancers that ask a server by its address. Sites are not asked.",
        |r, item, to| to.health_check = health_check(r, item);
    #Own @restart("workers", |own, next| own.workers != next.workers)
    "workers", "a whole number or \"auto\"", "\"auto\"", "Core threads; `auto` is one per core the process may use.",
        |r, item, to| to.workers = workers(r, item)
        => |page, own| {
            let workers = own.workers.map(|count| count.to_string());
            page.line("workers", workers.unwrap_or_else(|| "auto".to_owned()));
        };
    "profile", "\"safe\" or \"rfc\"", "\"safe\"", "Defaults of all sites: `safe` keeps what is personal apart and origins alive, `rfc` follows RFC 9111 to the letter.",
        |r, item, to| put(&mut to.profile, r.word(item, &sites::PROFILES))
        => |page, own| page.line("profile", word(&sites::PROFILES, &own.profile));
    "trusted_proxies", TEXTS, "none", "Addresses or networks of proxies and balancers in front; `unix:` for those that connect over a unix socket. What they say of the client and its scheme is believed (see `client_field`), and only they get through to listeners with `proxy`.",
        |r, item, to| to.trusted_proxies = nets(r, item);
    "client_field", "the name of a field", "\"X-Forwarded-For\"", "Where trusted proxies say who asked them: `X-Forwarded-For`, `Forwarded` (RFC 7239), or a field with one address such as `X-Real-IP` or `CF-Connecting-IP`. No other is believed.",
        |r, item, to| put(&mut to.client_field, client_field(r, item));
    "forwarded", boolean forwarded, "false", "Whether origins are told who asks in `Forwarded` (RFC 7239) too, besides the `X-Forwarded-` fields.";
    "x_cache", boolean x_cache, "false", "Whether responses say `X-Cache: HIT` or `MISS`."
        => |page, own| page.line("x_cache", own.x_cache);
    "cache_status", "\"on\", \"off\" or \"detail\"", "\"on\"", "The Cache-Status field (RFC 9211) of responses; `detail` also names the rule that decided.",
        |r, item, to| put(&mut to.cache_status, cache_status(r, item))
        => |page, own| page.line("cache_status", word(&STATUSES, &own.cache_status));
    "via", "a string", "\"larder\"", "Pseudonym in Via and Cache-Status.",
        |r, item, to| put(&mut to.via, via(r, item))
        => |page, own| page.line("via", &own.via);
    "vcl", "an absolute path", "none", "The VCL that decides for every site which names none itself, in the place of all settings but `host`, `tls`, and those that guard it: `rate`, `concurrent`, `basic_auth` and `forward_auth`.",
        |r, item, to| put(&mut to.vcl, program(r, item));
    #Own @table(MEMORY) "memory", TABLE, "none", "See `[memory]`.",
        |r, item, to| _ = rows::read_table(r, item, &MEMORY, MEMORY_ROWS, &mut to.memory)
        => |page, own| rows::show(page, MEMORY_ROWS, &own.memory);
    #Own @restart("[disk]", |own, next| own.disk != next.disk)
    @table(disk::DISK) "disk", TABLE, "none", "A cache on disk below the one in memory: see `[disk]`.",
        |r, item, to| to.disk = disk::disk(r, item);
    #Own @restart("[run]", |own, next| own.run != next.run)
    @table(RUN) "run", TABLE, "none", "See `[run]`.",
        |r, item, to| put(&mut to.run, run(r, item));
    #Own @table(TLS) "tls", TABLE, "none", "See `[tls]`.",
        |r, item, to| _ = rows::read_table(r, item, &TLS, TLS_ROWS, to);
    #Own @restart("[admin]", |own, next| own.admin != next.admin)
    @table(ADMIN) "admin", TABLE, "none", "See `[admin]`.",
        |r, item, to| _ = rows::read_table(r, item, &ADMIN, ADMIN_ROWS, &mut to.admin);
    #Own @table(HEALTH) "health", TABLE, "none", "See `[health]`.",
        |r, item, to| _ = rows::read_table(r, item, &HEALTH, HEALTH_ROWS, &mut to.health);
    #Own @table(health::METRICS) "metrics", TABLE, "none", "See `[metrics]`.",
        |r, item, to| to.metrics = health::metrics(r, item, &to.certificates);
    #Own @table(ports::VARNISH_CLI) "varnish_cli", TABLE, "none", "See `[varnish_cli]`.",
        |r, item, to| to.varnish_cli = ports::varnish_cli(r, item);
    #Own @restart("[htcp]", |own, next| own.htcp != next.htcp)
    @table(ports::HTCP) "htcp", TABLE, "none", "See `[htcp]`.",
        |r, item, to| to.htcp = ports::htcp(r, item);
    #Own @restart("[cluster]", |own, next| own.cluster != next.cluster)
    @table(cluster::CLUSTER) "cluster", TABLE, "none", "See `[cluster]`.",
        |r, item, to| to.cluster = cluster::cluster(r, item);
    // Records in the ring have what traces are made of, or have it not.
    #Own @restart("[tracing]", |own, next| own.tracing.is_none() && next.tracing.is_some())
    @table(tracing::TRACING) "tracing", TABLE, "none", "See `[tracing]`.",
        |r, item, to| to.tracing = tracing::tracing(r, item);
    @table(compression::COMPRESSION) "compression", TABLE, "none", "See `[compression]`.",
        |r, item, to| to.compression = compression::compression(r, item);
    #Own @restart("access_log", |own, next| own.access_log != next.access_log)
    @table(logs::ACCESS_LOG) "access_log", "\"off\", \"stdout\", \"syslog\", a path, or a table", "\"off\"", "Where requests are logged.",
        |r, item, to| to.access_log = logs::access_log(r, item);
    #Own @restart("error_log", |own, next| own.error_log.target != next.error_log.target)
    @table(logs::ERROR_LOG) "error_log", "\"stderr\", \"syslog\", a path, or a table", "\"stderr\"", "Where the daemon says what happens to it; see `[error_log]`.",
        |r, item, to| put(&mut to.error_log, logs::error_log(r, item));
    #Own @restart("log_ring", |own, next| own.log_ring != next.log_ring)
    @table(log_ring::LOG_RING) "log_ring", "\"off\", a size, or a table", "\"32MiB\"", "Memory for records of the last requests, in which `larder log`, `top` and `hist` look; see `[log_ring]`.",
        |r, item, to| to.log_ring = log_ring::log_ring(r, item);
    @table(limits::LIMITS) "limits", TABLE, "none", "See `[limits]`.",
        |r, item, to| {
            to.limits = limits::limits(r, item);
            r.origins.limits = to.limits.clone();
        };
    @table(origins::ORIGIN) "origin", "a list of tables", "none", "See `[[origin]]`.",
        |r, item, _| origins::origins(r, item);
    @table(sites::SITE) "site", "a list of tables", "none", "See `[[site]]`; at least one.",
        sites::sites;
    @table(neighbours::NEIGHBOUR) "neighbour", "a list of tables", "none", "Other caches that are told of what is invalidated here, and asked for what is missing: see `[[neighbour]]`.",
        |r, item, to| to.neighbours = neighbours::neighbours(r, item, &to.sites);
}

section! {
    pub(crate) MEMORY, MEMORY_ROWS: MemoryConfig; "[memory]",
    "The memory cache.";
    "size", "a size (\"1GiB\"), a percentage (\"50%\") or \"auto\"", "\"auto\"", "What the daemon may take for its cache. Nine tenths are given to stored responses with everything that belongs to them, the rest to what the allocator loses between them. Percentages are of the machine's memory or of the control group's limit, `auto` is half of that.",
        memory_size
        => |page, own| page.line("memory.size", own.size);
}

section! {
    pub(crate) RUN, RUN_ROWS: Run; "[run]",
    "As whom the daemon runs that root has started. Read when the daemon starts; a reload does not change \
     it.";
    "user", "a string", "\"larder\" if there is such a user, else \"nobody\"", "The user that the daemon becomes once its ports are open, with the groups it is a member of. Only `root` keeps it root.",
        |r, item, to| to.user = account(r, item);
    "group", "a string", "the user's", "Its group.",
        |r, item, to| to.group = account(r, item);
}

/// Reads the whole document.
pub(super) fn config(r: &mut Reader, document: &Spanned<DeTable<'_>>) -> Config {
    let top = r.document(document, &TOP);
    r.is_partial = r.is_one_file() && cluster::shares_configuration(&top);
    let mut config = Config { listen: listen::usual(&top), ..Config::default() };
    config.memory.place = r.lasting(&top.span);
    rows::read(r, &top, TOP_ROWS, &mut config);
    if top.item("site").is_none() && !r.is_partial {
        r.error_nowhere("no [[site]]").help = Some(
            "add one: [[site]], then `host = [\"*\"]` and `origin = \"http://127.0.0.1:8080\"`"
                .into(),
        );
    }
    listen::check_proxy_listeners(r, &top, &config.listen);
    // With an error about, the origin may be unused only because its use could not be read.
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
fn client_field(r: &mut Reader, item: &Item<'_>) -> Option<ClientField> {
    if item.table.item("trusted_proxies").is_none() && !r.is_partial {
        r.warning(item.span.clone(), "`client_field` without `trusted_proxies`").help =
            Some("what nobody trusted says is never believed".to_owned());
    }
    let text = r.text(item)?;
    r.check(item, FieldName::parse(text)).map(ClientField::of)
}

/// The program that decides for all sites that name none themselves.
fn program(r: &mut Reader, item: &Item<'_>) -> Option<Programs> {
    r.path(item).map(|(path, place)| Programs::File(path, place))
}

fn workers(r: &mut Reader, item: &Item<'_>) -> Option<usize> {
    match item.value {
        DeValue::String(text) if text == "auto" => None,
        _ => r.count(item, 1, WORKERS_MAX).and_then(|n| n.try_into().ok()),
    }
}

fn run(r: &mut Reader, item: &Item<'_>) -> Option<Run> {
    let table = r.table(item, &RUN)?;
    let span = table.item("user").map_or_else(|| table.span.clone(), |item| item.span);
    let place = Some(crate::Place { file: r.source.clone(), span });
    let mut run = Run { place, ..Run::default() };
    rows::read(r, &table, RUN_ROWS, &mut run);
    Some(run)
}

/// The name of a user or a group.
fn account(r: &mut Reader, item: &Item<'_>) -> Option<String> {
    let text = r.text(item)?;
    let good = !text.is_empty() && !text.contains(['\0', ':', '/']);
    r.check(item, good.then(|| text.to_owned()).ok_or("takes the name of one"))
}

/// `auto`, a percentage or a size.
fn memory_size(r: &mut Reader, item: &Item<'_>, memory: &mut MemoryConfig) {
    let size = match item.value {
        DeValue::String(text) => r.check(item, parse_memory(text)),
        // A number of bytes, or of the wrong type altogether.
        _ => r.size(item).and_then(|bytes| r.check(item, enough(bytes))),
    };
    *memory = MemoryConfig { size: size.unwrap_or_default(), place: r.lasting(&item.span) };
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

fn health_check(r: &mut Reader, item: &Item<'_>) -> Option<String> {
    let text = r.text(item)?;
    let good = text.starts_with('/') && text.bytes().all(|b| b.is_ascii_graphic() && b != b'?');
    r.check(item, good.then(|| text.to_owned()).ok_or("takes a path such as \"/health\""))
}

/// The words of `cache_status`.
const STATUSES: [(&str, CacheStatus); 3] =
    [("on", CacheStatus::On), ("off", CacheStatus::Off), ("detail", CacheStatus::Detail)];

fn cache_status(r: &mut Reader, item: &Item<'_>) -> Option<CacheStatus> {
    match item.value {
        DeValue::Boolean(true) => Some(CacheStatus::On),
        DeValue::Boolean(false) => Some(CacheStatus::Off),
        _ => r.word(item, &STATUSES),
    }
}

fn via(r: &mut Reader, item: &Item<'_>) -> Option<String> {
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
