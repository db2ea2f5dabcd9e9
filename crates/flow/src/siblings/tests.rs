//! Tests of requests to siblings, and of the responses that are used.

use std::sync::atomic::{AtomicU64, Ordering};

use message::{Response, Status};
use proptest::prelude::*;

use super::*;
use crate::state::request_context::only_if_cached;
use crate::vcl::tests::rig::Rig;

fn response(status: u16, fields: &[(&str, &str)]) -> Response {
    let mut response = Response::new(Status::new(status).expect("a status"));
    for (name, value) in fields {
        response.headers.push_named(name.as_bytes(), value.as_bytes());
    }
    response
}

#[test]
fn only_what_was_stored_for_everybody_is_used() {
    const AGE: (&str, &str) = ("Age", "3");
    for (status, fields, is_used) in [
        (200, &[AGE][..], true),
        (200, &[], true),
        (404, &[AGE], true),
        (301, &[AGE], true),
        // A cache's own response: Squid answers so to clients that it refuses.
        (403, &[], false),
        (403, &[AGE], false),
        (404, &[], false),
        (302, &[], false),
        (504, &[AGE], false),
        (503, &[AGE], false),
        (206, &[AGE], false),
        (304, &[AGE], false),
        (401, &[AGE], false),
        (200, &[("X-Squid-Error", "ERR_ACCESS_DENIED 0")], false),
        // A personal response.
        (200, &[AGE, ("Set-Cookie", "a=b")], false),
        (200, &[AGE, ("Cache-Control", "private")], false),
        (200, &[AGE, ("Cache-Control", "max-age=9, no-store")], false),
        // Orders that only an origin may give.
        (200, &[AGE, ("X-Accel-Redirect", "/secret")], false),
        (200, &[AGE, ("X-Sendfile", "/etc/passwd")], false),
    ] {
        let response = response(status, fields);
        assert_eq!(is_usable(&response, 9_000, 0), is_used, "{status} {fields:?}");
    }
}

#[test]
fn a_response_must_be_younger_than_an_unconfirmed_invalidation() {
    for (age, is_used) in [
        (Some("0"), true),
        (Some("1"), true),
        (Some("2"), false),
        (Some("4"), false),
        (Some("99999999999999999999999"), false),
        (Some("-1"), false),
        (Some("1, 1"), false),
        (None, false),
    ] {
        let fields: Vec<_> = age.map(|age| ("Age", age)).into_iter().collect();
        // Its age was nine seconds then, and the invalidation was five seconds ago.
        assert_eq!(is_usable(&response(200, &fields), 9_000, 5_000), is_used, "{age:?}");
    }
}

proptest! {
    /// Against a plain model: a response created before the invalidation is not used, however its
    /// age is rounded.
    #[test]
    fn nothing_older_than_an_invalidation_is_used(
        born_ms in 0..100_000u64,
        since_ms in 1..100_000u64,
        asked_ms in 100_000..200_000u64,
    ) {
        let age = (asked_ms / 1000) - (born_ms / 1000).min(asked_ms / 1000);
        for age in [age, (asked_ms - born_ms) / 1000] {
            let text = age.to_string();
            let is_used = is_usable(&response(200, &[("Age", &text)]), asked_ms, since_ms);
            prop_assert!(!is_used || born_ms > since_ms);
        }
    }
}

fn request(text: &str) -> Request {
    let mut request = Request::new();
    let limits = h1::HeadLimits::from(&base::Limits::default());
    let read = h1::RequestReader::new().read(text.as_bytes(), &limits, Scheme::Http, &mut request);
    assert!(matches!(read, Ok(h1::ReadProgress::Complete(_))), "{text}");
    request
}

#[test]
fn a_question_has_the_url_and_nothing_that_is_the_clients_own() {
    let request = request(
        "GET /a?b HTTP/1.1\r\nHost: Example.org:81\r\nAccept-Language: de\r\nVia: 1.1 x\r\n\
         X-Device: phone\r\nX-Forwarded-For: 192.0.2.1\r\nConnection: close\r\n\r\n",
    );
    assert_eq!(url_of(&request), b"http://example.org:81/a?b");
    let mut fields = Vec::new();
    request.headers.write_end_to_end(&mut fields, &UNSELECTING);
    assert_eq!(fields, b"Accept-Language: de\r\nX-Device: phone\r\n");
    let asked = to_sibling(&request, url_of(&request));
    assert_eq!(asked.target, b"http://example.org:81/a?b");
    assert!(only_if_cached(&asked));
}

#[test]
fn personal_and_uncached_requests_ask_no_sibling() {
    for (fields, is_asked) in [
        ("", true),
        ("Cache-Control: max-age=60\r\n", true),
        ("Cache-Control: no-cache\r\n", false),
        ("Cache-Control: max-age=0\r\n", false),
        ("Cache-Control: no-store\r\n", false),
        ("Pragma: no-cache\r\n", false),
        ("Cookie: a=b\r\n", false),
        ("Authorization: Basic YTpi\r\n", false),
    ] {
        let request = request(&format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
        assert_eq!(is_for_all(&request), is_asked, "{fields}");
    }
    assert!(!is_for_all(&request("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")));
}

/// A port that notes the queries that it may forget.
#[derive(Debug, Default)]
struct Port(AtomicU64);

impl SiblingPort for Port {
    fn trusted_since(&self) -> Option<u64> {
        Some(0)
    }

    fn ask(&self, _: &SiblingQuestion<'_>, _: oneshot::Sender<bool>) -> Option<u32> {
        Some(7)
    }

    fn forget(&self, number: u32) {
        self.0.fetch_add(number.into(), Ordering::Relaxed);
    }

    fn was_silent(&self) {}
}

/// A sibling of all sites.
fn sibling(url: &str, port: &Arc<Port>) -> Sibling {
    let server = origin::parse_server(url).expect("a server");
    let config = origin::OriginConfig::with_limits("s", vec![server], &base::Limits::default());
    let port = Arc::clone(port) as Arc<dyn SiblingPort>;
    Sibling { origin: Origin::new(config), sites: Vec::new(), port }
}

#[test]
fn a_question_is_forgotten_however_it_ends_and_each_scheme_has_its_siblings() {
    let port = Arc::new(Port::default());
    let sibling = Sibling { sites: vec!["a".to_owned()], ..sibling("https://192.0.2.1", &port) };
    assert!(sibling.is_for("a", Scheme::Https));
    assert!(!sibling.is_for("a", Scheme::Http) && !sibling.is_for("b", Scheme::Https));
    let question = SiblingQuestion { url: b"https://a/", fields: b"" };
    drop(SiblingWait::begin(&sibling, &question).expect("it is asked"));
    assert_eq!(port.0.load(Ordering::Relaxed), 7);
}

#[test]
fn a_programs_forecast_names_siblings_on_a_miss() {
    let rig = Rig::new(
        "ORIGIN sub vcl_backend_response { \
         set beresp.ttl = 1ms; set beresp.grace = 0s; set beresp.keep = 1h; }",
    );
    let siblings = Siblings(vec![sibling("http://192.0.2.1", &Arc::default())]);
    assert_eq!(rig.ask("GET /stale").status, 200);
    rig.core.shared.siblings.store(Some(Arc::new(siblings)));
    let tells = |request: &str| rig.foretell(request).steps.iter().any(|s| s.what == "siblings");
    assert!(tells("GET /new"));
    // The object has no validator; but siblings are asked only for new responses.
    assert!(!tells("GET /stale"));
}
