//! Tests of `intercept_errors`: a site's own pages in place of errors that its origin sends.

use crate::support;

use serde_json::json;
use support::explain::{explain, fact, step};
use support::folder::Folder;
use support::h2::{H2C, client};
use support::{Setup, Stage, is_hit};
use testkit::fastcgi::ApplicationScript;
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};

const OWN: &str = "<!doctype html><p>Own page";

fn written() -> Folder {
    let folder = Folder::new();
    folder.file("own.html", OWN);
    folder
}

/// Keys of a site with pages for 404, 500 and 503, and with `keys`.
fn site(folder: &Folder, keys: &str) -> String {
    let page = format!("{}/own.html", folder.path().display());
    format!("error_pages = {{ 404 = \"{page}\", 500 = \"{page}\", 503 = \"{page}\" }}\n{keys}")
}

async fn stage(folder: &Folder, keys: &str) -> Stage {
    Setup { site: &site(folder, keys), ..Setup::default() }.listening(H2C).await
}

fn error(status: &str, fields: &str, body: &str) -> Script {
    let length = body.len();
    Script::respond(format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {length}\r\n\r\n{body}"))
}

#[tokio::test]
async fn an_error_of_the_origin_has_the_site_s_page_and_says_nothing_of_the_origin_s() {
    let folder = written();
    let stage = stage(&folder, "intercept_errors = true\n").await;
    let fields = "Content-Type: application/json\r\nContent-Encoding: gzip\r\nETag: \"a\"\r\n\
                  X-Debug-Exception: at line 7\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
                  Retry-After: 9\r\nSet-Cookie: a=b\r\nAccess-Control-Allow-Origin: *\r\n\
                  Cache-Control: no-store\r\n";
    stage.origin.on("/", error("503 Service Unavailable", fields, "secret"));
    for (method, body) in [("GET", OWN), ("HEAD", ""), ("POST", OWN)] {
        let with = if method == "POST" { "Content-Length: 0\r\n" } else { "" };
        let reply = stage.ask(method, "/", with).await;
        assert_eq!((reply.status, reply.text().as_str()), (503, body), "{method}");
        assert_eq!(reply.field("content-length"), Some(OWN.len().to_string()), "{method}");
        for (name, value) in [
            ("content-type", Some("text/html")),
            ("retry-after", Some("9")),
            ("set-cookie", Some("a=b")),
            ("access-control-allow-origin", Some("*")),
            ("cache-control", Some("no-store")),
            ("via", Some("1.1 larder")),
            ("content-encoding", None),
            ("etag", None),
            ("last-modified", None),
            ("x-debug-exception", None),
        ] {
            assert_eq!(reply.field(name).as_deref(), value, "{method} {name}");
        }
    }
    // Without a page, and without an error, nothing changes.
    stage.origin.on("/", error("403 Forbidden", "X-Why: you\r\n", "origin"));
    let reply = stage.get("/").await;
    assert_eq!((reply.text().as_str(), reply.field("x-why").as_deref()), ("origin", Some("you")));
    stage.origin.on("/", Script::ok("X-Why: me\r\n", "page"));
    assert_eq!(stage.get("/").await.text(), "page");
    let mut client = client(&stage.daemon).await;
    stage.origin.on("/", error("404 Not Found", "", "secret"));
    let reply = client.get("/").await.answer("/");
    assert_eq!((reply.status, reply.text().as_str()), (404, OWN));
}

#[tokio::test]
async fn a_stored_error_is_replaced_when_it_is_sent_and_stays_as_it_came() {
    let folder = written();
    let keys = "[site.response_headers]\nset = { X-Site = \"own\" }\n\
                [[site.response]]\nstatus = 404\nheaders.set = { X-Rule = \"gone\" }\n\
                [[site.route]]\npath = \"/a*\"\nintercept_errors = [404, \"5xx\"]\n";
    let stage = stage(&folder, keys).await;
    let gone = "Cache-Control: max-age=60\r\nETag: \"a\"\r\nContent-Type: text/plain\r\n";
    stage.origin.otherwise(error("404 Not Found", gone, "origin"));
    for (fields, hit) in [
        ("", false),
        ("", true),
        ("If-None-Match: \"a\"\r\n", true),
        ("Range: bytes=0-1\r\n", true),
        ("Accept-Encoding: gzip, br\r\n", true),
    ] {
        let reply = stage.ask("GET", "/a", fields).await;
        assert_eq!((reply.status, reply.text().as_str()), (404, OWN), "{fields}");
        assert_eq!(is_hit(&reply), hit, "{fields}");
        assert_eq!((reply.field("age").is_some(), reply.field("etag")), (true, None), "{fields}");
        assert_eq!(reply.field("x-site").as_deref(), Some("own"), "{fields}");
        assert_eq!(reply.field("x-rule").as_deref(), Some("gone"), "{fields}");
    }
    let reply = stage.ask("HEAD", "/a", "").await;
    assert!(is_hit(&reply) && reply.body.is_empty());
    assert_eq!(reply.field("content-length"), Some(OWN.len().to_string()));
    let reply = stage.get("/other").await;
    assert_eq!(reply.text(), "origin", "it is another route's");
    assert_eq!(stage.origin.seen("/a"), 1);
}

#[tokio::test]
async fn a_fragment_that_fails_gets_no_page_of_its_own() {
    let folder = written();
    let stage =
        stage(&folder, "intercept_errors = true\nincludes = { esi = \"announced\" }\n").await;
    let page = "Content-Type: text/html\r\nSurrogate-Control: content=\"ESI/1.0\"\r\n";
    let body = "a<esi:include src=\"/gone\" onerror=\"continue\"/>b\
                <esi:include src=\"/gone\" alt=\"/there\"/>";
    stage.origin.on("/page", Script::ok(page, body));
    stage.origin.on("/gone", error("404 Not Found", "Cache-Control: max-age=60\r\n", "gone"));
    stage.origin.on("/there", Script::ok("", "there"));
    assert_eq!(stage.get("/page").await.text(), "abthere");
    assert_eq!(stage.get("/gone").await.text(), OWN);
}

#[tokio::test]
async fn errors_of_a_php_application_are_replaced_as_well() {
    let folder = written();
    let keys = site(&folder, "intercept_errors = true\n");
    let stage = support::scripts::Stage::start("", &keys).await;
    stage.app.otherwise(ApplicationScript::answer(
        "Status: 500\nContent-Type: text/html\nX-Powered-By: PHP\n\nfatal error in line 7",
    ));
    let reply = stage.get("/").await;
    assert_eq!((reply.status, reply.text().as_str()), (500, OWN));
    assert_eq!(reply.field("x-powered-by"), None);
}

#[tokio::test]
async fn explanation_says_which_errors_are_replaced() {
    let folder = written();
    let stage = stage(&folder, "intercept_errors = \"5xx\"\n").await;
    let told = explain(&stage.daemon, &json!({ "url": "http://larder.test/a" })).await;
    assert_eq!(fact(step(&told, "fetch"), "errors replaced"), "500, 503");
}

#[tokio::test]
async fn what_is_no_error_is_refused() {
    let (folder, origin) = (written(), ScriptedOrigin::start().await.expect("an origin"));
    for keys in ["intercept_errors = 302\n", "intercept_errors = \"any\"\n"] {
        let file = Setup { site: &site(&folder, keys), ..Setup::default() }.file(&origin);
        let error = Daemon::start(&file).expect_err("it is refused").to_string();
        assert!(error.contains("is not the status of an error"), "{keys}: {error}");
    }
}
