//! Rules of servers and locations that look at a request: `if`, `rewrite` and `limit_except`, as
//! routes before those of locations.
//!
//! A rule that keeps clients out becomes a route even where its condition cannot be said exactly:
//! then it keeps out more of them. Every other rule is left in that case.

use super::answers::{self, ContentType, Rewritten};
use super::cache;
use super::chain::Chain;
use super::conditions::{Question, question};
use super::locations::Location;
use super::pages;
use super::predicate::{Atom, Conjunction, Predicate};
use super::questions::{ServerFacts, Test, any_parameter, host_answers};
use super::rewrites::RewrittenPlace;
use super::servers;
use super::sites::{Destination, Made, Maker, SWITCHES, is_root};
use super::state::Handler;
use super::variables::{Case, Evaluator, TextPiece, pieces};
use crate::document::{Block, Settings, SiteBlock, first_part, quote};
use crate::syntax::Directive;

const INEXACT_GUARD: &str =
    "the condition needs what no route looks at; requests for which it may hold get 403";
const INEXACT: &str = "the condition needs what no route looks at";
const LOOKED_AT: &str =
    "`when` of a route looks at fields, cookies, parameters, addresses and User-Agent";
const FILE_TEST: &str = "no route looks for a file";

/// The place of a rule.
#[derive(Clone, Copy)]
pub(crate) struct RulePlace<'p, 'd> {
    pub(crate) chain: &'p Chain<'d>,
    pub(crate) all: &'p [Location<'d>],
    /// The location; `None` for a server.
    pub(crate) location: Option<&'p Location<'d>>,
    /// Where the requests go for which no location is.
    pub(crate) main: &'p Destination<'d>,
}

const LOOKED_AT_AGAIN: &str = "a rule behind it keeps clients out by their new path";

/// Tells whether a directive ends an `if`.
pub(crate) fn is_act(own: &Directive) -> bool {
    matches!(own.name.as_str(), "return" | "rewrite")
}

/// Tells whether the rules behind a `rewrite` are looked at for the new path.
fn goes_on(own: &Directive) -> bool {
    let is_url = own.arg(1).contains("://") || own.arg(1).starts_with("$scheme");
    own.name == "rewrite" && own.arg(2).is_empty() && !is_url
}

/// Statuses with which a rule keeps clients out.
pub(crate) fn is_guard(status: &str) -> bool {
    // Others tell a client how to ask, not that it may not.
    let is_of_form = matches!(status, "406" | "411" | "413" | "414" | "415" | "417" | "426");
    status.len() == 3 && status.starts_with('4') && !is_of_form
}

impl<'d> Maker<'_, 'd> {
    fn facts(&self) -> ServerFacts<'_> {
        ServerFacts {
            hosts: self.hosts,
            has_tls: self.server.listeners.tls,
            has_plain: self.server.listeners.plain,
            is_secure: self.is_secure,
        }
    }

    fn scheme(&self) -> &'static str {
        if self.server.listeners.tls { "https" } else { "http" }
    }

    fn evaluator(&self, chain: &Chain<'d>, before: usize) -> Evaluator<'_, 'd> {
        Evaluator::new(&self.state.world, chain, self.facts()).before(before)
    }

    /// The routes of the rules of a block.
    pub(crate) fn rules(&mut self, place: RulePlace<'_, 'd>) -> Vec<Made> {
        let mut made = Vec::new();
        // Those that answer go before those that only change something, of which the last counts.
        let (mut rewritten, mut special) = (Vec::new(), Vec::new());
        for own in place.chain.own() {
            match own.name.as_str() {
                "if" => {
                    let routes = self.conditional(own, place);
                    let has_act = own.children().iter().find(|own| is_act(own));
                    match has_act {
                        Some(act) if !goes_on(act) => made.extend(routes),
                        Some(_) if self.is_looked_at_again(own, place) => {
                            made.extend(self.left(own, LOOKED_AT_AGAIN));
                        }
                        Some(_) => rewritten.extend(routes),
                        None => special.push(routes),
                    }
                }
                "rewrite" if goes_on(own) && self.is_looked_at_again(own, place) => {
                    made.extend(self.left(own, LOOKED_AT_AGAIN));
                }
                "rewrite" => {
                    let when = self.within(Predicate::always(), place);
                    let routes = self.rewrite(own, own, &when, place);
                    if goes_on(own) {
                        rewritten.extend(routes);
                    } else {
                        made.extend(routes);
                    }
                }
                "limit_except" => made.extend(self.methods(own, place)),
                _ => {}
            }
        }
        made.extend(rewritten);
        made.extend(special.into_iter().rev().flatten());
        made
    }

    /// Tells whether a rule behind `own` keeps clients out by the path, which may be a new one
    /// there.
    fn is_looked_at_again(&self, own: &Directive, place: RulePlace<'_, 'd>) -> bool {
        let later =
            place.chain.own().iter().filter(|other| other.id > own.id && other.name == "if");
        later.into_iter().any(|other| {
            let is_guard =
                other.children().iter().any(|own| own.name == "return" && is_guard(own.arg(0)));
            let asked =
                question(other).map(|asked| self.evaluator(place.chain, other.id).question(&asked));
            is_guard && asked.is_none_or(|when| when.looks_at_paths())
        })
    }

    /// Says so where the script that answers for all paths gets another query than the client's.
    pub(crate) fn front_query(&mut self, id: usize, word: &str) {
        let query = word.split_once('?').map_or("", |(_, query)| query);
        let is_client_s = matches!(query, "" | "$args" | "$query_string" | "$is_args$args");
        if !is_client_s {
            let why = "scripts get the client's query, and the path in REQUEST_URI alone";
            let instead = "read the path from REQUEST_URI, or rewrite the paths that there are";
            self.state.ledger.left(id, why, instead);
        } else if word.contains("$request_uri") {
            let remark = "scripts find the path in REQUEST_URI, and no PATH_INFO";
            self.state.ledger.carried(id, remark);
        }
    }

    /// The predicate for requests of the place alone.
    pub(crate) fn within(&self, when: Predicate, place: RulePlace<'_, 'd>) -> Predicate {
        // Scripts answer for paths without a file, too.
        let location = place.location.filter(|own| !self.is_main(own, place.all));
        match location.map(Location::pattern) {
            None => when,
            Some(path) if path == "/*" => when,
            Some(path) => Predicate::of(Atom::Path(vec![path])).and(&when),
        }
    }

    /// The routes of an `if`.
    pub(crate) fn conditional(
        &mut self,
        own: &'d Directive,
        place: RulePlace<'_, 'd>,
    ) -> Vec<Made> {
        let inner = own.children();
        let asked = question(own);
        let act = inner.iter().find(|own| is_act(own));
        if inner.iter().all(|own| matches!(own.name.as_str(), "set" | "break")) {
            return Vec::new();
        }
        if let Some((asked, act)) = asked.as_ref().zip(act)
            && (self.is_answered(asked, act, own)
                || self.redirects_to_https(asked, act, own)
                || self.requires_certificate(asked, act, own, place)
                || self.by_host(asked, act, own, place))
        {
            return Vec::new();
        }
        let when = match &asked {
            Some(asked) => self.evaluator(place.chain, own.id).question(asked),
            None => Predicate::unknown(),
        };
        let when = self.within(when.with(&[own.id]), place);
        if when.any.is_empty() {
            let why = "no request of this site is of this kind";
            own.visit(&mut |own| self.state.ledger.not_needed(own.id, why));
            return Vec::new();
        }
        match act {
            Some(act) if act.name == "return" => {
                let cases = asked.as_ref().and_then(|asked| self.cases_of(asked, act, own, place));
                let is_known = |cases: &Vec<Case>| cases.iter().all(|case| case.value.is_some());
                match cases.filter(|cases| is_known(cases) || !is_guard(act.arg(0))) {
                    Some(cases) => self.redirects_of(own, act, cases, place),
                    None => self.answer(own, act, &when, place),
                }
            }
            Some(act) => {
                let cases = asked.as_ref().and_then(|asked| self.cases_of(asked, act, own, place));
                match cases.filter(|_| act.arg(0).starts_with('^') && act.arg(0).len() < 4) {
                    Some(cases) => self.redirects_of(own, act, cases, place),
                    None => self.rewrite(own, act, &when, place),
                }
            }
            None => self.special(own, &when, place),
        }
    }

    /// Settles an `if` about files that Larder answers by itself. Returns false for any other.
    fn is_answered(&mut self, asked: &Question<'_>, act: &Directive, own: &Directive) -> bool {
        let is_missing = matches!(asked.operator, "!-e" | "!-f" | "!-d");
        let is_front = act.name == "rewrite" && answers::is_front_controller(act.arg(1));
        let is_404 = act.name == "return" && act.args == ["404"];
        let of_request = matches!(
            asked.variable,
            "$request_filename" | "$document_root$uri" | "$document_root$fastcgi_script_name"
        );
        let is_it = is_missing && of_request && (is_front || is_404);
        if is_it {
            let why = "paths without a file go to the application's script, or get 404";
            own.visit(&mut |own| self.state.ledger.default(own.id, why));
        }
        is_it
    }

    /// Takes an `if` that redirects plain HTTP to HTTPS. Returns false for any other.
    fn redirects_to_https(
        &mut self,
        asked: &Question<'_>,
        act: &Directive,
        own: &Directive,
    ) -> bool {
        let is_plain = match (asked.variable, asked.operator) {
            ("$scheme", "=") | ("$http_x_forwarded_proto", "=") => asked.value == "http",
            ("$scheme", "!=") | ("$http_x_forwarded_proto", "!=") => asked.value == "https",
            ("$https", "=") => asked.value.is_empty(),
            ("$https", "!=") => asked.value == "on",
            ("$server_port", "=") => asked.value == "80",
            ("$server_port", "!=") => asked.value == "443",
            _ => false,
        };
        let Some(found) = servers::to_https(act).filter(|_| is_plain) else { return false };
        let is_behind = asked.variable == "$http_x_forwarded_proto";
        if is_behind && !self.state.document.top.has("trusted_proxies") {
            let instead = "`trusted_proxies` with the balancer's addresses, and `redirect_https`";
            let why = "only trusted proxies say over what a client came";
            own.visit(&mut |own| self.state.ledger.left(own.id, why, instead));
            return true;
        }
        let has_both = self.server.listeners.tls && self.server.listeners.plain;
        if !has_both && !is_behind {
            return false;
        }
        let mut from = found.from;
        from.push(own.id);
        self.redirect_https = Some((found.status, from));
        true
    }

    /// Takes an `if` about the host: the hosts that it is for get a site of their own. Returns
    /// false where that cannot be said.
    fn by_host(
        &mut self,
        asked: &Question<'_>,
        act: &Directive,
        own: &'d Directive,
        place: RulePlace<'_, 'd>,
    ) -> bool {
        let is_host = matches!(asked.variable, "$host" | "$http_host");
        let test = Test { operator: asked.operator, value: asked.value, ignores_case: false };
        let answers = host_answers(test, self.hosts);
        let is_mixed = answers.contains(&Some(true)) && answers.contains(&Some(false));
        if !is_host || !is_mixed || answers.contains(&None) || place.location.is_some() {
            return false;
        }
        let mut sites = Vec::new();
        for (host, _) in self.hosts.iter().zip(&answers).filter(|(_, own)| **own == Some(true)) {
            let mut settings = Settings::default();
            settings.add("host", [host.as_str()], &[own.id]);
            let act = with_host(asked, act, own, host);
            let is_made = match act.name.as_str() {
                "return" => {
                    let kind = ContentType::new("", place.chain.one("default_type"));
                    let scheme = self.scheme();
                    let ledger = &mut self.state.ledger;
                    answers::returned(ledger, &act, kind, scheme, &mut settings).is_some()
                }
                _ => match answers::rewritten(&act, self.scheme()) {
                    Rewritten::Redirect { to, status, .. }
                        if answers::rewritten_paths(&act).is_none() =>
                    {
                        let value = format!("{{ to = {}, status = {status} }}", quote(&to));
                        settings.put("redirect", value, &[act.id]);
                        true
                    }
                    _ => false,
                },
            };
            if !is_made {
                return false;
            }
            sites.push((host.clone(), settings));
        }
        for (host, mut settings) in sites {
            servers::certificates(self.state, self.server, &mut settings);
            let site = Block { settings, from: vec![own.id] };
            self.split.push(SiteBlock { site, routes: Vec::new() });
            self.split_hosts.push(host);
        }
        own.children().iter().for_each(|own| self.state.ledger.carried(own.id, ""));
        true
    }

    /// The values of a redirect's target, if the question is whether there is one.
    fn cases_of(
        &self,
        asked: &Question<'_>,
        act: &Directive,
        own: &Directive,
        place: RulePlace<'_, 'd>,
    ) -> Option<Vec<Case>> {
        let name = asked.variable.strip_prefix('$')?.trim_matches(['{', '}']);
        let is_there =
            asked.operator.is_empty() || asked.operator == "!=" && asked.value.is_empty();
        let text = act.args.get(1)?;
        let is_it = |piece: &TextPiece<'_>| *piece == TextPiece::Variable(name);
        if !is_there || !pieces(text).iter().any(is_it) {
            return None;
        }
        let cases = self.evaluator(place.chain, own.id).cases(&format!("${{{name}}}"));
        let is_value = cases.len() > 1 || cases.iter().any(|case| case.value.is_none());
        is_value.then_some(cases)
    }

    /// A redirect for each value of its target.
    fn redirects_of(
        &mut self,
        own: &'d Directive,
        act: &Directive,
        cases: Vec<Case>,
        place: RulePlace<'_, 'd>,
    ) -> Vec<Made> {
        let mut made = Vec::new();
        let mut others = Predicate::never();
        let text = act.arg(1);
        let name = pieces(text).into_iter().find_map(|piece| match piece {
            TextPiece::Variable(name) if self.evaluator(place.chain, own.id).is_own(name) => {
                Some(name.to_owned())
            }
            _ => None,
        });
        let name = name.unwrap_or_default();
        for Case { when, value } in cases {
            let Some(value) = value else {
                let why = "the target has a value that is not known";
                own.visit(&mut |own| self.state.ledger.left(own.id, why, LOOKED_AT));
                continue;
            };
            let test = Test { operator: "", value: "", ignores_case: false };
            if test.holds_for(&value) == Some(false) {
                others = others.or(&when);
                let from = when.from.clone();
                from.iter().for_each(|id| self.state.ledger.carried(*id, ""));
                if when.is_always() {
                    break;
                }
                continue;
            }
            let when = self.within(when.and(&others.not()), place).with(&[own.id]);
            let mut act = act.clone();
            if let Some(text) = act.args.get_mut(1) {
                *text = filled(text, &[(name.clone(), value)]);
            }
            made.extend(match act.name.as_str() {
                "return" => self.answer(own, &act, &when, place),
                _ => self.rewrite(own, &act, &when, place),
            });
        }
        made
    }

    /// The routes of a `return`, of an `if` perhaps.
    fn answer(
        &mut self,
        own: &'d Directive,
        act: &Directive,
        when: &Predicate,
        place: RulePlace<'_, 'd>,
    ) -> Vec<Made> {
        let status = act.arg(0);
        let chain = place.chain.with(own.children());
        let mut settings = Settings::default();
        if let Some(found) = self.error_location(&chain, status, place) {
            if !when.is_exact {
                return self.left(own, INEXACT);
            }
            return self.routes(Some(own), when, found, &chain);
        }
        if !when.is_exact && !is_guard(status) {
            let is_file = question(own).is_some_and(|asked| asked.operator.contains('-'));
            return self.left(own, if is_file { FILE_TEST } else { INEXACT });
        }
        if when.is_exact {
            let kind = ContentType::new("", chain.one("default_type"));
            let scheme = self.scheme();
            let ledger = &mut self.state.ledger;
            if answers::returned(ledger, act, kind, scheme, &mut settings).is_none() {
                if !is_guard(status) {
                    return Vec::new();
                }
                settings.put("respond", format!("{{ status = {status} }}"), &[act.id]);
            }
        } else {
            settings.put("respond", "{ status = 403 }", &[act.id]);
            own.visit(&mut |own| self.state.ledger.left(own.id, INEXACT_GUARD, LOOKED_AT));
        }
        let said = self.said(&chain, Handler::Answer, false);
        let has_fields = chain.own_one("add_header").is_some()
            || place.location.is_some() && place.chain.own_one("add_header").is_some();
        // Others are not sent with refusals.
        let always: Vec<usize> = chain
            .all(&["add_header"])
            .iter()
            .filter(|own| !is_guard(status) || own.args.last().is_some_and(|own| own == "always"))
            .map(|own| own.id)
            .collect();
        let fields = said.0.into_iter().filter(|own| {
            first_part(&own.key) == "response_headers"
                && own.from.iter().all(|id| always.contains(id))
        });
        if has_fields {
            settings.0.extend(fields);
        }
        answering(own, when, &settings)
    }

    fn left(&mut self, own: &Directive, why: &str) -> Vec<Made> {
        own.visit(&mut |own| self.state.ledger.left(own.id, why, LOOKED_AT));
        Vec::new()
    }

    /// The named location to which `error_page` leads for a status that only a rule has.
    fn error_location(
        &mut self,
        chain: &Chain<'d>,
        status: &str,
        place: RulePlace<'_, 'd>,
    ) -> Option<Found<'d>> {
        let pages = chain.all(&["error_page"]);
        let page = pages.iter().find(|page| {
            let words = page.args.split_last();
            words.is_some_and(|(last, own)| {
                last.starts_with('@') && own.iter().any(|own| own == status)
            })
        })?;
        let is_of_rules = pages::is_of_rules(status);
        let name = page.args.last()?;
        let location = place.all.iter().find(|own| own.path == name).filter(|_| is_of_rules)?;
        self.state.ledger.carried(page.id, "");
        self.state.ledger.carried(location.directive.id, "");
        let destination = self.sent_to(location, place.all);
        let chain = destination.chain.clone();
        Some(Found { destination, chain })
    }

    /// Routes for requests whose responses are not stored, and which `bypass` cannot know.
    pub(crate) fn uncached(&mut self, main: &Destination<'d>) -> Vec<Made> {
        let all = cache::unlooked(&self.state.world, &main.chain, main.handler);
        let mut made = Vec::new();
        for when in all {
            let found = Found { destination: main.clone(), chain: main.chain.clone() };
            for mut one in self.routes(None, &when, found, &main.chain) {
                let settings = &mut one.block.settings;
                settings.0.retain(|own| !matches!(first_part(&own.key), "cache" | "bypass"));
                settings.put("cache", "false", &when.from);
                made.push(one);
            }
        }
        made
    }

    /// Takes an `if` that refuses clients without a certificate. Returns false for any other.
    fn requires_certificate(
        &mut self,
        asked: &Question<'_>,
        act: &Directive,
        own: &Directive,
        place: RulePlace<'_, 'd>,
    ) -> bool {
        let is_it = asked.variable == "$ssl_client_verify"
            && asked.operator == "!="
            && asked.value == "SUCCESS"
            && act.name == "return"
            && is_guard(act.arg(0));
        let has_authority =
            self.server.own().iter().any(|own| own.name == "ssl_client_certificate");
        if !is_it || !has_authority || place.location.is_some() || self.server.listeners.plain {
            return false;
        }
        self.client_auth = Some(vec![own.id, act.id]);
        true
    }

    /// Routes to where other requests go.
    fn routes(
        &mut self,
        own: Option<&Directive>,
        when: &Predicate,
        found: Found<'d>,
        chain: &Chain<'d>,
    ) -> Vec<Made> {
        let Found { destination, chain: other } = found;
        let chain = if other.blocks().is_empty() { chain } else { &other };
        let said = self.said(chain, destination.handler, false);
        let is_application = destination.handler.is_application();
        let names: Vec<&'static str> =
            SWITCHES.into_iter().filter(|switch| said.has_any(switch)).collect();
        let mut made = Vec::new();
        for one in &when.any {
            let mut block = Block::default();
            block.from.extend(own.map(|own| own.id));
            let from = when.from.iter().copied().filter(|id| !block.from.contains(id));
            one.write(&mut block.settings, &from.collect::<Vec<_>>());
            if said.has("respond") {
                block.settings.0.extend(said.get("respond").cloned());
            } else {
                block.settings.0.extend(destination.settings.0.iter().cloned());
            }
            let rest = said.0.iter().filter(|own| own.key != "respond");
            block.settings.0.extend(rest.cloned());
            made.push(Made { block, is_application, said: names.clone() });
        }
        made
    }

    /// The routes of an `if` that changes settings of its location, and of `limit_except`.
    fn special(
        &mut self,
        own: &'d Directive,
        when: &Predicate,
        place: RulePlace<'_, 'd>,
    ) -> Vec<Made> {
        let Some(location) = place.location else {
            return self.left(own, "these directives depend on the request");
        };
        if !when.is_exact {
            return self.left(own, INEXACT);
        }
        let passes = own.children().iter().any(|own| own.name.ends_with("_pass"));
        let destination = if passes {
            let chain = place.chain.with(own.children());
            self.destination(&chain, place.all, &location.pattern())
        } else if self.is_main(location, place.all) {
            place.main.clone()
        } else {
            self.destination(&location.chain, place.all, &location.pattern())
        };
        let around = if passes { place.chain } else { &destination.chain };
        let chain = around.with(own.children());
        let found = Found { destination, chain: Chain::default() };
        self.routes(Some(own), when, found, &chain)
    }

    fn methods(&mut self, own: &'d Directive, place: RulePlace<'_, 'd>) -> Vec<Made> {
        let mut names = own.args.clone();
        if names.iter().any(|name| name == "GET") && !names.iter().any(|name| name == "HEAD") {
            names.push("HEAD".to_owned());
        }
        let when = Predicate::methods(names).not().with(&[own.id]);
        let when = self.within(when, place);
        self.special(own, &when, place)
    }

    /// Tells whether the site itself has the settings of a location.
    pub(crate) fn is_main(&self, location: &Location<'d>, all: &[Location<'d>]) -> bool {
        let scripts = all.iter().find(|own| self.is_of_scripts(own));
        is_root(location)
            || self.is_of_php
                && scripts.is_some_and(|own| own.directive.id == location.directive.id)
    }

    /// The routes of a `rewrite`, of an `if` perhaps.
    fn rewrite(
        &mut self,
        own: &'d Directive,
        act: &Directive,
        when: &Predicate,
        place: RulePlace<'_, 'd>,
    ) -> Vec<Made> {
        let rewritten = answers::rewritten(act, self.scheme());
        if rewritten == Rewritten::Front {
            let why = "paths without a file go to the application's script";
            own.visit(&mut |own| self.state.ledger.default(own.id, why));
            self.front_query(act.id, act.arg(1));
            return Vec::new();
        }
        let when = match answers::rewritten_paths(act) {
            None => when.clone(),
            Some(path) if is_regex(&path) => {
                let path = Predicate::of(Atom::Path(vec![path]));
                path.with(&[act.id]).and(when)
            }
            Some(_) => return self.left(own, "the expression is none that Larder has"),
        };
        if when.any.is_empty() {
            let why = "no path of this location is of this kind";
            own.visit(&mut |own| self.state.ledger.not_needed(own.id, why));
            return Vec::new();
        }
        if !when.is_exact {
            return self.left(own, INEXACT);
        }
        match rewritten {
            Rewritten::Redirect { to, status, appends } => {
                let parts = with_query(&when, &to, appends);
                let routes = parts.iter().flat_map(|part| {
                    let mut settings = Settings::default();
                    let value = format!("{{ to = {}, status = {status} }}", quote(&part.to));
                    settings.put("redirect", value, &[act.id]);
                    answering(own, &part.when, &settings)
                });
                routes.collect()
            }
            Rewritten::Internal { to, ends, appends } => {
                match self.rewritten_to(&to, ends, place) {
                    Ok(RewrittenPlace { found, except }) => {
                        let mut made = Vec::new();
                        for part in with_query(&when, &to, appends) {
                            let mut when = part.when;
                            when.any.iter_mut().for_each(|one| one.except(&except));
                            let mut found = found.clone();
                            let settings = &mut found.destination.settings;
                            if found.destination.handler != Handler::Answer {
                                settings.text("rewrite", &part.to, &[act.id]);
                            }
                            made.extend(self.routes(Some(own), &when, found, place.chain));
                        }
                        made
                    }
                    Err(why) => self.left(own, why),
                }
            }
            Rewritten::Unknown | Rewritten::Front => {
                let instead = "`redirect.to` and `rewrite` know $host, $path, $query, $args and $1";
                let why = "the target has a variable that is not there";
                own.visit(&mut |own| self.state.ledger.left(own.id, why, instead));
                Vec::new()
            }
        }
    }
}

/// A target, and the requests that get it.
struct QueryPart {
    when: Predicate,
    to: String,
}

/// A target for requests with a query, which comes behind its own, and for those without.
fn with_query(when: &Predicate, to: &str, appends: bool) -> Vec<QueryPart> {
    let whole = QueryPart { when: when.clone(), to: to.to_owned() };
    if !appends {
        return vec![whole];
    }
    let asked = when.and(&any_parameter());
    vec![QueryPart { when: asked, to: format!("{to}&$args") }, whole]
}

/// A destination, and the blocks that it is from; none for those of the rule.
#[derive(Clone)]
pub(crate) struct Found<'d> {
    pub(crate) destination: Destination<'d>,
    pub(crate) chain: Chain<'d>,
}

/// Routes that answer by themselves.
pub(crate) fn answering(own: &Directive, when: &Predicate, settings: &Settings) -> Vec<Made> {
    let routes = when.any.iter().map(|one: &Conjunction| {
        let mut block = Block { from: vec![own.id], ..Block::default() };
        one.write(&mut block.settings, &inner_ids(own, when));
        block.settings.0.extend(settings.0.iter().cloned());
        Made { block, is_application: false, said: SWITCHES.to_vec() }
    });
    routes.collect()
}

/// An answer with parts of the host in the place of what the expression of its `if` caught.
fn with_host(asked: &Question<'_>, act: &Directive, own: &Directive, host: &str) -> Directive {
    let mut act = act.clone();
    let options = linear::Options { ignore_case: true, ..Default::default() };
    let Ok(regex) = linear::Regex::new(asked.value, options) else { return act };
    let mut groups = regex.room();
    regex.groups(host.as_bytes(), 0, &mut groups);
    let group = |at| groups.get_group(at).and_then(|g| host.get(g.start..g.end)).unwrap_or("");
    let mut values: Vec<(String, String)> = Vec::new();
    for (at, name) in answers::group_names(asked.value).iter().enumerate() {
        values.push(((at + 1).to_string(), group(at + 1).to_owned()));
        values.push((name.clone(), group(at + 1).to_owned()));
    }
    for set in own.children().iter().filter(|set| set.name == "set") {
        let value = filled(set.arg(1), &values);
        values.push((set.arg(0).trim_start_matches('$').to_owned(), value));
    }
    if act.name == "rewrite" {
        // Its own expression catches anew.
        values.retain(|(name, _)| !name.starts_with(|c: char| c.is_ascii_digit()));
    }
    for text in act.args.iter_mut().skip(1) {
        *text = filled(text, &values);
    }
    act
}

/// The directives of a predicate, apart from the rule itself.
fn inner_ids(own: &Directive, when: &Predicate) -> Vec<usize> {
    when.from.iter().copied().filter(|id| *id != own.id).collect()
}

/// A text with values for some variables.
fn filled(text: &str, values: &[(String, String)]) -> String {
    let mut all = String::new();
    for piece in pieces(text) {
        match piece {
            TextPiece::Plain(plain) => all.push_str(plain),
            TextPiece::Variable("") => all.push('$'),
            TextPiece::Variable(name) => {
                match values.iter().find(|(own, _)| own == name && !name.is_empty()) {
                    Some((_, value)) => all.push_str(value),
                    None => all.push_str(&format!("${{{name}}}")),
                }
            }
        }
    }
    all
}

/// Tells whether a pattern of paths is an expression that can be compiled.
fn is_regex(path: &str) -> bool {
    let expression = path.trim_start_matches("~*").trim_start_matches('~').trim();
    linear::Regex::new(expression, linear::Options::default()).is_ok()
}
