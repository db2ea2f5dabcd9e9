//! Tests of X-Accel-Redirect and X-Sendfile: files that origins respond with, and the fields beside
//! them.

use crate::support;

use support::folder::Folder;
use support::{Setup, Stage, is_hit, pattern};
use testkit::origin::Script;
use testkit::reply::Reply;

/// An origin with `fields` in every response.
async fn stage(origin: &str, fields: &str) -> Stage {
    let stage = Setup { origin, top: "x_cache = true", ..Setup::default() }.start().await;
    stage.origin.otherwise(Script::ok(fields, "by the origin"));
    stage
}

fn private() -> (Folder, String) {
    let folder = Folder::new();
    folder.file("private/report.pdf", "0123456789");
    folder.file("private/deep/large.bin", pattern(200_000));
    folder.file("private/.env", "SECRET");
    folder.file("secret.txt", "SECRET");
    folder.link("../secret.txt", "private/link.txt");
    let path = folder.path().join("private").display().to_string();
    (folder, path)
}

fn field(reply: &Reply, name: &str) -> String {
    reply.field(name).unwrap_or_default()
}

#[tokio::test]
async fn a_redirect_answers_with_the_file_and_keeps_what_describes_it() {
    let (_folder, path) = private();
    let stage = stage(
        &format!("accel = {{ \"/protected/\" = \"{path}\" }}"),
        "X-Accel-Redirect: /protected/report.pdf\r\nContent-Type: application/x-report\r\n\
         Content-Disposition: attachment; filename=r.pdf\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n\
         Cache-Control: max-age=300\r\nETag: \"origin\"\r\nX-Powered-By: it\r\n",
    )
    .await;
    let reply = stage.get("/download/1").await;
    assert_eq!((reply.status, reply.text().as_str()), (200, "0123456789"));
    for (name, value) in [
        ("content-type", "application/x-report"),
        ("content-disposition", "attachment; filename=r.pdf"),
        ("set-cookie", "a=1, b=2"),
        ("cache-control", "max-age=300"),
        ("x-powered-by", ""),
        ("x-accel-redirect", ""),
        ("x-cache", "FILE"),
    ] {
        assert_eq!(field(&reply, name), value, "{name}");
    }
    let etag = field(&reply, "etag");
    assert!(etag != "\"origin\"" && !etag.is_empty(), "the file's own: {etag}");
    let part = stage.ask("GET", "/download/1", "Range: bytes=2-4\r\n").await;
    assert_eq!((part.status, part.text().as_str()), (206, "234"));
    let known = stage.ask("GET", "/download/1", &format!("If-None-Match: {etag}\r\n")).await;
    assert_eq!((known.status, field(&known, "content-type").as_str()), (304, ""));
    let head = stage.ask("HEAD", "/download/1", "").await;
    assert_eq!((head.status, field(&head, "content-length").as_str()), (200, "10"));
    let post = stage.ask("POST", "/download/1", "Content-Length: 0\r\n").await;
    assert_eq!((post.status, post.text().as_str()), (200, "0123456789"));
    // The origin got each request: a permission for one client is not another's.
    assert_eq!(stage.received().len(), 5);
}

#[tokio::test]
async fn only_what_settings_name_can_be_sent() {
    let (folder, path) = private();
    let setting = format!("accel = {{ \"/protected/\" = \"{path}\" }}\nx_sendfile = \"{path}\"\n");
    let outside = folder.path().join("secret.txt").display().to_string();
    for (fields, status) in [
        (format!("X-Accel-Redirect: /elsewhere{path}/report.pdf"), 502),
        ("X-Accel-Redirect: /protected/../secret.txt".to_owned(), 502),
        ("X-Accel-Redirect: /protected/%2e%2e/secret.txt".to_owned(), 502),
        ("X-Accel-Redirect: @named".to_owned(), 502),
        ("X-Accel-Redirect: /protected/none.pdf".to_owned(), 404),
        ("X-Accel-Redirect: /protected/link.txt".to_owned(), 404),
        ("X-Accel-Redirect: /protected/.env".to_owned(), 404),
        ("X-Accel-Redirect: /protected/deep".to_owned(), 404),
        (format!("X-Sendfile: {outside}"), 502),
        (format!("X-Sendfile: {path}/../secret.txt"), 404),
        (format!("X-Sendfile: {path}/link.txt"), 404),
        (format!("X-Sendfile: {path}-other/x"), 502),
        ("X-Sendfile: /etc/passwd".to_owned(), 502),
        ("X-Sendfile: report.pdf".to_owned(), 502),
        (format!("X-Sendfile: {path}/report.pdf"), 200),
        (format!("X-Sendfile: {path}/deep/large.bin"), 200),
    ] {
        let stage = stage(&setting, &format!("{fields}\r\n")).await;
        let reply = stage.get("/x").await;
        assert_eq!(reply.status, status, "{fields}");
        let text = reply.text();
        assert!(!text.contains("SECRET") && !text.contains("root:"), "{fields}: {text}");
        if fields.ends_with("large.bin") {
            assert!(reply.body == pattern(200_000));
        }
    }
}

#[tokio::test]
async fn without_settings_the_fields_do_nothing_and_are_removed() {
    let (_folder, path) = private();
    let fields = format!(
        "X-Accel-Redirect: /protected/report.pdf\r\nX-Sendfile: {path}/report.pdf\r\n\
         X-Accel-Expires: 300\r\nX-Accel-Buffering: no\r\nX-Accel-Limit-Rate: 1\r\n\
         Cache-Control: no-store\r\n"
    );
    let stage = stage("", &fields).await;
    for _ in 0..2 {
        let reply = stage.get("/x").await;
        assert_eq!(reply.text(), "by the origin");
        assert!(!is_hit(&reply));
        let names = reply.fields.iter().map(|(name, _)| name.to_ascii_lowercase());
        let ours = |name: &str| name.starts_with("x-accel") || name == "x-sendfile";
        assert!(!names.into_iter().any(|name| ours(&name)), "{:?}", reply.fields);
    }
}

#[tokio::test]
async fn an_accel_lifetime_counts_before_every_other() {
    let lasting = "X-Accel-Expires: 300\r\nCache-Control: no-cache, no-store\r\n";
    let kept = stage("accel = true", lasting).await;
    let first = kept.get("/x").await;
    assert_eq!(field(&first, "cache-control"), "no-cache, no-store", "clients are told the same");
    assert!(first.field("x-accel-expires").is_none() && first.field("cdn-cache-control").is_none());
    assert!(is_hit(&kept.get("/x").await));
    let none = stage("accel = true", "X-Accel-Expires: 0\r\nCache-Control: max-age=300\r\n").await;
    none.get("/x").await;
    assert!(!is_hit(&none.get("/x").await));
    let cookie = "X-Accel-Expires: 300\r\nSet-Cookie: a=1\r\n";
    let personal = stage("accel = true", cookie).await;
    personal.get("/x").await;
    assert!(!is_hit(&personal.get("/x").await), "a cookie is still somebody's");
}
