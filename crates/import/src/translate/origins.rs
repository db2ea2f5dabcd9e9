//! Origins: `upstream`, `proxy_pass`, `grpc_pass` and `fastcgi_pass`, with what is said about the
//! way there.

use super::chain::Chain;
use super::headers;
use super::state::{Handler, Scope, State, option};
use super::units;
use crate::document::{Block, Settings, quote};
use crate::syntax::Directive;

/// The argument of `proxy_pass` or `grpc_pass`, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// `http` or `https`.
    pub(crate) scheme: String,
    /// An upstream's name, `host:port`, or `unix:/path`.
    pub(crate) server: String,
    /// The path behind it, which takes the place of the location's.
    pub(crate) path: Option<String>,
}

impl Target {
    /// Reads it; `None` for one with a variable, or for another protocol.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        if !matches!(scheme, "http" | "https") || text.contains('$') {
            return None;
        }
        let (server, path) = match rest.strip_prefix("unix:") {
            Some(socket) => match socket.split_once(':') {
                Some((socket, path)) => (format!("unix:{socket}"), Some(path.to_owned())),
                None => (format!("unix:{socket}"), None),
            },
            None => match rest.find('/') {
                Some(at) => (rest[..at].to_owned(), Some(rest[at..].to_owned())),
                None => (rest.to_owned(), None),
            },
        };
        let path = path.filter(|path| !path.is_empty());
        Some(Self { scheme: scheme.to_owned(), server, path })
    }

    /// Reads that of `grpc_pass`, which needs no scheme; `None` for one with a variable or a path.
    pub(crate) fn of_calls(text: &str) -> Option<Self> {
        let (scheme, server) = match text.split_once("://") {
            Some(("grpcs", server)) => ("https", server),
            Some(("grpc", server)) => ("http", server),
            Some(_) => return None,
            None => ("http", text),
        };
        Self::parse(&format!("{scheme}://{server}")).filter(|own| own.path.is_none())
    }
}

/// Files that answer in front of an application: their root, and the `try_files` that says so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrontFiles<'d> {
    root: &'d Directive,
    tries: &'d Directive,
}

impl<'d> FrontFiles<'d> {
    /// Those of a location whose `try_files` ends with the named location of an application.
    pub(crate) fn of(chain: &Chain<'d>, tries: &'d Directive) -> Option<Self> {
        let root = chain.one("root").filter(|root| !root.arg(0).contains('$'))?;
        let is_it = tries.arg(0) == "$uri" && chain.one("alias").is_none();
        is_it.then_some(Self { root, tries })
    }
}

/// Returns the name of an origin of HTTP servers for `handler`, with the files in front of it. One
/// that is the same is used again.
pub(crate) fn http(
    state: &mut State<'_>,
    chain: &Chain<'_>,
    handler: Handler,
    target: &Target,
    front: Option<FrontFiles<'_>>,
) -> String {
    let mut settings = Settings::default();
    if let Some(FrontFiles { root, tries }) = front {
        settings.text("root", root.arg(0), &[root.id, tries.id]);
        let others = tries.args.len() > 2;
        let remark =
            if others { "only `$uri` is looked for in front of an application" } else { "" };
        state.ledger.carried(tries.id, remark);
    }
    let scheme = target.scheme.clone();
    let url = |server: &str| match server.strip_prefix("unix:") {
        Some(_) => server.to_owned(),
        None => format!("{scheme}://{server}"),
    };
    let from = servers(state, &target.server, &url, &mut settings);
    let family = handler.family();
    version(chain, handler, &mut settings);
    times(state, chain, family, &mut settings);
    tls(state, chain, family, &mut settings);
    for field in chain.all(&[&format!("{family}_set_header")]) {
        let value = field.arg(1);
        let is_client_s =
            matches!(value, "$host" | "$http_host" | "$host:$server_port" | "$server_name");
        if !field.arg(0).eq_ignore_ascii_case("host") || is_client_s {
            continue;
        }
        if value == "$proxy_host" {
            settings.text("host", &target.server, &[field.id]);
        } else if value.contains('$') {
            state.ledger.left(field.id, "the Host of an origin has no variable", "");
        } else {
            settings.text("host", value, &[field.id]);
        }
    }
    add(state, &target.server, "app", Block { settings, from })
}

/// The version of HTTP that the servers get, if it is not 1.1.
fn version(chain: &Chain<'_>, handler: Handler, settings: &mut Settings) {
    let asked = chain.one("proxy_http_version").filter(|own| own.arg(0) == "2");
    match (handler, asked) {
        (Handler::Grpc, _) => settings.text("http_version", "2", &[]),
        (_, Some(own)) => settings.text("http_version", "2", &[own.id]),
        (_, None) => {}
    }
}

/// Parts of an origin of FastCGI servers.
pub(crate) struct Scripts<'p> {
    pub(crate) pass: &'p Directive,
    /// Words of `try_files`, and the directive.
    pub(crate) tries: Option<(Vec<String>, usize)>,
}

/// The name of an origin of FastCGI servers; `None` without a root.
pub(crate) fn fastcgi(scope: &mut Scope<'_, '_>, scripts: &Scripts<'_>) -> Option<String> {
    let chain = scope.chain.clone();
    let mut settings = Settings::default();
    let server = scripts.pass.arg(0);
    let url = |server: &str| match server.strip_prefix("unix:") {
        Some(socket) => format!("fastcgi+unix:{socket}"),
        None => format!("fastcgi://{server}"),
    };
    let from = servers(scope.state, server, &url, &mut settings);
    scope.state.ledger.carried(scripts.pass.id, "");
    let root = chain.one("root")?;
    settings.text("root", root.arg(0), &[root.id]);
    if let Some((words, id)) = &scripts.tries {
        if words == &["$uri", "$uri/", "/index.php"] {
            scope.state.ledger.default(*id, "`try_files` of a FastCGI origin is the same");
        } else {
            settings.add("try_files", words.iter().map(String::as_str), &[*id]);
        }
    }
    if let Some(index) = chain.one("index") {
        // The path at the end, which answers for all, is a word of `try_files` here.
        let names: Vec<&str> =
            index.args.iter().map(String::as_str).filter(|name| !name.contains('/')).collect();
        if names == ["index.php", "index.html"] {
            scope.state.ledger.default(index.id, "the same names are the default");
        } else {
            settings.add("index", names, &[index.id]);
        }
    }
    files(scope, "files.", &mut settings);
    let is_added = |own: &&Directive| !USUAL.contains(&own.arg(0)) && is_fixed(own);
    for own in chain.all(&["fastcgi_param"]).into_iter().filter(is_added) {
        settings.text(&format!("params.{}", own.arg(0)), own.arg(1), &[own.id]);
        scope.carried(own, "");
    }
    times(scope.state, &chain, "fastcgi", &mut settings);
    Some(add(scope.state, server, "php", Block { settings, from }))
}

/// Says how files are sent, with `prefix` before each key.
pub(crate) fn files(scope: &mut Scope<'_, '_>, prefix: &str, settings: &mut Settings) {
    let chain = scope.chain.clone();
    let kept = std::mem::replace(&mut scope.handler, Handler::Files);
    if let Some(lifetime) = headers::lifetime(scope) {
        let (key, from) = (format!("{prefix}cache_control"), lifetime.from);
        settings.text(&key, &lifetime.value, &from);
    }
    let expires = chain.one("expires").filter(|own| own.arg(0).starts_with('$'));
    if let Some(table) = expires.and_then(|own| headers::by_type(scope, own)) {
        settings.put(&format!("{prefix}cache_control"), table.value, &table.from);
        let remark = "for files; what an application sends keeps its own lifetime";
        table.from.iter().for_each(|id| scope.state.ledger.carried(*id, remark));
    }
    scope.handler = kept;
    if let Some(charset) = chain.one("charset") {
        if charset.arg(0) == "off" {
            scope.default(charset, "no charset is added");
        } else {
            settings.text(&format!("{prefix}charset"), charset.arg(0), &[charset.id]);
            scope.carried(charset, "all texts get it, style sheets too");
        }
    }
    for (name, coding) in [("brotli_static", "br"), ("gzip_static", "gzip")] {
        let Some(own) = chain.one(name) else { continue };
        if own.arg(0) == "off" {
            scope.default(own, "no file beside is looked for");
        } else {
            settings.add(&format!("{prefix}precompressed"), [coding], &[own.id]);
        }
    }
    if let Some(kind) = chain.one("default_type") {
        if kind.arg(0) == "application/octet-stream" {
            scope.default(kind, "the type of unknown endings is the same");
        } else {
            settings.text(&format!("{prefix}types.\"*\""), kind.arg(0), &[kind.id]);
        }
    }
    for types in chain.every("types") {
        scope.carried(types, "");
        let is_stock = types.file.ends_with("mime.types");
        for entry in types.children() {
            if is_stock {
                scope.default(entry, "content types of usual endings are built in");
                continue;
            }
            for ending in &entry.args {
                let key = format!("{prefix}types.{}", crate::document::quote_key(ending));
                settings.text(&key, &entry.name, &[entry.id]);
            }
        }
    }
}

/// The servers, and how requests are spread over them. Returns the directives of the table.
fn servers(
    state: &mut State<'_>,
    name: &str,
    url: &dyn Fn(&str) -> String,
    settings: &mut Settings,
) -> Vec<usize> {
    let Some(upstream) = state.world.upstreams.get(name).copied() else {
        settings.text("servers", &url(name), &[]);
        return Vec::new();
    };
    let has_first = upstream
        .children()
        .iter()
        .any(|own| own.name == "server" && !has_word(own, "backup") && !has_word(own, "down"));
    for own in upstream.children() {
        match own.name.as_str() {
            "server" => {
                let stands_in = has_first && has_word(own, "backup");
                server(state, own, stands_in, url, settings);
            }
            "least_conn" => settings.text("balance", "least-requests", &[own.id]),
            "sticky" if own.arg(0) == "cookie" => sticky(own, settings),
            "hash" if matches!(own.arg(0), "$request_uri" | "$uri" | "$host$request_uri") => {
                settings.text("balance", "hash", &[own.id]);
            }
            "ip_hash" | "hash" | "sticky" => {
                let instead =
                    "`sticky` keeps clients by a cookie; `balance = \"hash\"` goes by the URL";
                state.ledger.left(own.id, "requests of a client go to any server", instead);
            }
            "random" => state.ledger.default(own.id, "requests are spread evenly"),
            "keepalive" if number(own.arg(0)) > 0 => {
                state.ledger.default(own.id, "connections are kept (`idle`)");
            }
            "keepalive_timeout" => {
                if let Some(time) = units::time(own.arg(0)) {
                    settings.put("idle_timeout", time, &[own.id]);
                }
            }
            "keepalive_requests" => {
                state.ledger.not_needed(own.id, "an origin ends its connections itself");
            }
            _ => {}
        }
    }
    if !settings.has("servers") {
        settings.text("servers", &url(name), &[]);
    }
    vec![upstream.id]
}

/// `sticky cookie NAME`, with its attributes.
fn sticky(own: &Directive, settings: &mut Settings) {
    let from = &[own.id];
    settings.text("sticky.name", own.arg(1), from);
    for (name, key) in [("domain", "domain"), ("path", "path"), ("samesite", "same_site")] {
        if let Some(value) = option(own, name) {
            settings.text(&format!("sticky.{key}"), &value.to_ascii_lowercase(), from);
        }
    }
    if let Some(time) = option(own, "expires").and_then(units::time) {
        settings.put("sticky.max_age", time, from);
    }
    if has_word(own, "secure") {
        settings.put("sticky.secure", "true", from);
    }
}

fn has_word(own: &Directive, word: &str) -> bool {
    own.args.iter().any(|arg| arg == word)
}

/// A server, which is a backup if it `stands_in`.
fn server(
    state: &mut State<'_>,
    own: &Directive,
    stands_in: bool,
    url: &dyn Fn(&str) -> String,
    settings: &mut Settings,
) {
    if has_word(own, "down") {
        return state.ledger.not_needed(own.id, "this server is marked as down");
    }
    let url = quote(&url(own.arg(0)));
    let weight = option(own, "weight").filter(|weight| *weight != "1");
    let weight = weight.map(|weight| format!("weight = {weight}"));
    let backup = stands_in.then(|| "backup = true".to_owned());
    let more: Vec<_> = weight.into_iter().chain(backup).collect();
    let value = match more.is_empty() {
        false => format!("{{ url = {url}, {} }}", more.join(", ")),
        true => url,
    };
    settings.add_written("servers", [value], &[own.id]);
    if let Some(fails) = option(own, "max_fails") {
        settings.put("eject.failures", fails, &[own.id]);
    }
    match option(own, "fail_timeout").and_then(units::time_ms) {
        // No failure is remembered.
        Some(0) => settings.put("eject.failures", "0", &[own.id]),
        Some(time) => settings.put("eject.time", units::duration(time), &[own.id]),
        None => {}
    }
    if let Some(most) = option(own, "max_conns") {
        settings.put("connections", most, &[own.id]);
    }
    if let Some(time) = option(own, "slow_start").and_then(units::time) {
        settings.put("slow_start", time, &[own.id]);
    }
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or(0)
}

/// Times, and what is tried again.
fn times(state: &mut State<'_>, chain: &Chain<'_>, family: &str, settings: &mut Settings) {
    // A call of gRPC may be silent for as long as its server is waited for.
    let silence = if family == "grpc" { "read_timeout" } else { "send_timeout" };
    for (name, key) in [("connect_timeout", "connect_timeout"), (silence, "between_bytes_timeout")]
    {
        let Some(own) = chain.one(&format!("{family}_{name}")) else { continue };
        match units::time(own.arg(0)) {
            Some(time) => settings.put(key, time, &[own.id]),
            None => state.ledger.left(own.id, "this is not a time", ""),
        }
    }
    if let Some(own) = chain.one(&format!("{family}_next_upstream")) {
        again(state, own, settings);
    }
    if let Some(own) = chain.one(&format!("{family}_next_upstream_tries")) {
        match number(own.arg(0)) {
            0 => state.ledger.default(own.id, "`retries` are as many as `[limits]` says"),
            tries => settings.put("retries", (tries - 1).min(10).to_string(), &[own.id]),
        }
    }
    if let Some(own) = chain.one(&format!("{family}_next_upstream_timeout")) {
        state.ledger.not_needed(own.id, "`retries` and `retry_budget` bound what is tried again");
    }
}

fn again(state: &mut State<'_>, own: &Directive, settings: &mut Settings) {
    if own.arg(0) == "off" {
        return settings.put("retries", "0", &[own.id]);
    }
    let mut words = Vec::new();
    for arg in &own.args {
        match arg.as_str() {
            "error" => words.extend(["connect", "drop"]),
            "timeout" => words.push("timeout"),
            "non_idempotent" => {
                let why = "only requests that change nothing are sent again";
                return state.ledger.left(own.id, why, "leave `non_idempotent` out");
            }
            other => words.extend(other.strip_prefix("http_")),
        }
    }
    settings.add("retry_on", words, &[own.id]);
}

/// TLS to the servers.
fn tls(state: &mut State<'_>, chain: &Chain<'_>, family: &str, settings: &mut Settings) {
    let one = |name: &str| chain.one(&format!("{family}_ssl_{name}"));
    let paths = [
        ("trusted_certificate", "tls.ca"),
        ("certificate", "tls.cert"),
        ("certificate_key", "tls.key"),
        ("name", "tls.sni"),
    ];
    for (name, key) in paths {
        let Some(own) = one(name) else { continue };
        if own.arg(0).contains('$') {
            state.ledger.default(own.id, "the server's own name is sent");
        } else {
            settings.text(key, own.arg(0), &[own.id]);
        }
    }
    if let Some(own) = one("verify") {
        match own.arg(0) {
            "off" => settings.put("tls.verify", "false", &[own.id]),
            _ => state.ledger.default(own.id, "certificates of servers are verified"),
        }
    }
    if let Some(own) = one("server_name") {
        state.ledger.default(own.id, "the server's name is sent (SNI)");
    }
    if let Some(own) = one("verify_depth") {
        state.ledger.not_needed(own.id, "chains of any usual length are verified");
    }
}

/// Adds an origin, unless there is one that is the same but for its name. Returns the name.
fn add(state: &mut State<'_>, wanted: &str, otherwise: &str, mut block: Block) -> String {
    let rest = |block: &Block| {
        block.settings.0.iter().filter(|own| own.key != "name").cloned().collect::<Vec<_>>()
    };
    let same = state.document.origins.iter().find(|own| {
        let (one, other) = (rest(own), rest(&block));
        one.len() == other.len()
            && one.iter().zip(&other).all(|(a, b)| a.key == b.key && a.value == b.value)
    });
    if let Some(name) = same.and_then(name) {
        return name;
    }
    let is_name = !wanted.is_empty()
        && wanted.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    let base = if is_name { wanted } else { otherwise };
    let taken =
        |text: &str| state.document.origins.iter().any(|own| name(own).as_deref() == Some(text));
    let numbered = (2..).map(|n| format!("{base}-{n}"));
    let mut names = std::iter::once(base.to_owned()).chain(numbered);
    let own = names.find(|text| !taken(text)).unwrap_or_default();
    let mut settings = Settings::default();
    settings.text("name", &own, &[]);
    settings.0.append(&mut block.settings.0);
    block.settings = settings;
    state.document.origins.push(block);
    own
}

fn name(block: &Block) -> Option<String> {
    let setting = block.settings.get("name")?;
    Some(crate::document::written(&setting.value).trim_matches('"').to_owned())
}

/// Returns true if a parameter beside the usual ones has a fixed value.
fn is_fixed(directive: &Directive) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name = directive.arg(0);
    !directive.arg(1).contains(['$', '\0'])
        && !name.is_empty()
        && name.chars().all(is_of_name)
        && !name.starts_with("HTTP_")
        && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// Tells whether a usual parameter has the value that scripts get.
fn is_stock(chain: &Chain<'_>, directive: &Directive) -> bool {
    let value = directive.arg(1);
    let is_tls = || {
        let listens = chain.all(&["listen"]);
        !listens.is_empty() && listens.iter().all(|own| has_word(own, "ssl"))
    };
    match (directive.arg(0), value) {
        (_, "") | ("GATEWAY_INTERFACE", "CGI/1.1") | ("REDIRECT_STATUS", "200") => true,
        ("HTTPS", "on") | ("REQUEST_SCHEME", "https") => is_tls(),
        ("DOCUMENT_ROOT", value) if !value.contains('$') => {
            chain.one("root").is_some_and(|root| is_same_folder(root.arg(0), value))
        }
        // The destination has it.
        ("SCRIPT_FILENAME", _) => true,
        (_, value) => value.contains('$'),
    }
}

fn is_same_folder(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

/// The `SCRIPT_FILENAME` in force.
pub(crate) fn script_name<'d>(chain: &Chain<'d>) -> Option<&'d Directive> {
    chain.all(&["fastcgi_param"]).into_iter().rfind(|own| own.arg(0) == "SCRIPT_FILENAME")
}

/// The one script below the root that `SCRIPT_FILENAME` names; `None` for any other value.
pub(crate) fn one_script(chain: &Chain<'_>, name: &Directive) -> Option<String> {
    let value = name.arg(1);
    let script = match value.rsplit_once("$document_root") {
        Some((_, script)) => script,
        None => value.strip_prefix(chain.one("root")?.arg(0).trim_end_matches('/'))?,
    };
    (script.starts_with('/') && !script.contains('$')).then(|| script.to_owned())
}

/// The `SCRIPT_FILENAME` in force, if it names scripts that are not below the root.
pub(crate) fn scripts_elsewhere<'d>(chain: &Chain<'d>) -> Option<&'d Directive> {
    let name = script_name(chain)?;
    let root = chain.one("root")?.arg(0);
    let (folder, is_whole) = match name.arg(1).split_once('$') {
        Some((folder, _)) => (folder, false),
        None => (name.arg(1), true),
    };
    let is_below = match is_whole {
        true => one_script(chain, name).is_some(),
        false => folder.is_empty() || is_same_folder(folder, root),
    };
    (!is_below).then_some(name)
}

/// Parameters of scripts.
pub(crate) fn parameters(scope: &mut Scope<'_, '_>) {
    if scope.handler != Handler::FastCgi {
        return;
    }
    for directive in scope.chain.all(&["fastcgi_param"]) {
        let is_usual = USUAL.contains(&directive.arg(0));
        let is_unset = directive.arg(0).starts_with("HTTP_") && directive.arg(1).is_empty();
        if is_unset || is_usual && is_stock(&scope.chain, directive) {
            scope.default(directive, "scripts get the usual parameters");
        } else if is_usual {
            let why = "scripts get the value of the request, and no fixed one";
            scope.left(
                directive,
                why,
                "`params` of the [[origin]] has fixed values of other names",
            );
        } else if !is_fixed(directive) {
            let instead = "`params` of the [[origin]] has fixed values";
            scope.left(directive, "a parameter of your own has no variable", instead);
        }
    }
}

/// Parameters that scripts get anyway.
const USUAL: &[&str] = &[
    "QUERY_STRING",
    "REQUEST_METHOD",
    "CONTENT_TYPE",
    "CONTENT_LENGTH",
    "SCRIPT_FILENAME",
    "SCRIPT_NAME",
    "PATH_INFO",
    "PATH_TRANSLATED",
    "REQUEST_URI",
    "DOCUMENT_URI",
    "DOCUMENT_ROOT",
    "SERVER_PROTOCOL",
    "REQUEST_SCHEME",
    "HTTPS",
    "GATEWAY_INTERFACE",
    "SERVER_SOFTWARE",
    "REMOTE_ADDR",
    "REMOTE_PORT",
    "REMOTE_USER",
    "REMOTE_HOST",
    "AUTH_TYPE",
    "SERVER_ADDR",
    "SERVER_PORT",
    "SERVER_NAME",
    "REDIRECT_STATUS",
    "HTTP_HOST",
    "HTTP_PROXY",
];
