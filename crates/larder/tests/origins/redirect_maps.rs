//! Tests of `redirect = { map = ... }`: the redirects of a file, before the cache and the origin.

use crate::support;

use serde_json::json;
use support::console;
use support::explain::{explain, fact, step};
use support::folder::Folder;
use support::{Setup, Stage, is_hit};
use testkit::origin::Script;

/// A stage whose site has the redirects of `text`, in a file of `folder`, and further keys.
async fn stage(folder: &Folder, text: &str, more: &str) -> Stage {
    folder.file("redirects.txt", text);
    let site = format!("redirect = {{ map = \"{}\", status = 301 }}\n{more}", path(folder));
    let stage = Setup { site: &site, ..Setup::default() }.start().await;
    stage.origin.otherwise(Script::cacheable("page"));
    stage
}

fn path(folder: &Folder) -> String {
    folder.path().join("redirects.txt").display().to_string()
}

/// The status of a response, and its Location.
async fn answer(stage: &Stage, target: &str) -> (u16, String) {
    let reply = stage.get(target).await;
    (reply.status, reply.field("location").unwrap_or_default())
}

fn told(status: u16, location: &str) -> (u16, String) {
    (status, location.to_owned())
}

#[tokio::test]
async fn a_line_redirects_its_path_and_other_paths_go_on() {
    let folder = Folder::new();
    let text =
        "# moved\n/old /new\n/old?id=7 /seven\n/gone https://b.test/x 308\n/caf\u{e9} /bar\n";
    let stage = stage(&folder, text, "").await;
    for (target, status, location) in [
        ("/old", 301, "/new"),
        ("/old?a=b&utm_source=c", 301, "/new?a=b&utm_source=c"),
        ("/old?id=7", 301, "/seven"),
        ("/gone", 308, "https://b.test/x"),
        ("/caf%c3%a9", 301, "/bar"),
        ("/new", 200, ""),
        ("/old/", 200, ""),
    ] {
        assert_eq!(answer(&stage, target).await, told(status, location), "{target}");
    }
    assert!(is_hit(&stage.get("/new").await));
    assert_eq!(stage.origin.seen("/old"), 0);
    let posted = stage.ask("POST", "/old", "Content-Length: 0\r\n").await;
    assert_eq!((posted.status, stage.origin.seen("/old")), (301, 0));
}

#[tokio::test]
async fn a_file_of_many_lines_is_one_lookup_for_each_of_them() {
    let folder = Folder::new();
    let line = |n: usize| format!("/products/{n} /shop/{}\n", n + 1);
    let stage = stage(&folder, &(0..20_000).map(line).collect::<String>(), "").await;
    for n in [0, 9_999, 19_999] {
        let expected = told(301, &format!("/shop/{}", n + 1));
        assert_eq!(answer(&stage, &format!("/products/{n}")).await, expected);
    }
    assert_eq!(stage.get("/products/20000").await.status, 200);
}

#[tokio::test]
async fn nothing_that_a_client_sends_becomes_a_field_or_a_host() {
    let folder = Folder::new();
    let stage = stage(&folder, "/old /new\n/away https://b.test\n", "").await;
    for (target, location) in [
        ("/old?%0d%0aSet-Cookie:%20a=b", "/new?%0d%0aSet-Cookie:%20a=b"),
        ("/away?@evil.test/", "https://b.test?@evil.test/"),
        ("/old?//evil.test", "/new?//evil.test"),
    ] {
        let reply = stage.get(target).await;
        assert_eq!(reply.field("location").as_deref(), Some(location));
        assert_eq!((reply.status, reply.field("set-cookie")), (301, None));
    }
}

#[tokio::test]
async fn routes_inherit_the_redirects_and_may_drop_or_complete_them() {
    let folder = Folder::new();
    let text = "/a/old /a/new\n/b/old /b/new\n/c/old /c/new\n/d/old /d/new\n";
    let routes = "[[site.route]]\npath = \"/a/*\"\ncache = false\n\
                  [[site.route]]\npath = \"/b/*\"\nredirect = false\n\
                  [[site.route]]\npath = \"/c/*\"\nrespond = { status = 410 }\n\
                  [[site.route]]\npath = \"/d/*\"\n\
                  redirect = { map = \"MAP\", to = \"https://b.test$path\", status = 308 }\n";
    let stage = stage(&folder, text, &routes.replace("MAP", &path(&folder))).await;
    for (target, status, location) in [
        ("/a/old", 301, "/a/new"),
        ("/a/other", 200, ""),
        ("/b/old", 200, ""),
        ("/c/old", 301, "/c/new"),
        ("/c/other", 410, ""),
        ("/d/old", 308, "/d/new"),
        ("/d/other", 308, "https://b.test/d/other"),
    ] {
        assert_eq!(answer(&stage, target).await, told(status, location), "{target}");
    }
}

#[tokio::test]
async fn a_reload_reads_the_file_anew_and_a_bad_file_changes_nothing() {
    let folder = Folder::new();
    let stage = stage(&folder, "/old /new\n", "").await;
    assert_eq!(answer(&stage, "/old").await, told(301, "/new"));
    folder.file("redirects.txt", "/old /newer\n");
    let (done, _, said) = console::run(&stage.daemon, &["reload"]).await;
    assert!(done, "{said}");
    assert_eq!(answer(&stage, "/old").await, told(301, "/newer"));
    folder.file("redirects.txt", "/a /b\n\n/old //evil.test/\n");
    let (done, _, said) = console::run(&stage.daemon, &["reload"]).await;
    assert!(!done && said.contains("redirects.txt: line 3: a new URL that begins"), "{said}");
    assert_eq!(answer(&stage, "/old").await, told(301, "/newer"));
}

#[tokio::test]
async fn explain_names_the_line() {
    let folder = Folder::new();
    let stage = stage(&folder, "# moved\n/old /new 302\n", "").await;
    let question = |path: &str| json!({ "url": format!("http://a.test{path}") });
    let found = explain(&stage.daemon, &question("/old?a=b")).await;
    let answer = step(&found, "answer");
    let why = format!("line 2 of {} answers with a redirect", path(&folder));
    assert_eq!(answer["why"], why);
    assert_eq!(fact(answer, "redirect"), "302 to /new?a=b");
    let missed = explain(&stage.daemon, &question("/new")).await;
    let why = format!("no line of {} is for this URL: there is no redirect", path(&folder));
    assert_eq!(step(&missed, "redirects")["why"], why);
}

/// The output of `larder check` with these redirects.
fn check(text: &str, limits: &str) -> (bool, String) {
    let folder = Folder::new();
    folder.file("redirects.txt", text);
    let file = format!(
        "[limits]\n{limits}\n[[site]]\nhost = \"a.test\"\norigin = \"http://127.0.0.1:1\"\n\
         redirect = {{ map = \"{}\" }}\n",
        path(&folder)
    );
    folder.file("larder.toml", &file);
    let file = folder.path().join("larder.toml").display().to_string();
    let binary = testkit::larder::binary().expect("the binary");
    let output = std::process::Command::new(binary).args(["check", &file]).output();
    let output = output.expect("it runs");
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn the_check_reads_the_file() {
    for (text, limits, good, said) in [
        ("/a /b\n", "", true, ""),
        ("/a /b\n/a /b\n", "", true, "redirects.txt: line 2 says again what line 1 says"),
        ("# none\n", "", true, "redirects.txt: there are no redirects"),
        ("/a /b\n/a /c\n", "", false, "redirects.txt: line 2: line 1 has another target"),
        ("/x /y\n/a /a\n", "", false, "redirects.txt: line 2: the redirect leads to itself"),
        ("/a /b\n/b http://a.test/a\n", "", false, "line 1: a loop"),
        ("/a /b 200\n", "", false, "redirects.txt: line 1: a redirect's status is 301"),
        (
            "/a /b\n",
            "redirect_map_bytes = \"4B\"",
            false,
            "longer than 4B (limit: redirect_map_bytes)",
        ),
    ] {
        let (is_good, output) = check(text, limits);
        assert_eq!(is_good, good, "{text}: {output}");
        assert!(output.contains(said), "{text}: {output}");
    }
}
