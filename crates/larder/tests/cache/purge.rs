//! Tests of purges as applications and their plugins send them, over real sockets: each request is
//! theirs, byte for byte but for names.

use crate::support;

use support::{Setup, Stage, is_hit};
use testkit::client::WriteSplit;
use testkit::origin::Script;
use testkit::reply::Reply;

/// A site that accepts purges in `dialects` from this machine.
async fn stage(dialects: &str) -> Stage {
    let site = format!("purge = {{ dialects = [{dialects}] }}\n");
    Setup { site: &site, ..Setup::default() }.start().await
}

/// Pages of one minute with these tags, requested once.
async fn store(stage: &Stage, pages: &[(&str, &str)]) {
    for (target, tags) in pages {
        let fields = format!("Cache-Control: max-age=600\r\nX-Cache-Tags: {tags}\r\n");
        stage.origin.on(target, Script::ok(&fields, "a page"));
        stage.get(target).await;
        assert!(is_hit(&stage.get(target).await), "{target} is stored");
    }
}

/// The pages that are no longer stored.
async fn gone(stage: &Stage, targets: &[&str]) -> Vec<String> {
    let mut gone = Vec::new();
    for target in targets {
        if !is_hit(&stage.get(target).await) {
            gone.push((*target).to_owned());
        }
    }
    gone
}

fn count(reply: &Reply) -> u64 {
    reply.field("x-purged").and_then(|n| n.parse().ok()).expect("how many it hit")
}

const PAGES: [(&str, &str); 4] =
    [("/", "front,post-1"), ("/a/1", "post-1"), ("/a/12", "post-12"), ("/b", "post-2,list")];
const ALL: [&str; 4] = ["/", "/a/1", "/a/12", "/b"];

/// Stores the pages, sends a purge, and returns its status, its count and the purged pages.
async fn after(stage: &Stage, method: &str, target: &str, fields: &str) -> (u16, u64, Vec<String>) {
    store(stage, &PAGES).await;
    let reply = stage.ask(method, target, fields).await;
    (reply.status, count(&reply), gone(stage, &ALL).await)
}

#[tokio::test]
async fn proxy_cache_purge_and_wp_rocket_purge_by_url_and_by_expression() {
    let stage = stage("\"purge\"").await;
    let one = after(&stage, "PURGE", "/a/1", "X-Purge-Method: default\r\n").await;
    assert_eq!(one, (200, 1, vec!["/a/1".into()]));
    let below = after(&stage, "PURGE", "/a/.*", "X-Purge-Method: regex\r\n").await;
    assert_eq!(below, (200, 2, vec!["/a/1".into(), "/a/12".into()]));
    let all = after(&stage, "PURGE", "/.*", "X-Purge-Method: regex\r\n").await;
    assert_eq!((all.0, all.1, all.2.len()), (200, 4, 4));
    // MediaWiki's: the absolute form; a purge without an object is no error.
    let url = format!("http://larder.test{}", "/nothing");
    let reply = stage.ask("PURGE", &url, "").await;
    assert_eq!((reply.status, count(&reply)), (200, 0));
    assert_eq!(reply.text(), "{\"status\":\"ok\",\"purged\":0}\n");
    assert!(stage.received().iter().all(|request| request.method == "GET"));
}

#[tokio::test]
async fn nginx_helper_purges_by_path_and_learns_what_was_absent() {
    let stage = stage("\"nginx-helper\"").await;
    store(&stage, &PAGES).await;
    let hit = stage.get("/purge/a/1").await;
    assert_eq!((hit.status, count(&hit)), (200, 1));
    assert_eq!(stage.get("/purge/a/1").await.status, 404);
    assert_eq!(gone(&stage, &ALL).await, ["/a/1"]);
    let all = after(&stage, "PURGE", "/purgeall", "").await;
    assert_eq!((all.0, all.1, all.2.len()), (200, 4, 4));
    assert_eq!(stage.origin.seen("/purge/a/1"), 0);
}

#[tokio::test]
async fn magento_purges_by_a_pattern_of_tags() {
    let stage = stage("\"magento\"").await;
    let pattern = "((^|,)post-1(,|$))|((^|,)list(,|$))";
    let tagged =
        after(&stage, "PURGE", "/", &format!("X-Magento-Tags-Pattern: {pattern}\r\n")).await;
    assert_eq!(tagged, (200, 3, vec!["/".into(), "/a/1".into(), "/b".into()]));
    let all = after(&stage, "PURGE", "/", "X-Magento-Tags-Pattern: .*\r\n").await;
    assert_eq!((all.1, all.2.len()), (4, 4));
    assert_eq!(stage.ask("PURGE", "/", "").await.status, 400);
}

#[tokio::test]
async fn drupals_purgers_ban_tags_and_urls_and_refresh() {
    let stage = stage("\"drupal\"").await;
    let generic = after(&stage, "BAN", "/", "Purge-Cache-Tags: post-1 list\r\n").await;
    assert_eq!(generic, (200, 3, vec!["/".into(), "/a/1".into(), "/b".into()]));
    let varnish = after(&stage, "BAN", "/", "Cache-Tags: post-12|none\r\n").await;
    assert_eq!(varnish, (200, 1, vec!["/a/12".into()]));
    let url = after(&stage, "URIBAN", "/b", "").await;
    assert_eq!(url, (200, 1, vec!["/b".into()]));
    stage.origin.on("/a/1", Script::cacheable("a new page"));
    let refreshed = stage.ask("REFRESH", "/a/1", "").await;
    assert_eq!((refreshed.status, refreshed.text().as_str()), (200, "a new page"));
    let hit = stage.get("/a/1").await;
    assert!(is_hit(&hit) && hit.text() == "a new page");
}

#[tokio::test]
async fn a_refresh_that_is_answered_by_a_stored_page_puts_it_together() {
    let stage = stage("\"drupal\"").await;
    let fields = "Cache-Control: public, max-age=600\r\nContent-Type: text/html\r\n\
                  Surrogate-Control: content=\"ESI/1.0\"\r\n";
    stage.origin.on("/page", Script::ok(fields, "<p><esi:include src=\"/a\"/></p>"));
    stage.origin.on("/a", Script::cacheable("A"));
    assert_eq!(stage.get("/page").await.text(), "<p>A</p>");
    // A cookie makes it one visitor's request, which a shared response may answer.
    let refreshed = stage.ask("REFRESH", "/page", "Cookie: session=1\r\n").await;
    assert_eq!((refreshed.status, refreshed.text().as_str()), (200, "<p>A</p>"));
}

#[tokio::test]
async fn foshttpcache_bans_by_fields_and_keys_and_refreshes() {
    let stage = stage("\"foshttpcache\"").await;
    let fields = "X-Host: .*\r\nX-Url: ^/a/\r\nX-Content-Type: .*\r\n";
    let below = after(&stage, "BAN", "/", fields).await;
    assert_eq!(below, (200, 2, vec!["/a/1".into(), "/a/12".into()]));
    let fields = "X-Host: ^larder\\.test$\r\nX-Url: .*\r\nX-Content-Type: .*\r\n\
                  X-Cache-Tags: (^|,)(post\\-1|post\\-2)(,|$)\r\n";
    let tagged = after(&stage, "BAN", "/", fields).await;
    assert_eq!(tagged, (200, 3, vec!["/".into(), "/a/1".into(), "/b".into()]));
    let keys = after(&stage, "PURGEKEYS", "/", "xkey-purge: list post-12\r\n").await;
    assert_eq!(keys, (200, 2, vec!["/a/12".into(), "/b".into()]));
    for field in ["Cache-Control: no-cache\r\n", "X-Refresh: 1\r\n"] {
        let seen = stage.origin.seen("/b");
        assert!(!is_hit(&stage.ask("GET", "/b", field).await));
        assert_eq!(stage.origin.seen("/b"), seen + 1);
        assert!(is_hit(&stage.get("/b").await));
    }
}

#[tokio::test]
async fn a_soft_purge_leaves_the_page_to_be_served_while_it_is_fetched_anew() {
    let site = "purge = { dialects = [\"foshttpcache\", \"fastly\"] }\n\
                cache = { stale_while_revalidate = \"1h\" }\n";
    let stage = Setup { site, ..Setup::default() }.start().await;
    for (method, target, fields) in [
        ("PURGEKEYS", "/", "xkey-softpurge: post-2\r\n"),
        ("PURGE", "/b", "Fastly-Soft-Purge: 1\r\n"),
        ("PURGE", "/", "Surrogate-Key: post-2\r\nFastly-Soft-Purge: 1\r\n"),
    ] {
        store(&stage, &PAGES).await;
        stage.origin.on("/b", Script::cacheable("a new page"));
        let reply = stage.ask(method, target, fields).await;
        assert_eq!((reply.status, count(&reply)), (200, 1), "{method} {fields}");
        let stale = stage.get("/b").await;
        assert!(is_hit(&stale) && stale.text() == "a page", "{method} {fields}");
        support::eventually("the new page", async || stage.get("/b").await.text() != "a page")
            .await;
        stage.ask("PURGE", "/b", "").await;
    }
}

#[tokio::test]
async fn shopware_purges_keys_and_bans_by_expression() {
    let stage = stage("\"shopware\"").await;
    let keys = after(&stage, "PURGE", "/", "xkey: post-1 nothing\r\n").await;
    assert_eq!(keys, (200, 2, vec!["/".into(), "/a/1".into()]));
    let below = after(&stage, "BAN", "/a/.*", "").await;
    assert_eq!(below, (200, 2, vec!["/a/1".into(), "/a/12".into()]));
    let all = after(&stage, "BAN", "/", "").await;
    assert_eq!((all.1, all.2.len()), (4, 4));
}

#[tokio::test]
async fn souins_interface_purges_and_lists() {
    let stage = stage("\"souin\"").await;
    let keys = after(&stage, "PURGE", "/souin-api/souin", "Surrogate-Key: post-1, list\r\n").await;
    assert_eq!(keys, (204, 3, vec!["/".into(), "/a/1".into(), "/b".into()]));
    let some = after(&stage, "PURGE", "/souin-api/souin/GET-.*-/a/.*", "").await;
    assert_eq!(some, (204, 2, vec!["/a/1".into(), "/a/12".into()]));
    store(&stage, &PAGES).await;
    let list = stage.get("/souin-api/souin").await;
    assert_eq!(list.field("content-type").as_deref(), Some("application/json"));
    for target in ALL {
        let name = format!("\"GET-http-larder.test-{target}\"");
        assert!(list.text().contains(&name), "{name} in {}", list.text());
    }
    let all = after(&stage, "PURGE", "/souin-api/souin/flush", "").await;
    assert_eq!((all.0, all.1, all.2.len()), (204, 4, 4));
}

#[tokio::test]
async fn squids_purge_says_when_nothing_was_there() {
    let stage = stage("\"squid\"").await;
    assert_eq!(after(&stage, "PURGE", "/b", "").await, (200, 1, vec!["/b".into()]));
    assert_eq!(stage.ask("PURGE", "/nothing", "").await.status, 404);
}

#[tokio::test]
async fn a_purge_reaches_every_variant_however_it_is_keyed() {
    let site = "purge = { dialects = [\"purge\"] }\ncookies = { key = [\"lang\"] }\n";
    let stage = Setup { site, ..Setup::default() }.start().await;
    stage.origin.on(
        "/page",
        Script::ok("Cache-Control: public, max-age=600\r\nVary: Accept-Language\r\n", "a page"),
    );
    let readers = [
        "",
        "Cookie: lang=de\r\n",
        "Cookie: lang=fr\r\n",
        "Cookie: lang=fr\r\nAccept-Language: fr\r\n",
    ];
    for fields in readers {
        stage.ask("GET", "/page", fields).await;
        assert!(is_hit(&stage.ask("GET", "/page", fields).await), "{fields}");
    }
    // A purge's URL may have the same parameters as a client's.
    let reply = stage.ask("PURGE", "/page?utm_source=x", "").await;
    assert_eq!(count(&reply), 4);
    for fields in readers {
        assert!(!is_hit(&stage.ask("GET", "/page", fields).await), "{fields}");
    }
}

#[tokio::test]
async fn without_a_setting_no_client_purges_and_nothing_reaches_the_origin() {
    let stage = Stage::new().await;
    store(&stage, &PAGES).await;
    for method in ["PURGE", "BAN"] {
        assert_eq!(stage.ask(method, "/b", "xkey: list\r\n").await.status, 405);
    }
    assert_eq!(gone(&stage, &ALL).await, [""; 0]);
    assert!(stage.received().iter().all(|request| request.method == "GET"));
}

#[tokio::test]
async fn a_preset_permits_purges_from_this_machine_and_not_through_a_proxy() {
    let site = "preset = \"wordpress\"\n";
    let stage = Setup { site, ..Setup::default() }.start().await;
    store(&stage, &PAGES).await;
    // An unnamed proxy on the same machine forwards a stranger's request.
    for field in ["X-Forwarded-For: 127.0.0.1", "Via: 1.1 x", "X-Real-IP: ::1", "Forwarded: for=a"]
    {
        let reply = stage.ask("PURGE", "/b", &format!("{field}\r\n")).await;
        assert_eq!(reply.status, 403, "{field}");
        assert_eq!(stage.ask("GET", "/purge/b", &format!("{field}\r\n")).await.status, 403);
    }
    assert_eq!(gone(&stage, &ALL).await, [""; 0]);
    stage.daemon.assert_metric("larder_purges_refused_total", 8).await;
    assert_eq!(stage.ask("PURGE", "/b", "").await.status, 200);
    assert_eq!(gone(&stage, &ALL).await, ["/b"]);
    stage.daemon.assert_metric("larder_purges_total", 1).await;
    assert_eq!(stage.origin.seen("/purge/b"), 0);
}

#[tokio::test]
async fn behind_a_trusted_proxy_the_client_counts_and_cannot_be_forged() {
    let top = "trusted_proxies = [\"127.0.0.0/8\"]\n";
    let site = "purge = { allow = [\"192.0.2.0/24\"] }\n";
    let stage = Setup { top, site, ..Setup::default() }.start().await;
    store(&stage, &PAGES).await;
    for (client, status) in [
        // The proxy's element is the last; earlier ones are the client's claims.
        ("192.0.2.7, 198.51.100.1", 403),
        ("198.51.100.1", 403),
        ("127.0.0.1, 198.51.100.1", 403),
        ("198.51.100.1, 192.0.2.7", 200),
    ] {
        let fields = format!("X-Forwarded-For: {client}\r\n");
        assert_eq!(stage.ask("PURGE", "/b", &fields).await.status, status, "{client}");
        assert_eq!(is_hit(&stage.get("/b").await), status != 200, "{client}");
    }
    // The proxy itself is not on the list.
    assert_eq!(stage.ask("PURGE", "/b", "").await.status, 403);
}

#[tokio::test]
async fn a_token_opens_from_anywhere() {
    let site = "purge = { token = \"a-token-for-this-test\" }\n";
    let stage = Setup { site, ..Setup::default() }.start().await;
    store(&stage, &PAGES).await;
    for fields in ["", "X-Purge-Token: a-token-for-that-test\r\n"] {
        assert_eq!(stage.ask("PURGE", "/b", fields).await.status, 403);
    }
    let fields = "X-Forwarded-For: 198.51.100.1\r\nAuthorization: Bearer a-token-for-this-test\r\n";
    assert_eq!(stage.ask("PURGE", "/b", fields).await.status, 200);
    assert_eq!(gone(&stage, &ALL).await, ["/b"]);
}

#[tokio::test]
async fn one_site_does_not_purge_another() {
    let origin = testkit::origin::ScriptedOrigin::start().await.expect("a port");
    let addr = origin.addr();
    let sites = |host: &str| {
        format!(
            "[[site]]\nhost = \"{host}\"\norigin = \"http://{addr}\"\n\
             purge = {{ dialects = [\"purge\", \"shopware\"] }}\n"
        )
    };
    let config = format!("listen = \"127.0.0.1:0\"\n{}{}", sites("a.test"), sites("b.test"));
    let daemon = testkit::larder::Daemon::start(&config).expect("larder starts");
    let stage = Stage { origin, daemon };
    stage.origin.otherwise(Script::ok("Cache-Control: max-age=600\r\nxkey: news\r\n", "a page"));
    let ask = async |method: &str, host: &str, fields: &str| {
        let bytes = format!("{method} / HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n");
        stage.exchange(method, bytes.as_bytes()).await
    };
    for purge in ["xkey: news\r\n", "X-Purge-Method: regex\r\n", ""] {
        for host in ["a.test", "b.test"] {
            ask("GET", host, "").await;
            assert!(is_hit(&ask("GET", host, "").await));
        }
        assert_eq!(count(&ask("PURGE", "a.test", purge).await), 1, "{purge}");
        assert!(!is_hit(&ask("GET", "a.test", "").await), "{purge}");
        assert!(is_hit(&ask("GET", "b.test", "").await), "{purge}");
    }
}

#[tokio::test]
async fn readers_do_not_see_tags_unless_a_setting_says_so() {
    let fields = "Cache-Control: max-age=600\r\nSurrogate-Key: a\r\nCache-Tag: b\r\n\
                  Cache-Groups: \"c\"\r\nX-Other: d\r\n";
    for (site, seen) in [("", false), ("show_tags = true\n", true)] {
        let stage = Setup { site, ..Setup::default() }.start().await;
        stage.origin.on("/page", Script::ok(fields, "a page"));
        stage.origin.on("/private", Script::ok(&format!("{fields}Cache-Control: private\r\n"), ""));
        stage.get("/page").await;
        for reply in [stage.get("/page").await, stage.get("/private").await] {
            for name in ["surrogate-key", "cache-tag", "cache-groups"] {
                assert_eq!(reply.field(name).is_some(), seen, "{name}");
            }
            assert_eq!(reply.field("x-other").as_deref(), Some("d"));
        }
    }
}

#[tokio::test]
async fn hundreds_of_kilobytes_of_tags_are_kept_and_more_is_not_stored() {
    let stage = Setup {
        site: "purge = { dialects = [\"shopware\"] }\n",
        limits: "tag_bytes = \"300KiB\"\ntags = 100_000\n",
        ..Setup::default()
    }
    .start()
    .await;
    let tags = |count: usize| (0..count).map(|n| format!("p_{n:05}")).collect::<Vec<_>>().join(",");
    let fields = |tags: &str| format!("Cache-Control: max-age=600\r\nX-Magento-Tags: {tags}\r\n");
    stage.origin.on("/many", Script::ok(&fields(&tags(30_000)), "many"));
    stage.origin.on("/more", Script::ok(&fields(&tags(50_000)), "more"));
    stage.origin.on("/most", Script::ok(&fields(&tags(90_000)), "most"));
    for (target, status, stored) in
        [("/many", 200, true), ("/more", 200, false), ("/most", 502, false)]
    {
        assert_eq!(stage.get(target).await.status, status, "{target}");
        assert_eq!(is_hit(&stage.get(target).await), stored, "{target}");
    }
    assert!(stage.limit_hits("tag_bytes").await >= 1);
    let reply = stage.ask("PURGE", "/", "xkey: p_29999\r\n").await;
    assert_eq!(count(&reply), 1);
    assert!(!is_hit(&stage.get("/many").await));
}

#[tokio::test]
async fn a_304_keeps_the_tags_that_it_does_not_replace() {
    let stage = stage("\"shopware\"").await;
    let fields = "Cache-Control: max-age=1\r\nETag: \"v\"\r\nxkey: old\r\n";
    stage.origin.on("/page", Script::ok(fields, "a page"));
    stage.get("/page").await;
    let confirmed =
        "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=600\r\nETag: \"v\"\r\n\r\n";
    stage.origin.on("/page", Script::respond(confirmed));
    support::eventually("confirmed", async || {
        stage
            .get("/page")
            .await
            .field("cache-status")
            .is_some_and(|s| s.contains("ttl=5") || s.contains("ttl=600"))
    })
    .await;
    assert_eq!(count(&stage.ask("PURGE", "/", "xkey: old\r\n").await), 1);
}

#[tokio::test]
async fn a_purge_with_a_body_leaves_the_connection_usable() {
    let stage = stage("\"purge\"").await;
    store(&stage, &PAGES).await;
    let mut raw = stage.connect().await;
    let bytes = "PURGE /b HTTP/1.1\r\nHost: larder.test\r\nContent-Length: 4\r\n\r\nbody\
                 GET /b HTTP/1.1\r\nHost: larder.test\r\n\r\n";
    raw.send(bytes.as_bytes(), WriteSplit::Whole).await.expect("it is taken");
    assert_eq!(support::whole(raw.reply("PURGE").await, "PURGE").status, 200);
    assert!(!is_hit(&support::whole(raw.reply("GET").await, "GET")));
}

#[tokio::test]
async fn this_machine_may_by_whichever_address_it_calls_itself() {
    let origin = testkit::origin::ScriptedOrigin::start().await.expect("a port");
    let config = format!(
        "listen = \"127.0.0.9:0\"\n[[site]]\nhost = \"*\"\norigin = \"http://{}\"\n\
         purge = {{ allow = [\"127.0.0.1\"] }}\n",
        origin.addr()
    );
    let daemon = testkit::larder::Daemon::start(&config).expect("larder starts");
    let purge_from = async |address: &str, fields: &str| {
        let from = std::net::SocketAddr::new(address.parse().expect("an address"), 0);
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.bind(from).expect("bound");
        let mut stream = socket.connect(daemon.addr()).await.expect("connected");
        let request = format!("PURGE / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{fields}\r\n");
        tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        let read = tokio::io::AsyncReadExt::read_to_string(&mut stream, &mut answer);
        read.await.expect("an answer");
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    };
    // The listener's address, the one in `allow`, and any other.
    assert_eq!(purge_from("127.0.0.9", "").await, "200");
    assert_eq!(purge_from("127.0.0.1", "").await, "200");
    assert_eq!(purge_from("127.0.0.8", "").await, "403");
    assert_eq!(purge_from("127.0.0.9", "X-Forwarded-For: 127.0.0.9\r\n").await, "403");
}
