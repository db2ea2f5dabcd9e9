//! Purge clients: applications, plugins and tools, one test for each. The purged pages are gone,
//! all others stay.

use crate::support;

use support::cli::Cli;
use support::{Setup, Stage, is_hit};
use testkit::origin::Script;

const PAGES: [&str; 4] = ["/", "/shop/", "/shop/one/", "/shop/two/"];

/// A site with these keys and four stored pages, whose tags are in the field `tags`, separated by
/// `sign`.
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

/// Returns the pages that are gone, and stores them again.
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

/// Sends a request, given as lines. Returns the status, and the pages that are gone.
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
    // The feeds of a post, which were never requested.
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
async fn wordpress_larder_s_own_plugin() {
    let stage = stage(WORDPRESS, "xkey", " ").await;
    let keys = "Surrogate-Key: one two wp1-loose";
    let purge = ["PURGE / HTTP/1.1", "Host: larder.test", keys, "Connection: close"];
    assert_eq!(after(&stage, &purge).await, (200, vec!["/shop/one/", "/shop/two/"]));
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
        raw.send(purge.as_bytes(), testkit::client::WriteSplit::Whole).await.expect("sent");
        assert_eq!(support::whole(raw.reply("PURGE").await, target).status, 200);
    }
    assert_eq!(gone(&stage).await, ["/shop/one/", "/shop/two/"]);
}

/// One shop over two sites, and a neighbour with another dialect of purges; the page `/page` of
/// each is stored with tag `one`.
async fn neighbours(shop: &str, neighbour: &str, tags: &str) -> Stage {
    let origin = testkit::origin::ScriptedOrigin::start().await.expect("a port");
    let addr = origin.addr();
    let site = |host: &str, keys: &str| {
        format!("[[site]]\nhost = \"{host}\"\norigin = \"http://{addr}\"\n{keys}\n")
    };
    let config = format!(
        "listen = \"127.0.0.1:0\"\n{}{}{}",
        site("de.shop.test", shop),
        site("fr.shop.test", shop),
        site("other.test", neighbour)
    );
    let daemon = testkit::larder::Daemon::start(&config).expect("larder starts");
    let fields = format!("Cache-Control: public, max-age=600\r\n{tags}: one\r\n");
    origin.otherwise(Script::ok(&fields, "a page"));
    Stage { origin, daemon }
}

const HOSTS: [&str; 3] = ["de.shop.test", "fr.shop.test", "other.test"];

async fn page_of(stage: &Stage, host: &str) -> bool {
    let get = format!("GET /page HTTP/1.1\r\nHost: {host}\r\n\r\n");
    is_hit(&stage.exchange("GET", get.as_bytes()).await)
}

/// Sends a request, lines without their ends; its status, and the hosts whose page is gone.
async fn gone_of(stage: &Stage, lines: &[&str]) -> (u16, Vec<&'static str>) {
    for host in HOSTS {
        page_of(stage, host).await;
        assert!(page_of(stage, host).await, "{host} is stored");
    }
    let bytes = format!("{}\r\n\r\n", lines.join("\r\n"));
    let method = lines[0].split(' ').next().unwrap_or_default();
    let status = stage.exchange(method, bytes.as_bytes()).await.status;
    let mut gone = Vec::new();
    for host in HOSTS {
        if !page_of(stage, host).await {
            gone.push(host);
        }
    }
    (status, gone)
}

const SHOP: [&str; 2] = ["de.shop.test", "fr.shop.test"];

/// Asserts that `lines`, sent by a shop's software that knows only the cache's address, purge the
/// shop's pages only; `site` has the shop's dialects.
async fn reaches_the_shop(site: &str, tags: &str, lines: &[&str]) {
    let stage = neighbours(site, "preset = \"wordpress\"", tags).await;
    assert_eq!(gone_of(&stage, lines).await, (200, SHOP.to_vec()), "{lines:?}");
}

#[tokio::test]
async fn magento_set_up_as_the_guide_says() {
    // --http-cache-hosts=127.0.0.1:80, by Laminas' socket adapter.
    let pattern = "X-Magento-Tags-Pattern: ((^|,)one(,|$))";
    let lines = ["PURGE / HTTP/1.1", pattern, "Host: 127.0.0.1", "Connection: close"];
    reaches_the_shop("preset = \"magento\"", "X-Magento-Tags", &lines).await;
}

#[tokio::test]
async fn shopware_with_its_default_hosts() {
    let lines = ["PURGE / HTTP/1.1", "Host: varnish", "User-Agent: GuzzleHttp/7", "xkey: one"];
    reaches_the_shop("purge = { dialects = [\"shopware\"] }", "xkey", &lines).await;
    let all = ["BAN / HTTP/1.1", "Host: varnish", "User-Agent: GuzzleHttp/7"];
    reaches_the_shop("purge = { dialects = [\"shopware\"] }", "xkey", &all).await;
}

#[tokio::test]
async fn foshttpcache_without_a_base_url_and_neos() {
    let lines = [
        "BAN / HTTP/1.1",
        "Host: 127.0.0.1:8080",
        "X-Host: .*",
        "X-Url: .*",
        "X-Content-Type: .*",
        "X-Cache-Tags: (^|,)(one)(,|$)",
    ];
    let site = "purge = { dialects = [\"foshttpcache\"] }";
    reaches_the_shop(site, "X-Cache-Tags", &lines).await;
    let mut one_domain = lines;
    one_domain[2] = "X-Host: ^(fr\\.shop\\.test)$";
    let stage = neighbours(site, "preset = \"wordpress\"", "X-Cache-Tags").await;
    assert_eq!(gone_of(&stage, &one_domain).await, (200, vec!["fr.shop.test"]));
}

#[tokio::test]
async fn drupals_purgers_with_the_caches_own_address() {
    for lines in [
        &["BAN / HTTP/1.1", "Host: 127.0.0.1", "Purge-Cache-Tags: one"][..],
        &["BAN / HTTP/1.1", "Host: 127.0.0.1", "Cache-Tags: one|two"],
        &["BAN /.* HTTP/1.1", "Host: 127.0.0.1"],
        &["BAN /pa* HTTP/1.1", "Host: 127.0.0.1"],
    ] {
        reaches_the_shop("preset = \"drupal\"", "Purge-Cache-Tags", lines).await;
    }
}

#[tokio::test]
async fn plone_cachepurging() {
    let site = "purge = { dialects = [\"plone\"] }";
    let agent = "User-Agent: python-requests/2.32.3";
    let stage = neighbours(site, "preset = \"wordpress\"", "X-None").await;
    for (first, hosts) in [
        ("PURGE /page HTTP/1.1", &SHOP[..]),
        ("PURGE /pag HTTP/1.1", &[]),
        (
            "PURGE /VirtualHostBase/http/fr.shop.test:80/Plone/VirtualHostRoot/page HTTP/1.1",
            &SHOP[1..],
        ),
        (
            "PURGE /VirtualHostBase/https/fr.shop.test/Plone/VirtualHostRoot/_vh_page HTTP/1.1",
            &SHOP[1..],
        ),
    ] {
        let lines = [first, "Host: 127.0.0.1:8080", agent, "Accept: */*", "Content-Length: 0"];
        assert_eq!(gone_of(&stage, &lines).await, (200, hosts.to_vec()), "{first}");
    }
}

#[tokio::test]
async fn w3_total_cache_and_fastlys_api_reach_a_whole_site() {
    let wordpress = stage(WORDPRESS, "X-None", ",").await;
    // W3 Total Cache, "flush all": without X-Purge-Method.
    let all = ["PURGE /.* HTTP/1.1", "Host: larder.test", AGENT, "Connection: close"];
    assert_eq!(after(&wordpress, &all).await, (200, PAGES.to_vec()));
    let site = "purge = { dialects = [\"fastly\"], token = \"a-token-for-this-test\" }\n";
    let stage = stage(site, "Surrogate-Key", " ").await;
    let (host, key) = ("Host: api.fastly.com", "Fastly-Key: a-token-for-this-test");
    for (first, field, pages) in [
        ("POST /service/SU1Z0isxPaozGVKXdv0eY/purge/one HTTP/1.1", "Accept: */*", &PAGES[2..3]),
        (
            "POST /service/SU1Z0isxPaozGVKXdv0eY/purge HTTP/1.1",
            "Surrogate-Key: one two",
            &PAGES[2..],
        ),
        ("POST /service/SU1Z0isxPaozGVKXdv0eY/purge_all HTTP/1.1", "Accept: */*", &PAGES),
    ] {
        let lines = [first, host, key, field, "Content-Length: 0"];
        assert_eq!(after(&stage, &lines).await, (200, pages.to_vec()), "{first}");
    }
    let wrong = "Fastly-Key: some-other-token";
    let stranger = ["POST /service/x/purge_all HTTP/1.1", host, wrong, "Content-Length: 0"];
    assert_eq!(after(&stage, &stranger).await, (403, vec![]));
    stage.origin.on("/service/x/purge_all", Script::ok("", "a form"));
    let reader = ["POST /service/x/purge_all HTTP/1.1", host, "Content-Length: 0"];
    assert_eq!(after(&stage, &reader).await, (200, vec![]));
    assert_eq!(stage.origin.seen("/service/x/purge_all"), 1);
}

#[tokio::test]
async fn api_platforms_varnish_purgers() {
    let site = "purge = { dialects = [\"api-platform\"] }\n";
    let stage = stage(site, "Cache-Tags", ",").await;
    let agent = "User-Agent: Symfony HttpClient/Curl";
    let ban = "ApiPlatform-Ban-Regex: (one|list)($|\\,)";
    let ban = ["BAN / HTTP/1.1", "Host: varnish", agent, ban];
    assert_eq!(after(&stage, &ban).await, (200, vec!["/shop/", "/shop/one/"]));
    let keys = ["PURGE / HTTP/1.1", "Host: varnish", agent, "xkey: one"];
    assert_eq!(after(&stage, &keys).await, (200, vec!["/shop/one/"]));
}

#[tokio::test]
async fn typo3s_varnish_extensions() {
    let site = "purge = { dialects = [\"typo3\"] }\n";
    let stage = stage(site, "xkey", " ").await;
    stage.origin.on(
        "/shop/one/",
        Script::ok(
            "Cache-Control: public, max-age=600\r\nTYPO3-Pid: 7\r\nTYPO3-Sitename: 1f\r\nxkey: one\r\n",
            "a page",
        ),
    );
    let all = ["BAN / HTTP/1.1", "Host: 127.0.0.1", "Varnish-Ban-All: 1"];
    assert_eq!(after(&stage, &all).await, (200, PAGES.to_vec()));
    for (fields, pages) in [
        (["Varnish-Ban-TYPO3-Pid: 7", "Varnish-Ban-TYPO3-Sitename: 1f"], &PAGES[2..3]),
        (["Varnish-Ban-TYPO3-Pid: 7", "Varnish-Ban-TYPO3-Sitename: 1e"], &[]),
        (["Varnish-Ban-TYPO3-Pid: 8", "Accept: */*"], &[]),
        (["Varnish-Ban-All: 1", "Varnish-Ban-TYPO3-Sitename: 1f"], &PAGES[2..3]),
        (["xkey-purge: two", "Accept: */*"], &PAGES[3..]),
    ] {
        let ban = ["BAN / HTTP/1.1", "Host: 127.0.0.1", fields[0], fields[1]];
        assert_eq!(after(&stage, &ban).await, (200, pages.to_vec()), "{fields:?}");
    }
}

#[tokio::test]
async fn shopwares_urls_fos_behind_nginx_and_souins_encoded_patterns() {
    let shopware = stage("purge = { dialects = [\"shopware\"] }\n", "xkey", " ").await;
    let url = ["PURGE /shop/one/ HTTP/1.1", "Host: larder.test", "User-Agent: GuzzleHttp/7"];
    assert_eq!(after(&shopware, &url).await, (200, vec!["/shop/one/"]));
    let site = "purge = { dialects = [\"foshttpcache\", \"nginx-helper\"] }\n";
    let fos = stage(site, "X-Cache-Tags", ",").await;
    let url = ["PURGE /purge/shop/one/ HTTP/1.1", "Host: larder.test"];
    assert_eq!(after(&fos, &url).await, (200, vec!["/shop/one/"]));
    let souin = stage("purge = { dialects = [\"souin\"] }\n", "Surrogate-Key", ", ").await;
    let url = ["PURGE /souin-api/souin/.%2Bshop%2Fone.%2B HTTP/1.1", "Host: larder.test"];
    assert_eq!(after(&souin, &url).await, (204, vec!["/shop/one/"]));
}

#[tokio::test]
async fn a_purge_that_found_no_site_says_so() {
    let shop = "preset = \"wordpress\"";
    let stage = neighbours(shop, "purge = { dialects = [\"magento\"] }", "X-None").await;
    let lost = ["PURGE /page HTTP/1.1", "Host: 127.0.0.1"];
    assert_eq!(gone_of(&stage, &lost).await, (421, vec![]));
    stage.daemon.assert_metric("larder_purges_without_site_total", 1).await;
    // As everything else that is for no site.
    let other = ["GET /page HTTP/1.1", "Host: 127.0.0.1"];
    assert_eq!(gone_of(&stage, &other).await, (421, vec![]));
    let forwarded = ["PURGE /.* HTTP/1.1", "Host: 127.0.0.1", "X-Forwarded-For: 192.0.2.1"];
    assert_eq!(gone_of(&stage, &forwarded).await, (403, vec![]));
    assert_eq!(stage.metric("larder_purges_without_site_total").await, 1);
}

#[tokio::test]
async fn a_purge_for_one_site_of_a_group_is_for_all_of_it() {
    let shop = "purge = { dialects = [\"shopware\"], group = \"shop\" }";
    let stage = neighbours(shop, "purge = { dialects = [\"shopware\"] }", "xkey").await;
    let keys = ["PURGE / HTTP/1.1", "Host: fr.shop.test", "xkey: one"];
    assert_eq!(gone_of(&stage, &keys).await, (200, SHOP.to_vec()));
    let url = ["PURGE /page HTTP/1.1", "Host: fr.shop.test"];
    assert_eq!(gone_of(&stage, &url).await, (200, vec!["fr.shop.test"]));
    let keys = ["PURGE / HTTP/1.1", "Host: other.test", "xkey: one"];
    assert_eq!(gone_of(&stage, &keys).await, (200, vec!["other.test"]));
}
