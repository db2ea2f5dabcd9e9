//! Tests of rules that override what origins say (`cache.ignore`): what is stored then, and that
//! nothing of one visitor reaches another.

use crate::support;

use rustix::process::Signal;
use serde_json::json;
use support::disked::{Disked, Policy};
use support::explain::{explain, fact, step};
use support::{Setup, Stage, eventually, is_hit};
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};

/// Ignores what may be ignored at once.
const ALL: &str = r#"
bypass = { path = "/login" }
[site.cache]
ttl = "1m"
ignore = ["Cache-Control", "CDN-Cache-Control", "Surrogate-Control", "X-Accel-Expires", "Expires",
          "Pragma", "Set-Cookie", "Vary"]
"#;

async fn ignoring(site: &str) -> Stage {
    Setup { site, ..Setup::default() }.start().await
}

#[tokio::test]
async fn what_an_origin_forbids_is_stored_where_that_is_ignored_and_clients_get_its_fields() {
    let stage = ignoring(ALL).await;
    for (target, fields) in [
        ("/private", "Cache-Control: private, no-store\r\nExpires: 0\r\nPragma: no-cache\r\n"),
        ("/cdn", "CDN-Cache-Control: no-store\r\n"),
        ("/surrogate", "Surrogate-Control: no-store\r\n"),
        ("/accel", "X-Accel-Expires: 0\r\n"),
    ] {
        stage.origin.on(target, Script::ok(fields, "page"));
        let miss = stage.get(target).await;
        let hit = stage.get(target).await;
        assert!(!is_hit(&miss) && is_hit(&hit), "{target}: {miss:?} {hit:?}");
        if target == "/private" {
            for reply in [miss, hit] {
                // Browsers and other caches still do what the origin says.
                let control = reply.field("cache-control");
                assert_eq!(control.as_deref(), Some("private, no-store"), "{reply:?}");
                assert_eq!(reply.field("expires").as_deref(), Some("0"));
            }
        }
    }
    let stage = ignoring("").await;
    stage.origin.on("/", Script::ok("Cache-Control: private\r\n", "page"));
    stage.get("/").await;
    assert!(!is_hit(&stage.get("/").await), "it is stored by default");
}

#[tokio::test]
async fn who_has_cookies_or_a_password_gets_and_fills_nothing_of_others() {
    let stage = ignoring(ALL).await;
    let open = "Cache-Control: public, s-maxage=60, must-revalidate\r\nVary: Cookie\r\n";
    for (at, visitor) in ["Authorization: Basic YTpi\r\n", "Cookie: sid=1\r\n"].iter().enumerate() {
        for (fields, method) in
            [(open, "GET"), ("Cache-Control: private\r\n", "GET"), (open, "HEAD")]
        {
            let target = format!("/{at}/{method}/{}", fields.len());
            stage.origin.on(&target, Script::ok(fields, "hers"));
            let hers = stage.ask(method, &target, visitor).await;
            assert!(!is_hit(&hers), "{target}");
            stage.origin.on(&target, Script::ok(fields, "all"));
            let other = stage.get(&target).await;
            assert_eq!((other.text().as_str(), is_hit(&other)), ("all", false), "{target}");
            stage.origin.on(&target, Script::ok(fields, "hers again"));
            let hers = stage.ask("GET", &target, visitor).await;
            assert_eq!((hers.text().as_str(), is_hit(&hers)), ("hers again", false), "{target}");
            let other = stage.get(&target).await;
            assert_eq!((other.text().as_str(), is_hit(&other)), ("all", true), "{target}");
        }
    }
}

#[tokio::test]
async fn a_cookie_that_is_ignored_reaches_nobody_and_one_that_passes_its_visitor() {
    let stage = ignoring(ALL).await;
    let cookie = "Set-Cookie: sid=secret\r\nSet-Cookie: b=2\r\nCache-Control: max-age=60\r\n";
    for (method, target) in [("GET", "/a"), ("HEAD", "/b")] {
        stage.origin.on(target, Script::ok(cookie, "page"));
        for (method, hit) in [(method, false), ("GET", true), ("HEAD", true)] {
            let reply = stage.ask(method, target, "").await;
            assert_eq!(is_hit(&reply), hit, "{reply:?}");
            assert_eq!(reply.field("set-cookie"), None, "{reply:?}");
        }
    }
    stage.origin.on("/login", Script::ok(cookie, "page"));
    stage.origin.on("/post", Script::ok(cookie, "page"));
    stage.origin.on("/visitor", Script::ok(cookie, "page"));
    let visitor = "Cookie: sid=1\r\n";
    for (method, target, fields) in [
        ("GET", "/login", ""),
        ("POST", "/post", "Content-Length: 0\r\n"),
        ("GET", "/visitor", visitor),
        ("GET", "/visitor", "Authorization: Basic YTpi\r\n"),
    ] {
        let reply = stage.ask(method, target, fields).await;
        assert!(reply.field("set-cookie").is_some() && !is_hit(&reply), "{reply:?}");
    }
}

#[tokio::test]
async fn a_confirmation_brings_no_cookie_and_no_private_page() {
    // Cache-Control counts: each use is revalidated.
    let site = "[site.cache]\nignore = \"Set-Cookie\"\nttl = \"1m\"\n";
    let stage = ignoring(site).await;
    let first = "Cache-Control: max-age=0\r\nETag: \"a\"\r\nSet-Cookie: sid=first\r\n";
    stage.origin.on("/page", Script::ok(first, "page"));
    assert_eq!(stage.get("/page").await.field("set-cookie"), None);
    let confirm = |fields: &str| {
        Script::respond(format!("HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n{fields}\r\n"))
    };
    stage.origin.on("/page", confirm("Set-Cookie: sid=second\r\n"));
    for _ in 0..2 {
        let reply = stage.get("/page").await;
        assert_eq!((reply.status, reply.text().as_str()), (200, "page"));
        assert_eq!(reply.field("set-cookie"), None, "{reply:?}");
    }
    // What is not ignored still ends it, and then the cookie is its visitor's.
    stage.origin.on("/page", confirm("Set-Cookie: sid=third\r\nCache-Control: private\r\n"));
    let reply = stage.get("/page").await;
    assert_eq!(reply.field("set-cookie").as_deref(), Some("sid=third"));
    stage.origin.on("/page", Script::ok("", "new"));
    assert_eq!(stage.get("/page").await.text(), "new");
}

#[tokio::test]
async fn one_name_in_vary_is_ignored_and_the_others_count() {
    let site = "[site.cache]\nttl = \"1m\"\nignore = \"Vary: User-Agent\"\n";
    let stage = ignoring(site).await;
    stage.origin.on("/page", Script::ok("Vary: User-Agent, X-Kind\r\n", "page"));
    for (fields, hit) in [
        ("User-Agent: a\r\nX-Kind: 1\r\n", false),
        ("User-Agent: b\r\nX-Kind: 1\r\n", true),
        ("User-Agent: b\r\nX-Kind: 2\r\n", false),
    ] {
        let reply = stage.ask("GET", "/page", fields).await;
        assert_eq!(is_hit(&reply), hit, "{fields}");
        assert_eq!(reply.field("vary").as_deref(), Some("User-Agent, X-Kind"));
    }
}

#[tokio::test]
async fn an_ignored_vary_gives_no_visitor_what_is_another_s() {
    let stage = ignoring(ALL).await;
    // A form of the page for a script, a user by a key of an interface, and what nobody can select.
    for (target, fields, vary) in [
        ("/form", "RSC: 1\r\n", "RSC"),
        ("/user", "X-Api-Key: secret\r\n", "X-Api-Key"),
        ("/any", "", "Accept, *"),
        ("/address", "", "X-Forwarded-For"),
    ] {
        stage.origin.on(target, Script::ok(&format!("Vary: {vary}\r\n"), "one"));
        stage.ask("GET", target, fields).await;
        stage.origin.on(target, Script::ok(&format!("Vary: {vary}\r\n"), "two"));
        let other = stage.get(target).await;
        assert_eq!((other.text().as_str(), is_hit(&other)), ("two", false), "{target}");
    }
}

#[tokio::test]
async fn the_disk_gives_back_only_what_the_rules_of_now_would_store() {
    let mut stage = Disked::start(Policy::Declared, "").await;
    let plain = stage.file.clone();
    let rules = "[site.cache]\nttl = \"10m\"\nignore = [\"Cache-Control\", \"Set-Cookie\"]\n";
    stage.file = plain.replace("[limits]", &format!("{rules}[limits]"));
    stage.again(Signal::TERM).await;
    let fields = "Cache-Control: private\r\nSet-Cookie: sid=hers\r\n";
    stage.origin.on("/page", Script::ok(fields, "hers"));
    stage.get("/page").await;
    stage.again(Signal::TERM).await;
    let reply = stage.get("/page").await;
    assert!(is_hit(&reply) && reply.field("set-cookie").is_none(), "{reply:?}");
    stage.file = plain;
    stage.again(Signal::TERM).await;
    stage.origin.on("/page", Script::ok("", "his"));
    assert_eq!(stage.get("/page").await.text(), "his", "it is private again");
}

/// A cookie that other rules have stored is not removed by rules that would have removed it.
#[tokio::test]
async fn a_stored_cookie_does_not_come_back_under_rules_that_drop_cookies() {
    for rules in ["ignore = \"Set-Cookie\"\nttl = \"10m\"", "drop_set_cookie = true"] {
        let mut stage = Disked::start(Policy::Declared, "profile = \"rfc\"\n").await;
        let cookie = "Cache-Control: public, max-age=1000\r\nSet-Cookie: session=of-alice\r\n";
        stage.origin.on("/cookie", Script::ok(cookie, "hers"));
        stage.get("/cookie").await;
        let safe = stage.file.replace("\"rfc\"", "\"safe\"");
        stage.file = safe.replace("[limits]", &format!("[site.cache]\n{rules}\n[limits]"));
        stage.again(Signal::TERM).await;
        stage.origin.on("/cookie", Script::ok(cookie, "new"));
        let bob = stage.get("/cookie").await;
        assert_eq!((bob.text(), bob.field("set-cookie")), ("new".to_owned(), None), "{rules}");
    }
}

#[tokio::test]
async fn a_fragment_that_is_private_by_ignored_fields_stays_with_its_visitor() {
    let stage = ignoring(&format!("includes = {{ esi = \"announced\" }}\n{ALL}")).await;
    let page = "Content-Type: text/html\r\nSurrogate-Control: content=\"ESI/1.0\"\r\n";
    stage.origin.on("/page", Script::ok(page, "<esi:include src=\"/cart\"/>"));
    let cart = "Cache-Control: private\r\nSet-Cookie: cart=1\r\n";
    let sees = async |fields: &str, own: &str| {
        stage.origin.on("/cart", Script::ok(cart, own));
        stage.ask("GET", "/page", fields).await
    };
    let hers = sees("Cookie: sid=1\r\n", "hers").await;
    assert_eq!((hers.text().as_str(), hers.field("set-cookie")), ("hers", None));
    assert_eq!(sees("", "all").await.text(), "all");
    assert_eq!(sees("Cookie: sid=2\r\n", "his").await.text(), "his");
    assert_eq!(sees("", "new").await.text(), "all");
}

#[tokio::test]
async fn explanation_and_log_say_what_was_ignored() {
    let stage = ignoring(ALL).await;
    let fields = "Cache-Control: private\r\nVary: Cookie\r\nSet-Cookie: sid=secret\r\n";
    stage.origin.on("/page", Script::ok(fields, "page"));
    stage.origin.on(
        "/error",
        Script::respond(
            "HTTP/1.1 403 Forbidden\r\nCache-Control: max-age=60\r\nContent-Length: 0\r\n\r\n",
        ),
    );
    let question = json!({ "url": "http://larder.test/page" });
    let told = explain(&stage.daemon, &question).await;
    let ignored = fact(step(&told, "storing"), "ignored").to_owned();
    assert!(ignored.starts_with("Cache-Control, ") && ignored.ends_with("Vary"), "{ignored}");
    for target in ["/page", "/error"] {
        stage.get(target).await;
    }
    let told = explain(&stage.daemon, &question).await;
    let freshness = step(&told, "freshness");
    // The stored head lacks the cookie.
    assert_eq!(fact(freshness, "ignored"), "Cache-Control, Vary: cookie (`cache.ignore`)");
    let why = freshness["why"].as_str().expect("a reason");
    assert!(why.contains("setting `cache.ttl.200`, since Cache-Control"), "{why}");
    for (target, known) in [
        ("/page", "Cache-Control, Set-Cookie, Vary: cookie ignored"),
        ("/error", "Cache-Control ignored; status 403"),
    ] {
        eventually(target, async || {
            let question = json!({ "url": format!("http://larder.test{target}") });
            let told = explain(&stage.daemon, &question).await;
            fact(&told["past"][0], "because of") == known
        })
        .await;
    }
}

#[tokio::test]
async fn what_could_leak_at_once_is_no_configuration() {
    let origin = ScriptedOrigin::start().await.expect("a port for the origin");
    for (top, ignore, why) in [
        ("profile = \"rfc\"", "Cache-Control", "in the profile `rfc`"),
        ("profile = \"rfc\"", "Set-Cookie", "in the profile `rfc`"),
        ("profile = \"rfc\"", "Vary: Cookie", "in the profile `rfc`"),
        ("", "Vary: Authorization", "cannot be ignored"),
        ("", "Authorization", "has no say in storing"),
    ] {
        let site = format!("[site.cache]\nttl = \"1m\"\nignore = \"{ignore}\"\n");
        let file = Setup { top, site: &site, ..Setup::default() }.file(&origin);
        let error = Daemon::start(&file).err().map(|error| error.to_string());
        let error = error.expect("it is refused");
        assert!(error.contains(why), "{ignore}: {error}");
    }
}
