//! The verb that has a new process take a daemon's place, `larder upgrade`.

use std::path::PathBuf;

use base::units::DurationMs;
use clap::Args;
use serde_json::{Value, json};

use crate::client::{AdminArgs, call};

/// Replace the running daemon by a new process, which takes over its sockets: no connection is
/// refused, and each open one ends with its next response.
///
/// The new process reads the configuration. If it cannot serve, the running daemon goes on, and the
/// reason is printed.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  \
                  larder upgrade\n  \
                  larder upgrade /opt/larder-0.2/bin/larder")]
pub struct UpgradeArgs {
    /// The program to start; by default the one that is now where the daemon's was.
    #[arg(value_name = "BINARY")]
    binary: Option<PathBuf>,
    #[command(flatten)]
    admin: AdminArgs,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Runs `larder upgrade`.
///
/// # Errors
/// A message for standard error.
pub fn run(args: &UpgradeArgs) -> Result<(), String> {
    let mut wanted = json!({});
    if let Some(binary) = &args.binary {
        let path = std::path::absolute(binary)
            .map_err(|error| format!("larder: {}: {error}", binary.display()))?;
        wanted["binary"] = json!(path);
    }
    let done = call(&args.admin.admin_socket, "/api/v1/upgrade", &wanted)?;
    match args.json {
        true => base::show!("{done}"),
        false => base::show!("{}", told(&done)),
    }
    Ok(())
}

/// The outcome in one line.
fn told(done: &Value) -> String {
    let number = |name: &str| done[name].as_u64().unwrap_or_default();
    format!(
        "process {} (version {}) has taken over; process {} ends with its connections, within {}",
        number("pid"),
        done["version"].as_str().unwrap_or("unknown"),
        number("before"),
        DurationMs(number("drain_ms"))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outcome_names_both_processes() {
        let done = json!({ "pid": 9, "version": "0.2.0", "before": 7, "drain_ms": 30_000 });
        let said = "process 9 (version 0.2.0) has taken over; process 7 ends with its connections, \
                    within 30s";
        assert_eq!(told(&done), said);
    }
}
