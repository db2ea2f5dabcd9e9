//! Explanations of the declared policy's decisions. Nothing may be decided here.

use message::{HeaderId, Method, Request, cookie, query as params};

use super::Declared;
use super::plan::{Access, BypassRules, Query, RoutePlan, Rule};
use super::receive::RouteSelection;
use crate::answer::ConfiguredResponse;
use crate::conditions::{Condition, RoutedRequest};
use crate::decision_steps::{DecisionStep, shown};
use crate::forged_fields::HeadFindings;
use crate::forwarded::ClientField;
use crate::peer::ConnectionPeer;
use crate::points::ReceiveCtx;
use crate::policy_files::RedirectFile;
use crate::redirect_map::FoundRedirect;
use crate::vary::VaryRules;

impl Declared {
    pub(super) fn tell_client(
        &self,
        ctx: &ReceiveCtx<'_>,
        findings: HeadFindings,
        client: ConnectionPeer,
    ) -> DecisionStep {
        let field = match &self.client_field {
            ClientField::XForwardedFor => "X-Forwarded-For".to_owned(),
            ClientField::Forwarded => "Forwarded".to_owned(),
            ClientField::Named(name) => name.to_string(),
        };
        let trusted = !self.trusted.is_empty() && self.trusted.has(ctx.client);
        let why = if client != ctx.client {
            format!("{client}: named by the trusted proxy {} in `{field}`", ctx.client)
        } else if trusted {
            format!("{client}: a trusted proxy, which names no client in `{field}`")
        } else if findings.forged {
            format!(
                "{client}: not a trusted proxy, so the fields that only proxies may send \
                 (`{field}` and others) were removed"
            )
        } else {
            format!("{client}: the peer of the connection")
        };
        DecisionStep::new("client", why)
    }

    pub(super) fn tell_https(&self) -> DecisionStep {
        let why = "plain HTTP: the site redirects such requests to HTTPS";
        DecisionStep::new("answer", why)
            .at(self.plans[0].places.of("redirect_https"))
            .decisive()
            .advise("Nothing: clients are redirected. Explain the https:// URL instead.")
    }

    pub(super) fn tell_answer(
        &self,
        plan: &RoutePlan,
        answer: &ConfiguredResponse,
        ctx: &ReceiveCtx<'_>,
    ) -> DecisionStep {
        let step = self::answer(plan, answer);
        let ConfiguredResponse::Redirect(redirect) = answer else { return step };
        let found = self.captures(ctx.notes.route, ctx.request.path(), redirect.captures());
        step.fact("captures", captures_in_words(&found.unwrap_or_default()))
    }

    pub(super) fn tell_route(
        &self,
        RouteSelection { plan: route, also }: RouteSelection,
        asked: RoutedRequest<'_>,
    ) -> DecisionStep {
        // An origin may take the path for one of another route.
        let also = also.map_or_else(String::new, |also| format!("`{}`", self.route_names[also]));
        self.tell_own_route(route, asked).fact("held to as well", also)
    }

    fn tell_own_route(&self, route: usize, asked: RoutedRequest<'_>) -> DecisionStep {
        let (name, plan) = (&self.route_names[route], &self.plans[route]);
        let routes = self.matchers.len();
        let not_met = self.not_met_before(route, asked);
        let country = self.countries.as_ref().map_or_else(String::new, |countries| {
            let found = asked.client.address().and_then(|address| countries.of(address));
            found.map_or_else(|| "not known".to_owned(), |code| code.to_string())
        });
        let sticky = plan.sticky.as_ref().map_or_else(String::new, |sticky| {
            match sticky.server_of(&asked.request.headers) {
                Some(at) => format!("the cookie `{}` is of server {}", sticky.name, at + 1),
                None => format!("no cookie `{}` of a server", sticky.name),
            }
        });
        let access_log = if plan.access_log { "" } else { "no line (access_log = false)" };
        if route > 0 {
            let when = &self.matchers[route - 1].scope.when;
            let what = if when.is_empty() { "path and method" } else { "request" };
            let why = match route {
                1 => format!("`{name}`, the first of {routes}, is for this {what}"),
                _ => format!(
                    "`{name}`, number {route} of {routes}, is the first that is for this {what}"
                ),
            };
            let met: Vec<String> = when.iter().map(Condition::told).collect();
            let (pattern, captures) = self.path_in_words(route, asked.path);
            return DecisionStep::new("route", why)
                .at(plan.places.of("route"))
                .fact("path", pattern)
                .fact("captures", captures)
                .fact("because of", met.join(", "))
                .fact("not met before", not_met)
                .fact("access log", access_log)
                .fact("sticky", sticky)
                .fact("country of the client", country);
        }
        let why = match routes {
            0 => "the site has no routes: its own settings count",
            _ if self.divides() => "no route is for this request: the site's own settings count",
            _ => "no route is for this path and method: the site's own settings count",
        };
        let others = self.route_names[1..].join(", ");
        DecisionStep::new("route", why)
            .fact("looked at", others)
            .fact("not met", not_met)
            .fact("access log", access_log)
            .fact("sticky", sticky)
            .fact("country of the client", country)
    }

    /// The pattern of a route that a path is like, and what its stars or groups stand for. Both are
    /// empty if the route is the request's for another reading of the path, or for all paths.
    fn path_in_words(&self, route: usize, path: &[u8]) -> (String, String) {
        let paths = route.checked_sub(1).map(|at| &self.matchers[at].scope.paths);
        let found = paths.into_iter().flatten().find_map(|pattern| {
            Some((pattern.to_string(), captures_in_words(&pattern.captures(path)?)))
        });
        found.unwrap_or_default()
    }

    /// Routes that are for the path and method of a request, before the one of this number or all
    /// if that is the site's, each with its first condition that does not hold.
    fn not_met_before(&self, route: usize, asked: RoutedRequest<'_>) -> String {
        let before = route.checked_sub(1).unwrap_or(self.matchers.len());
        let matchers = self.matchers[..before].iter().zip(&self.route_names[1..]);
        let not_met = matchers.filter_map(|(matcher, name)| {
            let is_for = matcher.scope.is_for(asked.path, &asked.request.method);
            let failing = matcher.scope.when.failing(asked).filter(|_| is_for)?;
            Some(format!("`{name}`: {}", failing.told()))
        });
        not_met.collect::<Vec<_>>().join(", ")
    }

    /// Reports the bypass rules; `reason` is the rule that applies, if one does.
    pub(super) fn tell_bypass(
        &self,
        plan: &RoutePlan,
        request: &Request,
        reason: Option<u32>,
    ) -> DecisionStep {
        let numbers = plan.bypass.numbers();
        let names: Vec<&str> =
            numbers.iter().map(|rule| self.rule_names[*rule as usize].as_str()).collect();
        if let Some(rule) = reason {
            let name = &self.rule_names[rule as usize];
            let why = match found(&plan.bypass, rule, request) {
                Some(found) => format!("`{name}`: {found}"),
                None => format!("`{name}` applies"),
            };
            let before: Vec<&str> = names.into_iter().take_while(|other| other != name).collect();
            return DecisionStep::new("rule", why)
                .at(plan.places.of(name))
                .fact("looked at before", short(&before))
                .decisive()
                .advise(advice(&plan.bypass, rule, request));
        }
        let why = match names.len() {
            0 => "there is no `bypass` rule: it may be looked up".to_owned(),
            1 => "the one `bypass` rule does not apply: it may be looked up".to_owned(),
            n => format!("none of {n} `bypass` rules applies: it may be looked up"),
        };
        DecisionStep::new("rule", why).fact("looked at", short(&names))
    }
}

impl DecisionStep {
    /// The step as one about the rules of a route that another reading of the path leads to.
    pub(super) fn of_other_reading(mut self) -> Self {
        self.why += ", by the route that another reading of the path leads to";
        self
    }
}

/// The captures of a path, numbered: `$1 = 7, $2 = a`.
pub(super) fn captures_in_words(captures: &[&[u8]]) -> String {
    let each = captures.iter().enumerate();
    let words = each.map(|(at, part)| format!("${} = {}", at + 1, shown(part)));
    words.collect::<Vec<_>>().join(", ")
}

/// Names of rules without their common prefix.
fn short(names: &[&str]) -> String {
    let bare = names.iter().map(|name| name.strip_prefix("bypass ").unwrap_or(name));
    bare.collect::<Vec<_>>().join(", ")
}

/// The part of `request` that `rule` tests, in words.
fn found(bypass: &BypassRules, rule: u32, request: &Request) -> Option<String> {
    if bypass.paths.iter().any(|(_, of)| *of == rule) {
        return Some(format!("the path is {}", shown(request.path())));
    }
    if let Some((pattern, _)) = bypass.cookies.iter().find(|(_, of)| *of == rule) {
        let mut pairs = cookie::pairs(request.headers.values(HeaderId::Cookie));
        let pair = pairs.find(|pair| pattern.matches(pair.name))?;
        return Some(format!("the request has the cookie `{}`", shown(pair.name)));
    }
    if let Some((name, ..)) = bypass.headers.iter().find(|(_, _, of)| *of == rule) {
        return Some(format!("the request has the field `{name}`"));
    }
    Some(format!("the query is `{}`", shown(request.query()?)))
}

/// Advice on why `rule` passes the request.
fn advice(bypass: &BypassRules, rule: u32, request: &Request) -> String {
    let path = shown(request.path());
    if bypass.paths.iter().any(|(_, of)| *of == rule) {
        return format!(
            "Nothing, if the response is for one visitor. If it is the same for all, add a route \
             without the rule: `[[site.route]] path = \"{path}\"`, `bypass = false`."
        );
    }
    if let Some((pattern, _)) = bypass.cookies.iter().find(|(_, of)| *of == rule) {
        let mut pairs = cookie::pairs(request.headers.values(HeaderId::Cookie));
        let name = pairs.find(|pair| pattern.matches(pair.name)).map(|pair| shown(pair.name));
        let name = name.unwrap_or_else(|| "*".to_owned());
        return format!(
            "Nothing, if `{name}` identifies the visitor, by a login or a cart: the pages are for \
             this visitor. Pages that do not depend on it can have a route without the rule: \
             `[[site.route]] path = \"/blog/*\"`, `bypass = false`, `cookies = {{ strip = \
             [\"{name}\"] }}`."
        );
    }
    if let Some((name, ..)) = bypass.headers.iter().find(|(_, _, of)| *of == rule) {
        return format!(
            "Nothing, if the response is only for clients with `{name}`. If it is the same for all, \
             remove the field from `bypass`."
        );
    }
    let names = params::params(request.query().unwrap_or_default()).map(params::name).map(shown);
    let names: Vec<_> = names.map(|name| format!("\"{name}\"")).collect();
    format!(
        "Nothing, if each query has its own response, as for a search. Parameters that change \
         nothing can be removed: `[site.query] strip = [{}]`. If parameters that change the page \
         have few values, its responses can be stored: `[[site.route]] path = \"{path}\"`, \
         `bypass = {{ query = false }}`.",
        names.join(", ")
    )
}

pub(super) fn method_refused(request: &Request) -> DecisionStep {
    let advice = match request.method {
        Method::Purge | Method::Ban => {
            "`[site] purge` sets the purges that a site accepts, and their clients."
        }
        _ => "Nothing: no server needs to answer such requests.",
    };
    let why = match request.method {
        Method::Purge | Method::Ban => {
            format!("{} is a purge, and this site accepts no such purge", request.method)
        }
        _ => format!("{} requests are rejected by every site", request.method),
    };
    DecisionStep::new("rule", why).decisive().advise(advice)
}

pub(super) fn ambiguous(request: &Request) -> DecisionStep {
    let path = shown(request.path());
    let why = format!("the path `{path}` can be read in two ways that lead to different routes");
    DecisionStep::new("rule", why)
        .decisive()
        .advise("Nothing here: links should have the plain path, without escapes and dots.")
}

pub(super) fn access(plan: &RoutePlan, access: &Access, client: ConnectionPeer) -> DecisionStep {
    let denied = access.deny.has(client);
    let place = plan.places.of(if denied { "deny" } else { "allow" });
    if access.admits(client) {
        let place = place.or_else(|| plan.places.of("deny"));
        return DecisionStep::new("access", format!("{client} is permitted")).at(place);
    }
    let why = match denied {
        true => format!("{client} is denied by `deny`"),
        false => format!("{client} is not in `allow`"),
    };
    let advice = format!("Add {client} to `allow`, or remove it from `deny`, if it may enter.");
    DecisionStep::new("access", why).at(place).decisive().advise(advice)
}

fn answer(plan: &RoutePlan, answer: &ConfiguredResponse) -> DecisionStep {
    let (what, key) = match answer {
        ConfiguredResponse::Fixed(synthetic) => (format!("status {}", synthetic.status), "respond"),
        ConfiguredResponse::Redirect(_) => ("a redirect".to_owned(), "redirect"),
    };
    let why = format!("the configuration answers with {what}");
    let advice = format!("Nothing: `{key}` answers, and no origin is asked.");
    DecisionStep::new("answer", why).at(plan.places.of(key)).decisive().advise(advice)
}

/// The redirect that a file has for a request, or that it has none.
pub(super) fn redirect_map(
    plan: &RoutePlan,
    file: &RedirectFile,
    found: Option<&FoundRedirect<'_>>,
) -> DecisionStep {
    let (path, place) = (file.path.display(), plan.places.of("redirect"));
    let Some(FoundRedirect { line, response }) = found else {
        let why = format!("no line of {path} is for this URL: there is no redirect");
        return DecisionStep::new("redirects", why).at(place);
    };
    let (number, status) = (line.number, response.status);
    let location = response.fields.first().map_or(&b""[..], |(_, location)| location);
    DecisionStep::new("answer", format!("line {number} of {path} answers with a redirect"))
        .at(place)
        .fact("redirect", format!("{status} to {}", shown(location)))
        .decisive()
        .advise("Nothing: the redirect answers, and no origin is asked.")
}

pub(super) fn files(plan: &RoutePlan) -> DecisionStep {
    DecisionStep::new("files", "files are served, not responses of an origin")
        .at(plan.places.of("files"))
        .decisive()
        .advise("Nothing: files need no cache in front of them.")
}

pub(super) fn upgrade(plan: &RoutePlan, request: &Request) -> DecisionStep {
    let wanted = request.headers.value(HeaderId::Upgrade).unwrap_or_default();
    let why = format!("the request asks for a permitted protocol: {}", shown(wanted));
    DecisionStep::new("rule", why)
        .at(plan.places.of("upgrade"))
        .decisive()
        .advise("Nothing: the connection becomes a tunnel, and no response is stored.")
}

/// `rule`: the reason for passing the cache before anything in the request is tested.
pub(super) fn pass_unread(plan: &RoutePlan, rule: Rule, request: &Request) -> DecisionStep {
    let (why, place, advice) = match rule {
        Rule::Method => {
            let method = &request.method;
            let why = format!("{method} goes to the origin: the cache answers GET and HEAD only");
            (why, None, "Nothing: such requests, as of forms, are for the application.")
        }
        Rule::RequestBody => {
            let why =
                "a GET with a body: the body is not in the key, so the response is not stored";
            (why.to_owned(), None, "Let the client send the request without a body.")
        }
        _ => {
            let why = "the cache is switched off here: `cache = false`".to_owned();
            (why, Some("cache"), "Remove `cache = false`, if responses may be stored.")
        }
    };
    let place = place.and_then(|key| plan.places.of(key));
    DecisionStep::new("rule", why).at(place).decisive().advise(advice)
}

/// The cookies of a request before insignificant ones are removed.
pub(super) fn cookies(plan: &RoutePlan, request: &Request) -> DecisionStep {
    let names = |keep: &dyn Fn(&[u8]) -> bool| {
        let pairs = cookie::pairs(request.headers.values(HeaderId::Cookie));
        let names = pairs.filter(|pair| keep(pair.name)).map(|pair| shown(pair.name));
        names.collect::<Vec<_>>().join(", ")
    };
    let is_light = |name: &[u8]| !plan.is_in_key(name) && !plan.cookies.counts(name);
    let dropped = names(&|name| plan.cookies.strips(name));
    let kept = names(&|name| !plan.cookies.strips(name));
    let light = names(&|name| !plan.cookies.strips(name) && is_light(name));
    let why = match (dropped.is_empty(), kept.is_empty()) {
        (true, _) => "none is removed".to_owned(),
        (false, true) => format!("all are removed, the origin does not see them: {dropped}"),
        (false, false) => format!("removed, the origin does not see them: {dropped}"),
    };
    let place = plan.places.of("cookies.strip").filter(|_| !dropped.is_empty());
    let step =
        DecisionStep::new("cookies", why).at(place).fact("kept", kept).fact("removed", dropped);
    match light.is_empty() {
        true => step,
        false => step.fact("ignored by the cache", light),
    }
}

/// The step about a personal request, after cookies were removed.
pub(super) fn personal(plan: &RoutePlan, request: &Request, personal: bool) -> DecisionStep {
    if !personal {
        let why = "no cookie is left that identifies the visitor";
        let keyed = plan.cookie_key.iter().any(|_| request.headers.contains(HeaderId::Cookie));
        let why = if keyed { "the cookies that are left are part of the key" } else { why };
        return DecisionStep::new("personal", format!("not personal: {why}"));
    }
    let authorization = request.headers.contains(HeaderId::Authorization);
    let pairs = cookie::pairs(request.headers.values(HeaderId::Cookie));
    let is_own = |name: &[u8]| !plan.is_in_key(name) && plan.cookies.counts(name);
    let own = pairs.filter(|pair| is_own(pair.name));
    let own: Vec<String> = own.map(|pair| shown(pair.name)).collect();
    let mut names: Vec<String> = own.iter().map(|name| format!("cookie `{name}`")).collect();
    if authorization {
        names.insert(0, "`Authorization`".to_owned());
    }
    let why = format!(
        "personal, because of {}: only what its origin marks as for all (`public`, `s-maxage`) \
         answers it or is stored from it",
        names.join(", ")
    );
    DecisionStep::new("personal", why).advise(advice_on_visitor(&own))
}

/// Advice on what makes a request personal: these cookies, or Authorization alone.
fn advice_on_visitor(cookies: &[String]) -> String {
    if cookies.is_empty() {
        return "Nothing, if the response is for this user. If it is for all, let the application \
                declare it: `Cache-Control: public`, or `s-maxage`."
            .to_owned();
    }
    let list: Vec<_> = cookies.iter().map(|name| format!("\"{name}\"")).collect();
    let list = list.join(", ");
    format!(
        "Classify the cookie. If only scripts in the browser read it: `[site.cookies] strip = \
         [{list}]`. If it changes the page and has few values: `[site.cookies] key = [{list}]`. \
         Nothing, if it is a login: the pages are for this visitor."
    )
}

/// The step about the change to a query; `request` still has the original query.
pub(super) fn query(plan: &RoutePlan, query: &Query, request: &Request) -> DecisionStep {
    let mut after = request.clone();
    query.apply(&mut after);
    let before = request.query().unwrap_or_default();
    let dropped: Vec<String> = match query {
        Query::Remove => params::params(before).map(shown).collect(),
        Query::Change { strip, .. } => {
            let gone = params::params(before).filter(|p| strip.contains(params::name(p)));
            gone.map(shown).collect()
        }
    };
    let place = match query {
        Query::Remove => plan.places.of("query.ignore"),
        Query::Change { .. } if dropped.is_empty() => plan.places.of("query.sort"),
        Query::Change { .. } => plan.places.of("query.strip"),
    };
    let why = if after.target == request.target {
        "unchanged".to_owned()
    } else if dropped.is_empty() {
        "parameters were sorted by name".to_owned()
    } else {
        format!("removed, the origin does not see them: {}", dropped.join(", "))
    };
    let place = place.filter(|_| after.target != request.target);
    DecisionStep::new("query", why).at(place)
}

/// The step about fields in few forms; `request` still has the client's.
pub(super) fn vary(
    plan: &RoutePlan,
    vary: &VaryRules,
    request: &Request,
    personal: bool,
) -> DecisionStep {
    let mut after = request.clone();
    vary.normalise(&mut after, personal);
    let forms = vary.fields().into_iter().filter_map(|name| {
        let form = after.headers.value_named(name.as_bytes())?;
        let is_kept = request.headers.value_named(name.as_bytes()) == Some(form);
        let kept = if is_kept { " (as it came)" } else { "" };
        Some(format!("{name}: {}{kept}", shown(form)))
    });
    let forms = forms.collect::<Vec<_>>().join(", ");
    let mut why = "the origin gets, and variants are selected by, one of few forms".to_owned();
    if personal && vary.devices.is_some() {
        why += "; a personal request keeps its User-Agent, which sessions may be bound to";
    }
    let cookies = vary.cookies.iter().map(|cookie| cookie.name.as_str());
    let cookies = cookies.collect::<Vec<_>>().join(", ");
    DecisionStep::new("vary", why)
        .at(plan.places.of("vary"))
        .fact("forms", forms)
        .fact("cookies", cookies)
}
