//! Tests of `page_cache`: pages that a plugin of the application wrote to disk are served before
//! the application is asked.

use crate::support;

use support::scripts::Stage;
use support::{eventually, is_hit};

const SUPER: &str = "wp-content/cache/supercache/larder.test";

#[tokio::test]
async fn a_page_of_wp_super_cache_spares_php() {
    let stage = Stage::start("", "page_cache = \"wp-super-cache\"").await;
    stage.root.file(&format!("{SUPER}/index.html"), "<p>home");
    stage.root.file(&format!("{SUPER}/about/index.html"), "<p>about");
    stage.root.file(&format!("{SUPER}/about/index.html.gz"), "zipped");
    for _ in 0..2 {
        let reply = stage.get("/").await;
        assert_eq!((reply.status, reply.text().as_str()), (200, "<p>home"));
        for (name, value) in [
            ("content-type", "text/html; charset=utf-8"),
            ("cache-control", "max-age=3, must-revalidate"),
            ("vary", "Cookie"),
        ] {
            assert_eq!(reply.field(name).as_deref(), Some(value), "{name}");
        }
        assert!(reply.field("last-modified").is_some());
    }
    let zipped = stage.ask("GET", "/about/", "Accept-Encoding: gzip\r\n").await;
    assert_eq!(zipped.text(), "zipped");
    assert_eq!(zipped.field("vary").as_deref(), Some("Accept-Encoding, Cookie"));
    // A tracking parameter changes nothing.
    assert_eq!(stage.get("/about/?utm_source=x").await.text(), "<p>about");
    assert!(stage.app.asked().is_empty(), "PHP was not asked");
}

#[tokio::test]
async fn visitors_without_a_cached_page_get_the_application() {
    let stage =
        Stage::start("", "page_cache = \"wp-super-cache\"\nbypass = { path = \"/admin/*\" }").await;
    for path in ["", "admin/", "shop/"] {
        stage.root.file(&format!("{SUPER}/{path}index.html"), "SECRET page");
    }
    stage.root.file("secret/index.html", "SECRET");
    for (method, target, fields) in [
        ("GET", "/", "Cookie: wordpress_logged_in_x=1\r\n"),
        ("GET", "/", "Authorization: Basic eDp5\r\n"),
        ("POST", "/", "Content-Length: 0\r\n"),
        ("GET", "/admin/", ""),
        ("GET", "/shop/?page=2", ""),
        ("GET", "/shop", ""),
        ("GET", "/none/", ""),
        ("GET", "/x/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/secret/", ""),
        ("GET", "/shop/..%2f..%2f..%2f..%2f..%2fsecret/", ""),
        ("GET", "/shop//", ""),
    ] {
        let text = stage.ask(method, target, fields).await.text();
        assert!(!text.contains("SECRET"), "{method} {target} {fields}: {text}");
    }
    let bare = Stage::start("", "").await;
    bare.root.file(&format!("{SUPER}/index.html"), "SECRET page");
    assert_eq!(bare.get("/").await.text(), "by the application", "off by default");
}

#[tokio::test]
async fn larder_s_own_store_comes_first_and_a_removed_page_is_gone() {
    let stage = Stage::start("", "page_cache = \"wp-rocket\"").await;
    assert_eq!(stage.get("/a/").await.text(), "by the application");
    let page = "wp-content/cache/wp-rocket/larder.test/a/index.html";
    stage.root.file(page, "by the plugin");
    assert!(is_hit(&stage.get("/a/").await));
    let other = "wp-content/cache/wp-rocket/larder.test/b/index.html";
    stage.root.file(other, "by the plugin");
    assert_eq!(stage.get("/b/").await.text(), "by the plugin");
    std::fs::remove_file(stage.root.path().join(other)).expect("removed");
    let gone = async || stage.get("/b/").await.text() == "by the application";
    eventually("the plugin's purge is seen", gone).await;
    stage.root.file("wp-content/cache/wp-rocket/larder.test/c/index.html", "for desks");
    let mobile = stage.ask("GET", "/c/", "User-Agent: x Mobile x\r\n").await;
    assert_eq!(mobile.text(), "by the application");
}

#[tokio::test]
async fn boost_has_pages_by_query() {
    let stage = Stage::start("", "page_cache = \"boost\"").await;
    stage.root.file("cache/normal/larder.test/_.html", "front");
    stage.root.file("cache/normal/larder.test/node/1_page=2.html", "second");
    assert_eq!(stage.get("/").await.text(), "front");
    assert_eq!(stage.get("/node/1?page=2").await.text(), "second");
    assert_eq!(stage.get("/node/1?page=3").await.text(), "by the application");
}
