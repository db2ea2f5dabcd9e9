//! From servers to sites, and from locations to routes.

use super::answers::{self, ContentType};
use super::cache;
use super::chain::Chain;
use super::globals;
use super::guards;
use super::headers;
use super::locations::{Location, Modifier, locations};
use super::origins::{self, FrontFiles};
use super::pages;
use super::rules::RulePlace;
use super::servers::{self, HttpsRedirect, HttpsRedirects, ServerBlock};
use super::state::{Handler, Scope, State};
use crate::document::{Block, Settings, SiteBlock, first_part, quote};
use crate::syntax::{Directive, say_same};

/// Parts of the settings of a scope. A further kind of setting is one more arm.
const ARMS: &[fn(&mut Scope<'_, '_>)] = &[
    globals::logged,
    guards::addresses,
    guards::passwords,
    guards::foreign,
    guards::refused,
    guards::rates,
    guards::connections,
    cache::cache,
    cache::times,
    cache::request_fields,
    cache::hidden_fields,
    headers::response_fields,
    origins::parameters,
    pages::includes,
    pages::compression,
];

/// Tables that a route can switch off.
pub(crate) const SWITCHES: [&str; 5] =
    ["basic_auth", "forward_auth", "rate", "concurrent", "bypass"];

/// Keys that mean nothing to files and fixed answers.
const OF_APPLICATIONS: [&str; 6] =
    ["cache", "bypass", "cookies", "query", "request_headers", "first_byte_timeout"];

/// Makes the sites of all servers.
pub(crate) fn sites<'d>(state: &mut State<'d>, http: &'d [Directive]) {
    let all: Vec<ServerBlock<'d>> = http
        .iter()
        .filter(|own| own.name == "server" && own.block.is_some())
        .map(|own| ServerBlock::new(state, own))
        .collect();
    let mut redirects = HttpsRedirects::default();
    let (mut content, mut kept) = (Vec::new(), Vec::new());
    for server in &all {
        match servers::https_redirect(server) {
            Some(redirect) => {
                redirects.add(server, &redirect);
                kept.push(server);
            }
            None => content.push(server),
        }
    }
    let explicit = content.iter().position(|server| server.listeners.is_default);
    let is_taken = all.iter().any(|server| server.listeners.is_default) && explicit.is_none();
    let otherwise = explicit.or_else(|| (!is_taken && !content.is_empty()).then_some(0));
    let mut taken: Vec<(String, &ServerBlock<'d>)> = Vec::new();
    for (at, server) in content.iter().enumerate() {
        let mut hosts = server.hosts.clone();
        if Some(at) == otherwise || hosts.is_empty() && content.len() == 1 {
            hosts.push("*".to_owned());
        }
        if closes_unasked(state, server, &hosts) {
            continue;
        }
        let double = hosts.iter().find_map(|host| taken.iter().find(|(own, _)| own == host));
        if let Some((host, first)) = double {
            doubled(state, server, host, first);
        }
        hosts.retain(|host| taken.iter().all(|(own, _)| own != host));
        if hosts.is_empty() {
            let why = "no host is left for this server: others have them";
            settle_all(state, server.directive, &|state, id| state.ledger.left(id, why, ""));
            continue;
        }
        taken.extend(hosts.iter().map(|host| (host.clone(), *server)));
        let redirect = if server.listeners.tls { redirects.take(&hosts) } else { None };
        let mut made = of_server(state, http, server, &hosts, redirect);
        if server.listeners.is_local && all.iter().any(|server| !server.listeners.is_local) {
            made.iter_mut().for_each(|site| local(state, server, site));
        }
        state.document.sites.extend(made);
    }
    let is_all_taken = taken.iter().any(|(host, _)| host == "*");
    let mut rest = redirects.sites();
    for site in &mut rest {
        if let Some(setting) = site.site.settings.0.iter().find(|own| own.key == "host")
            && crate::document::written(&setting.value) == "\"*\""
            && is_all_taken
        {
            let from = setting.from.clone();
            from.iter().for_each(|id| state.ledger.carried(*id, ""));
            site.site.settings.0.clear();
        }
    }
    rest.retain(|site| !site.site.settings.is_empty());
    state.document.sites.extend(rest);
    for server in kept {
        redirecting(state, server);
    }
}

/// The sites of a server: its own, and those of hosts that have another answer.
fn of_server<'d>(
    state: &mut State<'d>,
    http: &'d [Directive],
    server: &ServerBlock<'d>,
    hosts: &[String],
    redirect: Option<HttpsRedirect>,
) -> Vec<SiteBlock> {
    let mut maker = Maker::new(state, http, server, hosts);
    maker.is_secure = redirect.is_some();
    let mut site = maker.site();
    let split = std::mem::take(&mut maker.split);
    if let Some(redirect) = redirect {
        if site.site.settings.has("redirect") {
            redirect.from.iter().for_each(|id| state.ledger.carried(*id, ""));
        } else {
            site.site.settings.put("redirect_https", redirect.status, &redirect.from);
        }
    }
    std::iter::once(site).chain(split).collect()
}

/// Keeps a site to this machine whose server listens nowhere else: every listener has all sites.
fn local(state: &mut State<'_>, server: &ServerBlock<'_>, site: &mut SiteBlock) {
    let from: Vec<usize> =
        server.own().iter().filter(|own| own.name == "listen").map(|own| own.id).collect();
    if !site.site.settings.has("allow") {
        site.site.settings.add("allow", ["127.0.0.0/8", "::1"], &from);
    }
    let remark = "every listener has all sites: this one is for clients of the machine alone";
    from.iter().for_each(|id| state.ledger.carried(*id, remark));
}

/// Settles the rest of a server that only redirects.
fn redirecting(state: &mut State<'_>, server: &ServerBlock<'_>) {
    let why = "a site redirects to HTTPS before anything else, but for ACME's challenges";
    settle_all(state, server.directive, &|state, id| {
        if state.ledger.is_open(id) {
            state.ledger.not_needed(id, why);
        }
    });
}

fn settle_all(
    state: &mut State<'_>,
    directive: &Directive,
    settle: &dyn Fn(&mut State<'_>, usize),
) {
    directive.visit(&mut |own| settle(state, own.id));
}

/// A server for all other hosts that closes connections: no site is needed for it.
fn closes_unasked(state: &mut State<'_>, server: &ServerBlock<'_>, hosts: &[String]) -> bool {
    let is_444 = |own: &Directive| own.name == "return" && own.args == ["444"];
    let is_it = hosts == ["*"] && server.own().iter().any(is_444);
    if is_it {
        let why = "requests for hosts of no site are refused";
        settle_all(state, server.directive, &|state, id| {
            if state.ledger.is_open(id) {
                state.ledger.default(id, why);
            }
        });
    }
    is_it
}

/// Two servers for one host, one of them for plain HTTP.
fn doubled(state: &mut State<'_>, server: &ServerBlock<'_>, host: &str, first: &ServerBlock<'_>) {
    let is_way = |own: &&Directive| own.name != "listen" && !own.name.starts_with("ssl");
    let content =
        |server: &ServerBlock<'_>| server.own().iter().filter(is_way).cloned().collect::<Vec<_>>();
    if say_same(&content(server), &content(first)) {
        settle_all(state, server.directive, &|state, id| state.ledger.carried(id, ""));
        return;
    }
    let place = first.directive.location();
    let why = format!("`{host}` has its site by {place}: a host is one site on all listeners");
    settle_all(state, server.directive, &|state, id| state.ledger.left(id, &why, ""));
}

/// A maker of one site.
pub(crate) struct Maker<'m, 'd> {
    pub(crate) state: &'m mut State<'d>,
    http: &'d [Directive],
    pub(crate) server: &'m ServerBlock<'d>,
    pub(crate) hosts: &'m [String],
    /// Another server redirects its plain requests to TLS.
    pub(crate) is_secure: bool,
    /// Its location for scripts answers for paths without a location.
    pub(crate) is_of_php: bool,
    /// The status of a redirect to HTTPS among its rules, and what it comes from.
    pub(crate) redirect_https: Option<(String, Vec<usize>)>,
    /// Sites of hosts that have another answer, and these hosts.
    pub(crate) split: Vec<SiteBlock>,
    pub(crate) split_hosts: Vec<String>,
    /// Its clients must have a certificate, by this rule.
    pub(crate) client_auth: Option<Vec<usize>>,
    /// Files in front of the application that is looked for.
    pub(crate) front_files: Option<FrontFiles<'d>>,
}

/// Where the requests of a block go.
#[derive(Clone, Debug)]
pub(crate) struct Destination<'d> {
    pub(crate) handler: Handler,
    pub(crate) chain: Chain<'d>,
    pub(crate) settings: Settings,
    /// Its files are looked for in front of a script.
    is_front: bool,
}

impl<'d> Destination<'d> {
    pub(crate) fn new(handler: Handler, chain: &Chain<'d>, settings: Settings) -> Self {
        Self { handler, chain: chain.clone(), settings, is_front: false }
    }
}

impl<'m, 'd> Maker<'m, 'd> {
    fn new(
        state: &'m mut State<'d>,
        http: &'d [Directive],
        server: &'m ServerBlock<'d>,
        hosts: &'m [String],
    ) -> Self {
        let (split, split_hosts) = (Vec::new(), Vec::new());
        let (is_secure, is_of_php, redirect_https) = (false, false, None);
        Self {
            state,
            http,
            server,
            hosts,
            is_secure,
            is_of_php,
            redirect_https,
            split,
            split_hosts,
            client_auth: None,
            front_files: None,
        }
    }
}

impl<'d> Maker<'_, 'd> {
    fn site(&mut self) -> SiteBlock {
        let mut site = SiteBlock::default();
        site.site.from = vec![self.server.directive.id];
        let settings = &mut site.site.settings;
        settings.add("host", self.hosts.iter().map(String::as_str), &self.server.named_by);
        servers::certificates(self.state, self.server, settings);
        let chain = Chain::new(vec![self.http, self.server.own()]);
        let all = locations(self.server.own(), &chain);
        if let Some(answer) = chain.own_one("return") {
            self.answering(&chain, &all, answer, &mut site);
        } else {
            let root = all.iter().find(|own| is_root(own));
            let scripts = all.iter().find(|own| self.is_of_scripts(own));
            let main = self.main(&chain, root, scripts, &all);
            self.preset(&main, settings);
            let routes = self.routes_of(&chain, &all, &main);
            self.join(&chain, main, routes, &mut site);
        }
        if let Some((status, from)) = self.redirect_https.take() {
            site.site.settings.put("redirect_https", status, &from);
        }
        if let Some(from) = self.client_auth.take() {
            site.site.settings.text("tls.client_auth", "require", &from);
        }
        if !self.split_hosts.is_empty() {
            let rest = self.hosts.iter().filter(|host| !self.split_hosts.contains(host));
            let own = Settings::list(rest.map(String::as_str));
            if let Some(hosts) = site.site.settings.get_mut("host") {
                hosts.value = own;
            }
        }
        site
    }

    /// The route of the location for scripts, if a later one would take its paths.
    fn scripts_route(
        &mut self,
        scripts: &Location<'d>,
        all: &[Location<'d>],
        main: &Destination<'d>,
    ) -> Option<Made> {
        let later = all.iter().skip_while(|own| own.directive.id != scripts.directive.id).skip(1);
        let takes = |own: &Location<'_>| {
            let is_regex = matches!(own.modifier, Modifier::Regex { .. });
            let regex = linear::Regex::new(own.path, linear::Options::default());
            let paths = ["/index.php", "/index.php/x", "/x.php"];
            is_regex
                && regex.map_or(true, |own| paths.iter().any(|path| own.is_match(path.as_bytes())))
        };
        if !matches!(scripts.modifier, Modifier::Regex { .. }) || !later.into_iter().any(takes) {
            return None;
        }
        let mut block = Block { from: vec![scripts.directive.id], ..Block::default() };
        block.settings.text("path", &scripts.pattern(), &[]);
        block.settings.0.extend(main.settings.0.iter().cloned());
        let said = self.said(&main.chain, main.handler, false);
        let names = SWITCHES.into_iter().filter(|switch| said.has_any(switch)).collect();
        block.settings.0.extend(said.0);
        Some(Made { block, is_application: true, said: names })
    }

    /// Makes a site that answers by itself.
    fn answering(
        &mut self,
        chain: &Chain<'d>,
        all: &[Location<'d>],
        answer: &Directive,
        site: &mut SiteBlock,
    ) {
        let scheme = if self.server.listeners.tls { "https" } else { "http" };
        let kind = ContentType::new("", chain.one("default_type"));
        let mut own = Settings::default();
        let ledger = &mut self.state.ledger;
        if answers::returned(ledger, answer, kind, scheme, &mut own).is_none() {
            own.put("respond", "{ status = 501 }", &[]);
        }
        let main = Destination::new(Handler::Answer, chain, Settings::default());
        let rules = self.rules(RulePlace { chain, all, location: None, main: &main });
        own.0.extend(self.said(chain, Handler::Answer, true).0);
        site.routes =
            rules.into_iter().map(|made| self.fitted(made, &own, &site.site.settings)).collect();
        site.site.settings.0.extend(own.0);
    }

    /// The routes of rules and locations, in their order. Those of what the site itself is come
    /// last.
    fn routes_of(
        &mut self,
        chain: &Chain<'d>,
        all: &[Location<'d>],
        main: &Destination<'d>,
    ) -> Vec<Made> {
        let mut routes = self.rules(RulePlace { chain, all, location: None, main });
        let mut last = Vec::new();
        for own in all.iter().filter(|own| own.modifier != Modifier::Named) {
            let place = RulePlace { chain: &own.chain, all, location: Some(own), main };
            let mut rules = self.rules(place);
            rules.extend(self.target_rules(place));
            if self.is_main(own, all) {
                last.extend(rules);
                routes.extend(self.scripts_route(own, all, main));
            } else {
                routes.extend(rules);
                routes.extend(self.route(own, all, main));
            }
        }
        if !all.iter().any(is_root) {
            last.extend(self.target_rules(RulePlace { chain, all, location: None, main }));
        }
        routes.extend(last);
        routes.extend(self.uncached(main));
        routes
    }

    /// Puts the site and its routes together. What holds for `/` alone is the site's where that
    /// makes no difference for the routes, and otherwise a last route's.
    fn join(
        &mut self,
        chain: &Chain<'d>,
        main: Destination<'d>,
        routes: Vec<Made>,
        site: &mut SiteBlock,
    ) {
        let outer = self.said(chain, main.handler, true);
        let mut whole = self.said(&main.chain, main.handler, true);
        let is_other = |own: &&crate::document::Setting| {
            outer.get(&own.key).is_none_or(|outer| outer.value != own.value)
        };
        let has_preset = site.site.settings.has("preset");
        let is_hard = |key: &str| {
            let first = first_part(key);
            let is_application_s = OF_APPLICATIONS.contains(&first);
            let concerns = routes.iter().any(|route| route.is_application || !is_application_s);
            concerns && !SWITCHES.contains(&first)
        };
        let splits = !has_preset
            && !site.site.settings.has("respond")
            && whole.0.iter().filter(is_other).any(|own| is_hard(&own.key));
        let settings = &mut site.site.settings;
        let is_refused = if splits { outer.has("respond") } else { whole.has("respond") };
        let own = main.settings.0.into_iter().filter(|own| !is_refused || own.key != "respond");
        settings.0.extend(own);
        let mut last = None;
        if splits {
            let mut block = Block::default();
            block.settings.text("path", "/*", &[]);
            if main.handler.is_application() {
                cache::replace_ignored(&mut self.state.ledger, &mut whole, &outer);
            }
            let own = whole.0.iter().filter(|own| own.key != "hsts");
            // The site itself stores, so that its other routes may.
            block.settings.0.extend(own.filter(|own| is_other(own) || own.key == "cache").cloned());
            last = Some(block);
            let site_only = ["hsts", "includes", "compress", "error_pages", "purge"];
            let moved = whole.0.iter().filter(|own| site_only.contains(&first_part(&own.key)));
            let mut base = outer;
            base.remove("cache");
            for own in moved {
                if !base.has(&own.key) {
                    base.0.push(own.clone());
                }
                last.iter_mut().for_each(|block| _ = block.settings.remove(&own.key));
            }
            whole = base;
        }
        settings.0.extend(whole.0.iter().cloned());
        for made in routes {
            let block = self.fitted(made, &whole, settings);
            site.routes.push(block);
        }
        site.routes.extend(last);
    }

    /// A route without what its site says anyway, and with what switches off what holds there.
    fn fitted(&mut self, made: Made, whole: &Settings, site: &Settings) -> Block {
        let mut block = made.block;
        let is_same = |own: &crate::document::Setting| {
            whole.get(&own.key).is_some_and(|outer| outer.value == own.value)
        };
        if made.is_application {
            cache::replace_ignored(&mut self.state.ledger, &mut block.settings, whole);
        }
        let known = ["path", "origin", "files", "respond", "redirect"];
        block.settings.0.retain(|own| known.contains(&first_part(&own.key)) || !is_same(own));
        let hsts = whole.get("hsts").map(|own| own.from.as_slice()).unwrap_or_default();
        block.settings.0.retain(|own| hsts.is_empty() || own.from != hsts);
        for switch in SWITCHES {
            let is_of_application = switch == "bypass" && !made.is_application;
            if whole.has_any(switch) && !made.said.contains(&switch) && !is_of_application {
                block.settings.put(switch, "false", &[]);
            }
        }
        if block.settings.0.len() > 2
            && let Some(own) = block.settings.get("origin")
            && site.get("origin").is_some_and(|outer| outer.value == own.value)
        {
            let own = block.settings.remove("origin");
            let from = own.into_iter().flat_map(|own| own.from);
            from.for_each(|id| self.state.ledger.carried(id, ""));
        }
        block
    }

    /// Settings of a scope, apart from where its requests go.
    pub(crate) fn said(&mut self, chain: &Chain<'d>, handler: Handler, is_site: bool) -> Settings {
        let out = Settings::default();
        let mut scope = Scope { state: self.state, chain: chain.clone(), handler, is_site, out };
        ARMS.iter().for_each(|arm| arm(&mut scope));
        guards::asked(&mut scope, self.server.own());
        pages::errors(&mut scope, self.server.own());
        scope.out
    }

    pub(crate) fn is_of_scripts(&self, location: &Location<'_>) -> bool {
        matches!(location.modifier, Modifier::Regex { .. })
            && location.path.contains("php")
            && location.own().iter().any(|own| own.name == "fastcgi_pass")
    }

    /// Where requests go for which no other location is.
    fn main(
        &mut self,
        chain: &Chain<'d>,
        root: Option<&Location<'d>>,
        scripts: Option<&Location<'d>>,
        all: &[Location<'d>],
    ) -> Destination<'d> {
        let own = root.map_or_else(|| chain.clone(), |root| root.chain.clone());
        let passes =
            own.own().iter().any(|own| own.name.ends_with("_pass") || own.name == "return");
        let named = self.named(&own, all);
        let front = named.and_then(named_front);
        let Some(php) = scripts.filter(|_| !passes && (named.is_none() || front.is_some())) else {
            let mut found = self.destination(&own, all, "/");
            if let Some(root) = root {
                self.state.ledger.carried(root.directive.id, "");
            }
            if found.settings.is_empty() {
                found.settings.put("respond", "{ status = 404 }", &[]);
            }
            return found;
        };
        self.is_of_php = true;
        if let Some((named, front)) = named.zip(front) {
            self.state.ledger.carried(named.directive.id, "");
            self.state.ledger.carried(front.id, "");
            self.front_query(front.id, front.arg(1));
        }
        root.into_iter().for_each(|root| self.state.ledger.carried(root.directive.id, ""));
        self.state.ledger.carried(php.directive.id, "");
        self.script_tries(php);
        let mut inner = self.joined(&own, &php.chain);
        if let Some((named, _)) = named.zip(front) {
            self.refuse_rules(&mut inner, named);
        }
        let tries = own.one("try_files").map(|tries| (tries.args.clone(), tries.id));
        let tries = tries.map(|(mut words, id)| {
            if let (Some(last), true) = (words.last_mut(), front.is_some()) {
                "/index.php".clone_into(last);
            }
            (words, id)
        });
        let rules = chain.own().iter().chain(own.own());
        let tries = tries.or_else(|| rules.into_iter().find_map(|own| self.rewritten_front(own)));
        self.scripts(&inner, php.own(), tries)
    }

    /// `try_files` of the location for scripts.
    fn script_tries(&mut self, php: &Location<'d>) {
        for tries in php.own().iter().filter(|own| own.name == "try_files") {
            self.state.ledger.default(tries.id, "a script that is not there is answered with 404");
        }
    }

    /// `if (!-e $request_filename) { rewrite ... /index.php }`, as `try_files`.
    fn rewritten_front(&mut self, own: &Directive) -> Option<(Vec<String>, usize)> {
        let asked = (own.name == "if").then(|| super::conditions::question(own)).flatten()?;
        let is_missing = matches!(asked.operator, "!-e" | "!-f" | "!-d");
        let rewrite = own.children().iter().find(|own| own.name == "rewrite")?;
        if !is_missing || !answers::is_front_controller(rewrite.arg(1)) {
            return None;
        }
        own.visit(&mut |own| self.state.ledger.carried(own.id, ""));
        self.front_query(rewrite.id, rewrite.arg(1));
        let words = ["$uri", "$uri/", "/index.php"].map(str::to_owned);
        Some((words.to_vec(), own.id))
    }

    /// The named location to which `try_files` leads in the end.
    pub(crate) fn named<'l>(
        &self,
        chain: &Chain<'d>,
        all: &'l [Location<'d>],
    ) -> Option<&'l Location<'d>> {
        let name = chain.own_one("try_files")?.args.last().filter(|name| name.starts_with('@'))?;
        all.iter().find(|own| own.path == name)
    }

    /// The route of a location; `None` if it needs none.
    fn route(
        &mut self,
        location: &Location<'d>,
        all: &[Location<'d>],
        main: &Destination<'d>,
    ) -> Option<Made> {
        let mut block = Block { from: vec![location.directive.id], ..Block::default() };
        let is_alias = location.own().iter().any(|own| own.name == "alias");
        let mut pattern = location.pattern();
        if is_alias && pattern.ends_with('*') && !pattern.ends_with("/*") {
            pattern = format!("{}/*", location.path);
        }
        block.settings.text("path", &pattern, &[]);
        if location.is_wider() {
            let why = "the expression looks around; more paths are kept out";
            let instead = "`not = { path = ... }` in `when` leaves paths out";
            self.state.ledger.left(location.directive.id, why, instead);
        }
        if location.own().iter().any(|own| own.name == "internal") {
            return self.internal(location, block);
        }
        let found = match self.script_front(location, all) {
            Some(found) => found,
            // The page of the root directory is a script.
            None if pattern == "/" && self.is_of_php && !has_content(location) => main.clone(),
            None => self.destination(&location.chain, all, &pattern),
        };
        let is_front = found.is_front;
        let mut said = self.said(&found.chain, found.handler, false);
        if is_front {
            // Of the files alone: what scripts send is a matter of their own location.
            said.remove("response_headers.set.Cache-Control");
        }
        let is_application = found.handler.is_application();
        // A `return` is before addresses and passwords.
        let returns = location.own().iter().any(|own| own.name == "return");
        if said.has("respond") && !returns {
            block.settings.0.extend(said.get("respond").cloned());
            let unused = found.settings.0.into_iter().flat_map(|own| own.from);
            unused.for_each(|id| self.state.ledger.default(id, "no request gets there"));
        } else {
            if found.settings.has("path") {
                block.settings.remove("path");
            }
            block.settings.0.extend(found.settings.0);
        }
        let names = SWITCHES.into_iter().filter(|switch| said.has_any(switch)).collect();
        block.settings.0.extend(said.0.into_iter().filter(|own| own.key != "respond"));
        if block.settings.0.len() == 1 {
            block.settings.put("respond", "{ status = 404 }", &[]);
        }
        Some(Made { block, is_application, said: names })
    }

    /// The location of the script with which `try_files` of a location ends.
    pub(crate) fn front_script<'l>(
        &self,
        location: &Location<'d>,
        all: &'l [Location<'d>],
    ) -> Option<&'l Location<'d>> {
        let tries = location.own().iter().find(|own| own.name == "try_files")?;
        let passes = location.own().iter().any(|own| own.name.ends_with("_pass"));
        let is_script = tries
            .args
            .last()
            .is_some_and(|last| last.split(['?', '$']).next().unwrap_or(last).ends_with(".php"));
        let php = all.iter().find(|own| self.is_of_scripts(own))?;
        let front = self.named(&location.chain, all).and_then(named_front);
        (!passes && (is_script || front.is_some())).then_some(php)
    }

    /// A location whose `try_files` ends with a script of the site's PHP.
    fn script_front(
        &mut self,
        location: &Location<'d>,
        all: &[Location<'d>],
    ) -> Option<Destination<'d>> {
        let php = self.front_script(location, all)?;
        let tries = location.own().iter().find(|own| own.name == "try_files")?;
        let named = self.named(&location.chain, all);
        let mut chain = self.joined(&location.chain, &php.chain);
        self.refuse_rules(&mut chain, php);
        let mut words = tries.args.clone();
        if let (Some(last), Some(named)) = (words.last_mut(), named) {
            self.refuse_rules(&mut chain, named);
            "/index.php".clone_into(last);
        }
        let found = self.scripts(&chain, php.own(), Some((words, tries.id)));
        Some(Destination { is_front: true, ..found })
    }

    /// Paths that only an application's X-Accel-Redirect reaches.
    fn internal(&mut self, location: &Location<'d>, mut block: Block) -> Option<Made> {
        let own = location.own();
        let mark = own.iter().find(|own| own.name == "internal").map(|own| own.id);
        let folder = own.iter().find(|own| matches!(own.name.as_str(), "alias" | "root"));
        let passes = own.iter().any(|own| own.name.ends_with("_pass"));
        block.settings.put("respond", "{ status = 404 }", &mark.into_iter().collect::<Vec<_>>());
        let is_prefix = matches!(location.modifier, Modifier::Prefix | Modifier::Final);
        if let Some(folder) = folder.filter(|_| is_prefix && !passes) {
            let path = match folder.name.as_str() {
                "alias" => folder.arg(0).to_owned(),
                _ => format!("{}{}", folder.arg(0).trim_end_matches('/'), location.path),
            };
            let slash = |text: &str| format!("{}/", text.trim_end_matches('/'));
            let key = format!("accel.{}", quote(&slash(location.path)));
            for origin in &mut self.state.document.origins {
                origin.settings.text(&key, path.trim_end_matches('/'), &[folder.id]);
            }
        }
        let mut is_asked = false;
        self.server.directive.visit(&mut |own| {
            is_asked |= own.name == "auth_request" && own.arg(0) == location.path;
        });
        if passes && !is_asked {
            for own in own {
                if self.state.ledger.is_open(own.id) {
                    let why = "X-Accel-Redirect leads to files, not to another application";
                    self.state.ledger.left(own.id, why, "");
                }
            }
        }
        Some(Made { block, is_application: false, said: Vec::new() })
    }

    /// The preset for a site that is recognised by what it names.
    fn preset(&self, main: &Destination<'d>, to: &mut Settings) {
        if main.handler != Handler::FastCgi {
            return;
        }
        let mut text = String::new();
        self.server.directive.visit(&mut |own| {
            text.push_str(&own.line());
            text.push('\n');
        });
        let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
        let name = if has(&["wp-", "wordpress", "xmlrpc"]) {
            "wordpress"
        } else if has(&["/sites/", "drupal"]) {
            "drupal"
        } else {
            return;
        };
        to.text("preset", name, &[]);
    }
}

/// A route and what is known of it.
pub(crate) struct Made {
    pub(crate) block: Block,
    pub(crate) is_application: bool,
    /// Tables of [`SWITCHES`] that it has itself.
    pub(crate) said: Vec<&'static str>,
}

/// The `rewrite` of a named location that leads to the script that answers for all paths, if that
/// is all that the location does.
pub(crate) fn named_front<'d>(named: &Location<'d>) -> Option<&'d Directive> {
    let passes = named.own().iter().any(|own| own.name.ends_with("_pass"));
    let mut rewrites = named.own().iter().filter(|own| own.name == "rewrite");
    rewrites.find(|own| !passes && answers::is_front_controller(own.arg(1)))
}

/// Tells whether a location has all paths that no other one has.
pub(crate) fn is_root(location: &Location<'_>) -> bool {
    location.path == "/" && matches!(location.modifier, Modifier::Prefix | Modifier::Final)
}

/// Tells whether a location says itself where its requests go.
fn has_content(location: &Location<'_>) -> bool {
    location.own().iter().any(|own| {
        own.name.ends_with("_pass")
            || matches!(own.name.as_str(), "return" | "root" | "alias" | "try_files")
    })
}
