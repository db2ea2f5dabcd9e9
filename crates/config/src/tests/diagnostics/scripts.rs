//! Tests of messages about FastCGI origins.

use insta::assert_snapshot;

use super::said;

const SITE: &str = "[[site]]\nhost = \"*\"\norigin = \"php\"\n";

fn origin(keys: &str) -> String {
    said(&format!("[[origin]]\nname = \"php\"\n{keys}\n{SITE}"))
}

#[test]
fn a_fastcgi_url_alone_does_not_say_where_the_scripts_are() {
    let text = "[[site]]\nhost = \"*\"\norigin = \"fastcgi+unix:/run/php.sock\"\n";
    assert_snapshot!(said(text), @r#"
    error: a FastCGI server needs to know where its scripts are
     --> larder.toml:3:10
      |
    3 | origin = "fastcgi+unix:/run/php.sock"
      |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: write an [[origin]] with this URL and a `root`, and its name here
    "#);
}

#[test]
fn a_fastcgi_origin_needs_a_root() {
    assert_snapshot!(origin("servers = \"fastcgi://127.0.0.1\""), @r#"
    error: a FastCGI origin without `root`
     --> larder.toml:1:1
      |
    1 | [[origin]]
      | ^^^^^^^^^^
      |
      = help: add `root = "/var/www/html"`, where the application's scripts are
    "#);
}

#[test]
fn the_servers_of_one_origin_speak_the_same() {
    let keys = "servers = [\"fastcgi://127.0.0.1\", \"http://127.0.0.1\"]";
    assert_snapshot!(origin(keys), @r#"
    error: an origin's servers speak either HTTP or FastCGI
     --> larder.toml:3:11
      |
    3 | servers = ["fastcgi://127.0.0.1", "http://127.0.0.1"]
      |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: make two origins of it
    "#);
}

#[test]
fn http_servers_run_no_scripts() {
    assert_snapshot!(origin("servers = \"http://127.0.0.1\"\ntry_files = \"$uri\""), @r#"
    error: `try_files` is for FastCGI servers
     --> larder.toml:4:13
      |
    4 | try_files = "$uri"
      |             ^^^^^^
      |
      = help: their URLs begin with fastcgi:// or fastcgi+unix:
    "#);
}

#[test]
fn what_cannot_be_tried_is_named() {
    let keys = r#"servers = "fastcgi://127.0.0.1"
root = "srv"
try_files = ["/index.php", "$uri", "@fallback", "=200", "/a.php?q=$uri", "/../x.php"]
index = ["a/b.php"]
scripts = ["php"]
no_scripts = ["uploads", "/a//b"]
linked = ["x"]"#;
    assert_snapshot!(origin(keys), @r#"
    error: `root` is an absolute path
     --> larder.toml:4:8
      |
    4 | root = "srv"
      |        ^^^^^

    error: nothing is tried after a script or a status
     --> larder.toml:5:13
      |
    5 | try_files = ["/index.php", "$uri", "@fallback", "=200", "/a.php?q=$uri", "/../x.php"]
      |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

    error: `@fallback` is nothing that can be tried
     --> larder.toml:5:36
      |
    5 | try_files = ["/index.php", "$uri", "@fallback", "=200", "/a.php?q=$uri", "/../x.php"]
      |                                    ^^^^^^^^^^^
      |
      = help: write `$uri`, `$uri/`, a script such as `/index.php`, or `=404`

    error: `=200` is not a status from =400 to =599
     --> larder.toml:5:49
      |
    5 | try_files = ["/index.php", "$uri", "@fallback", "=200", "/a.php?q=$uri", "/../x.php"]
      |                                                 ^^^^^^

    error: `/a.php?q=$uri` is nothing that can be tried
     --> larder.toml:5:57
      |
    5 | try_files = ["/index.php", "$uri", "@fallback", "=200", "/a.php?q=$uri", "/../x.php"]
      |                                                         ^^^^^^^^^^^^^^^
      |
      = help: write `$uri`, `$uri/`, a script such as `/index.php`, or `=404`

    error: `/../x.php` is nothing that can be tried
     --> larder.toml:5:74
      |
    5 | try_files = ["/index.php", "$uri", "@fallback", "=200", "/a.php?q=$uri", "/../x.php"]
      |                                                                          ^^^^^^^^^^^
      |
      = help: write `$uri`, `$uri/`, a script such as `/index.php`, or `=404`

    error: `a/b.php` is not a file name
     --> larder.toml:6:10
      |
    6 | index = ["a/b.php"]
      |          ^^^^^^^^^

    error: `php` is not the end of a file name such as `.php`
     --> larder.toml:7:12
      |
    7 | scripts = ["php"]
      |            ^^^^^

    error: `uploads` is not a directory's path below `root`, from `/` on
     --> larder.toml:8:15
      |
    8 | no_scripts = ["uploads", "/a//b"]
      |               ^^^^^^^^^

    error: `/a//b` is not a directory's path below `root`, from `/` on
     --> larder.toml:8:26
      |
    8 | no_scripts = ["uploads", "/a//b"]
      |                          ^^^^^^^

    error: `linked` is an absolute path
     --> larder.toml:9:11
      |
    9 | linked = ["x"]
      |           ^^^
    "#);
}

#[test]
fn an_origin_that_runs_uploads_is_warned_of() {
    let keys = "servers = \"fastcgi://127.0.0.1\"\nroot = \"/srv\"";
    assert_snapshot!(origin(keys), @r#"
    warning: `php` runs scripts wherever they are below its `root`
     --> larder.toml:2:8
      |
    2 | name = "php"
      |        ^^^^^
      |
      = help: `no_scripts = ["/uploads"]`, or a `preset`; `no_scripts = false` without uploads
    "#);
    for good in ["no_scripts = \"/uploads\"", "no_scripts = false", "try_files = \"/app.php\""] {
        assert_eq!(origin(&format!("{keys}\n{good}")), "", "{good}");
    }
    let preset = format!("[[origin]]\nname = \"php\"\n{keys}\n{SITE}preset = \"drupal\"\n");
    assert_eq!(said(&preset), "");
}

#[test]
fn a_socket_needs_its_own_spelling() {
    assert_snapshot!(origin("servers = \"fastcgi:/run/php.sock\"\nroot = \"/srv\""), @r#"
    error: a FastCGI server's URL without host
     --> larder.toml:3:11
      |
    3 | servers = "fastcgi:/run/php.sock"
      |           ^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: a socket is written "fastcgi+unix:/run/php/php-fpm.sock"
    "#);
}
