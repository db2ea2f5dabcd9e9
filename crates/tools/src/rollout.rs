//! Roll-outs of the configuration that all nodes share: `larder cluster roll-out`, `roll-back` and
//! `configuration`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use base::units::{DurationMs, parse_duration_ms};
use clap::Args;
use serde_json::{Value, json};

use crate::client::{AdminArgs, ask, call};
use crate::numbers::rounded_age;

/// Interval between two polls while waiting.
const LOOK: Duration = Duration::from_millis(300);
/// Time that nodes get to apply a configuration, in addition to the canaries' watch.
const PATIENCE_MS: u64 = 60_000;
const PATH: &str = "/api/v1/cluster/configuration";

/// Reads a configuration from a file, as the API's `configuration`.
pub type ConfigurationLoader = fn(&Path) -> Result<Value, String>;

/// Arguments of `larder cluster roll-out`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  \
                  larder cluster roll-out shared.toml --wait\n  \
                  larder cluster roll-out shared.toml --canary web-1 --watch 5m \\\n    \
                  --check https://example.org/ --check '200 https://example.org/health'")]
pub struct ClusterRollOutArgs {
    /// The configuration for all nodes: TOML as in larder.toml, without the settings of a single
    /// node. VCL files that it names or that those include are sent along.
    file: PathBuf,
    /// Node that applies it first; by default the one that gets this order.
    #[arg(long, value_name = "NODE", value_delimiter = ',')]
    canary: Vec<String>,
    /// Time for which a canary watches itself before the other nodes follow.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    watch: u64,
    /// URL that a canary requests from itself: the status must be below 500, or equal the one
    /// written before the URL; repeatable.
    #[arg(long, value_name = "[STATUS ]URL")]
    check: Vec<String>,
    /// Comment for later readers.
    #[arg(long, value_name = "TEXT", default_value = "")]
    comment: String,
    /// Roll it out even if hosts that have a site now would have none.
    #[arg(long)]
    drop_hosts: bool,
    /// Wait until all live nodes have applied it, or it has failed.
    #[arg(long)]
    wait: bool,
    /// Print the state as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    admin: AdminArgs,
}

/// Arguments of `larder cluster roll-back`.
#[derive(Clone, Debug, Args)]
pub struct ClusterRollBackArgs {
    /// Version to roll back to; by default the one before. During a canary's watch, the canaries
    /// are rolled back.
    version: Option<String>,
    /// Wait until all live nodes have applied it.
    #[arg(long)]
    wait: bool,
    /// Print the state as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    admin: AdminArgs,
}

fn duration(text: &str) -> Result<u64, String> {
    parse_duration_ms(text).map_err(|why| why.to_string())
}

/// Runs `larder cluster roll-out`.
pub(crate) fn roll_out(
    args: &ClusterRollOutArgs,
    gather: ConfigurationLoader,
) -> Result<(), String> {
    let wish = json!({
        "configuration": gather(&args.file)?,
        "canaries": args.canary,
        "watch_ms": args.watch,
        "checks": args.check,
        "comment": args.comment,
        "drop_hosts": args.drop_hosts,
    });
    let socket = &args.admin.admin_socket;
    let begun = call(socket, "/api/v1/cluster/roll-out", &wish)?;
    let ended = if args.wait { wait(socket, &begun)? } else { begun };
    base::show!("{}", if args.json { ended.to_string() } else { summary(&ended) });
    Ok(())
}

/// Runs `larder cluster roll-back`.
pub(crate) fn roll_back(args: &ClusterRollBackArgs) -> Result<(), String> {
    let wish = args.version.as_ref().map_or_else(|| json!({}), |own| json!({ "version": own }));
    let socket = &args.admin.admin_socket;
    let begun = call(socket, "/api/v1/cluster/roll-back", &wish)?;
    // A roll-back during the watch fails the roll-out on purpose.
    let is_trial = begun["stage"] == "failed";
    let ended = if args.wait && !is_trial { wait(socket, &begun)? } else { begun };
    base::show!("{}", if args.json { ended.to_string() } else { summary(&ended) });
    Ok(())
}

/// Runs `larder cluster configuration`.
pub(crate) fn show(socket: &Path, is_json: bool) -> Result<(), String> {
    let state = state(socket)?;
    base::show!("{}", if is_json { state.to_string() } else { page(&state) });
    Ok(())
}

fn state(socket: &Path) -> Result<Value, String> {
    let (code, text) = ask(socket, "GET", PATH)?;
    let state: Value = serde_json::from_str(&text).unwrap_or_default();
    match code {
        200 => Ok(state),
        _ => Err(format!("larder: {}", state["error"].as_str().unwrap_or("unexpected answer"))),
    }
}

/// Waits until all live nodes have applied `begun`, and returns the state.
fn wait(socket: &Path, begun: &Value) -> Result<Value, String> {
    let watch_ms = begun["watch_ms"].as_u64().unwrap_or_default();
    let most = Duration::from_millis(watch_ms.saturating_add(PATIENCE_MS));
    let started = Instant::now();
    loop {
        let state = state(socket)?;
        match progress(&state, begun["number"].as_u64().unwrap_or_default()) {
            RolloutProgress::Done => return Ok(state),
            RolloutProgress::Failed(why) => return Err(format!("larder: {why}")),
            RolloutProgress::Awaited(whom) if started.elapsed() >= most => {
                return Err(format!("larder: {}\nstill waiting for {whom}", summary(&state)));
            }
            RolloutProgress::Awaited(_) => std::thread::sleep(LOOK),
        }
    }
}

/// The progress of a roll-out, for a waiting user.
#[derive(Debug, PartialEq, Eq)]
enum RolloutProgress {
    Done,
    Failed(String),
    /// For these.
    Awaited(String),
}

fn progress(state: &Value, number: u64) -> RolloutProgress {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if state["number"].as_u64().is_some_and(|own| own != number) {
        return RolloutProgress::Failed(format!(
            "another roll-out replaced it: {}",
            summary(state)
        ));
    }
    if state["stage"] == "failed" {
        return RolloutProgress::Failed(summary(state));
    }
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    if state["stage"] != "all" {
        let awaited = list(&state["canaries"]);
        let awaited = awaited.iter().filter(|own| own["is_well"] != true);
        return RolloutProgress::Awaited(
            awaited.map(|own| text(&own["node"])).collect::<Vec<_>>().join(", "),
        );
    }
    let nodes = list(&state["nodes"]);
    let others =
        || nodes.iter().filter(|own| own["live"] == true && own["version"] != state["version"]);
    let refused = others().filter(|own| own["fault"] != "");
    let refused: Vec<_> =
        refused.map(|own| format!("{}: {}", text(&own["name"]), text(&own["fault"]))).collect();
    let awaited: Vec<_> =
        others().filter(|own| own["fault"] == "").map(|own| text(&own["name"])).collect();
    match (awaited.as_slice(), refused.as_slice()) {
        ([], []) => RolloutProgress::Done,
        ([], refused) => {
            RolloutProgress::Failed(format!("not all nodes applied it:\n{}", refused.join("\n")))
        }
        (awaited, _) => RolloutProgress::Awaited(awaited.join(", ")),
    }
}

/// The last roll-out as a line.
fn summary(state: &Value) -> String {
    let version = state["version"].as_str().unwrap_or_default();
    let canaries = || {
        let all = state["canaries"].as_array().into_iter().flatten();
        all.filter_map(|own| own["node"].as_str()).collect::<Vec<_>>().join(", ")
    };
    match state["stage"].as_str() {
        Some("canary") => {
            let watch = DurationMs(state["watch_ms"].as_u64().unwrap_or_default());
            format!(
                "{version} is on its canaries, which watch themselves for {watch}: {}",
                canaries()
            )
        }
        Some("all") => format!("{version} is for all nodes"),
        Some("failed") => {
            let why = state["why"].as_str().unwrap_or_default();
            let before = state["good"].as_str().unwrap_or("none");
            format!(
                "{version} has failed, and all nodes have the version before it ({before}): {why}"
            )
        }
        _ => match state["problem"].as_str() {
            Some(why) => format!("not known: {why}"),
            None => "nothing was rolled out yet".to_owned(),
        },
    }
}

/// The state as text.
fn page(state: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut lines = vec![summary(state)];
    let releases = list(&state["releases"]);
    if !releases.is_empty() {
        lines.push(format!("{:<12} {:<20} {:>6}  {}", "version", "by", "age", "comment"));
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now_ms = now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(u64::MAX));
    for own in releases.iter().rev() {
        let age = now_ms.saturating_sub(own["unix_ms"].as_u64().unwrap_or_default()) / 1000;
        let passed = if own["passed"] == true { "" } else { "(never on all) " };
        let (version, node, age) =
            (text(&own["version"]), text(&own["node"]), rounded_age(age).to_string());
        let line = format!("{version:<12} {node:<20} {age:>6}  {passed}{}", text(&own["comment"]));
        lines.push(line.trim_end().to_owned());
    }
    let nodes = list(&state["nodes"]);
    if !nodes.is_empty() {
        lines.push(format!("{:<20} {:<8} {}", "node", "state", "version"));
    }
    for own in nodes {
        let version = match text(&own["version"]) {
            none if none.is_empty() => "none".to_owned(),
            version => version,
        };
        lines.push(format!("{:<20} {:<8} {version}", text(&own["name"]), text(&own["state"])));
        let fault = text(&own["fault"]);
        let mut of_fault = fault.lines().map(|line| format!("    {line}"));
        lines.extend(of_fault.next().map(|line| format!("    rejected: {}", line.trim())));
        lines.extend(of_fault);
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(stage: &str, nodes: &[(&str, &str, bool, &str)]) -> Value {
        let node = |(name, version, live, fault): &(&str, &str, bool, &str)| {
            let mut own = json!({ "name": name, "state": "ready", "version": version });
            (own["live"], own["fault"]) = (json!(live), json!(fault));
            own
        };
        let canary = |node: &str, is_well: bool| json!({ "node": node, "is_well": is_well });
        json!({
            "number": 3, "version": "v2", "stage": stage, "good": "v1", "why": "b: bad",
            "watch_ms": 30_000, "canaries": [canary("a", true), canary("b", false)],
            "releases": [
                { "version": "v1", "node": "a", "unix_ms": 0, "comment": "first", "passed": true },
                { "version": "v2", "node": "b", "unix_ms": 0, "comment": "", "passed": false },
            ],
            "nodes": nodes.iter().map(node).collect::<Vec<_>>(),
        })
    }

    #[test]
    fn a_waiting_user_sees_the_missing_nodes_and_the_reasons() {
        let (a, gone) = (("a", "v2", true, ""), ("z", "v1", false, ""));
        let (b, c) = (("b", "v1", true, ""), ("c", "v1", true, "v2: no such file"));
        assert_eq!(progress(&state("all", &[a, gone]), 3), RolloutProgress::Done);
        assert_eq!(progress(&state("all", &[a, b, c]), 3), RolloutProgress::Awaited("b".into()));
        let RolloutProgress::Failed(why) = progress(&state("all", &[a, c]), 3) else {
            panic!("refused")
        };
        assert!(why.ends_with("c: v2: no such file"), "{why}");
        assert_eq!(progress(&state("canary", &[]), 3), RolloutProgress::Awaited("b".into()));
        for (stage, number) in [("failed", 3), ("all", 2)] {
            assert!(matches!(progress(&state(stage, &[a]), number), RolloutProgress::Failed(_)));
        }
    }

    #[test]
    fn a_page_shows_the_progress_and_the_version_of_each_node() {
        let page =
            page(&state("failed", &[("a", "v1", true, ""), ("b", "", true, "v1: bad\nbecause")]));
        let lines: Vec<_> = page.lines().collect();
        assert_eq!(
            lines[0],
            "v2 has failed, and all nodes have the version before it (v1): b: bad"
        );
        assert!(lines[2].starts_with("v2 ") && lines[2].ends_with("(never on all)"), "{page}");
        assert!(lines[3].starts_with("v1 ") && lines[3].ends_with("first"), "{page}");
        assert_eq!(lines[5].split_whitespace().collect::<Vec<_>>(), ["a", "ready", "v1"]);
        assert!(lines[6].ends_with("none"), "{page}");
        assert_eq!(&lines[7..], ["    rejected: v1: bad", "    because"]);
        let canary = summary(&state("canary", &[]));
        assert_eq!(canary, "v2 is on its canaries, which watch themselves for 30s: a, b");
        assert_eq!(summary(&json!({ "stage": null })), "nothing was rolled out yet");
    }
}
