//! Configurations of Caddy, Squid and varnishd.

use proptest::prelude::*;

use crate::{Fate, SourceKind, Translated, fuzz, read_text, translate};

fn translated(name: &str, text: &str) -> Translated {
    let source = read_text(name, text, None).expect("well-formed");
    let translated = translate(&source).expect("a valid result");
    assert_eq!(translated.report.counts().total(), source.count, "{text}");
    translated
}

fn bare(own: &Translated) -> String {
    let lines = own.toml.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| format!("{line}\n")).collect()
}

fn left(own: &Translated) -> Vec<&str> {
    let entries = own.report.entries.iter();
    let left = entries.filter(|entry| matches!(entry.fate, Fate::Left { .. }));
    left.map(|entry| entry.line.as_str()).collect()
}

const CADDY: &str = r#"
{
    email ops@example.com
}
(fields) {
    header {
        X-Content-Type-Options nosniff
        -Server
    }
}
example.com, www.example.com {
    import fields
    encode zstd gzip
    root * /srv/www
    php_fastcgi unix//run/php.sock
    file_server
    @bots header User-Agent *scanner*
    respond @bots 403
    @inner {
        path /inner/*
        not remote_ip 10.0.0.0/8
    }
    respond @inner "no" 403
    redir /old /new permanent
    handle_path /api/* {
        reverse_proxy 10.0.0.2:8080 10.0.0.3:8080 {
            lb_policy least_conn
            health_uri /health
        }
    }
}
:8080 {
    reverse_proxy localhost:3000
}
"#;

#[test]
fn a_caddyfile_becomes_sites_and_routes() {
    let own = translated("Caddyfile", CADDY);
    assert_eq!(left(&own), Vec::<&str>::new(), "{}", own.toml);
    let toml = bare(&own);
    for lines in [
        "acme = { email = \"ops@example.com\" }\n",
        "host = [\"example.com\", \"www.example.com\"]\nredirect_https = 308\n",
        "servers = \"fastcgi+unix:/run/php.sock\"\nroot = \"/srv/www\"\n",
        "path = \"/old\"\nredirect = { to = \"/new\", status = 301 }\n",
        "path = \"/api/*\"\norigin = \"app\"\nstrip_prefix = \"/api\"\n",
        "when.header = { User-Agent = \"*scanner*\" }\nrespond = { status = 403 }\n",
        "path = \"/inner/*\"\nwhen.not = { client = \"10.0.0.0/8\" }\n\
         respond = { status = 403, body = \"no\" }\n",
        "balance = \"least-requests\"\nprobe = \"/health\"\n",
        "host = \"*\"\norigin = \"app-3\"\n",
        "response_headers.set.X-Content-Type-Options = \"nosniff\"\n",
    ] {
        assert!(toml.contains(lines), "{lines}\n{toml}");
    }
}

#[test]
fn upstreams_of_caddy_get_their_version_of_http() {
    for (address, transport, version, remains) in [
        ("h2c://a:1", "", Some("2"), &[][..]),
        ("h2c://a:1", "versions h2c 2", Some("2"), &[]),
        ("a:1", "versions h2c 2", Some("2"), &[]),
        ("a:1", "versions 1.1 2", None, &[]),
        ("https://a", "versions 1.1 2", Some("auto"), &[]),
        ("https://a", "versions h2c 2", Some("auto"), &[]),
        ("https://a", "versions 1.1", None, &[]),
        ("https://a", "versions 3", None, &["versions 3;"]),
        ("a:1", "versions h2c 2\n dial_timeout 3s", Some("2"), &["dial_timeout 3s;"]),
    ] {
        let inner = match transport {
            "" => String::new(),
            lines => format!("transport http {{\n {lines}\n }}\n"),
        };
        let text = format!(":80 {{\n reverse_proxy {address} {{\n {inner} }}\n}}\n");
        let own = translated("Caddyfile", &text);
        let toml = bare(&own);
        let line = toml.lines().find(|line| line.starts_with("http_version"));
        let expected = version.map(|version| format!("http_version = \"{version}\""));
        assert_eq!(line, expected.as_deref(), "{address} {transport}: {toml}");
        assert_eq!(left(&own), remains, "{address} {transport}: {toml}");
    }
}

#[test]
fn a_guard_of_a_caddyfile_that_is_not_carried_over_lets_no_client_in() {
    for guard in [
        "basic_auth {\n bob $2a$14$x\n }\n",
        "@x expression `{path}.startsWith(\"/x\")`\nrespond @x 403\n",
        "forward_auth 127.0.0.1:9 {\n uri /x\n }\n",
    ] {
        let own =
            translated("Caddyfile", &format!("http://example.com {{\n{guard}\nrespond hi\n}}\n"));
        assert!(bare(&own).contains("respond = { status = 403 }"), "{guard}\n{}", own.toml);
        assert!(!left(&own).is_empty(), "{guard}");
    }
}

const SQUID: &str = "
http_port 80 accel defaultsite=a.test vhost
https_port 443 accel tls-cert=/c.pem tls-key=/k.pem defaultsite=a.test
cache_peer 10.0.0.2 parent 8080 0 no-query originserver round-robin name=one
cache_peer 10.0.0.3 parent 8080 0 no-query originserver name=two weight=2
acl first dstdomain a.test .b.test
acl second dstdomain c.test
acl office src 10.1.0.0/16
acl bad src 192.0.2.0/24
acl purge method PURGE
acl localhost src 127.0.0.1/32
cache_peer_access one allow first
cache_peer_access two allow second
http_access deny bad
http_access allow purge localhost
http_access deny purge
http_access allow first
http_access allow second office
http_access deny all
cache_mem 512 MB
visible_hostname a.test
access_log daemon:/var/log/squid/access.log combined
refresh_pattern . 0 20% 4320
";

#[test]
fn an_accelerator_becomes_a_site_for_each_list_of_hosts() {
    let own = translated("squid.conf", SQUID);
    assert_eq!(left(&own), Vec::<&str>::new(), "{}", own.toml);
    let toml = bare(&own);
    for lines in [
        "listen = [\":80\", \":443 tls\"]\n",
        "purge.allow = ",
        "size = \"512MiB\"\n",
        "host = [\"a.test\", \"b.test\", \"*.b.test\"]\n",
        "origin = \"app\"\n",
        "host = \"c.test\"\n",
        "origin = \"app-2\"\n",
        "servers = { url = \"http://10.0.0.3:8080\", weight = 2 }\n",
        "when.client = \"192.0.2.0/24\"\nrespond = { status = 403 }\n",
    ] {
        assert!(toml.contains(lines), "{lines}\n{toml}");
    }
    let second = toml.split("[[site]]").nth(2).unwrap_or_default();
    assert!(second.contains("when.not = "), "{toml}");
    assert!(second.contains("client = \"10.1.0.0/16\""), "{toml}");
    let first = toml.split("[[site]]").nth(1).unwrap_or_default();
    assert!(!first.contains("10.1.0.0/16"), "{toml}");
}

#[test]
fn what_squid_denies_by_something_unknown_stays_denied() {
    let text = "http_port 80 accel vhost\ncache_peer a.test parent 80 0 originserver\n\
                acl day time MTWHF\nacl all src all\nhttp_access allow day\nhttp_access deny all\n";
    let own = translated("squid.conf", text);
    assert!(bare(&own).contains("path = \"/*\"\nrespond = { status = 403 }\n"), "{}", own.toml);
    assert!(left(&own).contains(&"http_access allow day;"), "{:?}", left(&own));
    let forward = translated("squid.conf", "http_port 3128\nhttp_access allow all\n");
    assert_eq!(left(&forward).len(), 2);
}

#[test]
fn flags_of_varnishd_become_a_site_with_its_program() {
    let unit = [
        "[Unit]\nDescription=x\n[Service]\nExecStart=/usr/sbin/varnishd \\\n",
        " -j unix,user=vcache \\\n -F -a :6081 -a 127.0.0.1:8443,PROXY -T localhost:6082 \\\n",
        " -f /etc/varnish/default.vcl -S /etc/varnish/secret -s malloc,256m -p default_ttl=60\n",
    ];
    let unit = unit.concat();
    let own = translated("varnish.service", &unit);
    assert_eq!(left(&own), ["-p default_ttl=60;"]);
    let toml = bare(&own);
    for lines in [
        "listen = [\":6081\", \"127.0.0.1:8443 proxy\"]\n",
        "[varnish_cli]\nlisten = \"127.0.0.1:6082\"\nsecret = \"/etc/varnish/secret\"\n",
        "[memory]\nsize = \"256MiB\"\n",
        "[run]\nuser = \"vcache\"\n",
        "host = \"*\"\nvcl = \"/etc/varnish/default.vcl\"\n",
    ] {
        assert!(toml.contains(lines), "{lines}\n{toml}");
    }
}

/// Lines of a Caddyfile in any order and depth.
fn caddyfile() -> impl Strategy<Value = String> {
    let names = prop_oneof![
        Just("a.test"),
        Just(":80"),
        Just("(s)"),
        Just("import s"),
        Just("handle"),
        Just("handle_path"),
        Just("reverse_proxy"),
        Just("php_fastcgi"),
        Just("root"),
        Just("file_server"),
        Just("respond"),
        Just("redir"),
        Just("header"),
        Just("basic_auth"),
        Just("@m"),
        Just("not"),
        Just("path"),
        Just("tls"),
        Just("log"),
        Just("strange"),
    ];
    let args = prop_oneof![
        Just(""),
        Just("/a/*"),
        Just("* /srv"),
        Just("@m 403"),
        Just("127.0.0.1:1"),
        Just("unix//run/x"),
        Just("\"x {y}\""),
        Just("path /x"),
        Just("X y"),
        Just("/a https://{host}{uri} permanent"),
    ];
    let line = (names, args).prop_map(|(name, args)| format!("{name} {args}"));
    let leaf = line.prop_map(|line| format!("{line}\n"));
    let block = leaf.prop_recursive(4, 40, 6, |inner| {
        proptest::collection::vec(inner, 1..6).prop_map(|inner| {
            let (first, rest) = inner.split_first().expect("one at least");
            format!("{} {{\n{}}}\n", first.lines().next().unwrap_or("x"), rest.concat())
        })
    });
    proptest::collection::vec(block, 0..5).prop_map(|blocks| blocks.concat())
}

proptest! {
    #[test]
    fn every_line_of_any_caddyfile_is_answered(text in caddyfile()) {
        if let Ok(source) = read_text("Caddyfile", &text, None) {
            prop_assert_eq!(source.kind, SourceKind::Caddy);
            let translated = translate(&source).expect("a valid result");
            prop_assert_eq!(translated.report.counts().total(), source.count, "{}", text);
        }
    }

    #[test]
    fn any_text_of_another_program_is_read_or_a_fault(text in "[a-z!.:/ {}\"\\\\=\n-]{0,80}") {
        fuzz::others(text.as_bytes());
    }
}
