//! Tests of resolving scripts, over a tree that is a list.

use proptest::prelude::*;

use super::*;

/// Paths of files; their directories, and some empty ones, exist, too.
struct List(&'static [&'static str]);

impl Tree for List {
    fn kind(&self, path: &[u8]) -> Kind {
        let path = std::str::from_utf8(path).expect("tests use ASCII");
        let below = |file: &str| file.strip_prefix(path).is_some_and(|r| r.starts_with('/'));
        match self.0.iter().find(|file| file.trim_end_matches('@') == path) {
            Some(file) if file.ends_with('@') => Kind::Outside,
            Some(_) => Kind::File,
            None if path == "/" || self.0.iter().any(|file| below(file)) => Kind::Directory,
            None => Kind::Nothing,
        }
    }
}

const SITE: List = List(&[
    "/index.php",
    "/logo.png",
    "/page.php",
    "/readme/index.html",
    "/wp-admin/index.php",
    "/wp-admin/post.php",
    "/uploads/x.jpg",
    "/uploads/shell.php",
    "/sites/a/files/evil.php",
    "/sites/a/files/index.php",
    "/empty/.keep",
    "/odd.php/real.php",
    "/.env",
    "/.git/hook.php",
    "/.well-known/acme.php",
    "/.well-known/.hidden.php",
    "/link.php@",
    "/link.png@",
]);

fn resolved(rules: &ScriptRules, path: &str) -> String {
    match rules.resolve(path.as_bytes(), &SITE) {
        ScriptTarget::Script { name, path_info } => {
            format!("{}|{}", String::from_utf8_lossy(&name), String::from_utf8_lossy(&path_info))
        }
        ScriptTarget::File(name) => format!("file {}", String::from_utf8_lossy(&name)),
        ScriptTarget::AddSlash => "slash".to_owned(),
        ScriptTarget::Status(status) => status.code().to_string(),
    }
}

#[test]
fn files_come_before_directories_and_these_before_the_front_controller() {
    let rules = ScriptRules::default();
    for (path, expected) in [
        ("/", "/index.php|"),
        ("/index.php", "/index.php|"),
        ("/page.php", "/page.php|"),
        ("/page.php/a/b.html", "/page.php|/a/b.html"),
        ("/page.php/", "/page.php|/"),
        ("/page.php/other.php", "/page.php|/other.php"),
        ("/2026/a-post", "/index.php|"),
        ("/2026/a-post/", "/index.php|"),
        ("/logo.png", "file /logo.png"),
        ("/logo.png/x", "/index.php|"),
        ("/missing.png", "/index.php|"),
        ("/wp-admin/", "/wp-admin/index.php|"),
        ("/wp-admin", "slash"),
        ("/readme/", "file /readme/index.html"),
        ("/readme", "slash"),
        ("/empty/", "/index.php|"),
        ("/odd.php/real.php", "/odd.php/real.php|"),
        ("/odd.php/", "/index.php|"),
    ] {
        assert_eq!(resolved(&rules, path), expected, "{path}");
    }
}

#[test]
fn a_script_that_is_not_there_is_nobodys_path_info() {
    let rules = ScriptRules::default();
    for path in [
        "/missing.php",
        "/missing.php/x",
        "/uploads/x.jpg/y.php",
        "/uploads/x.jpg/.php",
        "/logo.png/.php",
        "/wp-admin/missing.php",
        "/odd.php/missing.php",
        "/x.php/logo.png",
    ] {
        let expected = if path.contains("/.") { "403" } else { "404" };
        assert_eq!(resolved(&rules, path), expected, "{path}");
    }
}

#[test]
fn dotfiles_are_refused_but_not_the_well_known() {
    let rules = ScriptRules::default();
    for path in ["/.env", "/.git/hook.php", "/.git/", "/a/.x/b", "/.well-known/.hidden.php"] {
        assert_eq!(resolved(&rules, path), "403", "{path}");
    }
    assert_eq!(resolved(&rules, "/.well-known/acme.php"), "/.well-known/acme.php|");
    assert_eq!(resolved(&rules, "/.well-known/nothing"), "/index.php|");
    assert_eq!(resolved(&rules, "/.well-knownish"), "403");
}

#[test]
fn links_out_of_the_root_are_refused() {
    let rules = ScriptRules::default();
    for path in ["/link.php", "/link.php/x", "/link.png"] {
        assert_eq!(resolved(&rules, path), "403", "{path}");
    }
}

#[test]
fn nothing_runs_below_a_barred_directory() {
    let barred = vec!["/uploads/".to_owned(), "sites/*/files".to_owned()];
    let rules = ScriptRules { barred, ..ScriptRules::default() };
    let cased = ScriptRules { barred: vec!["/**/Uploads".to_owned()], ..ScriptRules::default() };
    assert_eq!(resolved(&cased, "/uploads/shell.php/x"), "403");
    for path in
        ["/uploads/shell.php", "/uploads/shell.php/x", "/sites/a/files/evil.php", "/sites/a/files/"]
    {
        assert_eq!(resolved(&rules, path), "403", "{path}");
    }
    assert_eq!(resolved(&rules, "/uploads/x.jpg"), "file /uploads/x.jpg");
    assert_eq!(resolved(&rules, "/wp-admin/post.php"), "/wp-admin/post.php|");
    assert_eq!(resolved(&ScriptRules::default(), "/uploads/shell.php"), "/uploads/shell.php|");
}

#[test]
fn stars_stand_for_segments() {
    for (name, directory, below) in [
        ("/uploads/x.php", "/uploads", true),
        ("/uploads", "/uploads", false),
        ("/uploadsx/x.php", "/uploads", false),
        ("//blog//uploads//x.php", "/blog/uploads/", true),
        ("/blog/uploads/2026/x.php", "/**/uploads", true),
        ("/UpLoads/x.php", "/**/uploads", true),
        ("/a/b/c/uploads/d/uploads/x", "/**/uploads/x", false),
        ("/a/b/c/uploads/d/uploads/x", "/**/uploads", true),
        ("/a/sites/x/files/y.php", "/**/sites/*/files", true),
        ("/sites/files/y.php", "/**/sites/*/files", false),
        ("/a/x.php", "/*", true),
        ("/x.php", "/*", false),
        ("/x.php", "/**", true),
        ("/a/b/c/d/x.php", "/a/**/d", true),
        ("/a/d/x.php", "/a/**/d", true),
    ] {
        assert_eq!(is_below(name.as_bytes(), directory), below, "{name} {directory}");
    }
}

#[test]
fn what_is_tried_is_what_is_said() {
    let gone = Status::new(410).expect("a status");
    for (tries, path, expected) in [
        (vec![TryFilesEntry::Path], "/2026/a-post", "404"),
        (vec![TryFilesEntry::Path, TryFilesEntry::Status(gone)], "/2026/a-post", "410"),
        (vec![TryFilesEntry::Directory], "/page.php", "404"),
        (vec![TryFilesEntry::Front("/app.php".into())], "/page.php", "/app.php|"),
        (vec![TryFilesEntry::Front("/app.php".into())], "/.env", "403"),
        (vec![], "/", "404"),
    ] {
        let rules = ScriptRules { tries, ..ScriptRules::default() };
        assert_eq!(resolved(&rules, path), expected, "{path}");
    }
}

#[test]
fn only_names_with_a_scripts_ending_run() {
    let rules = ScriptRules { suffixes: vec![".phtml".into()], ..ScriptRules::default() };
    assert_eq!(resolved(&rules, "/page.php"), "file /page.php");
}

proptest! {
    /// For any request, only existing scripts and the front controller can run.
    #[test]
    fn only_what_is_there_runs(
        path in "(/(index\\.php|uploads|x\\.jpg|sites|a|files|evil\\.php|shell\\.php|\\.git|\
                 hook\\.php|link\\.php|page\\.php|no\\.php|\\.well-known|acme\\.php)){1,5}/?",
    ) {
        let barred = vec!["/uploads".to_owned(), "/sites/*/files".to_owned()];
        let rules = ScriptRules { barred, ..ScriptRules::default() };
        let target = rules.resolve(path.as_bytes(), &SITE);
        if let ScriptTarget::Script { name, path_info } = target {
            let allowed: [&[u8]; 5] = [
                b"/index.php", b"/page.php", b"/wp-admin/index.php", b"/wp-admin/post.php",
                b"/.well-known/acme.php",
            ];
            prop_assert!(allowed.contains(&&name[..]));
            prop_assert!(path_info.is_empty() || path_info.starts_with(b"/"));
        }
    }
}

/// A root that this process has no permission to look into.
struct Shut;

impl Tree for Shut {
    fn kind(&self, _: &[u8]) -> Kind {
        Kind::Unseen
    }
}

#[test]
fn what_may_not_be_looked_at_is_for_the_application_to_find_and_no_file_becomes_a_script() {
    let rules = ScriptRules { barred: vec!["/uploads".to_owned()], ..ScriptRules::default() };
    let script = |name: &str, rest: &str| {
        let (name, path_info) = (name.as_bytes().to_vec(), rest.as_bytes().to_vec());
        ScriptTarget::Script { name, path_info }
    };
    for (path, expected) in [
        ("/wp-login.php", script("/wp-login.php", "")),
        ("/remote.php/dav/film.mp4", script("/remote.php", "/dav/film.mp4")),
        ("/a/b/x.php", script("/a/b/x.php", "")),
        ("/uploads/x.php", status(403)),
        ("/media/x.jpg/y.php", status(404)),
        ("/media/v1.2/y.php/z", status(404)),
        ("/style.css", script("/index.php", "")),
        ("/wp-admin/", script("/index.php", "")),
    ] {
        assert_eq!(rules.resolve(path.as_bytes(), &Shut), expected, "{path}");
    }
}
