//! Tests of sites and routes of files: which are served, which never are, and in which form.

use crate::support;

use std::io::Read as _;
use std::os::unix::net::UnixListener;

use flate2::read::MultiGzDecoder;
use support::folder::Folder;
use support::{PATIENCE, eventually, pattern, whole};
use testkit::client::{RawClient, WriteSplit, request};
use testkit::larder::Daemon;
use testkit::reply::{Ending, Reply};

struct Stage {
    daemon: Daemon,
    root: Folder,
}

impl Stage {
    /// A site of the files in `root/www`, with `more` in its table.
    fn start(root: Folder, more: &str) -> Self {
        let www = root.path().join("www").display().to_string();
        Self::with(root, &format!("files = {{ root = \"{www}\" }}\n{more}"))
    }

    fn with(root: Folder, site: &str) -> Self {
        let daemon = Daemon::start(&format!(
            "listen = \"127.0.0.1:0\"\nworkers = 1\nx_cache = true\n[[site]]\nhost = \"*\"\n{site}\n"
        ));
        Self { daemon: daemon.expect("larder starts"), root }
    }

    async fn connect(&self) -> RawClient {
        RawClient::connect(self.daemon.addr()).await.expect("a connection").patience(PATIENCE)
    }

    async fn ask(&self, method: &str, target: &str, fields: &str) -> Reply {
        let mut raw = self.connect().await;
        raw.send(&request(method, target, fields), WriteSplit::Whole).await.expect("taken");
        whole(raw.reply(method).await, target)
    }

    async fn get(&self, target: &str) -> Reply {
        self.ask("GET", target, "").await
    }
}

/// A style sheet that is worth compressing.
fn style() -> String {
    (0..300).map(|n| format!(".line-{n} {{ color: #{n:06}; margin: {n}px }}\n")).collect()
}

const GZIP: &str = "Accept-Encoding: gzip\r\n";
const BROWSER: &str = "Accept-Encoding: gzip, deflate, br, zstd\r\n";

/// Requests `target` until it comes in `coding`, and returns the response.
async fn coded(stage: &Stage, (target, fields): (&str, &str), coding: &str) -> Reply {
    let is_coded =
        async || field(&stage.ask("GET", target, fields).await, "content-encoding") == coding;
    eventually(coding, is_coded).await;
    stage.ask("GET", target, fields).await
}

fn gunzipped(reply: &Reply) -> String {
    let mut plain = String::new();
    MultiGzDecoder::new(&reply.body[..]).read_to_string(&mut plain).expect("gzip of text");
    plain
}

fn field(reply: &Reply, name: &str) -> String {
    reply.field(name).unwrap_or_default()
}

#[tokio::test]
async fn a_file_is_served_with_type_and_validators() {
    let root = Folder::new();
    root.file("www/css/site.css", "body{}");
    root.file("www/index.html", "<p>home");
    root.file("www/LICENSE", "free");
    root.file("www/empty.txt", "");
    root.file("www/b\u{fc}ro/a b.txt", "odd");
    let stage = Stage::start(root, "");
    let reply = stage.get("/css/site.css?v=3").await;
    assert_eq!((reply.status, reply.text().as_str()), (200, "body{}"));
    assert_eq!(field(&reply, "content-type"), "text/css");
    assert_eq!(field(&reply, "accept-ranges"), "bytes");
    assert_eq!(field(&reply, "x-cache"), "FILE");
    assert_eq!(reply.ending, Ending::Length);
    assert!(reply.field("cache-status").is_none() && reply.field("vary").is_none());
    for name in ["etag", "last-modified", "date"] {
        assert!(reply.field(name).is_some(), "{name}");
    }
    let head = stage.ask("HEAD", "/css/site.css", "").await;
    assert_eq!((head.status, field(&head, "content-length").as_str()), (200, "6"));
    assert_eq!(field(&head, "etag"), field(&reply, "etag"));
    for (target, text, kind) in [
        ("/", "<p>home", "text/html"),
        ("/LICENSE", "free", "application/octet-stream"),
        ("/empty.txt", "", "text/plain"),
        ("/b%C3%BCro/a%20b.txt", "odd", "text/plain"),
        ("/css/../LICENSE", "free", "application/octet-stream"),
    ] {
        let reply = stage.get(target).await;
        assert_eq!((reply.status, reply.text().as_str()), (200, text), "{target}");
        assert_eq!(field(&reply, "content-type"), kind, "{target}");
    }
    stage.daemon.assert_metric("larder_files_total", 7).await;
}

#[tokio::test]
async fn conditions_and_ranges_hold_for_files() {
    let root = Folder::new();
    root.file("www/a.txt", "0123456789");
    let stage = Stage::start(root, "");
    let first = stage.get("/a.txt").await;
    let (etag, modified) = (field(&first, "etag"), field(&first, "last-modified"));
    let old = "Sun, 06 Nov 1994 08:49:37 GMT";
    for (fields, status, text) in [
        (format!("If-None-Match: {etag}\r\n"), 304, ""),
        (format!("If-None-Match: W/{etag}\r\n"), 304, ""),
        ("If-None-Match: *\r\n".to_owned(), 304, ""),
        ("If-None-Match: \"x\"\r\n".to_owned(), 200, "0123456789"),
        (format!("If-Modified-Since: {modified}\r\n"), 304, ""),
        (format!("If-Modified-Since: {old}\r\n"), 200, "0123456789"),
        (format!("If-Match: {etag}\r\n"), 200, "0123456789"),
        (format!("If-Unmodified-Since: {modified}\r\n"), 200, "0123456789"),
        ("Range: bytes=2-4\r\n".to_owned(), 206, "234"),
        ("Range: bytes=-3\r\n".to_owned(), 206, "789"),
        ("Range: bytes=8-\r\n".to_owned(), 206, "89"),
        ("Range: bytes=x\r\n".to_owned(), 200, "0123456789"),
        (format!("Range: bytes=0-1\r\nIf-Range: {etag}\r\n"), 206, "01"),
        ("Range: bytes=0-1\r\nIf-Range: \"x\"\r\n".to_owned(), 200, "0123456789"),
        (format!("Range: bytes=0-1\r\nIf-None-Match: {etag}\r\n"), 304, ""),
    ] {
        let reply = stage.ask("GET", "/a.txt", &fields).await;
        assert_eq!((reply.status, reply.text().as_str()), (status, text), "{fields}");
        assert_eq!(field(&reply, "etag"), etag, "{fields}");
        assert_eq!(reply.field("content-type").is_none(), status == 304, "{fields}");
    }
    let reply = stage.ask("GET", "/a.txt", "Range: bytes=2-4\r\n").await;
    assert_eq!(field(&reply, "content-range"), "bytes 2-4/10");
    let none = stage.ask("GET", "/a.txt", "Range: bytes=10-\r\n").await;
    assert_eq!((none.status, field(&none, "content-range").as_str()), (416, "bytes */10"));
    for fields in ["If-Match: \"x\"\r\n".to_owned(), format!("If-Unmodified-Since: {old}\r\n")] {
        assert_eq!(stage.ask("GET", "/a.txt", &fields).await.status, 412, "{fields}");
    }
    let several = stage.ask("GET", "/a.txt", "Range: bytes=0-1,8-9\r\n").await;
    assert_eq!(several.status, 206);
    let kind = field(&several, "content-type");
    let boundary = kind.strip_prefix("multipart/byteranges; boundary=").expect("a boundary");
    let part = |range: &str, text: &str| {
        format!(
            "\r\n--{boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes {range}/10\r\n\
             \r\n{text}"
        )
    };
    let expected = format!("{}{}\r\n--{boundary}--\r\n", part("0-1", "01"), part("8-9", "89"));
    assert_eq!(several.text(), expected);
}

#[tokio::test]
async fn other_methods_are_refused_with_what_is_allowed() {
    let root = Folder::new();
    root.file("www/a.txt", "a");
    let stage = Stage::start(root, "");
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "MKCOL"] {
        let reply = stage.ask(method, "/a.txt", "").await;
        assert_eq!((reply.status, field(&reply, "allow").as_str()), (405, "GET, HEAD"), "{method}");
    }
    let mut raw = stage.connect().await;
    let post = [request("POST", "/a.txt", "Content-Length: 5\r\n"), b"12345".to_vec()].concat();
    raw.send(&post, WriteSplit::Whole).await.expect("taken");
    assert_eq!(whole(raw.reply("POST").await, "POST").status, 405);
    assert_eq!(stage.ask("DELETE", "/none", "").await.status, 404);
    assert_eq!(stage.root.path().join("www/a.txt").metadata().expect("still there").len(), 1);
}

#[tokio::test]
async fn directories_have_an_index_or_nothing() {
    let root = Folder::new();
    root.file("www/docs/index.html", "docs");
    root.file("www/bare/a.txt", "a");
    let stage = Stage::start(root, "");
    assert_eq!(stage.get("/docs/").await.text(), "docs");
    for (target, location) in [
        ("/docs", "/docs/"),
        ("/docs?a=b&c", "/docs/?a=b&c"),
        ("//docs", "/docs/"),
        ("/bare", "/bare/"),
        ("//evil.example/../docs", "/evil.example/../docs/"),
        ("/./docs", "/./docs/"),
    ] {
        let reply = stage.get(target).await;
        let got = (reply.status, field(&reply, "location"));
        assert_eq!(got, (301, location.to_owned()), "{target}");
    }
    let bare = stage.get("/bare/").await;
    assert_eq!(bare.status, 403);
    assert!(!bare.text().contains("a.txt"), "no listing");
}

/// Requests that must never get a byte of a file outside the root, a hidden one, or no regular
/// file.
const ATTACKS: &[&str] = &[
    // Out of the root, in every spelling.
    "/../secret.txt",
    "/..",
    "/../",
    "/../../etc/passwd",
    "/a/../../secret.txt",
    "/a/b/../../../secret.txt",
    "/%2e%2e/secret.txt",
    "/%2e%2e%2fsecret.txt",
    "/..%2fsecret.txt",
    "/..%2Fsecret.txt",
    "/.%2e/secret.txt",
    "/%2e./secret.txt",
    "/a/%2e%2e/%2e%2e/secret.txt",
    "/..%5csecret.txt",
    "/..\\secret.txt",
    "/%2e%2e%5csecret.txt",
    "/%252e%252e/secret.txt",
    "/%252e%252e%252fsecret.txt",
    "/..%c0%afsecret.txt",
    "/%c0%ae%c0%ae/secret.txt",
    "/..%e0%80%afsecret.txt",
    "/..;/secret.txt",
    "/..%00/secret.txt",
    "/..%0d/secret.txt",
    "/....//secret.txt",
    "/.../secret.txt",
    "/..../secret.txt",
    "//../secret.txt",
    "///../../secret.txt",
    "/./../secret.txt",
    "/a/./../../secret.txt",
    "/%2f../secret.txt",
    "/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "/static/../../secret.txt",
    "/static..%2fsecret.txt",
    "/static../secret.txt",
    "/static/..%2f..%2fsecret.txt",
    "/static/%2e%2e/%2e%2e/secret.txt",
    "/static%2f..%2f..%2fsecret.txt",
    "/statics/secret.txt",
    "/file:///etc/passwd",
    "/etc/passwd",
    "//etc/passwd",
    "/%2fetc%2fpasswd",
    "/~root/secret.txt",
    "/proc/self/environ",
    "/www/../secret.txt",
    "/C:/secret.txt",
    // Through links.
    "/link.txt",
    "/link-dir/secret.txt",
    "/link-dir/",
    "/link-dir",
    "/abs.txt",
    "/up/secret.txt",
    "/up/www/../secret.txt",
    "/php-link.txt",
    "/env-link.txt",
    "/loop",
    "/loop/secret.txt",
    "/magic/etc/passwd",
    // Hidden.
    "/.env",
    "/.git/config",
    "/.git/",
    "/.git",
    "/.htpasswd",
    "/a/.env",
    "/%2eenv",
    "/.%65nv",
    "/./.env",
    "/a/../.env",
    "/.well-known/.secret",
    "/.well-known/../.env",
    "/index.php",
    "/index.php~",
    "/index.php.bak",
    "/index.php5",
    "/index.phtml",
    "/index.PHP",
    "/index%2ephp",
    "/index.php/",
    "/index.php/x.css",
    "/index.php%20",
    "/index.php.",
    "/index.php%00.css",
    "/index.php?x.css",
    "/index.php;.css",
    "/.index.php.swp",
    "/wp-config.php.save",
    "/dump.sql",
    "/dump.sql.gz",
    "/config.inc",
    "/old.orig",
    "/a.txt~",
    "/server.pem",
    "/archive.phar",
    // No regular file.
    "/socket",
    "/a.txt/",
    "/a.txt/.",
    "/a.txt/..%2fsecret.txt",
    "/a.txt%00",
    "/a.txt%0a",
    "/a.txt/x",
    "/a%",
    "/a%zz",
];

#[tokio::test]
async fn no_path_leads_to_what_is_outside_or_hidden() {
    let root = Folder::new();
    root.file("secret.txt", "SECRET");
    for name in [
        ".env",
        ".git/config",
        ".htpasswd",
        "a/.env",
        ".well-known/.secret",
        "index.php",
        "index.php~",
        "index.php.bak",
        "index.php5",
        "index.phtml",
        "index.PHP",
        ".index.php.swp",
        "wp-config.php.save",
        "dump.sql",
        "dump.sql.gz",
        "config.inc",
        "old.orig",
        "a.txt~",
        "server.pem",
        "archive.phar",
    ] {
        root.file(&format!("www/{name}"), "SECRET");
    }
    root.file("www/a/b/c.txt", "open");
    root.file("www/a.txt", "open");
    root.file("www/.well-known/security.txt", "open");
    root.link("../secret.txt", "www/link.txt");
    root.link("..", "www/link-dir");
    root.link("..", "www/up");
    root.link("index.php", "www/php-link.txt");
    root.link(".env", "www/env-link.txt");
    root.link("loop", "www/loop");
    root.link("/proc/self/root", "www/magic");
    root.link("/etc/passwd", "www/abs.txt");
    let _socket = UnixListener::bind(root.path().join("www/socket")).expect("a name");
    let www = root.path().join("www").display().to_string();
    let site =
        format!("files = \"{www}\"\n[[site.route]]\npath = \"/static/*\"\nfiles = \"{www}\"\n");
    let mut stage = Stage::with(root, &site);
    assert!(ATTACKS.len() > 60);
    for prefix in ["", "/static"] {
        for attack in ATTACKS {
            let target = format!("{prefix}{attack}");
            for method in ["GET", "HEAD", "POST"] {
                let mut raw = stage.connect().await;
                raw.send(&request(method, &target, ""), WriteSplit::Whole).await.expect("taken");
                let reply = whole(raw.reply(method).await, &target);
                let text = reply.text();
                assert!(reply.status >= 300, "{method} {target}: {} {text}", reply.status);
                assert!(!text.contains("SECRET") && !text.contains("root:"), "{target}: {text}");
                assert!(reply.field("etag").is_none(), "{target}");
                let location = field(&reply, "location");
                let leads_away = location.starts_with("//") || location.contains("://");
                assert!(!leads_away, "{target}: {location}");
            }
        }
    }
    for target in ["/a.txt", "/static/a.txt", "/a/b/c.txt", "/.well-known/security.txt"] {
        assert_eq!(stage.get(target).await.text(), "open", "{target}");
    }
    assert!(stage.daemon.alive());
    // Hidden and missing files get equal responses.
    let (hidden, missing) = (stage.get("/dump.sql").await, stage.get("/no.such").await);
    assert_eq!((hidden.status, hidden.body), (missing.status, missing.body));
}

#[tokio::test]
async fn a_route_takes_its_prefix_off_and_others_look_for_the_whole_path() {
    let root = Folder::new();
    root.file("assets/x.css", "alias");
    root.file("assets/sub/index.html", "sub");
    root.file("www/whole/x.css", "root");
    root.file("www/pics/p.svg", "suffix");
    let path = |name: &str| root.path().join(name).display().to_string();
    let (assets, www) = (path("assets"), path("www"));
    let site = format!(
        "respond = {{ body = \"the rest\" }}\n\
         [[site.route]]\npath = \"/static/*\"\nfiles = \"{assets}\"\n\
         [[site.route]]\npath = \"/whole/*\"\nfiles = {{ root = \"{www}\" }}\n\
         [[site.route]]\npath = \"*.svg\"\nfiles = \"{www}\"\n"
    );
    let stage = Stage::with(root, &site);
    for (target, status, text) in [
        ("/static/x.css", 200, "alias"),
        ("/static/sub/", 200, "sub"),
        ("/static/none", 404, ""),
        ("/static/", 403, ""),
        ("/whole/x.css", 200, "root"),
        ("/pics/p.svg", 200, "suffix"),
        ("/x.css", 200, "the rest"),
        ("/static", 200, "the rest"),
    ] {
        let reply = stage.get(target).await;
        assert_eq!(reply.status, status, "{target}");
        assert!(text.is_empty() || reply.text() == text, "{target}: {}", reply.text());
    }
    let slash = stage.get("/static/sub?x").await;
    assert_eq!((slash.status, field(&slash, "location").as_str()), (301, "/static/sub/?x"));
}

#[tokio::test]
async fn neighbours_headers_and_types_are_as_settings_say() {
    let root = Folder::new();
    root.file("www/app.js", pattern(1000));
    root.file("www/app.js.br", "brotli");
    root.file("www/app.js.gz", "gzip");
    root.file("www/photo.jpg", "jpg");
    root.file("www/notes", "text");
    let www = root.path().join("www").display().to_string();
    let site = format!(
        "response_headers = {{ set = {{ X-Frame-Options = \"DENY\" }} }}\n[site.files]\n\
         root = \"{www}\"\nprecompressed = [\"br\", \"gzip\"]\ncharset = \"utf-8\"\n\
         types = {{ \"*\" = \"text/plain\" }}\nexpires = \"1h\"\n\
         cache_control = {{ \"image/*\" = \"public, max-age=9\" }}\n"
    );
    let stage = Stage::with(root, &site);
    for (accept, coding, text) in
        [("gzip, br", "br", "brotli"), ("gzip", "gzip", "gzip"), ("br;q=0.1, gzip", "gzip", "gzip")]
    {
        let fields = format!("Accept-Encoding: {accept}\r\n");
        let reply = stage.ask("GET", "/app.js", &fields).await;
        assert_eq!(reply.text(), text, "{accept}");
        assert_eq!(field(&reply, "content-encoding"), coding);
        assert_eq!(field(&reply, "vary"), "Accept-Encoding");
        assert_eq!(field(&reply, "content-type"), "text/javascript; charset=utf-8");
        // A range is of the coded form, and so is its validator.
        let range = format!("{fields}Range: bytes=0-1\r\nIf-Range: {}\r\n", field(&reply, "etag"));
        let part = stage.ask("GET", "/app.js", &range).await;
        assert_eq!((part.status, part.text().as_str()), (206, &text[..2]));
        let plain = stage.ask("GET", "/app.js", &range.replace(accept, "identity")).await;
        assert_eq!((plain.status, plain.body.len()), (200, 1000), "another representation");
    }
    let plain = stage.get("/app.js").await;
    assert_eq!((plain.body.len(), field(&plain, "vary").as_str()), (1000, "Accept-Encoding"));
    assert_eq!(field(&plain, "cache-control"), "max-age=3600");
    assert_eq!(field(&plain, "x-frame-options"), "DENY");
    let photo = stage.get("/photo.jpg").await;
    assert_eq!(field(&photo, "cache-control"), "public, max-age=9");
    assert_eq!(field(&stage.get("/notes").await, "content-type"), "text/plain; charset=utf-8");
    let same = format!("If-None-Match: {}\r\n", field(&photo, "etag"));
    let known = stage.ask("GET", "/photo.jpg", &same).await;
    assert_eq!(known.status, 304);
    assert_eq!(field(&known, "x-frame-options"), "DENY");
    assert_eq!(field(&known, "cache-control"), "public, max-age=9");
    assert!(known.field("content-type").is_none());
}

#[tokio::test]
async fn a_replaced_file_is_seen_soon_and_a_removed_one_is_gone() {
    let root = Folder::new();
    root.file("www/a.txt", "first");
    let stage = Stage::start(root, "");
    let first = stage.get("/a.txt").await;
    assert_eq!(first.text(), "first");
    stage.root.replace("www/a.txt", "second");
    eventually("the new file", async || stage.get("/a.txt").await.text() == "second").await;
    let second = stage.get("/a.txt").await;
    assert_ne!(field(&second, "etag"), field(&first, "etag"));
    std::fs::remove_file(stage.root.path().join("www/a.txt")).expect("removed");
    eventually("no file", async || stage.get("/a.txt").await.status == 404).await;
    stage.root.file("www/a.txt", "third");
    eventually("a file again", async || stage.get("/a.txt").await.text() == "third").await;
}

#[tokio::test]
async fn answers_come_in_the_order_of_the_requests() {
    let root = Folder::new();
    let large = pattern(300_000);
    root.file("www/large.bin", &large);
    root.file("www/middle.bin", &large[..20_000]);
    root.file("www/small.txt", "small");
    let stage = Stage::start(root, "");
    let order = ["/small.txt", "/large.bin", "/none", "/middle.bin", "/small.txt", "/large.bin"];
    let mut bytes = Vec::new();
    for target in order {
        bytes.extend_from_slice(&request("GET", target, ""));
    }
    let mut raw = stage.connect().await;
    raw.send(&bytes, WriteSplit::Whole).await.expect("taken");
    for target in order {
        let reply = whole(raw.reply("GET").await, target);
        match target {
            "/none" => assert_eq!(reply.status, 404),
            "/small.txt" => assert_eq!(reply.text(), "small"),
            "/middle.bin" => assert!(reply.body == large[..20_000], "{target}"),
            _ => assert!(reply.body == large, "{target}"),
        }
    }
}

#[tokio::test]
async fn files_answer_with_the_table_off_and_with_one_place_in_it() {
    for open_files in [0, 1] {
        let root = Folder::new();
        root.file("www/a.txt", "a");
        root.file("www/b.txt", "b");
        let www = root.path().join("www").display().to_string();
        let stage =
            Stage::with(root, &format!("files = \"{www}\"\n[limits]\nopen_files = {open_files}\n"));
        for _ in 0..3 {
            assert_eq!(stage.get("/a.txt").await.text(), "a");
            assert_eq!(stage.get("/b.txt").await.text(), "b");
            assert_eq!(stage.get("/c.txt").await.status, 404);
        }
    }
}

#[tokio::test]
async fn a_file_is_coded_once_for_those_who_ask_for_that_and_its_form_is_kept() {
    let root = Folder::new();
    let text = style();
    root.file("www/site.css", &text);
    root.file("www/short.css", "body{}");
    root.file("www/photo.png", &text);
    let stage = Stage::start(root, "");
    let none =
        async |name: &str| stage.daemon.assert_metric(&format!("larder_{name}_total"), 0).await;
    let tag = field(&stage.get("/site.css").await, "etag");
    for fields in ["", "Accept-Encoding: identity\r\n", "Accept-Encoding: gzip;q=0\r\n"] {
        for _ in 0..3 {
            let reply = stage.ask("GET", "/site.css", fields).await;
            assert_eq!(
                (field(&reply, "content-encoding").as_str(), reply.text()),
                ("", text.clone())
            );
            assert_eq!(field(&reply, "vary"), "Accept-Encoding", "{fields}");
        }
    }
    none("forms_made").await;
    none("coding_time_us").await;
    let zipped = coded(&stage, ("/site.css", GZIP), "gzip").await;
    assert_eq!(gunzipped(&zipped), text);
    assert_eq!(field(&zipped, "x-cache"), "FILE");
    assert_eq!(field(&zipped, "content-type"), "text/css");
    assert_eq!(field(&zipped, "vary"), "Accept-Encoding");
    assert_eq!(field(&zipped, "content-length"), zipped.body.len().to_string());
    let zipped_tag = field(&zipped, "etag");
    assert_eq!(zipped_tag, format!("{}-gzip\"", tag.trim_end_matches('"')));
    assert!(zipped.field("age").is_none() && zipped.field("via").is_none());
    for _ in 0..3 {
        assert_eq!(stage.ask("GET", "/site.css?v=2", GZIP).await.body, zipped.body);
    }
    stage.daemon.assert_metric("larder_forms_made_total", 1).await;
    none("bodies_decoded").await;
    assert_eq!(field(&stage.get("/site.css").await, "etag"), tag);
    // A frequently requested file is compressed again, and better.
    let brotli = coded(&stage, ("/site.css", BROWSER), "br").await;
    assert!(brotli.body.len() < zipped.body.len() && field(&brotli, "etag").starts_with("W/"));
    for target in ["/short.css", "/photo.png"] {
        for _ in 0..5 {
            let reply = stage.ask("GET", target, BROWSER).await;
            assert!(reply.field("content-encoding").is_none() && reply.field("vary").is_none());
        }
    }
}

#[tokio::test]
async fn conditions_and_ranges_are_of_the_form_of_a_file_that_is_sent() {
    let root = Folder::new();
    root.file("www/site.css", style());
    let stage = Stage::start(root, "");
    let plain = stage.get("/site.css").await;
    let zipped = coded(&stage, ("/site.css", GZIP), "gzip").await;
    let (plain_tag, zipped_tag) = (field(&plain, "etag"), field(&zipped, "etag"));
    let head = stage.ask("HEAD", "/site.css", GZIP).await;
    assert_eq!(field(&head, "content-length"), zipped.body.len().to_string());
    assert_eq!(field(&head, "etag"), zipped_tag);
    for tag in [&plain_tag, &zipped_tag] {
        let reply = stage.ask("GET", "/site.css", &format!("{GZIP}If-None-Match: {tag}\r\n")).await;
        assert_eq!((reply.status, &field(&reply, "etag")), (304, tag));
        assert_eq!(field(&reply, "vary"), "Accept-Encoding");
        let reply = stage.ask("GET", "/site.css", &format!("{GZIP}If-Match: {tag}\r\n")).await;
        assert_eq!(reply.status, 200, "{tag}");
    }
    // A client without codings cannot use a 304 of a coded form.
    let fields = format!("Accept-Encoding: identity\r\nIf-None-Match: {zipped_tag}\r\n");
    assert_eq!(stage.ask("GET", "/site.css", &fields).await.body, plain.body);
    let fields = format!("{GZIP}If-Match: \"other\"\r\n");
    assert_eq!(stage.ask("GET", "/site.css", &fields).await.status, 412);
    let fields = format!("{GZIP}Range: bytes=10-19\r\nIf-Range: {zipped_tag}\r\n");
    let part = stage.ask("GET", "/site.css", &fields).await;
    assert_eq!((part.status, &part.body[..]), (206, &zipped.body[10..20]));
    assert_eq!(field(&part, "content-range"), format!("bytes 10-19/{}", zipped.body.len()));
    let fields = format!("{GZIP}Range: bytes=10-19\r\nIf-Range: {plain_tag}\r\n");
    assert_eq!(stage.ask("GET", "/site.css", &fields).await.body, zipped.body);
    let part = stage.ask("GET", "/site.css", "Range: bytes=10-19\r\n").await;
    assert_eq!((part.status, &part.body[..]), (206, &plain.body[10..20]));
}

#[tokio::test]
async fn the_form_of_a_changed_file_is_never_sent() {
    let root = Folder::new();
    root.file("www/site.css", style());
    let stage = Stage::start(root, "[limits]\nfiles_recheck = \"100ms\"\n");
    let old = coded(&stage, ("/site.css", GZIP), "gzip").await;
    let text = style().replace("color", "fill");
    stage.root.file("www/site.css", &text);
    let is_new = async || {
        let reply = stage.ask("GET", "/site.css", GZIP).await;
        match reply.body == old.body {
            true => false,
            false => {
                let is_plain = reply.field("content-encoding").is_none();
                assert_eq!(if is_plain { reply.text() } else { gunzipped(&reply) }, text);
                true
            }
        }
    };
    eventually("the new file", is_new).await;
    assert_eq!(gunzipped(&coded(&stage, ("/site.css", GZIP), "gzip").await), text);
}

#[tokio::test]
async fn files_are_coded_only_where_settings_and_time_allow_it() {
    for more in ["compress = \"off\"", "[limits]\ncoding_time = 0"] {
        let root = Folder::new();
        root.file("www/site.css", style());
        let stage = Stage::start(root, more);
        stage.ask("GET", "/site.css", GZIP).await;
        // By then it would be coded.
        tokio::time::sleep(std::time::Duration::from_secs(4)).await;
        for _ in 0..5 {
            let reply = stage.ask("GET", "/site.css", BROWSER).await;
            assert_eq!((field(&reply, "content-encoding").as_str(), reply.text()), ("", style()));
            assert_eq!(reply.field("vary").is_none(), more.starts_with("compress"), "{more}");
        }
        stage.daemon.assert_metric("larder_forms_made_total", 0).await;
    }
}
