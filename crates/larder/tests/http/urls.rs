//! Tests of URLs: one page has one URL, however it is spelt; requests without a site, and malformed
//! ones.

use crate::support;

use support::folder::Folder;
use support::{Setup, Stage, eventually, is_hit, whole};
use testkit::client::{RawClient, WriteSplit};
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};

const CACHED: &str = "Cache-Control: max-age=600\r\n";

#[tokio::test]
async fn spellings_of_a_path_are_one_page_for_readers_origins_and_purges() {
    let site = "purge = { dialects = [\"purge\"] }\n[[site.route]]\npath = \"/café/*\"\n\
                response_headers = { set = { X-Route = \"mine\" } }\n";
    let stage = Setup { site, ..Setup::default() }.start().await;
    let (path, query) = ("/caf%C3%A9/~a%2Fb", "?q=%c3%7e");
    stage.origin.on(&format!("{path}{query}"), Script::ok(CACHED, "a page"));
    let spellings = ["/café/~a%2fb", "/caf%c3%a9/%7ea%2Fb", "/%63af%C3%a9/%7Ea%2fb"];
    for (at, spelling) in spellings.iter().enumerate() {
        let reply = stage.get(&format!("{spelling}{query}")).await;
        assert_eq!((reply.status, is_hit(&reply)), (200, at > 0), "{spelling}");
        assert_eq!(reply.field("x-route").as_deref(), Some("mine"), "{spelling}");
    }
    let sent: Vec<String> = stage.received().into_iter().map(|sent| sent.target).collect();
    assert_eq!(sent, [format!("{path}{query}")], "the origin is asked once, in one spelling");

    for spelling in spellings {
        let purged = stage.ask("PURGE", &format!("{spelling}{query}"), "").await;
        assert_eq!(purged.field("x-purged").as_deref(), Some("1"), "{spelling}");
        stage.get(&format!("{path}{query}")).await;
    }
    // The query stays unchanged: signatures cover it.
    stage.origin.on(&format!("{path}?q=%C3~"), Script::ok(CACHED, "another"));
    assert!(!is_hit(&stage.get(&format!("{path}?q=%C3~")).await));
}

/// As with nginx's `add_header ... always`.
#[tokio::test]
async fn every_answer_of_a_site_has_its_fields() {
    let folder = Folder::new();
    folder.file("users", "anna:$2y$04$abcdefghijklmnopqrstuuJ3JqO7QKPpxyFKR9u3dCz1Ppc2lX0yC\n");
    let users = folder.path().join("users");
    let site = format!(
        "response_headers = {{ set = {{ X-Frame-Options = \"DENY\" }} }}\n\
         purge = {{ dialects = [\"purge\"] }}\n\
         [[site.route]]\npath = \"/old\"\nredirect = {{ to = \"/new\", status = 301 }}\n\
         [[site.route]]\npath = \"/moved\"\nredirect = \"/for-now\"\n\
         [[site.route]]\npath = \"/said\"\nrespond = {{ body = \"hello\" }}\n\
         response_headers = {{ set = {{ X-Route = \"said\" }} }}\n\
         [[site.route]]\npath = \"/kept-out\"\ndeny = \"127.0.0.1\"\n\
         [[site.route]]\npath = \"/members\"\nbasic_auth = {{ file = \"{}\" }}\n\
         [[site.route]]\npath = \"/files/*\"\nfiles = \"{}\"\n",
        users.display(),
        folder.path().display(),
    );
    let stage = Setup { site: &site, ..Setup::default() }.start().await;
    stage.origin.on("/broken", Script::respond("").close());
    stage.origin.on("/page", Script::ok(CACHED, "a page"));
    for (path, status) in [
        ("/page", 200),
        ("/page", 200),
        ("/old", 301),
        ("/moved", 302),
        ("/said", 200),
        ("/kept-out", 403),
        ("/members", 401),
        ("/files/none", 404),
        ("/broken", 502),
    ] {
        let reply = stage.get(path).await;
        assert_eq!(reply.status, status, "{path}");
        assert_eq!(reply.field("x-frame-options").as_deref(), Some("DENY"), "{path}");
        // Clients remember a permanent redirect.
        let stored = reply.field("cache-control").is_none_or(|value| !value.contains("no-store"));
        assert_eq!(stored, status < 302, "{path}");
    }
    assert_eq!(stage.get("/said").await.field("x-route").as_deref(), Some("said"));
    let purged = stage.ask("PURGE", "/page", "").await;
    assert!(purged.field("x-frame-options").is_none(), "it is of the interface");
}

#[tokio::test]
async fn utf_8_that_is_not_escaped_is_refused_where_that_is_set_and_other_bytes_always() {
    let stage = Stage::new().await;
    stage.origin.otherwise(Script::ok(CACHED, "a page"));
    assert_eq!(stage.get("/é?q=é").await.status, 200);
    assert_eq!(stage.sole_request("/%C3%A9?q=%C3%A9").method, "GET");
    let mut raw = RawClient::connect(stage.daemon.addr()).await.expect("connected");
    raw.send(b"GET /\xe9 HTTP/1.1\r\nHost: larder.test\r\n\r\n", WriteSplit::Whole)
        .await
        .expect("sent");
    assert_eq!(whole(raw.reply("GET").await, "it").status, 400);

    let stage = Setup { top: "raw_utf8 = false\n", ..Setup::default() }.start().await;
    stage.origin.otherwise(Script::ok(CACHED, "a page"));
    assert_eq!(stage.get("/é").await.status, 400);
    assert_eq!(stage.get("/%C3%A9").await.status, 200);
}

#[tokio::test]
async fn a_balancer_that_asks_by_address_gets_a_200() {
    let origin = ScriptedOrigin::start().await.expect("a port for the origin");
    origin.otherwise(Script::ok(CACHED, "the site's own"));
    let file = Setup { top: "health_check = \"/health\"\n", ..Setup::default() }.file(&origin);
    let file = file.replace("host = \"*\"", "host = \"larder.test\"");
    let daemon = Daemon::start(&file).expect("larder starts");
    for (request, status, body) in [
        ("GET /health HTTP/1.0\r\n\r\n", 200, "ok\n"),
        ("GET /health?from=lb HTTP/1.1\r\nHost: 10.0.0.7:80\r\n\r\n", 200, "ok\n"),
        ("HEAD /health HTTP/1.1\r\nHost: 10.0.0.7\r\n\r\n", 200, ""),
        ("GET /health HTTP/1.1\r\nHost: larder.test\r\n\r\n", 200, "the site's own"),
    ] {
        let mut raw = RawClient::connect(daemon.addr()).await.expect("connected");
        raw.send(request.as_bytes(), WriteSplit::Whole).await.expect("sent");
        let method = request.split(' ').next().unwrap_or_default();
        let reply = whole(raw.reply(method).await, request);
        assert_eq!((reply.status, &reply.body[..]), (status, body.as_bytes()), "{request}");
    }
    for request in [
        "GET /other HTTP/1.1\r\nHost: 10.0.0.7\r\n\r\n",
        "POST /health HTTP/1.1\r\nHost: 10.0.0.7\r\nContent-Length: 0\r\n\r\n",
    ] {
        let mut raw = RawClient::connect(daemon.addr()).await.expect("connected");
        raw.send(request.as_bytes(), WriteSplit::Whole).await.expect("sent");
        assert_eq!(whole(raw.reply("GET").await, "it").status, 421, "{request}");
    }
}

#[tokio::test]
async fn the_access_log_has_users_and_malformed_requests_as_they_came() {
    let folder = Folder::new();
    let file = folder.path().join("access.log");
    let top = format!("access_log = \"{}\"\n", file.display());
    let stage = Setup { top: &top, ..Setup::default() }.start().await;
    stage.origin.otherwise(Script::ok(CACHED, "a page"));
    // ann:secret
    let signed = "Authorization: Basic YW5uOnNlY3JldA==\r\n";
    stage.ask("GET", "/a", signed).await;
    let read = || std::fs::read_to_string(&file).unwrap_or_default();
    let requests = ["GET /x y\"z HTTP/1.1\r\nHost: a\r\n\r\n", "\x16\x03\x01 hello\r\n\r\n"];
    for (at, request) in requests.iter().enumerate() {
        // Each core writes for itself.
        eventually("the line before", async || read().lines().count() == at + 1).await;
        let mut raw = RawClient::connect(stage.daemon.addr()).await.expect("connected");
        raw.send(request.as_bytes(), WriteSplit::Whole).await.expect("sent");
        assert_eq!(whole(raw.reply("GET").await, "it").status, 400, "{request}");
    }
    eventually("three lines", async || read().lines().count() == 3).await;
    let log = read();
    let lines: Vec<&str> = log.lines().collect();
    assert!(lines[0].starts_with("127.0.0.1 - ann [") && lines[0].contains("\"GET /a "), "{log}");
    assert!(lines[1].contains(r#"] "GET /x y\x22z HTTP/1.1" 400 "#), "{log}");
    assert!(lines[2].contains(r#"] "\x16\x03\x01 hello" 400 "#), "{log}");
    assert!(!log.contains("secret") && !log.contains("YW5u"), "{log}");
}

#[tokio::test]
async fn empty_lines_before_a_request_are_passed_over() {
    let stage = Stage::new().await;
    stage.origin.otherwise(Script::ok(CACHED, "a page"));
    let mut raw = RawClient::connect(stage.daemon.addr()).await.expect("connected");
    for empty in ["\r\n\r\n\r\n", "", "\r\n\r\n"] {
        let request = format!("{empty}GET /a HTTP/1.1\r\nHost: larder.test\r\n\r\n");
        raw.send(request.as_bytes(), WriteSplit::Whole).await.expect("sent");
        assert_eq!(whole(raw.reply("GET").await, "it").status, 200, "{empty:?}");
    }
}

#[tokio::test]
async fn a_campaign_survives_redirects_of_its_site_and_splits_no_page() {
    let stage = Stage::new().await;
    let redirect = |code: u16, to: &str, more: &str| {
        Script::respond(format!(
            "HTTP/1.1 {code} Moved\r\nLocation: {to}\r\n{more}Content-Length: 0\r\n\r\n"
        ))
    };
    stage.origin.on("/offer", redirect(301, "http://larder.test/offer/?a=1#top", CACHED));
    stage.origin.on("/login", redirect(302, "/in", "Cache-Control: no-store\r\n"));
    stage.origin.on("/partner", redirect(301, "https://partner.example/", CACHED));
    stage.origin.on("/page", Script::ok(CACHED, "a page"));
    let sent = async |target: &str| {
        let reply = stage.get(target).await;
        (is_hit(&reply), reply.field("location").unwrap_or_default())
    };
    let of = |name: &str| format!("http://larder.test/offer/?a=1&utm_source={name}&gclid=1#top");
    assert_eq!(sent("/offer?utm_source=mail&gclid=1").await, (false, of("mail")));
    // The stored page has no visitor's parameters.
    assert_eq!(sent("/offer?utm_source=ads&gclid=1").await, (true, of("ads")));
    assert_eq!(sent("/offer").await, (true, "http://larder.test/offer/?a=1#top".to_owned()));
    assert_eq!(sent("/login?utm_source=a").await, (false, "/in?utm_source=a".to_owned()));
    let partner = "https://partner.example/".to_owned();
    assert_eq!(sent("/partner?gclid=1").await, (false, partner));
    sent("/page?utm_source=a").await;
    assert!(sent("/page?utm_source=b").await.0);
    let head = stage.ask("HEAD", "/offer?gclid=2", "").await;
    let location = head.field("location");
    assert_eq!(location.as_deref(), Some("http://larder.test/offer/?a=1&gclid=2#top"));
}
