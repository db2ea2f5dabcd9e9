//! Configurations in the style of public ones, each with what must come of it.

use std::path::{Path, PathBuf};

use crate::{Fate, Translated, read_path, translate};

/// All configurations, and lines that must stand in their results.
const CORPUS: &[(&str, &[&str])] = &[
    ("discourse.conf", &[]),
    ("django.conf", &[]),
    (
        "drupal.conf",
        &[
            "redirect = { to = \"http://site.example$path$query\", status = 301 }",
            "try_files = [\"$uri\", \"/index.php\"]",
        ],
    ),
    (
        "gateway.conf",
        &[
            "when.client = [\"198.51.100.7\", \"203.0.113.0/24\"]",
            "when.user_agent = [\"GPTBot\", \"Bytespider\", \"scrapy\"]",
            "method = \"TRACK\"",
            "when.header = { X-Scan = \"~ [^0]|00\" }",
            "when.cookie = { banned = \"yes\" }",
            "redirect = { to = \"/docs/v2/$1$query\", status = 302 }",
            "rewrite = \"/users?name=$1&$args\"",
            "rewrite = \"/users?name=$1\"",
            "when.not = { cookie = { preview = \"on\" } }",
            "when.not = { query = { key = [\"~* ^9d1a$\", \"~* ^77c2$\"] } }",
            "when.not = { method = [\"POST\", \"PUT\"] }",
            "redirect = { to = \"/landing/$1$query\", status = 302 }",
        ],
    ),
    ("gitlab.conf", &["when.user_agent = [\"AhrefsBot\", \"SemrushBot\"]", "method = \"OPTIONS\""]),
    ("magento.conf", &[]),
    ("mastodon.conf", &[]),
    ("nextcloud.conf", &["when.user_agent = \"~ ^DavClnt\""]),
    ("node.conf", &[]),
    ("static.conf", &[]),
    ("wordpress-maps.conf", &[]),
    ("wordpress-roots.conf", &["redirect = { to = \"/product/$1/$query\", status = 302 }"]),
    (
        "wordpress-site.conf",
        &[
            "redirect_https = 301",
            "redirect = { to = \"/feeds/$1\", status = 301 }",
            "path = \"~ ^/(staging|intern)/\"",
            "when.not = { client = [\"10.20.0.0/16\", \"2001:db8:20::/48\"] }",
        ],
    ),
    (
        "wordpress-tools.conf",
        &["when.user_agent = [\"sqlmap\", \"nikto\", \"masscan\", \"zgrab\"]"],
    ),
    ("wordpress-tutorial.conf", &[]),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

fn of(name: &str) -> Translated {
    let source = read_path(&folder().join(name), None).expect("well-formed");
    let translated = translate(&source).expect("a valid result");
    assert_eq!(translated.report.counts().total(), source.count, "{name}");
    translated
}

#[test]
fn the_table_has_every_configuration() {
    let entries = std::fs::read_dir(folder()).expect("a folder");
    let names = entries.map(|entry| entry.expect("a file").file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".conf")).collect();
    names.sort();
    assert_eq!(names, CORPUS.iter().map(|(name, _)| *name).collect::<Vec<_>>());
}

#[test]
fn nine_of_ten_directives_of_each_configuration_are_carried_or_default() {
    let mut short = String::new();
    for (name, _) in CORPUS {
        let translated = of(name);
        let counts = translated.report.counts();
        if counts.percent() < 90 {
            short.push_str(&format!("{name}: {counts:?}\n{}", translated.report.text()));
        }
    }
    assert!(short.is_empty(), "{short}");
}

#[test]
fn results_have_the_settings_that_were_meant() {
    for (name, lines) in CORPUS {
        let toml = of(name).toml;
        for line in *lines {
            assert!(toml.lines().any(|own| own == *line), "{name}: {line}\n{toml}");
        }
    }
}

#[test]
fn what_is_left_has_a_reason() {
    for (name, _) in CORPUS {
        for entry in of(name).report.entries {
            if let Fate::Left { why, .. } = &entry.fate {
                let is_unknown = why.contains("is not a directive that is known here");
                assert!(!why.is_empty() && !is_unknown, "{name}: {}: {why}", entry.line);
            }
        }
    }
}
