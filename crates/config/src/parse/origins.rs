//! `[[origin]]`, and origins that sites name by URL.

use base::Limits;
use origin::{Address, Balance, OriginConfig, Protocol, RetryOn, ServerConfig, parse_server};

use super::probes::{eject, host, probe};
use super::scripts::is_off;
use super::tls;
use crate::keys::{BOOLEAN, COUNT, DURATION, PATHS, Section, TABLE, TEXTS, keys};
use crate::model::{NamedHost, NamedPath, OriginTls};
use crate::reader::{Item, Reader, Span, Table};
use crate::rows::{self, Row, put, rows};
use crate::suggest;

pub(crate) const ORIGIN: Section = Section {
    title: "[[origin]]",
    about: "A named origin: one or more servers with the same content. Bounds that are not set here are \
            those of `[limits]`.",
    keys: || rows::keys(ORIGIN_ROWS),
    ..Section::EMPTY
};

const ORIGIN_ROWS: &[Row<OriginConfig>] = rows! {
    "name", "a string", "required", "What sites call it.";
    "servers", "a URL, or a list of URLs or { url, weight } tables", "required", "`http://host:port`, `https://host:port`, `unix:/path`, `fastcgi://host:port` or `fastcgi+unix:/path`; `host:port` alone means HTTP; `weight` is a server's share relative to the others'. Of what DNS answers for a host, link-local addresses (169.254.169.254) are not used.";
    "root", "a path", "required for FastCGI", "The document root of a FastCGI origin: where its scripts are, and what they are told as DOCUMENT_ROOT.";
    "try_files", TEXTS, "[\"$uri\", \"$uri/\", \"/index.php\"]", "What a path of a FastCGI origin is tried as, in this order: `$uri` a file, `$uri/` a directory with an index, `/path` this script, `=404` this status.";
    "index", TEXTS, "[\"index.php\", \"index.html\"]", "Names of a directory's own file, the most wanted first.";
    "scripts", TEXTS, "\".php\"", "How names of scripts end; other files are never run.";
    "no_scripts", "a string, a list of strings, or false", "those of its sites' presets", "Directories below which no script is run, such as `/wp-content/uploads`; `*` stands for any one segment, `**` for any number of them. They add to those of presets; with `false` scripts run everywhere.";
    "linked", TEXTS, "none", "Directories outside `root` that links in it may lead into.";
    "files", "a table or false", "none", "How files in `root` that are no scripts are served: see `[origin.files]`; `false` for not at all.";
    "accel", "true, or a table such as { \"/protected/\" = \"/srv/private\" }", "false", "Whether X-Accel-Expires and X-Accel-Charset of its responses count (`X-Accel-Expires: 0` always does: such a response is not stored), and in a table, where X-Accel-Redirect may lead: a path that begins like a key is a file in that key's directory. Without it X-Accel-* is removed from responses.";
    "x_sendfile", PATHS, "none", "Directories of which X-Sendfile of its responses may name files. Without it X-Sendfile is removed.";
    "balance", "\"round-robin\", \"least-requests\" or \"hash\"", "\"round-robin\"", "How requests are spread over the servers.",
        |r, item, to| put(&mut to.balance, r.word(item, &BALANCES));
    "host", "a string", "the client's", "Host field sent to the servers.",
        |r, item, to| to.host_header = host(r, item);
    "tls", TABLE, "none", "How `https://` servers are connected to: see `[origin.tls]`.";
    "probe", "a table or a path", "none", "See `[origin.probe]`.",
        |r, item, to| to.probe = probe(r, item);
    "eject", "a table", "none", "See `[origin.eject]`.",
        |r, item, to| to.eject = eject(r, item);
    "connect_timeout", DURATION, "as in [limits]", "Connecting to a server.",
        |r, item, to| time(r, item, 1, &mut to.timeouts.connect_ms);
    "first_byte_timeout", DURATION, "as in [limits]", "From the request's last byte to the response's head.",
        |r, item, to| time(r, item, 1, &mut to.timeouts.first_byte_ms);
    "between_bytes_timeout", DURATION, "as in [limits]", "A response's body without a new byte.",
        |r, item, to| time(r, item, 1, &mut to.timeouts.between_bytes_ms);
    "total_timeout", DURATION, "as in [limits]", "One exchange in all.",
        |r, item, to| time(r, item, 1, &mut to.timeouts.total_ms);
    "connections", COUNT, "as in [limits]", "Connections in use to one server; 0 for no bound.",
        |r, item, to| put(&mut to.max_connections, r.count32(item, 0, u32::MAX));
    "client_share", "a whole number of percent", "as in [limits]", "What one client gets of the connections to one server; see `origin_share`.",
        |r, item, to| put(&mut to.client_share_percent, r.count32(item, 0, 100));
    "queue", COUNT, "as in [limits]", "Requests waiting for a connection to one server.",
        |r, item, to| put(&mut to.queue, r.count32(item, 0, u32::MAX));
    "queue_timeout", DURATION, "as in [limits]", "How long one of them waits.",
        |r, item, to| time(r, item, 0, &mut to.queue_timeout_ms);
    "idle", COUNT, "as in [limits]", "Idle connections kept per server and core; for FastCGI 0 unless set, as each occupies a worker process there.",
        |r, item, to| put(&mut to.idle_max, r.count32(item, 0, u32::MAX));
    "idle_timeout", DURATION, "as in [limits]", "How long an idle connection is kept.",
        |r, item, to| time(r, item, 1, &mut to.idle_timeout_ms);
    "store_close_delimited", BOOLEAN, "false", "Whether bodies that end with their connection are stored, as HTTP/1.0, CGI programs and `php -S` end them: a clean end counts (FIN; over TLS close_notify), a reset never does. A server that crashes in the middle may end cleanly, too.",
        |r, item, to| put(&mut to.store_close_delimited, r.boolean(item));
    "lenient_origin", BOOLEAN, "false", "Whether lines of its responses' heads may end without CR, as old CGI programs have it. Otherwise such a response is a 502.",
        |r, item, to| put(&mut to.lenient, r.boolean(item));
    "retries", COUNT, "as in [limits]", "Further tries of one request.",
        |r, item, to| put(&mut to.retries, r.count32(item, 0, 10));
    "retry_on", "a list of \"connect\", \"drop\", \"timeout\" and statuses such as \"503\"", "[\"connect\", \"drop\", \"timeout\"]", "What of an idempotent request is tried again: there was no connection, it ended before an answer, it took too long, or the answer has this status (400 to 527). For the last two another server is asked.",
        |r, item, to| to.retry_on = retry_on(r, item);
    "slow_start", DURATION, "0s", "From a server's recovery to its whole share of the requests, which grows evenly until then.",
        |r, item, to| time(r, item, 0, &mut to.slow_start_ms);
    "retry_budget", "a whole number of percent", "as in [limits]", "Retried requests as a share of all.",
        |r, item, to| put(&mut to.retry_budget_percent, r.count32(item, 0, 100));
};

pub(crate) const SERVER: Section = Section {
    title: "{ url, weight }",
    about: "One server of an origin.",
    keys: || {
        keys! {
            "url", "a string", "required", "As in `servers`.";
            "weight", COUNT, "1", "Its share of the requests relative to the other servers'.";
        }
    },
    ..Section::EMPTY
};

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
    let tables = top.item("origin").map(|item| r.tables(&item, &ORIGIN)).unwrap_or_default();
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
    rows::read(r, table, ORIGIN_ROWS, &mut config);
    config.accel = super::files::accel(r, table);
    config.scripts = super::scripts::scripts(r, table, &config.servers);
    config
}

/// The words of `balance`.
const BALANCES: [(&str, Balance); 3] = [
    ("round-robin", Balance::RoundRobin),
    ("least-requests", Balance::LeastRequests),
    ("hash", Balance::Hash),
];

/// Reads a time of at least `least` milliseconds.
fn time(r: &mut Reader, item: &Item<'_>, least: u64, to: &mut u64) {
    match r.duration(item) {
        Some(ms) if ms >= least => *to = ms,
        Some(_) => {
            let message = format!("`{}` must be longer than nothing", item.name);
            r.error(item.span.clone(), message);
        }
        None => {}
    }
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
    let table = r.table(item, &SERVER)?;
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
