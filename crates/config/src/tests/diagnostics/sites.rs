//! Tests of messages about sites and routes.

use insta::assert_snapshot;

use super::said;

#[test]
fn a_host_of_two_sites_is_shown_in_both() {
    let text = r#"[[site]]
host = ["a.example", "b.example"]
origin = "http://a"
[[site]]
host = "B.example."
origin = "http://a"
"#;
    assert_snapshot!(said(text), @r#"
    error: `b.example` is a site's host already
     --> larder.toml:5:8
      |
    2 | host = ["a.example", "b.example"]
      |                      ----------- here for the first time
    ...
    5 | host = "B.example."
      |        ^^^^^^^^^^^^
    "#);
}

#[test]
fn a_url_is_no_host() {
    let text = r#"[[site]]
host = ["https://example.com/", "exam ple"]
origin = "http://a"
"#;
    assert_snapshot!(said(text), @r#"
    error: `https://example.com/` is not a host name
     --> larder.toml:2:9
      |
    2 | host = ["https://example.com/", "exam ple"]
      |         ^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: a host has no scheme, port or path: "example.com"

    error: `exam ple` is not a host name
     --> larder.toml:2:33
      |
    2 | host = ["https://example.com/", "exam ple"]
      |                                 ^^^^^^^^^^
      |
      = help: write "example.com", "*.example.com" for all below it, or "*" for every host
    "#);
}

#[test]
fn a_site_without_origin_or_hosts_cannot_work() {
    let text = r#"[[site]]
host = []
[[site]]
origin = "http://a"
"#;
    assert_snapshot!(said(text), @r#"
    error: a site without origin
     --> larder.toml:1:1
      |
    1 | [[site]]
      | ^^^^^^^^
      |
      = help: add `origin = "http://127.0.0.1:8080"`, or the name of an [[origin]]

    error: `host` names no host
     --> larder.toml:2:8
      |
    2 | host = []
      |        ^^
      |
      = help: write "*" for every host

    error: a site without hosts
     --> larder.toml:3:1
      |
    3 | [[site]]
      | ^^^^^^^^
      |
      = help: add `host = ["example.com"]`, or `host = "*"` for every host
    "#);
}

#[test]
fn no_site_at_all_is_an_error() {
    let text = r#"workers = 1
"#;
    assert_snapshot!(said(text), @r#"
    error: no [[site]]
    --> larder.toml
     = help: add one: [[site]], then `host = ["*"]` and `origin = "http://127.0.0.1:8080"`
    "#);
}

#[test]
fn a_shadowed_route_is_a_warning() {
    let text = r#"[[site]]
host = "*"
origin = "http://127.0.0.1:8080"
[[site.route]]
path = "/shop/*"
[[site.route]]
path = "/shop/cart"
cache = false
"#;
    assert_snapshot!(said(text), @r#"
    warning: `/shop/cart` is never reached
     --> larder.toml:7:8
      |
    5 | path = "/shop/*"
      |        --------- `/shop/*` matches first
    6 | [[site.route]]
    7 | path = "/shop/cart"
      |        ^^^^^^^^^^^^
      |
      = help: the first route that matches counts: put it further up
    "#);
}

#[test]
fn a_bad_regex_says_what_is_wrong() {
    let text = r#"[[site]]
host = "*"
origin = "http://127.0.0.1:8080"
[[site.route]]
path = "~ ^/(a"
[[site.route]]
path = "shop"
"#;
    assert_snapshot!(said(text), @r#"
    error: `path`: unclosed group
     --> larder.toml:5:8
      |
    5 | path = "~ ^/(a"
      |        ^^^^^^^^

    error: `path`: a path begins with `/`, a suffix with `*`, an expression with `~`
     --> larder.toml:7:8
      |
    7 | path = "shop"
      |        ^^^^^^
    "#);
}

/// The first help that is given for `lines` in the file of a site.
fn help(lines: &str) -> String {
    let text = format!("[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:8080\"\n{lines}\n");
    let said = said(&text);
    let help = said.lines().find_map(|line| line.trim_start().strip_prefix("= help: "));
    help.map_or_else(|| said.clone(), str::to_owned)
}

#[test]
fn words_of_other_servers_and_slips_are_told_what_they_mean() {
    for (lines, told) in [
        ("x_cache = true", "`x_cache` stands at the top of the file"),
        ("hosts = \"a\"", "did you mean `host`?"),
        ("headers = { X-Foo = \"bar\" }", "it is called `response_headers` here"),
        ("pass = true", "it is called `bypass` here"),
        ("server_name = \"a\"", "it is called `host` here"),
        ("max_fails = 3", "`failures` stands in [origin.eject]"),
        ("fail_timeout = \"3s\"", "`time` stands in [origin.eject]"),
        (
            "response_headers = { X-Foo = \"bar\" }",
            "write `set = { X-Foo = \"bar\" }`, or `unset = \"X-Foo\"`",
        ),
        ("hsts = \"yes\"", "write true, or how long: \"1y\""),
        ("first_byte_timeout = \"10 sec\"", "did you mean \"10s\"?"),
    ] {
        assert_eq!(help(lines), told, "{lines}");
    }
}

#[test]
fn a_bad_network_says_what_is_expected() {
    let text = r#"[[site]]
host = "*"
origin = "http://127.0.0.1:8080"
allow = ["10.0.0.0/33", "localhost"]
"#;
    assert_snapshot!(said(text), @r#"
    error: `allow`: the length of a block of IPv4 addresses is 32 at most
     --> larder.toml:4:10
      |
    4 | allow = ["10.0.0.0/33", "localhost"]
      |          ^^^^^^^^^^^^^

    error: `allow`: expected an address such as `192.0.2.1` or a block such as `10.0.0.0/8`
     --> larder.toml:4:25
      |
    4 | allow = ["10.0.0.0/33", "localhost"]
      |                         ^^^^^^^^^^^
    "#);
}

#[test]
fn line_breaks_in_headers_are_refused() {
    let text = r#"[[site]]
host = "*"
origin = "http://127.0.0.1:8080"
[site.response_headers]
set = { "X-A" = "a\r\nSet-Cookie: x", "X B" = "1", Content-Length = "5" }
"#;
    assert_snapshot!(said(text), @r#"
    error: `set`: a field value has no control characters (no line break) and no space around it
     --> larder.toml:5:17
      |
    5 | set = { "X-A" = "a\r\nSet-Cookie: x", "X B" = "1", Content-Length = "5" }
      |                 ^^^^^^^^^^^^^^^^^^^^

    error: `X B`: a field name has only letters, digits and !#$%&'*+-.^_`|~
     --> larder.toml:5:39
      |
    5 | set = { "X-A" = "a\r\nSet-Cookie: x", "X B" = "1", Content-Length = "5" }
      |                                       ^^^^^

    error: `Content-Length`: the field belongs to the connection or to the message's framing
     --> larder.toml:5:52
      |
    5 | set = { "X-A" = "a\r\nSet-Cookie: x", "X B" = "1", Content-Length = "5" }
      |                                                    ^^^^^^^^^^^^^^
    "#);
}

#[test]
fn bad_ttls_are_refused() {
    let text = r#"[[site]]
host = "*"
origin = "http://127.0.0.1:8080"
[site.cache]
ttl = { 200 = "10ms", 99 = "1s", 6xx = "1s", ok = "1s" }
"#;
    assert_snapshot!(said(text), @r#"
    error: a lifetime is at least 100ms
     --> larder.toml:5:15
      |
    5 | ttl = { 200 = "10ms", 99 = "1s", 6xx = "1s", ok = "1s" }
      |               ^^^^^^
      |
      = help: "0s" keeps such responses from being stored

    error: `99` is no status that has a lifetime
     --> larder.toml:5:23
      |
    5 | ttl = { 200 = "10ms", 99 = "1s", 6xx = "1s", ok = "1s" }
      |                       ^^
      |
      = help: write a status from 200 to 599, a class such as 2xx, or any

    error: `6xx` is no status that has a lifetime
     --> larder.toml:5:34
      |
    5 | ttl = { 200 = "10ms", 99 = "1s", 6xx = "1s", ok = "1s" }
      |                                  ^^^
      |
      = help: write a status from 200 to 599, a class such as 2xx, or any

    error: `ok` is no status that has a lifetime
     --> larder.toml:5:46
      |
    5 | ttl = { 200 = "10ms", 99 = "1s", 6xx = "1s", ok = "1s" }
      |                                              ^^
      |
      = help: write a status from 200 to 599, a class such as 2xx, or any
    "#);
}

#[test]
fn a_redirect_is_checked() {
    let text = r#"[[site]]
host = "*"
origin = "http://127.0.0.1:8080"
[[site.route]]
path = "/a"
redirect = { to = "https://$hots/", status = 200 }
[[site.route]]
path = "/b"
redirect = "/x"
respond = { status = 204, body = "x" }
"#;
    assert_snapshot!(said(text), @r#"
    error: `to`: unknown variable `$hots` (there are $host, $path, $query, $args, $1-$9 and $$)
     --> larder.toml:6:19
      |
    6 | redirect = { to = "https://$hots/", status = 200 }
      |                   ^^^^^^^^^^^^^^^^

    error: `status` must be from 301 to 308
     --> larder.toml:6:46
      |
    6 | redirect = { to = "https://$hots/", status = 200 }
      |                                              ^^^

    error: `redirect` and `respond` cannot both answer
      --> larder.toml:10:11
       |
     9 | redirect = "/x"
       |            ---- the other answer
    10 | respond = { status = 204, body = "x" }
       |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^

    error: a response of status 204 has no body
      --> larder.toml:10:11
       |
    10 | respond = { status = 204, body = "x" }
       |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    "#);
}

#[test]
fn methods_are_written_in_capitals() {
    let text = r#"[[site]]
host = "*"
origin = "http://127.0.0.1:8080"
[[site.route]]
method = ["get", "PURGE", "a b"]
[[site.route]]
cache = false
"#;
    assert_snapshot!(said(text), @r#"
    error: methods are case-sensitive: `get`
     --> larder.toml:5:11
      |
    5 | method = ["get", "PURGE", "a b"]
      |           ^^^^^
      |
      = help: did you mean `GET`?

    error: PURGE requests are refused before routes are looked at
     --> larder.toml:5:18
      |
    5 | method = ["get", "PURGE", "a b"]
      |                  ^^^^^^^

    error: `a b` is not a method
     --> larder.toml:5:27
      |
    5 | method = ["get", "PURGE", "a b"]
      |                           ^^^^^

    error: a route without `path`, `method` or `when`
     --> larder.toml:6:1
      |
    6 | [[site.route]]
      | ^^^^^^^^^^^^^^
      |
      = help: what is for every request of the site stands in [[site]] itself
    "#);
}

#[test]
fn names_of_cookies_are_checked() {
    let text = r#"[[site]]
host = "*"
origin = "http://127.0.0.1:8080"
[site.cookies]
strip = ["a*b"]
key = ["lang*"]
"#;
    assert_snapshot!(said(text), @r#"
    error: `strip`: `*` may only stand at the end of a name, of a cookie's also at its start
     --> larder.toml:5:10
      |
    5 | strip = ["a*b"]
      |          ^^^^^

    error: `lang*` is not the name of a cookie
     --> larder.toml:6:8
      |
    6 | key = ["lang*"]
      |        ^^^^^^^
      |
      = help: names in `key` are whole names
    "#);
}

#[test]
fn a_protocol_that_carries_http_is_no_tunnel() {
    let text = r#"[[site]]
host = "*"
origin = "http://a"
upgrade = ["websocket", "H2C", "web socket"]
"#;
    assert_snapshot!(said(text), @r#"
    error: `upgrade`: `H2C`: HTTP within it would go past every rule of this proxy
     --> larder.toml:4:25
      |
    4 | upgrade = ["websocket", "H2C", "web socket"]
      |                         ^^^^^

    error: `upgrade`: `web socket`: a protocol is a name such as "websocket", or name/version
     --> larder.toml:4:32
      |
    4 | upgrade = ["websocket", "H2C", "web socket"]
      |                                ^^^^^^^^^^^^
    "#);
}
