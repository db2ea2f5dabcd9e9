//! What applications, plugins and tools send when something changes, as they send it, one test for
//! each: what it means is gone, everything else stays.

mod support;

use support::cli::Cli;
use support::{Setup, Stage, is_hit};
use testkit::origin::Script;

const PAGES: [&str; 4] = ["/", "/shop/", "/shop/one/", "/shop/two/"];

/// A site with these keys, and four pages that are stored; what they are about is in the field
/// `tags`, parted by `sign`.
async fn stage(site: &str, tags: &str, sign: &str) -> Stage {
    let stage = Setup { site, ..Setup::default() }.start().await;
    for (target, about) in
        PAGES.iter().zip([["front", "shop"], ["shop", "list"], ["one", "shop"], ["two", "shop"]])
    {
        let fields =
            format!("Cache-Control: public, max-age=600\r\n{tags}: {}\r\n", about.join(sign));
        stage.origin.on(target, Script::ok(&fields, "a page"));
    }
    fill(&stage).await;
    stage
}

async fn fill(stage: &Stage) {
    for target in PAGES {
        stage.get(target).await;
        assert!(is_hit(&stage.get(target).await), "{target} is stored");
    }
}

/// Which pages are gone; they are stored again.
async fn gone(stage: &Stage) -> Vec<&'static str> {
    let mut gone = Vec::new();
    for target in PAGES {
        if !is_hit(&stage.get(target).await) {
            gone.push(target);
        }
    }
    fill(stage).await;
    gone
}

/// Sends a request, lines without their ends, and says the answer's status and what is gone.
async fn after(stage: &Stage, lines: &[&str]) -> (u16, Vec<&'static str>) {
    let bytes = format!("{}\r\n\r\n", lines.join("\r\n"));
    let method = lines[0].split(' ').next().unwrap_or_default();
    let status = stage.exchange(method, bytes.as_bytes()).await.status;
    (status, gone(stage).await)
}

const WORDPRESS: &str = "preset = \"wordpress\"\n";
const AGENT: &str = "User-Agent: WordPress/6.1.1; http://larder.test";

#[tokio::test]
async fn wordpress_proxy_cache_purge() {
    let stage = stage(WORDPRESS, "X-None", ",").await;
    for (target, method, pages) in [
        ("/shop/one/", "default", &["/shop/one/"][..]),
        ("/shop/.*", "regex", &["/shop/", "/shop/one/", "/shop/two/"]),
        ("/.*", "regex", &PAGES),
    ] {
        let purge = [
            &format!("PURGE {target} HTTP/1.1"),
            "Host: larder.test",
            AGENT,
            "Accept: */*",
            "Accept-Encoding: deflate, gzip, br",
            &format!("X-Purge-Method: {method}"),
            "Connection: close",
        ];
        assert_eq!(after(&stage, &purge).await, (200, pages.to_vec()), "{target}");
    }
}

#[tokio::test]
async fn wordpress_wp_rocket_varnish_add_on() {
    let stage = stage(WORDPRESS, "X-None", ",").await;
    // It names the address it sends to, and the site in Host.
    let purge = [
        "PURGE /shop/one/ HTTP/1.0",
        "Host: larder.test",
        AGENT,
        "X-Purge-Method: default",
        "Connection: close",
    ];
    assert_eq!(after(&stage, &purge).await, (200, vec!["/shop/one/"]));
    let purge = ["PURGE /.* HTTP/1.1", "host: larder.test", "X-Purge-Method: regex"];
    assert_eq!(after(&stage, &purge).await, (200, PAGES.to_vec()));
}

#[tokio::test]
async fn wordpress_nginx_helper_by_get() {
    let stage = stage(WORDPRESS, "X-None", ",").await;
    let get = |path: &str| format!("GET /purge{path} HTTP/1.1");
    let send = async |path: &str| after(&stage, &[&get(path), "Host: larder.test", AGENT]).await;
    assert_eq!(send("/shop/one/").await, (200, vec!["/shop/one/"]));
    // The feeds of a post, which nobody has asked for.
    for feed in ["/shop/one/feed/", "/shop/one/feed/atom/", "/shop/one/feed/rdf/"] {
        assert_eq!(send(feed).await, (404, vec![]), "{feed}");
    }
    assert_eq!(send("/").await, (200, vec!["/"]));
    assert_eq!(send("/shop/?page=2").await, (404, vec![]));
    assert_eq!(stage.origin.seen("/purge/shop/one/"), 0);
}

#[tokio::test]
async fn wordpress_nginx_helper_torden() {
    let stage = stage(WORDPRESS, "X-None", ",").await;
    let purge = ["GET /purge/shop/two/ HTTP/1.1", "Host: larder.test", AGENT];
    assert_eq!(after(&stage, &purge).await, (200, vec!["/shop/two/"]));
    let all = ["PURGE /purgeall HTTP/1.1", "Host: larder.test", AGENT, "Content-Length: 0"];
    assert_eq!(after(&stage, &all).await, (200, PAGES.to_vec()));
}

#[tokio::test]
async fn helpers_on_varnishs_cli_as_w3_total_cache_turpentine_and_pecl_varnish_speak_it() {
    let (stage, _folder) = support::cli::stage("").await;
    for target in PAGES {
        stage.origin.on(target, Script::ok("Cache-Control: max-age=600\r\nX-Kind: shop\r\n", ""));
    }
    fill(&stage).await;
    let port = stage.daemon.port("Varnish CLI").expect("the port");
    let mut cli = Cli::authenticated(port).await;
    for (line, pages) in [
        ("ban req.http.host == \"larder.test\" && req.url ~ \"^/shop/one/$\"", &["/shop/one/"][..]),
        ("ban req.url == \"/shop/\"", &["/shop/"]),
        ("ban obj.http.X-Kind ~ \"shop\" && req.url ~ \"\\\\/two\\\\/\"", &["/shop/two/"]),
        ("ban.url ^/shop/o", &["/shop/one/"]),
        ("purge.url ^/shop/t", &["/shop/two/"]),
        ("url.purge .*", &PAGES),
        ("purge req.url ~ ^/$", &["/"]),
    ] {
        assert_eq!(cli.ask(line).await.0, 200, "{line}");
        assert_eq!(gone(&stage).await, pages, "{line}");
    }
    // What they ask for besides.
    for line in ["status", "ping", "vcl.list", "param.show", "backend.list", "ban.list", "banner"] {
        assert_eq!(cli.ask(line).await.0, 200, "{line}");
    }
}

#[tokio::test]
async fn magento() {
    let stage = stage("purge = { dialects = [\"magento\"] }\n", "X-Magento-Tags", ",").await;
    for (pattern, pages) in [
        ("((^|,)one(,|$))", &["/shop/one/"][..]),
        ("((^|,)one(,|$))|((^|,)list(,|$))", &["/shop/", "/shop/one/"]),
        (".*", &PAGES),
    ] {
        let purge = [
            "PURGE / HTTP/1.1",
            "Host: larder.test",
            &format!("X-Magento-Tags-Pattern: {pattern}"),
            "Connection: close",
        ];
        assert_eq!(after(&stage, &purge).await, (200, pages.to_vec()), "{pattern}");
    }
}

#[tokio::test]
async fn magentos_pools() {
    let site = "purge = { dialects = [\"magento\"] }\n";
    let stage = stage(site, "X-Pool", ",").await;
    let purge = ["PURGE / HTTP/1.1", "Host: larder.test", "X-Pool: ^one"];
    assert_eq!(after(&stage, &purge).await, (200, vec!["/shop/one/"]));
}

#[tokio::test]
async fn drupals_generic_http_purger() {
    let stage = stage("preset = \"drupal\"\n", "Purge-Cache-Tags", " ").await;
    let agent = "User-Agent: GuzzleHttp/7";
    let ban = ["BAN / HTTP/1.1", "Host: larder.test", agent, "Purge-Cache-Tags: one list"];
    assert_eq!(after(&stage, &ban).await, (200, vec!["/shop/", "/shop/one/"]));
}

#[tokio::test]
async fn drupals_varnish_purger_and_lagoon() {
    let stage = stage("preset = \"drupal\"\n", "Cache-Tags", " ").await;
    for (first, field, pages) in [
        ("BAN / HTTP/1.1", "Cache-Tags: one|two", &["/shop/one/", "/shop/two/"][..]),
        ("BAN / HTTP/1.1", "Cache-Tags: (^|\\s)(one)(\\s|$)", &["/shop/one/"]),
        ("URIBAN /shop/two/ HTTP/1.1", "Accept: */*", &["/shop/two/"]),
        ("PURGE /shop/one/ HTTP/1.1", "Accept: */*", &["/shop/one/"]),
    ] {
        let request = [first, "Host: larder.test", field];
        assert_eq!(after(&stage, &request).await, (200, pages.to_vec()), "{first} {field}");
    }
    let seen = stage.origin.seen("/shop/one/");
    let refresh = ["REFRESH /shop/one/ HTTP/1.1", "Host: larder.test"];
    assert_eq!(after(&stage, &refresh).await, (200, vec![]));
    assert_eq!(stage.origin.seen("/shop/one/"), seen + 1);
}

#[tokio::test]
async fn foshttpcache() {
    let stage = stage("purge = { dialects = [\"foshttpcache\"] }\n", "X-Cache-Tags", ",").await;
    let any = "X-Content-Type: .*";
    for (lines, pages) in [
        (&["PURGE /shop/one/ HTTP/1.1"][..], &["/shop/one/"][..]),
        (&["PURGE http://larder.test/shop/one/ HTTP/1.1"], &["/shop/one/"]),
        (&["BAN / HTTP/1.1", "X-Host: .*", "X-Url: ^/shop/", any], &PAGES[1..]),
        (&["BAN / HTTP/1.1", "X-Host: ^other\\.test$", "X-Url: .*", any], &[]),
        (
            &[
                "BAN / HTTP/1.1",
                "X-Host: .*",
                "X-Url: .*",
                any,
                "X-Cache-Tags: (^|,)(one|two)(,|$)",
            ],
            &PAGES[2..],
        ),
        (&["PURGEKEYS / HTTP/1.1", "xkey-purge: one list"], &["/shop/", "/shop/one/"]),
    ] {
        let request = [&lines[..1], &["Host: larder.test"], &lines[1..]].concat();
        assert_eq!(after(&stage, &request).await, (200, pages.to_vec()), "{lines:?}");
    }
    for field in ["Cache-Control: no-cache", "X-Refresh: 1"] {
        let seen = stage.origin.seen("/shop/");
        let refresh = ["GET /shop/ HTTP/1.1", "Host: larder.test", field];
        assert_eq!(after(&stage, &refresh).await, (200, vec![]), "{field}");
        assert_eq!(stage.origin.seen("/shop/"), seen + 1, "{field}");
    }
}

#[tokio::test]
async fn shopware() {
    let stage = stage("purge = { dialects = [\"shopware\"] }\n", "xkey", " ").await;
    let keys =
        ["PURGE / HTTP/1.1", "Host: larder.test", "xkey: one two", "User-Agent: GuzzleHttp/7"];
    assert_eq!(after(&stage, &keys).await, (200, PAGES[2..].to_vec()));
    let below = ["BAN /shop/one HTTP/1.1", "Host: larder.test"];
    assert_eq!(after(&stage, &below).await, (200, vec!["/shop/one/"]));
    assert_eq!(after(&stage, &["BAN / HTTP/1.1", "Host: larder.test"]).await.1, PAGES);
}

#[tokio::test]
async fn fastly_style() {
    let site = "purge = { dialects = [\"fastly\"], token = \"a-token-for-this-test\" }\n";
    let stage = stage(site, "Surrogate-Key", " ").await;
    let (host, key) = ("Host: larder.test", "Fastly-Key: a-token-for-this-test");
    let url = ["PURGE /shop/one/ HTTP/1.1", host, key, "Accept: application/json"];
    assert_eq!(after(&stage, &url).await, (200, vec!["/shop/one/"]));
    let keys = ["PURGE / HTTP/1.1", host, key, "Surrogate-Key: one list"];
    assert_eq!(after(&stage, &keys).await, (200, vec!["/shop/", "/shop/one/"]));
    let stranger = ["PURGE /shop/one/ HTTP/1.1", host, "Fastly-Key: some-other-token"];
    assert_eq!(after(&stage, &stranger).await, (403, vec![]));
}

#[tokio::test]
async fn souin() {
    let stage = stage("purge = { dialects = [\"souin\"] }\n", "Surrogate-Key", ", ").await;
    for (first, field, pages) in [
        (
            "PURGE /souin-api/souin HTTP/1.1",
            "Surrogate-Key: one, list",
            &["/shop/", "/shop/one/"][..],
        ),
        (
            "PURGE /souin-api/souin/GET-http-larder.test-/shop/two/ HTTP/1.1",
            "Accept: */*",
            &["/shop/two/"],
        ),
        ("PURGE /souin-api/souin/flush HTTP/1.1", "Accept: */*", &PAGES),
    ] {
        let request = [first, "Host: larder.test", field];
        assert_eq!(after(&stage, &request).await, (204, pages.to_vec()), "{first}");
    }
    let list = stage.get("/souin-api/souin").await;
    assert_eq!(list.status, 200);
    assert!(list.text().contains("\"GET-http-larder.test-/shop/one/\""), "{}", list.text());
}

#[tokio::test]
async fn squids_purge() {
    let stage = stage("purge = { dialects = [\"squid\"] }\n", "X-None", ",").await;
    // As squidclient -m PURGE sends it.
    let purge = ["PURGE http://larder.test/shop/one/ HTTP/1.0", "Accept: */*", "Host: larder.test"];
    assert_eq!(after(&stage, &purge).await, (200, vec!["/shop/one/"]));
    let purge = ["PURGE http://larder.test/nothing HTTP/1.0", "Host: larder.test"];
    assert_eq!(after(&stage, &purge).await, (404, vec![]));
}

#[tokio::test]
async fn mediawikis_purge() {
    let stage = stage("preset = \"mediawiki\"\n", "X-None", ",").await;
    // It asks the cache as a proxy, over connections that stay open.
    let mut raw = stage.connect().await;
    for target in ["/shop/one/", "/shop/two/", "/nothing"] {
        let purge = format!(
            "PURGE http://larder.test{target} HTTP/1.1\r\nHost: larder.test\r\nAccept: */*\r\n\
             Connection: Keep-Alive\r\nProxy-Connection: Keep-Alive\r\n\
             User-Agent: MediaWiki/1.39.13 CdnCacheUpdate\r\n\r\n"
        );
        raw.send(purge.as_bytes(), testkit::client::Pieces::Whole).await.expect("sent");
        assert_eq!(support::whole(raw.reply("PURGE").await, target).status, 200);
    }
    assert_eq!(gone(&stage).await, ["/shop/one/", "/shop/two/"]);
}
