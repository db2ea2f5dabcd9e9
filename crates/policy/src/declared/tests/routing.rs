//! Tables of rules with all that rules can have, held against a plain model: the route that a
//! request belongs to, what becomes of its URL, and what is told of both.

mod model;

use message::{ClassifiedClient, ClientClass, ClientProof};
use testkit::geoip::{self, Datum};

use self::model::{Action, Chosen, Key, Named, Pair, Route, Scope, Spelling, Values, Visit};
use super::*;
use crate::CountryCode;
use crate::conditions::{
    ClientAddresses, ClientCountries, Condition, NamedCondition, UserAgents, WantedValue,
};
use crate::decision_steps::DecisionStep;
use crate::pattern::TextPattern;
use crate::policy_files::PolicyFiles;
use crate::rewrite::Rewrite;

fn values<V>(values: &Values, parse: fn(&str) -> V) -> WantedValue<V> {
    match values {
        Values::Any => WantedValue::Present,
        Values::None => WantedValue::Absent,
        Values::Like(texts) => WantedValue::Like(texts.iter().map(|text| parse(text)).collect()),
    }
}

fn tests<N, V>(
    all: &[Named],
    name: fn(&str) -> N,
    value: fn(&str) -> V,
) -> Vec<NamedCondition<N, V>> {
    let one =
        |own: &Named| NamedCondition { name: name(&own.name), wanted: values(&own.values, value) };
    all.iter().map(one).collect()
}

fn condition(key: &Key) -> Condition {
    let text = |text: &str| TextPattern::parse(text).expect("a pattern");
    match key {
        Key::Header(all) => Condition::Header(tests(all, field, text)),
        Key::Cookie(all) => Condition::Cookie(tests(all, cookie_name, text)),
        Key::Query(all) => Condition::Query(tests(all, query_name, |text| {
            ValuePattern::parse(text).expect("a pattern")
        })),
        Key::Client(nets) => {
            let nets = nets.iter().map(|net| parse_net(net).expect("a network"));
            Condition::Client(ClientAddresses::new(nets.collect()))
        }
        Key::Country(codes) => {
            let codes = codes.iter().map(|code| CountryCode::parse(code).expect("a code"));
            Condition::Country(ClientCountries::new(codes.collect()))
        }
        Key::UserAgent(texts) => {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            Condition::UserAgent(UserAgents::parse(&texts).expect("patterns"))
        }
        Key::Class(classes) => Condition::Class(classes.clone()),
        Key::Not(inner) => Condition::Not(Box::new(scope(inner))),
    }
}

fn scope(scope: &Scope) -> RouteScope {
    let paths = scope.paths.iter().map(|path| PathPattern::parse(path).expect("a pattern"));
    let methods = scope.methods.iter().map(|method| Method::from_token(method.as_bytes()));
    let mut own =
        RouteScope { paths: paths.collect(), methods: methods.collect(), ..RouteScope::default() };
    scope.keys.iter().for_each(|key| own.when.push(condition(key)));
    own
}

fn settings(action: &Action) -> Settings {
    let mut own = Settings::default();
    match action {
        Action::Nothing => {}
        Action::NoCache => own.cache = false,
        Action::Deny => {
            let all = ["0.0.0.0/0", "::/0"];
            own.deny = all.map(|net| parse_net(net).expect("a network")).to_vec();
        }
        Action::Rewrite(to) => own.rewrite = Some(Rewrite::parse(to).expect("a rewrite")),
        Action::Redirect(to) => {
            let redirect =
                Redirect::parse(Status::new(302).expect("three digits"), to).expect("a redirect");
            own.answer = Some(ConfiguredResponse::Redirect(redirect));
        }
    }
    own
}

fn name(number: usize) -> String {
    format!("r{number}")
}

fn policy(routes: &[Route]) -> Declared {
    let routes = routes.iter().enumerate().map(|(at, route)| RouteRules {
        name: name(at + 1),
        scope: scope(&route.scope),
        settings: settings(&route.action),
    });
    let of =
        |code| Datum::Map(vec![("country", Datum::Map(vec![("iso_code", Datum::Text(code))]))]);
    let database =
        geoip::database(&[(ip("192.0.2.0"), 24, of("SE")), (ip("2001:db8::"), 32, of("DE"))]);
    let countries = Some(Arc::new(Countries::read(database).expect("a database")));
    let files = PolicyFiles { countries, ..PolicyFiles::default() };
    Declared::with_files(SiteRules { routes: routes.collect(), ..SiteRules::default() }, &files)
}

fn request(visit: &Visit) -> Request {
    let query: Vec<_> = visit.query.iter().map(|p| format!("{}={}", p.name, p.value)).collect();
    let mark = if query.is_empty() { "" } else { "?" };
    let mut request = get(&format!("{}{mark}{}", visit.path.sent, query.join("&")));
    request.method = Method::from_token(visit.method.as_bytes());
    for field in &visit.fields {
        request.headers.push_named(field.name.as_bytes(), field.value.as_bytes());
    }
    if !visit.cookies.is_empty() {
        let cookies: Vec<_> =
            visit.cookies.iter().map(|pair| format!("{}={}", pair.name, pair.value)).collect();
        request.headers.push(HeaderId::Cookie, cookies.join("; ").as_bytes());
    }
    if let Some(agent) = &visit.agent {
        request.headers.push(HeaderId::UserAgent, agent.as_bytes());
    }
    request.client = visit.class.map(|class| ClassifiedClient {
        class,
        proof: ClientProof::Claimed,
        number: None,
    });
    request
}

/// The end of a request in the policy.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    /// Its path is refused, or what it would be rewritten to.
    BadPath,
    KeptOut,
    Redirected(String),
    /// It goes to the cache, or to the origin alone, which is asked for this.
    Served {
        target: String,
        is_lookup: bool,
    },
}

/// The fate of a request by the model.
fn expected(routes: &[Route], visit: &Visit) -> (Option<Chosen>, Fate) {
    let Some(chosen) = model::chosen(routes, visit) else { return (None, Fate::BadPath) };
    let route = |number: usize| number.checked_sub(1).map(|at| &routes[at]);
    let both = [Some(chosen.own), chosen.also].map(|number| route(number?));
    let any = |is: fn(&Action) -> bool| both.iter().flatten().any(|route| is(&route.action));
    let fate = if any(|action| matches!(action, Action::Deny)) {
        Fate::KeptOut
    } else {
        let captured = both[0].and_then(|own| own.scope.captures(&visit.path.sent));
        let captured = captured.unwrap_or_default();
        let sent = request(visit).target;
        let sent = String::from_utf8(sent).expect("a target");
        let is_read = matches!(visit.method.as_str(), "GET" | "HEAD");
        let is_lookup = is_read && !any(|action| matches!(action, Action::NoCache));
        let query = &sent[visit.path.sent.len()..];
        match both[0].map(|own| &own.action) {
            Some(Action::Redirect(to)) => {
                model::filled(to, &captured).map_or(Fate::BadPath, Fate::Redirected)
            }
            Some(Action::Rewrite(to)) => match model::filled(to, &captured) {
                Some(path) if !model::leads_upwards(&path) => {
                    Fate::Served { target: format!("{path}{query}"), is_lookup }
                }
                _ => Fate::BadPath,
            },
            _ => Fate::Served { target: sent, is_lookup },
        }
    };
    (Some(chosen), fate)
}

/// The fate of a request by the policy, with its notes and what is told.
fn actual(policy: &Declared, visit: &Visit) -> (Notes, Fate, Vec<DecisionStep>) {
    let asked = ask_from(policy, &visit.client, request(visit));
    let peer = ConnectionPeer::Host(ip(&visit.client));
    let (mut sent, mut notes) = (request(visit), Notes::default());
    let mut ctx = receive_ctx(&mut sent, peer, &mut notes);
    let (_, steps) = policy.explain(&mut ctx);
    let fate = match (asked.status(), &asked.verdict) {
        (Some(400), _) => Fate::BadPath,
        (Some(403), _) => Fate::KeptOut,
        (Some(302), _) => {
            let fields = &asked.synthetic().expect("an answer").fields;
            let location = fields.iter().find(|(name, _)| name == b"Location");
            let location = location.map(|(_, to)| String::from_utf8_lossy(to).into_owned());
            Fate::Redirected(location.expect("a redirect"))
        }
        (_, verdict) => {
            let is_lookup = matches!(verdict, ReceiveVerdict::Lookup);
            let (mut bereq, mut of_fetch) = (asked.request.clone(), asked.notes);
            let mut ctx = FetchCtx { request: &mut bereq, pass: !is_lookup, notes: &mut of_fetch };
            match policy.fetch(&mut ctx) {
                FetchVerdict::Fetch => {
                    let target = String::from_utf8(bereq.target).expect("a target");
                    Fate::Served { target, is_lookup }
                }
                FetchVerdict::Synth(_) => Fate::BadPath,
            }
        }
    };
    (asked.notes, fate, steps)
}

/// Checks what is told of the route of a request.
fn check_told(routes: &[Route], visit: &Visit, chosen: Chosen, steps: &[DecisionStep]) {
    let own = chosen.own;
    let step = steps.iter().find(|step| step.what == "route").expect("a step about the route");
    let fact = |wanted: &[&str]| {
        let found = step.facts.iter().find(|(name, _)| wanted.contains(name));
        found.map(|(_, text)| text.as_str()).unwrap_or_default()
    };
    let named = format!("`{}`", name(own));
    assert_eq!(step.why.starts_with(&named), own > 0, "{}", step.why);
    let keys = own.checked_sub(1).map(|at| &routes[at].scope.keys[..]).unwrap_or_default();
    let also = chosen.also.map(|also| if also > 0 { name(also) } else { "site".to_owned() });
    let also = also.map(|also| format!("`{also}`")).unwrap_or_default();
    assert_eq!(fact(&["held to as well"]), also);
    // The pattern and its parts are those of the path as it was sent.
    let scope = own.checked_sub(1).map(|at| &routes[at].scope);
    let captured = scope.and_then(|scope| scope.captures(&visit.path.sent)).unwrap_or_default();
    let pattern = scope.and_then(|scope| scope.pattern_of(&visit.path.sent)).unwrap_or_default();
    let each = captured.iter().enumerate();
    let captured: Vec<_> = each.map(|(at, part)| format!("${} = {part}", at + 1)).collect();
    assert_eq!((fact(&["path"]), fact(&["captures"])), (pattern, &captured.join(", ")[..]));
    let because = fact(&["because of"]);
    assert_eq!(because.is_empty(), keys.is_empty(), "{because}");
    assert!(keys.iter().all(|key| because.contains(key.words())), "{because}");
    let before = own.checked_sub(1).unwrap_or(routes.len());
    let not_met = fact(&["not met before", "not met"]);
    for (at, route) in routes[..before].iter().enumerate() {
        // A route that is not chosen though path and method are its own has a key that does not
        // hold.
        let fails = route.scope.is_for(visit, &visit.path.sent) && !route.scope.keys.is_empty();
        let fails = fails && !route.scope.has(visit, &visit.path.sent);
        assert_eq!(not_met.contains(&format!("`{}`:", name(at + 1))), fails, "{not_met}");
    }
    if let Some(answer) = steps.iter().find(|step| step.what == "answer") {
        let told = answer.facts.iter().find(|(name, _)| *name == "captures");
        let told = told.map(|(_, text)| text.clone()).unwrap_or_default();
        // Those that the redirect needs, or none if the path has too few.
        assert!(told.is_empty() || told == captured.join(", "), "{told}");
    }
}

fn pairs(name: &'static str, value: &'static str) -> impl Strategy<Value = Vec<Pair>> {
    let one = (name, value).prop_map(|(name, value)| Pair { name, value });
    prop::collection::vec(one, 0..3)
}

fn named(name: &'static str, like: &'static str) -> impl Strategy<Value = Vec<Named>> {
    let like = prop::collection::vec(like, 1..3).prop_map(Values::Like);
    let values = prop_oneof![1 => Just(Values::Any), 1 => Just(Values::None), 2 => like];
    let one = (name, values).prop_map(|(name, values)| Named { name, values });
    prop::collection::vec(one, 1..3)
}

fn some_of(texts: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    let one = prop::sample::select(texts).prop_map(str::to_owned);
    prop::collection::vec(one, 1..3)
}

fn paths() -> impl Strategy<Value = Vec<String>> {
    const PATTERNS: &[&str] = &[
        "/a",
        "/a/*",
        "/b/*",
        "/c*",
        "*.php",
        "*.css",
        "/*/c",
        "/a/**/c",
        "/b?c",
        "*",
        "/",
        "~ ^/([ab])/([0-9]+)$",
        "~* ^/A/.*D$",
        "~ b",
    ];
    prop_oneof![1 => Just(Vec::new()), 3 => some_of(PATTERNS)]
}

fn methods() -> impl Strategy<Value = Vec<String>> {
    prop_oneof![4 => Just(Vec::new()), 1 => some_of(&["GET", "HEAD", "POST", "PROPFIND"])]
}

fn key(depth: u32) -> BoxedStrategy<Key> {
    let classes = prop::sample::subsequence(ClientClass::ALL.to_vec(), 1..3);
    let plain = prop_oneof![
        named("(X-A|X_A|x-bc|B|Accept|accept_language)", "[xy*]{0,3}").prop_map(Key::Header),
        named("(a|b|ab|a\\*|\\*b|\\*)", "[xy*]{0,3}").prop_map(Key::Cookie),
        named("(q|r|qr|q\\*|\\*)", "[xy]{0,2}[*]?").prop_map(Key::Query),
        some_of(&["192.0.2.0/24", "192.0.2.7", "2001:db8::/32", "203.0.113.0/24"])
            .prop_map(Key::Client),
        some_of(&["SE", "DE", "FR"]).prop_map(Key::Country),
        prop::collection::vec("[ab]{1,2}([*]c)?", 1..3).prop_map(Key::UserAgent),
        classes.prop_map(Key::Class),
    ];
    if depth == 0 {
        return plain.boxed();
    }
    let inner = scopes(depth - 1).prop_filter("all requests", |scope| {
        !(scope.paths.is_empty() && scope.methods.is_empty() && scope.keys.is_empty())
    });
    prop_oneof![4 => plain, 1 => inner.prop_map(|scope| Key::Not(Box::new(scope)))].boxed()
}

fn scopes(depth: u32) -> BoxedStrategy<Scope> {
    let keys = prop::collection::vec(key(depth), 0..3);
    (paths(), methods(), keys)
        .prop_map(|(paths, methods, keys)| Scope { paths, methods, keys })
        .boxed()
}

fn actions() -> impl Strategy<Value = Action> {
    prop_oneof![
        4 => Just(Action::Nothing),
        1 => Just(Action::NoCache),
        1 => Just(Action::Deny),
        2 => "(/new|/\\$1|/x/\\$2/y|/\\$1/\\$2)".prop_map(|to| {
            // A part may begin with a slash, and no target with two.
            Action::Rewrite(format!("/to{to}"))
        }),
        1 => "(new|\\$1|\\$1-\\$2)".prop_map(|to| Action::Redirect(format!("https://to.test/x{to}"))),
    ]
}

/// Tables of few rules, which are looked at one by one, and of many.
fn tables() -> impl Strategy<Value = Vec<Route>> {
    let route = (scopes(1), actions()).prop_map(|(scope, action)| Route { scope, action });
    let route = route.boxed();
    prop_oneof![
        4 => prop::collection::vec(route.clone(), 0..6),
        4 => prop::collection::vec(route.clone(), 9..20),
        1 => prop::collection::vec(route, 60..140),
    ]
}

/// Paths that origins read in one way or in several.
fn spellings() -> impl Strategy<Value = Spelling> {
    let segments = prop::collection::vec("(a|b|c|bxc|12|A|d|x\\.php|s\\.css|d)", 0..4);
    (segments, 0..6_u8, 0..4_usize).prop_map(|(segments, kind, at)| {
        let plain = format!("/{}", segments.join("/"));
        let at = at.min(segments.len().saturating_sub(1));
        let with = |own: &str| {
            let mut all = segments.clone();
            if let Some(segment) = all.get_mut(at) {
                *segment = own.replace('S', segment);
            }
            format!("/{}", all.join("/"))
        };
        let (normal, literal) = (plain.clone(), plain.clone());
        let one = Spelling { sent: plain.clone(), normal, literal, lenient: None };
        if segments.is_empty() {
            return one;
        }
        match kind {
            0 => {
                let sent = with("S;p=1");
                let (normal, literal) = (sent.clone(), sent.clone());
                Spelling { sent, normal, literal, lenient: Some(plain) }
            }
            1 => {
                let sent = with("S%5cd");
                let (normal, literal) = (with("S\\d"), sent.clone());
                Spelling { sent, normal, literal, lenient: Some(with("S/d")) }
            }
            2 => {
                let sent = with("e/../S");
                Spelling { literal: sent.clone(), sent, ..one }
            }
            3 => {
                let sent = with("/S");
                Spelling { literal: sent.clone(), sent, ..one }
            }
            _ => one,
        }
    })
}

fn visits() -> impl Strategy<Value = Visit> {
    let client =
        prop::sample::select(&["192.0.2.7", "192.0.2.8", "2001:db8::1", "198.51.100.1"][..]);
    let method = prop::sample::select(&["GET", "GET", "GET", "HEAD", "POST", "PROPFIND"][..]);
    let head = (method, spellings(), pairs("(q|r|qr|s|%71|%72|q%72)", "[xy]{0,2}"));
    let fields = pairs("(X-A|x_a|X-BC|B|Accept|Accept-Language)", "[xy]{0,3}");
    let cookies = pairs("(a|b|ab|c)", "[xy]{0,3}");
    let agent = prop::option::of("[abcAB/]{1,6}");
    let class = prop::option::of(prop::sample::select(ClientClass::ALL.to_vec()));
    (head, fields, cookies, agent, client, class).prop_map(
        |((method, path, query), fields, cookies, agent, client, class)| Visit {
            method: method.to_owned(),
            path,
            query,
            fields,
            cookies,
            agent,
            client: client.to_owned(),
            class,
        },
    )
}

#[test]
fn the_route_of_a_request_is_found_without_memory() {
    let like = |text: &str| Values::Like(vec![text.to_owned()]);
    let one = |name: &str, values| vec![Named { name: name.to_owned(), values }];
    let scope = |path: &str, key| Scope {
        paths: vec![path.to_owned()],
        methods: Vec::new(),
        keys: vec![key],
    };
    let mut routes = Vec::new();
    for _ in 0..40 {
        for scope in [
            scope("/a/*/b", Key::Header(one("X-A", like("no*")))),
            scope("*", Key::Cookie(one("session", like("no")))),
            scope("*", Key::Query(one("q", like("no")))),
            scope("*", Key::UserAgent(vec!["bot".to_owned()])),
            scope("/shop/**/x?y", Key::Client(vec!["192.0.2.0/24".to_owned()])),
        ] {
            routes.push(Route { scope, action: Action::Nothing });
        }
    }
    let policy = policy(&routes);
    let fields = [("X-A", "yes"), ("Cookie", "session=yes"), ("User-Agent", "a browser")];
    let asked = with(get("/a/a/b?q=1"), &fields);
    let find = || policy.routes(&asked, ConnectionPeer::Host(ip("192.0.2.7"))).own;
    // The first search takes the memory that a thread has for it.
    assert_eq!(find(), 0);
    let used = allocation_counter::measure(|| assert_eq!(find(), 0));
    assert_eq!(used.count_total, 0);
}

proptest! {
    #[test]
    fn a_request_belongs_to_the_route_that_a_plain_model_says_and_that_is_told(
        routes in tables(), visits in prop::collection::vec(visits(), 1..9),
    ) {
        let policy = policy(&routes);
        for visit in visits {
            let (chosen, fate) = expected(&routes, &visit);
            let (notes, actual, steps) = actual(&policy, &visit);
            prop_assert_eq!(&actual, &fate, "{:?}", visit);
            let Some(Chosen { own, also }) = chosen else { continue };
            let noted_also = notes.also.map(|at| at as usize);
            let noted = Chosen { own: notes.route as usize, also: noted_also };
            prop_assert_eq!(noted, Chosen { own, also }, "{:?}", visit);
            check_told(&routes, &visit, Chosen { own, also }, &steps);
        }
    }
}
