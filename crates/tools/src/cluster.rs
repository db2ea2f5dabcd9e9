//! `larder cluster`: the nodes of a cluster, as the one asked knows them.

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::client::{AdminArgs, ask};

/// Verbs about a cluster.
#[derive(Clone, Debug, Subcommand)]
pub enum ClusterVerb {
    /// The members, how far each is, and whether this node trusts what it stores.
    Status(ClusterStatusArgs),
}

/// Arguments of `larder cluster status`.
#[derive(Clone, Debug, Args)]
pub struct ClusterStatusArgs {
    /// Print it as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    admin: AdminArgs,
}

/// Runs `larder cluster`.
///
/// # Errors
/// A message for standard error.
pub fn cluster(verb: &ClusterVerb) -> Result<(), String> {
    let ClusterVerb::Status(args) = verb;
    let (code, text) = ask(&args.admin.admin_socket, "GET", "/api/v1/cluster")?;
    let status: Value = serde_json::from_str(&text).unwrap_or_default();
    if code != 200 {
        let why = status["error"].as_str().unwrap_or("unexpected answer");
        return Err(format!("larder: {why}"));
    }
    if status["name"] == "" {
        return Err("larder: the daemon is alone: there is no `[cluster]`".to_owned());
    }
    let page = if args.json { status.to_string() } else { told(&status) };
    base::show!("{page}");
    Ok(())
}

/// The status as lines.
fn told(status: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    let is = |value: &Value| value.as_bool().unwrap_or_default();
    let touch = match (is(&status["connected"]), status["problem"].as_str()) {
        (true, _) => "in touch".to_owned(),
        (false, Some(why)) => format!("out of touch: {why}"),
        (false, None) => "out of touch".to_owned(),
    };
    let trust = match is(&status["trusted"]) {
        true => "used",
        false => "validated before it is used",
    };
    let name = text(&status["name"]);
    let mut lines = vec![
        format!("{name}: {touch}; what is stored is {trust}"),
        format!(
            "stream: applied up to {} of {}; {} wait to be told",
            number(&status["sequence"]),
            number(&status["last"]),
            number(&status["queued"]),
        ),
        format!(
            "{:<20} {:<6} {:>6} {:>8} {:>10} {:>6}",
            "node", "state", "lag", "silent", "objects", "hits"
        ),
    ];
    for member in status["members"].as_array().into_iter().flatten() {
        let state = match (is(&member["live"]), is(&member["left"]), is(&member["trusts"])) {
            (_, true, _) => "left",
            (false, ..) => "gone",
            (.., true) => "ready",
            (.., false) => "asks",
        };
        let (hits, requests) = (number(&member["hits"]), number(&member["requests"]).max(1));
        lines.push(format!(
            "{:<20} {state:<6} {:>6} {:>7}s {:>10} {:>5}%",
            text(&member["name"]),
            number(&member["lag"]),
            number(&member["silent_ms"]) / 1000,
            number(&member["objects"]),
            hits.saturating_mul(100) / requests,
        ));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_status_says_who_is_behind_and_who_has_left() {
        let member = |name: &str, lag: u64, left: bool| {
            let (live, trusts) = (!left, true);
            json!({ "name": name, "lag": lag, "live": live, "left": left, "trusts": trusts,
                    "silent_ms": 1500, "objects": 7, "hits": 1, "requests": 2 })
        };
        let status = json!({
            "name": "a", "connected": false, "problem": "NATS: gone", "trusted": false,
            "sequence": 3, "last": 5, "queued": 1,
            "members": [member("a", 2, false), member("b", 0, true)],
        });
        let page = told(&status);
        let lines: Vec<_> = page.lines().collect();
        assert_eq!(
            lines[0],
            "a: out of touch: NATS: gone; what is stored is validated before it is used"
        );
        assert_eq!(lines[1], "stream: applied up to 3 of 5; 1 wait to be told");
        assert!(lines[3].starts_with("a ") && lines[3].contains("ready"), "{}", lines[3]);
        assert!(lines[4].contains("left") && lines[4].ends_with("50%"), "{}", lines[4]);
    }
}
