//! Effects of settings on an origin's answer.

use message::store::{self, Exchange, NotStored, StatusMatch};

use super::*;

/// The outcome of a 200 with `fields` to GET of `target`; true if it still sets a cookie.
fn stored(
    policy: &Declared,
    target: &str,
    fields: &[(&str, &str)],
) -> (Result<(), NotStored>, bool) {
    let asked = ask(policy, get(target));
    let mut response = Response::new(Status::OK);
    for (name, value) in fields {
        response.headers.push_named(name.as_bytes(), value.as_bytes());
    }
    let exchange = Exchange { request_ms: 0, response_ms: 0 };
    let (request, notes) = (&asked.request, &asked.notes);
    let rules = policy.store_rules(notes);
    let mut plan = store::plan(request, notes.personal, &response, exchange, rules);
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
