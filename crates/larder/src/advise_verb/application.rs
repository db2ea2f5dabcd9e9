//! Application of advice: the lines of a finding, written into the configuration, and what came of
//! them.
//!
//! A file that `larder check` would refuse must never take the place of one that it accepts.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use advise::{Advice, Finding, Proof, Visit};
use serde_json::{Value, json};

/// Least requests after a change, for an opinion about it.
const REQUESTS_MIN: usize = 100;

/// The finding with this number, or with this kind and thing (`KIND:ABOUT`). One without proof is
/// found only if `unproved` is set.
pub(super) fn find<'a>(
    advice: &'a Advice,
    wanted: &str,
    unproved: bool,
) -> Result<&'a Finding, String> {
    let number = wanted.parse::<usize>().ok();
    let is_wanted = |own: &&Finding| match number {
        Some(number) => own.number == number,
        None => wanted == format!("{}:{}", own.kind, own.about),
    };
    let mut found = advice.findings.iter().filter(is_wanted);
    let finding = found.next().ok_or_else(|| {
        format!("larder: there is no finding {wanted}: there are {}", advice.findings.len())
    })?;
    if found.next().is_some() {
        return Err(format!("larder: several findings are {wanted}: name one by its number"));
    }
    if matches!(finding.proof, Proof::Missing(_)) && !unproved {
        return Err(format!(
            "larder: finding {wanted} has no proof ({}): look at the pages yourself, then add \
             --unproved",
            finding.proof.text()
        ));
    }
    Ok(finding)
}

/// Writes the lines of a finding into the configuration, whose text was `former`, and reloads the
/// daemon behind `socket`, if one runs.
pub(super) fn apply(
    config: &Path,
    former: &str,
    advice: &Advice,
    finding: &Finding,
    socket: &Path,
) -> Result<(), String> {
    let change = finding.change.as_ref().ok_or_else(|| {
        let hints = finding.hints.join("; ");
        format!("larder: no setting changes finding {}: {hints}", finding.number)
    })?;
    let failed = |path: &Path, error: io::Error| format!("larder: {}: {error}", path.display());
    // A link stays one.
    let config = &fs::canonicalize(config).map_err(|error| failed(config, error))?;
    let is_former = fs::read_to_string(config).map(|text| text == former);
    if !is_former.map_err(|error| failed(config, error))? {
        return Err(format!("larder: {} has changed meanwhile: ask again", config.display()));
    }
    let new = beside(config, &format!("new-{}", std::process::id()));
    let checked = write_like(config, &new, &change.text)
        .map_err(|error| failed(&new, error))
        .and_then(|()| crate::check::check(&new, false));
    if let Err(why) = checked {
        _ = fs::remove_file(&new);
        return Err(format!("{why}\nlarder: {} stays as it was", config.display()));
    }
    let (kept, note) = (free_beside(config), beside(config, "advice.json"));
    let replaced = fs::copy(config, &kept)
        .map_err(|error| failed(&kept, error))
        .and_then(|_| {
            fs::write(&note, format!("{:#}\n", prediction(advice, finding)))
                .map_err(|error| failed(&note, error))
        })
        .and_then(|()| fs::rename(&new, config).map_err(|error| failed(config, error)));
    if let Err(why) = replaced {
        _ = fs::remove_file(&new);
        return Err(format!("{why}\nlarder: {} stays as it was", config.display()));
    }
    base::show!("{}: changed; the former file is {}", config.display(), kept.display());
    if socket.exists() {
        return tools::reload(socket)
            .map_err(|why| format!("{why}\nlarder: {} is changed all the same", config.display()));
    }
    Ok(())
}

/// Writes a new file with the owner and the permissions of another.
fn write_like(other: &Path, path: &Path, text: &str) -> io::Result<()> {
    let like = fs::metadata(other)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (like.uid(), like.gid()) {
        fchown(&file, Some(like.uid()), Some(like.gid()))?;
    }
    file.write_all(text.as_bytes())?;
    file.set_permissions(like.permissions())?;
    file.sync_all()
}

/// A path beside the configuration for its former text, where nothing is yet.
fn free_beside(config: &Path) -> PathBuf {
    let numbered = (2..).map(|number| beside(config, &format!("former-{number}")));
    let mut all = std::iter::once(beside(config, "former")).chain(numbered);
    all.find(|path| !path.exists()).unwrap_or_else(|| beside(config, "former"))
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
