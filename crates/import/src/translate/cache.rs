//! Caches: `proxy_cache` and `fastcgi_cache` with their keys, lifetimes and exceptions.

use super::chain::Chain;
use super::conditions::{Condition, Reason, field_name, reasons};
use super::predicate::{Atom, Conjunction, NameKind, Predicate, Wanted};
use super::questions::ServerFacts;
use super::state::{Handler, Scope, World, ids};
use super::units;
use super::variables::Evaluator;
use crate::document::{Settings, TomlValue, quote, written};
use crate::report::Ledger;
use crate::syntax::Directive;

/// Names of a family's directives: those of `proxy_` and of `fastcgi_`.
fn family(handler: Handler, name: &str) -> String {
    format!("{}_{name}", handler.family())
}

/// Decides whether responses of this scope are stored, and how.
pub(crate) fn cache(scope: &mut Scope<'_, '_>) {
    if !scope.has_application() || !scope.state.world.caches {
        return;
    }
    let zone = scope.chain.one(&family(scope.handler, "cache"));
    let Some(zone) = zone.filter(|zone| zone.arg(0) != "off") else {
        let from: Vec<usize> = zone.into_iter().map(|zone| zone.id).collect();
        scope.out.put("cache", "false", &from);
        return;
    };
    scope.default(zone, "what may be stored is stored, in one cache for all sites");
    key(scope);
    lifetimes(scope);
    stale(scope);
    methods(scope);
    purges(scope);
    ignored(scope);
    exceptions(scope);
}

/// Fields of responses that have no say in storing.
fn ignored(scope: &mut Scope<'_, '_>) {
    let Some(directive) = scope.chain.one(&family(scope.handler, "ignore_headers")) else { return };
    let is_known = |name: &str| {
        ["Cache-Control", "Expires", "Set-Cookie", "Vary", "X-Accel-Expires"]
            .into_iter()
            .find(|own| own.eq_ignore_ascii_case(name))
    };
    let names: Vec<&str> = directive.args.iter().filter_map(|name| is_known(name)).collect();
    if names.is_empty() {
        // X-Accel-Redirect and its kin.
        return scope.default(directive, "an origin orders nothing unless it has `accel`");
    }
    scope.out.add("cache.ignore", names, &[directive.id]);
    let remark = "requests with cookies or Authorization stay apart, and a cookie is not stored";
    scope.carried(directive, remark);
}

/// Drops the ignored fields of a site where one of its routes stores without them: in Larder, a
/// route adds to them, and in nginx it replaces them.
pub(crate) fn replace_ignored(ledger: &mut Ledger, route: &mut Settings, site: &Settings) {
    let names = |settings: &Settings| match settings.get("cache.ignore").map(|own| &own.value) {
        Some(TomlValue::List(names)) => names.clone(),
        Some(TomlValue::Plain(_)) | None => Vec::new(),
    };
    let own = names(route);
    let stores = route.get("cache").is_none_or(|cache| written(&cache.value) != "false");
    if !stores || names(site).iter().all(|name| own.contains(name)) {
        return;
    }
    let from = route.remove("cache.ignore").map(|own| own.from).unwrap_or_default();
    for id in &from {
        let why = "a route adds to the fields that its site ignores; here nothing is ignored";
        let instead = "`ignore` in the routes alone, and none in the site";
        ledger.left(*id, why, instead);
    }
    route.put("cache.ignore", "false", &from);
}

fn lifetimes(scope: &mut Scope<'_, '_>) {
    let name = family(scope.handler, "cache_valid");
    for directive in scope.chain.all(&[&name]) {
        let Some((time, statuses)) = directive.args.split_last() else { continue };
        let Some(time) = units::time(time) else {
            scope.left(directive, "this is not a time", "");
            continue;
        };
        let plain = ["200".to_owned(), "301".to_owned(), "302".to_owned()];
        let statuses = if statuses.is_empty() { &plain[..] } else { statuses };
        for status in statuses {
            scope.out.put(&format!("cache.ttl.{status}"), &*time, &[directive.id]);
        }
    }
}

fn key(scope: &mut Scope<'_, '_>) {
    let Some(directive) = scope.chain.one(&family(scope.handler, "cache_key")) else { return };
    let mut has_query = false;
    let mut is_known = true;
    for part in directive.args.join(" ").split('$').skip(1) {
        let end = |c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '{';
        let name = part.split(end).next().unwrap_or(part).trim_start_matches('{');
        match name {
            "request_uri" | "args" | "query_string" | "is_args" => has_query = true,
            "scheme" | "host" | "http_host" | "server_name" | "proxy_host" | "request_method"
            | "uri" | "document_uri" | "https" | "server_port" | "slice_range" => {}
            _ => match name.split_once('_') {
                Some(("cookie", cookie)) => {
                    scope.out.add("cookies.key", [cookie], &[directive.id]);
                }
                Some(("http", field)) if !field.is_empty() => {
                    let field = field_name(field);
                    scope.out.add("cache.key_headers", [field.as_str()], &[directive.id]);
                }
                _ => is_known = false,
            },
        }
    }
    if !is_known {
        let instead = "`cookies.key` and `cache.key_headers` add cookies and fields";
        scope.left(directive, "the key has a variable that no setting adds", instead);
    } else if has_query {
        scope.default(directive, "the key is the method's kind, scheme, host, path and query");
    } else {
        scope.out.put("query.ignore", "true", &[directive.id]);
        scope.carried(directive, "the application gets no query either");
    }
}

/// Requests that go past the cache.
fn exceptions(scope: &mut Scope<'_, '_>) {
    let names = [family(scope.handler, "cache_bypass"), family(scope.handler, "no_cache")];
    for name in names {
        for directive in scope.chain.all(&[&name]) {
            if directive.args.iter().any(|text| !text.contains('$') && !matches!(&**text, "" | "0"))
            {
                never(scope, &[directive.id]);
                continue;
            }
            let found = directive
                .args
                .iter()
                .map(|text| {
                    reasons(&scope.state.world, &scope.chain, text)
                        .or_else(|| evaluated(scope, text))
                })
                .collect::<Option<Vec<_>>>();
            match found {
                Some(found) => {
                    scope.carried(directive, "");
                    found.into_iter().flatten().for_each(|reason| {
                        bypass(scope, directive, reason);
                    });
                }
                None if !scope.is_site && directive.args.iter().all(|own| is_said(scope, own)) => {
                    let remark = "nothing is stored at paths with settings of their own";
                    scope.carried(directive, remark);
                    never(scope, &[directive.id]);
                }
                None => {
                    // Rather nothing in the cache than what must not be there.
                    scope.left(
                        directive,
                        "the variable depends on something that `bypass` does not look at; nothing is \
                         stored here",
                        "`bypass` has path, cookie, query and header; then remove `cache = false`",
                    );
                    never(scope, &[directive.id]);
                }
            }
        }
    }
}

/// The reasons for which the text of an exception is a yes, or may be; `None` if some of its
/// requests have nothing that `bypass` looks at. Those of a site get routes ([`passes_bypass`]).
fn evaluated(scope: &Scope<'_, '_>, text: &str) -> Option<Vec<Reason>> {
    let evaluator = Evaluator::new(&scope.state.world, &scope.chain, ServerFacts::default());
    let all = evaluator.is_true(text);
    let from = all.from;
    let mut reasons = vec![Reason { condition: Condition::Always, from: from.clone() }];
    for one in all.any {
        if one == Conjunction::default() {
            return None;
        }
        if !passes_bypass(&one) && scope.is_site {
            continue;
        }
        if one.is_of_other_methods() {
            continue;
        }
        let condition = one.atoms.iter().find_map(|atom| match atom {
            Atom::Path(paths) if paths.len() == 1 => Some(Condition::Path(paths[0].clone())),
            Atom::Method(names) if !names.iter().any(|own| own == "GET" || own == "HEAD") => {
                Some(Condition::Always)
            }
            Atom::Named { kind, name, wanted: Wanted::Like(_) } => Some(match kind {
                NameKind::Cookie => Condition::Cookies(vec![name.clone()]),
                NameKind::Query if name == "*" => Condition::Query,
                NameKind::Query => Condition::Parameter(name.clone()),
                NameKind::Header => Condition::Field(name.clone()),
            }),
            Atom::Path(_)
            | Atom::Method(_)
            | Atom::Client(_)
            | Atom::UserAgent(_)
            | Atom::Named { .. } => None,
        });
        let paths = one.atoms.iter().find_map(|atom| match atom {
            Atom::Path(paths) if condition.is_none() => Some(paths.clone()),
            _ => None,
        });
        let found: Vec<Condition> = match (condition, paths) {
            (Some(condition), _) => vec![condition],
            (None, Some(paths)) => paths.into_iter().map(Condition::Path).collect(),
            (None, None) => return None,
        };
        let own = found.into_iter().map(|condition| Reason { condition, from: from.clone() });
        reasons.extend(own);
    }
    Some(reasons)
}

/// Tells whether the requests of an exception are known.
fn is_said(scope: &Scope<'_, '_>, text: &str) -> bool {
    let evaluator = Evaluator::new(&scope.state.world, &scope.chain, ServerFacts::default());
    !evaluator.is_true(text).any.contains(&Conjunction::default())
}

/// Tells whether `bypass` looks at one of these conditions.
pub(crate) fn passes_bypass(one: &Conjunction) -> bool {
    let is_known = |atom: &Atom| match atom {
        Atom::Path(_) | Atom::Named { wanted: Wanted::Like(_), .. } => true,
        Atom::Method(names) => !names.iter().any(|own| own == "GET" || own == "HEAD"),
        Atom::Client(_) | Atom::UserAgent(_) | Atom::Named { .. } => false,
    };
    one.atoms.iter().any(is_known) || one.is_of_other_methods()
}

/// The exceptions of a cache that `bypass` cannot have, if they can be said.
pub(crate) fn unlooked(world: &World<'_>, chain: &Chain<'_>, handler: Handler) -> Vec<Predicate> {
    let has_zone = chain.one(&family(handler, "cache")).is_some_and(|own| own.arg(0) != "off");
    let mut all: Vec<Predicate> = Vec::new();
    if !has_zone || !handler.is_application() {
        return all;
    }
    for name in [family(handler, "cache_bypass"), family(handler, "no_cache")] {
        for directive in chain.all(&[&name]) {
            for text in &directive.args {
                if reasons(world, chain, text).is_some() {
                    continue;
                }
                let evaluator = Evaluator::new(world, chain, ServerFacts::default());
                let mut own = evaluator.is_true(text).with(&[directive.id]);
                if own.any.contains(&Conjunction::default()) {
                    continue;
                }
                own.any.retain(|one| !passes_bypass(one));
                if !own.any.is_empty() && !all.iter().any(|other| other.any == own.any) {
                    all.push(own);
                }
            }
        }
    }
    all
}

/// Nothing is stored.
fn never(scope: &mut Scope<'_, '_>, from: &[usize]) {
    scope.out.0.retain(|own| crate::document::first_part(&own.key) != "cache");
    scope.out.put("cache", "false", from);
}

fn bypass(scope: &mut Scope<'_, '_>, directive: &Directive, reason: Reason) {
    let Reason { condition, from } = reason;
    let from = if from.is_empty() { vec![directive.id] } else { from };
    let out = &mut scope.out;
    match condition {
        Condition::Cookies(cookies) => {
            out.add("bypass.cookie", cookies.iter().map(String::as_str), &from);
        }
        Condition::Path(pattern) => out.add("bypass.path", [pattern.as_str()], &from),
        Condition::Query => out.put("bypass.query", "true", &from),
        Condition::Parameter(name) => {
            let is_any = out.get("bypass.query").is_some_and(|own| {
                own.value == crate::document::TomlValue::Plain("true".to_owned())
            });
            if !is_any {
                out.add("bypass.query", [name.as_str()], &from);
            }
        }
        Condition::Field(name) => out.add("bypass.header", [name.as_str()], &from),
        Condition::Always => {
            for id in from {
                scope.state.ledger.default(id, "only responses to GET and HEAD are stored");
            }
        }
    }
}

fn stale(scope: &mut Scope<'_, '_>) {
    let Some(directive) = scope.chain.one(&family(scope.handler, "cache_use_stale")) else {
        return;
    };
    if directive.arg(0) == "off" {
        for key in ["stale_while_revalidate", "stale_if_error", "stale_if_unreachable"] {
            scope.out.put(&format!("cache.{key}"), "\"0s\"", &[directive.id]);
        }
    } else {
        scope.default(
            directive,
            "old pages are served while one fetch renews them, and for a day while the origin fails",
        );
    }
}

fn methods(scope: &mut Scope<'_, '_>) {
    let Some(directive) = scope.chain.one(&family(scope.handler, "cache_methods")) else { return };
    if directive.args.iter().all(|method| matches!(method.as_str(), "GET" | "HEAD")) {
        scope.default(directive, "responses to GET and HEAD are stored");
    } else {
        scope.left(directive, "responses to other methods than GET and HEAD are not stored", "");
    }
}

fn purges(scope: &mut Scope<'_, '_>) {
    for directive in scope.chain.all(&[&family(scope.handler, "cache_purge")]) {
        let addresses = directive.args.iter().skip_while(|word| *word != "from").skip(1);
        let addresses: Vec<&str> = addresses.map(String::as_str).collect();
        let is_allowed = !addresses.is_empty() && !addresses.contains(&"all");
        if is_allowed && scope.is_site {
            scope.out.add("purge.allow", addresses, &[directive.id]);
        } else {
            let instead = "`[site.purge]` says who may purge, and in which dialects";
            scope.left(directive, "purges are a setting of the whole site", instead);
        }
    }
}

/// Times within which an application must answer.
pub(crate) fn times(scope: &mut Scope<'_, '_>) {
    if !scope.has_application() {
        return;
    }
    let name = family(scope.handler, "read_timeout");
    let Some(directive) = scope.chain.one(&name) else { return };
    match units::time(directive.arg(0)) {
        Some(time) => scope.out.put("first_byte_timeout", time, &[directive.id]),
        None => scope.left(directive, "this is not a time", ""),
    }
}

/// Fields of requests to the application.
pub(crate) fn request_fields(scope: &mut Scope<'_, '_>) {
    if !matches!(scope.handler, Handler::Http | Handler::Grpc) {
        return;
    }
    for directive in scope.chain.all(&[&family(scope.handler, "set_header")]) {
        let (name, value) = (directive.arg(0).to_owned(), directive.arg(1));
        match (name.to_ascii_lowercase().as_str(), value) {
            ("host", "$host" | "$http_host" | "$host:$server_port" | "$server_name") => {
                scope.default(directive, "the application gets the client's Host");
            }
            // The origin's table has it.
            ("host", _) => {}
            ("upgrade" | "connection", _) => {
                scope.default(directive, "WebSocket and kept connections need no fields");
            }
            (
                "x-forwarded-for" | "x-real-ip" | "x-forwarded-proto" | "x-forwarded-host"
                | "x-forwarded-port" | "x-forwarded-scheme" | "x-client-ip" | "x-scheme"
                | "x-forwarded-server" | "x-forwarded-ssl" | "x-url-scheme" | "forwarded",
                value,
            ) if value.contains('$') || value == "https" => {
                let known = [
                    "x-forwarded-scheme",
                    "x-client-ip",
                    "x-scheme",
                    "x-forwarded-server",
                    "x-forwarded-ssl",
                    "x-url-scheme",
                ];
                if known.contains(&name.to_ascii_lowercase().as_str()) && value.contains('$') {
                    let instead = "X-Forwarded-For, -Proto, -Host, -Port and X-Real-IP are sent";
                    scope.left(directive, "a field with a variable", instead);
                } else {
                    scope.default(
                        directive,
                        "X-Forwarded-For, -Proto, -Host, -Port and X-Real-IP are always sent",
                    );
                }
            }
            ("accept-encoding", "") => {
                scope.not_needed(directive, "each client gets the coding that it takes");
            }
            (_, "") => scope.out.add("request_headers.unset", [name.as_str()], &[directive.id]),
            (_, value) if value.contains('$') => {
                let instead = "the application finds Host, X-Forwarded-* and X-Real-IP; \
                               `request_headers` has variables of its own";
                scope.left(directive, "its variables are not carried over", instead);
            }
            (_, value) => {
                let key = format!("request_headers.set.{}", crate::document::quote_key(&name));
                scope.out.put(&key, quote(value), &[directive.id]);
            }
        }
    }
}

/// Fields of responses that clients do not get.
pub(crate) fn hidden_fields(scope: &mut Scope<'_, '_>) {
    if !scope.has_application() {
        return;
    }
    let name = family(scope.handler, "hide_header");
    for directive in scope.chain.all(&[&name]) {
        scope.out.add("response_headers.unset", [directive.arg(0)], &ids(&[directive]));
    }
}
