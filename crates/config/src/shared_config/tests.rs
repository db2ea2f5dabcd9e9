//! Tests of the shared configuration: which key is allowed in which file, and the messages.

use super::*;
use crate::{Severity, load_str, render};

const OWN: &str = "listen = \"127.0.0.1:0\"\nvia = \"own\"\n[limits]\nretries = 3\n[cluster]\n\
                   servers = \"nats://127.0.0.1:1\"\nsecret_file = \"/s\"\n\
                   configuration = \"shared\"\n";
const SITE: &str = "[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:1\"\n";

fn both(own: &str, shared: &str) -> Result<(Config, Problems), Problems> {
    let (own, shared) =
        (NamedText { name: "own.toml", text: own }, NamedText { name: "all.toml", text: shared });
    load_shared(own, shared)
}

fn refused(own: &str, shared: &str) -> String {
    render(&both(own, shared).expect_err("it is refused"), false)
}

fn checked(shared: &str) -> Result<Vec<PathBuf>, String> {
    let shared = NamedText { name: "all.toml", text: shared };
    check_shared(shared).map_err(|found| render(&found, false))
}

#[test]
fn every_key_of_the_file_is_shared_or_a_nodes_own() {
    // The author of a new key decides. These are a node's own.
    let own = [
        "access_log",
        "admin",
        "cluster",
        "disk",
        "error_log",
        "health",
        "htcp",
        "listen",
        "log_ring",
        "memory",
        "metrics",
        "run",
        "tls",
        "tracing",
        "varnish_cli",
        "workers",
    ];
    let shared = [
        "cache_status",
        "client_field",
        "compression",
        "crawlers",
        "forwarded",
        "geoip",
        "health_check",
        "http2",
        "limits",
        "neighbour",
        "origin",
        "profile",
        "raw_utf8",
        "site",
        "trusted_proxies",
        "vcl",
        "via",
        "webhook",
        "x_cache",
    ];
    for (is_own, expected) in [(true, &own[..]), (false, &shared[..])] {
        let keys = (TOP.keys)().into_iter().filter(|key| key.is(Mark::Own) == is_own);
        let mut keys: Vec<_> = keys.map(|key| key.name).collect();
        keys.sort_unstable();
        assert_eq!(keys, expected);
    }
    for key in own {
        let why = checked(&format!("{key} = 1\n")).expect_err(key);
        assert!(why.contains(&format!("`{key}` is each node's own")), "{why}");
        assert!(why.contains("all.toml:1:1"), "{why}");
    }
}

#[test]
fn a_limit_that_takes_a_restart_is_a_nodes_own() {
    let (first, _) = both(OWN, SITE).expect("a configuration");
    for spec in base::limits::TABLE {
        let mut next = first.clone();
        *next.limits.slot(spec.limit) += 1;
        let stays = !first.fixed_changes(&next).is_empty();
        assert!(!stays || spec.is_own, "{}", spec.name);
    }
    let own = base::limits::TABLE.iter().filter(|spec| spec.is_own);
    let mut own: Vec<_> = own.map(|spec| spec.name).collect();
    own.sort_unstable();
    let expected = [
        "blocking_threads",
        "cluster_configuration_bytes",
        "cluster_lease",
        "cluster_queue",
        "cluster_secret_bytes",
        "cluster_secrets",
        "cluster_wait",
        "descriptors_reserve",
        "disk_index_bytes",
        "disk_queue_bytes",
        "disk_retry",
    ];
    assert_eq!(own, expected);
    let why = checked("[limits]\nretries = 1\ncluster_wait = \"1s\"\n").expect_err("one is");
    assert!(why.contains("the limit `cluster_wait` is each node's own"), "{why}");
    assert!(why.contains("all.toml:3:1") && !why.contains("`retries`"), "{why}");
}

#[test]
fn both_make_one_configuration() {
    let shared = format!("http2 = false\n[limits]\nheader_count = 50\n{SITE}");
    let (config, warnings) = both(OWN, &shared).expect("a configuration");
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!((config.via.as_str(), config.http2, config.sites.len()), ("own", false, 1));
    assert_eq!((config.limits.retries, config.limits.header_count), (3, 50));
    // The result does not depend on which file has the key.
    let (other, _) = both(&format!("http2 = false\n{OWN}"), SITE).expect("a configuration");
    assert!(config.fixed_changes(&other).is_empty());
    let (alone, _) = load_str(OWN, "own.toml").expect("a node starts without what all share");
    assert!(alone.sites.is_empty());
    assert!(refused(OWN, "http2 = false\n").contains("no [[site]]"), "nothing would be served");
}

#[test]
fn what_a_nodes_own_file_lacks_may_be_shared() {
    let own = OWN.replace("\"127.0.0.1:0\"", "[\"127.0.0.1:0 proxy\", \"127.0.0.1:0 tls\"]");
    let own = format!(
        "{own}[tls]\nacme = {{ email = \"ops@example.com\" }}\n\
         [[origin]]\nname = \"app\"\nservers = \"http://127.0.0.1:1\"\n\
         [[neighbour]]\norigin = \"http://127.0.0.1:2\"\nsites = \"example.com\"\n"
    );
    let (_, warnings) = load_str(&own, "own.toml").expect("a node starts with it");
    assert!(warnings.is_empty(), "{}", render(&warnings, false));
    let shared =
        "trusted_proxies = \"10.0.0.1\"\n[[site]]\nhost = \"example.com\"\norigin = \"app\"\n";
    let (config, warnings) = both(&own, shared).expect("a configuration");
    assert!(warnings.is_empty() && config.sites.len() == 1, "{}", render(&warnings, false));
    for (lacking, why) in [
        (shared.replace("trusted_proxies = \"10.0.0.1\"\n", ""), "no proxy is trusted"),
        (shared.replace("example.com", "*"), "no site has `example.com` as its first host"),
        (shared.replace("\"app\"", "\"http://127.0.0.1:3\""), "no site uses the origin `app`"),
    ] {
        let said = both(&own, &lacking).map_or_else(
            |problems| render(&problems, false),
            |(_, warnings)| render(&warnings, false),
        );
        assert!(said.contains(why) && said.contains("own.toml:"), "{said}");
    }
}

#[test]
fn what_is_found_out_late_is_reported_where_it_stands() {
    let tls = "tls = { cert = \"/a.pem\", key = \"/a.key\" }\n";
    let (_, warnings) = both(OWN, &format!("{SITE}{tls}")).expect("a configuration");
    let said = render(&warnings, false);
    assert!(said.contains("a certificate, and no TLS listener"), "{said}");
    assert!(said.contains("all.toml:4:"), "{said}");
    let own = OWN.replace("\"127.0.0.1:0\"", "\"127.0.0.1:0 tls\"");
    let pair = "[[site]]\nhost = \"b\"\norigin = \"http://127.0.0.1:1\"\n".to_owned() + tls;
    let why = refused(&own, &format!("{SITE}tls = {{ client_ca = \"/ca.pem\" }}\n{pair}"));
    assert!(why.contains("`client_ca` in a site without") && why.contains("all.toml:4:"), "{why}");
}

#[test]
fn a_key_that_stands_in_both_is_reported_with_both_places() {
    let why = refused(OWN, &format!("http2 = false\nvia = \"all\"\n[limits]\nretries = 1\n{SITE}"));
    assert!(why.contains("`via` stands in own.toml:2, too"), "{why}");
    assert!(why.contains("all.toml:2:1"), "{why}");
    assert!(why.contains("the limit `retries` stands in own.toml:4, too"), "{why}");
    assert!(why.contains("all.toml:4:1"), "{why}");
}

#[test]
fn what_is_wrong_is_shown_in_its_own_file() {
    let found = both(OWN, "[[site]]\nhost = \"*\"\norigin = \"nowhere\"\nnonsense = 1\n");
    let found = found.expect_err("it is refused");
    assert!(found.iter().all(|one| one.file.name == "all.toml"), "{found:?}");
    assert_eq!(found.last().and_then(Diagnostic::position), Some((4, 1)));
    let own = OWN.replace("via = \"own\"", "via = \"no word\"");
    let why = refused(&own, SITE);
    assert!(why.contains("own.toml:2:7") && !why.contains("all.toml"), "{why}");
    let twice = format!("{SITE}[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:2\"\n");
    let why = refused(OWN, &twice);
    assert!(why.contains("all.toml:5:8") && why.contains("2 | host"), "both places: {why}");
}

#[test]
fn what_is_no_toml_is_reported_with_its_file_alone() {
    for (own, shared, file) in [(OWN, "a = = 1\n", "all.toml:1"), ("a = = 1\n", SITE, "own.toml:1")]
    {
        let why = refused(own, shared);
        assert!(why.contains(file), "{why}");
    }
    assert!(checked("a = = 1\n").is_err());
}

#[test]
fn places_that_last_are_those_of_their_file() {
    let shared = format!(
        "[[origin]]\nname = \"a\"\nservers = \"https://127.0.0.1:1\"\n\
                          tls = {{ ca = \"/nowhere\" }}\n{}",
        SITE.replace("http://127.0.0.1:1", "a")
    );
    let (config, _) = both(OWN, &shared).expect("a configuration");
    let file = config.origin_tls[0].as_ref().and_then(|own| own.ca.clone()).expect("a file");
    let told = file.place.error("no such file".to_owned());
    assert_eq!((told.severity, told.file.name.as_str()), (Severity::Error, "all.toml"));
    assert_eq!(told.position().map(|(line, _)| line), Some(4));
}

#[test]
fn the_vcl_files_are_named_once_each() {
    let site = |host: &str, vcl: &str| format!("[[site]]\nhost = \"{host}\"\nvcl = \"{vcl}\"\n");
    let text = format!(
        "vcl = \"/top.vcl\"\n{}{}{}",
        site("a", "/a.vcl"),
        site("b", "/a.vcl"),
        site("c", "/c.vcl")
    );
    let paths = checked(&text).expect("it may be shared");
    assert_eq!(paths, ["/a.vcl", "/c.vcl", "/top.vcl"].map(PathBuf::from));
}
