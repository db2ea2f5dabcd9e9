//! Rules for responses: by what an origin answers they decide about storing, and change fields.

use crate::support;

use serde_json::json;
use support::disked::{Disked, Policy};
use support::explain::{explain, fact, step};
use support::{Setup, Stage, eventually, is_hit};
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};

const RULES: &str = r#"
[[site.response]]
type = "image/*"
ttl = "1h"
headers.set = { Timing-Allow-Origin = "*" }

[[site.response]]
header = { X-Draft = true }
store = false
headers.set = { X-Robots-Tag = "noindex" }

[[site.response]]
status = [404, "5xx"]
store = false
headers.unset = ["X-Debug"]

[[site.response]]
min_bytes = "1KiB"
store = false

[[site.route]]
path = "/shop/*"
[[site.route.response]]
status = 404
store = true
ttl = "1m"
headers.set = { X-Kind = "gone" }
"#;

async fn stage() -> Stage {
    Setup { site: RULES, ..Setup::default() }.start().await
}

fn answer(status: &str, fields: &str, body: &str) -> Script {
    let length = body.len();
    Script::respond(format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {length}\r\n\r\n{body}"))
}

const FRESH: &str = "Cache-Control: max-age=60\r\n";

#[tokio::test]
async fn what_a_response_is_decides_whether_it_is_stored() {
    let stage = stage().await;
    let long = "x".repeat(1024);
    for (target, script, stored) in [
        ("/picture", answer("200 OK", "Content-Type: image/png\r\n", "a"), true),
        ("/text", answer("200 OK", "Content-Type: text/plain\r\n", "a"), false),
        ("/fresh", answer("200 OK", FRESH, "a"), true),
        ("/draft", answer("200 OK", &format!("{FRESH}X-Draft: 1\r\n"), "a"), false),
        ("/none", answer("404 Not Found", FRESH, "a"), false),
        ("/long", answer("200 OK", FRESH, &long), false),
        ("/short", answer("200 OK", FRESH, &long[1..]), true),
        ("/shop/none", answer("404 Not Found", "", "a"), true),
        // A rule stores nothing that its origin forbids.
        ("/shop/private", answer("404 Not Found", "Cache-Control: private\r\n", "a"), false),
        (
            "/private",
            answer("200 OK", "Content-Type: image/png\r\nCache-Control: no-store\r\n", "a"),
            false,
        ),
    ] {
        stage.origin.on(target, script);
        stage.get(target).await;
        assert_eq!(is_hit(&stage.get(target).await), stored, "{target}");
        assert_eq!(is_hit(&stage.ask("HEAD", target, "").await), stored, "{target}");
    }
    // Nor what is for one visitor.
    let visitor = "Cookie: sid=1\r\n";
    stage.origin.on("/shop/hers", answer("404 Not Found", "", "hers"));
    stage.ask("GET", "/shop/hers", visitor).await;
    stage.origin.on("/shop/hers", answer("404 Not Found", "", "all"));
    assert_eq!(stage.get("/shop/hers").await.text(), "all");
}

#[tokio::test]
async fn fields_are_changed_for_clients_of_matching_responses_alone() {
    let stage = stage().await;
    let debug = "X-Debug: trace\r\n";
    let picture = format!("Content-Type: image/png\r\nETag: \"a\"\r\n{debug}");
    stage.origin.on("/picture", answer("200 OK", &picture, "abc"));
    stage.origin.on("/text", answer("200 OK", &format!("Content-Type: text/plain\r\n{debug}"), ""));
    stage.origin.on("/shop/none", answer("404 Not Found", debug, "gone"));
    for (method, target, fields, status, timing) in [
        ("GET", "/picture", "", 200, true),
        ("GET", "/picture", "", 200, true),
        ("HEAD", "/picture", "", 200, true),
        // The rule is for what the origin sent, not for the part of it that a client gets.
        ("GET", "/picture", "Range: bytes=0-1\r\n", 206, true),
        ("GET", "/picture", "If-None-Match: \"a\"\r\n", 304, true),
        ("GET", "/text", "", 200, false),
    ] {
        let reply = stage.ask(method, target, fields).await;
        assert_eq!(reply.status, status, "{target} {fields}");
        let told = reply.field("timing-allow-origin");
        assert_eq!(told.is_some(), timing, "{target} {fields}");
        assert!(reply.field("x-debug").is_some(), "{target} {fields}");
    }
    for hit in [false, true] {
        let reply = stage.get("/shop/none").await;
        assert_eq!((reply.status, is_hit(&reply)), (404, hit));
        assert_eq!(reply.field("x-debug"), None);
        assert_eq!(reply.field("x-kind").as_deref(), Some("gone"));
    }
    // A page that arises here is no response of an origin.
    stage.origin.on("/broken", Script::default().close());
    let reply = stage.get("/broken").await;
    assert_eq!(reply.status, 502);
    assert!(reply.field("cache-control").is_some());
}

#[tokio::test]
async fn a_confirmation_is_judged_by_the_rules_as_well() {
    let stage = stage().await;
    let first = "Cache-Control: max-age=0\r\nETag: \"a\"\r\n";
    stage.origin.on("/page", answer("200 OK", first, "old"));
    stage.get("/page").await;
    let draft = "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nX-Draft: 1\r\n\r\n";
    stage.origin.on("/page", Script::respond(draft));
    let reply = stage.get("/page").await;
    assert_eq!(
        (reply.text().as_str(), reply.field("x-robots-tag").as_deref()),
        ("old", Some("noindex"))
    );
    stage.origin.on("/page", answer("200 OK", FRESH, "new"));
    assert_eq!(stage.get("/page").await.text(), "new", "it is no longer stored");
}

#[tokio::test]
async fn a_rule_of_now_keeps_what_the_disk_has_from_coming_back() {
    let mut stage = Disked::start(Policy::Declared, "").await;
    stage
        .origin
        .on("/picture", answer("200 OK", &format!("{FRESH}Content-Type: image/png\r\n"), "a"));
    stage
        .origin
        .on("/text", answer("200 OK", &format!("{FRESH}Content-Type: text/plain\r\n"), "a"));
    for target in ["/picture", "/text"] {
        stage.get(target).await;
    }
    let rule = "[[site.response]]\ntype = \"image/*\"\nstore = false\n[limits]";
    stage.file = stage.file.replace("[limits]", rule);
    stage.again(rustix::process::Signal::TERM).await;
    assert!(!is_hit(&stage.get("/picture").await) && is_hit(&stage.get("/text").await));
}

#[tokio::test]
async fn explanation_and_log_name_the_rule() {
    let stage = stage().await;
    stage.origin.on("/shop/none", answer("404 Not Found", "", "a"));
    stage.origin.on("/draft", answer("200 OK", &format!("{FRESH}X-Draft: 1\r\n"), "a"));
    let question = |target: &str| json!({ "url": format!("http://larder.test{target}") });
    let told = explain(&stage.daemon, &question("/shop/none")).await;
    let rules = fact(step(&told, "storing"), "rules for responses").to_owned();
    assert!(rules.starts_with("type image/*: ttl 1h if it states none; header X-Draft"), "{rules}");
    assert!(rules.ends_with("status 404: may be stored, ttl 1m if it states none"), "{rules}");
    for target in ["/shop/none", "/draft"] {
        stage.get(target).await;
    }
    let told = explain(&stage.daemon, &question("/shop/none")).await;
    let why = step(&told, "freshness")["why"].as_str().expect("a reason").to_owned();
    assert!(why.starts_with("ttl 60 s: `ttl` of the rule for status 404"), "{why}");
    eventually("the reason", async || {
        let told = explain(&stage.daemon, &question("/draft")).await;
        let past = &told["past"][0];
        fact(past, "not stored") == "response-rule"
            && fact(past, "because of") == "rule for header X-Draft"
    })
    .await;
}

#[tokio::test]
async fn a_rule_that_does_nothing_or_is_for_everything_is_refused() {
    let origin = ScriptedOrigin::start().await.expect("a port for the origin");
    for (rule, why) in [
        ("store = false", "a rule for responses without conditions"),
        ("status = 99\nstore = false", "`99` is no status that could be stored"),
        ("status = \"404\"", "a rule for responses that does nothing"),
        ("status = \"200\"\nttl = \"1ms\"", "a lifetime is at least 100ms"),
        ("type = \"html\"\nstore = false", "a type is written as"),
        ("min_bytes = 2\nmax_bytes = 1\nstore = false", "no response is at least"),
    ] {
        let site = format!("[[site.response]]\n{rule}\n");
        let file = Setup { site: &site, ..Setup::default() }.file(&origin);
        let error = Daemon::start(&file).expect_err("it is refused").to_string();
        assert!(error.contains(why), "{rule}: {error}");
    }
}
