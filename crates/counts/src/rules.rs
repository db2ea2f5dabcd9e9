//! Fifty rules: a hit on a site whose routes ask for fields, cookies, parameters, addresses,
//! User-Agents and classes, and paths of every kind.

use std::sync::Arc;

use flow::Site;
use message::{ClassifiedClient, ClientClass, ClientProof};
use policy::acl::parse_net;
use policy::conditions::{
    ClientAddresses, Condition, Conditions, NamedCondition, RouteScope, UserAgents, WantedValue,
};
use policy::headers::FieldName;
use policy::pattern::{NamePattern, PathPattern, TextPattern};
use policy::rules::{RouteRules, Settings};
use policy::value::ValuePattern;
use policy::{Declared, SiteRules};

use crate::hits;
use crate::samples::{BROWSER_REQUEST, PLAIN_REQUEST};

/// The number of routes.
const ROUTES: usize = 50;

/// Paths of routes without conditions.
const PATHS: [&str; 14] = [
    "/admin/*",
    "/login",
    "/logout",
    "/cart",
    "/checkout/*",
    "/api/*",
    "*.css",
    "*.js",
    "*.php",
    "/shop/*/edit",
    "/a*/private/**",
    "~ ^/user/([0-9]+)$",
    "~* \\.(zip|tar)$",
    "~ ^/(de|fr)/",
];

/// A load generator's hit past fifty routes.
pub(crate) fn hit_past(rounds: u32) {
    hit(rounds, PLAIN_REQUEST, false);
}

/// A browser's hit past fifty routes.
pub(crate) fn hit_past_browser(rounds: u32) {
    hit(rounds, BROWSER_REQUEST, false);
}

/// A load generator's hit that belongs to the last of fifty routes.
pub(crate) fn hit_last(rounds: u32) {
    hit(rounds, PLAIN_REQUEST, true);
}

fn hit(rounds: u32, wire: &[u8], of_last: bool) {
    let (class, proof) = (ClientClass::Human, ClientProof::Claimed);
    let client = Some(ClassifiedClient { class, proof, number: None });
    let site = Site::new("www.example.com", Arc::new(declared(of_last)));
    hits::hit_of(rounds, site, wire, client);
}

/// A site with fifty routes. If `has_own`, the requests of the samples belong to the last.
fn declared(has_own: bool) -> Declared {
    let mut scopes: Vec<RouteScope> = PATHS.iter().map(|path| of_path(path)).collect();
    for (at, agent) in ["GPTBot", "Bytespider", "head*chrome", "~ ^curl/[78]", "Ahrefs", "Scrapy"]
        .into_iter()
        .enumerate()
    {
        let net = format!("198.51.{at}.0/24");
        scopes.push(of(vec![agents(agent)]));
        scopes.push(of(vec![client(&net)]));
        scopes.push(of(vec![header(&format!("X-Api-{at}"), values("v2*"))]));
        scopes.push(of(vec![cookie(&format!("beta{at}"), values("on"))]));
        scopes.push(of(vec![query(&format!("debug{at}"))]));
    }
    scopes.push(of(vec![header("Accept-Language", values("tlh*")), not("/robots.txt")]));
    scopes.push(of(vec![cookie("session*", WantedValue::Present), query("preview")]));
    scopes.push(of(vec![Condition::Class(vec![ClientClass::Ai]), not("/robots.txt")]));
    scopes.push(of(vec![Condition::Class(vec![ClientClass::Tool])]));
    let mut inner = of(vec![header("X-Requested-With", WantedValue::Present)]);
    inner.paths = of_path("/articles/**/comments").paths;
    scopes.push(inner);
    let human = Condition::Class(vec![ClientClass::Human]);
    let language = if has_own { header("Accept", WantedValue::Present) } else { query("lang") };
    let mut last = of(vec![human, language, not("/articles/feed")]);
    last.paths = of_path("/articles/*").paths;
    scopes.push(last);
    assert_eq!(scopes.len(), ROUTES);
    let routes = scopes.into_iter().enumerate().map(|(at, scope)| RouteRules {
        name: at.to_string(),
        scope,
        settings: Settings::default(),
    });
    Declared::new(SiteRules { routes: routes.collect(), ..SiteRules::default() })
}

fn of_path(pattern: &str) -> RouteScope {
    let paths = vec![PathPattern::parse(pattern).expect("a path pattern")];
    RouteScope { paths, ..RouteScope::default() }
}

fn of(conditions: Vec<Condition>) -> RouteScope {
    let mut when = Conditions::default();
    conditions.into_iter().for_each(|condition| when.push(condition));
    RouteScope { when, ..RouteScope::default() }
}

fn values(text: &str) -> WantedValue<TextPattern> {
    WantedValue::Like(vec![TextPattern::parse(text).expect("a pattern")])
}

fn header(name: &str, wanted: WantedValue<TextPattern>) -> Condition {
    let name = FieldName::parse(name).expect("a name");
    Condition::Header(vec![NamedCondition { name, wanted }])
}

fn cookie(name: &str, wanted: WantedValue<TextPattern>) -> Condition {
    let name = NamePattern::cookie(name).expect("a name");
    Condition::Cookie(vec![NamedCondition { name, wanted }])
}

fn query(name: &str) -> Condition {
    let name = NamePattern::query(name).expect("a name");
    let wanted = WantedValue::Like(vec![ValuePattern::parse("~ ^[0-9]+$").expect("a pattern")]);
    Condition::Query(vec![NamedCondition { name, wanted }])
}

fn client(net: &str) -> Condition {
    Condition::Client(ClientAddresses::new(vec![parse_net(net).expect("a net")]))
}

fn agents(text: &str) -> Condition {
    Condition::UserAgent(UserAgents::parse(&[text]).expect("a pattern"))
}

fn not(path: &str) -> Condition {
    Condition::Not(Box::new(of_path(path)))
}
