//! Guards: addresses, passwords, another server's word, and limits.

use super::origins;
use super::questions::ServerFacts;
use super::state::{Handler, Scope, ids, option};
use super::variables::Evaluator;
use crate::document::quote;
use crate::syntax::Directive;

/// nginx's status for requests beyond a limit.
const REFUSED: &str = "503";

/// Decides about `allow` and `deny`.
pub(crate) fn addresses(scope: &mut Scope<'_, '_>) {
    let rules = scope.chain.all(&["allow", "deny"]);
    let Some((last, before)) = rules.split_last() else { return };
    let is_all = |rule: &Directive| rule.arg(0) == "all";
    let is_of = |rules: &[&Directive], name: &str| {
        rules.iter().all(|rule| rule.name == name && !is_all(rule))
    };
    let texts = |rules: &[&Directive]| -> Vec<String> {
        rules.iter().map(|rule| rule.arg(0).to_owned()).collect()
    };
    let add = |scope: &mut Scope<'_, '_>, key: &str, rules: &[&Directive]| {
        let texts = texts(rules);
        scope.out.add(key, texts.iter().map(String::as_str), &ids(rules));
    };
    match (last.name.as_str(), is_all(last)) {
        ("deny", true) if before.is_empty() => {
            scope.out.put("respond", "{ status = 403 }", &[last.id]);
        }
        ("deny", true) if is_of(before, "allow") => {
            add(scope, "allow", before);
            scope.carried(last, "");
        }
        ("allow", true) if is_of(before, "deny") => {
            if !before.is_empty() {
                add(scope, "deny", before);
            }
            scope.default(last, "everybody else has access");
        }
        ("allow", false) if is_of(&rules, "allow") => {
            ids(&rules).iter().for_each(|id| {
                scope.state.ledger.default(*id, "without `deny all`, everybody has access");
            });
        }
        ("deny", false) if is_of(&rules, "deny") => add(scope, "deny", &rules),
        _ => {
            // The first rule that fits decides there; here `deny` always goes before `allow`.
            let deny: Vec<_> = rules.iter().copied().filter(|rule| rule.name == "deny").collect();
            let instead = "write `allow` and `deny` as Larder has them: `deny` goes first";
            rules.iter().for_each(|rule| {
                scope.left(rule, "the order of these rules cannot be kept", instead);
            });
            // Rather nobody than somebody who may not.
            if !deny.is_empty() {
                scope.out.put("respond", "{ status = 403 }", &ids(&deny));
            }
        }
    }
}

/// Decides about passwords.
pub(crate) fn passwords(scope: &mut Scope<'_, '_>) {
    let Some(realm) = scope.chain.one("auth_basic") else { return };
    let file = scope.chain.one("auth_basic_user_file");
    match file {
        _ if realm.arg(0) == "off" => scope.out.put("basic_auth", "false", &[realm.id]),
        Some(file) if file.arg(0).contains('$') => {
            let instead = "name one file; until then Larder answers 403";
            scope.left(realm, "the file of users has no variable", instead);
            scope.left(file, "the file of users has no variable", instead);
            scope.out.put("respond", "{ status = 403 }", &[realm.id, file.id]);
        }
        Some(file) => {
            let path = absolute(file);
            let (path, realm_text) = (quote(&path), quote(realm.arg(0)));
            let value = format!("{{ file = {path}, realm = {realm_text} }}");
            scope.out.put("basic_auth", value, &[realm.id, file.id]);
        }
        None => scope.left(realm, "there is no `auth_basic_user_file` beside it", ""),
    }
}

/// A path that is relative to the folder of the configuration, in full.
fn absolute(file: &Directive) -> String {
    let path = file.arg(0);
    if path.starts_with('/') {
        return path.to_owned();
    }
    let folder = file.file.rsplit_once('/').map_or("", |(folder, _)| folder);
    format!("{}/{path}", if folder.starts_with('/') { folder } else { "/etc/nginx" })
}

/// Decides about `auth_request`: its location must pass the question to one server.
pub(crate) fn asked(scope: &mut Scope<'_, '_>, server: &[Directive]) {
    let Some(directive) = scope.chain.one("auth_request") else { return };
    if directive.arg(0) == "off" {
        return scope.out.put("forward_auth", "false", &[directive.id]);
    }
    let path = directive.arg(0);
    let is_it = |own: &&Directive| {
        own.name == "location" && own.args.last().is_some_and(|last| last == path)
    };
    let location = server.iter().find(is_it);
    let pass = location.and_then(|own| own.children().iter().find(|own| own.name == "proxy_pass"));
    let target = pass.and_then(|pass| origins::Target::parse(pass.arg(0)));
    let Some((target, (pass, location))) = target.zip(pass.zip(location)) else {
        let instead = "`forward_auth` names an origin and a path; until then Larder answers 403";
        scope.left(directive, "its location passes the question to no server", instead);
        return scope.out.put("respond", "{ status = 403 }", &[directive.id]);
    };
    let inner = scope.chain.with(location.children());
    let name = origins::http(scope.state, &inner, Handler::Http, &target, None);
    let own = target.path.unwrap_or_else(|| path.to_owned());
    let value = format!("{{ origin = {}, path = {} }}", quote(&name), quote(&own));
    scope.out.put("forward_auth", value, &[directive.id, pass.id]);
    scope.carried(location, "");
    for own in location.children() {
        if scope.state.ledger.is_open(own.id) {
            scope.default(own, "the question has the client's fields and no body");
        }
    }
    for own in scope.chain.all(&["auth_request_set"]) {
        let instead = "`copy` in `forward_auth` names fields of the answer for the application";
        scope.left(own, "variables of the answer are not kept", instead);
    }
}

/// Guards that nothing here stands for.
pub(crate) const FOREIGN: [&str; 9] = [
    "auth_jwt",
    "auth_digest",
    "auth_gss",
    "auth_pam",
    "auth_ldap",
    "auth_oidc",
    "access_by_lua_block",
    "access_by_lua_file",
    "js_access",
];

/// Decides about guards that cannot be carried over: no client is let in.
pub(crate) fn foreign(scope: &mut Scope<'_, '_>) {
    let found: Vec<&Directive> = FOREIGN.iter().filter_map(|name| scope.chain.one(name)).collect();
    for own in found.into_iter().filter(|own| own.arg(0) != "off") {
        let instead = "`forward_auth` asks a server; until then Larder answers 403";
        scope.left(own, "this kind of guard is not there", instead);
        scope.out.put("respond", "{ status = 403 }", &[own.id]);
    }
}

/// Lets no client in where guards cannot be said together.
pub(crate) fn refused(scope: &mut Scope<'_, '_>) {
    let from = scope.chain.refused().to_vec();
    if !from.is_empty() {
        scope.out.put("respond", "{ status = 403 }", &from);
    }
}

/// Things that a limit counts for.
enum LimitKey {
    Address,
    Site,
    Field(String),
}

/// The key of a zone; `None` for one that no limit here has.
fn client(scope: &Scope<'_, '_>, key: &str) -> Option<MappedKey> {
    if let Some(key) = plain_client(key) {
        return Some(MappedKey { key, has_exempt: false });
    }
    let evaluator = Evaluator::new(&scope.state.world, &scope.chain, ServerFacts::default());
    let cases = evaluator.cases(key);
    let mut values = cases.iter().map(|case| case.value.as_deref());
    let is_it = |value: Option<&str>| {
        matches!(value, Some("" | "${binary_remote_addr}" | "${remote_addr}"))
    };
    let is_filled =
        cases.iter().any(|case| case.value.as_deref().is_some_and(|own| !own.is_empty()));
    (is_filled && values.all(is_it))
        .then_some(MappedKey { key: LimitKey::Address, has_exempt: true })
}

/// A key of a limit, and whether some clients have none.
struct MappedKey {
    key: LimitKey,
    has_exempt: bool,
}

const EXEMPT: &str = "clients that the map exempts are counted, too; a route for them with \
                      `when.client` may have no limit";

fn plain_client(key: &str) -> Option<LimitKey> {
    match key {
        "$binary_remote_addr" | "$remote_addr" => Some(LimitKey::Address),
        "$server_name" | "$host" | "$http_host" => Some(LimitKey::Site),
        _ => {
            let field = key.strip_prefix("$http_")?;
            Some(LimitKey::Field(super::conditions::field_name(field)))
        }
    }
}

fn terms(client: &LimitKey, status: Option<&Directive>, is_dry: bool) -> Vec<String> {
    let mut terms = Vec::new();
    match client {
        LimitKey::Address => {}
        LimitKey::Site => terms.push("per = \"site\"".to_owned()),
        LimitKey::Field(name) => terms.push(format!("per = {{ field = {} }}", quote(name))),
    }
    let status = status.map_or(REFUSED, |status| status.arg(0));
    let is_of_limits = status.parse().is_ok_and(|status: u16| matches!(status, 429 | 503));
    if status != "429" && is_of_limits {
        terms.push(format!("status = {status}"));
    }
    terms.extend(is_dry.then(|| "dry_run = true".to_owned()));
    terms
}

/// Decides about `limit_req`.
pub(crate) fn rates(scope: &mut Scope<'_, '_>) {
    let status = scope.chain.one("limit_req_status");
    let dry = scope.chain.one("limit_req_dry_run").filter(|own| own.arg(0) == "on");
    for directive in scope.chain.all(&["limit_req"]) {
        let zone = option(directive, "zone").unwrap_or_default();
        let zone = scope.state.world.rate_zones.get(zone).copied();
        let known = zone.and_then(|zone| {
            let key = client(scope, zone.arg(0))?;
            Some((zone, key, option(zone, "rate")?.replace("r/", "/")))
        });
        let Some((zone, MappedKey { key: client, has_exempt }, rate)) = known else {
            scope.left(
                directive,
                "the zone counts by something that `rate` does not",
                "`per` is \"address\", \"site\" or a field",
            );
            continue;
        };
        let burst: u64 = number(option(directive, "burst"));
        let at_once = if directive.args.iter().any(|arg| arg == "nodelay") {
            burst
        } else {
            number(option(directive, "delay")).min(burst)
        };
        let mut parts = vec![format!("requests = {}", quote(&rate))];
        parts.extend((at_once > 0).then(|| format!("burst = {at_once}")));
        parts.extend((burst > at_once).then(|| format!("queue = {}", burst - at_once)));
        parts.extend(terms(&client, status, dry.is_some()));
        let mut from = vec![zone.id, directive.id];
        from.extend(status.into_iter().chain(dry).map(|own| own.id));
        scope.out.add_written("rate", [format!("{{ {} }}", parts.join(", "))], &from);
        if has_exempt {
            exempt(scope, directive, zone);
        }
    }
}

/// Decides about `limit_conn`.
pub(crate) fn connections(scope: &mut Scope<'_, '_>) {
    let status = scope.chain.one("limit_conn_status");
    let dry = scope.chain.one("limit_conn_dry_run").filter(|own| own.arg(0) == "on");
    for directive in scope.chain.all(&["limit_conn"]) {
        let zone = scope.state.world.connection_zones.get(directive.arg(0)).copied();
        let known = zone.and_then(|zone| Some((zone, client(scope, zone.arg(0))?)));
        let Some((zone, MappedKey { key: client, has_exempt })) = known else {
            scope.left(directive, "the zone counts by something that `concurrent` does not", "");
            continue;
        };
        let mut parts = vec![format!("requests = {}", number(Some(directive.arg(1))))];
        parts.extend(terms(&client, status, dry.is_some()));
        let mut from = vec![zone.id, directive.id];
        from.extend(status.into_iter().chain(dry).map(|own| own.id));
        scope.out.add_written("concurrent", [format!("{{ {} }}", parts.join(", "))], &from);
        if has_exempt {
            exempt(scope, directive, zone);
        }
    }
}

/// Says that clients are counted which were not, by the maps that the key is made of.
fn exempt(scope: &mut Scope<'_, '_>, directive: &Directive, zone: &Directive) {
    scope.carried(directive, EXEMPT);
    let evaluator = Evaluator::new(&scope.state.world, &scope.chain, ServerFacts::default());
    let cases = evaluator.cases(zone.arg(0));
    let from: Vec<usize> = cases.into_iter().flat_map(|case| case.when.from).collect();
    from.iter().for_each(|id| scope.state.ledger.carried(*id, EXEMPT));
}

fn number(text: Option<&str>) -> u64 {
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}
