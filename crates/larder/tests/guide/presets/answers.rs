//! Probes about responses rather than requests: reflected redirects and errors (P17), purges by
//! strangers (P20), fragments (P21), purges during a fetch (P22), private responses to requests
//! that wait together (P23), pages made here (P25). For every preset, and for none.

use std::collections::HashSet;

use futures_util::future::join_all;

use super::{MARK, ask};
use crate::support::{Setup, Stage, eventually, is_hit, pause, whole};
use testkit::client::WriteSplit;
use testkit::origin::{Action, Script};

const PRESETS: [&str; 9] = [
    "",
    "wordpress",
    "drupal",
    "magento",
    "mediawiki",
    "static",
    "microcache",
    "wordpress, static, microcache",
    "wordpress, crawlers",
];

/// A page, and a file for every preset.
const TARGETS: [&str; 2] = ["/page", "/wp-content/uploads/a.css"];

async fn stage(preset: &str) -> Stage {
    match preset {
        "" => Setup::default().start().await,
        preset => super::stage(preset).await,
    }
}

fn request(method: &str, host: &str, target: &str, fields: &str) -> Vec<u8> {
    format!("{method} {target} HTTP/1.1\r\nHost: {host}.test\r\n{fields}\r\n").into_bytes()
}

#[tokio::test]
async fn p17_a_redirect_that_reflects_is_private() {
    for preset in PRESETS {
        let stage = stage(preset).await;
        for (number, code) in [301, 302, 303, 307, 308, 400, 403, 405, 500, 502].iter().enumerate()
        {
            for target in TARGETS {
                let host = format!("h{number}");
                // The origin's response depends on something that no cache can see.
                stage.origin.otherwise(Script::respond(format!(
                    "HTTP/1.1 {code} X\r\nLocation: https://{MARK}.test/\r\nContent-Length: {}\r\n\r\n{MARK}",
                    MARK.len()
                )));
                let forged = format!("X-Forwarded-Host: {MARK}.test\r\nX-Host: {MARK}.test\r\n");
                ask(&stage, "GET", &request("GET", &host, target, &forged)).await;
                stage.origin.otherwise(Script::ok("Content-Type: text/css\r\n", "clean"));
                for method in ["GET", "HEAD"] {
                    let reply = ask(&stage, method, &request(method, &host, target, "")).await;
                    let shown = format!("{preset}: {code} {target} {reply:?}");
                    assert_eq!(reply.status, 200, "{shown}");
                    assert!(
                        reply.field("location").is_none() && !reply.text().contains(MARK),
                        "{shown}"
                    );
                }
            }
        }
    }
}

#[tokio::test]
async fn p17_a_missing_page_is_kept_for_ten_seconds_at_most() {
    for preset in PRESETS {
        let stage = stage(preset).await;
        for code in [404, 410] {
            let script =
                Script::respond(format!("HTTP/1.1 {code} X\r\nContent-Length: 4\r\n\r\ngone"));
            stage.origin.otherwise(script);
            for target in TARGETS {
                let host = format!("h{code}");
                ask(&stage, "GET", &request("GET", &host, target, "")).await;
                let reply = ask(&stage, "GET", &request("GET", &host, target, "")).await;
                let status = reply.field("cache-status").unwrap_or_default();
                let ttl = status
                    .split("ttl=")
                    .nth(1)
                    .and_then(|rest| rest.split(';').next()?.parse::<i64>().ok());
                assert!(
                    !is_hit(&reply) || ttl.is_some_and(|ttl| ttl <= 10),
                    "{preset}: {code} {status}"
                );
            }
        }
    }
}

/// Presets permit purges by the application on this machine, over loopback. A request through a
/// proxy in front is not permitted.
#[tokio::test]
async fn p20_strangers_remove_nothing() {
    let stranger = |fields: &str| format!("X-Forwarded-For: 203.0.113.7\r\n{fields}");
    for preset in PRESETS {
        let stage = stage(preset).await;
        stage.origin.otherwise(Script::ok(
            "Content-Type: text/css\r\nCache-Control: public, max-age=300\r\n",
            "page",
        ));
        for target in TARGETS {
            ask(&stage, "GET", &request("GET", "a", target, "")).await;
            assert!(
                is_hit(&ask(&stage, "GET", &request("GET", "a", target, "")).await),
                "{preset}"
            );
            let before = stage.origin.seen(target);
            for (method, at, fields) in [
                ("PURGE", target, ""),
                ("BAN", target, ""),
                ("BAN", "/", "X-Ban: (a+)+$\r\n"),
                ("PURGE", "/*", ""),
                ("PURGE", target, "X-Purge-Method: regex\r\n"),
                ("PURGE", target, "X-Forwarded-For: 127.0.0.1\r\n"),
            ] {
                let reply = ask(&stage, method, &request(method, "a", at, &stranger(fields))).await;
                assert!(matches!(reply.status, 403 | 405), "{preset}: {method} {reply:?}");
            }
            for _ in 0..50 {
                ask(&stage, "PURGE", &request("PURGE", "a", target, &stranger(""))).await;
            }
            let disguised = "X-HTTP-Method-Override: PURGE\r\nX-Purge: 1\r\nSurrogate-Key: x\r\n";
            let reply = ask(&stage, "GET", &request("GET", "a", target, disguised)).await;
            assert!(is_hit(&reply), "{preset}: {reply:?}");
            assert_eq!(stage.origin.seen(target), before, "{preset}");
        }
        assert_eq!(stage.metric("larder_invalidations_total").await, 0);
    }
}

#[tokio::test]
async fn p21_nothing_in_an_answer_makes_it_ask_for_more() {
    let body = format!(
        "<esi:include src=\"/inner\"/><esi:include src=\"http://169.254.169.254/{MARK}\"/>\
         <esi:include src=\"file:///etc/passwd\"/><!--#include virtual=\"/inner\" -->"
    );
    let fields = "Content-Type: text/html\r\nSurrogate-Control: max-age=60\r\n\
                  X-Accel-Redirect: /inner\r\nX-Sendfile: /etc/passwd\r\nX-Reproxy-URL: /inner\r\n";
    for preset in PRESETS {
        let stage = stage(preset).await;
        stage.origin.otherwise(Script::ok(fields, &body));
        // Magento's own program parses every text, without announcements.
        let reads_all = preset == "magento";
        for _ in 0..2 {
            let reply = ask(&stage, "GET", &request("GET", "a", "/page", "")).await;
            assert!(reply.text() == body || reads_all, "{preset}: {reply:?}");
            assert!(!reads_all || !reply.text().contains("<esi:"), "{preset}: {reply:?}");
        }
        let mut targets = stage.origin.targets();
        targets.sort();
        targets.dedup();
        let own: &[&str] = if reads_all { &["/inner", "/page"] } else { &["/page"] };
        assert_eq!(targets, own, "{preset}: its own site alone");
        if reads_all {
            continue;
        }
        // Only pages of an origin that asks for it are parsed, and only for its own site.
        let announced = fields.replace("max-age=60", "content=\"ESI/1.0\", max-age=60");
        stage.origin.on("/read", Script::ok(&announced, &body));
        stage.origin.on("/inner", Script::cacheable("inner"));
        let reply = ask(&stage, "GET", &request("GET", "a", "/read", "")).await;
        let whole = "inner<!--#include virtual=\"/inner\" -->";
        assert_eq!(reply.text(), whole, "{preset}");
        let mut targets = stage.origin.targets();
        targets.sort();
        targets.dedup();
        assert_eq!(targets, ["/inner", "/page", "/read"], "{preset}");
    }
}

#[tokio::test]
async fn p22_what_was_fetched_before_a_change_is_not_seen_after_it() {
    join_all(PRESETS.map(change_during_a_fetch)).await;
}

async fn change_during_a_fetch(preset: &str) {
    let public =
        "Content-Type: text/css\r\nCache-Control: public, max-age=1, stale-while-revalidate=60\r\n";
    let stage = stage(preset).await;
    for (number, stale) in [false, true].into_iter().enumerate() {
        let (host, target) = (format!("h{number}"), format!("/page/{number}"));
        let get = request("GET", &host, &target, "");
        if stale {
            stage.origin.on(&target, Script::ok(public, "first"));
            ask(&stage, "GET", &get).await;
            pause(2_100).await;
        }
        let old = format!("HTTP/1.1 200 OK\r\n{public}Content-Length: 3\r\n\r\nold");
        stage.origin.on(&target, Script::default().delay_ms(1_000).send(old));
        let before = stage.origin.seen(&target);
        // The fetch runs in front of the client or behind a stale response.
        let mut raw = stage.connect().await;
        raw.send(&get, WriteSplit::Whole).await.expect("sent");
        eventually("the fetch", async || stage.origin.seen(&target) > before).await;
        stage.origin.on(&target, Script::ok("", ""));
        let changed = ask(&stage, "DELETE", &request("DELETE", &host, &target, "")).await;
        assert_eq!(changed.status, 200, "{preset}");
        stage.origin.on(&target, Script::ok(public, "new"));
        whole(raw.reply("GET").await, "the first");
        pause(1_200).await;
        for _ in 0..2 {
            let reply = ask(&stage, "GET", &get).await;
            assert_eq!(reply.text(), "new", "{preset}, stale {stale}: {reply:?}");
        }
    }
}

#[tokio::test]
async fn p23_requests_that_wait_together_share_no_private_answer() {
    for preset in PRESETS {
        let stage = stage(preset).await;
        for (number, fields) in [
            "Content-Type: text/html\r\nCache-Control: private, max-age=60\r\n",
            "Content-Type: text/html\r\nCache-Control: no-store\r\n",
            "Content-Type: text/html\r\nSet-Cookie: sid={n}; Path=/\r\n",
            "Content-Type: text/html\r\nCache-Control: max-age=60\r\nSet-Cookie: sid={n}; Path=/\r\n",
            "Content-Type: text/html\r\nCache-Control: max-age=60\r\nVary: *\r\n",
            "Content-Type: text/html\r\nCache-Control: max-age=60\r\nVary: X-User\r\n",
            "Content-Type: text/event-stream\r\nCache-Control: max-age=60\r\n",
        ]
        .iter()
        .enumerate()
        {
            let answer = format!("{fields}X-Answer: {{n}}\r\n");
            let script = Script::default().delay_ms(150).then(Action::Mirror(answer));
            stage.origin.otherwise(script);
            let host = format!("h{number}");
            let asks = (0..8).map(|user| {
                let request = request("GET", &host, "/page", &format!("X-User: {user}\r\n"));
                let stage = &stage;
                async move {
                    let reply = ask(stage, "GET", &request).await;
                    let own = format!("X-User: {user}\n");
                    assert!(reply.text().contains(&own), "{preset} {fields} {reply:?}");
                    reply.field("x-answer")
                }
            });
            let answers = join_all(asks).await.into_iter().collect::<HashSet<_>>();
            assert_eq!(answers.len(), 8, "{preset}: {fields}");
        }
    }
}

#[tokio::test]
async fn p25_pages_of_our_own_reflect_nothing_and_are_not_stored() {
    for preset in PRESETS {
        let stage = stage(preset).await;
        stage.origin.otherwise(Script::default().reset());
        let long = format!("/{MARK}{}", "x".repeat(9_000));
        let marked = format!("/{MARK}?<script>{MARK}");
        let probes = [
            request(
                "GET",
                "a",
                &format!("/{MARK}"),
                &format!("X-A: {MARK}\r\nReferer: {MARK}\r\n"),
            ),
            request("GET", MARK, "/page", ""),
            request("GET", "a", &marked, ""),
            request("GET", "a", "/page", &format!("X-Bad: {MARK}\x07\r\n")),
            request("GET", "a", "/page", &format!("{MARK}<script>: 1\r\n")),
            request("GET", "a", &long, ""),
            request(&format!("TRACE{MARK}"), "a", "/page", ""),
            request("TRACE", "a", &format!("/{MARK}"), ""),
            request("GET", "a", &format!("/a/..%2f{MARK}"), ""),
            request("GET", "a", &format!("/%zz{MARK}"), ""),
        ];
        for probe in &probes {
            let reply = ask(&stage, "GET", probe).await;
            let shown = format!(
                "{preset}: {}\n{reply:?}\n{}",
                String::from_utf8_lossy(probe),
                reply.text()
            );
            assert!(reply.status >= 400, "{shown}");
            let fields = reply.fields.iter().map(|(_, value)| String::from_utf8_lossy(value));
            let all = fields.collect::<Vec<_>>().join("\n") + &reply.text();
            assert!(!all.contains(MARK) && !all.contains("<script"), "{shown}");
            assert!(!all.contains(env!("CARGO_PKG_VERSION")), "{shown}");
            assert_eq!(reply.field("cache-control").as_deref(), Some("no-store"), "{shown}");
            assert!(reply.field("server").is_none(), "{shown}");
        }
    }
}
