//! Tests of messages about unusable files, verbatim.

mod files;
mod scripts;
mod sites;

use insta::assert_snapshot;

use crate::{load_str, render};

/// All diagnostics of `text`, including warnings of a usable file.
pub(super) fn said(text: &str) -> String {
    let found = match load_str(text, "larder.toml") {
        Ok((_, warnings)) => warnings,
        Err(errors) => errors,
    };
    render(&found, false)
}

#[test]
fn an_unknown_key_is_named_with_the_one_meant() {
    let text = r#"lsten = ":80"
[[site]]
host = "*"
origin = "http://127.0.0.1:8080"
"#;
    assert_snapshot!(said(text), @r#"
    error: unknown key `lsten` at the top of the file
     --> larder.toml:1:1
      |
    1 | lsten = ":80"
      | ^^^^^
      |
      = help: did you mean `listen`?
    "#);
}

#[test]
fn a_key_of_another_table_says_where_it_belongs() {
    let text = r#"[[site]]
host = "*"
origin = "http://a"
ttl = { 200 = "1s" }
"#;
    assert_snapshot!(said(text), @r#"
    error: unknown key `ttl` in [[site]]
     --> larder.toml:4:1
      |
    4 | ttl = { 200 = "1s" }
      | ^^^
      |
      = help: `ttl` stands in [site.cache]
    "#);
}

#[test]
fn a_key_like_no_other_gets_the_list() {
    let text = r#"[admin]
zzz = 1
[[site]]
host = "*"
origin = "http://127.0.0.1:8080"
"#;
    assert_snapshot!(said(text), @r#"
    error: unknown key `zzz` in [admin]
     --> larder.toml:2:1
      |
    2 | zzz = 1
      | ^^^
      |
      = help: keys in [admin] are listen, tokens, hosts, metrics, socket_mode, audit, history, docs
    "#);
}

#[test]
fn a_key_of_a_later_version_says_what_to_do() {
    let text = r#"[[site]]
host = "*"
origin = "http://127.0.0.1:8080"
[[site.route]]
path = "/"
vcl = "/etc/larder/x.vcl"
"#;
    assert_snapshot!(said(text), @r#"
    error: this version does not have `vcl` yet
     --> larder.toml:6:1
      |
    6 | vcl = "/etc/larder/x.vcl"
      | ^^^
      |
      = help: a VCL is a whole site's: see `[[site]]`
    "#);
}

#[test]
fn a_tls_listener_needs_a_certificate() {
    let text = r#"listen = ["127.0.0.1:80", ":443 tls"]
[[site]]
host = "*"
origin = "http://127.0.0.1:8080"
"#;
    assert_snapshot!(said(text), @r#"
    error: a TLS listener, and no certificate
     --> larder.toml:1:10
      |
    1 | listen = ["127.0.0.1:80", ":443 tls"]
      |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: name one in a [tls] table, or in a site: `tls = { cert = "...", key = "..." }`
    "#);
}

#[test]
fn an_origin_that_is_not_verified_is_warned_of() {
    let text = r#"[[origin]]
name = "app"
servers = ["https://app:8443"]
tls = { verify = false, sni = "*.app" }
[[site]]
host = "*"
origin = "app"
"#;
    assert_snapshot!(said(text), @r#"
    warning: the servers' certificates are not verified
     --> larder.toml:4:18
      |
    4 | tls = { verify = false, sni = "*.app" }
      |                  ^^^^^
      |
      = help: anyone on the way can read and change everything: name their authority in `ca`

    error: `sni` is a host name
     --> larder.toml:4:31
      |
    4 | tls = { verify = false, sni = "*.app" }
      |                               ^^^^^^^
    "#);
}

#[test]
fn a_wrong_type_says_which_is_right() {
    let text = r#"workers = "many"
[[site]]
host = "*"
origin = "http://127.0.0.1:8080"
"#;
    assert_snapshot!(said(text), @r#"
    error: `workers` takes a whole number or "auto", not this string
     --> larder.toml:1:11
      |
    1 | workers = "many"
      |           ^^^^^^
    "#);
}

#[test]
fn a_duration_without_unit_gets_one() {
    let text = r#"[[site]]
host = "*"
origin = "http://a"
[site.cache]
stale_if_error = 60
"#;
    assert_snapshot!(said(text), @r#"
    error: `stale_if_error` takes a duration such as "10s", not an integer
     --> larder.toml:5:18
      |
    5 | stale_if_error = 60
      |                  ^^
      |
      = help: durations need a unit: ms, s, m, h, d, w or y; perhaps "60s"
    "#);
}

#[test]
fn a_bad_duration_lists_the_units() {
    let text = r#"[limits]
idle_timeout = "10 fortnights"
[[site]]
host = "*"
origin = "http://127.0.0.1:8080"
"#;
    assert_snapshot!(said(text), @r#"
    error: `idle_timeout`: missing or unknown unit
     --> larder.toml:2:16
      |
    2 | idle_timeout = "10 fortnights"
      |                ^^^^^^^^^^^^^^^
      |
      = help: durations need a unit: ms, s, m, h, d, w or y
    "#);
}

#[test]
fn a_bad_size_lists_the_units() {
    let text = r#"[memory]
size = "1 gigabyte"
[[site]]
host = "*"
origin = "http://127.0.0.1:8080"
"#;
    assert_snapshot!(said(text), @r#"
    error: `size`: missing or unknown unit; write a size ("1GiB"), a percentage ("50%") or "auto"
     --> larder.toml:2:8
      |
    2 | size = "1 gigabyte"
      |        ^^^^^^^^^^^^
    "#);
}

/// The first message about `text`, with its help.
fn first(text: &str) -> String {
    let said = said(text);
    let error = said.lines().next().unwrap_or_default().to_owned();
    let help = said.lines().find_map(|line| line.trim_start().strip_prefix("= help: "));
    help.map_or_else(|| error.clone(), |help| format!("{error} ({help})"))
}

#[test]
fn what_people_type_first_is_told_what_to_type() {
    const SITE: &str = "[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:8080\"\n";
    for (text, told) in [
        (
            format!("listen = 80\n{SITE}"),
            "error: `listen` takes a string or a list of strings, not an integer (did you mean \":80\"?)",
        ),
        (
            format!("memory = {{ size = \"1G\" }}\n{SITE}"),
            "error: `size`: missing or unknown unit; did you mean \"1GiB\"?",
        ),
        (
            format!("memory = {{ size = \"512\" }}\n{SITE}"),
            "error: `size`: a cache needs at least 8MiB; did you mean \"512MiB\"?",
        ),
        (
            format!("{SITE}cache = {{ ttl = {{ 200 = \"-1s\" }} }}"),
            "error: `ttl`: it cannot be less than 0",
        ),
        (
            SITE.replace(":8080", ":8080/app"),
            "error: `origin`: expected nothing after host and port: requests keep their own paths",
        ),
        (
            "user www-data;\nhttp {\n  server {\n    listen 80;\n  }\n}\n".to_owned(),
            "error: this is a configuration of nginx (`larder import larder.toml -o larder.toml` \
             translates it; the guide has a page, `from-nginx`)",
        ),
        (
            "vcl 4.1;\nbackend a { .host = \"b\"; }\n".to_owned(),
            "error: this is a program in VCL (`larder check larder.toml` checks it; `larder serve -f \
             larder.toml -a :80` runs it, or `vcl = \"larder.toml\"` at the top of larder.toml)",
        ),
    ] {
        assert_eq!(first(&text), told, "{text}");
    }
}

#[test]
fn a_limit_out_of_range_says_the_range() {
    let text = r#"[limits]
header_field_bytes = "1MiB"
retry_budget = 200
header_timeout = "0s"
[[site]]
host = "*"
origin = "http://127.0.0.1:8080"
"#;
    assert_snapshot!(said(text), @r#"
    error: `header_field_bytes` must be from 256B to 63KiB
     --> larder.toml:2:22
      |
    2 | header_field_bytes = "1MiB"
      |                      ^^^^^^

    error: `retry_budget` must be from 0 to 100
     --> larder.toml:3:16
      |
    3 | retry_budget = 200
      |                ^^^

    error: `header_timeout` must be from 1ms to 365d
     --> larder.toml:4:18
      |
    4 | header_timeout = "0s"
      |                  ^^^^
    "#);
}

#[test]
fn an_unknown_limit_is_named_with_the_one_meant() {
    let text = r#"[limits]
header_count_max = 5
headers_bytes = 5
[[site]]
host = "*"
origin = "http://127.0.0.1:8080"
"#;
    assert_snapshot!(said(text), @r#"
    error: unknown key `header_count_max` in [limits]
     --> larder.toml:2:1
      |
    2 | header_count_max = 5
      | ^^^^^^^^^^^^^^^^
      |
      = help: did you mean `header_count`?

    error: unknown key `headers_bytes` in [limits]
     --> larder.toml:3:1
      |
    3 | headers_bytes = 5
      | ^^^^^^^^^^^^^
      |
      = help: did you mean `header_bytes`?
    "#);
}

#[test]
fn an_undefined_origin_is_named_with_the_one_meant() {
    let text = r#"[[origin]]
name = "app"
servers = "http://a"
[[site]]
host = "*"
origin = "ap"
"#;
    assert_snapshot!(said(text), @r#"
    error: no origin is called `ap`
     --> larder.toml:6:10
      |
    6 | origin = "ap"
      |          ^^^^
      |
      = help: did you mean `app`?
    "#);
}

#[test]
fn an_origin_nobody_uses_is_a_warning() {
    let text = r#"[[origin]]
name = "app"
servers = "http://a"
[[site]]
host = "*"
origin = "http://127.0.0.1:8080"
"#;
    assert_snapshot!(said(text), @r#"
    warning: no site uses the origin `app`
     --> larder.toml:2:8
      |
    2 | name = "app"
      |        ^^^^^
    "#);
}

#[test]
fn an_origin_that_is_the_daemons_own_listener_is_a_warning() {
    for (listen, server) in [
        ("127.0.0.1:8080", "http://127.0.0.1:8080"),
        (":8080", "http://localhost:8080"),
        ("unix:/run/larder/http.sock", "unix:/run/larder/http.sock"),
    ] {
        let text = |server: &str| {
            format!(
                "listen = \"{listen}\"\n[[origin]]\nname = \"app\"\nservers = \"{server}\"\n\
                 [[site]]\nhost = \"*\"\norigin = \"app\"\n"
            )
        };
        let told = said(&text(server));
        assert!(told.contains("warning: origin `app` is this daemon's own listener"), "{told}");
        let told = said(&text("http://127.0.0.1:8081"));
        assert!(!told.contains("own listener"), "{told}");
    }
}

#[test]
fn two_origins_of_one_name_are_shown_both() {
    let text = r#"[[origin]]
name = "a"
servers = "http://a"
[[origin]]
name = "a"
servers = "http://b"
[[site]]
host = "*"
origin = "a"
"#;
    assert_snapshot!(said(text), @r#"
    error: two origins are called `a`
     --> larder.toml:5:8
      |
    2 | name = "a"
      |        --- the first one
    ...
    5 | name = "a"
      |        ^^^
    "#);
}

#[test]
fn an_origin_has_more_than_backups() {
    let text = r#"[[origin]]
name = "a"
servers = [{ url = "http://a", backup = true }, { url = "http://b", backup = true }]
[[site]]
host = "*"
origin = "a"
"#;
    assert_snapshot!(said(text), @r#"
    error: `servers` has only backups
     --> larder.toml:3:11
      |
    3 | servers = [{ url = "http://a", backup = true }, { url = "http://b", backup = true }]
      |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: a backup stands in for servers without `backup`: name at least one
    "#);
}

#[test]
fn an_origin_without_servers_is_no_origin() {
    let text = r#"[[origin]]
name = "a"
servers = []
[[origin]]
name = "b"
[[site]]
host = "*"
origin = "a"
[[site]]
host = "b"
origin = "b"
"#;
    assert_snapshot!(said(text), @r#"
    error: `servers` names no server
     --> larder.toml:3:11
      |
    3 | servers = []
      |           ^^

    error: an origin without servers
     --> larder.toml:4:1
      |
    4 | [[origin]]
      | ^^^^^^^^^^
      |
      = help: add `servers = ["http://127.0.0.1:8080"]`
    "#);
}

#[test]
fn addresses_to_listen_on_are_checked() {
    let text = r#"listen = ["80", "example.com:80", ":80", "*:80"]
[[site]]
host = "*"
origin = "http://127.0.0.1:8080"
"#;
    assert_snapshot!(said(text), @r#"
    error: `listen`: an address to listen on needs both colon and port
     --> larder.toml:1:11
      |
    1 | listen = ["80", "example.com:80", ":80", "*:80"]
      |           ^^^^
      |
      = help: ":80" for all addresses, "127.0.0.1:80" or "[::1]:80" for one; ":443 tls" for TLS

    error: `listen`: an address to listen on is an IP address, not a name
     --> larder.toml:1:17
      |
    1 | listen = ["80", "example.com:80", ":80", "*:80"]
      |                 ^^^^^^^^^^^^^^^^
      |
      = help: ":80" for all addresses, "127.0.0.1:80" or "[::1]:80" for one; ":443 tls" for TLS

    error: `*:80` is listened on already
     --> larder.toml:1:42
      |
    1 | listen = ["80", "example.com:80", ":80", "*:80"]
      |                                          ^^^^^^
    "#);
}

#[test]
fn a_single_bracket_is_named() {
    let text = r#"[site]
host = "*"
origin = "http://a"
"#;
    assert_snapshot!(said(text), @r#"
    error: `site` takes a list of tables, not a table
     --> larder.toml:1:1
      |
    1 | [site]
      | ^^^^^^
      |
      = help: write it as [[site]]
    "#);
}

#[test]
fn every_problem_of_syntax_is_reported() {
    let text = r#"listen = [":80"
workers = = 1
profile = "safe
"#;
    assert_snapshot!(said(text), @r#"
    error: missing comma between array elements, expected `,`
     --> larder.toml:2:1
      |
    2 | workers = = 1
      | ^

    error: missing comma between array elements, expected `,`
     --> larder.toml:3:1
      |
    3 | profile = "safe
      | ^
    "#);
}

#[test]
fn lines_that_are_no_toml_hide_no_other_problem() {
    let text = r#"listen = :80
memory = 12x
workerz = 3
x_cache = 5
profile = "safe

[[site]]
host = "*"
orgin = "app"
origin = http://127.0.0.1:8080
"#;
    let told = said(text);
    let lines: Vec<_> = told.lines().filter(|line| line.contains("-->")).collect();
    let at =
        |place: &str| lines.iter().any(|line| line.trim() == format!("--> larder.toml:{place}"));
    for place in ["1:10", "2:10", "3:1", "4:11", "9:1", "10:10"] {
        assert!(at(place), "{place}\n{told}");
    }
    assert_eq!(lines.len(), 7, "{told}");
    assert!(!told.contains("a site without origin"), "{told}");
}

#[test]
fn every_problem_of_a_file_is_reported_in_its_order() {
    let text = r#"workers = 0
x_cache = "yes"
via = "a b"
profile = "saef"
access_log = "stdot"
cache_status = 1
[[site]]
host = "*"
origin = "ftp://a"
"#;
    assert_snapshot!(said(text), @r#"
    error: `workers` must be from 1 to 1024
     --> larder.toml:1:11
      |
    1 | workers = 0
      |           ^

    error: `x_cache` takes true or false, not this string
     --> larder.toml:2:11
      |
    2 | x_cache = "yes"
      |           ^^^^^

    error: `via` is a word: a letter, then letters, digits, `-`, `_` or `.`
     --> larder.toml:3:7
      |
    3 | via = "a b"
      |       ^^^^^

    error: `profile` takes "safe" or "rfc", not this string
     --> larder.toml:4:11
      |
    4 | profile = "saef"
      |           ^^^^^^
      |
      = help: did you mean "safe"?

    error: `access_log` takes "stdout", "syslog" or an absolute path
     --> larder.toml:5:14
      |
    5 | access_log = "stdot"
      |              ^^^^^^^
      |
      = help: did you mean "stdout"?

    error: `cache_status` takes "on", "off" or "detail", not an integer
     --> larder.toml:6:16
      |
    6 | cache_status = 1
      |                ^

    error: `origin`: expected [http(s)://]host:port, unix:/path, fastcgi://host:port, fastcgi+unix:
     --> larder.toml:9:10
      |
    9 | origin = "ftp://a"
      |          ^^^^^^^^^
    "#);
}

#[test]
fn certificates_and_keys_go_in_pairs() {
    let text = r#"listen = ":443 tls"
[[site]]
host = "a.test"
origin = "http://127.0.0.1:8080"
tls = { cert = ["/a.pem", "/b.pem"], key = "/a.key", client_auth = "require" }
[[site]]
host = "b.test"
origin = "http://127.0.0.1:8080"
tls = { cert = "b.pem", key = "/b.key" }
"#;
    assert_snapshot!(said(text), @r#"
    error: a TLS listener, and no certificate
     --> larder.toml:1:10
      |
    1 | listen = ":443 tls"
      |          ^^^^^^^^^^
      |
      = help: name one in a [tls] table, or in a site: `tls = { cert = "...", key = "..." }`

    error: `cert` and `key` name a different number of files
     --> larder.toml:5:44
      |
    5 | tls = { cert = ["/a.pem", "/b.pem"], key = "/a.key", client_auth = "require" }
      |                --------------------        ^^^^^^^^
      |                |
      |                the certificates
      |
      = help: write the keys in the order of their certificates

    error: `client_auth` without `client_ca`
     --> larder.toml:5:68
      |
    5 | tls = { cert = ["/a.pem", "/b.pem"], key = "/a.key", client_auth = "require" }
      |                                                                    ^^^^^^^^^
      |
      = help: name the file with the authorities that sign the clients' certificates

    error: `cert` takes an absolute path
     --> larder.toml:9:16
      |
    9 | tls = { cert = "b.pem", key = "/b.key" }
      |                ^^^^^^^
    "#);
}

#[test]
fn a_proxy_listener_needs_proxies_that_are_trusted() {
    let text = r#"listen = [":80 proxy", ":81 proxy_protocol"]
[admin]
listen = "127.0.0.1:6080 proxy"
[[site]]
host = "*"
origin = "http://127.0.0.1:8080"
"#;
    assert_snapshot!(said(text), @r#"
    error: `:80 proxy`: no proxy is trusted, so all clients are refused
     --> larder.toml:1:10
      |
    1 | listen = [":80 proxy", ":81 proxy_protocol"]
      |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: name the balancers in front: trusted_proxies = ["192.0.2.7", "10.0.0.0/8"]

    error: `listen`: `proxy_protocol` is written `proxy` here
     --> larder.toml:1:24
      |
    1 | listen = [":80 proxy", ":81 proxy_protocol"]
      |                        ^^^^^^^^^^^^^^^^^^^^
      |
      = help: ":80" for all addresses, "127.0.0.1:80" or "[::1]:80" for one; ":443 tls" for TLS

    error: the admin listener knows no PROXY protocol
     --> larder.toml:3:10
      |
    3 | listen = "127.0.0.1:6080 proxy"
      |          ^^^^^^^^^^^^^^^^^^^^^^
    "#);
}

#[test]
fn the_admin_listener_is_for_this_machine_and_no_origin() {
    let text = r#"[admin]
listen = ":6080"
socket_mode = "666"
hosts = ["cache.example:80"]
tokens = "tokens"
history = "30d"
[[site]]
host = "*"
origin = "http://127.0.0.1:8080"
"#;
    assert_snapshot!(said(text), @r#"
    error: `listen`: other machines could reach the admin listener at 0.0.0.0
     --> larder.toml:2:10
      |
    2 | listen = ":6080"
      |          ^^^^^^^
      |
      = help: without TLS its tokens could be read: write "127.0.0.1:6080" and use `ssh -L`

    error: `socket_mode`: everyone on this machine could do everything
     --> larder.toml:3:15
      |
    3 | socket_mode = "666"
      |               ^^^^^
      |
      = help: "600" is for the daemon's user, "660" also for its group

    error: `hosts`: takes host names, without port or `*`
     --> larder.toml:4:10
      |
    4 | hosts = ["cache.example:80"]
      |          ^^^^^^^^^^^^^^^^^^

    error: `tokens` takes an absolute path
     --> larder.toml:5:10
      |
    5 | tokens = "tokens"
      |          ^^^^^^^^

    error: `history`: takes a time from "10m" to "7d"
     --> larder.toml:6:11
      |
    6 | history = "30d"
      |           ^^^^^
    "#);
    let text = r#"[admin]
listen = "127.0.0.1:6080"
[[site]]
host = "*"
origin = "http://localhost:6080"
"#;
    assert_snapshot!(said(text), @r#"
    error: origin `http://localhost:6080` is this admin listener
     --> larder.toml:2:10
      |
    2 | listen = "127.0.0.1:6080"
      |          ^^^^^^^^^^^^^^^^
      |
      = help: clients would reach it through the site: give one of them another port
    "#);
}

#[test]
fn what_is_tried_again_is_named_by_words_and_statuses() {
    let text = r#"[[origin]]
name = "app"
servers = "http://127.0.0.1:8080"
retry_on = ["conect", "503"]
eject = { statuses = ["200"] }
[[site]]
host = "*"
origin = "app"
"#;
    let said = said(text);
    for part in [
        "expected \"connect\", \"drop\", \"timeout\" or a status from 400 to 527",
        "did you mean \"connect\"?",
        "expected a status from 400 to 527, such as \"503\"",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(said.matches("error:").count(), 2, "{said}");
}

#[test]
fn no_message_shows_a_secret_that_stands_in_its_line() {
    for line in [
        "cluster = { servers = [\"nats://127.0.0.1:4222\"], token = \"hush\", nonsense = 1 }",
        "cluster = { user = \"larder\", password = \"hush\", nonsense = 1 }",
        "neighbour = [{ url = \"http://127.0.0.1:6081\", token = \"hush\", nonsense = 1 }]",
        "site = [{ host = \"a.test\", purge = { token = \"hush\", nonsense = 1 } }]",
        "tls = { acme = { eab = { kid = \"k\", hmac = \"hush\", nonsense = 1 } } }",
        "tracing = { endpoint = \"http://127.0.0.1\", headers = { a = \"hush\" }, nonsense = 1 }",
    ] {
        let said = said(&format!("listen = \":80\"\n{line}\n"));
        assert!(said.contains("nonsense") && said.contains("****"), "{said}");
        assert!(!said.contains("hush"), "{said}");
    }
}
