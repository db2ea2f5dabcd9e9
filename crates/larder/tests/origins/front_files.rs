//! Tests of files in front of an application that speaks HTTP (nginx: `try_files $uri @app`).

use crate::support;

use serde_json::json;
use support::explain::{explain, step};
use support::folder::Folder;
use support::{Setup, Stage, is_hit};
use testkit::origin::Script;

async fn stage(root: &Folder, files: &str) -> Stage {
    let origin = format!("root = \"{}\"\n{files}", root.path().display());
    let stage = Setup { origin: &origin, ..Setup::default() }.start().await;
    stage.origin.otherwise(Script::cacheable("by the application"));
    stage
}

#[tokio::test]
async fn a_file_answers_and_everything_else_is_the_applications() {
    let root = Folder::new();
    root.file("robots.txt", "robots");
    root.file("assets/app-1.js", "script");
    root.file(".well-known/apple-app-site-association", "links");
    root.file("index.html", "index");
    let stage = stage(&root, "").await;
    // Twice: found on the disk, and in the table.
    for _ in 0..2 {
        for (target, text) in [
            ("/robots.txt", "robots"),
            ("/assets/app-1.js?v=1", "script"),
            ("/assets/%61pp-1.js", "script"),
            ("/.well-known/apple-app-site-association", "links"),
            ("/index.html", "index"),
        ] {
            let reply = stage.get(target).await;
            assert_eq!((reply.status, reply.text().as_str()), (200, text), "{target}");
            assert!(reply.field("etag").is_some(), "{target}");
        }
    }
    assert!(stage.origin.targets().is_empty(), "no file was asked for");
    // A directory is no file, and neither is what is not there.
    for target in ["/", "/assets/", "/assets", "/about", "/assets/none.js"] {
        assert_eq!(stage.get(target).await.text(), "by the application", "{target}");
        assert!(is_hit(&stage.get(target).await), "{target}: pages are stored");
    }
    let posted = b"POST /robots.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx";
    assert_eq!(stage.exchange("POST", posted).await.text(), "by the application");
}

#[tokio::test]
async fn what_is_hidden_or_leads_out_of_the_root_is_the_applications() {
    let (root, outside) = (Folder::new(), Folder::new());
    outside.file("secret.txt", "SECRET");
    root.link(&format!("{}/secret.txt", outside.path().display()), "link.txt");
    for name in [".env", ".git/config", "config.php", "dump.sql", "composer.json"] {
        root.file(name, "SECRET");
    }
    let stage = stage(&root, "").await;
    for target in
        ["/.env", "/.git/config", "/config.php", "/dump.sql", "/composer.json", "/link.txt"]
    {
        assert!(!stage.get(target).await.text().contains("SECRET"), "{target}");
    }
}

#[tokio::test]
async fn a_new_file_precedes_the_page_that_was_stored() {
    let root = Folder::new();
    let stage = stage(&root, "").await;
    assert_eq!(stage.get("/news").await.text(), "by the application");
    root.file("news", "a file");
    support::eventually("the file is found", async || stage.get("/news").await.text() == "a file")
        .await;
}

#[tokio::test]
async fn explain_names_the_file() {
    let root = Folder::new();
    root.file("logo.svg", "<svg/>");
    let stage = stage(&root, "files = { expires = \"1h\" }").await;
    let told = explain(&stage.daemon, &json!({ "url": "http://larder.test/logo.svg" })).await;
    let file = step(&told, "file");
    assert!(file["why"].as_str().is_some_and(|why| why.contains("`root`")), "{file}");
    let sent = stage.get("/logo.svg").await;
    assert_eq!(sent.field("cache-control").as_deref(), Some("max-age=3600"));
}
