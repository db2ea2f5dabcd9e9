//! Cluster verbs, `larder cluster`: the nodes as the asked node sees them, and orders to it.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::client::{AdminArgs, ask, call};
use crate::numbers::rounded_age;
use crate::rollout::{self, ClusterRollBackArgs, ClusterRollOutArgs, ConfigurationLoader};

/// Verbs about a cluster.
#[derive(Clone, Debug, Subcommand)]
pub enum ClusterVerb {
    /// Show the members, how far each has applied the stream, and whether this node trusts its
    /// store.
    Status(ClusterStatusArgs),
    /// Drain this node: its health checks fail, so that balancers send it no new clients. It still
    /// serves requests, and stays a member.
    Drain(ClusterOrderArgs),
    /// Take this node out: its health checks fail, purges do not wait for it, and it revalidates
    /// stored objects before it serves them.
    Leave(ClusterOrderArgs),
    /// End `drain` and `leave`; a restart ends them, too.
    Join(ClusterOrderArgs),
    /// Roll out a configuration to all nodes: first to canaries, which check themselves, then to
    /// the others. If a node rejects it or a canary fails, the roll-out stops and is undone.
    RollOut(ClusterRollOutArgs),
    /// Show the shared configuration: its versions, the version of each node, and the progress of
    /// the last roll-out.
    Configuration(ClusterStatusArgs),
    /// Roll all nodes back to an earlier configuration.
    RollBack(ClusterRollBackArgs),
}

/// Arguments of `larder cluster drain`, `leave` and `join`.
#[derive(Clone, Debug, Args)]
pub struct ClusterOrderArgs {
    #[command(flatten)]
    admin: AdminArgs,
}

/// Arguments of `larder cluster status` and `configuration`.
#[derive(Clone, Debug, Args)]
pub struct ClusterStatusArgs {
    /// Print the status as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    admin: AdminArgs,
}

/// Runs `larder cluster`. `gather` reads the configuration of a roll-out.
///
/// # Errors
/// A message for standard error.
pub fn cluster(verb: &ClusterVerb, gather: ConfigurationLoader) -> Result<(), String> {
    let (order, args) = match verb {
        ClusterVerb::Status(args) => return show(args),
        ClusterVerb::RollOut(args) => return rollout::roll_out(args, gather),
        ClusterVerb::Configuration(args) => {
            return rollout::show(&args.admin.admin_socket, args.json);
        }
        ClusterVerb::RollBack(args) => return rollout::roll_back(args),
        ClusterVerb::Drain(args) => ("drain", args),
        ClusterVerb::Leave(args) => ("leave", args),
        ClusterVerb::Join(args) => ("join", args),
    };
    let body = json!({ "order": order });
    let status = call(&args.admin.admin_socket, "/api/v1/cluster/order", &body)?;
    base::show!("{}", standing_text(&status));
    Ok(())
}

/// The node's standing after an order, with its meaning.
fn standing_text(status: &Value) -> String {
    let name = status["name"].as_str().unwrap_or_default();
    let says = match status["stance"].as_str() {
        Some("draining") => {
            "drains: health checks fail, and requests are served. Nothing needs to be transferred: \
             each node has a cache of its own"
        }
        Some("left") => {
            "has left: health checks fail, purges do not wait for it, and stored objects are \
             revalidated before use"
        }
        _ => "is a member",
    };
    let mut said = format!("{name} {says}");
    if status["is_shown"] == false {
        let why = status["problem"].as_str().unwrap_or("NATS has not answered yet");
        said.push_str(&format!("\nthe other nodes do not know this yet: {why}"));
    }
    said
}

fn show(args: &ClusterStatusArgs) -> Result<(), String> {
    let (code, text) = ask(&args.admin.admin_socket, "GET", "/api/v1/cluster")?;
    let status: Value = serde_json::from_str(&text).unwrap_or_default();
    if code != 200 {
        let why = status["error"].as_str().unwrap_or("unexpected answer");
        return Err(format!("larder: {why}"));
    }
    if status["name"] == "" {
        return Err("larder: the daemon is alone: there is no `[cluster]`".to_owned());
    }
    let page = if args.json { status.to_string() } else { status_text(&status) };
    base::show!("{page}");
    Ok(())
}

/// The status as lines.
fn status_text(status: &Value) -> String {
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
        false => "revalidated before use",
    };
    let stance = match status["stance"].as_str() {
        Some("draining") => "; it drains",
        Some("left") => "; it has left",
        _ => "",
    };
    let name = text(&status["name"]);
    let mut lines = vec![
        format!("{name}: {touch}; what is stored is {trust}{stance}"),
        format!(
            "stream: applied up to {} of {}; {} wait to be published",
            number(&status["sequence"]),
            number(&status["last"]),
            number(&status["queued"]),
        ),
        format!(
            "{:<20} {:<8} {:>6} {:>8} {:>10} {:>6}",
            "node", "state", "lag", "silent", "objects", "hits"
        ),
    ];
    for member in status["members"].as_array().into_iter().flatten() {
        let state = text(&member["state"]);
        let (hits, judged) = (number(&member["hits"]), number(&member["judged"]).max(1));
        lines.push(format!(
            "{:<20} {state:<8} {:>6} {:>7}s {:>10} {:>5}%",
            text(&member["name"]),
            number(&member["lag"]),
            number(&member["silent_ms"]) / 1000,
            number(&member["objects"]),
            hits.saturating_mul(100) / judged,
        ));
    }
    lines.extend(configuration(&status["configuration"]));
    lines.extend(shared(&status["shared"]));
    lines.join("\n")
}

/// The shared configuration as a line; `None` without one.
fn configuration(own: &Value) -> Option<String> {
    let version = match own["in_force"].as_str()? {
        "" => "no shared configuration has arrived yet",
        version => version,
    };
    let rolled = own["version"].as_str().unwrap_or_default();
    let stage = match own["stage"].as_str() {
        Some("all") if rolled == version => "; for all".to_owned(),
        Some("all") => format!("; {rolled} is for all"),
        Some("canary") => format!("; {rolled} is on its canaries"),
        Some(_) => format!("; {rolled} has failed"),
        None => String::new(),
    };
    let fault = own["fault"].as_str().map(|why| {
        let line = why.lines().next().unwrap_or_default();
        format!("; rejected: {line}")
    });
    Some(format!("configuration: {version}{stage}{}", fault.unwrap_or_default()))
}

/// The shared secrets and the node that orders certificates, as lines; empty if nothing is shared.
fn shared(shared: &Value) -> Vec<String> {
    let Some(secrets) = shared["secrets"].as_array() else { return Vec::new() };
    let mut lines = Vec::new();
    if let Some(why) = shared["problem"].as_str() {
        lines.push(format!("shared: out of touch: {why}"));
    }
    lines.push(match (shared["orders"].as_str(), shared["is_ordering"] == true) {
        (Some(node), true) => format!("certificates: {node} orders"),
        (Some(node), false) => format!("certificates: none to order; {node} was the last"),
        (None, _) => "certificates: none ordered yet".to_owned(),
    });
    let width = secrets.iter().filter_map(|own| own["name"].as_str().map(str::len)).max();
    let width = width.unwrap_or_default().max("shared".len());
    lines.push(format!("{:<width$} {:<20} {:>9}", "shared", "by", "age"));
    for own in secrets {
        let text = |key: &str| own[key].as_str().unwrap_or_default().to_owned();
        let age = rounded_age(own["age_secs"].as_u64().unwrap_or_default());
        let refused = own["refused"].as_str().map(|why| format!("  refused: {why}"));
        let (name, node) = (text("name"), text("node"));
        let age = age.to_string();
        let refused = refused.unwrap_or_default();
        lines.push(format!("{name:<width$} {node:<20} {age:>9}{refused}"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_status_shows_nodes_that_lag_and_nodes_that_have_left() {
        let member = |name: &str, lag: u64, left: bool| {
            let state = if left { "left" } else { "draining" };
            json!({ "name": name, "lag": lag, "state": state,
                    "silent_ms": 1500, "objects": 7, "hits": 1, "judged": 2 })
        };
        let status = json!({
            "name": "a", "connected": false, "problem": "NATS: gone", "trusted": false,
            "sequence": 3, "last": 5, "queued": 1,
            "members": [member("a", 2, false), member("b", 0, true)],
        });
        let page = status_text(&status);
        let lines: Vec<_> = page.lines().collect();
        assert_eq!(
            lines[0],
            "a: out of touch: NATS: gone; what is stored is revalidated before use"
        );
        assert_eq!(lines[1], "stream: applied up to 3 of 5; 1 wait to be published");
        assert!(lines[3].starts_with("a ") && lines[3].contains("draining"), "{}", lines[3]);
        assert!(lines[4].contains("left") && lines[4].ends_with("50%"), "{}", lines[4]);
        for (stance, says) in [("draining", "it drains"), ("left", "it has left")] {
            let page = status_text(&json!({ "name": "a", "connected": true, "stance": stance }));
            assert!(page.lines().next().is_some_and(|line| line.ends_with(says)), "{page}");
        }
    }

    #[test]
    fn a_status_shows_the_ordering_node_and_the_shared_secrets() {
        let secret = |name: &str, refused: Value| {
            let age_secs = 7_299;
            json!({ "name": name, "node": "b", "age_secs": age_secs, "refused": refused })
        };
        let mut status = json!({ "name": "a", "connected": true, "shared": {
            "problem": null, "orders": "b", "is_ordering": true,
            "secrets": [
                secret("tickets", Value::Null),
                secret("certificate.ca.a.test", json!("it was changed")),
            ],
        }});
        let page = status_text(&status);
        let lines: Vec<_> = page.lines().skip(3).collect();
        assert_eq!(lines[0], "certificates: b orders");
        assert_eq!(lines[1], "shared                by                         age");
        assert_eq!(lines[2], "tickets               b                           2h");
        assert!(lines[3].ends_with("2h  refused: it was changed"), "{}", lines[3]);
        status["shared"]["is_ordering"] = json!(false);
        assert!(status_text(&status).contains("none to order; b was the last"));
        status["shared"] = Value::Null;
        assert_eq!(status_text(&status).lines().count(), 3, "nothing is shared");
    }

    #[test]
    fn a_status_says_which_configuration_is_in_force() {
        let line = |own: Value| configuration(&own).unwrap_or_default();
        assert_eq!(configuration(&Value::Null), None);
        let own = json!({ "in_force": "v1", "version": "v1", "stage": "all", "fault": null });
        assert_eq!(line(own), "configuration: v1; for all");
        let own = json!({ "in_force": "v1", "version": "v2", "stage": "canary", "fault": null });
        assert_eq!(line(own), "configuration: v1; v2 is on its canaries");
        let own = json!({ "in_force": "v1", "version": "v2", "stage": "all", "fault": "v2: a\nb" });
        assert_eq!(line(own), "configuration: v1; v2 is for all; rejected: v2: a");
        let own = json!({ "in_force": "", "version": null, "stage": null, "fault": null });
        assert_eq!(line(own), "configuration: no shared configuration has arrived yet");
    }

    #[test]
    fn an_order_shows_its_meaning_and_missing_acknowledgement() {
        let mut status = json!({ "name": "a", "stance": "draining", "is_shown": true });
        assert!(
            standing_text(&status).starts_with("a drains: ")
                && !standing_text(&status).contains('\n')
        );
        status["is_shown"] = json!(false);
        status["problem"] = json!("NATS: gone");
        let last = "the other nodes do not know this yet: NATS: gone";
        assert_eq!(standing_text(&status).lines().last(), Some(last));
        status["stance"] = json!("left");
        assert!(standing_text(&status).starts_with("a has left: "));
    }
}
