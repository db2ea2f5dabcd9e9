//! From a Caddyfile to `larder.toml`: sites with their proxies, files, PHP, redirects and answers.

use std::collections::BTreeMap;

use super::caddy_matchers::{matched, matcher};
use super::predicate::{Atom, Predicate};
use super::state::State;
use super::units;
use crate::caddyfile::GLOBAL;
use crate::document::{Block, Settings, SiteBlock, quote, quote_key};
use crate::syntax::Directive;

/// Snippets, by their names.
type Snippets<'d> = BTreeMap<&'d str, &'d Directive>;

/// Makes the sites.
pub(crate) fn make(state: &mut State<'_>, all: &[Directive]) {
    let is_snippet = |own: &&Directive| own.name.starts_with('(') && own.name != GLOBAL;
    let snippets: Snippets<'_> =
        all.iter().filter(is_snippet).map(|own| (own.name.trim_matches(['(', ')']), own)).collect();
    let (mut email, mut orders) = (Settings::default(), false);
    for own in all {
        if own.name == GLOBAL {
            options(state, own, &mut email);
        } else if is_snippet(&own) {
            own.visit(&mut |own| state.ledger.not_needed(own.id, "no site imports it"));
        } else {
            orders |= site(state, own, &snippets);
        }
    }
    if orders {
        let email = email.get("email").cloned();
        let value = email.as_ref().map_or_else(
            || "{}".to_owned(),
            |own| format!("{{ email = {} }}", crate::document::written(&own.value)),
        );
        let from = email.map(|own| own.from).unwrap_or_default();
        state.table("tls").put("acme", value, &from);
    }
}

/// Options of the whole server.
fn options(state: &mut State<'_>, own: &Directive, email: &mut Settings) {
    state.ledger.not_needed(own.id, "this block is not one here");
    for own in own.children() {
        match own.name.as_str() {
            "email" => email.text("email", own.arg(0), &[own.id]),
            "admin" | "order" | "storage" | "grace_period" | "debug" => {
                own.visit(&mut |own| state.ledger.not_needed(own.id, "the daemon has its own"));
            }
            _ => left(state, own, "this option is not carried over", "see the guide: From Caddy"),
        }
    }
}

fn left(state: &mut State<'_>, own: &Directive, why: &str, instead: &str) {
    own.visit(&mut |own| state.ledger.left(own.id, why, instead));
}

/// An address of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SiteAddress {
    host: String,
    /// As `listen` has it.
    listen: Vec<String>,
    /// It has a certificate, ordered unless one is named.
    is_secure: bool,
    is_public: bool,
}

/// Reads an address; `None` for one with a path or a placeholder.
fn address(text: &str) -> Option<SiteAddress> {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (Some(scheme), rest),
        None => (None, text),
    };
    if rest.contains(['/', '{']) || rest.starts_with('[') {
        return None;
    }
    let (host, port) = match rest.split_once(':') {
        Some((host, port)) => (host, Some(port.parse::<u16>().ok()?)),
        None => (rest, None),
    };
    let is_secure = match (scheme, port) {
        (Some("http"), _) | (_, Some(80)) => false,
        (Some("https"), _) => true,
        (Some(_), _) => return None,
        (None, _) => !host.is_empty() || port == Some(443),
    };
    let is_public = is_secure && is_public(host);
    let listen = match (is_secure, port) {
        (true, None) => vec![":80".to_owned(), ":443 tls".to_owned()],
        (true, Some(port)) => vec![format!(":{port} tls")],
        (false, port) => vec![format!(":{}", port.unwrap_or(80))],
    };
    let host = if host.is_empty() { "*".to_owned() } else { host.to_ascii_lowercase() };
    Some(SiteAddress { host, listen, is_secure, is_public })
}

/// Tells whether an authority may know the host: others get certificates of Caddy's own.
fn is_public(host: &str) -> bool {
    let ends = ["localhost", "local", "internal", "lan", "test", "invalid", "example", "arpa"];
    let is_address = host.parse::<std::net::IpAddr>().is_ok();
    let last = host.rsplit('.').next().unwrap_or(host);
    host.contains('.') && !host.contains('*') && !is_address && !ends.contains(&last)
}

/// Makes a site. Returns true if its certificate is to be ordered.
fn site(state: &mut State<'_>, own: &Directive, snippets: &Snippets<'_>) -> bool {
    let words = std::iter::once(own.name.as_str()).chain(own.args.iter().map(String::as_str));
    let texts: Vec<&str> =
        words.flat_map(|word| word.split(',')).filter(|word| !word.is_empty()).collect();
    let addresses: Option<Vec<SiteAddress>> = texts.iter().map(|text| address(text)).collect();
    let Some(addresses) = addresses.filter(|all| !all.is_empty()) else {
        left(state, own, "this address has a path or a placeholder", "write the hosts");
        return false;
    };
    let directives = imported(state, own.children(), snippets, 0);
    let mut settings = Settings::default();
    let hosts = addresses.iter().map(|own| own.host.as_str());
    settings.add("host", hosts, &[own.id]);
    for one in addresses.iter().flat_map(|own| &own.listen) {
        state.document.top.add("listen", [one.as_str()], &[own.id]);
    }
    let mut is_secure = addresses.iter().any(|own| own.is_secure);
    let mut orders = addresses.iter().any(|own| own.is_public);
    let has_own = directives.iter().any(|own| own.name == "tls" && own.args.len() == 2);
    if is_secure && !orders && !has_own {
        let why = "no public authority gives a certificate for this host";
        state.ledger.left(own.id, why, "`tls = { cert = \"...\", key = \"...\" }`");
    }
    for tls in directives.iter().filter(|own| own.name == "tls") {
        match tls.args.as_slice() {
            [cert, key] => {
                settings.text("tls.cert", cert, &[tls.id]);
                settings.text("tls.key", key, &[tls.id]);
                (orders, is_secure) = (false, true);
            }
            [email] if email.contains('@') => {
                state.ledger.default(tls.id, "certificates are ordered");
            }
            _ => {
                left(state, tls, "these certificates are not had here", "`tls = { cert, key }`");
                orders = false;
            }
        }
    }
    if is_secure && addresses.iter().any(|own| own.listen.len() > 1) {
        settings.put("redirect_https", "308", &[]);
    }
    let mut maker = SiteMaker { state, matchers: BTreeMap::new(), routes: Vec::new() };
    let base = BlockScope { when: Predicate::always(), strip: None };
    let main = maker.scope(&directives, &base);
    let has_answer =
        ["origin", "respond", "redirect"].iter().any(|key| main.has(key)) || main.has_any("files");
    settings.0.extend(main.0);
    if !has_answer {
        settings.put("respond", "{ status = 404 }", &[]);
    }
    let routes = std::mem::take(&mut maker.routes);
    let site = Block { settings, from: Vec::new() };
    state.document.sites.push(SiteBlock { site, routes });
    orders
}

/// The directives with those of imported snippets in their place.
fn imported<'d>(
    state: &mut State<'_>,
    own: &'d [Directive],
    snippets: &Snippets<'d>,
    depth: u32,
) -> Vec<&'d Directive> {
    let mut all = Vec::new();
    for directive in own {
        if directive.name != "import" {
            all.push(directive);
            continue;
        }
        match snippets.get(directive.arg(0)).filter(|_| depth < 8 && directive.args.len() == 1) {
            Some(snippet) => {
                state.ledger.carried(directive.id, "");
                state.ledger.carried(snippet.id, "");
                all.extend(imported(state, snippet.children(), snippets, depth + 1));
            }
            None => {
                left(state, directive, "files and arguments are not imported", "write them here");
            }
        }
    }
    all
}

/// The requests of a block, and the prefix that their paths lose.
struct BlockScope {
    when: Predicate,
    strip: Option<String>,
}

struct SiteMaker<'m, 'd, 's> {
    state: &'m mut State<'s>,
    matchers: BTreeMap<&'d str, Predicate>,
    routes: Vec<Block>,
}

/// Caddy's order of directives that answer; a lower one goes first.
fn rank(name: &str) -> usize {
    const ORDER: [&str; 9] = [
        "redir",
        "basic_auth",
        "basicauth",
        "forward_auth",
        "handle",
        "handle_path",
        "respond",
        "reverse_proxy",
        "php_fastcgi",
    ];
    ORDER.iter().position(|own| *own == name).unwrap_or(ORDER.len())
}

impl<'d> SiteMaker<'_, 'd, '_> {
    /// Makes the routes of a block's directives with matchers. Returns the settings of the others.
    fn scope(&mut self, all: &[&'d Directive], scope: &BlockScope) -> Settings {
        for own in all.iter().filter(|own| own.name.starts_with('@')) {
            let predicate = matcher(own);
            if !predicate.is_exact {
                left(self.state, own, "no route looks at this", "see the guide: Rules");
            } else {
                own.visit(&mut |own| self.state.ledger.carried(own.id, ""));
            }
            self.matchers.insert(own.name.as_str(), predicate);
        }
        let mut rest: Vec<&'d Directive> =
            all.iter().filter(|own| !own.name.starts_with('@')).copied().collect();
        // The longer path of two goes first.
        rest.sort_by_key(|own| (rank(&own.name), usize::MAX - matched(own).map_or(0, str::len)));
        let mut settings = Settings::default();
        let is_foreign = |own: &&&'d Directive| {
            matches!(own.name.as_str(), "basic_auth" | "basicauth" | "forward_auth")
                && matched(own).is_none()
        };
        if let Some(guard) = rest.iter().find(is_foreign) {
            // It stands before all routes of the block.
            for one in &scope.when.any {
                let mut block = Block { from: vec![guard.id], ..Block::default() };
                one.write(&mut block.settings, &scope.when.from);
                block.settings.put("respond", "{ status = 403 }", &[guard.id]);
                self.routes.push(block);
            }
        }
        let root = rest.iter().find(|own| own.name == "root").copied();
        let has_php = rest.iter().any(|own| own.name == "php_fastcgi");
        for own in rest {
            let when = matched(own).map(|word| self.predicate(word));
            match when {
                Some(when) => self.route(own, &scope.when.and(&when).with(&[own.id]), root, scope),
                None => self.setting(own, root, has_php, scope, &mut settings),
            }
        }
        settings
    }

    fn predicate(&self, word: &str) -> Predicate {
        match word {
            word if word.starts_with('@') => {
                self.matchers.get(word).cloned().unwrap_or_else(Predicate::unknown)
            }
            path => Predicate::of(Atom::Path(vec![path.to_owned()])),
        }
    }

    /// The route of a directive with a matcher.
    fn route(
        &mut self,
        own: &'d Directive,
        when: &Predicate,
        root: Option<&'d Directive>,
        scope: &BlockScope,
    ) {
        let is_guard = own.name == "respond" && own.args.iter().any(|arg| arg.starts_with('4'))
            || matches!(
                own.name.as_str(),
                "basic_auth" | "basicauth" | "forward_auth" | "abort" | "error"
            );
        if !when.is_exact && !is_guard {
            return left(
                self.state,
                own,
                "the matcher needs what no route looks at",
                "see the guide: Rules",
            );
        }
        let mut settings = Settings::default();
        match own.name.as_str() {
            "handle" | "handle_path" | "route" => {
                let path = matched(own).unwrap_or_default();
                let strip = (own.name == "handle_path")
                    .then(|| path.trim_end_matches('*').trim_end_matches('/').to_owned())
                    .filter(|own| !own.is_empty());
                self.state.ledger.carried(own.id, "");
                let inner: Vec<&'d Directive> = own.children().iter().collect();
                let scope = BlockScope { when: when.clone(), strip };
                settings = self.scope(&inner, &scope);
                if settings.is_empty() {
                    settings.put("respond", "{ status = 404 }", &[]);
                }
            }
            "reverse_proxy" | "php_fastcgi" | "respond" | "redir" | "file_server"
            | "basic_auth" | "basicauth" | "forward_auth" | "abort" | "error" => {
                self.setting(own, root, false, scope, &mut settings);
                if is_guard && !when.is_exact {
                    settings = Settings::default();
                    settings.put("respond", "{ status = 403 }", &[own.id]);
                    left(
                        self.state,
                        own,
                        "the matcher needs what no route looks at",
                        "requests for which it may hold get 403",
                    );
                }
            }
            _ => {
                let instead = "put it into a `handle` with the same path";
                return left(self.state, own, "this directive has no matcher here", instead);
            }
        }
        for one in &when.any {
            let mut block = Block::default();
            one.write(&mut block.settings, &when.from);
            block.settings.0.extend(settings.0.iter().cloned());
            self.routes.push(block);
        }
    }

    /// The settings of a directive for all requests of its block.
    fn setting(
        &mut self,
        own: &'d Directive,
        root: Option<&'d Directive>,
        has_php: bool,
        scope: &BlockScope,
        to: &mut Settings,
    ) {
        let id = own.id;
        let args: Vec<&str> =
            own.args.iter().map(String::as_str).filter(|own| *own != "*").collect();
        match own.name.as_str() {
            "reverse_proxy" => self.proxy(own, scope, to),
            "php_fastcgi" => self.php(own, root, to),
            "file_server" if has_php => {
                self.state.ledger.default(id, "files beside the scripts are served");
            }
            "file_server" => {
                if args.contains(&"browse") {
                    self.state.ledger.left(id, "directories are not listed", "keep an index.html");
                }
                match root {
                    Some(root) => to.text("files.root", root_path(root), &[root.id, id]),
                    None => self.state.ledger.left(id, "there is no `root` for it", ""),
                }
                for inner in own.children() {
                    left(
                        self.state,
                        inner,
                        "this part is not carried over",
                        "`files` has `hide`, `precompressed`",
                    );
                }
            }
            "root" => self.state.ledger.carried(id, ""),
            "encode" | "http" => {
                own.visit(&mut |own| self.state.ledger.default(own.id, "texts are compressed"));
            }
            "respond" => self.answer(own, &args, to),
            "abort" | "error" => to.put("respond", "{ status = 403 }", &[id]),
            "redir" => self.redirect(own, &args, to),
            "rewrite" => match placed(args.first().copied().unwrap_or_default()) {
                Some(target) if args.len() == 1 => to.text("rewrite", &target, &[id]),
                _ => {
                    self.state.ledger.left(
                        id,
                        "the target has a placeholder that is not there",
                        "",
                    );
                }
            },
            "uri" if args.first() == Some(&"strip_prefix") && args.len() == 2 => {
                to.text("strip_prefix", args[1].trim_end_matches('/'), &[id]);
            }
            "header" => self.header(own, "response_headers", to),
            _ => self.other_setting(own, scope, to),
        }
    }

    /// The settings of a directive that answers nothing by itself.
    fn other_setting(&mut self, own: &'d Directive, scope: &BlockScope, to: &mut Settings) {
        let id = own.id;
        match own.name.as_str() {
            "log" => self.log(own),
            "tls" => {}
            "handle" | "route" => {
                self.state.ledger.carried(id, "");
                let inner: Vec<&'d Directive> = own.children().iter().collect();
                let scope = BlockScope { when: scope.when.clone(), strip: scope.strip.clone() };
                let settings = self.scope(&inner, &scope);
                to.0.extend(settings.0);
            }
            "basic_auth" | "basicauth" | "forward_auth" => {
                let instead = "`basic_auth` with a file of users, or `forward_auth`; until then Larder answers 403";
                left(self.state, own, "users of a Caddyfile are in no file", instead);
                if matched(own).is_some() {
                    to.put("respond", "{ status = 403 }", &[id]);
                }
            }
            "request_body" => {
                self.state.ledger.carried(id, "");
                for inner in own.children() {
                    let bytes = units::size_bytes(
                        inner.arg(0).trim_end_matches(['B', 'b']).trim_end_matches('i'),
                    );
                    match bytes.filter(|_| inner.name == "max_size") {
                        Some(bytes) => {
                            self.state.table("limits").put(
                                "request_body_bytes",
                                units::size(bytes),
                                &[inner.id],
                            );
                        }
                        None => self.state.ledger.left(inner.id, "this is not a size", ""),
                    }
                }
            }
            _ => left(
                self.state,
                own,
                "this directive is not carried over",
                "see the guide: From Caddy",
            ),
        }
    }

    fn proxy(&mut self, own: &'d Directive, scope: &BlockScope, to: &mut Settings) {
        let mut settings = Settings::default();
        let mut servers: Vec<&str> = own
            .args
            .iter()
            .map(String::as_str)
            .filter(|own| !own.starts_with(['/', '@', '*']))
            .collect();
        let mut transport = None;
        for inner in own.children() {
            match inner.name.as_str() {
                "to" => {
                    servers.extend(inner.args.iter().map(String::as_str));
                    self.state.ledger.carried(inner.id, "");
                }
                "lb_policy" => match inner.arg(0) {
                    "least_conn" => settings.text("balance", "least-requests", &[inner.id]),
                    "uri_hash" => settings.text("balance", "hash", &[inner.id]),
                    "random" | "round_robin" => {
                        self.state.ledger.default(inner.id, "requests are spread evenly");
                    }
                    _ => left(self.state, inner, "this way of balancing is not there", "`balance`"),
                },
                "health_uri" => settings.text("probe", inner.arg(0), &[inner.id]),
                "header_up" => self.header(inner, "request_headers", to),
                "header_down" => self.header(inner, "response_headers", to),
                "transport" if inner.arg(0) == "http" => transport = Some(inner),
                "flush_interval" => self.state.ledger.default(inner.id, "bodies stream both ways"),
                _ => left(
                    self.state,
                    inner,
                    "this part is not carried over",
                    "see the guide: Origins",
                ),
            }
        }
        self.version(transport, &servers, &mut settings);
        let urls: Option<Vec<String>> = servers.iter().map(|text| upstream(text)).collect();
        let Some(urls) = urls.filter(|urls| !urls.is_empty()) else {
            let instead = "write the address; until then Larder answers 501";
            self.state.ledger.left(own.id, "an upstream's address has a placeholder", instead);
            return to.put("respond", "{ status = 501 }", &[own.id]);
        };
        let texts: Vec<&str> = urls.iter().map(String::as_str).collect();
        settings.add("servers", texts, &[own.id]);
        let name = add(self.state, "app", settings);
        to.text("origin", &name, &[own.id]);
        if let Some(strip) = &scope.strip {
            to.text("strip_prefix", strip, &[own.id]);
        }
    }

    /// The version of HTTP for the servers, of `transport http` or of their scheme. Without TLS,
    /// `h2c` alone means HTTP/2.
    fn version(
        &mut self,
        transport: Option<&Directive>,
        servers: &[&str],
        settings: &mut Settings,
    ) {
        let has_scheme = |scheme: &str| servers.iter().any(|server| server.starts_with(scheme));
        if has_scheme("h2c://") {
            settings.text("http_version", "2", &[]);
        }
        let Some(transport) = transport else { return };
        self.state.ledger.carried(transport.id, "");
        for own in transport.children() {
            let has = |version: &str| own.args.iter().any(|arg| arg == version);
            if own.name != "versions" || has("3") {
                left(self.state, own, "this part is not carried over", "see the guide: Origins");
                continue;
            }
            let is_secure = has_scheme("https://");
            let version = match is_secure {
                true => has("2").then_some("auto"),
                false => has("h2c").then_some("2"),
            };
            match version {
                Some(version) if !settings.has("http_version") => {
                    settings.text("http_version", version, &[own.id]);
                }
                Some(_) => self.state.ledger.carried(own.id, ""),
                None => self.state.ledger.default(own.id, "servers get HTTP/1.1"),
            }
        }
    }

    fn php(&mut self, own: &'d Directive, root: Option<&'d Directive>, to: &mut Settings) {
        let server = own.args.iter().find(|own| !own.starts_with(['/', '@', '*']));
        let url = server.map(|own| match own.strip_prefix("unix/") {
            Some(path) => format!("fastcgi+unix:{path}"),
            None => format!("fastcgi://{own}"),
        });
        let Some((url, root)) = url.zip(root) else {
            self.state.ledger.left(own.id, "there is no `root` or address for it", "");
            return to.put("respond", "{ status = 501 }", &[own.id]);
        };
        let mut settings = Settings::default();
        settings.text("servers", &url, &[own.id]);
        settings.text("root", root_path(root), &[root.id]);
        for inner in own.children() {
            left(self.state, inner, "this part is not carried over", "see the guide: PHP-FPM");
        }
        let name = add(self.state, "php", settings);
        to.text("origin", &name, &[own.id]);
    }

    fn answer(&mut self, own: &Directive, args: &[&str], to: &mut Settings) {
        let args: Vec<&str> = args.iter().copied().filter(|own| !own.starts_with(['@'])).collect();
        let args: Vec<&str> = args
            .into_iter()
            .enumerate()
            .filter(|(at, own)| *at > 0 || !own.starts_with('/'))
            .map(|(_, own)| own)
            .collect();
        let is_status = |text: &str| text.len() == 3 && text.bytes().all(|b| b.is_ascii_digit());
        let (body, status) = match args.as_slice() {
            [status] if is_status(status) => ("", *status),
            [body] => (*body, "200"),
            [body, status] => (*body, *status),
            _ => ("", "200"),
        };
        if body.contains('{') || !own.children().is_empty() {
            return left(self.state, own, "a fixed response has no placeholder and no block", "");
        }
        let text =
            if body.is_empty() { String::new() } else { format!(", body = {}", quote(body)) };
        to.put("respond", format!("{{ status = {status}{text} }}"), &[own.id]);
    }

    fn redirect(&mut self, own: &Directive, args: &[&str], to: &mut Settings) {
        let args: Vec<&str> = args.iter().copied().filter(|own| !own.starts_with('@')).collect();
        let is_path = |at: usize, own: &str| {
            at == 0
                && own.starts_with('/')
                && args.len() > 1
                && !args[1].bytes().all(|b| b.is_ascii_digit())
                && args[1] != "permanent"
        };
        let rest: Vec<&str> = args
            .iter()
            .enumerate()
            .filter(|(at, own)| !is_path(*at, own))
            .map(|(_, own)| *own)
            .collect();
        let status = match rest.get(1).copied() {
            None | Some("temporary") => "302",
            Some("permanent") => "301",
            Some(code) => code,
        };
        match placed(rest.first().copied().unwrap_or_default()) {
            Some(target) => {
                let value = format!("{{ to = {}, status = {status} }}", quote(&target));
                to.put("redirect", value, &[own.id]);
            }
            None => left(
                self.state,
                own,
                "the target has a placeholder that is not there",
                "`redirect.to` knows $host, $path and $query",
            ),
        }
    }

    fn header(&mut self, own: &Directive, table: &str, to: &mut Settings) {
        let mut lines: Vec<(usize, Vec<&str>)> = Vec::new();
        let words: Vec<&str> =
            own.args.iter().map(String::as_str).filter(|own| *own != "*").collect();
        if !words.is_empty() {
            lines.push((own.id, words));
        }
        for inner in own.children() {
            let words =
                std::iter::once(inner.name.as_str()).chain(inner.args.iter().map(String::as_str));
            lines.push((inner.id, words.collect()));
        }
        self.state.ledger.carried(own.id, "");
        for (id, words) in lines {
            match words.as_slice() {
                ["defer"] => {
                    self.state.ledger.default(id, "fields are set when a response is sent");
                }
                [name] if name.starts_with('-') && !name.contains('*') => {
                    to.add(&format!("{table}.unset"), [&name[1..]], &[id]);
                }
                ["Host" | "host", _] if table == "request_headers" => {
                    self.state.ledger.default(id, "the application gets the client's Host");
                }
                [name, value] if !value.contains('{') && !name.starts_with(['-', '?', '>']) => {
                    let name = name.trim_start_matches('+');
                    to.put(&format!("{table}.set.{}", quote_key(name)), quote(value), &[id]);
                }
                [name, _]
                    if table == "request_headers"
                        && name.to_ascii_lowercase().starts_with("x-") =>
                {
                    self.state.ledger.default(
                        id,
                        "X-Forwarded-For, -Proto, -Host, -Port and X-Real-IP are always sent",
                    );
                }
                _ => self.state.ledger.left(
                    id,
                    "a field has no placeholder, and is not replaced in part",
                    "",
                ),
            }
        }
    }

    fn log(&mut self, own: &Directive) {
        let file = own.children().iter().find(|own| own.name == "output" && own.arg(0) == "file");
        let Some(file) = file else {
            return own.visit(&mut |own| {
                self.state.ledger.not_needed(own.id, "`larder log` shows requests");
            });
        };
        let table = self.state.table("access_log");
        if !table.has("path") {
            table.text("path", file.arg(1), &[file.id]);
            table.text("format", "json", &[]);
        }
        own.visit(&mut |own| {
            self.state.ledger.carried(own.id, "there is one access log for all sites");
        });
    }
}

fn root_path(root: &Directive) -> &str {
    root.args.last().map_or("", String::as_str)
}

/// A target with Larder's variables; `None` for a placeholder that is not there.
fn placed(text: &str) -> Option<String> {
    let known = [
        ("{uri}", "$path$query"),
        ("{http.request.uri}", "$path$query"),
        ("{path}", "$path"),
        ("{host}", "$host"),
        ("{hostport}", "$host"),
        ("?{query}", "$query"),
        ("{query}", "$args"),
        ("{scheme}://{host}", ""),
    ];
    let mut text = text.replace('$', "$$");
    for (from, to) in known {
        text = text.replace(from, to);
    }
    (!text.is_empty() && !text.contains('{')).then_some(text)
}

/// An upstream's address as Larder writes it; `None` for one with a placeholder.
fn upstream(text: &str) -> Option<String> {
    if text.contains('{') {
        return None;
    }
    Some(match text.split_once("://") {
        Some(("h2c", rest)) => format!("http://{rest}"),
        Some(_) => text.to_owned(),
        None => match text.strip_prefix("unix/") {
            Some(path) => format!("unix:{path}"),
            None if text.contains(':') => {
                let local = if text.starts_with(':') { "127.0.0.1" } else { "" };
                format!("http://{local}{text}")
            }
            None => format!("http://{text}:80"),
        },
    })
}

/// Adds an origin. Returns its name.
fn add(state: &mut State<'_>, base: &str, mut own: Settings) -> String {
    let origins = &state.document.origins;
    let is_same = |block: &&Block| {
        let known = block.settings.0.iter().skip(1);
        known.len() == own.0.len()
            && known.zip(&own.0).all(|(a, b)| a.key == b.key && a.value == b.value)
    };
    if let Some(known) = origins.iter().find(is_same).and_then(|block| block.settings.get("name")) {
        return crate::document::written(&known.value).trim_matches('"').to_owned();
    }
    let name = match origins.len() {
        0 => base.to_owned(),
        others => format!("{base}-{}", others + 1),
    };
    let mut settings = Settings::default();
    settings.text("name", &name, &[]);
    settings.0.append(&mut own.0);
    state.document.origins.push(Block { settings, from: Vec::new() });
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_say_what_is_listened_on() {
        for (text, host, listen, is_secure) in [
            ("a.test", "a.test", &[":80", ":443 tls"][..], true),
            ("http://a.test", "a.test", &[":80"], false),
            (":8080", "*", &[":8080"], false),
            ("a.test:8443", "a.test", &[":8443 tls"], true),
        ] {
            let own = address(text).expect(text);
            assert_eq!((own.host.as_str(), own.is_secure), (host, is_secure), "{text}");
            assert_eq!(own.listen, listen, "{text}");
        }
        assert_eq!(address("a.test/x"), None);
        assert_eq!(address("{$HOST}"), None);
    }

    #[test]
    fn placeholders_are_variables() {
        for (text, expected) in [
            ("https://www.{host}{uri}", Some("https://www.$host$path$query")),
            ("/new?{query}", Some("/new$query")),
            ("/price$1", Some("/price$$1")),
            ("/{re.x.1}", None),
        ] {
            assert_eq!(placed(text).as_deref(), expected, "{text}");
        }
    }
}
