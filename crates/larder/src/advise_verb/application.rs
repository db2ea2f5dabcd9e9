//! Application of advice: the lines of a finding, written into the configuration, and what came of
//! them.
//!
//! A file that `larder check` would refuse must never take the place of one that it accepts.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use advise::{Advice, Finding, Visit};
use serde_json::{Value, json};

/// Least requests after a change, for an opinion about it.
const REQUESTS_MIN: usize = 100;

/// Writes the lines of the finding with this number into the configuration, and reloads the daemon
/// behind `socket`, if one runs.
pub(super) fn apply(
    config: &Path,
    advice: &Advice,
    number: usize,
    socket: &Path,
) -> Result<(), String> {
    let finding = advice.findings.iter().find(|finding| finding.number == number);
    let finding = finding.ok_or_else(|| {
        format!("larder: there is no finding {number}: there are {}", advice.findings.len())
    })?;
    let change = finding.change.as_ref().ok_or_else(|| {
        format!("larder: no setting changes finding {number}: {}", finding.hints.join("; "))
    })?;
    let failed =
        |path: &Path, error: std::io::Error| format!("larder: {}: {error}", path.display());
    let new = beside(config, "new");
    fs::write(&new, &change.text).map_err(|error| failed(&new, error))?;
    let checked = fs::metadata(config)
        .and_then(|old| fs::set_permissions(&new, old.permissions()))
        .map_err(|error| failed(&new, error))
        .and_then(|()| crate::check::check(&new, false));
    if let Err(why) = checked {
        _ = fs::remove_file(&new);
        return Err(format!("{why}\nlarder: {} stays as it was", config.display()));
    }
    let former = beside(config, "former");
    fs::copy(config, &former).map_err(|error| failed(&former, error))?;
    fs::rename(&new, config).map_err(|error| failed(config, error))?;
    let note = beside(config, "advice.json");
    fs::write(&note, format!("{:#}\n", prediction(advice, finding)))
        .map_err(|error| failed(&note, error))?;
    base::show!("{}: changed; the former file is {}", config.display(), former.display());
    if socket.exists() {
        return tools::reload(socket);
    }
    Ok(())
}

/// The path beside the configuration with this ending.
fn beside(config: &Path, ending: &str) -> PathBuf {
    let mut name = config.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

fn prediction(advice: &Advice, finding: &Finding) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    json!({
        "applied_unix_ms": now.as_millis() as u64,
        "kind": finding.kind.word(),
        "about": finding.about,
        "ratio": advice.figures.ratio(),
        "predicted": finding.after.map(|after| after.ratio()),
    })
}

/// The effect of the advice that was applied last, in words. `None` without such advice, or if too
/// few requests since tell of the cache.
pub(super) fn outcome(config: &Path, visits: &[Visit]) -> Option<String> {
    let note: Value =
        serde_json::from_slice(&fs::read(beside(config, "advice.json")).ok()?).ok()?;
    let since_ms = note["applied_unix_ms"].as_u64()?;
    let judged = visits.iter().filter(|visit| visit.at_ms > since_ms);
    let outcomes = judged.filter_map(|visit| Some(visit.served?.outcome()));
    let outcomes: Vec<_> = outcomes.filter(|outcome| outcome.is_judged()).collect();
    if outcomes.len() < REQUESTS_MIN {
        return None;
    }
    let hits = outcomes.iter().filter(|outcome| outcome.is_hit()).count();
    let ratio = hits as f64 * 100.0 / outcomes.len() as f64;
    Some(format!(
        "{}: {} was applied: predicted was a hit ratio of {:.1}%, up from {:.1}%; it is {ratio:.1}% \
         over {} requests",
        note["kind"].as_str()?,
        note["about"].as_str()?,
        note["predicted"].as_f64()?,
        note["ratio"].as_f64()?,
        outcomes.len(),
    ))
}
