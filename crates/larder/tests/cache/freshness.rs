//! Freshness: what is served while fresh, in grace and stale, and what is fetched in the
//! background.
//!
//! Lifetimes are the shortest that exist (100 ms); tests wait longer, and never rely on anything
//! being done within one.

use crate::support;

use std::time::{Duration, Instant};

use support::{Setup, Stage, eventually, is_hit, pause, sent_field};
use testkit::origin::Script;
use testkit::reply::Reply;

/// Longer than the lifetime of 100 ms.
const EXPIRED_MS: u64 = 300;

async fn with_site(site: &str) -> Stage {
    Setup { site, ..Setup::default() }.start().await
}

/// A stage whose `/page` was stored with `fields` and is stale; only a kept connection to the
/// origin is kept back, so that each request finds out how the origin is now.
async fn gone_stale(top: &str, site: &str, fields: &str) -> Stage {
    let stage = Setup { top, site, origin: "idle = 0", ..Setup::default() }.start().await;
    stage.origin.on("/page", Script::ok(fields, "first"));
    assert_eq!(stage.get("/page").await.text(), "first");
    pause(EXPIRED_MS).await;
    stage
}

const NO_GRACE: &str = "cache = { ttl = { 200 = \"100ms\" }, stale_while_revalidate = \"0s\" }";

fn error(status: u16) -> Script {
    Script::respond(format!("HTTP/1.1 {status} Error\r\nContent-Length: 5\r\n\r\nerror"))
}

/// Asserts that the stale response replaces the origin's.
#[track_caller]
fn assert_stand_in(reply: &Reply) {
    assert_eq!((reply.status, reply.text().as_str()), (200, "first"), "{reply:?}");
    let status = reply.field("cache-status").expect("Cache-Status");
    assert!(status.contains("origin-failed"), "{status}");
}

#[tokio::test]
async fn a_lifetime_by_status_counts_from_100_ms_up() {
    let site = "cache = { ttl = { 200 = \"100ms\", 404 = \"1h\", 5xx = \"1h\" }, \
                stale_while_revalidate = \"0s\" }";
    let stage = with_site(site).await;
    stage.origin.on("/page", Script::ok("", "page"));
    // On a busy machine two requests may take longer than the lifetime: some pair does not.
    eventually("a hit within the lifetime", async || {
        stage.get("/page").await;
        is_hit(&stage.get("/page").await)
    })
    .await;
    pause(EXPIRED_MS).await;
    let asked = stage.origin.seen("/page");
    assert!(!is_hit(&stage.get("/page").await));
    assert_eq!(stage.origin.seen("/page"), asked + 1);
    for status in [404, 500, 503] {
        let target = format!("/error{status}");
        stage.origin.on(&target, error(status));
        stage.get(&target).await;
        let again = stage.get(&target).await;
        assert!(is_hit(&again) && again.status == status, "{status}");
    }
    stage.origin.on("/own", Script::ok("Cache-Control: max-age=3600\r\n", "own"));
    stage.get("/own").await;
    pause(EXPIRED_MS).await;
    assert!(is_hit(&stage.get("/own").await), "what the origin says counts more");
}

#[tokio::test]
async fn grace_serves_stale_at_once_while_exactly_one_fetch_runs() {
    let stage =
        with_site("cache = { ttl = { 200 = \"100ms\" }, stale_while_revalidate = \"1h\" }").await;
    stage.origin.on("/page", Script::ok("", "old"));
    stage.get("/page").await;
    pause(EXPIRED_MS).await;
    let slow = Script::default().delay_ms(4_000);
    stage.origin.on(
        "/page",
        slow.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=300\r\nContent-Length: 3\r\n\r\nnew"),
    );
    let started = Instant::now();
    for _ in 0..20 {
        let reply = stage.get("/page").await;
        assert_eq!(reply.text(), "old");
        assert!(is_hit(&reply));
    }
    assert!(started.elapsed() < Duration::from_secs(3), "nobody waits for the origin");
    eventually("the new version", async || stage.get("/page").await.text() == "new").await;
    assert_eq!(stage.origin.seen("/page"), 2);
    assert!(is_hit(&stage.get("/page").await));
    eventually("they are counted", async || stage.metric("larder_stale_hits_total").await >= 20)
        .await;
}

#[tokio::test]
async fn a_refresh_that_fails_leaves_the_stale_answer_in_place() {
    let site = "cache = { ttl = { 200 = \"100ms\" }, stale_while_revalidate = \"1h\" }";
    let stage = gone_stale("", site, "").await;
    stage.origin.on("/page", error(503));
    for count in 2..5 {
        let reply = stage.get("/page").await;
        assert!(is_hit(&reply) && reply.text() == "first");
        eventually("the refresh", async || stage.origin.seen("/page") >= count).await;
    }
}

#[tokio::test]
async fn safe_serves_stale_on_errors_of_the_origin() {
    for status in [500, 502, 503, 504] {
        let stage = gone_stale("", NO_GRACE, "").await;
        stage.origin.on("/page", error(status));
        assert_stand_in(&stage.get("/page").await);
    }
    let stage = gone_stale("", NO_GRACE, "").await;
    stage.origin.on("/page", error(403));
    assert_eq!(stage.get("/page").await.status, 403, "no failure, but an answer");
}

#[tokio::test]
async fn a_failing_origin_is_tried_behind_the_stale_answer_until_it_is_back() {
    let stage = gone_stale("", NO_GRACE, "").await;
    let late =
        Script::default().delay_ms(1_000).send("HTTP/1.1 500 E\r\nContent-Length: 0\r\n\r\n");
    stage.origin.on("/page", late);
    assert_stand_in(&stage.get("/page").await);
    let started = Instant::now();
    for _ in 0..20 {
        assert_stand_in(&stage.get("/page").await);
    }
    assert!(started.elapsed() < Duration::from_secs(10), "not every request waits for the failure");
    stage.origin.on("/page", Script::cacheable("back"));
    eventually("the origin's new answer", async || stage.get("/page").await.text() == "back").await;
    assert!(is_hit(&stage.get("/page").await));
}

#[tokio::test]
async fn safe_serves_stale_when_the_origin_is_gone() {
    for script in [Some(Script::default().close()), Some(Script::default().reset()), None] {
        let stage = gone_stale("", NO_GRACE, "").await;
        let Stage { origin, daemon } = stage;
        let origin = match script {
            Some(script) => {
                origin.on("/page", script);
                Some(origin)
            }
            None => {
                drop(origin);
                None
            }
        };
        let reply = testkit::client::get(daemon.addr(), "/page").await.expect("sent");
        assert_stand_in(&support::whole(reply, "/page"));
        drop(origin);
    }
}

#[tokio::test]
async fn safe_serves_stale_when_the_origin_does_not_answer_in_time() {
    let stage =
        Setup { site: NO_GRACE, origin: "first_byte_timeout = \"300ms\"", ..Setup::default() }
            .start()
            .await;
    stage.origin.on("/page", Script::ok("", "first"));
    stage.get("/page").await;
    pause(EXPIRED_MS).await;
    stage.origin.on("/page", Script::default().hang());
    assert_stand_in(&stage.get("/page").await);
    let other = stage.get("/page?nothing-stored").await;
    assert_eq!(other.status, 504);
    assert!(other.text().contains("first"), "the timeout is named: {}", other.text());
}

const RFC_SITE: &str = "cache = { ttl = { 200 = \"100ms\" } }";
const RFC: &str = "profile = \"rfc\"";

#[tokio::test]
async fn rfc_serves_stale_only_when_the_origin_drops_the_connection() {
    let stage = gone_stale(RFC, RFC_SITE, "").await;
    stage.origin.on("/page", Script::default().close());
    assert_stand_in(&stage.get("/page").await);
    let stage = gone_stale(RFC, RFC_SITE, "").await;
    stage.origin.on("/page", error(500));
    let reply = stage.get("/page").await;
    assert_eq!((reply.status, reply.text().as_str()), (500, "error"));
}

#[tokio::test]
async fn rfc_has_no_grace() {
    let stage = gone_stale(RFC, RFC_SITE, "").await;
    stage.origin.on("/page", Script::ok("", "second"));
    assert_eq!(stage.get("/page").await.text(), "second");
}

#[tokio::test]
async fn rfc_serves_stale_on_errors_when_the_response_allows_it() {
    let stage = gone_stale(RFC, RFC_SITE, "Cache-Control: stale-if-error=60\r\n").await;
    stage.origin.on("/page", error(500));
    assert_stand_in(&stage.get("/page").await);
    stage.origin.on("/page", Script::default().close());
    assert_stand_in(&stage.get("/page").await);
}

#[tokio::test]
async fn must_revalidate_is_never_served_stale() {
    for directive in ["must-revalidate", "proxy-revalidate"] {
        let fields = format!("Cache-Control: {directive}\r\n");
        let site = "cache = { ttl = { 200 = \"100ms\" }, stale_while_revalidate = \"1h\" }";
        let stage = gone_stale("", site, &fields).await;
        stage.origin.on("/page", error(500));
        assert_eq!(stage.get("/page").await.status, 500, "{directive}");
        stage.origin.on("/page", Script::default().close());
        let status = stage.get("/page").await.status;
        assert!(matches!(status, 502 | 504), "{directive}: {status}");
    }
}

const NOT_MODIFIED: &str = "HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\nX-Version: 2\r\n";

#[tokio::test]
async fn a_304_keeps_the_body_and_updates_the_fields() {
    let fields = "ETag: \"v1\"\r\nX-Version: 1\r\nX-Kept: yes\r\n";
    let stage = gone_stale("", NO_GRACE, fields).await;
    let answer = format!("{NOT_MODIFIED}Cache-Control: max-age=300\r\n\r\n");
    stage.origin.on("/page", Script::respond(answer));
    let confirmed = stage.get("/page").await;
    let status = confirmed.field("cache-status").expect("Cache-Status");
    assert!(status.contains("fwd=stale") && status.contains("fwd-status=304"), "{status}");
    let hit = stage.get("/page").await;
    assert!(is_hit(&hit), "it is fresh again");
    for reply in [confirmed, hit] {
        assert_eq!((reply.status, reply.text().as_str()), (200, "first"));
        assert_eq!(reply.field("x-version").as_deref(), Some("2"));
        assert_eq!(reply.field("x-kept").as_deref(), Some("yes"));
        assert_eq!(reply.field("content-length").as_deref(), Some("5"));
    }
    let received = stage.received();
    assert_eq!(received.len(), 2);
    assert_eq!(received.iter().filter(|r| sent_field(r, "if-none-match") == "\"v1\"").count(), 1);
}

/// The origin knows its age when it begins to answer, at the latest (RFC 9111 4.2.3).
#[tokio::test]
async fn the_time_that_a_304_took_counts_into_its_age() {
    let stage =
        gone_stale("profile = \"rfc\"", "", "Cache-Control: max-age=0\r\nETag: \"e\"\r\n").await;
    let answer = "HTTP/1.1 304 Not Modified\r\nETag: \"e\"\r\nCache-Control: max-age=2\r\n\r\n";
    stage.origin.on("/page", Script::default().delay_ms(2_100).send(answer));
    let reply = stage.get("/page").await;
    assert_eq!((reply.status, reply.text()), (200, "first".to_owned()));
    let age: u64 = reply.field("age").expect("an age").parse().expect("a number");
    assert!(age >= 2, "{age}");
    assert!(!is_hit(&stage.get("/page").await), "it was stale when it came");
}

#[tokio::test]
async fn surrogate_control_ends_here_unless_a_setting_says_otherwise() {
    let fields = "Surrogate-Control: max-age=300\r\nsurrogate-control: content=\"ESI/1.0\"\r\n\
                  Cache-Control: no-cache\r\nETag: \"v1\"\r\nX-Other: seen\r\n";
    let both = "max-age=300, content=\"ESI/1.0\"";
    for (site, seen) in [("", None), ("show_surrogate_control = true\n", Some(both))] {
        let stage = with_site(site).await;
        stage.origin.on("/page", Script::ok(fields, "first"));
        stage.origin.on("/own", Script::ok(&format!("{fields}Set-Cookie: a=1\r\n"), "own"));
        let fetched = stage.get("/page").await;
        let hit = stage.get("/page").await;
        assert!(!is_hit(&fetched) && is_hit(&hit), "it counts all the same");
        let same = stage.ask("GET", "/page", "If-None-Match: \"v1\"\r\n").await;
        assert_eq!(same.status, 304);
        let passed = stage.get("/own").await;
        for reply in [fetched, hit, same, stage.ask("HEAD", "/page", "").await, passed] {
            assert_eq!(reply.field("surrogate-control").as_deref(), seen, "{site} {reply:?}");
            assert_eq!(reply.field("x-other").as_deref(), Some("seen"));
        }
    }
}

#[tokio::test]
async fn a_304_brings_a_new_surrogate_control_or_leaves_the_old_in_force() {
    let stage = with_site(NO_GRACE).await;
    let fields = "Surrogate-Control: max-age=0\r\nCache-Control: max-age=300\r\nETag: \"v1\"\r\n";
    stage.origin.on("/page", Script::ok(fields, "first"));
    assert!(!is_hit(&stage.get("/page").await));
    stage.origin.on("/page", Script::respond(format!("{NOT_MODIFIED}\r\n")));
    for _ in 0..3 {
        let status = stage.get("/page").await.field("cache-status").expect("Cache-Status");
        assert!(status.contains("fwd-status=304"), "the old one still counts: {status}");
    }
    let answer = format!("{NOT_MODIFIED}Surrogate-Control: max-age=300\r\n\r\n");
    stage.origin.on("/page", Script::respond(answer));
    let confirmed = stage.get("/page").await;
    let hit = stage.get("/page").await;
    assert!(is_hit(&hit), "the new one counts: {hit:?}");
    for reply in [confirmed, hit] {
        assert_eq!(reply.text(), "first");
        assert_eq!(reply.field("surrogate-control"), None);
    }
}

#[tokio::test]
async fn a_clients_own_condition_meets_the_confirmed_object() {
    let stage = gone_stale("", NO_GRACE, "ETag: \"v1\"\r\n").await;
    stage.origin.on("/page", Script::respond(format!("{NOT_MODIFIED}\r\n")));
    let same = stage.ask("GET", "/page", "If-None-Match: \"v1\"\r\n").await;
    assert_eq!((same.status, same.body.len()), (304, 0));
    pause(EXPIRED_MS).await;
    let other = stage.ask("GET", "/page", "If-None-Match: \"v0\"\r\n").await;
    assert_eq!((other.status, other.text().as_str()), (200, "first"));
    let asked: Vec<_> = stage.received().iter().map(|r| sent_field(r, "if-none-match")).collect();
    assert!(!asked.contains(&"\"v0\"".to_owned()), "{asked:?}");
}

#[tokio::test]
async fn a_new_version_replaces_the_old_when_validation_fails() {
    let stage = gone_stale("", NO_GRACE, "ETag: \"v1\"\r\n").await;
    stage
        .origin
        .on("/page", Script::ok("ETag: \"v2\"\r\nCache-Control: max-age=300\r\n", "second"));
    assert_eq!(stage.get("/page").await.text(), "second");
    let hit = stage.get("/page").await;
    assert!(is_hit(&hit) && hit.text() == "second");
}

#[tokio::test]
async fn no_cache_is_validated_each_time_and_transferred_once() {
    let stage = Stage::new().await;
    let fields = "Cache-Control: no-cache\r\nETag: \"v1\"\r\n";
    stage.origin.on("/page", Script::ok(fields, "first"));
    stage.get("/page").await;
    stage
        .origin
        .on("/page", Script::respond(format!("{NOT_MODIFIED}Cache-Control: no-cache\r\n\r\n")));
    for count in 2..5 {
        let reply = stage.get("/page").await;
        assert_eq!((reply.status, reply.text().as_str()), (200, "first"));
        assert!(!is_hit(&reply));
        assert_eq!(stage.origin.seen("/page"), count);
    }
    stage.origin.on("/page", Script::default().close());
    assert!(matches!(stage.get("/page").await.status, 502 | 504), "never unvalidated");
}

/// The site of these tests honours clients' directives; nothing is served in a grace.
const HONOURED: &str = "cache = { request_directives = \"honour\", ttl = { 200 = \"100ms\" }, \
                        stale_while_revalidate = \"0s\" }";

#[tokio::test]
async fn a_client_sets_bounds_to_age_and_lifetime_where_that_is_honoured() {
    for (site, honoured) in [(HONOURED, true), ("", false)] {
        let stage = with_site(site).await;
        let fields = "Cache-Control: max-age=3600\r\nAge: 1800\r\n";
        stage.origin.on("/page", Script::ok(fields, "page"));
        stage.get("/page").await;
        for (directives, answers) in [
            ("max-age=600", false),
            ("max-age=3000", true),
            ("min-fresh=3000", false),
            ("min-fresh=600", true),
            ("max-age=600, max-stale", false),
            ("no-transform", true),
            ("no-cache", false),
            ("no-store", false),
        ] {
            let field = format!("Cache-Control: {directives}\r\n");
            let reply = stage.ask("GET", "/page", &field).await;
            assert_eq!(is_hit(&reply), answers || !honoured, "{directives}: {reply:?}");
            assert_eq!((reply.status, reply.text().as_str()), (200, "page"));
        }
        let asked = if honoured { 6 } else { 1 };
        assert_eq!(stage.origin.seen("/page"), asked);
    }
}

#[tokio::test]
async fn a_client_may_take_what_is_stale_unless_its_origin_forbids_that() {
    for (fields, max_stale, taken) in [
        ("", "max-stale", true),
        ("", "max-stale=3600", true),
        ("", "max-stale=3600, max-age=3600", true),
        ("", "max-stale=0", false),
        ("", "max-age=3600", false),
        ("Cache-Control: must-revalidate\r\n", "max-stale", false),
        ("Cache-Control: proxy-revalidate\r\n", "max-stale", false),
        ("Cache-Control: no-cache\r\nETag: \"1\"\r\n", "max-stale", false),
    ] {
        let stage = gone_stale("", HONOURED, fields).await;
        stage.origin.on("/page", Script::ok(fields, "second"));
        let field = format!("Cache-Control: {max_stale}\r\n");
        let reply = stage.ask("GET", "/page", &field).await;
        let expected = if taken { "first" } else { "second" };
        assert_eq!(reply.text(), expected, "{fields}{max_stale}");
        // What was taken stale is renewed behind the answer.
        eventually("a fetch", async || stage.origin.seen("/page") == 2).await;
    }
}

#[tokio::test]
async fn who_wants_only_what_is_stored_never_reaches_the_origin() {
    let site = "bypass = { path = [\"/own\"] }";
    for site in [site.to_owned(), format!("{site}\n{HONOURED}")] {
        let stage = with_site(&site).await;
        stage.origin.otherwise(Script::ok("Cache-Control: max-age=3600\r\n", "page"));
        let field = "Cache-Control: only-if-cached\r\n";
        for (method, target) in [("GET", "/page"), ("HEAD", "/page"), ("GET", "/own")] {
            assert_eq!(stage.ask(method, target, field).await.status, 504, "{method} {target}");
        }
        assert_eq!(stage.origin.targets(), Vec::<String>::new());
        stage.get("/page").await;
        assert!(is_hit(&stage.ask("GET", "/page", field).await));
        // What may change something is for the origin alone (RFC 9111 4).
        let fields = format!("{field}Content-Length: 0\r\n");
        assert_eq!(stage.ask("POST", "/own", &fields).await.status, 200);
    }
}

#[tokio::test]
async fn an_application_may_forbid_to_keep_a_page_as_it_did_before_nginx() {
    let stage = with_site("cache = { ttl = { 200 = \"1h\" } }").await;
    for (target, value, kept) in
        [("/a", "0", false), ("/b", "-1", false), ("/c", "60", true), ("/d", "off", true)]
    {
        stage.origin.on(target, Script::ok(&format!("X-Accel-Expires: {value}\r\n"), "page"));
        stage.get(target).await;
        let again = stage.get(target).await;
        assert_eq!(is_hit(&again), kept, "{value}");
        assert_eq!(again.field("x-accel-expires"), None, "{value}");
    }
}

#[tokio::test]
async fn a_page_is_not_guessed_to_be_good_for_a_day() {
    let stage = Stage::new().await;
    let old = "Last-Modified: Thu, 01 Jan 2015 00:00:00 GMT\r\n";
    for (target, more, least, most) in [
        ("/html", "Content-Type: text/html; charset=utf-8\r\n", 1, 600),
        ("/css", "Content-Type: text/css\r\n", 601, 86_400),
    ] {
        stage.origin.on(target, Script::ok(&format!("{old}{more}"), "page"));
        stage.get(target).await;
        let status = stage.get(target).await.field("cache-status").expect("Cache-Status");
        let ttl = status.split("ttl=").nth(1).and_then(|ttl| ttl.parse::<u64>().ok());
        assert!(ttl.is_some_and(|ttl| (least..=most).contains(&ttl)), "{target}: {status}");
    }
    stage.origin.on("/pragma", Script::ok(&format!("{old}Pragma: no-cache\r\n"), "page"));
    stage.get("/pragma").await;
    assert!(!is_hit(&stage.get("/pragma").await));
}
