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
fn a_prefix_that_proxy_pass_exchanges_is_exchanged_here() {
    for (location, target, expected) in [
        ("/api/", "http://app:1/", "path = \"/api/*\"\nstrip_prefix = \"/api\"\n"),
        ("/a/b/", "http://app:1/v2/", "strip_prefix = \"/a/b\"\nadd_prefix = \"/v2\"\n"),
        ("/api/", "http://app:1/api/", "origin = \"app\"\n"),
        ("/api", "http://app:1/", "path = \"~ ^/api/?(.*)$\"\nrewrite = \"/$1\"\n"),
        ("/api/", "http://app:1/v2", "path = \"~ ^/api/(.*)$\"\nrewrite = \"/v2$1\"\n"),
        // The query of the target would be lost.
        ("/api/", "http://app:1/a?b=/", "respond = { status = 501 }\n"),
    ] {
        let toml = server(&format!(
            "location / {{ proxy_pass http://app:1; }} location {location} {{ proxy_pass {target}; }}"
        ));
        assert!(toml.contains(expected), "{location} {target}: {toml}");
        let is_changed = expected.contains("strip_prefix");
        assert_eq!(toml.contains("_prefix"), is_changed, "{location} {target}: {toml}");
    }
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
fn where_a_guard_cannot_be_carried_over_the_result_lets_no_client_in() {
    for (guard, left) in [
        ("auth_request /ask;", "auth_request /ask;"),
        ("deny 10.0.0.300;", "deny 10.0.0.300;"),
        ("auth_basic x; auth_basic_user_file $users;", "auth_basic x;"),
    ] {
        let text = format!(
            "server {{ listen 80; server_name a.test; root /srv; location /x/ {{ {guard} }} \
             location = /ask {{ return 200; }} }}"
        );
        let translated = translated(&text);
        let route = translated.toml.split("[[site.route]]").find(|route| route.contains("/x/*"));
        let route = route.unwrap_or_default();
        assert!(route.contains("respond = { status = 403 }"), "{guard}: {}", translated.toml);
        let is_left = translated
            .report
            .entries
            .iter()
            .any(|entry| entry.line == left && matches!(entry.fate, Fate::Left { .. }));
        assert!(is_left, "{guard}");
    }
}

#[test]
fn what_the_check_refuses_is_left_with_its_reason() {
    let translated = translated(
        "server { listen 80; server_name a.test; root /srv; location ~ (a)\\1 { return 302 /x; } }",
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

#[test]
fn a_backup_is_one_unless_no_other_server_is_left() {
    let of = |servers: &str| {
        bare(&format!(
            "upstream app {{ {servers} }}\nserver {{ listen 80; server_name a.test; \
             location / {{ proxy_pass http://app; }} }}"
        ))
    };
    let first = "server 10.0.0.1:80 weight=2;";
    let both = of(&format!("{first} server 10.0.0.2:80 weight=3 backup;"));
    assert!(both.contains("url = \"http://10.0.0.1:80\", weight = 2 }"), "{both}");
    assert!(both.contains("url = \"http://10.0.0.2:80\", weight = 3, backup = true }"), "{both}");
    let alone = of("server 10.0.0.1:80 down; server 10.0.0.2:80 backup;");
    assert!(!alone.contains("backup = true"), "{alone}");
}

#[test]
fn locations_without_lines_in_the_access_log_are_left_out_of_it() {
    let text = "access_log /var/log/a.log; server { listen 80; server_name a.test; root /srv; \
                location = /health { access_log off; return 200; } \
                location /shop/ { proxy_pass http://10.0.0.1:80; } }";
    let toml = bare(text);
    let (before, route) = toml.split_once("path = \"/health\"").expect("a route");
    let route = route.split("[[").next().expect("its keys");
    assert!(route.contains("access_log = false"), "{toml}");
    assert_eq!(toml.matches("access_log = false").count(), 1, "{before}");
    assert_eq!(translated(text).report.counts().left, 0, "{}", translated(text).report.text());
    let off = bare("access_log off; server { listen 80; server_name a.test; root /srv; }");
    assert!(!off.contains("access_log"), "{off}");
    let inner = "access_log off; server { listen 80; server_name a.test; root /srv; \
                 location /a/ { access_log /var/log/a.log; } }";
    let toml = bare(inner);
    assert!(toml.contains("access_log = false") && toml.contains("access_log = true"), "{toml}");
}

#[test]
fn a_sticky_cookie_is_one_here() {
    let toml = bare(
        "upstream app { server 10.0.0.1:80; server 10.0.0.2:80; \
         sticky cookie srv expires=1h domain=.a.test path=/ secure samesite=Lax; }\n\
         server { listen 80; server_name a.test; location / { proxy_pass http://app; } }",
    );
    for line in [
        "name = \"srv\"",
        "max_age = \"1h\"",
        "domain = \".a.test\"",
        "path = \"/\"",
        "secure = true",
        "same_site = \"lax\"",
    ] {
        assert!(toml.contains(line), "{line}: {toml}");
    }
}

#[test]
fn rules_that_answer_go_before_those_that_only_change_something() {
    let toml = server(
        "location / { if ($http_a) { add_header X 1; } if ($http_b) { add_header X 2; } \
         if ($http_c) { return 403; } proxy_pass http://app:1; }",
    );
    let order = ["C = ", "B = ", "A = "].map(|key| toml.find(key));
    assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{order:?} {toml}");
    let toml = server(
        "root /srv; rewrite ^/a/(.*)$ /b/$1; if ($http_c) { return 403; } \
         location / { proxy_pass http://app:1; }",
    );
    let order = ["C = ", "rewrite = "].map(|key| toml.find(key));
    assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{order:?} {toml}");
    let toml = server(
        "rewrite ^/a/(.*)$ /b/$1; if ($uri ~ ^/b/secret) { return 403; } \
         location / { proxy_pass http://app:1; }",
    );
    assert!(!toml.contains("rewrite"), "{toml}");
}

#[test]
fn no_rewrite_passes_by_a_location_that_keeps_clients_out() {
    let toml = server(
        "rewrite ^/a/(.*)$ /b/$1 last; location / { proxy_pass http://app:1; } \
         location /b/secret/ { deny all; }",
    );
    assert!(!toml.contains("rewrite"), "{toml}");
    let toml = server(
        "rewrite ^/a/(.*)$ /b/$1 last; location / { proxy_pass http://app:1; } \
         location ~ /\\. { deny all; }",
    );
    assert!(toml.contains("when.not = { path = '~ /\\.' }\nrewrite = \"/b/$1\""), "{toml}");
}

#[test]
fn a_server_for_the_machine_alone_is_not_opened_by_a_public_one() {
    let toml = bare(
        "server { listen 80; server_name a.test; root /srv; } \
         server { listen 127.0.0.1:81; server_name b.test; root /inner; }",
    );
    let inner = toml.split("[[site]]").nth(2).unwrap_or_default();
    assert!(inner.contains("allow = [\"127.0.0.0/8\", \"::1\"]"), "{toml}");
    assert_eq!(toml.matches("allow").count(), 1, "{toml}");
}

#[test]
fn an_unknown_part_of_a_condition_keeps_more_clients_out() {
    for (rules, kept_out) in [
        ("if ($geoip_country = X) { return 403; }", "path = \"/x/*\"\nrespond = { status = 403 }"),
        (
            "set $d 0; if ($http_a) { set $d 1; } if ($geoip_country = X) { set $d 0; } \
             if ($d) { return 403; }",
            "when.header = { A = \"~ [^0]|00\" }\nrespond = { status = 403 }",
        ),
        ("limit_except GET { deny all; }", "when.not = { method = [\"GET\", \"HEAD\"] }"),
        ("auth_jwt x;", "respond = { status = 403 }"),
    ] {
        let toml = server(&format!("location /x/ {{ {rules} proxy_pass http://app:1; }}"));
        assert!(toml.contains(kept_out), "{rules}: {toml}");
    }
}

#[test]
fn what_must_not_be_stored_in_doubt_is_not() {
    let toml = server(
        "location / { proxy_cache z; proxy_no_cache $geoip_country; proxy_pass http://app:1; }",
    );
    assert!(toml.contains("cache = false"), "{toml}");
}

#[test]
fn a_script_is_no_page_for_errors() {
    let toml = server("root /srv; error_page 403 /index.php; error_page 404 /e.php?x=1;");
    assert!(!toml.contains("error_pages"), "{toml}");
}

#[test]
fn a_status_that_leads_to_a_named_location_is_a_route_there() {
    let toml = server(
        "error_page 418 = @old; location / { if ($arg_old = 1) { return 418; } \
         proxy_pass http://app:1; } location @old { proxy_pass http://old:2; }",
    );
    assert!(toml.contains("when.query = { old = \"1\" }\norigin = \"app-2\""), "{toml}");
}

#[test]
fn hosts_of_a_condition_get_sites_of_their_own() {
    for (rule, redirect) in [
        ("if ($host = www.a.test) { return 301 http://a.test$request_uri; }", "www.a.test"),
        ("if ($host ~* ^www\\.(.+)$) { return 301 $scheme://$1$request_uri; }", "www.a.test"),
        ("if ($host != a.test) { return 301 http://a.test$request_uri; }", "www.a.test"),
        ("if ($host !~ test$) { return 444; }", "*"),
    ] {
        let toml = bare(&format!(
            "server {{ listen 80 default_server; server_name a.test www.a.test; {rule} root /srv; }}"
        ));
        let mut sites = toml.split("[[site]]").skip(1);
        let first = sites.next().unwrap_or_default();
        assert!(!first.contains(&format!("\"{redirect}\"")), "{rule} {toml}");
        assert!(sites.any(|own| own.contains(&format!("host = \"{redirect}\""))), "{rule} {toml}");
    }
}

#[test]
fn exceptions_of_a_cache_that_bypass_cannot_have_are_routes_behind_all_others() {
    let toml = server(
        "set $skip 0; if ($remote_addr = 10.0.0.9) { set $skip 1; } if ($cookie_a) { set $skip 1; } \
         location / { proxy_cache z; proxy_no_cache $skip; proxy_pass http://app:1; } \
         location /x/ { proxy_pass http://app:1; }",
    );
    let last = toml.split("[[site.route]]").last().unwrap_or_default();
    assert!(last.starts_with("\nwhen.client = \"10.0.0.9\"\n"), "{toml}");
    assert!(last.contains("cache = false"), "{toml}");
    assert!(toml.contains("bypass.cookie = \"a\""), "{toml}");
}

#[test]
fn files_in_front_of_an_application_are_the_root_of_its_origin() {
    let text = "server { listen 80; server_name a.test; root /srv/public; \
                location / { try_files $uri @app; } \
                location @app { proxy_pass http://10.0.0.1:3000; } \
                location /api/ { proxy_pass http://10.0.0.1:3000; } }";
    let toml = bare(text);
    assert_eq!(toml.matches("root = \"/srv/public\"").count(), 1, "{toml}");
    assert_eq!(toml.matches("[[origin]]").count(), 2, "{toml}");
    assert_eq!(translated(text).report.counts().left, 0, "{}", translated(text).report.text());
    let rootless = "server { listen 80; server_name a.test; location / { try_files $uri @app; } \
                    location @app { proxy_pass http://10.0.0.1:3000; } }";
    assert_eq!(translated(rootless).report.counts().left, 1);
}

#[test]
fn what_an_application_says_is_ignored_where_something_is_stored() {
    let of = |cache: &str| {
        format!(
            "proxy_cache_path /c keys_zone=C:1m; server {{ listen 80; server_name a.test; \
             proxy_ignore_headers Cache-Control Set-Cookie X-Accel-Redirect; {cache} \
             location / {{ proxy_pass http://10.0.0.1:80; }} }}"
        )
    };
    let stored = bare(&of("proxy_cache C; proxy_cache_valid 5m;"));
    assert!(stored.contains("ignore = [\"Cache-Control\", \"Set-Cookie\"]"), "{stored}");
    let passed = bare(&of(""));
    assert!(!passed.contains("ignore"), "{passed}");
    assert_eq!(translated(&of("")).report.counts().left, 0);
}

#[test]
fn pages_replace_errors_of_an_application_only_if_they_did() {
    let of = |intercepts: &str| {
        bare(&format!(
            "server {{ listen 80; server_name a.test; root /srv; error_page 502 /down.html; \
             {intercepts} location / {{ proxy_pass http://10.0.0.1:80; }} }}"
        ))
    };
    assert!(of("proxy_intercept_errors on;").contains("intercept_errors = true"));
    assert!(!of("proxy_intercept_errors off;").contains("intercept_errors"));
    assert!(!of("").contains("intercept_errors"));
}

#[test]
fn fields_have_the_variables_that_are_there() {
    let toml = server(
        "location / { proxy_pass http://10.0.0.1:80; \
         add_header X-Link \"<$scheme://$host$request_uri>; rel=x\"; \
         add_header X-Agent ${http_user_agent}s; add_header X-Own $own; }",
    );
    let link = "X-Link = \"<${scheme}://${host}${path}${query}>; rel=x\"";
    assert!(toml.contains(link), "{toml}");
    assert!(toml.contains("X-Agent = \"${http.User-Agent}s\""), "{toml}");
    assert!(!toml.contains("X-Own ="), "{toml}");
}

#[test]
fn maps_for_logs_alone_are_not_needed() {
    let text = "map $request_uri $short { default $request_uri; ~^(?<a>.*)x $a; }\n\
                map $short $shorter { default $short; }\n\
                log_format own '$remote_addr $shorter';\n\
                server { listen 80; server_name a.test; access_log /var/log/a.log own; \
                location / { proxy_pass http://10.0.0.1:80; } }";
    assert_eq!(translated(text).report.counts().left, 0, "{}", translated(text).report.text());
    let used = text.replace("proxy_pass", "add_header X-Short $shorter; proxy_pass");
    assert!(translated(&used).report.counts().left > 0);
}

#[test]
fn fields_that_are_ignored_are_those_of_the_innermost_block() {
    let of = |lines: &str| {
        format!(
            "proxy_cache_path /c keys_zone=C:1m; server {{ listen 80; server_name a.test; \
             root /srv; proxy_cache C; proxy_ignore_headers Set-Cookie Cache-Control; \
             fastcgi_cache C; location / {{ proxy_pass http://h:1; }} {lines} }}"
        )
    };
    let pass = "proxy_pass http://h:2;";
    for (lines, is_left) in [
        (format!("location /acc {{ proxy_ignore_headers Expires; {pass} }}"), true),
        (format!("location /acc {{ proxy_ignore_headers X-Accel-Redirect; {pass} }}"), false),
        ("location /acc { fastcgi_pass unix:/run/php.sock; }".to_owned(), false),
    ] {
        let toml = bare(&of(&lines));
        let (site, route) = toml.split_once("[[site.route]]").expect("a route");
        assert!(site.contains("ignore = [\"Set-Cookie\", \"Cache-Control\"]"), "{toml}");
        assert_eq!(route.matches("ignore").count(), 1, "{toml}");
        assert!(route.contains("cache.ignore = false"), "{toml}");
        assert_eq!(translated(&of(&lines)).report.counts().left > 0, is_left, "{lines}");
    }
    for lines in [
        format!("location /acc {{ {pass} }}"),
        format!("location /acc {{ proxy_cache off; proxy_ignore_headers Expires; {pass} }}"),
    ] {
        let toml = bare(&of(&lines));
        assert_eq!(toml.matches("ignore").count(), 1, "{toml}");
    }
    let more = "proxy_ignore_headers Set-Cookie Cache-Control Expires;";
    let toml = bare(&of(&format!("location /acc {{ {more} {pass} }}")));
    let all = "ignore = [\"Set-Cookie\", \"Cache-Control\", \"Expires\"]";
    assert!(toml.contains(all), "{toml}");
    let root = of(&format!("location /acc {{ {pass} }}"))
        .replace("location / {", "location / { proxy_ignore_headers Expires; allow 10.0.0.0/8;");
    let toml = bare(&root);
    assert!(
        toml.split("path = \"/*\"").nth(1).is_some_and(|own| own.contains("= false")),
        "{toml}"
    );
}

#[test]
fn a_root_that_stores_nothing_stores_nothing_where_it_is_a_route() {
    let toml = bare(
        "proxy_cache_path /c keys_zone=C:1m; \
         server { listen 80; server_name b.test; location / { proxy_cache C; \
         proxy_pass http://h:1; } } \
         server { listen 80; server_name a.test; location / { allow 10.0.0.0/8; deny all; \
         proxy_pass http://h:1; } location /x/ { proxy_pass http://h:2; } }",
    );
    let root = toml.split("path = \"/*\"").nth(1).unwrap_or_default();
    assert!(root.contains("cache = false"), "{toml}");
}

#[test]
fn a_server_without_content_that_lets_no_client_in_is_a_site() {
    let toml = server("deny all; location /x/ { proxy_pass http://h:1; }");
    assert!(toml.contains("respond = { status = 403 }"), "{toml}");
}

#[test]
fn fixed_values_of_usual_parameters_are_default_only_if_scripts_get_them() {
    let of = |listen: &str, param: &str| {
        let text = format!(
            "server {{ listen {listen}; server_name a.test; root /srv/w; ssl_certificate /c; \
             ssl_certificate_key /k; location ~ \\.php$ {{ fastcgi_param {param}; \
             fastcgi_pass unix:/run/php.sock; }} }}"
        );
        let translated = translated(&text);
        let is_left = |entry: &crate::Entry| {
            entry.line.starts_with("fastcgi_param") && matches!(entry.fate, Fate::Left { .. })
        };
        (translated.report.entries.iter().any(is_left), translated.toml.contains("status = 501"))
    };
    for (listen, param, is_left) in [
        ("80", "HTTPS on", true),
        ("443 ssl", "HTTPS on", false),
        ("80", "HTTPS $https", false),
        ("80", "REMOTE_USER bob", true),
        ("80", "REMOTE_USER \"\"", false),
        ("80", "SERVER_NAME fixed", true),
        ("80", "DOCUMENT_ROOT /opt/x", true),
        ("80", "DOCUMENT_ROOT /srv/w/", false),
        ("80", "GATEWAY_INTERFACE CGI/1.1", false),
        ("80", "REDIRECT_STATUS 200", false),
        ("80", "QUERY_STRING q=1", true),
        ("80", "HTTP_PROXY \"\"", false),
    ] {
        assert_eq!(of(listen, param), (is_left, false), "{listen} {param}");
    }
    for (param, is_elsewhere) in [
        ("SCRIPT_FILENAME /opt/x/a.php", true),
        ("SCRIPT_FILENAME /opt/x$fastcgi_script_name", true),
        ("SCRIPT_FILENAME /srv/w$fastcgi_script_name", false),
        // It answers for scripts, and not for what else there is.
        ("SCRIPT_FILENAME /srv/w/a.php", true),
        ("SCRIPT_FILENAME $document_root$fastcgi_script_name", false),
    ] {
        assert_eq!(of("80", param), (is_elsewhere, is_elsewhere), "{param}");
    }
    for name in ["$document_root/a.php", "/srv/w/a.php"] {
        let toml = server(&format!(
            "root /srv/w; location / {{ fastcgi_param SCRIPT_FILENAME {name}; \
             fastcgi_pass unix:/run/php.sock; }}"
        ));
        assert!(toml.contains("try_files = \"/a.php\""), "{name}: {toml}");
    }
}

#[test]
fn try_files_is_listed_where_no_origin_gets_its_root() {
    let of = |pass: &str| {
        let text = format!(
            "server {{ listen 80; server_name a.test; root /srv; \
             location ~ ^/u/(.*)$ {{ try_files $uri @a; }} location @a {{ proxy_pass {pass}; }} }}"
        );
        let entries = translated(&text).report.entries;
        let tries = entries.into_iter().find(|own| own.line.starts_with("try_files"));
        matches!(tries.map(|own| own.fate), Some(Fate::Left { .. }))
    };
    for (pass, is_left) in
        [("http://h:1", false), ("http://h:1/v/$1", true), ("http://$unknown", true)]
    {
        assert_eq!(of(pass), is_left, "{pass}");
    }
}

#[test]
fn a_field_without_a_value_is_not_carried_over() {
    let text = "server { listen 80; server_name a.test; root /srv; add_header X-Empty \"\"; }";
    let translated = translated(text);
    assert!(!translated.toml.contains("X-Empty ="), "{}", translated.toml);
    let entries = translated.report.entries.iter();
    let fate = entries.filter(|own| own.line.starts_with("add_header")).map(|own| &own.fate).next();
    assert!(matches!(fate, Some(Fate::Default(_))), "{fate:?}");
}

#[test]
fn an_unused_map_is_one_on_which_no_request_depends() {
    let text = "map $uri $unused { default 1; } server { listen 80; server_name a.test; root /s; }";
    let report = translated(text).report.text();
    assert!(report.contains("no request depends on it"), "{report}");
}

#[test]
fn a_page_to_which_a_rule_leads_is_not_left() {
    let of = |page: &str, more: &str| {
        let text = format!(
            "server {{ listen 80; server_name a.test; {page} {more} \
             location / {{ if ($arg_old = 1) {{ return 418; }} proxy_pass http://app:1; }} \
             location @old {{ proxy_pass http://old:2; }} }}"
        );
        let entries = translated(&text).report.entries;
        let own = entries.into_iter().find(|own| own.line.starts_with("error_page"));
        matches!(own.map(|own| own.fate), Some(Fate::Left { .. }))
    };
    assert!(!of("error_page 418 = @old;", ""));
    assert!(of("error_page 418 404 = @old;", ""));
    assert!(of("error_page 418 =200 @old;", ""));
    assert!(of("error_page 418 = @old;", "proxy_intercept_errors on;"));
    assert!(of("error_page 404 = @old;", ""));
}
