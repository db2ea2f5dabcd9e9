//! Tests of `POST /api/v1/explain` and `larder explain`: the forecast agrees with what the daemon
//! then does.

use crate::support;

use std::collections::HashMap;
use std::process::Command;

use observe::format::{self, FieldPositions};
use observe::ring::{FollowStart, RingFollower};
use serde_json::{Value, json};
use support::explain::{explain, fact, put, step};
use support::folder::Folder;
use support::{Setup, Stage, eventually, is_full_run};
use testkit::client::request;
use testkit::larder::binary;
use testkit::origin::Script;
use testkit::reply::Reply;

/// Returns the explanation of a GET of `target` at `a.test`.
async fn explain_get(stage: &Stage, target: &str) -> Value {
    explain(&stage.daemon, &json!({ "url": format!("http://a.test{target}") })).await
}

fn text<'t>(value: &'t Value, key: &str) -> &'t str {
    value[key].as_str().unwrap_or_default()
}

/// Reads the ring until `count` records have an `X-Id`; returns them by that.
async fn records(stage: &Stage, count: usize) -> HashMap<String, Value> {
    let mut follower =
        RingFollower::open(&stage.daemon.log_ring(), FollowStart::Oldest).expect("a ring");
    let fields = FieldPositions::new(follower.names());
    let found = std::cell::RefCell::new(HashMap::new());
    let follower = std::cell::RefCell::new(&mut follower);
    eventually("the records", async || {
        let mut look = |record: &observe::Record<'_>| {
            if !record.is_client() {
                return;
            }
            let mut line = Vec::new();
            format::json(record, &fields, true, &mut line);
            let record: Value = serde_json::from_slice(&line).expect("JSON");
            if let Some(id) = record["headers"]["X-Id"].as_str() {
                found.borrow_mut().insert(id.to_owned(), record.clone());
            }
        };
        follower.borrow_mut().poll(&mut look).expect("a readable ring");
        found.borrow().len() >= count
    })
    .await;
    found.into_inner()
}

/// Draws from lists, reproducibly.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    fn of<'l>(&mut self, list: &[&'l str]) -> &'l str {
        list[self.below(list.len())]
    }
}

const SITE: &str = r#"
allow = ["127.0.0.0/8"]
cache = { ttl = { 200 = "1h" }, key_headers = ["X-Tenant"] }
cookies = { strip = ["seen_*"], key = ["lang"] }
query = { strip = ["ref"], sort = true }
[site.bypass]
path = ["/admin*"]
cookie = ["login_*"]
header = { X-Draft = true }
query = ["preview"]
[[site.route]]
path = "/off*"
cache = false
[[site.route]]
path = "/robots.txt"
respond = { body = "none" }
[[site.route]]
path = "/gone*"
redirect = "/"
[[site.route]]
path = "/shut*"
deny = ["127.0.0.1"]
[[site.route]]
path = "/strict*"
cache = { request_directives = "honour" }
"#;

/// Responses of the origin, by path: constant within a test.
const ANSWERS: [(&str, &str); 16] = [
    ("/fresh", "Cache-Control: max-age=600\r\n"),
    ("/shared", "Cache-Control: public, s-maxage=600\r\n"),
    ("/silent", ""),
    ("/private", "Cache-Control: private\r\n"),
    ("/no-store", "Cache-Control: no-store\r\n"),
    ("/cookie", "Cache-Control: max-age=600\r\nSet-Cookie: sid=1\r\n"),
    ("/stale", "Cache-Control: max-age=0\r\nETag: \"1\"\r\n"),
    ("/no-cache", "Cache-Control: no-cache\r\nETag: \"1\"\r\n"),
    ("/grace", "Cache-Control: max-age=0, stale-while-revalidate=600\r\n"),
    ("/vary", "Cache-Control: max-age=600\r\nVary: Accept-Encoding\r\n"),
    ("/never", "Cache-Control: max-age=600\r\nVary: *\r\n"),
    ("/cdn", "CDN-Cache-Control: max-age=600\r\nCache-Control: no-store\r\n"),
    ("/strict", "Cache-Control: max-age=600\r\nETag: \"1\"\r\n"),
    ("/strict-stale", "Cache-Control: max-age=0\r\nETag: \"1\"\r\n"),
    ("/off", "Cache-Control: max-age=600\r\n"),
    ("/shut", "Cache-Control: max-age=600\r\n"),
];

const OTHERS: [&str; 4] = ["/admin/x", "/robots.txt", "/gone", "/%61dmin/x"];
const QUERIES: [&str; 8] = ["", "", "", "", "?ref=1", "?b=1&a=2", "?a=2&b=1", "?preview=1"];
const METHODS: [&str; 8] = ["GET", "GET", "GET", "GET", "GET", "HEAD", "POST", "OPTIONS"];
const FIELDS: [&str; 20] = [
    "",
    "",
    "",
    "",
    "",
    "",
    "Cookie: theme=dark",
    "Cookie: seen_it=1",
    "Cookie: lang=de",
    "Cookie: login_me=1; lang=de",
    "Authorization: Basic YTpi",
    "Accept-Encoding: gzip",
    "Accept-Encoding: br",
    "Cache-Control: no-cache",
    "Cache-Control: only-if-cached",
    "Cache-Control: max-stale=60",
    "X-Tenant: 7",
    "X-Draft: 1",
    "If-None-Match: \"1\"",
    "If-Match: \"1\"",
];

/// Returns true if the explanation of a request (`told`) and the request's record agree.
fn agree(told: &Value, record: &Value) -> bool {
    let (foreseen, served) = (text(&told["outcome"], "served"), text(record, "cache"));
    let summary = text(&told["outcome"], "summary");
    let asks_again = summary.contains("must be revalidated");
    let same = foreseen == served || asks_again && ["REVALIDATED", "STALE-ERROR"].contains(&served);
    let status = summary.rsplit_once("with status ").map(|(_, status)| status[..3].parse::<u64>());
    let same_status = status.is_none_or(|status| record["status"].as_u64() == status.ok());
    let hash = fact(step(told, "key"), "hash");
    let key = text(record, "key");
    // Passing requests have none; nor is there one before the lookup.
    let same_key = key == hash || key == "0000000000000000" || hash.is_empty();
    let passes = summary.contains("rule `");
    let same_rule = !passes || summary.contains(&format!("rule `{}`", text(record, "rule")));
    let never = text(step(told, "storing"), "why").starts_with("never");
    let same_fate = !never || record["stored"] == false;
    same && same_status && same_key && same_rule && same_fate
}

#[tokio::test]
async fn what_is_said_of_a_request_is_what_becomes_of_it() {
    let top = "log_ring = { headers = [\"X-Id\"] }";
    let stage = Setup { top, site: SITE, ..Setup::default() }.start().await;
    for (path, fields) in ANSWERS {
        stage.origin.on(path, Script::ok(fields, "body"));
    }
    let mut dice = Dice(7);
    let count = if is_full_run() { 10_000 } else { 400 };
    let paths: Vec<&str> = ANSWERS.map(|(path, _)| path).into_iter().chain(OTHERS).collect();
    let mut said = HashMap::new();
    for n in 0..count {
        let target = format!("{}{}", dice.of(&paths), dice.of(&QUERIES));
        let method = dice.of(&METHODS);
        let mut fields: Vec<String> = vec![format!("X-Id: {n}")];
        fields.extend([dice.of(&FIELDS), dice.of(&FIELDS)].map(str::to_owned));
        fields.retain(|line| !line.is_empty());
        fields.dedup();
        let question = json!({
            "url": format!("http://a.test{target}"),
            "method": method,
            "headers": fields,
            "last": 0,
        });
        let told = explain(&stage.daemon, &question).await;
        let lines: String = fields.iter().map(|line| format!("{line}\r\n")).collect();
        stage.exchange(method, &at_a(&request(method, &target, &lines))).await;
        said.insert(n.to_string(), (question, told));
    }
    let records = records(&stage, count).await;
    let mut words: Vec<&str> = Vec::new();
    for (id, (question, told)) in &said {
        let record = &records[id];
        assert!(agree(told, record), "{question}\nsaid: {told:#}\nhappened: {record:#}");
        words.push(text(record, "cache"));
    }
    words.sort_unstable();
    words.dedup();
    let all = ["HIT", "HIT-FOR-MISS", "MISS", "PASS", "STALE", "SYNTH"];
    assert!(all.iter().all(|word| words.contains(word)), "not everything came up: {words:?}");
}

/// The request, for the host `a.test`.
fn at_a(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let (line, rest) = text.split_once("\r\n").expect("a request line");
    let others: Vec<&str> =
        rest.split("\r\n").filter(|line| !line.to_ascii_lowercase().starts_with("host:")).collect();
    format!("{line}\r\nHost: a.test\r\n{}", others.join("\r\n")).into_bytes()
}

async fn get(stage: &Stage, target: &str, fields: &str) -> Reply {
    stage.exchange("GET", &at_a(&request("GET", target, fields))).await
}

#[tokio::test]
async fn explaining_changes_nothing() {
    let stage = Stage::new().await;
    stage.origin.on("/page", Script::cacheable("page"));
    get(&stage, "/page", "").await;
    get(&stage, "/page", "").await;
    let figures = async || -> Value {
        let reply = stage.daemon.ask_admin("GET", "/stats").await.expect("figures");
        let mut all: Value = serde_json::from_str(&reply.text()).expect("JSON");
        let map = all.as_object_mut().expect("an object");
        // Counters that change without any request.
        let goes_on = ["seconds", "admin", "turn", "memory", "budget"];
        map.retain(|name, _| !goes_on.iter().any(|part| name.contains(part)));
        all
    };
    eventually("both connections are gone", async || {
        let figures = figures().await;
        figures["connections_open"] == 0
    })
    .await;
    let before = figures().await;
    for target in ["/page", "/other", "/page?a=b"] {
        for method in ["GET", "HEAD", "POST", "PURGE"] {
            let url = format!("http://a.test{target}");
            for _ in 0..5 {
                explain(&stage.daemon, &json!({ "url": url, "method": method })).await;
            }
        }
    }
    eventually("figures as before", async || figures().await == before).await;
    assert_eq!(stage.origin.seen("/page") + stage.origin.seen("/other"), 1);
    assert_eq!(fact(step(&explain_get(&stage, "/page").await, "stored"), "hits"), "1");
}

#[tokio::test]
async fn rules_are_shown_with_their_lines() {
    let setup = Setup {
        site: "preset = \"wordpress\"\n[[site.route]]\npath = \"/mine*\"\n",
        ..Setup::default()
    };
    let stage = setup.start().await;
    let file = stage.daemon.config_file();
    let lines = std::fs::read_to_string(&file).expect("the file");
    let line_of = |text: &str| {
        let at = lines.lines().position(|line| line.starts_with(text)).expect("a line");
        format!("{}:{}", file.display(), at + 1)
    };
    let told = explain_get(&stage, "/mine/x").await;
    assert_eq!(text(step(&told, "site"), "where"), line_of("host = \"*\""));
    assert_eq!(text(step(&told, "route"), "where"), line_of("path = \"/mine*\""));
    assert_eq!(text(step(&told, "fetch"), "where"), line_of("origin = \"app\""));
    let question = json!({
        "url": "http://a.test/?fbclid=1",
        "headers": ["Cookie: wordpress_logged_in_abc=1; _ga=2"],
    });
    let told = explain(&stage.daemon, &question).await;
    let rule = step(&told, "rule");
    let preset = config::preset::find("wordpress").expect("a preset");
    let at = preset.text.lines().position(|line| line.trim() == "\"wordpress_*\",");
    let line = at.expect("the rule") + 1;
    assert_eq!(text(rule, "where"), format!("preset wordpress: line {line}"));
    assert_eq!(rule["decided"], true);
    assert!(text(rule, "why").contains("`wordpress_logged_in_abc`"), "{rule}");
    assert!(text(step(&told, "query"), "why").ends_with("fbclid=1"), "{told}");
    assert_eq!(fact(step(&told, "cookies"), "removed"), "_ga");
    assert_eq!(text(&told["outcome"], "served"), "PASS");
    assert!(!told.to_string().contains("wordpress_logged_in_abc=1"), "a cookie's value");
    get(&stage, "/", "Cookie: wordpress_logged_in_abc=1\r\n").await;
    let past = std::cell::RefCell::new(Value::Null);
    eventually("the record", async || {
        *past.borrow_mut() = explain_get(&stage, "/").await["past"][0].clone();
        !past.borrow().is_null()
    })
    .await;
    let past = past.into_inner();
    assert_eq!(past["where"], rule["where"], "{past}");
    assert!(text(&past, "why").ends_with("past the cache by rule `bypass cookie wordpress_*`"));
}

#[tokio::test]
async fn freshness_is_shown_with_its_field() {
    let site = "cache = { ttl = { 404 = \"90s\" }, stale_while_revalidate = \"30s\" }";
    let stage = Setup { site, ..Setup::default() }.start().await;
    let file = stage.daemon.config_file();
    let not_found = "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno";
    stage.origin.on("/404", Script::respond(not_found));
    for (target, fields, expected) in [
        (
            "/cdn",
            "CDN-Cache-Control: max-age=300\r\nCache-Control: max-age=60\r\n",
            "ttl 300 s (5 min): `CDN-Cache-Control: max-age=300` (RFC 9213) over \
             `Cache-Control: max-age=60`; age ",
        ),
        (
            "/surrogate",
            "Surrogate-Control: max-age=200, content=\"ESI/1.0\"\r\nCache-Control: max-age=60\r\n",
            "ttl 200 s: `Surrogate-Control: max-age=200, content=\"ESI/1.0\"` (Edge \
             Architecture) over `Cache-Control: max-age=60`; age ",
        ),
        (
            "/s-maxage",
            "Cache-Control: s-maxage=50, max-age=60\r\nAge: 10\r\n",
            "ttl 50 s: `Cache-Control: s-maxage=50, max-age=60` (RFC 9111 5.2.2.10); age 1",
        ),
        (
            "/max-age",
            "Cache-Control: max-age=70, stale-while-revalidate=5\r\nExpires: 0\r\n",
            "ttl 70 s: `Cache-Control: max-age=70, stale-while-revalidate=5` (RFC 9111 5.2.2.1) \
             over `Expires: 0`; age ",
        ),
        (
            "/expires",
            "Date: Sun, 06 Nov 2022 08:49:37 GMT\r\nExpires: Fri, 06 Nov 2048 08:49:37 GMT\r\n",
            "ttl 820540800 s (9497 d): `Expires: Fri, 06 Nov 2048 08:49:37 GMT` less `Date: Sun, \
             06 Nov 2022 08:49:37 GMT` (RFC 9111 5.3); age ",
        ),
        (
            "/guess",
            "Last-Modified: Fri, 06 Nov 2015 08:49:37 GMT\r\n",
            "ttl 86400 s (24 h): a tenth of the time since `Last-Modified: Fri, 06 Nov 2015 \
             08:49:37 GMT` (heuristic, RFC 9111 4.2.2); age ",
        ),
        ("/404", "", "ttl 90 s: setting `cache.ttl.404`, since the origin names none; age "),
    ] {
        if target != "/404" {
            stage.origin.on(target, Script::ok(fields, "body"));
        }
        get(&stage, target, "").await;
        let told = explain_get(&stage, target).await;
        let freshness = step(&told, "freshness");
        assert!(text(freshness, "why").starts_with(expected), "{freshness}");
        let grace = fact(freshness, "grace");
        let (ms, from) = grace.split_once(": ").expect("who says so");
        match target {
            "/max-age" => assert_eq!(
                (ms, from),
                ("5 s", "`stale-while-revalidate` of the response (RFC 5861)")
            ),
            _ => assert!(ms == "30 s" && from.contains(&format!("{}:", file.display())), "{grace}"),
        }
    }
    let place = text(step(&explain_get(&stage, "/404").await, "freshness"), "where").to_owned();
    assert!(place.starts_with(&file.display().to_string()), "{place}");
}

#[tokio::test]
async fn each_way_of_not_being_stored_has_its_reason() {
    let setup = Setup {
        limits: "object_bytes = \"8KiB\"\ntags = 2",
        site: "[[site.route]]\npath = \"/a.css\"\ncache = { match_type = true }",
        ..Setup::default()
    };
    let stage = setup.start().await;
    let large = "x".repeat(9000);
    let broken = "HTTP/1.1 200 OK\r\nCache-Control: max-age=9\r\nContent-Length: 9\r\n\r\nabc";
    let endless = "HTTP/1.1 200 OK\r\nCache-Control: max-age=9\r\n\r\nabc";
    let hidden = "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 1\r\n\r\na";
    let page = "Content-Type: text/html\r\n";
    let grown = format!(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=9\r\nTransfer-Encoding: chunked\r\n\r\n\
         2328\r\n{large}\r\n0\r\n\r\n"
    );
    let max_age = |more: &str| format!("Cache-Control: max-age=9\r\n{more}");
    for (target, script, asked, token, evidence) in [
        (
            "/private",
            Script::ok("Cache-Control: private\r\n", ""),
            "",
            "private",
            "Cache-Control: private",
        ),
        (
            "/no-store",
            Script::ok("Cache-Control: no-store\r\n", ""),
            "",
            "no-store",
            "Cache-Control: no-store",
        ),
        (
            "/cookie",
            Script::ok(&max_age("Set-Cookie: sid=secret\r\n"), ""),
            "",
            "set-cookie",
            "Set-Cookie: sid",
        ),
        ("/vary", Script::ok(&max_age("Vary: *\r\n"), ""), "", "vary-any", "Vary: *"),
        (
            "/personal",
            Script::ok(&max_age(""), ""),
            "Cookie: a=b\r\n",
            "personal",
            "request's Cookie: a",
        ),
        (
            "/login",
            Script::ok(&max_age(""), ""),
            "Authorization: x\r\n",
            "authorization",
            "request's Authorization",
        ),
        (
            "/events",
            Script::ok(&max_age("Content-Type: text/event-stream\r\n"), ""),
            "",
            "endless",
            "Content-Type: text/event-stream",
        ),
        ("/a.css", Script::ok(&max_age(page), ""), "", "content-type", "Content-Type: text/html"),
        (
            "/tags",
            Script::ok(&max_age("Cache-Tag: a, b, c\r\n"), ""),
            "",
            "tags",
            "3 tags, limit tags",
        ),
        ("/silent", Script::ok("", ""), "", "no-lifetime", "status 200"),
        (
            "/over",
            Script::ok("Cache-Control: max-age=0\r\n", ""),
            "",
            "no-validator",
            "Cache-Control: max-age=0",
        ),
        ("/part", Script::respond(hidden), "", "status", "status 416"),
        ("/closing", Script::respond(endless).close(), "", "framing", ""),
        ("/large", Script::ok(&max_age(""), &large), "", "too-large", ""),
        ("/grown", Script::respond(grown.as_str()), "", "too-large", ""),
        ("/broken", Script::respond(broken).close(), "", "cut", ""),
    ] {
        stage.origin.on(target, script);
        let asked = at_a(&request("GET", target, asked));
        let mut raw = stage.connect().await;
        raw.send(&asked, testkit::client::WriteSplit::Whole).await.expect("sent");
        // Its completeness does not matter here.
        let _ = raw.reply("GET").await;
        let told = std::cell::RefCell::new(Value::Null);
        eventually(target, async || {
            *told.borrow_mut() = explain_get(&stage, target).await;
            told.borrow()["past"].as_array().is_some_and(|past| !past.is_empty())
        })
        .await;
        let told = told.into_inner();
        let past = &told["past"][0];
        assert_eq!(
            (fact(past, "not stored"), fact(past, "because of")),
            (token, evidence),
            "{past}"
        );
        assert!(text(past, "why").contains("not stored: "), "{past}");
        assert!(!told.to_string().contains("secret"), "a cookie's value");
    }
}

#[tokio::test]
async fn variants_and_marks_are_shown() {
    let stage = Stage::new().await;
    stage
        .origin
        .on("/vary", Script::ok("Cache-Control: max-age=60\r\nVary: Accept-Language\r\n", "b"));
    stage.origin.on("/own", Script::ok("Cache-Control: no-store\r\n", "own"));
    for language in ["de", "fr"] {
        get(&stage, "/vary", &format!("Accept-Language: {language}\r\n")).await;
    }
    let question = json!({ "url": "http://a.test/vary", "headers": ["Accept-Language: fr"] });
    let told = explain(&stage.daemon, &question).await;
    let stored: Vec<&str> = told["steps"]
        .as_array()
        .expect("steps")
        .iter()
        .filter(|step| step["what"] == "stored")
        .map(|step| text(step, "why"))
        .collect();
    assert!(
        stored[0].contains("accept-language: de") && stored[0].ends_with("not for this request")
    );
    assert!(
        stored[1].contains("accept-language: fr") && stored[1].ends_with("it is for this request")
    );
    assert_eq!(text(&told["outcome"], "served"), "HIT");
    get(&stage, "/own", "").await;
    let told = explain_get(&stage, "/own").await;
    assert!(text(step(&told, "mark"), "why").starts_with("hit-for-miss for another "), "{told}");
    assert_eq!(text(&told["outcome"], "served"), "HIT-FOR-MISS");
    get(&stage, "/vary", "Accept-Language: de\r\nCookie: a=b\r\n").await;
    eventually("the record", async || {
        let told = explain_get(&stage, "/vary").await;
        fact(&told["past"][0], "not stored") == "beside-stored"
    })
    .await;
}

#[tokio::test]
async fn files_refusals_and_strangers_are_foreseen() {
    let folder = Folder::new();
    folder.file("there.txt", "text");
    let site = format!(
        "purge = {{ allow = [\"127.0.0.2\"] }}\n[[site.route]]\npath = \"/files/*\"\n\
         files = \"{}\"\n",
        folder.path().display()
    );
    let stage =
        Setup { top: "log_ring = { headers = [\"X-Id\"] }", site: &site, ..Setup::default() };
    let stage = stage.start().await;
    let asked = [
        ("GET", "/files/there.txt", "FILE"),
        ("GET", "/files/missing.txt", "SYNTH"),
        ("POST", "/files/there.txt", "SYNTH"),
        ("TRACE", "/", "SYNTH"),
        ("PURGE", "/page", "SYNTH"),
        ("OPTIONS", "/x", "PASS"),
    ];
    let mut said = Vec::new();
    for (id, (method, target, served)) in asked.into_iter().enumerate() {
        let url = format!("http://a.test{target}");
        let told =
            explain(&stage.daemon, &json!({ "url": url, "method": method, "last": 0 })).await;
        let foreseen = text(&told["outcome"], "served");
        let same = foreseen == served || (foreseen, method) == ("PURGE", "PURGE");
        assert!(same, "{method} {target}: {told:#}");
        stage.exchange(method, &at_a(&request(method, target, &format!("X-Id: {id}\r\n")))).await;
        said.push((id.to_string(), told));
    }
    let records = records(&stage, asked.len()).await;
    for (id, told) in &said {
        let record = &records[id];
        let purges = record["method"] == "PURGE" && record["status"] == 403;
        assert!(purges || agree(told, record), "said: {told:#}\nhappened: {record:#}");
    }
}

#[tokio::test]
async fn a_request_that_would_wait_is_explained_so() {
    let stage = Stage::new().await;
    stage.origin.on("/slow", Script::default().hang());
    let mut raw = stage.connect().await;
    let asked = at_a(&request("GET", "/slow", ""));
    raw.send(&asked, testkit::client::WriteSplit::Whole).await.expect("sent");
    eventually("the fetch", async || stage.origin.seen("/slow") > 0).await;
    let told = explain_get(&stage, "/slow").await;
    assert_eq!(text(&told["outcome"], "served"), "COLLAPSED", "{told}");
}

#[tokio::test]
async fn questions_that_make_no_sense_are_refused_in_words() {
    let stage = Stage::new().await;
    for (question, expected) in [
        (json!({ "url": "ftp://a.test" }), "a URL begins with"),
        (json!({ "url": "http://a.test/", "headers": ["Host: b"] }), "the listener would refuse"),
        (json!({ "url": "http://a.test/", "headers": ["x"] }), "a header field is written"),
        (json!({ "link": "http://a.test/" }), "`link` is not known"),
    ] {
        let reply = put(&stage.daemon, &question).await;
        let body: Value = serde_json::from_str(&reply.text()).expect("JSON");
        assert_eq!(reply.status, 400);
        assert!(text(&body, "error").starts_with(expected), "{body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_prints_for_people_and_for_tools() {
    let stage = Stage::new().await;
    stage.origin.on("/page", Script::cacheable("page"));
    get(&stage, "/page", "").await;
    let run = |arguments: &[&str]| {
        let mut command = Command::new(binary().expect("a binary"));
        command.arg("explain").arg("--admin-socket").arg(stage.daemon.admin_socket());
        let output = command.args(arguments).output().expect("it runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        (output.status.success(), text(output.stdout), text(output.stderr))
    };
    eventually("the record", async || run(&["http://a.test/page"]).1.contains("MISS 200, stored"))
        .await;
    let (good, out, _) = run(&["http://a.test/page", "-H", "Accept: text/html"]);
    assert!(good && out.starts_with("GET http://a.test/page\n  HIT: "), "{out}");
    assert!(out.lines().all(|line| line.chars().count() <= 80) && !out.contains('\x1b'), "{out}");
    let (_, end) = out.split_once("\n\nWhat to do:\n").expect("an end");
    assert!(end.starts_with("  Nothing: the cache answers."), "{end}");
    let (good, out, _) = run(&["http://a.test/page", "--method", "POST", "--json"]);
    let told: Value = serde_json::from_str(&out).expect("JSON");
    assert!(good && told["outcome"]["served"] == "PASS", "{told}");
    let (good, out, _) = run(&["a.test/page"]);
    assert!(good && out.starts_with("GET http://a.test/page\n  HIT: "), "{out}");
    let (good, _, error) = run(&["ftp://a.test/page"]);
    assert!(!good && error.starts_with("larder: a URL begins with"), "{error}");
}

/// The advice at the end of an explanation.
fn advice(told: &Value) -> String {
    let all = told["advice"].as_array().expect("advice").iter();
    all.map(|one| one.as_str().expect("a sentence")).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn what_to_do_is_said_at_the_end() {
    let site = "preset = \"wordpress\"\n[[site.route]]\npath = \"/off/*\"\ncache = false\n\
                [[site.route]]\npath = \"/gone\"\nrespond = { status = 410 }\n\
                [[site.route]]\npath = \"/closed\"\nallow = [\"192.0.2.0/24\"]\n";
    let stage = Setup { site, ..Setup::default() }.start().await;
    let html = "Content-Type: text/html\r\n";
    stage.origin.on("/page", Script::ok(html, "page"));
    get(&stage, "/page", "").await;
    for (question, expected) in [
        (json!({ "url": "http://a.test/page" }), "Nothing: the cache answers."),
        (json!({ "url": "http://a.test/none" }), "Nothing: the next request finds it stored"),
        (
            json!({ "url": "http://a.test/page", "headers": ["Cookie: wordpress_logged_in_1=a"] }),
            "Nothing, if `wordpress_logged_in_1` identifies the visitor",
        ),
        (
            json!({ "url": "http://a.test/page", "headers": ["Cookie: theme=dark"] }),
            "If only scripts in the browser read it: `[site.cookies] strip = [\"theme\"]`.",
        ),
        (
            json!({ "url": "http://a.test/page?x=1&y" }),
            "can be removed: `[site.query] strip = [\"x\", \"y\"]`.",
        ),
        (
            json!({ "url": "http://a.test/page", "method": "POST" }),
            "Nothing: such requests, as of forms,",
        ),
        (json!({ "url": "http://a.test/off/1" }), "Remove `cache = false`"),
        (json!({ "url": "http://a.test/gone" }), "Nothing: `respond` answers"),
        (json!({ "url": "http://a.test/closed" }), "Add 127.0.0.1 to `allow`"),
    ] {
        let told = explain(&stage.daemon, &question).await;
        assert!(advice(&told).contains(expected), "{question}: {}", told["advice"]);
    }
}

#[tokio::test]
async fn what_to_do_is_known_by_the_answer_before() {
    for (preset, fields, expected) in [
        ("wordpress", "Set-Cookie: visitor_id=1\r\n", "`grep -r visitor_id wp-content/plugins`"),
        ("wordpress", "Cache-Control: no-store\r\n", "a plugin calls `nocache_headers()`"),
        ("mediawiki", "Cache-Control: private\r\n", "`$wgUseCdn = true` and `$wgCdnMaxAge`"),
        ("drupal", "Cache-Control: no-cache\r\n", "Browser and proxy cache maximum age"),
        ("microcache", "Vary: *\r\n", "leave `Vary` out"),
    ] {
        let site = format!("preset = \"{preset}\"");
        let stage = Setup { site: &site, ..Setup::default() }.start().await;
        stage.origin.on("/page", Script::ok(&format!("Content-Type: text/html\r\n{fields}"), "p"));
        get(&stage, "/page", "").await;
        let told = std::cell::RefCell::new(Value::Null);
        eventually("the record", async || {
            *told.borrow_mut() = explain_get(&stage, "/page").await;
            !told.borrow()["past"][0].is_null()
        })
        .await;
        let told = told.into_inner();
        assert!(advice(&told).contains(expected), "{preset}, {fields}: {told}");
    }
}

#[tokio::test]
async fn equal_requests_of_the_past_are_one_row() {
    let stage = Stage::new().await;
    stage.origin.on("/page", Script::cacheable("page"));
    for _ in 0..4 {
        get(&stage, "/page", "").await;
    }
    let told = std::cell::RefCell::new(Value::Null);
    eventually("all of them", async || {
        *told.borrow_mut() = explain_get(&stage, "/page").await;
        let times = |row: &Value| row["times"].as_u64().expect("a number");
        told.borrow()["past"].as_array().expect("rows").iter().map(times).sum::<u64>() == 4
    })
    .await;
    let told = told.into_inner();
    let rows: Vec<_> = told["past"].as_array().expect("rows").iter().collect();
    assert_eq!(rows.len(), 2, "{told}");
    assert_eq!((text(rows[0], "why"), &rows[0]["times"]), ("HIT 200", &json!(3)));
    assert!(fact(rows[0], "times").starts_with("3 since "), "{told}");
    assert_eq!((text(rows[1], "why"), &rows[1]["times"]), ("MISS 200, stored", &json!(1)));
    assert_eq!(fact(rows[1], "times"), "");
}
