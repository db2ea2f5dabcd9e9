//! Rules of routes beside their path: what chooses a route, and what it then does to requests and
//! responses.

use crate::support;

use serde_json::json;
use support::explain::{explain, fact, step};
use support::{Setup, Stage, is_hit};
use testkit::origin::{Script, ScriptedOrigin};

/// Pages that everybody may have, also who has a cookie.
const PUBLIC: &str = "Cache-Control: public, max-age=300\r\n";

/// A stage with a second origin, whose URL is in the place of `BETA` in `site`.
async fn stage_with_beta(site: &str) -> (Stage, ScriptedOrigin) {
    let beta = ScriptedOrigin::start().await.expect("a port for the origin");
    let site = site.replace("BETA", &format!("http://{}", beta.addr()));
    let stage = Setup { site: &site, ..Setup::default() }.start().await;
    stage.origin.otherwise(Script::ok(PUBLIC, "all"));
    beta.otherwise(Script::ok(PUBLIC, "beta"));
    (stage, beta)
}

const BY_COOKIE: &str = r#"
purge = { dialects = ["purge"] }
[[site.route]]
name = "beta"
path = "/app/*"
origin = "BETA"
when = { cookie = { beta = "on" } }
"#;

#[tokio::test]
async fn visitors_of_two_routes_share_no_stored_page() {
    let (stage, beta) = stage_with_beta(BY_COOKIE).await;
    let on = "Cookie: beta=on\r\n";
    for (fields, body, hit) in [
        ("", "all", false),
        (on, "beta", false),
        ("", "all", true),
        (on, "beta", true),
        ("Cookie: beta=off\r\n", "all", true),
        ("Cookie: other=on\r\n", "all", true),
    ] {
        let reply = stage.ask("GET", "/app/a", fields).await;
        assert_eq!((reply.text().as_str(), is_hit(&reply)), (body, hit), "{fields}");
    }
    assert_eq!((stage.origin.seen("/app/a"), beta.seen("/app/a")), (1, 1));
    // Elsewhere the cookie chooses nothing.
    assert_eq!(stage.ask("GET", "/other", on).await.text(), "all");
}

#[tokio::test]
async fn a_purge_of_a_url_reaches_the_pages_of_all_its_routes() {
    let (stage, beta) = stage_with_beta(BY_COOKIE).await;
    let on = "Cookie: beta=on\r\n";
    let ask = async |fields| is_hit(&stage.ask("GET", "/app/a", fields).await);
    assert!(!ask("").await && !ask(on).await && ask("").await && ask(on).await);
    assert_eq!(stage.ask("PURGE", "/app/a", "").await.status, 200);
    assert!(!ask("").await && !ask(on).await);
    assert_eq!((stage.origin.seen("/app/a"), beta.seen("/app/a")), (2, 2));
}

#[tokio::test]
async fn a_route_is_for_a_time() {
    let site = r#"
[[site.route]]
name = "past"
respond = { status = 410 }
when = { time = "2001-01-01..2001-12-31" }
[[site.route]]
name = "closed"
path = "/closed"
respond = { status = 503 }
when = { time = ["2001-01-01", "00:00-12:00,12:00-24:00 Europe/Berlin"] }
[[site.route]]
name = "never"
path = "/open"
respond = { status = 503 }
when = { not = { time = "Mon-Sun" } }
"#;
    let stage = Setup { site, ..Setup::default() }.start().await;
    stage.origin.otherwise(Script::ok(PUBLIC, "page"));
    for (target, status) in [("/closed", 503), ("/open", 200), ("/page", 200)] {
        assert_eq!(stage.ask("GET", target, "").await.status, status, "{target}");
    }
    assert!(is_hit(&stage.ask("GET", "/page", "").await));
    let told = explain(&stage.daemon, &json!({ "url": "http://a.test/closed" })).await;
    let because = "time 2001-01-01 or 00:00-12:00,12:00-24:00 Europe/Berlin";
    assert_eq!(fact(step(&told, "route"), "because of"), because, "{told}");
}

#[tokio::test]
async fn clients_are_let_in_or_not_by_what_they_send() {
    let site = r#"
[[site.route]]
name = "crawlers"
respond = { status = 429 }
when = { user_agent = ["GPTBot", "bytespider"], not = { path = "/robots.txt" } }
[[site.route]]
name = "debug"
path = "/app/*"
respond = { status = 403 }
when = { query = { debug = true }, not = { header = { X-Key = "s3cret" } } }
[[site.route]]
name = "elsewhere"
path = "/office/*"
respond = { status = 404 }
when = { not = { client = ["127.0.0.0/8"] } }
"#;
    let (stage, _beta) = stage_with_beta(site).await;
    for (target, fields, status) in [
        ("/a", "User-Agent: Mozilla/5.0 (compatible; GPTBot/1.2)\r\n", 429),
        ("/a", "User-Agent: ByteSpider\r\n", 429),
        ("/a", "User-Agent: Mozilla/5.0 Firefox/140.0\r\n", 200),
        ("/robots.txt", "User-Agent: GPTBot\r\n", 200),
        ("/app/a?debug=1", "", 403),
        ("/app/a?%64ebug=1", "", 403),
        ("/app;x/a?debug", "", 403),
        ("/app/a?debug=1", "X-Key: s3cret\r\n", 200),
        ("/app/a?debug=1", "X-Key: other\r\n", 403),
        ("/app/a", "", 200),
        ("/office/a", "", 200),
        // It is no proxy that is believed.
        ("/office/a", "X-Forwarded-For: 192.0.2.1\r\n", 200),
    ] {
        let reply = stage.ask("GET", target, fields).await;
        assert_eq!(reply.status, status, "{target} {fields}");
    }
}

#[tokio::test]
async fn a_trusted_proxy_says_whose_address_chooses_the_route() {
    let site = r#"
[[site.route]]
origin = "BETA"
when = { client = "192.0.2.0/24" }
"#;
    let beta = ScriptedOrigin::start().await.expect("a port for the origin");
    let site = site.replace("BETA", &format!("http://{}", beta.addr()));
    let top = "trusted_proxies = [\"127.0.0.0/8\"]";
    let stage = Setup { top, site: &site, ..Setup::default() }.start().await;
    stage.origin.otherwise(Script::ok(PUBLIC, "all"));
    beta.otherwise(Script::ok(PUBLIC, "beta"));
    for (client, body) in [("192.0.2.9", "beta"), ("198.51.100.1", "all"), ("192.0.2.8", "beta")] {
        let fields = format!("X-Forwarded-For: {client}\r\n");
        assert_eq!(stage.ask("GET", "/a", &fields).await.text(), body, "{client}");
    }
}

#[tokio::test]
async fn a_password_is_asked_for_by_the_route_that_conditions_choose() {
    let folder = support::folder::Folder::new();
    // "anna" with the password "secret", as `htpasswd -s` writes it.
    folder.file("users", "anna:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n");
    let users = folder.path().join("users").display().to_string();
    let site = format!(
        "[[site.route]]\nname = \"staff\"\nbasic_auth = {{ file = \"{users}\" }}\n\
         when = {{ header = \"X-Staff\" }}\n"
    );
    let (stage, _beta) = stage_with_beta(&site).await;
    assert_eq!(stage.get("/a").await.status, 200);
    assert_eq!(stage.ask("GET", "/a", "X-Staff: 1\r\n").await.status, 401);
    let shown = "X-Staff: 1\r\nAuthorization: Basic YW5uYTpzZWNyZXQ=\r\n";
    assert_eq!(stage.ask("GET", "/a", shown).await.status, 200);
}

#[tokio::test]
async fn a_limit_for_some_clients_counts_them_alone_and_leaves_hits_hits() {
    let site = r#"
[[site.route]]
name = "crawlers"
rate = { requests = "1/h", burst = 1, queue = 0 }
when = { user_agent = "bot" }
"#;
    let (stage, _beta) = stage_with_beta(site).await;
    assert!(!is_hit(&stage.get("/a").await));
    let bot = "User-Agent: a bot\r\n";
    let mut statuses = Vec::new();
    for _ in 0..4 {
        let reply = stage.ask("GET", "/a", bot).await;
        // What is stored for all is stored for crawlers.
        assert!(reply.status == 429 || is_hit(&reply));
        statuses.push(reply.status);
    }
    assert_eq!((statuses[0], statuses[3]), (200, 429));
    assert_eq!(stage.get("/a").await.status, 200);
    assert_eq!(stage.origin.seen("/a"), 1);
}

#[tokio::test]
async fn explain_names_the_condition_that_chose_a_route_or_did_not() {
    let (stage, _beta) = stage_with_beta(BY_COOKIE).await;
    let url = "http://larder.test/app/a";
    let question = json!({ "url": url, "headers": ["Cookie: beta=on"] });
    let told = explain(&stage.daemon, &question).await;
    let route = step(&told, "route");
    assert!(route["why"].as_str().is_some_and(|why| why.contains("`beta`")), "{route}");
    // The value may be a secret.
    assert_eq!(fact(route, "because of"), "cookie beta=(value)");
    let told = explain(&stage.daemon, &json!({ "url": url })).await;
    assert_eq!(fact(step(&told, "route"), "not met"), "`beta`: cookie beta=(value)");
}

const REWRITTEN: &str = r#"
purge = { dialects = ["purge"] }
[[site.route]]
path = "~ ^/user/([0-9]+)$"
rewrite = "/index.php?p=$1"
[[site.route]]
path = "/api/*"
strip_prefix = "/api"
add_prefix = "/v2"
[[site.route]]
path = "/files/**"
rewrite = "/store/$1"
[[site.route]]
path = "~ ^/dl(.*)$"
rewrite = "/store/$1"
"#;

#[tokio::test]
async fn an_origin_is_asked_for_the_rewritten_url_and_the_clients_is_stored() {
    let stage = Setup { site: REWRITTEN, ..Setup::default() }.start().await;
    for (target, asked) in [
        ("/user/7", "/index.php?p=7"),
        // The new query takes the place of the client's, where there is one.
        ("/user/8?a=b", "/index.php?p=8"),
        ("/api/users?a=b", "/v2/users?a=b"),
        ("/api/", "/v2/"),
        ("/files/a/b.bin?x", "/store/a/b.bin?x"),
        ("/apis", "/apis"),
    ] {
        stage.origin.on(asked, Script::ok(PUBLIC, asked));
        for is_stored in [false, true] {
            let reply = stage.get(target).await;
            assert_eq!((reply.text().as_str(), is_hit(&reply)), (asked, is_stored), "{target}");
        }
        assert_eq!(stage.origin.seen(asked), 1, "{target}");
    }
    assert_eq!(stage.ask("PURGE", "/user/7", "").await.status, 200);
    assert!(!is_hit(&stage.get("/user/7").await) && is_hit(&stage.get("/api/").await));
}

#[tokio::test]
async fn no_rewrite_leads_out_of_its_directory() {
    let stage = Setup { site: REWRITTEN, ..Setup::default() }.start().await;
    stage.origin.otherwise(Script::ok(PUBLIC, "reached"));
    for bad in ["/dl../secret", "/dl..%2fsecret", "/dl%2e%2e/secret", "/dl/..;/..;/x"] {
        assert_eq!(stage.get(bad).await.status, 400, "{bad}");
    }
    assert!(stage.origin.targets().is_empty(), "{:?}", stage.origin.targets());
    assert_eq!(stage.get("/dlx").await.text(), "reached");
}

#[tokio::test]
async fn redirects_have_the_parts_of_a_path_and_never_lead_to_its_host() {
    let site = r#"
[[site.route]]
path = "/old/*"
redirect = { to = "/new/$1$query", status = 301 }
[[site.route]]
path = "~ ^/item-([0-9]+)(?:-[a-z]+)?$"
redirect = { to = "https://shop.test/items/$1", status = 308 }
[[site.route]]
path = "/go/*"
redirect = "/$1"
"#;
    let stage = Setup { site, ..Setup::default() }.start().await;
    for (target, status, location) in [
        ("/old/a/b?c=d", 301, "/new/a/b?c=d"),
        ("/item-17-chair", 308, "https://shop.test/items/17"),
        ("/go//evil.example/x", 302, "/evil.example/x"),
        ("/go/here", 302, "/here"),
    ] {
        let reply = stage.get(target).await;
        let found = reply.field("location").unwrap_or_default();
        assert_eq!((reply.status, found.as_str()), (status, location), "{target}");
    }
}

#[tokio::test]
async fn explain_tells_captures_and_the_rewritten_url() {
    let site =
        format!("{REWRITTEN}\n[[site.route]]\npath = \"/old/*/*\"\nredirect = \"/new/$2/$1\"\n");
    let stage = Setup { site: &site, ..Setup::default() }.start().await;
    let question = |path: &str| json!({ "url": format!("http://larder.test{path}") });
    let told = explain(&stage.daemon, &question("/user/7")).await;
    assert_eq!(step(&told, "rewrite")["why"], "the origin is asked for /index.php?p=7");
    let told = explain(&stage.daemon, &question("/old/a/b")).await;
    assert_eq!(fact(step(&told, "answer"), "captures"), "$1 = a, $2 = b");
    let told = explain(&stage.daemon, &question("/other")).await;
    assert!(step(&told, "rewrite").is_null());
}

#[tokio::test]
async fn explain_names_the_pattern_its_parts_and_the_url_that_the_origin_is_then_asked_for() {
    let site = r#"
[[site.route]]
name = "beta users"
path = ["/people/*/*", "~ ^/user/([0-9]+)/([a-z]+)$"]
rewrite = "/index.php?id=$1&part=$2&$args"
when = { header = { X-Beta = true }, not = { cookie = "off" } }
[[site.route]]
name = "files"
path = "/files/*/**"
rewrite = "/store/$2/$1"
when = { query = { "v" = ["1", "2"] } }
[[site.route]]
name = "api"
path = "/api/*"
strip_prefix = "/api"
add_prefix = "/v2"
[[site.route]]
name = "old"
path = "/old/*.html"
redirect = "/new/$1"
"#;
    let stage = Setup { site, ..Setup::default() }.start().await;
    stage.origin.otherwise(Script::ok(PUBLIC, "made"));
    let because = "header X-Beta, not (cookie off)";
    for (target, field, name, [pattern, captures, because], asked) in [
        (
            "/user/7/posts?a=b",
            "X-Beta: 1",
            "beta users",
            ["~ ^/user/([0-9]+)/([a-z]+)$", "$1 = 7, $2 = posts", because],
            "/index.php?id=7&part=posts&a=b",
        ),
        (
            "/files/a/b/c.bin?v=2",
            "X-Beta: 1",
            "files",
            ["/files/*/**", "$1 = a, $2 = b/c.bin", "query v=1 or 2"],
            "/store/b/c.bin/a?v=2",
        ),
        ("/api/x", "X-Beta: 1", "api", ["/api/*", "$1 = x", ""], "/v2/x"),
        ("/user/7/posts", "X-Alpha: 1", "", ["", "", ""], "/user/7/posts"),
    ] {
        let question = json!({ "url": format!("http://larder.test{target}"), "headers": [field] });
        let told = explain(&stage.daemon, &question).await;
        let route = step(&told, "route");
        let why = route["why"].as_str().unwrap_or_default();
        assert!(why.contains(&format!("`{name}`")) || name.is_empty(), "{target}: {route}");
        let facts = ["path", "captures", "because of"].map(|name| fact(route, name));
        assert_eq!(facts, [pattern, captures, because], "{target}");
        let wanted = format!("the origin is asked for {asked}");
        let rewritten = step(&told, "rewrite")["why"].as_str().unwrap_or_default();
        assert_eq!(rewritten, if name.is_empty() { "" } else { &wanted }, "{target}");
        // Nothing has been asked by that, and then it is as it was told.
        assert_eq!(stage.origin.seen(asked), 0);
        assert_eq!(stage.ask("GET", target, &format!("{field}\r\n")).await.text(), "made");
        assert_eq!(stage.origin.seen(asked), 1, "{:?}", stage.origin.targets());
    }
    let question = json!({ "url": "http://larder.test/old/a.html" });
    let told = explain(&stage.daemon, &question).await;
    assert_eq!(fact(step(&told, "route"), "path"), "/old/*.html");
    assert_eq!(fact(step(&told, "answer"), "captures"), "$1 = a");
    assert_eq!(stage.get("/old/a.html").await.field("location").as_deref(), Some("/new/a"));
}

#[tokio::test]
async fn explain_names_the_route_of_another_reading_that_keeps_a_request_out() {
    let site = "[[site.route]]\nname = \"staff\"\npath = \"/staff/*\"\ndeny = [\"127.0.0.0/8\"]\n\
                [[site.route]]\nname = \"lists\"\npath = \"/;v=1/*\"\ncache = false\n";
    let stage = Setup { site, ..Setup::default() }.start().await;
    stage.origin.otherwise(Script::ok(PUBLIC, "made"));
    let target = "/;v=1/staff/a";
    let told =
        explain(&stage.daemon, &json!({ "url": format!("http://larder.test{target}") })).await;
    let route = step(&told, "route");
    assert!(route["why"].as_str().is_some_and(|why| why.starts_with("`lists`")), "{route}");
    assert_eq!(fact(route, "held to as well"), "`staff`");
    let why = step(&told, "access")["why"].as_str().unwrap_or_default();
    assert!(
        why.ends_with("denied by `deny`, by the route that another reading of the path leads to")
    );
    assert_eq!(stage.get(target).await.status, 403);
    assert!(stage.origin.targets().is_empty());
}
