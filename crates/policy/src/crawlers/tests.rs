//! Tests of the routes that rules for crawlers stand for.

use crate::StoreUse;
use base::{KeyBuf, Now};
use message::{ClassifiedClient, ClientProof, Request};

use super::*;
use crate::policy_files::RedirectFile;
use crate::rules::Profile;
use crate::{ConnectionPeer, Declared, Notes, Policy as _, ReceiveCtx, ReceiveVerdict};

fn route(path: &str, settings: Settings) -> RouteRules {
    let paths = vec![PathPattern::parse(path).expect("a pattern")];
    RouteRules {
        name: path.to_owned(),
        scope: RouteScope { paths, ..RouteScope::default() },
        settings,
    }
}

fn refuse(class: ClientClass) -> ClassRules {
    let status = Status::new(403).expect("three digits");
    let (fields, body) = (Vec::new(), Vec::new());
    let answer = Synthetic { status, fields, body, close: false };
    ClassRules {
        answer: Some(ConfiguredResponse::Fixed(Arc::new(answer))),
        ..ClassRules::of(class)
    }
}

fn stored(class: ClientClass) -> ClassRules {
    ClassRules { serve: Some(ServeMode::Stored), ..ClassRules::of(class) }
}

/// A site that keeps `/cart` out of the cache and `/api/*` at an origin of its own.
fn site(classes: Vec<ClassRules>) -> Declared {
    let cart = route("/cart", Settings { cache: false, ..Settings::default() });
    let api = route("/api/*", Settings { origin: 1, ..Settings::default() });
    let crawlers = CrawlerRules { classes, ..CrawlerRules::default() };
    let mut rules = SiteRules { routes: vec![cart, api], crawlers, ..SiteRules::default() };
    rules.divide_by_class();
    Declared::new(rules)
}

fn request(target: &str, class: Option<ClientClass>) -> Request {
    let mut request = Request::new();
    request.host.extend_from_slice(b"example.com");
    request.target.extend_from_slice(target.as_bytes());
    let proof = ClientProof::Claimed;
    request.client = class.map(|class| ClassifiedClient { class, proof, number: None });
    request
}

fn ask(policy: &Declared, target: &str, class: Option<ClientClass>) -> (ReceiveVerdict, Notes) {
    let (mut request, mut notes) = (request(target, class), Notes::default());
    let now = Now { mono_ms: 0, unix_ms: 0 };
    let client = ConnectionPeer::Local;
    let mut ctx = ReceiveCtx {
        request: &mut request,
        client,
        now,
        store: StoreUse::ByRules,
        notes: &mut notes,
    };
    (policy.receive(&mut ctx), notes)
}

#[test]
fn a_class_keeps_the_rules_of_each_route() {
    let policy = site(vec![stored(ClientClass::Ai)]);
    for (target, origin) in [("/", 0), ("/api/a", 1), ("/cart", 0)] {
        let (verdict, notes) = ask(&policy, target, Some(ClientClass::Ai));
        assert!(policy.serves_stored(&notes), "{target}");
        assert_eq!(notes.origin, origin, "{target}");
        let passes = matches!(verdict, ReceiveVerdict::Pass);
        assert_eq!(passes, target == "/cart", "{target}");
        for class in [None, Some(ClientClass::Human), Some(ClientClass::Tool)] {
            assert!(!policy.serves_stored(&ask(&policy, target, class).1), "{target} {class:?}");
        }
    }
}

/// Crawlers must get what is stored for people, and nothing that is kept for another route.
#[test]
fn a_class_shares_the_keys_of_people() {
    let policy = site(vec![stored(ClientClass::Ai), refuse(ClientClass::Tool)]);
    let key = |target, class| {
        let (_, notes) = ask(&policy, target, class);
        let mut key = KeyBuf::new();
        policy.key(&request(target, class), &notes, &mut key);
        key.bytes().to_vec()
    };
    for target in ["/", "/api/a", "/cart"] {
        let people = key(target, Some(ClientClass::Human));
        assert_eq!(key(target, Some(ClientClass::Ai)), people, "{target}");
        assert_eq!(key(target, None), people, "{target}");
    }
}

#[test]
fn a_class_that_is_kept_out_may_still_read_robots_txt() {
    let policy = site(vec![refuse(ClientClass::Ai)]);
    let is_refused = |target, class| {
        let (verdict, _) = ask(&policy, target, Some(class));
        matches!(verdict, ReceiveVerdict::Synth(answer) if answer.status.code() == 403)
    };
    for target in ["/", "/api/a", "/cart", "/robots.txt/", "/x/robots.txt"] {
        assert!(is_refused(target, ClientClass::Ai), "{target}");
        assert!(!is_refused(target, ClientClass::Search), "{target}");
    }
    assert!(!is_refused("/robots.txt", ClientClass::Ai));
    assert!(!is_refused("/robots.txt?x=1", ClientClass::Ai));
}

#[test]
fn a_route_for_a_class_stays_as_it_is() {
    let mut own = route("/feed", Settings::default());
    own.scope.when.push(Condition::Class(vec![ClientClass::Ai, ClientClass::Tool]));
    let crawlers =
        CrawlerRules { classes: vec![refuse(ClientClass::Ai)], ..CrawlerRules::default() };
    let mut rules = SiteRules { routes: vec![own], crawlers, ..SiteRules::default() };
    assert!(rules.ask_for_class());
    rules.divide_by_class();
    let names: Vec<_> = rules.routes.iter().map(|route| route.name.as_str()).collect();
    assert_eq!(names, ["/feed", "crawlers: ai"]);
    let policy = Declared::new(rules);
    assert!(matches!(ask(&policy, "/feed", Some(ClientClass::Ai)).0, ReceiveVerdict::Lookup));
    assert!(matches!(ask(&policy, "/", Some(ClientClass::Ai)).0, ReceiveVerdict::Synth(_)));
}

#[test]
fn robots_txt_is_answered_before_all_routes() {
    let mut rules =
        SiteRules { routes: vec![route("*", Settings::default())], ..Default::default() };
    rules.answer_robots("User-agent: *\nDisallow:\n".to_owned());
    let policy = Declared::new(rules);
    match ask(&policy, "/robots.txt", None).0 {
        ReceiveVerdict::Synth(answer) => assert_eq!(answer.body, b"User-agent: *\nDisallow:\n"),
        other => panic!("{other:?}"),
    }
    assert!(matches!(ask(&policy, "/robots.txt/a", None).0, ReceiveVerdict::Lookup));
}

#[test]
fn only_errors_keep_a_class_out() {
    let mut gone = refuse(ClientClass::Tool);
    let welcome =
        Synthetic { status: Status::OK, fields: Vec::new(), body: b"hello".to_vec(), close: false };
    gone.answer = Some(ConfiguredResponse::Fixed(Arc::new(welcome)));
    let classes = vec![stored(ClientClass::Search), refuse(ClientClass::Ai), gone];
    let rules = CrawlerRules { classes, ..CrawlerRules::default() };
    assert_eq!(rules.kept_out(), [ClientClass::Ai]);
}

#[test]
fn a_site_without_classes_has_the_routes_that_it_had() {
    let mut rules = SiteRules {
        routes: vec![route("/a", Settings::default())],
        profile: Profile::Safe,
        ..SiteRules::default()
    };
    rules.divide_by_class();
    assert!(!rules.ask_for_class() && rules.routes.len() == 1);
}

#[test]
fn what_a_class_gets_precedes_a_file_of_redirects() {
    let redirects =
        Some(RedirectFile { path: "/redirects".into(), status: Status::new(302).expect("one") });
    let settings = Settings { redirects, ..Settings::default() };
    assert!(refuse(ClientClass::Ai).over(&settings).redirects.is_none());
    assert!(stored(ClientClass::Ai).over(&settings).redirects.is_some());
    let mut rules = SiteRules { settings, ..SiteRules::default() };
    rules.answer_robots("User-agent: *\n".to_owned());
    assert!(rules.routes[0].settings.redirects.is_none());
}
