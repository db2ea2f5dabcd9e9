//! Locations that lead to others: no guard of either is lost on the way.

use super::{bare, translated};
use crate::Fate;

/// A server of `a.test` with these lines.
fn text(lines: &str) -> String {
    format!("server {{ listen 80; server_name a.test; root /srv/w; {lines} }}")
}

/// The result for these lines of a server.
fn server(lines: &str) -> String {
    bare(&text(lines))
}

/// The route of `path`.
fn route<'t>(toml: &'t str, path: &str) -> &'t str {
    let key = format!("path = \"{path}\"");
    toml.split("[[site.route]]").find(|own| own.contains(&key)).unwrap_or_default()
}

/// The lines that are left.
fn left(lines: &str) -> Vec<String> {
    let entries = translated(&text(lines)).report.entries.into_iter();
    let left = entries.filter(|entry| matches!(entry.fate, Fate::Left { .. }));
    left.map(|entry| entry.line).collect()
}

const PASSWORD: &str = "auth_basic x; auth_basic_user_file /etc/pw;";
const ALLOW: &str = "allow 10.0.0.0/8; deny all;";
const REFUSED: &str = "respond = { status = 403 }";

#[test]
fn guards_before_try_files_hold_where_the_target_is_open() {
    for (guard, open, expected) in [
        (PASSWORD, "auth_basic off;", "basic_auth = { file = \"/etc/pw\""),
        (PASSWORD, "", "basic_auth = { file = \"/etc/pw\""),
        (ALLOW, "allow all;", "allow = \"10.0.0.0/8\""),
        ("deny all;", "allow all;", REFUSED),
        ("auth_request /ask;", "auth_request off;", "forward_auth = { origin"),
        ("auth_jwt x;", "auth_jwt off;", REFUSED),
    ] {
        let toml = server(&format!(
            "location /dl/ {{ {guard} try_files $uri @a; }} \
             location = /ask {{ internal; proxy_pass http://ask:1; }} \
             location @a {{ {open} proxy_pass http://h:1; }}"
        ));
        assert!(route(&toml, "/dl/*").contains(expected), "{guard} {open}: {toml}");
    }
}

#[test]
fn guards_before_a_script_hold_where_the_script_is_open() {
    let toml = server(&format!(
        "location /admin/ {{ {ALLOW} try_files $uri /index.php; }} \
         location ~ \\.php$ {{ allow all; fastcgi_pass unix:/run/php.sock; }}"
    ));
    assert!(route(&toml, "/admin/*").contains("allow = \"10.0.0.0/8\""), "{toml}");
    let toml = server(&format!(
        "location / {{ {PASSWORD} try_files $uri /index.php; }} \
         location ~ \\.php$ {{ auth_basic off; fastcgi_pass unix:/run/php.sock; }}"
    ));
    assert!(toml.contains("basic_auth = { file = \"/etc/pw\""), "{toml}");
}

#[test]
fn two_guards_of_a_kind_let_no_client_in_and_are_listed() {
    let two = format!(
        "location / {{ {ALLOW} try_files $uri @a; }} \
         location @a {{ allow 10.0.0.0/8; allow 192.168.0.0/16; deny all; proxy_pass http://h:1; }}"
    );
    let toml = server(&two);
    assert!(toml.contains(REFUSED), "{toml}");
    assert!(!toml.contains("192.168"), "{toml}");
    assert!(left(&two).contains(&"allow 192.168.0.0/16;".to_owned()), "{:?}", left(&two));
    let same = format!(
        "location / {{ {ALLOW} {PASSWORD} try_files $uri @a; }} \
         location @a {{ {ALLOW} {PASSWORD} proxy_pass http://h:1; }}"
    );
    let toml = server(&same);
    assert!(!toml.contains(REFUSED) && toml.contains("allow = \"10.0.0.0/8\""), "{toml}");
    assert!(left(&same).is_empty(), "{:?}", left(&same));
}

#[test]
fn a_guard_of_the_target_alone_holds_for_files_too() {
    let inherited = format!(
        "{PASSWORD} location /f/ {{ auth_basic off; try_files $uri @a; }} \
         location @a {{ proxy_pass http://h:1; }} location / {{ proxy_pass http://h:2; }}"
    );
    let toml = server(&inherited);
    assert!(!route(&toml, "/f/*").contains("basic_auth = false"), "{toml}");
    assert!(left(&inherited).contains(&"auth_basic off;".to_owned()), "{:?}", left(&inherited));
    let own = format!(
        "location /f/ {{ try_files $uri @a; }} location @a {{ {PASSWORD} proxy_pass http://h:1; }}"
    );
    assert!(route(&server(&own), "/f/*").contains("basic_auth = { file"), "{}", server(&own));
}

#[test]
fn a_limit_before_try_files_is_the_one_that_counts() {
    let toml = bare(&format!(
        "limit_req_zone $binary_remote_addr zone=a:1m rate=1r/s; \
         limit_req_zone $binary_remote_addr zone=b:1m rate=9r/s; {}",
        text(
            "location /l/ { limit_req zone=a; try_files $uri @a; } \
             location @a { limit_req zone=b; proxy_pass http://h:1; }"
        )
    ));
    assert!(route(&toml, "/l/*").contains("requests = \"1/s\""), "{toml}");
    assert!(!toml.contains("9/s"), "{toml}");
}

#[test]
fn fields_of_files_in_front_are_sent() {
    let toml = server(
        "location /dl/ { add_header X-Files 1; add_header X-Both 1; try_files $uri @a; } \
         location @a { add_header X-App 2; add_header X-Both 2; proxy_pass http://h:1; }",
    );
    for line in ["X-Files = \"1\"", "X-App = \"2\"", "X-Both = \"2\""] {
        assert!(route(&toml, "/dl/*").contains(line), "{line}: {toml}");
    }
}

#[test]
fn a_new_path_and_an_exception_get_the_guards_of_the_target() {
    let toml = server(&format!(
        "rewrite ^/old$ /new/x last; location / {{ proxy_pass http://h:2; }} \
         location /new/ {{ try_files /none @a; if ($http_x) {{ add_header X-Y 1; }} }} \
         location @a {{ {PASSWORD} proxy_pass http://h:1; }}"
    ));
    let routes = toml.split("[[site.route]]").skip(1);
    let open = routes.filter(|own| own.contains("origin = ") && !own.contains("basic_auth"));
    assert_eq!(open.count(), 0, "{toml}");
}

#[test]
fn a_circle_of_named_locations_ends() {
    let toml = server("location / { try_files $uri @a; } location @a { try_files $uri @a; }");
    assert!(toml.contains("respond = { status = 501 }"), "{toml}");
}

#[test]
fn rules_of_a_named_location_that_keep_clients_out_are_routes_of_what_leads_there() {
    let of = |rule: &str| {
        server(&format!(
            "location / {{ proxy_pass http://h:2; }} location /x/ {{ try_files $uri @a; }} \
             location @a {{ {rule} proxy_pass http://h:1; }}"
        ))
    };
    for (rule, expected) in [
        ("if ($http_c) { return 403; }", "when.header = { C = "),
        ("limit_except GET { deny all; }", "when.not = { method = [\"GET\", \"HEAD\"] }"),
        ("set $c 0; if ($http_c) { set $c 1; } if ($c) { return 404; }", "when.header = { C = "),
    ] {
        let toml = of(rule);
        let guard = route(&toml, "/x/*");
        assert!(guard.contains(expected) && guard.contains("status = 40"), "{rule}: {toml}");
        assert!(toml.contains("path = \"/x/*\"\norigin = "), "{rule}: {toml}");
    }
    for (rule, status) in [
        ("limit_except GET { allow 10.0.0.1; deny all; }", 403),
        ("if (!-f $request_filename) { return 404; }", 403),
        ("if ($geoip_country = X) { return 403; }", 403),
        ("if ($http_c) { return 200 x; }", 501),
        ("rewrite ^/x/(.*)$ /y/$1 break;", 501),
        ("rewrite ^/x/(.*)$ /y/$1 permanent;", 501),
    ] {
        let toml = of(rule);
        let expected = format!("respond = {{ status = {status} }}");
        assert!(route(&toml, "/x/*").contains(&expected), "{rule}: {toml}");
    }
}

#[test]
fn rules_of_the_target_of_a_site_or_its_root_are_routes() {
    for lead in ["try_files $uri @a;", "location / { try_files $uri @a; }"] {
        let toml = server(&format!(
            "{lead} location @a {{ if ($http_c) {{ return 403; }} proxy_pass http://h:1; }}"
        ));
        assert!(toml.contains("when.header = { C = "), "{lead}: {toml}");
    }
    let scripts = "location / { proxy_pass http://h:2; } location /x/ { try_files $uri /index.php; } \
         location ~ \\.php$ { if ($http_c) { return 403; } if ($uri ~ ^/up/) { return 403; } \
         fastcgi_pass unix:/run/php.sock; }";
    let toml = server(scripts);
    assert!(route(&toml, "/x/*").contains("when.header = { C = "), "{toml}");
}

#[test]
fn a_status_leads_to_no_named_location_past_its_rules() {
    for (rule, status) in [("if ($http_c) { return 403; }", 403), ("rewrite ^ /y break;", 501)] {
        let toml = server(&format!(
            "error_page 418 = @old; location / {{ if ($arg_old = 1) {{ return 418; }} \
             proxy_pass http://h:1; }} location @old {{ {rule} proxy_pass http://old:2; }}"
        ));
        let expected = format!("when.query = {{ old = \"1\" }}\nrespond = {{ status = {status} }}");
        assert!(toml.contains(&expected), "{rule}: {toml}");
    }
}

#[test]
fn no_rewrite_leads_past_rules_that_keep_clients_out() {
    let toml = server(
        "rewrite ^/a/(.*)$ /b/$1 last; location / { proxy_pass http://h:1; } \
         location /b/ { if ($http_c) { return 403; } proxy_pass http://h:2; }",
    );
    assert!(!toml.contains("rewrite"), "{toml}");
}

#[test]
fn a_guard_with_an_unknown_text_is_one() {
    let toml = bare(&format!(
        "map $uri $bad {{ default $b; }} map $uri $b {{ default $bad; }} {}",
        text("if ($bad) { return 403 $bad; } location / { proxy_pass http://h:1; }")
    ));
    assert!(toml.contains(REFUSED), "{toml}");
}

#[test]
fn calls_of_grpc_go_to_an_origin_of_http_2() {
    let lines = "http2 on; location / { proxy_pass http://web:1; } \
         location /shop.Cart/ { grpc_pass grpcs://cart:443; grpc_set_header Host cart.test; \
         grpc_set_header X-From edge; grpc_set_header X-Real-IP $remote_addr; \
         grpc_read_timeout 1h; grpc_send_timeout 1h; grpc_connect_timeout 2s; \
         grpc_ssl_verify off; grpc_ssl_trusted_certificate /etc/ca.pem; grpc_hide_header X-Inner; \
         grpc_next_upstream error; grpc_buffer_size 8k; }";
    let toml = server(lines);
    assert_eq!(left(lines), Vec::<String>::new(), "{toml}");
    for line in [
        "servers = \"https://cart:443\"\nhttp_version = \"2\"\nconnect_timeout = \"2s\"\n\
         between_bytes_timeout = \"1h\"\n",
        "ca = \"/etc/ca.pem\"",
        "verify = false",
        "host = \"cart.test\"",
        "listen = \":80 h2c\"",
    ] {
        assert!(toml.contains(line), "{line}: {toml}");
    }
    for line in [
        "first_byte_timeout = \"1h\"",
        "request_headers.set.X-From = \"edge\"",
        "response_headers.unset = \"X-Inner\"",
    ] {
        assert!(route(&toml, "/shop.Cart/*").contains(line), "{line}: {toml}");
    }
}

#[test]
fn addresses_of_grpc_servers_need_no_scheme_and_have_no_variable() {
    for (address, servers) in [
        ("127.0.0.1:9000", Some("http://127.0.0.1:9000")),
        ("grpc://h:9000", Some("http://h:9000")),
        ("unix:/run/grpc.sock", Some("unix:/run/grpc.sock")),
        ("grpc://unix:/run/grpc.sock", Some("unix:/run/grpc.sock")),
        ("grpcs://pool", Some("https://pool")),
        ("$backend", None),
        ("http://h:9000", None),
    ] {
        let lines = format!("location / {{ grpc_pass {address}; }}");
        let toml = server(&lines);
        let expected = servers.map(|own| format!("servers = \"{own}\"\nhttp_version = \"2\""));
        match expected {
            Some(expected) => assert!(toml.contains(&expected), "{address}: {toml}"),
            None => assert!(toml.contains("respond = { status = 501 }"), "{address}: {toml}"),
        }
        assert_eq!(left(&lines).is_empty(), servers.is_some(), "{address}: {toml}");
    }
}

#[test]
fn a_server_that_is_asked_over_http_2_too_is_an_origin_of_its_own() {
    let lines = "location / { proxy_pass http://h:1; } \
         location /calls/ { grpc_pass h:1; } \
         location /new/ { proxy_http_version 2; proxy_pass http://h:1; } \
         location /old/ { proxy_http_version 1.1; proxy_pass http://h:1; }";
    let toml = server(lines);
    assert_eq!(toml.matches("[[origin]]").count(), 2, "{toml}");
    assert_eq!(toml.matches("http_version = \"2\"").count(), 1, "{toml}");
    let named = |path: &str| {
        let line = route(&toml, path).lines().find(|line| line.starts_with("origin = "));
        line.map(str::to_owned)
    };
    assert!(named("/calls/*").is_some() && named("/calls/*") == named("/new/*"), "{toml}");
    assert_eq!(left(lines), Vec::<String>::new(), "{toml}");
}

#[test]
fn an_address_speaks_http_2_without_tls_for_all_its_servers() {
    let server = |name: &str, lines: &str| {
        format!(
            "server {{ server_name {name}.test; {lines} location / {{ proxy_pass http://h:1; }} }}"
        )
    };
    let (with, without) = (server("a", "listen 80; http2 on;"), server("b", "listen 80;"));
    let old = server(
        "c",
        "listen 80 http2; listen 443 ssl http2; ssl_certificate /c; ssl_certificate_key /k;",
    );
    for (text, listen) in [
        (format!("{with}{without}"), "listen = \":80 h2c\"\n"),
        (format!("{without}{with}"), "listen = \":80 h2c\"\n"),
        (format!("{without}{old}"), "listen = [\":80 h2c\", \":443 tls\"]\n"),
        (without, "listen = \":80\"\n"),
    ] {
        assert!(bare(&text).contains(listen), "{text}: {}", bare(&text));
    }
}
