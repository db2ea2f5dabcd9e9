//! Single shapes, and the settings that they become.

use super::{bare, translated};
use crate::Fate;

/// The result for these lines of a server of `a.test`.
fn server(lines: &str) -> String {
    bare(&format!("server {{ listen 80; server_name a.test; {lines} }}"))
}

#[test]
fn each_setting_stands_below_the_line_that_it_comes_from() {
    let toml = translated("gzip_comp_level 4;\nserver { root /srv; }\n").toml;
    assert!(toml.contains("# nginx.conf:1 gzip_comp_level 4;\nlevel = 4\n"), "{toml}");
}

#[test]
fn redirects_to_https_of_either_kind_are_a_setting_of_the_site() {
    let tls = "server { listen 443 ssl; server_name a.test; ssl_certificate /c; \
               ssl_certificate_key /k; root /srv; }";
    for plain in [
        "return 301 https://$host$request_uri;",
        "location / { return 301 https://$server_name$request_uri; }",
        "if ($host = a.test) { return 301 https://$host$request_uri; } return 404;",
        "rewrite ^(.*)$ https://a.test$1 permanent;",
    ] {
        let text = format!("server {{ listen 80; server_name a.test; {plain} }} {tls}");
        let toml = bare(&text);
        assert!(toml.contains("redirect_https = 301"), "{plain}: {toml}");
        assert_eq!(toml.matches("[[site]]").count(), 1, "{plain}: {toml}");
        assert_eq!(translated(&text).report.counts().left, 0, "{plain}");
    }
}

#[test]
fn a_path_that_is_changed_on_its_way_goes_to_no_wrong_path() {
    let toml = server(
        "location / { proxy_pass http://app:1; } location /api/ { proxy_pass http://app:1/; }",
    );
    let route = "path = \"/api/*\"\nrespond = { status = 501 }\n";
    assert!(toml.contains(route), "{toml}");
    let same = server("location /api/ { proxy_pass http://app:1/api/; }");
    assert!(same.contains("path = \"/api/*\"\norigin = \"app\"\n"), "{same}");
}

#[test]
fn rules_for_addresses_keep_out_whom_they_kept_out() {
    for (rules, expected) in [
        ("allow 10.0.0.0/8; deny all;", "allow = \"10.0.0.0/8\"\n"),
        ("deny 10.0.0.1; allow all;", "deny = \"10.0.0.1\"\n"),
        ("deny all;", "respond = { status = 403 }\n"),
        ("allow 10.0.0.1; deny 10.0.0.0/8; allow all;", "respond = { status = 403 }\n"),
    ] {
        let toml = server(&format!("root /srv; location /x/ {{ {rules} }}"));
        let route = toml.split("[[site.route]]").nth(1).unwrap_or_default();
        assert!(route.contains(expected), "{rules}: {toml}");
    }
}

#[test]
fn a_password_of_the_root_holds_for_no_location_that_had_none() {
    let toml = server(
        "root /srv; location / { auth_basic x; auth_basic_user_file /u; } location /open/ { }",
    );
    let open = "path = \"/open/*\"\nfiles.root = \"/srv\"\nbasic_auth = false\n";
    assert!(toml.contains(open), "{toml}");
}

#[test]
fn what_the_check_refuses_is_left_with_its_reason() {
    let translated = translated(
        "server { listen 80; server_name a.test; root /srv; location ~ (a)\\1 { return 410; } }",
    );
    let entries = translated.report.entries.iter();
    let left: Vec<_> = entries
        .filter_map(|entry| match &entry.fate {
            Fate::Left { why, .. } => Some((entry.line.as_str(), why.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(left.iter().all(|(_, why)| why.starts_with("`larder check` refuses it: ")), "{left:?}");
}

#[test]
fn directives_that_nobody_knows_and_other_protocols_are_left() {
    let report = translated(
        "strange x; stream { server { listen 1; } } server { root /srv; uwsgi_pass a; }",
    )
    .report;
    let left: Vec<_> = report
        .entries
        .iter()
        .filter(|entry| matches!(entry.fate, Fate::Left { .. }))
        .map(|entry| entry.line.as_str())
        .collect();
    assert_eq!(
        left,
        ["strange x;", "stream { ... }", "server { ... }", "listen 1;", "uwsgi_pass a;"]
    );
}
