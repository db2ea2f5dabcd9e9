//! Tests of whole files: the result, and the messages.

mod acme;
mod cluster;
mod crawlers;
mod diagnostics;
mod disk;
mod health;
mod ignored;
mod keys;
mod logs;
mod neighbours;
mod ports;
mod presets;
mod purge;
mod responses;
mod rules;
mod throttle;
mod tracing;
mod vary;
mod vcl;

use base::Limits;
use insta::assert_snapshot;
use message::store::StatusMatch;
use message::{Method, Status};
use origin::{Address, Balance};
use policy::Profile;
use policy::answer::ConfiguredResponse;
use policy::rules::Bypass;
use proptest::prelude::*;

use crate::*;
use diagnostics::said;

/// The messages about a file, errors or warnings, each in one line.
fn messages(text: &str) -> Vec<String> {
    let found =
        load_str(text, "larder.toml").map_or_else(|errors| errors, |(_, warnings)| warnings);
    found.into_iter().map(|problem| problem.message).collect()
}

fn load(text: &str) -> Config {
    match load_str(text, "larder.toml") {
        Ok((config, warnings)) => {
            assert!(warnings.is_empty(), "{}", render(&warnings, false));
            config
        }
        Err(errors) => panic!("{}", render(&errors, false)),
    }
}

#[test]
fn three_lines_are_a_configuration() {
    let config = load(
        "[[site]]\nhost = [\"example.com\", \"www.example.com\"]\norigin = \"http://127.0.0.1:8080\"\n",
    );
    assert_eq!(config.listen[0].text, ":80");
    assert_eq!((config.workers, config.profile), (None, Profile::Safe));
    assert_eq!(config.memory.size, MemorySize::Auto);
    assert_eq!(config.limits, Limits::default());
    assert_eq!((config.access_log, config.admin.listen), (None, None));
    assert_eq!(
        (config.x_cache, config.cache_status, config.via.as_str()),
        (false, CacheStatus::On, "larder")
    );
    assert_eq!(config.sites[0].hosts, ["example.com", "www.example.com"]);
    assert_eq!(config.sites[0].origins, [0]);
    assert_eq!(config.origins[0].servers[0].address.to_string(), "127.0.0.1:8080");
}

/// The configuration of the side-by-side runs.
#[test]
fn the_lab_s_file_is_read() {
    let config = load(
        r#"
        listen = ["127.0.0.1:8901"]
        workers = 1
        [memory]
        size = "4GiB"
        [[origin]]
        name = "fast"
        servers = ["http://127.0.0.1:9000"]
        [[origin]]
        name = "slow"
        servers = ["http://127.0.0.1:9001"]
        [[site]]
        host = ["*"]
        origin = "fast"
        [[site.route]]
        path = "/slow*"
        origin = "slow"
        [site.route.cache]
        ttl = { 200 = "1s" }
        "#,
    );
    assert_eq!((config.workers, config.memory.size), (Some(1), MemorySize::Bytes(4 << 30)));
    let site = &config.sites[0];
    assert_eq!((&site.origins[..], site.rules.settings.origin), (&[0, 1][..], 0));
    let route = &site.rules.routes[0];
    assert_eq!((route.name.as_str(), route.settings.origin), ("/slow*", 1));
    assert_eq!(route.settings.ttl, [(StatusMatch::Exact(Status::OK), 1000)]);
}

#[test]
fn a_lifetime_alone_is_for_what_nginx_takes_it_for() {
    let ttls = |ttl: &str| {
        let config = load(&format!(
            "[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:9\"\n[site.cache]\nttl = {ttl}\n\
             [[site.route]]\npath = \"/x\"\ncache = {{ ttl = {{ 302 = \"0s\", 404 = \"1s\" }} }}\n"
        ));
        let rules = &config.sites[0].rules;
        [&rules.settings, &rules.routes[0].settings].map(|settings| {
            let number = |status: &StatusMatch| match status {
                StatusMatch::Exact(status) => status.code(),
                other => panic!("{other:?}"),
            };
            settings.ttl.iter().map(|(status, ms)| (number(status), *ms)).collect::<Vec<_>>()
        })
    };
    let [site, route] = ttls("\"10m\"");
    assert_eq!(site, [(200, 600_000), (301, 600_000), (302, 600_000)]);
    assert_eq!(route, [(200, 600_000), (301, 600_000), (302, 0), (404, 1000)]);
    let [site, _] = ttls("0");
    assert_eq!(site, [(200, 0), (301, 0), (302, 0)]);
}

const FULL: &str = r#"
listen = [":80", "[::1]:8080"]
workers = 4
profile = "rfc"
trusted_proxies = ["10.0.0.0/8", "192.0.2.1"]
x_cache = true
cache_status = "detail"
via = "edge-1"
access_log = { path = "/var/log/larder.log", format = "json" }
log_ring.size = "8MiB"
log_ring.folder = "/run/ring"
log_ring.headers = ["Referer", "referer", "X-Id"]
log_ring.evidence = false
log_ring.fingerprints = "50%"

[memory]
size = "25%"
[admin]
listen = "127.0.0.1:6080"
[limits]
header_bytes = "16KiB"
idle_timeout = "1m"
connections = 5000
retry_budget = 10
first_byte_timeout = "5s"

[[origin]]
name = "app"
servers = ["http://10.0.0.2:8080", { url = "unix:/run/app.sock", weight = 3 }]
balance = "least-requests"
host = "app.internal:8080"
connect_timeout = "1s"
first_byte_timeout = "60s"
between_bytes_timeout = "20s"
total_timeout = "10m"
connections = 50
queue = 10
queue_timeout = "1s"
idle = 8
idle_timeout = "20s"
retries = 1
retry_budget = 5
[origin.probe]
path = "/health"
host = "probe.internal"
interval = "10s"
timeout = "1s"
window = 4
threshold = 2
status = 204
[origin.eject]
failures = 5
time = "30s"

[[site]]
host = ["Example.com", "*.example.com"]
profile = "safe"
origin = "app"
deny = "192.0.2.66"
[site.cache]
ttl = { any = "0s", 200 = "1s", 4xx = "1m" }
heuristic = "1h"
stale_while_revalidate = "20s"
stale_if_error = "2d"
stale_if_unreachable = "3d"
request_directives = "honour"
[site.cookies]
strip = ["banner", "ab_*"]
strip_tracking = false
key = ["lang"]
[site.query]
strip = "sid"
strip_tracking = false
sort = true
ignore = false
[site.bypass]
path = ["/wp-admin/*", "~ ^/cart"]
cookie = "wordpress_logged_in*"
query = ["preview"]
header = { "X-Requested-With" = "XMLHttpRequest", "X-Preview" = true }
[site.request_headers]
set = { X-Site = "shop" }
unset = ["X-Debug"]
[site.response_headers]
set = { X-Frame-Options = "DENY" }
unset = "X-Powered-By"

[[site.route]]
path = "/shop/*"
method = ["GET", "HEAD"]
name = "shop"
origin = "http://10.0.0.9"
allow = ["10.0.0.0/8"]
bypass = { query = true, header = "X-Nocache" }
[site.route.cache]
ttl = { 200 = "5s" }

[[site.route]]
path = "/live"
cache = false

[[site.route]]
path = ["/old/*", "*.asp"]
redirect = { to = "https://$host$path$query", status = 301 }

[[site.route]]
path = "/robots.txt"
respond = { body = "User-agent: *\n", headers = { X-From = "larder" } }

[[site]]
host = "legacy.example.com"
redirect = "https://www.example.com$path$query"
"#;

#[test]
fn every_setting_is_read() {
    let config = load(FULL);
    assert_eq!((config.listen.len(), config.workers, config.profile), (2, Some(4), Profile::Rfc));
    assert_eq!(
        (config.x_cache, config.cache_status, config.via.as_str()),
        (true, CacheStatus::Detail, "edge-1")
    );
    let log = AccessLog {
        target: LogTarget::File("/var/log/larder.log".into()),
        format: LogFormat::Json,
        secrets: false,
    };
    assert_eq!(config.access_log, Some(log));
    let headers = ["Referer", "X-Id"].map(str::to_owned).to_vec();
    let folder = Some("/run/ring".into());
    let (evidence, fingerprint_one_in) = (false, 2);
    let ring = LogRing { size: 8 << 20, folder, headers, evidence, fingerprint_one_in };
    assert_eq!(config.log_ring, Some(ring));
    assert_eq!(config.memory.size, MemorySize::Percent(25));
    assert_eq!(config.admin.listen.map(|l| l.text).as_deref(), Some("127.0.0.1:6080"));
    let expected = Limits {
        header_bytes: 16 << 10,
        idle_timeout: 60_000,
        connections: 5000,
        retry_budget: 10,
        first_byte_timeout: 5000,
        ..Limits::default()
    };
    assert_eq!(config.limits, expected);
    assert_eq!(config.sites[0].hosts, ["example.com", "*.example.com"]);
    assert_eq!(config.sites[0].origins, [0, 1]);
    assert_eq!(config.sites[0].rules.trusted_proxies.len(), 2);
    assert_eq!(config.sites[0].rules.profile, Profile::Safe);
    assert_eq!(config.sites[1].rules.profile, Profile::Rfc);
    assert!(matches!(config.sites[1].rules.settings.answer, Some(ConfiguredResponse::Redirect(_))));
}

#[test]
fn an_origin_has_its_own_bounds_and_otherwise_those_of_limits() {
    let config = load(FULL);
    let app = &config.origins[0];
    assert_eq!(app.servers[1].address, Address::Unix("/run/app.sock".into()));
    assert_eq!((app.servers[1].weight, app.balance), (3, Balance::LeastRequests));
    assert_eq!(app.host_header.as_deref(), Some("app.internal:8080"));
    assert_eq!((app.timeouts.connect_ms, app.timeouts.first_byte_ms), (1000, 60_000));
    assert_eq!((app.timeouts.between_bytes_ms, app.timeouts.total_ms), (20_000, 600_000));
    assert_eq!((app.max_connections, app.queue, app.queue_timeout_ms), (50, 10, 1000));
    assert_eq!((app.idle_max, app.idle_timeout_ms), (8, 20_000));
    assert_eq!((app.retries, app.retry_budget_percent), (1, 5));
    assert_eq!((app.eject.failures, app.eject.for_ms), (5, 30_000));
    let probe = app.probe.as_ref().expect("a probe");
    assert_eq!((probe.path.as_str(), probe.host.as_deref()), ("/health", Some("probe.internal")));
    assert_eq!((probe.interval_ms, probe.timeout_ms), (10_000, 1000));
    assert_eq!((probe.window, probe.threshold, probe.expected_status), (4, 2, 204));
    let by_url = &config.origins[1];
    assert_eq!((by_url.name.as_str(), by_url.timeouts.first_byte_ms), ("http://10.0.0.9", 5000));
}

#[test]
fn a_route_has_its_site_s_settings_and_changes_what_it_names() {
    let config = load(FULL);
    let rules = &config.sites[0].rules;
    let (site, shop) = (&rules.settings, &rules.routes[0].settings);
    let ok = StatusMatch::Exact(Status::OK);
    assert_eq!(site.ttl, [(ok, 1000), (StatusMatch::Class(4), 60_000), (StatusMatch::Any, 0)]);
    assert_eq!(shop.ttl, [(ok, 5000), (StatusMatch::Class(4), 60_000), (StatusMatch::Any, 0)]);
    assert_eq!((site.grace_ms, site.stale_if_error_ms), (Some(20_000), Some(172_800_000)));
    assert_eq!(
        (shop.heuristic_ms, shop.stale_if_unreachable_ms),
        (Some(3_600_000), Some(259_200_000))
    );
    assert_eq!(shop.honour_request_directives, Some(true));
    assert_eq!((site.bypass.len(), shop.bypass.len()), (6, 8));
    assert!(matches!(shop.bypass[6], Bypass::AnyQuery));
    assert_eq!((site.origin, shop.origin), (0, 1));
    assert_eq!((shop.allow.len(), shop.deny.len(), site.allow.len()), (1, 1, 0));
    assert_eq!(
        (shop.cookies.key.as_slice(), shop.cookies.strip.len()),
        (&["lang".to_owned()][..], 2)
    );
    assert_eq!(
        (shop.cookies.strip_tracking, shop.query.strip_tracking),
        (Some(false), Some(false))
    );
    assert!(shop.query.sort && !shop.query.ignore && shop.query.strip.len() == 1);
    assert!(shop.request_headers == site.request_headers && !shop.response_headers.is_empty());
    assert_eq!(rules.routes[0].name, "shop");
    assert_eq!(rules.routes[0].scope.methods, [Method::Get, Method::Head]);
    assert!(!rules.routes[1].settings.cache && shop.cache);
    assert_eq!(rules.routes[2].name, "/old/*");
    let Some(ConfiguredResponse::Fixed(robots)) = &rules.routes[3].settings.answer else {
        panic!("an answer")
    };
    assert_eq!((robots.status, robots.body.as_slice()), (Status::OK, &b"User-agent: *\n"[..]));
    assert_eq!(robots.fields[1].0, b"Content-Type");
}

#[test]
fn a_file_that_cannot_be_read_is_one_error() {
    let errors = load_file(std::path::Path::new("/nowhere/larder.toml")).expect_err("no file");
    assert_snapshot!(render(&errors, false), @r#"
    error: cannot read the configuration: No such file or directory (os error 2)
    --> /nowhere/larder.toml
     = help: name another: `larder check FILE`, `larder serve --config FILE`
    "#);
}

#[test]
fn a_file_is_read_with_its_name() {
    let path = std::env::temp_dir().join(format!("larder-config-{}.toml", std::process::id()));
    std::fs::write(&path, "listen = 80\n").expect("a writable folder for temporary files");
    let errors = load_file(&path).expect_err("no site, no address");
    std::fs::remove_file(&path).expect("the file just written");
    assert!(errors.iter().any(|e| e.file.name == path.display().to_string()));
}

/// Parts of files, combined at random: most results have several problems.
fn pieces() -> impl Strategy<Value = String> {
    let lines: Vec<String> = FULL.lines().map(str::to_owned).collect();
    let odd = prop::sample::select(vec![
        "[site]",
        "[[limits]]",
        "origin = 7",
        "ttl = { 1 = 2 }",
        "host = []",
        "[site.route]",
        "\u{e9} = \"",
        "= ",
        "path = \"~ (\"",
        "listen = {}",
        "[[origin.servers]]",
        "site = 1979-05-27",
        "\"\" = 0x_",
        "]]",
        "'''",
    ]);
    let line = prop_oneof![4 => prop::sample::select(lines), 1 => odd.prop_map(str::to_owned)];
    prop::collection::vec(line, 0..30).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn any_text_is_read_or_reported(text in "\\PC{0,80}") {
        check_any(&text);
    }

    #[test]
    fn any_mixture_of_settings_is_read_or_reported(text in pieces()) {
        check_any(&text);
    }

    #[test]
    fn any_cut_of_a_file_is_read_or_reported(cut in 0..FULL.len()) {
        check_any(&FULL[..cut]);
        check_any(&FULL[cut..]);
    }
}

fn check_any(text: &str) {
    match load_str(text, "larder.toml") {
        Ok((config, warnings)) => {
            assert!(!config.sites.is_empty() && !config.listen.is_empty());
            for site in &config.sites {
                let origins = site.origins.len() as u32;
                let rules = &site.rules;
                let all = rules.routes.iter().map(|r| &r.settings).chain([&rules.settings]);
                assert!(all.into_iter().all(|s| s.answer.is_some() || s.origin < origins));
            }
            render(&warnings, true);
        }
        Err(errors) => {
            assert!(errors.iter().any(|e| e.severity == Severity::Error));
            render(&errors, true);
        }
    }
}

/// The roots of a site's files, and which of them its routes use.
fn roots(text: &str) -> Vec<(String, String)> {
    let config = load(text);
    let site = &config.sites[0];
    let of = |files: Option<u32>| match files {
        Some(at) => {
            let root = &site.files[at as usize];
            (root.root.display().to_string(), root.strip.clone())
        }
        None => ("origin".to_owned(), String::new()),
    };
    let routes = site.rules.routes.iter().map(|route| of(route.settings.files));
    routes.chain([of(site.rules.settings.files)]).collect()
}

#[test]
fn a_directory_alone_is_alias_for_a_prefix_and_root_elsewhere() {
    let text = r#"[[origin]]
name = "app"
servers = "http://a"
[[site]]
host = "*"
files = "/site"
[[site.route]]
path = "/static/*"
files = "/x"
[[site.route]]
path = "/deep/er/**"
files = { alias = "/x" }
[[site.route]]
path = "/static*"
files = "/x"
[[site.route]]
path = "*.css"
files = "/x"
[[site.route]]
path = ["/a", "*.js"]
files = "/x"
[[site.route]]
path = "/whole/*"
files = { root = "/x" }
[[site.route]]
path = "/inherits/*"
[[site.route]]
path = "/app/*"
origin = "app"
"#;
    let expected = [
        ("/x", "/static"),
        ("/x", "/deep/er"),
        ("/x", ""),
        ("/x", ""),
        ("/x", ""),
        ("/x", ""),
        ("/site", ""),
        ("origin", ""),
        ("/site", ""),
    ];
    assert_eq!(roots(text), expected.map(|(root, strip)| (root.to_owned(), strip.to_owned())));
}

#[test]
fn the_static_preset_fits_a_site_of_files() {
    let text = "[[site]]\nhost = \"*\"\npreset = \"static\"\nfiles = \"/srv\"\n";
    let roots = roots(text);
    assert_eq!(roots.len(), 3, "its routes and the site");
    assert!(roots.iter().all(|(root, strip)| root == "/srv" && strip.is_empty()));
}

#[test]
fn logs_go_to_a_syslog_daemon_too() {
    let target = |text: &str| {
        let text =
            format!("access_log = {text:?}\n[[site]]\nhost = \"*\"\norigin = \"http://a\"\n");
        load(&text).access_log.map(|log| log.target)
    };
    assert_eq!(target("syslog"), Some(LogTarget::SyslogPath("/dev/log".into())));
    assert_eq!(target("syslog:/run/log"), Some(LogTarget::SyslogPath("/run/log".into())));
    let remote = |text: &str| LogTarget::SyslogAddress(text.parse().expect("an address"));
    assert_eq!(target("syslog:192.0.2.1"), Some(remote("192.0.2.1:514")));
    assert_eq!(target("syslog:[::1]:5514"), Some(remote("[::1]:5514")));
}

#[test]
fn what_the_log_ring_cannot_be_is_said() {
    let of = |ring: &str| {
        said(&format!("log_ring = {ring}\n[[site]]\nhost = \"*\"\norigin = \"http://a\"\n"))
    };
    for (ring, expected) in [
        ("\"much\"", "`log_ring`: "),
        ("\"1TiB\"", "`log_ring` is memory: at most 64GiB"),
        ("{ folder = \"ring\" }", "`folder` takes an absolute path"),
        ("{ headers = [\"a b\"] }", "`headers`: "),
        ("{ sise = \"1MiB\" }", "did you mean `size`?"),
    ] {
        assert!(of(ring).contains(expected), "{}", of(ring));
    }
    let many: Vec<_> = (0..17).map(|n| format!("X-{n}")).collect();
    assert!(of(&format!("{{ headers = {many:?} }}")).contains("at most 16 fields"));
    let load = |ring: &str| {
        load(&format!("log_ring = {ring}\n[[site]]\nhost = \"*\"\norigin = \"http://a\"\n"))
            .log_ring
    };
    assert_eq!((load("\"off\""), load("false")), (None, None));
    assert_eq!(load("\"64MiB\"").map(|ring| ring.size), Some(64 << 20));
}

#[test]
fn what_only_a_restart_changes_is_named() {
    const SITE: &str = "[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:1\"\n";
    let first = load(SITE);
    for (top, names) in [
        ("via = \"edge\"\n[limits]\nvariants = 3\n", &[][..]),
        ("listen = \":81\"\nworkers = 3\n", &["listen", "workers"]),
        ("log_ring = \"off\"\n[run]\nuser = \"root\"\n", &["[run]", "log_ring"]),
        ("[tracing]\nendpoint = \"http://127.0.0.1:4318\"\n", &["[tracing]"]),
        ("[varnish_cli]\nlisten = \"127.0.0.1:6082\"\n", &["[varnish_cli] listen"]),
        ("[disk]\nsize = \"1GiB\"\n", &["[disk]"]),
        ("[limits]\ndisk_queue_bytes = \"32MiB\"\n", &["[limits] disk_queue_bytes"]),
        ("[limits]\nblocking_threads = 3\n", &["[limits] blocking_threads"]),
    ] {
        let next = load(&format!("{top}{SITE}"));
        assert_eq!(first.fixed_changes(&next), names, "{top}");
        assert!(next.fixed_changes(&next).is_empty(), "{top}");
    }
}

#[test]
fn a_setting_that_stands_elsewhere_takes_no_restart() {
    let site = "[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:1\"\n";
    let text = format!(
        "[run]\nuser = \"root\"\n[disk]\npath = \"/c\"\nsize = \"1GiB\"\n[cluster]\n\
         servers = \"nats://127.0.0.1:1\"\nnkey = \"/n\"\nsecret_file = \"/s\"\n{site}"
    );
    let moved = load(&format!("# A line more.\n{text}"));
    assert!(load(&text).fixed_changes(&moved).is_empty());
}

#[test]
fn settings_of_the_whole_daemon_are_reported_as_they_are_in_force() {
    let site = "[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:1\"\n";
    let text =
        format!("http2 = false\ncache_status = \"detail\"\n[memory]\nsize = \"25%\"\n{site}");
    let all = in_force(&load(&text));
    let value = |name: &str| {
        let found = all.iter().find(|own| own.name == name)?;
        Some((found.key.default.trim_matches('"'), found.value.as_str()))
    };
    assert_eq!(value("http2"), Some(("true", "false")));
    assert_eq!(value("cache_status"), Some(("on", "detail")));
    assert_eq!(value("memory.size"), Some(("auto", "25%")));
    assert_eq!(value("workers"), Some(("auto", "auto")));
    assert_eq!(all.len(), 7);
}
