//! Tests of the declared policy by its behaviour; `p1`, `p3`... are the numbers of probes for cache
//! poisoning and deception.

mod divided;
mod identifying;
mod routing;
mod spellings;
mod storing;

use crate::StoreUse;
use std::net::IpAddr;
use std::sync::Arc;

use base::{KeyBuf, Now};
use message::freshness::Freshness;
use message::store::StatusMatch;
use message::{Framing, HeaderId, Method, Request, Response, Scheme, Status, Upgrade};
use proptest::prelude::*;

use super::*;
use crate::acl::parse_net;
use crate::answer::{ConfiguredResponse, Redirect};
use crate::conditions::RouteScope;
use crate::header_changes::FieldText;
use crate::headers::FieldName;
use crate::pattern::{NamePattern, PathPattern};
use crate::peer::ConnectionPeer;
use crate::points::Synthetic;
use crate::rules::{Bypass, Profile, RouteRules, Settings, SiteRules};
use crate::value::ValuePattern;

const NOW: Now = Now { mono_ms: 0, unix_ms: 0 };

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn get(target: &str) -> Request {
    let mut request = Request::new();
    request.host.extend_from_slice(b"example.com");
    request.target.extend_from_slice(target.as_bytes());
    request.headers.push(HeaderId::Host, b"example.com");
    request
}

fn with(mut request: Request, fields: &[(&str, &str)]) -> Request {
    for (name, value) in fields {
        request.headers.push_named(name.as_bytes(), value.as_bytes());
    }
    request
}

fn site(settings: Settings) -> Declared {
    Declared::new(SiteRules { settings, ..SiteRules::default() })
}

fn rfc() -> Declared {
    Declared::new(SiteRules { profile: Profile::Rfc, ..SiteRules::default() })
}

fn route(pattern: &str, settings: Settings) -> RouteRules {
    let paths = vec![PathPattern::parse(pattern).expect("a pattern")];
    let scope = RouteScope { paths, ..RouteScope::default() };
    RouteRules { name: pattern.to_owned(), scope, settings }
}

fn routed(routes: Vec<RouteRules>) -> Declared {
    Declared::new(SiteRules { routes, ..SiteRules::default() })
}

fn cookie_name(text: &str) -> NamePattern {
    NamePattern::cookie(text).expect("a name")
}

fn query_name(text: &str) -> NamePattern {
    NamePattern::query(text).expect("a name")
}

fn field(name: &str) -> FieldName {
    FieldName::parse(name).expect("a name")
}

/// The result of a request.
struct Asked {
    verdict: ReceiveVerdict,
    notes: Notes,
    request: Request,
    rule: String,
}

impl Asked {
    fn target(&self) -> &str {
        std::str::from_utf8(&self.request.target).expect("UTF-8")
    }

    fn cookie(&self) -> Option<&str> {
        self.request.headers.value(HeaderId::Cookie).map(|v| std::str::from_utf8(v).expect("UTF-8"))
    }

    fn is_lookup(&self) -> bool {
        matches!(self.verdict, ReceiveVerdict::Lookup)
    }

    fn is_pass(&self) -> bool {
        matches!(self.verdict, ReceiveVerdict::Pass)
    }

    fn synthetic(&self) -> Option<&Synthetic> {
        match &self.verdict {
            ReceiveVerdict::Synth(synthetic) => Some(synthetic),
            _ => None,
        }
    }

    fn status(&self) -> Option<u16> {
        self.synthetic().map(|s| s.status.code())
    }
}

fn receive_ctx<'a>(
    request: &'a mut Request,
    client: ConnectionPeer,
    notes: &'a mut Notes,
) -> ReceiveCtx<'a> {
    ReceiveCtx { request, client, now: NOW, store: StoreUse::ByRules, notes }
}

fn ask_from(policy: &Declared, client: &str, mut request: Request) -> Asked {
    let mut notes = Notes::default();
    let client = ConnectionPeer::Host(ip(client));
    let told = tell(policy, client, request.clone());
    let mut ctx = receive_ctx(&mut request, client, &mut notes);
    let verdict = policy.receive(&mut ctx);
    assert_eq!(told, format!("{verdict:?} {notes:?} {request:?}"), "what is told is what is done");
    let rule = policy.rule_name(notes.rule).to_owned();
    Asked { verdict, notes, request, rule }
}

/// The result of a request, explained.
fn tell(policy: &Declared, client: ConnectionPeer, mut request: Request) -> String {
    let mut notes = Notes::default();
    let mut ctx = receive_ctx(&mut request, client, &mut notes);
    let (verdict, steps) = policy.explain(&mut ctx);
    let decided = steps.iter().filter(|step| step.decided).count();
    let wanted = usize::from(!matches!(verdict, ReceiveVerdict::Lookup));
    assert_eq!(decided, wanted, "one step settles it, unless the store does: {steps:?}");
    assert!(steps.iter().all(|step| !step.why.is_empty()), "{steps:?}");
    format!("{verdict:?} {notes:?} {request:?}")
}

fn ask(policy: &Declared, request: Request) -> Asked {
    ask_from(policy, "192.0.2.1", request)
}

/// The whole key, as `flow` makes it.
fn key(policy: &Declared, asked: &Asked) -> Vec<u8> {
    let mut key = KeyBuf::new();
    key.field(asked.request.scheme.as_str().as_bytes());
    key.field(&asked.request.host);
    key.field(&asked.request.target);
    policy.key(&asked.request, &asked.notes, &mut key);
    key.bytes().to_vec()
}

fn fetched(policy: &Declared, asked: &Asked) -> Request {
    let (mut request, mut notes) = (asked.request.clone(), asked.notes);
    let mut ctx = FetchCtx { request: &mut request, pass: false, notes: &mut notes };
    assert!(matches!(policy.fetch(&mut ctx), FetchVerdict::Fetch));
    request
}

#[test]
fn get_and_head_are_looked_up_and_other_methods_pass() {
    let policy = site(Settings::default());
    for method in [Method::Get, Method::Head] {
        let asked = ask(&policy, Request { method, ..get("/") });
        assert!(asked.is_lookup() && !asked.notes.personal);
        assert_eq!(asked.rule, "cache");
    }
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND", "get"] {
        let request =
            Request { method: Method::from_token(method.as_bytes()), ..get("/?utm_source=x") };
        let asked = ask(&policy, with(request, &[("Cookie", "_ga=1")]));
        assert!(asked.is_pass(), "{method}");
        assert_eq!((asked.target(), asked.cookie()), ("/?utm_source=x", Some("_ga=1")));
        assert_eq!(asked.rule, "method");
    }
}

#[test]
fn purge_and_trace_are_refused_on_the_data_port_and_connect_is_not_implemented() {
    let policy = site(Settings::default());
    for method in [Method::Purge, Method::Ban, Method::Trace] {
        let asked = ask(&policy, Request { method, ..get("/") });
        assert_eq!(asked.status(), Some(405));
        let fields = &asked.synthetic().expect("an answer").fields;
        assert!(
            fields.iter().any(|(name, value)| name == b"Allow" && value.starts_with(b"GET, HEAD"))
        );
        assert_eq!(asked.rule, "method refused");
    }
    let asked = ask(&policy, Request { method: Method::Connect, ..get("/") });
    assert!(asked.synthetic().is_some_and(|s| s.status.code() == 501 && s.close));
}

#[test]
fn p1_what_speaks_for_a_proxy_is_removed_and_made_anew_from_the_canonical_request() {
    let policy = site(Settings::default());
    let forged = [
        ("X-Forwarded-For", "203.0.113.9"),
        ("X-Forwarded-Host", "evil.example"),
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-Port", "1337"),
        ("X-Host", "evil.example"),
        ("Forwarded", "host=evil.example"),
        ("X-Original-URL", "/admin"),
        ("X-HTTP-Method-Override", "DELETE"),
        ("Client-Cert", ":evil:"),
        ("Proxy", "evil.example"),
    ];
    let mut request = with(get("/"), &forged);
    request.port = Some(8080);
    let asked = ask(&policy, request);
    assert_eq!(asked.request.headers.len(), 1, "only Host is left");
    assert_eq!(asked.request.scheme, Scheme::Http);
    let sent = fetched(&policy, &asked);
    let fields: Vec<_> = sent.headers.iter().map(|f| (f.name, f.value)).collect();
    let expected: [(&[u8], &[u8]); 6] = [
        (b"Host", b"example.com"),
        (b"X-Forwarded-For", b"192.0.2.1"),
        (b"X-Real-IP", b"192.0.2.1"),
        (b"X-Forwarded-Proto", b"http"),
        (b"X-Forwarded-Port", b"8080"),
        (b"X-Forwarded-Host", b"example.com:8080"),
    ];
    assert_eq!(fields, expected);
}

#[test]
fn p1_a_trusted_proxy_names_client_and_scheme_and_nothing_else() {
    let trusted_proxies = vec![parse_net("10.0.0.0/8").expect("a block")];
    let settings = Settings {
        deny: vec![parse_net("203.0.113.0/24").expect("a block")],
        ..Settings::default()
    };
    let policy = Declared::new(SiteRules { trusted_proxies, settings, ..SiteRules::default() });
    let said = [
        ("X-Forwarded-For", "198.51.100.7, 10.0.0.2"),
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-Host", "evil.example"),
    ];
    let asked = ask_from(&policy, "10.0.0.1", with(get("/"), &said));
    let sent = fetched(&policy, &asked);
    let told = sent.headers.value(HeaderId::XForwardedFor);
    assert_eq!(told, Some(&b"198.51.100.7, 10.0.0.2, 10.0.0.1"[..]));
    assert_eq!(sent.headers.value(HeaderId::XForwardedProto), Some(&b"https"[..]));
    assert_eq!(sent.headers.value(HeaderId::XForwardedHost), Some(&b"example.com"[..]));
    let plain = ask_from(&policy, "10.0.0.1", get("/"));
    assert_ne!(key(&policy, &asked), key(&policy, &plain), "the scheme is in the key");
    let kept_out = with(get("/"), &[("X-Forwarded-For", "203.0.113.9")]);
    assert_eq!(ask_from(&policy, "10.0.0.1", kept_out.clone()).status(), Some(403));
    assert!(ask_from(&policy, "192.0.2.1", kept_out).is_lookup());
}

#[test]
fn p2_user_agent_and_language_are_left_to_vary() {
    let policy = site(Settings::default());
    let plain = ask(&policy, get("/"));
    let dressed = with(get("/"), &[("User-Agent", "x"), ("Accept-Language", "de")]);
    let dressed = ask(&policy, dressed);
    assert_eq!(key(&policy, &plain), key(&policy, &dressed));
    assert_eq!(dressed.request.headers.len(), 3);
}

#[test]
fn p3_a_get_with_a_body_passes() {
    let policy = site(Settings::default());
    for framing in [Framing::Length(6), Framing::Length(0), Framing::Chunked] {
        let asked = ask(&policy, Request { framing, ..get("/?a=1") });
        assert!(asked.is_pass());
        assert_eq!(asked.rule, "request body");
    }
}

#[test]
fn a_wish_to_upgrade_goes_on_when_it_is_allowed_and_is_overheard_otherwise() {
    let mqtt = message::upgrade::Protocol::parse("mqtt").expect("a protocol");
    let policy = site(Settings { upgrade: vec![mqtt], ..Settings::default() });
    for (asked, granted) in [("h2c, MQTT", true), ("websocket", false)] {
        let wish = Request { upgrade: Upgrade::Asked, ..get("/") };
        let asked = ask(&policy, with(wish, &[("Upgrade", asked)]));
        assert_eq!(asked.request.upgrade == Upgrade::Granted, granted);
        assert_eq!(matches!(asked.verdict, ReceiveVerdict::Upgrade), granted);
        let rule = if granted { "upgrade" } else { "cache" };
        assert_eq!(asked.rule, rule);
        let sent = asked.request.headers.value(HeaderId::Upgrade);
        assert!(!granted || sent == Some(&b"mqtt"[..]));
    }
}

#[test]
fn p4_parameters_are_split_at_ampersands_only_and_removed_from_the_forwarded_request_too() {
    let policy = site(Settings::default());
    for (sent, forwarded) in [
        ("/?x=1&utm_content=a;x=evil", "/?x=1"),
        ("/?x=1&utm_content=a&x=2", "/?x=1&x=2"),
        ("/?x=1;utm_content=a", "/?x=1;utm_content=a"),
        ("/?x=1?utm_content=2", "/?x=1?utm_content=2"),
        ("/?gclid=1", "/"),
        ("/?%75tm_content=a", "/?%75tm_content=a"),
        ("/?b=2&a=1", "/?b=2&a=1"),
    ] {
        let asked = ask(&policy, get(sent));
        assert_eq!(asked.target(), forwarded);
        assert_eq!(fetched(&policy, &asked).target, forwarded.as_bytes());
    }
    assert_eq!(ask(&rfc(), get("/?utm_source=x")).target(), "/?utm_source=x");
}

#[test]
fn queries_are_stripped_sorted_or_ignored_as_set() {
    let mut settings = Settings::default();
    settings.query.strip = vec![query_name("sid"), query_name("dbg_*")];
    settings.query.sort = true;
    let policy = site(settings.clone());
    assert_eq!(ask(&policy, get("/?z=1&sid=2&a=3&dbg_x&a=1&utm_id=4")).target(), "/?a=3&a=1&z=1");
    settings.query.strip_tracking = Some(false);
    assert_eq!(ask(&site(settings.clone()), get("/?utm_id=4&a")).target(), "/?a&utm_id=4");
    settings.query.ignore = true;
    assert_eq!(ask(&site(settings), get("/a?z=1?y")).target(), "/a");
}

#[test]
fn p5_key_fields_cannot_run_into_each_other() {
    let mut settings = Settings::default();
    settings.cookies.key = vec!["a".to_owned(), "b".to_owned()];
    let policy = site(settings);
    let cookies =
        ["", "a=", "a=1", "a=1; a=", "a=; a=1", "b=1", "a=1; b=1", "a=0", "a=10", "a=1; a=0"];
    let keys: Vec<_> = cookies
        .iter()
        .map(|cookie| key(&policy, &ask(&policy, with(get("/"), &[("Cookie", cookie)]))))
        .collect();
    for (at, key) in keys.iter().enumerate() {
        assert!(!keys[..at].contains(key), "{}", cookies[at]);
    }
    assert_eq!(keys[0], key(&policy, &ask(&policy, get("/"))), "no cookie is no cookie");
}

#[test]
fn p7_and_p8_a_path_that_another_route_could_claim_is_refused() {
    let policy = routed(vec![
        route("/static/*", Settings::default()),
        route("/account*", Settings { cache: false, ..Settings::default() }),
        route("/caf\u{e9}/*", Settings::default()),
        route("*.css", Settings::default()),
    ]);
    for ambiguous in [
        "/static/../account",
        "/static/..%2faccount",
        "/static/%2e%2e/account",
        "/static%2fx",
        "/%61ccount",
        "//account",
        "/x/../account",
        "/./account",
        "/account%2f..%2fx",
        "/x%2ecss",
        "/%00",
        "/account%00.css",
        "/account%0a.css",
        "/account%zz",
        "/..",
    ] {
        let asked = ask(&policy, get(ambiguous));
        assert_eq!(
            (asked.status(), asked.rule.as_str()),
            (Some(400), "ambiguous path"),
            "{ambiguous}"
        );
    }
    for (plain, route) in [
        ("/account", "/account*"),
        ("/account/x.css", "/account*"),
        ("/account;x.css", "/account*"),
        ("/account%2fx.css", "/account*"),
        ("/account%23.css", "/account*"),
        ("/account%3f.css", "/account*"),
        ("/account%20x", "/account*"),
        ("/static/a/../b", "/static/*"),
        ("/caf%C3%A9/menu", "/caf\u{e9}/*"),
        ("/a%2fb/../c", "site"),
        ("/a//b", "site"),
    ] {
        let asked = ask(&policy, get(plain));
        assert_eq!(policy.route_name(asked.notes.route), route, "{plain}");
        assert_eq!(asked.target(), plain, "key and forwarded path are the bytes received");
    }
}

#[test]
fn p8_no_ending_of_a_path_makes_it_cacheable() {
    let policy = site(Settings::default());
    for path in ["/account/x.css", "/account.ico", "/account;x.css", "/account$x.css"] {
        let asked = ask(&policy, with(get(path), &[("Cookie", "session=1")]));
        assert!(asked.notes.personal, "{path}");
        assert!(policy.store_rules(&asked.notes).default_lifetime_ms.is_empty());
    }
}

#[test]
fn p11_an_override_of_the_method_never_reaches_the_origin() {
    let policy = site(Settings::default());
    for method in [Method::Get, Method::Post] {
        let request = Request { method, ..get("/") };
        let asked = ask(&policy, with(request, &[("X-HTTP-Method-Override", "DELETE")]));
        assert_eq!(fetched(&policy, &asked).headers.value_named(b"X-HTTP-Method-Override"), None);
    }
}

#[test]
fn p12_cookies_that_do_not_count_split_no_variants() {
    let policy = site(Settings::default());
    let asked =
        ask(&policy, with(get("/"), &[("Cookie", "_ga=GA1.2; _fbp=x"), ("Cookie", "_gid=3")]));
    assert_eq!(asked.cookie(), None);
    assert!(asked.is_lookup() && !asked.notes.personal);
}

#[test]
fn p13_set_cookie_is_stored_in_the_rfc_profile_only() {
    let notes = Notes::default();
    assert!(!site(Settings::default()).store_rules(&notes).store_set_cookie);
    assert!(rfc().store_rules(&notes).store_set_cookie);
}

#[test]
fn p14_authorization_and_cookies_make_a_request_personal() {
    let (safe, rfc) = (site(Settings::default()), rfc());
    for (fields, in_safe, in_rfc) in [
        (&[][..], false, false),
        (&[("Authorization", "Basic x")], true, false),
        (&[("Cookie", "session=1")], true, false),
        (&[("Cookie", "_ga=1; session=1")], true, false),
        (&[("Cookie", "_ga=1")], false, false),
        (&[("Cookie", "nameless")], true, false),
    ] {
        assert_eq!(ask(&safe, with(get("/"), fields)).notes.personal, in_safe, "{fields:?}");
        assert_eq!(ask(&rfc, with(get("/"), fields)).notes.personal, in_rfc, "{fields:?}");
    }
    let kept = ask(&rfc, with(get("/"), &[("Cookie", "_ga=1; session=1")]));
    assert_eq!(kept.cookie(), Some("_ga=1; session=1"));
}

#[test]
fn cookies_are_stripped_and_keyed_as_set() {
    let mut settings = Settings::default();
    settings.cookies.strip = vec![cookie_name("banner"), cookie_name("ab_*")];
    settings.cookies.key = vec!["lang".to_owned()];
    let policy = site(settings);
    let asked = |cookies| ask(&policy, with(get("/"), &[("Cookie", cookies)]));
    let german = asked("banner=1; lang=de; ab_1=x; _ga=2");
    assert_eq!(german.cookie(), Some("lang=de"));
    assert!(german.is_lookup() && !german.notes.personal);
    assert_eq!(key(&policy, &german), key(&policy, &asked("lang=de")));
    assert_ne!(key(&policy, &german), key(&policy, &asked("lang=en")));
    assert_ne!(key(&policy, &german), key(&policy, &asked("Lang=de")));
    assert!(asked("lang=de; session=1").notes.personal);
}

#[test]
fn bypass_rules_look_at_the_canonical_request_and_name_themselves() {
    let settings = Settings {
        bypass: vec![
            Bypass::Path(PathPattern::parse("/wp-admin/*").expect("a pattern")),
            Bypass::Cookie(cookie_name("wordpress_logged_in*")),
            Bypass::Header(field("X-Requested-With"), Some(b"XMLHttpRequest".to_vec())),
            Bypass::Header(field("X-Preview"), None),
            Bypass::Query(query_name("preview*"), None),
            Bypass::Query(
                query_name("title"),
                Some(ValuePattern::parse("~* ^special:").expect("a pattern")),
            ),
        ],
        ..Settings::default()
    };
    let policy = site(settings);
    for (request, rule) in [
        (get("/wp-admin/x"), "bypass path /wp-admin/*"),
        (get("/wp%2dadmin/x"), "bypass path /wp-admin/*"),
        (get("/x/../wp-admin/x"), "bypass path /wp-admin/*"),
        (get("/wp-admin/x/../../y"), "bypass path /wp-admin/*"),
        (
            with(get("/"), &[("Cookie", "a=b; wordpress_logged_in_7=x")]),
            "bypass cookie wordpress_logged_in*",
        ),
        (
            with(get("/"), &[("x-requested-with", "XMLHttpRequest")]),
            "bypass header X-Requested-With: (value)",
        ),
        (with(get("/"), &[("X-PREVIEW", "")]), "bypass header X-Preview"),
        (get("/?a=1&preview_id=2"), "bypass query preview*"),
        (get("/?a=1&title=Special%3aLogin"), "bypass query title=~* ^special:"),
    ] {
        let asked = ask(&policy, request);
        assert!(asked.is_pass(), "{rule}");
        assert_eq!(asked.rule, rule);
    }
    for request in [
        get("/wp-admin"),
        get("/?a=preview"),
        get("/?title&a=special:"),
        with(get("/"), &[("X-Requested-With", "fetch")]),
    ] {
        assert!(ask(&policy, request).is_lookup());
    }
}

#[test]
fn header_fields_are_keyed_as_set() {
    let policy = site(Settings { key_headers: vec![field("Store")], ..Settings::default() });
    let asked = |fields: &[(&str, &str)]| ask(&policy, with(get("/"), fields));
    let german = asked(&[("Store", "de")]);
    assert!(german.is_lookup() && !german.notes.personal);
    assert_eq!(key(&policy, &german), key(&policy, &asked(&[("store", "de"), ("Accept", "*/*")])));
    for other in [&[("Store", "en")][..], &[], &[("Store", "d"), ("Store", "e")]] {
        assert_ne!(key(&policy, &german), key(&policy, &asked(other)), "{other:?}");
    }
}

#[test]
fn any_query_bypasses_only_when_tracking_left_one() {
    let policy = site(Settings { bypass: vec![Bypass::AnyQuery], ..Settings::default() });
    assert!(ask(&policy, get("/?s=shoes")).is_pass());
    assert!(ask(&policy, get("/?utm_source=mail")).is_lookup());
    assert!(ask(&policy, get("/")).is_lookup());
}

#[test]
fn the_first_route_that_matches_counts_and_the_site_is_the_last() {
    let mut posts = route("/a/*", Settings { origin: 1, ..Settings::default() });
    posts.scope.methods = vec![Method::Post];
    let off = Settings { origin: 2, cache: false, ..Settings::default() };
    let later = Settings { origin: 3, ..Settings::default() };
    let policy = routed(vec![posts, route("/a/*", off), route("/a/b", later)]);
    let asked = ask(&policy, get("/a/b?c=1"));
    assert_eq!(
        (asked.notes.origin, asked.notes.route, asked.rule.as_str()),
        (2, 2, "cache = false")
    );
    let asked = ask(&policy, Request { method: Method::Post, ..get("/a/b") });
    assert_eq!((asked.notes.origin, policy.route_name(asked.notes.route)), (1, "/a/*"));
    let asked = ask(&policy, get("/b"));
    assert_eq!((asked.notes.origin, policy.route_name(asked.notes.route)), (0, "site"));
}

#[test]
fn routes_have_store_rules_of_their_own() {
    let mut settings = Settings { grace_ms: Some(0), heuristic_ms: Some(0), ..Settings::default() };
    settings.set_ttl(StatusMatch::Any, 1000);
    settings.set_ttl(StatusMatch::Any, 2000);
    settings.honour_request_directives = Some(true);
    let policy = routed(vec![route("/slow*", settings)]);
    let rules = |path| policy.store_rules(&ask(&policy, get(path)).notes).clone();
    let (slow, site) = (rules("/slow/x"), rules("/"));
    assert_eq!(slow.default_lifetime_ms, [(StatusMatch::Any, 2000)]);
    assert!(!slow.heuristic && slow.honour_request_no_store);
    assert_eq!(slow.grace_ms, 0);
    assert_eq!(site, message::store::StoreRules::safe());
    assert_eq!(rfc().store_rules(&Notes::default()), &message::store::StoreRules::rfc());
}

#[test]
fn clients_are_let_in_or_kept_out_by_address() {
    let net = |text| parse_net(text).expect("a block");
    let settings = Settings {
        allow: vec![net("192.0.2.0/24")],
        deny: vec![net("192.0.2.128/25")],
        ..Settings::default()
    };
    let policy = site(settings);
    assert!(ask_from(&policy, "192.0.2.1", get("/")).is_lookup());
    for stranger in ["192.0.2.200", "198.51.100.1", "2001:db8::1"] {
        let asked = ask_from(&policy, stranger, get("/"));
        assert_eq!((asked.status(), asked.rule.as_str()), (Some(403), "access"), "{stranger}");
    }
}

#[test]
fn routes_answer_themselves_when_told_to() {
    let status = Status::new(301).expect("three digits");
    let redirect = Redirect::parse(status, "https://$host$path$query").expect("a redirect");
    let fixed =
        Synthetic { status: Status::OK, fields: Vec::new(), body: b"ok".to_vec(), close: false };
    let answer = |answer| Settings { answer: Some(answer), ..Settings::default() };
    let policy = routed(vec![
        route("/old/*", answer(ConfiguredResponse::Redirect(redirect))),
        route("/health", answer(ConfiguredResponse::Fixed(Arc::new(fixed.clone())))),
    ]);
    let asked = ask(&policy, get("/old/x?y"));
    let location = (b"Location".to_vec(), b"https://example.com/old/x?y".to_vec());
    assert_eq!((asked.status(), asked.rule.as_str()), (Some(301), "answer"));
    assert_eq!(asked.synthetic().expect("an answer").fields, [location]);
    assert_eq!(ask(&policy, get("/health")).synthetic(), Some(&fixed));
    let mut nameless = get("/old/x");
    nameless.host.clear();
    assert_eq!(ask(&policy, nameless).status(), Some(400));
}

#[test]
fn header_changes_reach_origin_and_client() {
    let mut settings = Settings::default();
    settings.request_headers.set(field("X-Site"), FieldText::parse("shop").expect("a value"));
    settings.request_headers.unset(field("X-Forwarded-Host"));
    settings.response_headers.unset(field("Server"));
    let policy = routed(vec![route("/shop/*", settings)]);
    let asked = ask(&policy, get("/shop/x"));
    let sent = fetched(&policy, &asked);
    assert_eq!(sent.headers.value_named(b"x-site"), Some(&b"shop"[..]));
    assert!(!sent.headers.contains(HeaderId::XForwardedHost));
    assert!(policy.shapes_delivery(&asked.notes) && !policy.shapes_delivery(&Notes::default()));
    let mut response = Response::new(Status::OK);
    response.headers.push(HeaderId::Server, b"Apache");
    let (request, notes) = (&asked.request, &asked.notes);
    let matched = &MatchedRules::default();
    policy.deliver(&mut DeliverCtx { request, response: &mut response, hit: true, matched, notes });
    assert!(response.headers.is_empty());
}

/// The verdict on a response that is ten seconds old and has a lifetime of a minute.
fn hit(policy: &Declared, request: &Request, notes: &Notes) -> HitVerdict {
    let freshness = &Freshness {
        born_ms: 0,
        lifetime_ms: 60_000,
        grace_ms: 0,
        stale_if_error_ms: 0,
        stale_if_unreachable_ms: 0,
        must_validate: false,
    };
    policy.hit(&HitCtx { request, notes, freshness, now_ms: 10_000 })
}

#[test]
fn a_client_reloads_only_where_requests_are_honoured() {
    let (safe, rfc) = (site(Settings::default()), rfc());
    for (name, value, reloads) in [
        ("Cache-Control", "no-cache", true),
        ("Cache-Control", "no-store", true),
        ("Cache-Control", "max-age=0", true),
        ("Cache-Control", "max-age=60", false),
        ("Cache-Control", "max-age=5", true),
        ("Cache-Control", "min-fresh=60", true),
        ("Pragma", "no-cache", true),
        ("Accept", "*/*", false),
    ] {
        let asked = ask(&rfc, with(get("/"), &[(name, value)]));
        let expected = if reloads { HitVerdict::Miss } else { HitVerdict::Deliver };
        assert_eq!(hit(&rfc, &asked.request, &asked.notes), expected, "{name}: {value}");
        let safe = hit(&safe, &asked.request, &asked.notes);
        assert_eq!(safe, HitVerdict::Deliver, "{name}: {value}");
    }
    let both = with(get("/"), &[("Pragma", "no-cache"), ("Cache-Control", "max-age=60")]);
    assert_eq!(hit(&rfc, &both, &Notes::default()), HitVerdict::Deliver);
}

#[test]
fn notes_of_another_policy_do_no_harm() {
    let policy = site(Settings::default());
    let notes = Notes { route: 99, rule: 99, ..Notes::default() };
    assert!(!policy.shapes_delivery(&notes));
    assert_eq!((policy.rule_name(99), policy.route_name(99)), ("", ""));
}

/// A browser's request, as most hits are.
fn browser(target: &str) -> Request {
    let fields = [
        ("Connection", "keep-alive"),
        ("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"),
        ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
        ("Accept-Language", "en-US,en;q=0.5"),
        ("Accept-Encoding", "gzip, deflate, br, zstd"),
        ("Upgrade-Insecure-Requests", "1"),
        ("Sec-Fetch-Dest", "document"),
        ("Sec-Fetch-Mode", "navigate"),
    ];
    with(get(target), &fields)
}

fn busy_site() -> Declared {
    let cache = Settings { cache: false, ..Settings::default() };
    routed(vec![
        route("/shop/*", Settings::default()),
        route("/cart*", cache),
        route("*.php", Settings::default()),
    ])
}

#[test]
fn an_ordinary_request_is_decided_without_allocating() {
    let policy = busy_site();
    let mut request = browser("/blog/2026/a-page-about-something?page=2");
    let (mut notes, mut key) = (Notes::default(), KeyBuf::new());
    let allocated = allocation_counter::measure(|| {
        let client = ConnectionPeer::Host(ip("192.0.2.1"));
        let mut ctx = receive_ctx(&mut request, client, &mut notes);
        assert!(matches!(policy.receive(&mut ctx), ReceiveVerdict::Lookup));
        policy.key(&request, &notes, &mut key);
        assert_eq!(hit(&policy, &request, &notes), HitVerdict::Deliver);
        assert!(!policy.shapes_delivery(&notes));
    });
    assert_eq!(allocated.count_total, 0);
}

fn noise() -> impl Strategy<Value = Vec<(String, String)>> {
    let names = prop::sample::select(vec![
        "Cookie",
        "X-Forwarded-Host",
        "x_forwarded_for",
        "Forwarded",
        "Proxy",
        "Accept",
        "X-Host",
        "Authorization",
        "X-Rewrite-URL",
    ]);
    let values = prop::sample::select(vec![
        "",
        "evil",
        "_ga=1",
        "sid=2; _gid=3",
        "lang=de; _ga=4",
        ";;=;",
        "_fbp",
        "a=b=c",
    ]);
    prop::collection::vec((names.prop_map(str::to_owned), values.prop_map(str::to_owned)), 0..6)
}

fn request_of(target: &str, fields: &[(String, String)]) -> Request {
    let fields: Vec<_> = fields.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    with(get(target), &fields)
}

fn keyed_site() -> Declared {
    let mut settings = Settings::default();
    settings.cookies.key = vec!["lang".to_owned()];
    settings.query.sort = true;
    let mut rules = SiteRules { settings, ..SiteRules::default() };
    rules.routes =
        vec![route("/a/*", rules.settings.inherit()), route("~ b$", rules.settings.inherit())];
    Declared::new(rules)
}

proptest! {
    #[test]
    fn the_canonical_form_is_final(target in "/[ab/%2e.]{0,8}([?](utm_a=1|b=2|a|&|;|[?]|=){0,5})?", fields in noise()) {
        let policy = keyed_site();
        let once = ask(&policy, request_of(&target, &fields));
        let twice = ask(&policy, once.request.clone());
        prop_assert_eq!(&once.request.target, &twice.request.target);
        prop_assert_eq!(once.cookie(), twice.cookie());
        prop_assert_eq!(once.status(), twice.status());
        prop_assert_eq!(key(&policy, &once), key(&policy, &twice));
        prop_assert_eq!(once.notes.personal, twice.notes.personal);
    }

    #[test]
    fn what_is_shared_depends_on_nothing_outside_the_key(
        target in "/[ab/]{0,4}([?](utm_a=1|b=2|a)(&(utm_a=1|b=2|a)){0,2})?", a in noise(), b in noise(),
    ) {
        let policy = keyed_site();
        let (a, b) = (ask(&policy, request_of(&target, &a)), ask(&policy, request_of(&target, &b)));
        if a.is_lookup() && b.is_lookup() && !a.notes.personal && !b.notes.personal {
            let cookies = |asked: &Asked| {
                let lines = asked.request.headers.values(HeaderId::Cookie);
                let pairs = cookie::pairs(lines).map(|p| (p.name.to_vec(), p.value.to_vec()));
                pairs.collect::<Vec<_>>()
            };
            prop_assert_eq!(cookies(&a) == cookies(&b), key(&policy, &a) == key(&policy, &b));
            let keyed = [HeaderId::Accept, HeaderId::Host, HeaderId::Cookie];
            let unkeyed = |f: &message::header::Field<'_>| !keyed.contains(&f.id);
            prop_assert_eq!(a.request.headers.iter().filter(unkeyed).count(), 0);
        }
    }

    #[test]
    fn no_bytes_of_a_path_or_cookie_cause_a_panic(
        path in prop::collection::vec(any::<u8>(), 0..40),
        cookie in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let mut request = get("/");
        request.target.extend_from_slice(&path);
        request.headers.push(HeaderId::Cookie, &cookie);
        let policy = keyed_site();
        let asked = ask(&policy, request);
        key(&policy, &asked);
        fetched(&policy, &asked);
    }
}
