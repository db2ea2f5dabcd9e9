//! Tests of messages about directories of files.

use insta::assert_snapshot;

use super::said;

fn site(text: &str) -> String {
    said(&format!("[[site]]\nhost = \"*\"\n{text}\n"))
}

#[test]
fn files_are_below_an_absolute_path() {
    assert_snapshot!(site("files = \"www\""), @r#"
    error: `files` is an absolute path
     --> larder.toml:3:9
      |
    3 | files = "www"
      |         ^^^^^
    "#);
}

#[test]
fn files_and_an_origin_do_not_both_answer() {
    assert_snapshot!(site("files = \"/srv\"\norigin = \"http://a\""), @r#"
    error: `files` and `origin` cannot both answer
     --> larder.toml:3:9
      |
    3 | files = "/srv"
      |         ^^^^^^
    4 | origin = "http://a"
      |          ---------- the origin
    "#);
}

#[test]
fn a_directory_for_several_paths_is_ambiguous() {
    let route = "files = \"/srv\"\n[[site.route]]\npath = [\"/a/*\", \"/b/*\"]\nfiles = \"/x\"";
    assert_snapshot!(site(route), @r#"
    error: a directory for several paths
     --> larder.toml:6:9
      |
    6 | files = "/x"
      |         ^^^^
      |
      = help: write `{ root = "/srv" }` to look for whole paths, or a route for each
    "#);
}

#[test]
fn an_alias_needs_a_prefix_that_ends_with_a_slash() {
    for path in ["/static*", "*.css", "/exact", "~ ^/static/"] {
        let route = format!(
            "files = \"/srv\"\n[[site.route]]\npath = \"{path}\"\nfiles = {{ alias = \"/x\" }}"
        );
        let said = site(&route);
        assert!(said.contains("`alias` is for routes of one `/prefix/*`"), "{said}");
    }
    assert_snapshot!(site("files = { alias = \"/srv\" }"), @r#"
    error: `alias` is for routes of one `/prefix/*`
     --> larder.toml:3:19
      |
    3 | files = { alias = "/srv" }
      |                   ^^^^^^
      |
      = help: write `root`, where the whole path is looked for
    "#);
}

#[test]
fn a_root_is_one_directory() {
    assert_snapshot!(site("files = { }"), @r#"
    error: `files` without a directory
     --> larder.toml:3:9
      |
    3 | files = { }
      |         ^^^
      |
      = help: add `root = "/srv/www"`
    "#);
    let both = "files = \"/srv\"\n[[site.route]]\npath = \"/a/*\"\n\
                files = { root = \"/x\", alias = \"/y\" }";
    assert_snapshot!(site(both), @r#"
    error: `root` and `alias` cannot both be the directory
     --> larder.toml:6:32
      |
    6 | files = { root = "/x", alias = "/y" }
      |                  ----          ^^^^
      |                  |
      |                  the other directory
    "#);
}

#[test]
fn every_bad_value_is_shown_where_it_stands() {
    let keys = "[site.files]\nroot = \"/srv\"\nindex = [\"a/b\", \".x\", \"i.html\"]\n\
                hide = [\"default\", \"a/b\"]\n\
                types = { \".css\" = \"text/css\", css = \"text\" }\n\
                charset = \"a b\"\nprecompressed = [\"brotli\"]\n\
                cache_control = { \"a/b/c\" = \"x\" }\nexpires = 10";
    assert_snapshot!(site(keys), @r#"
    error: `a/b` is not the name of a file
     --> larder.toml:5:10
      |
    5 | index = ["a/b", ".x", "i.html"]
      |          ^^^^^

    error: `.x` is not the name of a file
     --> larder.toml:5:17
      |
    5 | index = ["a/b", ".x", "i.html"]
      |                 ^^^^

    error: `hide`: a pattern of one name, such as "*.bak", without slashes
     --> larder.toml:6:20
      |
    6 | hide = ["default", "a/b"]
      |                    ^^^^^

    error: `types`: a suffix is written without its dot: `css`
     --> larder.toml:7:20
      |
    7 | types = { ".css" = "text/css", css = "text" }
      |                    ^^^^^^^^^^

    error: `types`: a type is written as `text/css`
     --> larder.toml:7:38
      |
    7 | types = { ".css" = "text/css", css = "text" }
      |                                      ^^^^^^

    error: `charset`: a charset is one token such as "utf-8"
     --> larder.toml:8:11
      |
    8 | charset = "a b"
      |           ^^^^^

    error: `precompressed` takes `br`, `zstd`, `gzip`, or a list of them, not this string
     --> larder.toml:9:18
      |
    9 | precompressed = ["brotli"]
      |                  ^^^^^^^^

    error: `a/b/c`: write a type ("image/*") or a name ("*.css", "*")
      --> larder.toml:10:19
       |
    10 | cache_control = { "a/b/c" = "x" }
       |                   ^^^^^^^

    error: `expires` takes a duration such as "10s", not an integer
      --> larder.toml:11:11
       |
    11 | expires = 10
       |           ^^
       |
       = help: durations need a unit: ms, s, m, h, d, w or y; perhaps "10s"
    "#);
}

#[test]
fn files_in_front_of_an_origin_need_a_root() {
    let text = "[[origin]]\nname = \"a\"\nservers = \"http://a\"\nfiles = false\n\
                [[site]]\nhost = \"*\"\norigin = \"a\"\n";
    assert_snapshot!(said(text), @r#"
    error: `files` without `root`, the directory of the files
     --> larder.toml:4:9
      |
    4 | files = false
      |         ^^^^^
    "#);
}

#[test]
fn cache_control_is_one_line() {
    let said = site("files = { root = \"/srv\", cache_control = \"a\\nb\" }");
    assert!(said.contains("`cache_control`: a field value has no control characters"), "{said}");
}

#[test]
fn accel_leads_from_prefixes_to_directories() {
    let origin = |keys: &str| {
        said(&format!(
            "[[origin]]\nname = \"a\"\nservers = \"http://a\"\n{keys}\n\
             [[site]]\nhost = \"*\"\norigin = \"a\"\n"
        ))
    };
    for prefix in ["protected/", "/protected", "/", "/a/../b/", "/a//b/", "@x"] {
        let said = origin(&format!("accel = {{ \"{prefix}\" = \"/srv\" }}"));
        assert!(said.contains(&format!("`{prefix}` is not a prefix")), "{said}");
    }
    assert!(origin("accel = { \"/p/\" = \"srv\" }").contains("is an absolute path"));
    assert!(origin("accel = \"yes\"").contains("`accel` takes true, or a table"));
    assert!(origin("x_sendfile = \"srv\"").contains("`x_sendfile` is an absolute path"));
    assert_eq!(origin("accel = { \"/p/\" = \"/srv\" }\nx_sendfile = [\"/srv\", \"/b\"]"), "");
    assert_eq!(origin("accel = true"), "");
}

#[test]
fn pages_on_the_disk_are_those_of_a_fastcgi_origin() {
    let with = |origin: &str, plugin: &str| {
        said(&format!(
            "[[origin]]\nname = \"a\"\n{origin}\n[[site]]\nhost = \"*\"\norigin = \"a\"\n\
             page_cache = {plugin}\n"
        ))
    };
    let http = "servers = \"http://a\"";
    let php = "servers = \"fastcgi://a\"\nroot = \"/srv\"\nno_scripts = false";
    assert!(with(http, "\"boost\"").contains("`page_cache` needs a FastCGI origin"));
    assert!(with(php, "\"wp-rockets\"").contains("did you mean \"wp-rocket\"?"));
    for plugin in ["\"boost\"", "\"wp-rocket\"", "\"wp-super-cache\"", "false"] {
        assert_eq!(with(php, plugin), "", "{plugin}");
    }
    assert_eq!(with(http, "false"), "");
}
