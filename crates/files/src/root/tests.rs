//! Tests of lookups: files, directories, links, precompressed forms, and paths that must not leave
//! the root.

use std::fs;
use std::path::PathBuf;

use message::HeaderId;
use message::path::normal_form;
use proptest::prelude::*;

use super::*;
use crate::config::{CacheRule, Coding, Selector};
use crate::folder::Folder;
use crate::hidden_names::HiddenNames;

fn config(folder: &Folder) -> Config {
    Config::new(folder.path("root"))
}

/// The result for `path`: a file's content, or the kind of result.
fn seen(config: &Config, path: &str) -> String {
    let root = Root::new(config.clone());
    match root.look(path.as_bytes(), Depth::Full).expect("it may take its time") {
        PathLookup::Page(page) => {
            let bytes = page.plain.read(0..page.plain.length()).expect("it can be read");
            String::from_utf8(bytes).expect("text")
        }
        PathLookup::Slash => "(slash)".to_owned(),
        PathLookup::Forbidden => "(forbidden)".to_owned(),
        PathLookup::Missing => "(missing)".to_owned(),
        PathLookup::Exhausted => "(exhausted)".to_owned(),
    }
}

#[test]
fn paths_lead_to_files_directories_to_their_index() {
    let folder = Folder::new("paths");
    folder.file("root/a.css", "css");
    folder.file("root/index.html", "home");
    folder.file("root/docs/index.html", "docs");
    folder.file("root/bare/x.txt", "x");
    folder.file("root/a b/\u{e9}.txt", "odd");
    let config = config(&folder);
    for (path, expected) in [
        ("/a.css", "css"),
        ("/", "home"),
        ("/docs/", "docs"),
        ("/docs/index.html", "docs"),
        ("/docs", "(slash)"),
        ("/bare", "(slash)"),
        ("/bare/", "(forbidden)"),
        ("/a.css/", "(missing)"),
        ("/a.css/x", "(missing)"),
        ("/none", "(missing)"),
        ("/none/", "(missing)"),
        ("/A.CSS", "(missing)"),
        ("/a b/\u{e9}.txt", "odd"),
    ] {
        assert_eq!(seen(&config, path), expected, "{path}");
    }
    let files = Config { directories: false, ..config };
    for (path, expected) in
        [("/a.css", "css"), ("/", "(missing)"), ("/docs", "(missing)"), ("/docs/", "(missing)")]
    {
        assert_eq!(seen(&files, path), expected, "{path}, files alone");
    }
}

#[test]
fn a_prefix_is_taken_off_and_never_more() {
    let folder = Folder::new("prefix");
    folder.file("root/a.css", "css");
    folder.file("root-old/b.css", "old");
    let config = Config { strip: "/static".to_owned(), ..config(&folder) };
    for (path, expected) in [
        ("/static/a.css", "css"),
        ("/static/", "(forbidden)"),
        ("/a.css", "(missing)"),
        ("/static", "(missing)"),
        ("/static-old/b.css", "(missing)"),
        ("/static../root-old/b.css", "(missing)"),
        ("/static/../root-old/b.css", "(missing)"),
        ("/static/static/a.css", "(missing)"),
    ] {
        assert_eq!(seen(&config, path), expected, "{path}");
    }
}

#[test]
fn links_lead_nowhere_but_where_they_may() {
    let folder = Folder::new("links");
    folder.file("root/in/a.txt", "a");
    folder.file("root/code.php", "source");
    folder.file("root/.env", "secret");
    folder.file("shared/b.txt", "b");
    folder.file("shared/.env", "secret");
    folder.file("outside/c.txt", "c");
    folder.link("in", "root/to-in");
    folder.link("in/a.txt", "root/a-link.txt");
    folder.link("../shared", "root/to-shared");
    folder.link("../outside", "root/to-outside");
    folder.link("../outside/c.txt", "root/c.txt");
    folder.link("code.php", "root/code.txt");
    folder.link(".env", "root/env.txt");
    folder.link("loop", "root/loop");
    folder.link("/etc/passwd", "root/passwd.txt");
    folder.link("/proc/self/root/etc/passwd", "root/magic.txt");
    folder.link("root", "current");
    let config = Config { linked: vec![folder.path("shared")], ..config(&folder) };
    for (path, expected) in [
        ("/to-in/a.txt", "a"),
        ("/a-link.txt", "a"),
        ("/to-shared/b.txt", "b"),
        ("/to-shared/.env", "(missing)"),
        ("/to-outside/c.txt", "(forbidden)"),
        ("/to-outside", "(forbidden)"),
        ("/c.txt", "(forbidden)"),
        ("/code.txt", "(missing)"),
        ("/env.txt", "(missing)"),
        ("/loop", "(missing)"),
        ("/passwd.txt", "(forbidden)"),
        ("/magic.txt", "(forbidden)"),
    ] {
        assert_eq!(seen(&config, path), expected, "{path}");
    }
    // The root itself may be a link: deployments change it.
    let current = Config { root: folder.path("current"), ..config };
    assert_eq!(seen(&current, "/in/a.txt"), "a");
    assert_eq!(seen(&current, "/to-in/a.txt"), "a");
}

#[test]
fn what_is_no_regular_file_is_not_there() {
    let folder = Folder::new("kinds");
    folder.file("root/a", "a");
    folder.fifo("root/pipe");
    let _socket = std::os::unix::net::UnixListener::bind(folder.path("root/sock")).expect("a name");
    let config = config(&folder);
    assert_eq!(seen(&config, "/pipe"), "(missing)");
    assert_eq!(seen(&config, "/sock"), "(missing)");
    let devices = Config { root: PathBuf::from("/dev"), ..config };
    for device in ["/zero", "/null", "/tty", "/random"] {
        assert_eq!(seen(&devices, device), "(missing)", "{device}");
    }
}

#[test]
fn hidden_names_are_not_there_whatever_they_are() {
    let folder = Folder::new("hidden");
    for name in ["a.php", "a.php~", ".env", "x.sql", "own.secret", "dir.php/a.css", ".git/config"] {
        folder.file(&format!("root/{name}"), "secret");
    }
    folder.file("root/.well-known/security.txt", "contact");
    folder.file("root/sub/index.php", "source");
    let mut config = config(&folder);
    config.hide.add("*.secret").expect("a pattern");
    config.index = vec!["index.php".to_owned()];
    for path in
        ["/a.php", "/a.php~", "/.env", "/x.sql", "/own.secret", "/dir.php/a.css", "/.git/config"]
    {
        assert_eq!(seen(&config, path), "(missing)", "{path}");
    }
    assert_eq!(seen(&config, "/.well-known/security.txt"), "contact");
    assert_eq!(seen(&config, "/sub/"), "(forbidden)", "an index may be hidden too");
    let shown = Config { hide: HiddenNames::default(), ..config };
    assert_eq!(seen(&shown, "/a.php"), "secret");
    assert_eq!(seen(&shown, "/.env"), "(missing)", "names with a dot, always");
}

fn page(config: &Config, path: &str) -> Arc<FileVariants> {
    match Root::new(config.clone()).look(path.as_bytes(), Depth::Full) {
        Ok(PathLookup::Page(page)) => page,
        other => panic!("{path}: {other:?}"),
    }
}

fn value(opened: &OpenFile, id: HeaderId) -> &str {
    opened.head().value(id).map_or("", |value| std::str::from_utf8(value).expect("text"))
}

#[test]
fn neighbours_stand_for_a_file_where_the_client_takes_them() {
    let folder = Folder::new("coded");
    for (name, text) in
        [("a.css", "plain"), ("a.css.br", "brotli"), ("a.css.gz", "gzip"), ("b.css", "alone")]
    {
        folder.file(&format!("root/{name}"), text);
    }
    folder.file("root/p.png", "png");
    folder.file("root/p.png.gz", "gzip");
    let mut config = config(&folder);
    let all = page(&config, "/a.css");
    let off = all.form(Some(Coding::Br));
    assert_eq!(
        (value(off, HeaderId::Vary), off.length()),
        ("", 5),
        "no precompressed form is configured"
    );
    config.precompressed = Coding::ALL.map(PrecompressedFile::from).into();
    let all = page(&config, "/a.css");
    assert_eq!(all.codings().collect::<Vec<_>>(), [Coding::Br, Coding::Gzip]);
    let (br, gzip) = (all.form(Some(Coding::Br)), all.form(Some(Coding::Gzip)));
    let plain = all.form(None);
    assert_eq!(value(br, HeaderId::ContentEncoding), "br");
    assert_eq!(value(gzip, HeaderId::ContentEncoding), "gzip");
    assert_eq!(value(plain, HeaderId::ContentEncoding), "");
    for one in [br, gzip, plain] {
        assert_eq!(value(one, HeaderId::Vary), "Accept-Encoding");
        assert_eq!(value(one, HeaderId::ContentType), "text/css");
    }
    assert!(br.etag() != gzip.etag() && gzip.etag() != plain.etag());
    assert_eq!(value(&page(&config, "/b.css").plain, HeaderId::Vary), "");
    assert_eq!(value(&page(&config, "/p.png").plain, HeaderId::Vary), "", "nothing to gain");
    // A file that was changed without its precompressed forms is not served in an old form.
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    let file = fs::File::options().write(true).open(folder.path("root/a.css")).expect("a file");
    file.set_modified(later).expect("a date is set");
    let changed = page(&config, "/a.css");
    assert_eq!(value(changed.form(Some(Coding::Br)), HeaderId::ContentEncoding), "");
    assert_eq!(value(&changed.plain, HeaderId::Vary), "Accept-Encoding");
}

#[test]
fn cache_control_is_by_type_or_name_and_the_first_that_fits() {
    let folder = Folder::new("rules");
    for name in ["a.css", "b.png", "c.html", "app.hash.js"] {
        folder.file(&format!("root/{name}"), "x");
    }
    let rule = |files: &str, value: &str| CacheRule {
        files: Selector::parse(files).expect("a selector"),
        value: value.to_owned(),
    };
    let config = Config {
        cache_control: vec![
            rule("*.hash.*", "immutable"),
            rule("image/*", "max-age=9"),
            rule("text/html", "no-cache"),
            rule("*", "max-age=1"),
        ],
        ..config(&folder)
    };
    for (path, expected) in [
        ("/a.css", "max-age=1"),
        ("/b.png", "max-age=9"),
        ("/c.html", "no-cache"),
        ("/app.hash.js", "immutable"),
    ] {
        assert_eq!(value(&page(&config, path).plain, HeaderId::CacheControl), expected, "{path}");
    }
}

#[test]
fn paths_of_pages_are_told_from_those_of_files_by_their_end() {
    let root = Root::new(Config::new(PathBuf::from("/")));
    let scripts = [".php".to_owned()];
    for (path, expected) in [
        ("/a.css", true),
        ("/a/b.c/d.js", true),
        ("/", false),
        ("/about", false),
        ("/about/", false),
        ("/v1.2/about", false),
        ("/index.php", false),
        ("/.env", false),
        ("/a/.x.css", false),
    ] {
        assert_eq!(root.may_be_file(path.as_bytes(), &scripts), expected, "{path}");
    }
}

proptest! {
    /// For any request path, only the one file below the root is ever read, none that is outside,
    /// hidden or behind a link out.
    #[test]
    fn no_spelling_leads_out(path in "/(static|[a./%\\\\0]|%2e|%2F|%5c|%00|\\.\\.|etc|secret|out|pw){0,9}") {
        let folder = Folder::new("spelling");
        folder.file("root/a", "inside");
        folder.file("secret", "outside");
        folder.link("../secret", "root/pw");
        folder.link("..", "root/out");
        let mut normal = Vec::new();
        let path = match normal_form(path.as_bytes(), &mut normal) {
            Ok(true) => normal,
            Ok(false) => path.into_bytes(),
            Err(_) => return Ok(()),
        };
        for strip in ["", "/static"] {
            let config = Config { strip: strip.to_owned(), ..config(&folder) };
            if let Ok(PathLookup::Page(page)) = Root::new(config).look(&path, Depth::Full) {
                let bytes = page.plain.read(0..page.plain.length()).expect("it can be read");
                prop_assert_eq!(bytes, b"inside");
            }
        }
    }

    /// As above, without normalising the path first.
    #[test]
    fn raw_paths_lead_nowhere_else_either(path in "/?([a./]|\\.\\./|out/|pw|secret|\u{0}){0,9}") {
        let folder = Folder::new("raw");
        folder.file("root/a", "inside");
        folder.file("secret", "outside");
        folder.link("../secret", "root/pw");
        folder.link("..", "root/out");
        let root = Root::new(config(&folder));
        if let Ok(PathLookup::Page(page)) = root.look(path.as_bytes(), Depth::Full) {
            let bytes = page.plain.read(0..page.plain.length()).expect("it can be read");
            prop_assert_eq!(bytes, b"inside");
        }
    }
}
