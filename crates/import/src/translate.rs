//! From the tree of nginx's directives to `larder.toml` and the account of them.

mod answers;
mod cache;
mod caddy;
mod caddy_matchers;
mod chain;
mod conditions;
mod constants;
mod destinations;
mod globals;
mod guards;
mod headers;
mod listen;
mod locations;
mod origins;
mod pages;
mod predicate;
mod questions;
mod rewrites;
mod rules;
mod servers;
mod sites;
mod squid;
mod state;
mod targets;
mod units;
mod unused_maps;
mod variables;
mod varnish;
mod words;

use config::Severity;

use crate::document::{self, Document, TablePlace, WrittenLine, first_part};
use crate::error::Error;
use crate::report::{Ledger, Report, one_line};
use crate::source::{Source, SourceKind};
use crate::syntax::Directive;
use state::{State, World};

/// Settings that are taken back because the check of the result refuses them, at most.
const MENDS_MAX: usize = 500;

/// Keys without which their table is nothing.
const NEEDED: [&str; 9] =
    ["host", "path", "method", "name", "servers", "root", "origin", "respond", "redirect"];

/// Keys that keep clients out. Where the check refuses one, the route lets no client in.
const GUARDS: [&str; 4] = ["allow", "deny", "basic_auth", "forward_auth"];

/// Name of the result in messages.
const RESULT: &str = "larder.toml";

/// A configuration and the account of what it was made from.
#[derive(Clone, Debug)]
pub struct Translated {
    /// The text of `larder.toml`, which passes its check.
    pub toml: String,
    /// One entry for each directive.
    pub report: Report,
}

/// Translates a configuration.
///
/// # Errors
/// Only a fault of the translation itself: its result does not pass the check.
pub fn translate(source: &Source) -> Result<Translated, Error> {
    match source.kind {
        SourceKind::Nginx => of_nginx(source),
        SourceKind::Caddy => of_another(source, "Caddy", caddy::make),
        SourceKind::Squid => of_another(source, "Squid", squid::make),
        SourceKind::Varnish => of_another(source, "varnishd", varnish::make),
    }
}

fn of_nginx(source: &Source) -> Result<Translated, Error> {
    let (filled, used) = constants::filled(&source.directives);
    let http = http(&filled);
    let mut ledger = Ledger::new(source.count);
    used.iter().for_each(|id| ledger.carried(*id, ""));
    for id in &source.stock {
        ledger.default(*id, "the usual settings of this file, which nginx brings, are the default");
    }
    let document = Document { server: "nginx", ..Document::default() };
    let mut state = State { world: World::new(http), ledger, document };
    filled.iter().for_each(|own| globally(&mut state, own));
    sites::sites(&mut state, http);
    translated(&mut state, source, &|state| {
        unused_maps::settle(state, &source.directives);
        source.directives.iter().for_each(|own| finish(state, &source.directives, own));
    })
}

/// Translates the configuration of a program that has no blocks of nginx.
fn of_another(
    source: &Source,
    server: &'static str,
    make: fn(&mut State<'_>, &[Directive]),
) -> Result<Translated, Error> {
    let document = Document { server, ..Document::default() };
    let ledger = Ledger::new(source.count);
    let mut state = State { world: World::default(), ledger, document };
    make(&mut state, &source.directives);
    translated(&mut state, source, &|_| {})
}

/// The result, and the account that `finish` completes.
fn translated(
    state: &mut State<'_>,
    source: &Source,
    finish: &dyn Fn(&mut State<'_>),
) -> Result<Translated, Error> {
    let (lines, warnings) = mended(state, &source.directives)?;
    for (_, from, _) in state.document.written_from() {
        from.iter().for_each(|id| state.ledger.carried(*id, ""));
    }
    finish(state);
    let entries = state.ledger.entries(&source.directives);
    let toml = lines.iter().map(|line| format!("{}\n", line.text)).collect();
    Ok(Translated { toml, report: Report { entries, warnings } })
}

/// The directives of `http`, or all of a file that is included there.
fn http(directives: &[Directive]) -> &[Directive] {
    let own = directives.iter().find(|own| own.name == "http" && own.block.is_some());
    own.map_or(directives, Directive::children)
}

/// Settles what is a matter of the whole daemon.
fn globally(state: &mut State<'_>, own: &Directive) {
    match own.name.as_str() {
        "upstream" | "types" | "map" | "geo" | "split_clients" => return,
        "stream" | "mail" => {
            own.visit(&mut |inner| _ = words::settle_as(&mut state.ledger, inner, &own.name));
            return;
        }
        _ => _ = globals::settle(state, own),
    }
    own.children().iter().for_each(|own| globally(state, own));
}

/// Settles a directive that has no answer yet.
fn finish(state: &mut State<'_>, directives: &[Directive], own: &Directive) {
    if state.ledger.is_open(own.id) && !words::settle(&mut state.ledger, own) {
        unsettled(state, directives, own);
    }
    own.children().iter().for_each(|own| finish(state, directives, own));
}

/// Tells whether a directive uses the variable that `own` makes.
fn is_named(directives: &[Directive], own: &Directive) -> bool {
    let name = own.args.last().map_or("", |name| name.trim_start_matches('$'));
    let braced = format!("{{{name}}}");
    let has = |text: &str| {
        text.split('$').skip(1).any(|rest| {
            let is_it = rest.strip_prefix(name).is_some_and(|rest| {
                !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
            });
            is_it || rest.starts_with(&braced)
        })
    };
    let mut is_named = false;
    for directive in directives {
        directive.visit(&mut |other| {
            is_named |= other.id != own.id && other.args.iter().any(|arg| has(arg));
        });
    }
    is_named
}

fn unsettled(state: &mut State<'_>, directives: &[Directive], own: &Directive) {
    let ledger = &mut state.ledger;
    match own.name.as_str() {
        "map" if own.arg(0) == "$http_upgrade" => {
            let why = "WebSocket connections need no variable";
            own.visit(&mut |own| ledger.default(own.id, why));
        }
        "map" | "geo" if !is_named(directives, own) => {
            let why = "nothing uses the variable";
            own.visit(&mut |own| ledger.not_needed(own.id, why));
        }
        "map" | "geo" | "split_clients" => {
            let why = "a variable that is made of others is not there";
            let instead = "what uses it is listed, too; `when` of a route looks at fields, cookies, parameters and \
                           addresses";
            own.visit(&mut |own| ledger.left(own.id, why, instead));
        }
        "if" if own.children().iter().all(|own| matches!(own.name.as_str(), "set" | "break")) => {
            own.visit(&mut |own| {
                ledger.not_needed(own.id, "nothing that was carried over uses the variable");
            });
        }
        "if" => {
            let why = "the location of this condition is not carried over";
            let instead = "a route with `when` looks at fields, cookies, parameters, addresses and User-Agent";
            own.visit(&mut |own| ledger.left(own.id, why, instead));
        }
        "set" => ledger.not_needed(own.id, "nothing that was carried over uses the variable"),
        "valid_referers" | "limit_req_zone" | "limit_conn_zone" | "log_format" | "upstream"
        | "proxy_cache_path" => {
            ledger.not_needed(own.id, "nothing that was carried over uses it");
            own.children().iter().for_each(|own| {
                ledger.not_needed(own.id, "nothing that was carried over uses it");
            });
        }
        "location" if own.arg(0).starts_with('@') => {
            let why = "nothing that was carried over leads to this location";
            own.visit(&mut |own| ledger.left(own.id, why, ""));
        }
        "return" => ledger.left(own.id, "no request that is carried over gets this answer", ""),
        "rewrite" => {
            let instead =
                "a route with `rewrite` or `redirect`; both have the groups of its path as `$1`";
            ledger.left(own.id, "the location of this rewrite is not carried over", instead);
        }
        name if OUTER.contains(&name) => {
            ledger.not_needed(own.id, "every block in which it would count has its own, or no use");
        }
        _ => {}
    }
}

/// Directives that are carried over where they count, and are of no use elsewhere.
const OUTER: &[&str] = &[
    "root",
    "index",
    "alias",
    "expires",
    "add_header",
    "charset",
    "default_type",
    "types",
    "proxy_set_header",
    "proxy_hide_header",
    "proxy_read_timeout",
    "proxy_send_timeout",
    "proxy_connect_timeout",
    "proxy_cache",
    "proxy_cache_key",
    "proxy_cache_valid",
    "proxy_cache_bypass",
    "proxy_no_cache",
    "proxy_cache_use_stale",
    "proxy_cache_methods",
    "fastcgi_cache",
    "fastcgi_cache_key",
    "fastcgi_cache_valid",
    "fastcgi_cache_bypass",
    "fastcgi_no_cache",
    "fastcgi_cache_use_stale",
    "fastcgi_cache_methods",
    "fastcgi_param",
    "fastcgi_read_timeout",
    "fastcgi_send_timeout",
    "fastcgi_connect_timeout",
    "fastcgi_hide_header",
    "gzip_static",
    "brotli_static",
    "auth_basic",
    "auth_basic_user_file",
    "limit_req_status",
    "limit_conn_status",
    "limit_req",
    "limit_conn",
    "allow",
    "deny",
    "error_page",
    "try_files",
    "proxy_next_upstream",
    "fastcgi_next_upstream",
    "ssl_certificate",
    "ssl_certificate_key",
    "server_name",
    "listen",
    "location",
    "server",
    "ssi",
    "internal",
    "limit_req_dry_run",
    "limit_conn_dry_run",
    "break",
    "proxy_ssl_verify",
    "proxy_ssl_name",
    "proxy_ssl_server_name",
    "proxy_ssl_trusted_certificate",
];

/// The lines of the result and the warnings of its check. A setting that the check refuses is taken
/// back, and what it came from is left.
fn mended(
    state: &mut State<'_>,
    directives: &[Directive],
) -> Result<(Vec<WrittenLine>, Vec<String>), Error> {
    let told = told(directives);
    for _ in 0..MENDS_MAX {
        if state.document.sites.is_empty() {
            let made = std::mem::take(&mut state.document);
            let from = made.written_from().into_iter().flat_map(|(_, from, _)| from);
            from.for_each(|id| state.ledger.left(*id, "there is no site that could be made", ""));
            return Ok((no_site(), Vec::new()));
        }
        let lines = state.document.lines(&|id| told.get(id).cloned().unwrap_or_default());
        let text: String = lines.iter().map(|line| format!("{}\n", line.text)).collect();
        let problems = match config::load_str(&text, RESULT) {
            Ok((_, warnings)) => {
                return Ok((lines, warnings.iter().map(|own| own.render(false)).collect()));
            }
            Err(problems) => problems,
        };
        let first = problems.iter().find(|own| own.severity == Severity::Error);
        let Some(problem) = first else { break };
        let at = problem.position().map(|(line, _)| line - 1);
        let Some(line) = at.and_then(|at| lines.get(at)) else {
            return Err(Error::Result(problem.render(false)));
        };
        take_back(state, line, &one_line(&problem.message));
    }
    Err(Error::Result("too much of it had to be taken back".to_owned()))
}

/// Takes a setting, or its whole table, out of the result.
fn take_back(state: &mut State<'_>, line: &WrittenLine, message: &str) {
    let why = format!("`larder check` refuses it: {message}");
    let at = line.setting;
    let settings = state.document.settings_mut(line.table);
    let own = settings.and_then(|settings| {
        let is_needed = |key: &str| NEEDED.contains(&key) || key.starts_with("when.");
        let at = at.filter(|at| !is_needed(settings.0[*at].key.as_str()))?;
        let refused = settings.0.remove(at);
        if GUARDS.iter().any(|key| refused.key.split('.').next() == Some(key)) {
            settings.remove("redirect");
            settings.put("respond", "{ status = 403 }", &refused.from);
        }
        Some(refused.from)
    });
    let from = match (own, line.table) {
        (Some(from), _) => from,
        (None, TablePlace::Route { .. }) if keeps_out(state, line.table) => {
            let settings = state.document.settings_mut(line.table);
            let known = settings.map(std::mem::take).unwrap_or_default();
            let from: Vec<usize> = known.0.into_iter().flat_map(|own| own.from).collect();
            // It was for some requests, and which ones is not known.
            if let Some(settings) = state.document.settings_mut(line.table) {
                settings.text("path", "/*", &[]);
                settings.put("respond", "{ status = 403 }", &from);
            }
            from
        }
        (None, TablePlace::Top) => {
            std::mem::take(&mut state.document.top.0).into_iter().flat_map(|own| own.from).collect()
        }
        (None, table) => state.document.remove_table(table),
    };
    from.iter().for_each(|id| state.ledger.left(*id, &why, ""));
}

/// Tells whether a route keeps clients out.
fn keeps_out(state: &mut State<'_>, place: TablePlace) -> bool {
    let settings = state.document.settings_mut(place).map(|own| &own.0);
    settings.into_iter().flatten().any(|own| {
        let value = document::written(&own.value);
        GUARDS.contains(&first_part(&own.key)) && value != "false"
            || own.key == "respond" && value.starts_with("{ status = 4") && !value.contains("404")
    })
}

/// The result for a configuration without servers.
fn no_site() -> Vec<WrittenLine> {
    let text = "# No server was found that could be carried over.".to_owned();
    vec![WrittenLine { text, table: TablePlace::Top, setting: None }]
}

/// The comment for each directive.
fn told(directives: &[Directive]) -> Vec<String> {
    let mut all = Vec::new();
    for own in directives {
        own.visit(&mut |own| all.push((own.id, format!("{} {}", own.location(), own.line()))));
    }
    all.sort_by_key(|(id, _)| *id);
    all.into_iter().map(|(_, text)| one_line(&text)).collect()
}
