//! The status of a running daemon in a few lines, `larder status`.

use base::tally::{Outcome, hit_ratio};
use clap::Args;
use serde_json::Value;

use crate::client::{AdminArgs, ask};
use crate::numbers::{bytes, grouped};
use crate::output::print;

/// Show the running daemon in a few lines: version, uptime, requests, cache, and problems.
///
/// The exit status is 0 if the daemon is ready, and 1 if it is not ready or not running.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  \
                  larder status\n  \
                  larder status --json | jq -r '.waits_for_restart[]'")]
pub struct StatusArgs {
    #[command(flatten)]
    admin: AdminArgs,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Runs `larder status`.
///
/// # Errors
/// A message for standard error; also if the daemon is not ready.
pub fn run(args: &StatusArgs) -> Result<(), String> {
    let socket = &args.admin.admin_socket;
    let look = |path: &str| -> Result<Value, String> {
        let (status, body) = ask(socket, "GET", path)?;
        let value = serde_json::from_str(&body).ok().filter(|_| status == 200);
        value.ok_or_else(|| format!("larder: the daemon's answer cannot be read: {path}"))
    };
    let (mut status, sites) = (look("/api/v1/status")?, look("/api/v1/sites")?);
    let (code, readiness) = ask(socket, "GET", "/readyz")?;
    let requests = requests(&sites);
    let findings = VerifyFindings::of(&sites);
    let text = match args.json {
        true => {
            status["ready"] = (code == 200).into();
            status["readiness"] = readiness.lines().collect::<Vec<_>>().into();
            status["hit_ratio"] = ratio(&requests).into();
            status["requests"] = requests.iter().sum::<f64>().into();
            status["observed"] = findings.observed.into();
            status["differing"] = findings.differing.into();
            format!("{status}\n")
        }
        false => shown(&status, &requests, &findings, &readiness),
    };
    print(text.as_bytes())?;
    match code {
        200 => Ok(()),
        _ => Err("larder: the daemon is not ready".to_owned()),
    }
}

/// Requests of all sites, in the order of [`Outcome::ALL`].
fn requests(sites: &Value) -> [f64; Outcome::ALL.len()] {
    let all = sites["sites"].as_array();
    let count = |site: &Value, outcome: Outcome| site["requests"][outcome.word()].as_f64();
    Outcome::ALL.map(|outcome| all.into_iter().flatten().filter_map(|s| count(s, outcome)).sum())
}

fn ratio(requests: &[f64]) -> Option<f64> {
    hit_ratio(|outcome| requests[outcome as usize])
}

/// The findings of comparisons with the origin, a sentence each.
struct VerifyFindings {
    /// Sites that only observe.
    observed: Vec<String>,
    /// Pages that were seen to differ by visitor.
    differing: Vec<String>,
}

impl VerifyFindings {
    fn of(sites: &Value) -> Self {
        Self { observed: observed(sites), differing: differing(sites) }
    }
}

/// Pages that were seen to differ by visitor, a sentence each.
fn differing(sites: &Value) -> Vec<String> {
    let sites = sites["sites"].as_array().into_iter().flatten();
    let found = sites.flat_map(|site| site["differing"].as_array().into_iter().flatten());
    let word = |one: &Value, name: &str| one[name].as_str().unwrap_or("?").to_owned();
    found.map(|one| format!("{} differs by {}", word(one, "url"), word(one, "cause"))).collect()
}

/// Sites that only observe, a sentence each.
fn observed(sites: &Value) -> Vec<String> {
    let told = |site: &Value| {
        let would_be = site["observed"].as_object()?;
        let count = |name: &str| would_be.get(name).and_then(Value::as_f64).unwrap_or_default();
        let all: f64 = would_be.values().filter_map(Value::as_f64).sum();
        let served = (count("hit") + count("stale")) / all.max(1.0) * 100.0;
        let name = site["name"].as_str().unwrap_or("?");
        Some(format!(
            "{name}: the cache would serve {served:.1} % of {} requests",
            grouped(all as u64)
        ))
    };
    sites["sites"].as_array().into_iter().flatten().filter_map(told).collect()
}

fn shown(status: &Value, requests: &[f64], findings: &VerifyFindings, readiness: &str) -> String {
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    let version = status["version"].as_str().unwrap_or("?");
    let file = status["config_file"].as_str().unwrap_or("its command line");
    let ratio = ratio(requests).map_or_else(|| "-".to_owned(), |r| format!("{:.1} %", r * 100.0));
    let cache = &status["cache"];
    let mut out = format!(
        "larder {version}, up {}, by {file}\n\
         requests  {}, hit ratio {ratio}\n\
         cache     {} objects, {} of {}\n\
         serves    sites: {}, origins: {}, cores: {}\n",
        uptime(number(&status["uptime_seconds"])),
        grouped(requests.iter().sum::<f64>() as u64),
        grouped(number(&cache["objects"])),
        bytes(number(&cache["bytes"]) as f64),
        bytes(number(&cache["budget_bytes"]) as f64),
        status["sites"],
        status["origins"],
        status["cores"],
    );
    let stays: Vec<_> = status["waits_for_restart"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if !stays.is_empty() {
        out.push_str(&format!("restart   needed for {}\n", stays.join(", ")));
    }
    for line in &findings.observed {
        out.push_str(&format!("observe   {line}\n"));
    }
    let mut title = "verify    ";
    for line in &findings.differing {
        out.push_str(&format!("{title}{line}\n"));
        title = "          ";
    }
    let mut title = "health    ";
    for line in readiness.lines() {
        out.push_str(&format!("{title}{line}\n"));
        title = "          ";
    }
    out
}

/// Formats an uptime in its two largest units.
fn uptime(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, _, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_in_its_two_largest_units() {
        let told = [5, 65, 3_700, 90_000].map(uptime);
        assert_eq!(told, ["5 s", "1 min 5 s", "1 h 1 min", "1 d 1 h"]);
    }
}
