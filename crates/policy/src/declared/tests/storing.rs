//! Storing: effects of settings on an origin's response.

use message::store::{self, ExchangeTimes, NotStored, StatusMatch};

use super::*;
use crate::forwarded::ClientField;
use crate::header_changes::{FieldText, HeaderOps};

/// The result of a 200 with `fields` to a GET of `target`; true if it still sets a cookie.
fn stored(
    policy: &Declared,
    target: &str,
    fields: &[(&str, &str)],
) -> (Result<(), NotStored>, bool) {
    stored_for(policy, get(target), fields)
}

fn stored_for(
    policy: &Declared,
    request: Request,
    fields: &[(&str, &str)],
) -> (Result<(), NotStored>, bool) {
    let asked = ask(policy, request);
    let mut response = Response::new(Status::OK);
    for (name, value) in fields {
        response.headers.push_named(name.as_bytes(), value.as_bytes());
    }
    let exchange = ExchangeTimes { request_ms: 0, response_ms: 0 };
    let (request, notes) = (&asked.request, &asked.notes);
    let (rules, judged) = (policy.store_rules(notes), policy.judged_head(notes, &response));
    let mut plan = store::plan(request, notes.personal, &judged, exchange, rules);
    let ctx = ResponseCtx { request, response: &mut response, plan: &mut plan, notes };
    assert_eq!(policy.response(&mut { ctx }), BackendResponse::Deliver);
    (plan.verdict(), response.headers.contains(HeaderId::SetCookie))
}

#[test]
fn p8_only_what_fits_its_suffix_is_stored_where_that_is_set() {
    let policy = site(Settings { match_type: true, ..Settings::default() });
    let public = ("Cache-Control", "public, max-age=60");
    for (target, kind, expected) in [
        ("/a.css?v=1", "text/css", Ok(())),
        ("/a.css", "text/html", Err(NotStored::ContentType)),
        ("/account;a.css", "text/css", Err(NotStored::ContentType)),
        ("/account", "text/css", Err(NotStored::ContentType)),
    ] {
        let (plan, _) = stored(&policy, target, &[public, ("Content-Type", kind)]);
        assert_eq!(plan, expected, "{target} {kind}");
        assert_eq!(stored(&site(Settings::default()), target, &[public]).0, Ok(()));
    }
}

#[test]
fn p13_set_cookie_is_dropped_only_from_what_is_marked_as_shared() {
    let settings = Settings {
        drop_set_cookie: true,
        ttl: vec![(StatusMatch::Any, 60_000)],
        bypass: vec![Bypass::Path(PathPattern::parse("/login").expect("a pattern"))],
        ..Settings::default()
    };
    let policy = site(settings);
    let refused = (Err(NotStored::SetCookie), true);
    for (target, control, expected) in [
        ("/", "public, max-age=60", (Ok(()), false)),
        ("/", "s-maxage=60", (Ok(()), false)),
        ("/", "max-age=60", refused),
        ("/", "public", refused),
        ("/", "public, max-age=0", refused),
        ("/", "", refused),
        ("/", "private, s-maxage=60", (Err(NotStored::Private), true)),
        ("/login", "public, max-age=60", refused),
    ] {
        let fields = [("Cache-Control", control), ("Set-Cookie", "sid=1")];
        assert_eq!(stored(&policy, target, &fields), expected, "{target} {control}");
    }
}

#[test]
fn what_belongs_to_another_key_is_not_stored_and_keeps_its_cookies() {
    let mut settings = Settings { drop_set_cookie: true, ..Settings::default() };
    settings.cookies.key = vec!["vary".to_owned()];
    settings.match_headers = vec![field("X-Id")];
    let policy = site(settings);
    let public = ("Cache-Control", "public, max-age=60");
    let other = (Err(NotStored::OtherKey), true);
    assert_eq!(stored(&policy, "/", &[public, ("Set-Cookie", "vary=a")]), other);
    assert_eq!(stored(&policy, "/", &[public, ("Set-Cookie", "sid=a")]), (Ok(()), false));
    // Without the field in the request, no value must match.
    assert_eq!(stored(&policy, "/", &[public, ("X-Id", "a")]).0, Ok(()));
}

#[test]
fn a_status_that_is_never_stored_is_not_whatever_it_says() {
    let never = vec![StatusMatch::Exact(Status::OK)];
    let policy = site(Settings { not_stored: never, ..Settings::default() });
    let public = [("Cache-Control", "public, max-age=60")];
    assert_eq!(stored(&policy, "/", &public).0, Err(NotStored::Status));
    let class = vec![StatusMatch::Class(4)];
    let policy = site(Settings { not_stored: class, ..Settings::default() });
    assert_eq!(stored(&policy, "/", &public).0, Ok(()));
}

#[test]
fn cookies_of_balancers_stay_with_their_visitors_and_make_no_variants() {
    let settings =
        Settings { bypass: vec![Bypass::Cookie(cookie_name("login"))], ..Settings::default() };
    let policy = site(settings);
    for (cookies, verdict, personal, left) in [
        ("AWSALB=1; __cf_bm=2", "lookup", false, None),
        ("SERVERID=1; _ga=2; sbjs_current=3", "lookup", false, None),
        ("SERVERID=1; session=2", "lookup", true, Some("SERVERID=1; session=2")),
        ("SERVERID=1; login=2; _ga=3", "pass", true, Some("SERVERID=1; login=2")),
    ] {
        let asked = ask(&policy, with(get("/"), &[("Cookie", cookies)]));
        assert_eq!(asked.is_lookup(), verdict == "lookup", "{cookies}");
        assert_eq!((asked.notes.personal, asked.cookie()), (personal, left), "{cookies}");
    }
    let fields = [("Cookie", "SERVERID=1"), ("Authorization", "Basic YTpi")];
    assert_eq!(ask(&policy, with(get("/"), &fields)).cookie(), Some("SERVERID=1"));
    let own = ask(&rfc(), with(get("/"), &[("Cookie", "SERVERID=1; _ga=2")]));
    assert_eq!(own.cookie(), Some("SERVERID=1; _ga=2"), "the rfc profile knows no names");
}

#[test]
fn only_cookies_that_are_kept_count() {
    let mut settings = Settings::default();
    settings.cookies.keep = vec![cookie_name("SESS*"), cookie_name("cart")];
    settings.cookies.key = vec!["lang".to_owned()];
    settings.bypass = vec![Bypass::Cookie(cookie_name("SESS*"))];
    let policy = site(settings);
    for (cookies, is_lookup, personal, left) in [
        ("any=1; other=2", true, false, None),
        ("any=1; lang=de", true, false, Some("lang=de")),
        ("any=1; cart=2; SERVERID=3", true, true, Some("cart=2; SERVERID=3")),
        ("any=1; SESSab=2", false, true, Some("any=1; SESSab=2")),
    ] {
        let asked = ask(&policy, with(get("/"), &[("Cookie", cookies)]));
        assert_eq!(asked.is_lookup(), is_lookup, "{cookies}");
        assert_eq!((asked.notes.personal, asked.cookie()), (personal, left), "{cookies}");
    }
}

#[test]
fn beside_a_field_that_names_the_key_only_paths_send_a_request_past_the_cache() {
    let settings = Settings {
        bypass: vec![
            Bypass::Path(PathPattern::parse("/own/*").expect("a pattern")),
            Bypass::Cookie(cookie_name("sid")),
            Bypass::Header(field("Authorization"), None),
            Bypass::AnyQuery,
        ],
        bypass_unless: vec![field("X-Id")],
        ..Settings::default()
    };
    let policy = site(settings);
    let fields = [("Cookie", "sid=1"), ("Authorization", "Bearer a")];
    assert!(ask(&policy, with(get("/a?b"), &fields)).is_pass());
    let with_id = [fields[0], fields[1], ("X-Id", "a")];
    let asked = ask(&policy, with(get("/a?b"), &with_id));
    assert!(asked.is_lookup() && asked.notes.personal);
    assert!(ask(&policy, with(get("/own/a"), &with_id)).is_pass());
}

#[test]
fn another_form_of_a_page_is_stored_only_where_vary_or_the_key_says_which() {
    let public = ("Cache-Control", "public, max-age=60");
    let (plain, keyed) = (
        site(Settings::default()),
        site(Settings { key_headers: vec![field("RSC")], ..Settings::default() }),
    );
    let other = Err(NotStored::OtherKey);
    for (policy, target, asked, vary, expected) in [
        (&plain, "/", ("RSC", "1"), "", other),
        (&plain, "/", ("rsc", "1"), "Accept-Encoding", other),
        (&plain, "/", ("RSC", "1"), "rsc, Next-Router-State-Tree", Ok(())),
        (&plain, "/", ("Next-Router-Prefetch", "1"), "RSC", other),
        (&plain, "/", ("X-Inertia", "true"), "", other),
        (&plain, "/", ("X-Inertia", "true"), "X-Inertia", Ok(())),
        (&plain, "/", ("x-nextjs-data", "1"), "", other),
        (&plain, "/_next/data/b/index.json", ("x-nextjs-data", "1"), "", Ok(())),
        (&keyed, "/", ("RSC", "1"), "", Ok(())),
        (&keyed, "/", ("X-PJAX", "1"), "", other),
        (&plain, "/", ("X-Requested-With", "XMLHttpRequest"), "", Ok(())),
        (&plain, "/", ("Accept", "text/html"), "", Ok(())),
    ] {
        let request = with(get(target), &[asked]);
        let fields: Vec<_> =
            std::iter::once(public).chain((!vary.is_empty()).then_some(("Vary", vary))).collect();
        let (stored, _) = stored_for(policy, request, &fields);
        assert_eq!(stored, expected, "{target} {asked:?} {vary}");
    }
}

fn ignoring(texts: &[&str], settings: Settings) -> Declared {
    let mut ignored = message::store::IgnoredFields::default();
    texts.iter().for_each(|text| ignored.add(text).expect("a field"));
    site(Settings { ignored, ttl: vec![(StatusMatch::Any, 60_000)], ..settings })
}

#[test]
fn an_ignored_cookie_is_removed_from_what_is_stored_and_from_nothing_else() {
    let settings = Settings {
        bypass: vec![Bypass::Path(PathPattern::parse("/login").expect("a pattern"))],
        not_stored: vec![StatusMatch::Class(4)],
        match_type: true,
        ..Settings::default()
    };
    let policy = ignoring(&["Set-Cookie"], settings);
    let cookie = ("Set-Cookie", "sid=1");
    let css = ("Content-Type", "text/css");
    assert_eq!(stored(&policy, "/a.css", &[cookie, css]), (Ok(()), false));
    // A page that passes keeps its cookie.
    assert!(stored(&policy, "/login", &[cookie, css]).1);
    assert_eq!(stored(&policy, "/a.css", &[cookie]), (Err(NotStored::ContentType), true));
    let private = [cookie, css, ("Cache-Control", "private")];
    assert_eq!(stored(&policy, "/a.css", &private), (Err(NotStored::Private), true));
    let visitor = with(get("/a.css"), &[("Cookie", "sid=1")]);
    assert_eq!(stored_for(&policy, visitor, &[cookie, css]), (Err(NotStored::Personal), true));
}

#[test]
fn a_form_and_a_visitor_by_ignored_fields_are_of_another_key() {
    let settings = Settings { key_headers: vec![field("X-Shop")], ..Settings::default() };
    let policy = ignoring(&["Vary"], settings);
    let other = Err(NotStored::OtherKey);
    for (asked, vary, expected) in [
        (("RSC", "1"), "RSC", other),
        (("X-Api-Key", "a"), "X-Api-Key", other),
        (("X-Api-Key", "a"), "X-Other", Ok(())),
        (("X-Shop", "a"), "X-Shop", Ok(())),
        (("User-Agent", "a"), "User-Agent", Ok(())),
        (("X-Forwarded-For", "a"), "X-Forwarded-For", Err(NotStored::VaryAny)),
    ] {
        let request = with(get("/"), &[asked]);
        assert_eq!(stored_for(&policy, request, &[("Vary", vary)]).0, expected, "{vary}");
    }
}

#[test]
fn whoever_the_client_is_counts_even_if_vary_is_ignored() {
    let mut ignored = message::store::IgnoredFields::default();
    ignored.add("Vary").expect("a field");
    let mut told = HeaderOps::default();
    told.set(field("X-Visitor"), FieldText::parse("$client").expect("a text"));
    let settings = Settings {
        ignored,
        ttl: vec![(StatusMatch::Any, 60_000)],
        request_headers: told,
        ..Settings::default()
    };
    let client_field = ClientField::of(field("CF-Connecting-IP"));
    let policy = Declared::new(SiteRules { client_field, settings, ..SiteRules::default() });
    for (vary, expected) in [
        ("CF-Connecting-IP", Err(NotStored::VaryAny)),
        ("X-Visitor", Err(NotStored::VaryAny)),
        ("User-Agent", Ok(())),
    ] {
        assert_eq!(stored_for(&policy, get("/"), &[("Vary", vary)]).0, expected, "{vary}");
    }
}
