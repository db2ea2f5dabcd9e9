//! Tests of causes that an explanation names: clocks, variants, failing origins, sessions,
//! hit-for-miss.

use crate::support;

use serde_json::{Value, json};
use support::explain::{explain, fact, step};
use support::{Setup, Stage, eventually, http_date};
use testkit::client::request;
use testkit::origin::Script;
use testkit::reply::Reply;

/// Returns the explanation of a GET of `target`.
async fn explain_get(stage: &Stage, target: &str) -> Value {
    explain(&stage.daemon, &json!({ "url": format!("http://larder.test{target}") })).await
}

fn text<'t>(value: &'t Value, key: &str) -> &'t str {
    value[key].as_str().unwrap_or_default()
}

async fn get(stage: &Stage, target: &str, fields: &str) -> Reply {
    stage.exchange("GET", &request("GET", target, fields)).await
}

/// Returns the advice of an explanation, in one text.
fn advice(told: &Value) -> String {
    let all = told["advice"].as_array().into_iter().flatten();
    all.filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
}

/// Explains `target` as soon as a request for it is in the ring.
async fn explain_known(stage: &Stage, target: &str) -> Value {
    let told = std::cell::RefCell::new(Value::Null);
    eventually(target, async || {
        *told.borrow_mut() = explain_get(stage, target).await;
        told.borrow()["past"].as_array().is_some_and(|past| !past.is_empty())
    })
    .await;
    told.into_inner()
}

#[tokio::test]
async fn an_origin_whose_clock_is_behind_is_known_by_its_date() {
    let stage = Stage::new().await;
    let dated = format!("Cache-Control: max-age=60\r\nDate: {}\r\n", http_date(120));
    stage.origin.on("/clock", Script::ok(&dated, "x"));
    stage.origin.on("/age", Script::ok("Cache-Control: max-age=60\r\nAge: 90\r\n", "x"));
    for (target, token, named) in [("/clock", "old-date", "Date: "), ("/age", "old-age", "Age: 90")]
    {
        get(&stage, target, "").await;
        let told = explain_known(&stage, target).await;
        let past = &told["past"][0];
        assert_eq!(fact(past, "not stored"), token, "{past}");
        assert!(fact(past, "because of").contains(named), "{past}");
    }
    assert!(advice(&explain_get(&stage, "/clock").await).contains("clock (NTP)"));
}

#[tokio::test]
async fn a_page_by_user_agent_is_explained_with_its_number_of_variants() {
    let stage = Stage::new().await;
    let fields = "Cache-Control: max-age=600\r\nVary: User-Agent\r\n";
    stage.origin.on("/", Script::ok(fields, "x"));
    for number in 0..5 {
        get(&stage, "/", &format!("User-Agent: browser {number}\r\n")).await;
    }
    let question = json!({ "url": "http://larder.test/", "headers": ["User-Agent: another"] });
    let told = explain(&stage.daemon, &question).await;
    assert!(text(step(&told, "variants"), "why").contains("`User-Agent` (5 values)"), "{told:#}");
    let advice = advice(&told);
    assert!(advice.contains("once for each `User-Agent` (5 forms so far, at most 64"), "{advice}");
    let found = json!({ "url": "http://larder.test/", "headers": ["User-Agent: browser 1"] });
    let told = explain(&stage.daemon, &found).await;
    assert_eq!(text(&told["outcome"], "served"), "HIT");
}

fn stands_in(reply: &Reply) -> bool {
    reply.field("Cache-Status").is_some_and(|said| said.contains("origin-failed"))
}

#[tokio::test]
async fn a_failing_origin_is_known_and_named() {
    let site = "cache = { stale_while_revalidate = \"0s\" }";
    let stage = Setup { site, ..Setup::default() }.start().await;
    for target in ["/page", "/other"] {
        stage.origin.on(target, Script::ok("Cache-Control: max-age=1\r\n", "page"));
        get(&stage, target, "").await;
    }
    stage.origin.on("/page", Script::default().close());
    eventually("it answers for its origin", async || stands_in(&get(&stage, "/page", "").await))
        .await;
    let told = explain_get(&stage, "/page").await;
    assert_eq!(text(&told["outcome"], "served"), "STALE-ERROR", "{told:#}");
    assert!(text(&told["outcome"], "summary").ends_with("with status 200"), "{told:#}");
    assert!(text(step(&told, "verdict"), "why").contains("has failed for"), "{told:#}");
    assert!(advice(&told).starts_with("Mend origin `"), "{told:#}");
    // The forecast comes true.
    assert!(stands_in(&get(&stage, "/page", "").await));
    // Another page has not failed yet, and is fetched.
    let told = explain_get(&stage, "/other").await;
    assert_ne!(text(&told["outcome"], "served"), "STALE-ERROR", "{told:#}");
    stage.origin.on("/page", Script::cacheable("new"));
    eventually("it is over", async || {
        get(&stage, "/page", "").await;
        text(&explain_get(&stage, "/page").await["outcome"], "served") == "HIT"
    })
    .await;
}

#[tokio::test]
async fn hit_for_miss_is_explained_with_its_end() {
    let stage = Stage::new().await;
    stage.origin.on("/own", Script::ok("Cache-Control: no-store\r\n", "own"));
    get(&stage, "/own", "").await;
    let told = explain_known(&stage, "/own").await;
    assert_eq!(text(&told["outcome"], "served"), "HIT-FOR-MISS");
    assert!(advice(&told).contains("`larder purge URL` ends it at once"), "{told:#}");
}

#[tokio::test]
async fn a_session_of_php_is_explained_as_such() {
    let stage = Stage::new().await;
    let fields = "Expires: Thu, 19 Nov 1981 08:52:00 GMT\r\nPragma: no-cache\r\n\
                  Cache-Control: no-store, no-cache, must-revalidate\r\n\
                  Set-Cookie: PHPSESSID=secret; path=/\r\n";
    stage.origin.on("/session", Script::ok(fields, "x"));
    get(&stage, "/session", "").await;
    let told = explain_known(&stage, "/session").await;
    assert!(advice(&told).starts_with("A PHP session was begun"), "{told:#}");
    assert!(!told.to_string().contains("secret"));
}
