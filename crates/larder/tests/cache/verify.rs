//! Tests of `verify`: hits are compared with the origin in the background, and a page that differs
//! by visitor is purged and answers no such visitor again.

use std::net::SocketAddr;

use crate::support;

use serde_json::{Value, json};
use support::console::{look, printed, run};
use support::explain::{explain, step};
use support::{Setup, Stage, eventually, is_hit, sent_field};
use testkit::origin::Script;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const CACHEABLE: &str = "Cache-Control: max-age=600\r\n";

async fn start(site: &str) -> Stage {
    let site = format!("cache.verify = \"100%\"\n{site}");
    let top = "trusted_proxies = [\"127.0.0.1\"]";
    Setup { top, site: &site, one_core: true, ..Setup::default() }.start().await
}

/// The fields of a client in another network, with these cookies.
fn elsewhere(cookies: &str) -> String {
    format!("X-Forwarded-For: 192.0.2.7\r\nCookie: {cookies}\r\n")
}

/// Comparisons that have ended so: same, changed, differing, unsteady, failed.
async fn compared(stage: &Stage) -> [u64; 5] {
    let names = ["same", "changed", "differing", "unsteady"];
    let mut counts = [0; 5];
    for (at, name) in names.iter().enumerate() {
        counts[at] = stage.metric(&format!("larder_verified_{name}_total")).await;
    }
    counts[4] = stage.metric("larder_verify_failures_total").await;
    counts
}

async fn await_compared(stage: &Stage, wanted: [u64; 5]) {
    let sum: u64 = wanted.iter().sum();
    let enough = async || compared(stage).await.iter().sum::<u64>() >= sum;
    eventually("the comparisons", enough).await;
    assert_eq!(compared(stage).await, wanted);
}

async fn findings(stage: &Stage) -> Vec<(String, String)> {
    let sites = look(&stage.daemon, "/api/v1/sites").await;
    let found = sites["sites"][0]["differing"].as_array().cloned().unwrap_or_default();
    let word = |one: &Value, name: &str| one[name].as_str().unwrap_or_default().to_owned();
    found.iter().map(|one| (word(one, "url"), word(one, "cause"))).collect()
}

#[tokio::test]
async fn pages_that_are_equal_or_have_changed_for_all_stay() {
    let stage = start("").await;
    stage.origin.otherwise(Script::cacheable("page of before"));
    assert!(!is_hit(&stage.get("/a").await));
    let visitor = "Cookie: _ga=1; theme=dark\r\nUser-Agent: Phone\r\nAccept-Language: de\r\n";
    assert!(is_hit(&stage.ask("GET", "/a", "Cookie: _ga=1\r\nUser-Agent: Phone\r\n").await));
    await_compared(&stage, [1, 0, 0, 0, 0]).await;
    assert_eq!(stage.origin.seen("/a"), 2, "one fetch, one comparison");
    stage.origin.otherwise(Script::cacheable("page of today"));
    let reply = stage.ask("GET", "/a", &visitor.replace("; theme=dark", "")).await;
    assert_eq!((is_hit(&reply), reply.text().as_str()), (true, "page of before"));
    await_compared(&stage, [1, 1, 0, 0, 0]).await;
    // It might have been another visitor's page.
    assert_eq!(stage.get("/a").await.text(), "page of today");
    assert!(is_hit(&stage.get("/a").await));
    assert_eq!(findings(&stage).await, []);
}

#[tokio::test]
async fn a_page_that_differs_by_a_removed_cookie_is_no_longer_served_to_those_who_have_it() {
    let stage = start("cookies.strip = [\"cart\", \"seen\"]").await;
    stage.origin.otherwise(Script::mirror(CACHEABLE));
    for target in ["/a", "/b"] {
        assert!(!is_hit(&stage.get(target).await));
    }
    let buyer = "Cookie: cart=full\r\n";
    assert!(is_hit(&stage.ask("GET", "/a", buyer).await));
    await_compared(&stage, [0, 0, 1, 0, 0]).await;
    let host = stage.daemon.addr();
    let url = format!("http://{host}/a");
    let found = findings(&stage).await;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].1, "cookie cart");
    assert!(found[0].0.starts_with("http://") && found[0].0.ends_with("/a"), "{found:?} {url}");
    stage.daemon.assert_logged("is another one by cookie cart").await;
    // The page goes past the cache for who has the cookie, and the origin sees it.
    stage.origin.forget();
    let own = stage.ask("GET", "/a", buyer).await;
    assert!(!is_hit(&own) && own.text().contains("cart=full"), "{}", own.text());
    assert!(sent_field(&stage.sole_request("/a"), "cookie").contains("cart=full"));
    // The others are served as before; the page that was compared is fetched anew.
    assert!(!is_hit(&stage.get("/a").await) && is_hit(&stage.get("/a").await));
    assert_eq!(stage.metric("larder_verify_passes_total").await, 1);
    // Once a visitor of another network has shown it, all pages do.
    let before = stage.metric("larder_verified_differing_total").await;
    assert!(is_hit(&stage.ask("GET", "/b", &elsewhere("cart=full")).await));
    let is_seen = async || stage.metric("larder_verified_differing_total").await > before;
    eventually("the second comparison", is_seen).await;
    assert!(!is_hit(&stage.get("/c").await));
    for target in ["/b", "/c"] {
        assert!(!is_hit(&stage.ask("GET", target, buyer).await), "{target}");
    }
    assert!(is_hit(&stage.get("/c").await));
    let question = json!({ "url": "http://a.test/d", "headers": ["Cookie: cart=full"] });
    let told = explain(&stage.daemon, &question).await;
    assert!(step(&told, "verify")["decided"].as_bool().unwrap_or_default(), "{told}");
    let status = printed(&stage.daemon, &["status"]).await;
    assert!(status.contains("differs by cookie cart"), "{status}");
    // A reload forgets nothing.
    assert!(run(&stage.daemon, &["reload"]).await.0);
    assert!(!is_hit(&stage.ask("GET", "/b", buyer).await));
}

#[tokio::test]
async fn pages_that_others_cookies_may_be_in_are_all_purged() {
    let stage = start("profile = \"rfc\"").await;
    stage.origin.otherwise(Script::mirror(CACHEABLE));
    for target in ["/a", "/b"] {
        let first = stage.ask("GET", target, "Cookie: sid=eva\r\n").await;
        assert!(first.text().contains("sid=eva"));
    }
    let leaked = stage.ask("GET", "/a", "Cookie: sid=adam\r\n").await;
    assert!(is_hit(&leaked) && leaked.text().contains("sid=eva"), "a leak by configuration");
    await_compared(&stage, [0, 0, 1, 0, 0]).await;
    let own = stage.ask("GET", "/a", "Cookie: sid=adam\r\n").await;
    assert!(own.text().contains("sid=adam"), "{}", own.text());
    assert!(is_hit(&stage.ask("GET", "/b", &elsewhere("sid=carl")).await));
    await_compared(&stage, [0, 0, 2, 0, 0]).await;
    for target in ["/c", "/b", "/a"] {
        let own = stage.ask("GET", target, "Cookie: sid=adam\r\n").await;
        assert!(own.text().contains("sid=adam"), "{}", own.text());
        assert!(!stage.get(target).await.text().contains("sid="), "{target}");
    }
}

#[tokio::test]
async fn a_page_of_another_that_a_visitor_without_cookies_gets_is_purged() {
    let stage = start("profile = \"rfc\"").await;
    stage.origin.otherwise(Script::mirror(CACHEABLE));
    assert!(stage.ask("GET", "/a", "Cookie: sid=eva\r\n").await.text().contains("sid=eva"));
    assert!(stage.get("/a").await.text().contains("sid=eva"), "a leak by configuration");
    await_compared(&stage, [0, 1, 0, 0, 0]).await;
    assert!(!stage.get("/a").await.text().contains("sid=eva"));
}

#[tokio::test]
async fn an_error_that_a_visitor_provokes_is_no_difference() {
    let stage = start("cookies.strip = [\"c*\"]").await;
    stage.origin.otherwise(Script::cacheable("page"));
    stage.get("/a").await;
    let refusal = "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno";
    stage.origin.otherwise(Script::respond(refusal));
    assert!(is_hit(&stage.ask("GET", "/a", "Cookie: cart=<script>\r\n").await));
    await_compared(&stage, [0, 0, 0, 0, 1]).await;
    let many: String = (0..40).map(|n| format!("c{n}=1; ")).collect();
    assert!(is_hit(&stage.ask("GET", "/a", &format!("Cookie: cart=1; _ga=1; {many}\r\n")).await));
    assert_eq!(stage.limit_hits("verify_cookies").await, 1);
    assert_eq!(findings(&stage).await, []);
}

#[tokio::test]
async fn a_page_that_differs_by_a_field_is_not_stored_for_a_time() {
    let stage = start("").await;
    stage.origin.otherwise(Script::mirror(CACHEABLE));
    for target in ["/a", "/b"] {
        assert!(!is_hit(&stage.ask("GET", target, "User-Agent: Desktop\r\n").await));
    }
    assert!(is_hit(&stage.ask("GET", "/a", "User-Agent: Phone\r\n").await));
    await_compared(&stage, [0, 0, 1, 0, 0]).await;
    assert_eq!(findings(&stage).await[0].1, "field User-Agent");
    for agent in ["Phone", "Phone", "Desktop"] {
        let reply = stage.ask("GET", "/a", &format!("User-Agent: {agent}\r\n")).await;
        assert!(!is_hit(&reply) && reply.text().contains(agent));
    }
    let is_told = async || {
        let log = printed(&stage.daemon, &["log", "--once", "--json"]).await;
        log.lines().filter(|line| line.contains("\"not_stored\":\"differs\"")).count() == 3
    };
    eventually("the reason in the log", is_told).await;
    assert!(is_hit(&stage.ask("GET", "/b", "User-Agent: Desktop\r\n").await));
}

/// An origin whose pages are parts for requests with X-Requested-With, as scripts send it.
async fn origin_of_parts() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let addr = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut head, mut byte) = (Vec::new(), [0]);
                while !head.ends_with(b"\r\n\r\n") && stream.read_exact(&mut byte).await.is_ok() {
                    head.push(byte[0].to_ascii_lowercase());
                }
                let is_part = head.windows(16).any(|name| name == b"x-requested-with");
                let body = if is_part { "part" } else { "whole page" };
                let reply = format!(
                    "HTTP/1.1 200 OK\r\n{CACHEABLE}Connection: close\r\nContent-Length: {}\r\n\r\n\
                     {body}",
                    body.len()
                );
                _ = stream.write_all(reply.as_bytes()).await;
            });
        }
    });
    addr
}

#[tokio::test]
async fn a_page_that_depends_on_another_field_is_reported_and_stays() {
    let site =
        format!("[[site.route]]\npath = \"/a\"\norigin = \"http://{}\"", origin_of_parts().await);
    let stage = start(&site).await;
    assert_eq!(stage.get("/a").await.text(), "whole page");
    for n in 1..3 {
        let reply = stage.ask("GET", "/a", "X-Requested-With: XMLHttpRequest\r\n").await;
        assert!(is_hit(&reply));
        await_compared(&stage, [0, 0, n, 0, 0]).await;
    }
    assert_eq!(
        findings(&stage).await,
        [(format!("http://{}/a", "larder.test"), "several cookies or fields".to_owned())]
    );
    // It is right for all who do not send the field.
    assert!(is_hit(&stage.get("/a").await));
}

#[tokio::test]
async fn what_the_cache_looks_at_is_no_difference() {
    let site = "cookies.key = [\"currency\"]\ncache.key_headers = [\"X-Tenant\"]";
    let stage = start(site).await;
    let vary = format!("{CACHEABLE}Vary: Accept-Language\r\n");
    stage.origin.otherwise(Script::mirror(&vary));
    for n in 0..2 {
        for currency in ["eur", "usd"] {
            let fields = format!("Cookie: currency={currency}\r\nAccept-Language: {currency}\r\n");
            assert_eq!(is_hit(&stage.ask("GET", "/a", &fields).await), n == 1);
            if n == 1 {
                // The origin's page says that the comparison takes no codings.
                let wanted = if currency == "eur" { 1 } else { 2 };
                await_compared(&stage, [0, wanted, 0, 0, 0]).await;
            }
        }
    }
    assert_eq!(findings(&stage).await, []);
}

#[tokio::test]
async fn what_cannot_be_compared_is_counted_and_changes_nothing() {
    let site =
        "cookies.strip = [\"cart\"]\n[[site.route]]\npath = \"/not/*\"\ncache.verify = false";
    let site = format!("cache.verify = \"100%\"\n{site}");
    let limits = "verify_bytes = \"1KiB\"";
    let setup = Setup { site: &site, limits, one_core: true, ..Setup::default() };
    let stage = setup.start().await;
    stage.origin.otherwise(Script::cacheable(&"x".repeat(5000)));
    stage.origin.on("/small", Script::cacheable("small"));
    for target in ["/large", "/small", "/not/a"] {
        stage.get(target).await;
    }
    stage.origin.on("/small", Script::default().reset());
    for target in ["/large", "/small", "/not/a"] {
        assert!(is_hit(&stage.ask("GET", target, "Cookie: cart=1\r\n").await), "{target}");
    }
    await_compared(&stage, [0, 0, 0, 0, 1]).await;
    assert_eq!(stage.limit_hits("verify_bytes").await, 1);
    assert!(is_hit(&stage.ask("GET", "/small", "Cookie: cart=1\r\n").await));
}

#[tokio::test]
async fn an_observed_site_is_served_by_its_origin_and_counted_as_if_it_cached() {
    let site = "mode = \"observe\"\ncookies.strip = [\"cart\"]";
    let stage = Setup { site, one_core: true, ..Setup::default() }.start().await;
    stage.origin.otherwise(Script::mirror("Cache-Control: max-age=600\r\nSet-Cookie: s=1\r\n"));
    stage.origin.on("/page", Script::mirror(CACHEABLE));
    stage.origin.on("/page?utm_source=x", Script::mirror(CACHEABLE));
    // A request counts once its response has been sent.
    let await_observed = async |expected: [u64; 4]| {
        eventually("the counts", async || {
            let sites = look(&stage.daemon, "/api/v1/sites").await;
            let own = &sites["sites"][0]["observed"];
            let names = ["hit", "stale", "miss", "pass"];
            names.map(|name| own[name].as_u64().unwrap_or(99)) == expected
        })
        .await;
    };
    let first = stage.get("/page").await;
    assert_eq!(stage.origin.seen("/page"), 1, "it may be a page for one use");
    stage.get("/page").await;
    eventually("the page is stored", async || stage.metric("larder_stores_total").await == 1).await;
    assert_eq!(stage.origin.seen("/page"), 3, "for the visitors, and for the cache");
    // What the origin gets, and what the visitor, is what it would be without a cache.
    let fields = "Cookie: cart=full; s=1\r\nUser-Agent: Phone\r\n";
    let own = stage.ask("GET", "/page?utm_source=x", fields).await;
    assert!(!is_hit(&first) && !is_hit(&own));
    for sent in ["/page?utm_source=x", "cart=full; s=1", "Phone"] {
        assert!(own.text().contains(sent), "{sent}: {}", own.text());
    }
    await_observed([0, 0, 2, 1]).await; // `s` may be a session's cookie.
    for n in 1..4 {
        let own = stage.ask("GET", "/page?utm_source=x", "Cookie: cart=full\r\n").await;
        assert!(!is_hit(&own) && own.text().contains("cart=full"));
        await_observed([n, 0, 2, 1]).await;
    }
    let other = stage.ask("GET", "/other", "").await;
    assert_eq!(other.field("set-cookie").as_deref(), Some("s=1"));
    stage.ask("POST", "/page", "Content-Length: 0\r\n").await;
    await_observed([3, 0, 3, 2]).await;
    let told = explain(&stage.daemon, &json!({ "url": "http://a.test/page" })).await;
    assert!(step(&told, "observe")["decided"].as_bool().unwrap_or_default(), "{told}");
    let status = printed(&stage.daemon, &["status"]).await;
    assert!(status.contains("the cache would serve 37.5 % of 8 requests"), "{status}");
}

#[tokio::test]
async fn an_observed_site_is_compared_and_then_served_from_what_it_has_stored() {
    let site = "mode = \"observe\"\ncookies.strip = [\"cart\"]\ncache.verify = \"100%\"";
    let stage = Setup { site, one_core: true, ..Setup::default() }.start().await;
    stage.origin.otherwise(Script::mirror(CACHEABLE));
    for target in ["/good", "/bad", "/good", "/bad"] {
        stage.get(target).await;
    }
    eventually("both are stored", async || stage.metric("larder_stores_total").await == 2).await;
    stage.ask("GET", "/bad", "Cookie: cart=full\r\n").await;
    await_compared(&stage, [0, 0, 1, 0, 0]).await;
    assert_eq!(findings(&stage).await[0].1, "cookie cart");
    let file = stage.daemon.config_file();
    let text = std::fs::read_to_string(&file).expect("the file");
    std::fs::write(&file, text.replace("\"observe\"", "\"cache\"")).expect("written");
    assert!(run(&stage.daemon, &["reload"]).await.0);
    assert!(is_hit(&stage.get("/good").await), "it was stored while the site observed");
    assert!(!is_hit(&stage.ask("GET", "/bad", "Cookie: cart=full\r\n").await));
}
