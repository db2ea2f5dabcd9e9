//! Tests of files beside the scripts of a FastCGI origin.

use crate::support;

use support::scripts::Stage;
use support::{PATIENCE, eventually, is_hit, whole};
use testkit::client::{RawClient, WriteSplit, request};

#[tokio::test]
async fn files_are_served_and_scripts_are_run() {
    let stage = Stage::start("", "").await;
    for (name, text) in [
        ("style.css", "css"),
        ("wp-content/a.b.js", "js"),
        ("LICENSE", "free"),
        ("docs/index.html", "docs"),
        (".well-known/acme-challenge/token", "proof"),
        ("x.php.d/page.css", "no script"),
    ] {
        stage.root.file(name, text);
    }
    stage.root.file("admin/index.php", "<?php SECRET");
    // Twice: found on the disk, and in the table.
    for _ in 0..2 {
        for (target, text) in [
            ("/style.css", "css"),
            ("/style.css?ver=1", "css"),
            ("/wp-content/a.b.js", "js"),
            ("/LICENSE", "free"),
            ("/docs/", "docs"),
            ("/.well-known/acme-challenge/token", "proof"),
        ] {
            let reply = stage.get(target).await;
            assert_eq!((reply.status, reply.text().as_str()), (200, text), "{target}");
            assert_eq!(reply.ending, testkit::reply::Ending::Length, "{target}");
            assert!(reply.field("etag").is_some(), "{target}");
        }
    }
    assert!(stage.app.asked().is_empty(), "no application was asked");
    for target in ["/", "/index.php", "/admin/", "/page", "/no-such.css", "/a/b.c/d"] {
        assert_eq!(stage.get(target).await.text(), "by the application", "{target}");
    }
    let docs = stage.get("/docs").await;
    assert_eq!(docs.status, 301);
}

#[tokio::test]
async fn sources_and_what_is_hidden_never_leave() {
    let stage = Stage::start("", "").await;
    let hidden = [
        "index.php~",
        "index.php.bak",
        "old.php5",
        "a.phtml",
        "a.phar",
        "a.inc",
        "dump.sql",
        "composer.json",
        "composer.lock",
        "wp-config.php.save",
        "debug.log",
        "web.config",
        "x.module",
        "Makefile",
        "auth.json",
        "a.PHP",
        "config.yml",
    ];
    for name in hidden {
        stage.root.file(name, "SECRET");
    }
    for name in [".env", ".git/config", ".htaccess", "sub/.user.ini"] {
        stage.root.file(name, "SECRET");
        let reply = stage.get(&format!("/{name}")).await;
        assert_eq!(reply.status, 403, "{name}");
    }
    stage.root.link("index.php", "source.txt");
    stage.root.link("/etc/passwd", "passwd.txt");
    stage.root.file("sub/a.txt", "open");
    for name in hidden {
        for target in [format!("/{name}"), format!("/sub/../{name}"), format!("/{name}?x.css")] {
            let reply = stage.get(&target).await;
            // As if it were not there: the front controller is asked.
            assert_eq!(reply.text(), "by the application", "{target}");
        }
    }
    for target in ["/source.txt", "/passwd.txt", "/index.php/x.css", "/index.php%2fx.css"] {
        let text = stage.get(target).await.text();
        assert!(!text.contains("SECRET") && !text.contains("root:"), "{target}: {text}");
    }
}

#[tokio::test]
async fn a_file_is_only_read() {
    let stage = Stage::start("", "").await;
    stage.root.file("style.css", "css");
    for method in ["POST", "PUT", "DELETE"] {
        let reply = stage.ask(method, "/style.css", "").await;
        assert_eq!(reply.status, 405, "{method}");
        assert_eq!(reply.field("allow").as_deref(), Some("GET, HEAD"), "{method}");
    }
    assert!(stage.app.asked().is_empty(), "no application was asked");
    assert_eq!(stage.ask("POST", "/form", "").await.text(), "by the application");
}

#[tokio::test]
async fn a_file_comes_before_the_cache_and_before_bypass() {
    let stage = Stage::start("", "bypass = { cookie = \"session\" }").await;
    assert_eq!(stage.get("/late.css").await.text(), "by the application");
    assert!(is_hit(&stage.get("/late.css").await));
    stage.root.file("late.css", "file");
    eventually("the file", async || stage.get("/late.css").await.text() == "file").await;
    let with_cookie = stage.ask("GET", "/late.css", "Cookie: session=1\r\n").await;
    assert_eq!(with_cookie.text(), "file");
    std::fs::remove_file(stage.root.path().join("late.css")).expect("removed");
    let gone = async || stage.get("/late.css").await.text() == "by the application";
    eventually("the application again", gone).await;
}

#[tokio::test]
async fn settings_say_how_or_that_not() {
    let stage = Stage::start("files = { expires = \"1d\", hide = [\"*.map\"] }", "").await;
    stage.root.file("a.css", "css");
    stage.root.file("a.map", "map");
    stage.root.file("a.yml", "shown");
    stage.root.file("a.php5", "<?php");
    let reply = stage.get("/a.css").await;
    assert_eq!(reply.field("cache-control").as_deref(), Some("max-age=86400"));
    assert_eq!(stage.get("/a.map").await.text(), "by the application");
    assert_eq!(stage.get("/a.yml").await.text(), "shown", "the list was replaced");
    let off = Stage::start("files = false", "").await;
    off.root.file("a.css", "css");
    assert_eq!(off.get("/a.css").await.status, 404);
    let elsewhere = Stage::start("try_files = \"/index.php\"", "").await;
    elsewhere.root.file("a.css", "css");
    assert_eq!(elsewhere.get("/a.css").await.text(), "by the application");
}

#[tokio::test]
async fn many_at_once_get_the_file_that_no_suffix_gives_away() {
    let stage = Stage::start("", "").await;
    stage.root.file("LICENSE", "free");
    let mut raws = Vec::new();
    for _ in 0..50 {
        let mut raw = RawClient::connect(stage.daemon.addr()).await.expect("a connection");
        raw.send(&request("GET", "/LICENSE", ""), WriteSplit::Whole).await.expect("taken");
        raws.push(raw.patience(PATIENCE));
    }
    for mut raw in raws {
        assert_eq!(whole(raw.reply("GET").await, "/LICENSE").text(), "free");
    }
    assert!(stage.app.asked().is_empty());
}

#[tokio::test]
async fn style_sheets_beside_scripts_are_coded_for_browsers() {
    let stage = Stage::start("", "").await;
    let text = ".line { margin: 0 }\n".repeat(500);
    stage.root.file("wp-includes/style.css", &text);
    let fields = "Accept-Encoding: gzip, deflate, br\r\n";
    let ask = async || {
        let mut raw =
            RawClient::connect(stage.daemon.addr()).await.expect("connected").patience(PATIENCE);
        let asked = request("GET", "/wp-includes/style.css?ver=6", fields);
        raw.send(&asked, WriteSplit::Whole).await.expect("taken");
        whole(raw.reply("GET").await, "style.css")
    };
    eventually("a coded style sheet", async || {
        let reply = ask().await;
        let is_coded = reply.field("content-encoding").is_some();
        assert_eq!(reply.field("vary").as_deref(), Some("Accept-Encoding"));
        is_coded && reply.body.len() < text.len() / 10
    })
    .await;
    assert!(stage.app.asked().is_empty(), "no application was asked");
}
