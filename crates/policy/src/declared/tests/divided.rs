//! Routes that requests for one URL are divided among, and the keys of these requests.

use std::collections::BTreeSet;

use super::*;
use crate::acl::Net;
use crate::conditions::{
    ClientAddresses, Condition, Conditions, NamedCondition, RouteScope, WantedValue,
};
use crate::pattern::NamePattern;
use crate::rewrite::Rewrite;

/// Settings of a route to an origin.
fn to(origin: u32) -> Settings {
    Settings { origin, origin_name: format!("origin {origin}").into(), ..Settings::default() }
}

fn has(name: &str) -> Condition {
    Condition::Header(vec![NamedCondition { name: field(name), wanted: WantedValue::Present }])
}

fn from(net: &str) -> Condition {
    let net: Net = parse_net(net).expect("a network");
    Condition::Client(ClientAddresses::new(vec![net]))
}

/// A route for paths like `pattern`, or for all, under a condition.
fn when(pattern: &str, condition: Condition, settings: Settings) -> RouteRules {
    let mut route = route(if pattern.is_empty() { "*" } else { pattern }, settings);
    route.scope.when.push(condition);
    route
}

fn site_of(routes: Vec<RouteRules>) -> Declared {
    Declared::new(SiteRules { routes, settings: to(0), ..SiteRules::default() })
}

#[test]
fn a_field_a_cookie_or_an_address_chooses_the_route() {
    let policy = site_of(vec![
        when("/api/*", has("X-Beta"), to(1)),
        when("", from("192.0.2.0/24"), to(2)),
        route("/api/*", to(3)),
    ]);
    for (client, target, fields, origin) in [
        ("198.51.100.1", "/api/a", &[("X-Beta", "1")][..], 1),
        ("198.51.100.1", "/api/a", &[], 3),
        ("198.51.100.1", "/b", &[("X-Beta", "1")], 0),
        ("192.0.2.7", "/api/a", &[("X-Beta", "1")], 1),
        ("192.0.2.7", "/api/a", &[], 2),
        ("192.0.2.7", "/b", &[], 2),
    ] {
        let asked = ask_from(&policy, client, with(get(target), fields));
        assert_eq!(asked.notes.origin, origin, "{client} {target} {fields:?}");
    }
}

#[test]
fn what_is_stored_for_one_route_is_not_found_by_another() {
    let policy = site_of(vec![when("", has("X-Beta"), to(1)), when("", has("X-Staff"), to(2))]);
    let asked = |fields: &[(&str, &str)]| ask(&policy, with(get("/a"), fields));
    let all = [asked(&[]), asked(&[("X-Beta", "1")]), asked(&[("X-Staff", "1")])];
    let keys = all.each_ref().map(|asked| key(&policy, asked));
    assert!(keys[0] != keys[1] && keys[0] != keys[2] && keys[1] != keys[2]);
    // Without a condition the key is the URL's, as it is without routes.
    assert_eq!(keys[0], key(&site(Settings::default()), &ask(&site(to(0)), get("/a"))));
    assert_eq!(keys[1], key(&policy, &asked(&[("X-Beta", "2")])));
}

#[test]
fn a_route_that_only_sets_limits_or_response_fields_shares_what_is_stored() {
    let mut headers = crate::header_changes::HeaderOps::default();
    headers.unset(field("Server"));
    let settings = Settings { response_headers: headers, ..to(0) };
    let policy = site_of(vec![when("", has("X-Bot"), settings), route("/shop/*", to(1))]);
    let key_of = |target: &str, fields: &[(&str, &str)]| {
        key(&policy, &ask(&policy, with(get(target), fields)))
    };
    assert_eq!(key_of("/a", &[("X-Bot", "1")]), key_of("/a", &[]));
    // There, who has the field is sent to another origin than all others.
    assert_ne!(key_of("/shop/a", &[("X-Bot", "1")]), key_of("/shop/a", &[]));
}

#[test]
fn whatever_an_origin_is_asked_or_the_store_takes_otherwise_has_a_mark_of_its_own() {
    let changes: [fn(&mut Settings, &str); 6] = [
        |own, text| {
            let value = FieldText::parse(text).expect("a value");
            own.request_headers.set(field("X-Site"), value);
        },
        |own, text| own.set_ttl(StatusMatch::Any, text.len() as u64),
        |own, text| own.cookies.strip = vec![NamePattern::cookie(text).expect("a pattern")],
        |own, text| own.query.strip = vec![NamePattern::query(text).expect("a pattern")],
        |own, text| own.match_headers = vec![field(text)],
        |own, text| own.rewrite = Some(Rewrite::parse(&format!("/{text}")).expect("a rewrite")),
    ];
    let mut marks = BTreeSet::new();
    for change in changes {
        for text in ["a", "other"] {
            let mut settings = to(0);
            change(&mut settings, text);
            let policy = site_of(vec![when("", has("X-Beta"), settings)]);
            let asked = ask(&policy, with(get("/a"), &[("X-Beta", "1")]));
            assert!(asked.notes.apart != 0 && marks.insert(asked.notes.apart), "{text}");
        }
    }
}

#[test]
fn a_mark_in_keys_outlasts_a_reload() {
    let before = site_of(vec![when("", has("X-Beta"), to(1))]);
    let beta = |policy: &Declared| key(policy, &ask(policy, with(get("/a"), &[("X-Beta", "1")])));
    // The origin has another index now, and another origin has its.
    let moved = Settings { origin: 2, ..to(1) };
    let other = Settings { origin_name: "another".into(), ..to(1) };
    let after = site_of(vec![when("/x", has("X-C"), to(2)), when("", has("X-Beta"), moved)]);
    assert_eq!(beta(&before), beta(&after));
    let changed = site_of(vec![when("", has("X-Beta"), other)]);
    assert_ne!(beta(&before), beta(&changed));
}

#[test]
fn fields_that_say_where_a_client_is_can_be_looked_at() {
    let policy = site_of(vec![when("", has("CF-IPCountry"), to(1))]);
    assert_eq!(ask(&policy, with(get("/"), &[("CF-IPCountry", "DE")])).notes.origin, 1);
}

/// Routes with and without conditions, for some paths or all.
fn routes() -> impl Strategy<Value = Vec<RouteRules>> {
    let one = ("(/a\\*|/b|\\*)", 0..4_usize, 0..3_u32, any::<bool>(), any::<bool>());
    let made = one.prop_map(|(pattern, condition, origin, ignore, limits)| {
        let query = crate::rules::QueryRules { ignore, ..Default::default() };
        let mut settings = Settings { query, ..to(origin) };
        if limits {
            settings.response_headers.unset(field("Server"));
        }
        let mut route = route(&pattern, settings);
        match condition {
            0 => {}
            1 => route.scope.when.push(has("A")),
            2 => route.scope.when.push(has("B")),
            _ => {
                let mut when = Conditions::default();
                when.push(has("A"));
                let scope = RouteScope { when, ..RouteScope::default() };
                route.scope.when.push(Condition::Not(Box::new(scope)));
            }
        }
        route
    });
    prop::collection::vec(made, 0..5)
}

proptest! {
    #[test]
    fn one_key_means_one_origin_and_one_request(
        routes in routes(), path in "/(a|b|ab|b;x|a/../b)", query in "(\\?q=[12])?",
        first in prop::collection::vec("[AB]", 0..2), second in prop::collection::vec("[AB]", 0..2),
    ) {
        let policy = site_of(routes);
        let target = format!("{path}{query}");
        let asked = |names: &[String]| {
            let fields: Vec<_> = names.iter().map(|name| (name.as_str(), "1")).collect();
            ask(&policy, with(get(&target), &fields))
        };
        let (first, second) = (asked(&first), asked(&second));
        let are_looked_up = first.is_lookup() && second.is_lookup();
        if are_looked_up && key(&policy, &first) == key(&policy, &second) {
            prop_assert_eq!(first.notes.origin, second.notes.origin);
            prop_assert_eq!(first.target(), second.target());
        }
        // A purge of the URL names every target that has a mark in its key.
        for asked in [first, second] {
            let apart = policy.targets_apart(&get(&target));
            prop_assert!(asked.notes.apart == 0 || apart.contains(&asked.request.target));
        }
    }
}
