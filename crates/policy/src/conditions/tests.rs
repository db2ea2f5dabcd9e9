//! Conditions held against requests, and against a plain model.

use std::net::IpAddr;

use proptest::prelude::*;

use super::*;
use crate::acl::parse_net;
use crate::time_windows::TimeWindow;

fn request(target: &str, fields: &[(&str, &str)]) -> Request {
    let mut request = Request::new();
    request.target.extend_from_slice(target.as_bytes());
    for (name, value) in fields {
        request.headers.push_named(name.as_bytes(), value.as_bytes());
    }
    request
}

fn asked(request: &Request) -> RoutedRequest<'_> {
    let client = ConnectionPeer::Host(IpAddr::from([192, 0, 2, 7]));
    RoutedRequest { path: request.path(), request, client }
}

fn like(texts: &[&str]) -> WantedValue<TextPattern> {
    WantedValue::Like(texts.iter().map(|t| TextPattern::parse(t).expect("a pattern")).collect())
}

fn header(name: &str, wanted: WantedValue<TextPattern>) -> Condition {
    let name = FieldName::parse(name).expect("a name");
    Condition::Header(vec![NamedCondition { name, wanted }])
}

fn cookie(name: &str, wanted: WantedValue<TextPattern>) -> Condition {
    let name = NamePattern::cookie(name).expect("a name");
    Condition::Cookie(vec![NamedCondition { name, wanted }])
}

fn query(name: &str, wanted: WantedValue<ValuePattern>) -> Condition {
    let name = NamePattern::query(name).expect("a name");
    Condition::Query(vec![NamedCondition { name, wanted }])
}

#[test]
fn a_time_is_that_of_the_request() {
    let zone = |name: &str| Err(name.to_owned());
    let window = TimeWindow::parse("1970-01-02 00:00-00:01", zone).expect("a window");
    let condition = Condition::Time(Arc::new(TimeWindows::new(vec![window])));
    assert_eq!(condition.told(), "time 1970-01-02 00:00-00:01");
    let mut request = request("/", &[]);
    for (arrived_unix_ms, holds) in
        [(86_399_999, false), (86_400_000, true), (86_459_999, true), (86_460_000, false)]
    {
        request.arrived_unix_ms = arrived_unix_ms;
        assert_eq!(condition.holds(asked(&request)), holds, "{arrived_unix_ms}");
    }
}

#[test]
fn a_field_is_there_or_not_or_like_one_of_the_values() {
    for (condition, fields, holds) in [
        (header("X-Api", like(&["v2*", "v3"])), &[("X-Api", "v2.1")][..], true),
        (header("X-Api", like(&["v2*", "v3"])), &[("x-api", "v1"), ("X-API", "v3")], true),
        (header("X-Api", like(&["v2*", "v3"])), &[("X-Api", "v4")], false),
        (header("X-Api", like(&["v2*", "v3"])), &[], false),
        (header("X-Api", WantedValue::Present), &[("X-Api", "")], true),
        (header("X-Api", WantedValue::Present), &[("X-Api2", "")], false),
        (header("X-Api", WantedValue::Absent), &[("X-Api2", "")], true),
        (header("X-Api", WantedValue::Absent), &[("X-Api", "")], false),
        // CGI's descendants read it as the same name.
        (header("X-Api", WantedValue::Present), &[("X_Api", "1")], true),
        (header("X-Api", WantedValue::Absent), &[("x_api", "1")], false),
        (cookie("beta", WantedValue::Present), &[("Cookie", "a=b; beta=1")], true),
        (cookie("beta", WantedValue::Present), &[("Cookie", "a=beta")], false),
        (cookie("beta", like(&["on"])), &[("Cookie", "beta=off"), ("Cookie", "beta=on")], true),
        (cookie("beta", WantedValue::Absent), &[("Cookie", "beta=on")], false),
        (cookie("sess_*", WantedValue::Absent), &[("Cookie", "session=on")], true),
    ] {
        let request = request("/", fields);
        assert_eq!(condition.holds(asked(&request)), holds, "{condition} of {fields:?}");
    }
}

#[test]
fn a_parameter_is_read_as_an_application_reads_it() {
    let debug = || query("debug", WantedValue::Present);
    let value = |text| WantedValue::Like(vec![ValuePattern::parse(text).expect("a pattern")]);
    for (condition, target, holds) in [
        (debug(), "/?a=1&debug", true),
        (debug(), "/?debug=0", true),
        (debug(), "/?%64ebug=1", true),
        (debug(), "/?undebug=1", false),
        (debug(), "/debug", false),
        (query("debug", WantedValue::Absent), "/?%64ebug=1", false),
        (query("page", value("2")), "/?page=%32", true),
        (query("page", value("2")), "/?page=1&page=2", true),
        (query("page", value("~ ^[0-9]+$")), "/?page=x", false),
    ] {
        let request = request(target, &[]);
        assert_eq!(condition.holds(asked(&request)), holds, "{condition} of {target}");
    }
}

#[test]
fn a_client_is_known_by_its_address() {
    let of = |net| Condition::Client(ClientAddresses::new(vec![parse_net(net).expect("a net")]));
    let request = request("/", &[]);
    assert!(of("192.0.2.0/24").holds(asked(&request)));
    assert!(!of("198.51.100.0/24").holds(asked(&request)));
    // Nobody knows where it is.
    let unnamed = RoutedRequest { client: ConnectionPeer::Unnamed(None), ..asked(&request) };
    assert!(!of("0.0.0.0/0").holds(unnamed));
}

#[test]
fn a_user_agent_is_found_by_a_part_of_it_in_any_case() {
    let agents = UserAgents::parse(&["GPTBot", "head*chrome", "~ ^curl/[78]"]).expect("patterns");
    for (agent, which) in [
        ("Mozilla/5.0 (compatible; gptbot/1.1)", Some("GPTBot")),
        ("Mozilla/5.0 HeadlessChrome/140", Some("head*chrome")),
        ("curl/8.1", Some("~ ^curl/[78]")),
        ("Curl/8.1", None),
        ("xcurl/8.1", None),
        ("", None),
    ] {
        assert_eq!(agents.which(agent.as_bytes()), which, "{agent}");
        let request = request("/", &[("User-Agent", agent)]);
        let condition = Condition::UserAgent(agents.clone());
        assert_eq!(condition.holds(asked(&request)), which.is_some(), "{agent}");
    }
    for (bad, at) in [(&["a", ""][..], 1), (&["*"], 0), (&["~ ("], 0), (&["~ a)|(b"], 0)] {
        assert_eq!(UserAgents::parse(bad).map(|_| ()).map_err(|no| no.at), Err(at), "{bad:?}");
    }
}

#[test]
fn what_is_left_out_needs_all_of_its_parts() {
    let mut when = Conditions::default();
    when.push(header("X-A", WantedValue::Present));
    let paths = vec![PathPattern::parse("/a/*").expect("a pattern")];
    let not = Condition::Not(Box::new(RouteScope { paths, methods: Vec::new(), when }));
    for (target, fields, holds) in
        [("/a/b", &[("X-A", "1")][..], false), ("/a/b", &[], true), ("/b", &[("X-A", "1")], true)]
    {
        assert_eq!(not.holds(asked(&request(target, fields))), holds, "{target} {fields:?}");
    }
    assert_eq!(not.to_string(), "not (path /a/*, header X-A)");
}

#[test]
fn values_that_may_be_secrets_are_not_told() {
    let key = header("X-Key", like(&["s3cret"]));
    assert_eq!((key.told(), key.to_string()), of("header X-Key: (value)", "header X-Key: s3cret"));
    let cookie = cookie("beta", like(&["on", "yes"]));
    assert_eq!(
        (cookie.told(), cookie.to_string()),
        of("cookie beta=(value)", "cookie beta=on or yes")
    );
    fn of(told: &str, full: &str) -> (String, String) {
        (told.to_owned(), full.to_owned())
    }
}

#[test]
fn holding_a_request_against_conditions_takes_no_memory() {
    let mut when = Conditions::default();
    when.push(header("X-Api", like(&["v2*"])));
    when.push(cookie("beta", WantedValue::Absent));
    when.push(query("page", WantedValue::Present));
    when.push(Condition::UserAgent(UserAgents::parse(&["bot", "spider"]).expect("patterns")));
    let fields = [("X-Api", "v2"), ("User-Agent", "a spider"), ("Cookie", "a=b")];
    let request = request("/?page=1", &fields);
    assert!(when.hold(asked(&request)));
    let used = allocation_counter::measure(|| assert!(when.hold(asked(&request))));
    assert_eq!(used.count_total, 0);
}

/// Headers of a few names and values.
fn fields() -> impl Strategy<Value = Vec<(String, String)>> {
    prop::collection::vec(("[AB]", "[xy]{0,2}"), 0..4)
}

proptest! {
    #[test]
    fn conditions_hold_as_a_plain_model_says(
        fields in fields(), name in "[AB]", wanted in prop::collection::vec("[xy]{0,2}[*]?", 1..3),
    ) {
        let pairs: Vec<_> = fields.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        let request = request("/", &pairs);
        let texts: Vec<&str> = wanted.iter().map(String::as_str).collect();
        let is_like = |value: &str| wanted.iter().any(|text| match text.strip_suffix('*') {
            Some(start) => value.starts_with(start),
            None => value == text,
        });
        let own: Vec<_> = pairs.iter().filter(|(n, _)| *n == name).map(|(_, v)| *v).collect();
        let holds = |wanted| header(&name, wanted).holds(asked(&request));
        prop_assert_eq!(holds(like(&texts)), own.iter().any(|value| is_like(value)));
        prop_assert_eq!(holds(WantedValue::Present), !own.is_empty());
        prop_assert_eq!(holds(WantedValue::Absent), own.is_empty());
    }

    #[test]
    fn a_scope_covers_only_what_it_contains(
        fields in fields(), wide in "[AB]", narrow in "[AB]", more in any::<bool>(),
    ) {
        let scope = |names: &[&str]| {
            let mut when = Conditions::default();
            names.iter().for_each(|name| when.push(header(name, WantedValue::Present)));
            RouteScope { when, ..RouteScope::default() }
        };
        let narrow = if more { scope(&[&narrow, "B"]) } else { scope(&[&narrow]) };
        let wide = scope(&[&wide]);
        let pairs: Vec<_> = fields.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        let request = request("/", &pairs);
        if wide.covers(&narrow) && narrow.contains(asked(&request)) {
            prop_assert!(wide.contains(asked(&request)));
        }
        prop_assert!(narrow.covers(&narrow));
    }
}

#[test]
fn a_condition_looks_at_what_was_sent_and_not_at_forms() {
    let mut sent = request("/", &[("User-Agent", "GPTBot/1.2"), ("Accept-Language", "fr")]);
    let agent = Condition::UserAgent(UserAgents::parse(&["GPTBot"]).expect("patterns"));
    let conditions = [agent, header("Accept-Language", like(&["fr"]))];
    let rules = crate::vary::VaryRules {
        devices: Some(crate::vary::DeviceClasses::Two),
        ..crate::vary::VaryRules::default()
    };
    rules.normalise(&mut sent, false);
    // A fragment of a page is routed by a copy of its request.
    let fragment = sent.clone();
    for condition in conditions {
        assert!(condition.holds(asked(&sent)) && condition.holds(asked(&fragment)), "{condition}");
    }
}

#[test]
fn what_was_sent_meets_needs_though_a_form_is_in_its_place() {
    use super::needs::{JoinedLists, Part};

    let mut sent = request("/", &[("User-Agent", "GPTBot/1.2"), ("Accept-Language", "fr")]);
    let agents = UserAgents::parse(&["GPTBot"]).expect("patterns");
    let mut scope = RouteScope::default();
    scope.when.push(Condition::UserAgent(agents));
    scope.when.push(header("Accept_Language", like(&["fr"])));
    let lists = JoinedLists::of([&scope].into_iter());
    let needed = Part::ALL.map(|part| scope.needs(part).unwrap_or_default());
    let rules = crate::vary::VaryRules {
        devices: Some(crate::vary::DeviceClasses::Two),
        ..crate::vary::VaryRules::default()
    };
    rules.normalise(&mut sent, false);
    let fields = lists.cheap(&needed, asked(&sent))[Part::Field as usize];
    assert!(fields != 0 && lists.dear(Part::Agent, asked(&sent)) != 0);
}
