//! Layers of crates: the table of ARCHITECTURE.md, compared with Cargo's manifests.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::problem::Problem;

/// Every crate and its layer. A crate uses only crates of lower layers.
const LAYERS: &[(&str, u32)] = &[
    ("base", 0),
    ("crypto", 0),
    ("linear", 0),
    ("rt", 1),
    ("message", 1),
    ("tls", 1),
    ("proxyproto", 1),
    ("fingerprint", 1),
    ("h1", 2),
    ("h2", 2),
    ("fastcgi", 2),
    ("codec", 2),
    ("esi", 2),
    ("sitemap", 2),
    ("policy", 2),
    ("agents", 2),
    ("files", 2),
    ("ban", 2),
    ("varnishcli", 2),
    ("disk", 2),
    ("vcl", 3),
    ("observe", 2),
    ("cache", 3),
    ("purge", 3),
    ("origin", 3),
    ("flow", 4),
    ("net", 5),
    ("config", 4),
    ("acme", 5),
    ("admin", 5),
    ("advise", 5),
    ("cluster", 5),
    ("daemon", 6),
    ("bench", 6),
    ("tools", 5),
    ("import", 5),
    ("manual", 6),
    ("larder", 7),
];

/// Tools and test helpers. No shipped crate depends on them, except for its tests.
const TOOLS: &[&str] = &["counts", "sim", "testkit", "xtask"];

/// Further restrictions within the layers: the two sides of the hourglass meet only in `flow`.
const NARROWED: &[(&str, &[&str])] = &[
    (
        "config",
        &["base", "message", "codec", "tls", "policy", "files", "observe", "origin", "purge"],
    ),
    (
        "net",
        &[
            "base",
            "rt",
            "message",
            "h1",
            "h2",
            "tls",
            "proxyproto",
            "files",
            "observe",
            "cache",
            "flow",
        ],
    ),
    ("advise", &["base", "codec", "message", "policy", "observe", "config"]),
    ("agents", &["base", "crypto", "message"]),
    ("acme", &["base", "rt", "message", "h1", "tls"]),
    ("admin", &["base", "rt", "message"]),
    ("cluster", &["base", "crypto", "rt", "purge"]),
    ("bench", &["base", "message", "h1", "sitemap", "tls", "observe"]),
    ("tools", &["base", "message", "h1", "observe"]),
    ("manual", &["tools"]),
    ("import", &["base", "linear", "config"]),
];

/// Libraries that only some crates may depend on: sockets, timers and the command line stay out of
/// the pure crates.
const RESTRICTED: &[(&str, &[&str])] = &[
    (
        "tokio",
        &[
            "rt", "acme", "admin", "cluster", "origin", "flow", "net", "daemon", "bench", "larder",
            "testkit", "sim",
        ],
    ),
    ("socket2", &["origin", "net", "daemon"]),
    ("async-nats", &["cluster"]),
    ("hyper", &["admin"]),
    ("hyper-util", &["admin"]),
    ("hickory-resolver", &["origin"]),
    ("clap", &["tools", "manual", "larder"]),
    ("clap_complete", &["manual"]),
    ("clap_mangen", &["manual"]),
    ("roff", &["manual"]),
    ("nix", &["daemon"]),
    ("ratatui", &["tools"]),
    ("tikv-jemalloc-ctl", &["daemon"]),
    ("tikv-jemallocator", &["larder"]),
    ("rustls", &["tls"]),
    ("tokio-rustls", &["acme", "admin", "origin", "bench"]),
    ("h2-client", &["bench"]),
    ("instant-acme", &["acme"]),
    ("x509-cert", &["tls"]),
    ("x509-ocsp", &["tls"]),
    ("aws-lc-rs", &["crypto"]),
    ("ring", &["crypto"]),
    ("toml", &["config"]),
    (
        "rustix",
        &["base", "rt", "disk", "files", "net", "config", "daemon", "bench", "tools", "testkit"],
    ),
    ("quick-xml", &["sitemap"]),
    ("brotli", &["codec"]),
    ("zstd-safe", &["codec"]),
];

/// A dependency.
#[derive(Debug)]
struct Edge<'a> {
    from: &'a str,
    to: &'a str,
    dev: bool,
}

/// Checks the workspace at `root`.
pub(crate) fn check(root: &Path) -> Result<Vec<Problem>, String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("cargo metadata: {error}"))?;
    Ok(of_metadata(&metadata))
}

fn of_metadata(metadata: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let from = package["name"].as_str().unwrap_or_default();
        let mut say = |what| {
            problems.push(Problem { file: format!("crates/{from}/Cargo.toml"), line: 1, what });
        };
        if layer(from).is_none() && !TOOLS.contains(&from) {
            say(format!("crate `{from}` has no layer; give it one in ARCHITECTURE.md and xtask"));
        }
        if package["description"].as_str().is_none_or(str::is_empty) {
            say("no description".to_owned());
        }
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            // A renamed dependency is not this workspace's crate of that name.
            let named = dependency["rename"].as_str().or_else(|| dependency["name"].as_str());
            let to = named.unwrap_or_default();
            let dev = dependency["kind"].as_str() == Some("dev");
            if let Some(what) = broken(&Edge { from, to, dev }) {
                say(what);
            }
        }
    }
    problems
}

/// The rule that an edge breaks, if any. Tests may use tools, any library, and other crates of
/// their layer, but no higher crate.
fn broken(edge: &Edge<'_>) -> Option<String> {
    let Edge { from, to, dev } = edge;
    if *dev && from == to {
        // A crate's tests enable a feature of the crate.
        return None;
    }
    if TOOLS.contains(to) {
        return (!dev && !TOOLS.contains(from)).then(|| format!("`{to}` is for tests only"));
    }
    if TOOLS.contains(from) && layer(to).is_some() {
        return None;
    }
    if let (Some(own), Some(other)) = (layer(from), layer(to)) {
        let beside = *dev && other == own && from != to;
        if other >= own && !beside {
            return Some(format!("`{from}` (layer {own}) must not use `{to}` (layer {other})"));
        }
        let narrowed = NARROWED.iter().find(|(name, _)| name == from);
        return narrowed
            .filter(|(_, allowed)| !allowed.contains(to))
            .map(|_| format!("`{from}` must not use `{to}`"));
    }
    let (_, allowed) = RESTRICTED.iter().find(|(name, _)| name == to)?;
    (!dev && !allowed.contains(from)).then(|| format!("`{to}` is only for {}", allowed.join(", ")))
}

fn layer(name: &str) -> Option<u32> {
    LAYERS.iter().find(|(own, _)| *own == name).map(|(_, layer)| *layer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(from: &str, to: &str, dev: bool) -> bool {
        broken(&Edge { from, to, dev }).is_none()
    }

    #[test]
    fn edges_go_down_and_never_up_or_sideways() {
        assert!(verdict("flow", "cache", false));
        assert!(!verdict("cache", "flow", false));
        assert!(!verdict("cache", "origin", false));
        assert!(!verdict("h1", "h1", false));
        assert!(!verdict("message", "h1", true));
    }

    #[test]
    fn tests_may_hold_an_engine_against_another() {
        assert!(verdict("h2", "h1", true));
        assert!(!verdict("h2", "h1", false));
        assert!(verdict("h2", "h2", true), "with another of its features");
        assert!(!verdict("h2", "h2", false));
    }

    #[test]
    fn the_front_reaches_the_back_only_through_flow() {
        assert!(verdict("net", "flow", false));
        assert!(!verdict("net", "policy", false));
        assert!(!verdict("config", "cache", false));
    }

    #[test]
    fn tools_are_for_tests_only() {
        assert!(verdict("larder", "testkit", true));
        assert!(!verdict("larder", "testkit", false));
        assert!(verdict("xtask", "config", false));
    }

    #[test]
    fn pure_crates_name_no_runtime() {
        assert!(!verdict("cache", "tokio", false));
        assert!(verdict("cache", "tokio", true));
        assert!(verdict("origin", "tokio", false));
        assert!(verdict("cache", "bytes", false));
    }

    #[test]
    fn a_crate_without_layer_or_description_is_a_problem() {
        let metadata = serde_json::json!({"packages": [
            {"name": "stray", "description": null, "dependencies": []},
            {"name": "h1", "description": "x", "dependencies": [{"name": "cache", "kind": null}]},
        ]});
        let found = of_metadata(&metadata);
        assert_eq!(found.len(), 3);
        assert_eq!(found[2].file, "crates/h1/Cargo.toml");
    }
}
