//! `larder disk`: checks, reports, empties and exports volumes of the disk cache while no daemon
//! uses them.
//!
//! A directory that is no volume must stay unchanged.

mod export;
mod inspection;
mod volume_report;

use std::path::PathBuf;

use base::clock::System;
use clap::{Args, Subcommand};
use disk::tools;
use serde_json::{Value, json};

use inspection::{VolumeInspection, is_sound, open};

/// Actions on volumes.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum DiskVerb {
    /// Read every block of every record, and report damage; the exit status is 1 then. Nothing is
    /// changed: damaged records are never served, and their space is reused in time.
    Check(VolumeReportArgs),
    /// Report what is on each volume: records, bytes, segments, age, and whether a daemon uses it.
    Stat(VolumeReportArgs),
    /// Remove everything on the volumes, also of another format, and release volumes that were
    /// taken out of use. The next start creates them anew.
    Empty {
        #[command(flatten)]
        volumes: Volumes,
        /// Confirm the removal.
        #[arg(long)]
        yes: bool,
    },
    /// Write every record to files: its body, and beside it its head; and a line of JSON for each.
    Export {
        #[command(flatten)]
        volumes: Volumes,
        /// Directory to write to: a new one, or an empty one.
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
    },
}

/// Volumes, and the format of the report.
#[derive(Clone, Debug, Args)]
pub(crate) struct VolumeReportArgs {
    #[command(flatten)]
    volumes: Volumes,
    /// Print one JSON object with stable names.
    #[arg(long)]
    json: bool,
}

/// The volumes to work on.
#[derive(Clone, Debug, Args)]
pub(crate) struct Volumes {
    /// Configuration file that names the volumes.
    #[arg(short = 'c', long, value_name = "FILE", default_value = "/etc/larder/larder.toml")]
    config: PathBuf,
    /// Directory of a volume, instead of those of a configuration; repeatable.
    #[arg(long, value_name = "DIR", conflicts_with = "config")]
    path: Vec<PathBuf>,
}

impl Volumes {
    fn paths(&self) -> Result<Vec<PathBuf>, String> {
        if !self.path.is_empty() {
            return Ok(self.path.clone());
        }
        let (config, _) = daemon::load(&self.config)?;
        let disk = config.disk.ok_or_else(|| {
            format!("larder: {}: there is no [disk] (--path names a volume)", self.config.display())
        })?;
        Ok(disk.volumes.into_iter().map(|volume| volume.path).collect())
    }
}

impl Volumes {
    /// The limit of the index's memory, from the configuration.
    fn index_most(&self) -> Option<u64> {
        let (config, _) = self.path.is_empty().then(|| daemon::load(&self.config).ok())??;
        Some(config::sizing::Machine::read().disk_index_bytes(config.limits.disk_index_bytes))
    }
}

/// Runs the verb.
///
/// # Errors
/// A message for standard error.
pub(crate) fn run(verb: &DiskVerb) -> Result<(), String> {
    match verb {
        DiskVerb::Check(VolumeReportArgs { volumes, json }) => check(&volumes.paths()?, *json),
        DiskVerb::Stat(VolumeReportArgs { volumes, json }) => stat(volumes, *json),
        DiskVerb::Empty { volumes, yes } => empty(&volumes.paths()?, *yes),
        DiskVerb::Export { volumes, to } => export::run(&volumes.paths()?, to),
    }
}

fn stat(volumes: &Volumes, as_json: bool) -> Result<(), String> {
    let (paths, index_most) = (volumes.paths()?, volumes.index_most());
    let now_ms = System.now().unix_ms;
    let (mut values, mut failed) = (Vec::new(), false);
    for path in &paths {
        let look = VolumeInspection::at(path, tools::stat);
        failed |= matches!(look, VolumeInspection::Failed(_));
        match (&look, as_json) {
            (_, true) => values.push(volume_report::volume(path, &look, |summary, value| {
                volume_report::put_summary(summary, value);
            })),
            (VolumeInspection::Free(summary), _) => {
                base::show!("{}", volume_report::summary(summary, now_ms, index_most));
            }
            (VolumeInspection::InUse, _) => base::show!(
                "{}: in use by a daemon, whose figures `larder stat` shows",
                path.display()
            ),
            (VolumeInspection::Failed(why), _) => base::say!("{why}"),
        }
    }
    finish(as_json, values, failed, "not every volume could be looked at")
}

fn check(paths: &[PathBuf], as_json: bool) -> Result<(), String> {
    let (mut values, mut failed) = (Vec::new(), false);
    for path in paths {
        let look = VolumeInspection::at(path, tools::check);
        failed |= !matches!(&look, VolumeInspection::Free(checked) if is_sound(checked));
        match (&look, as_json) {
            (_, true) => values.push(volume_report::volume(path, &look, volume_report::put_check)),
            (VolumeInspection::Free(checked), _) => {
                base::show!("{}", volume_report::check(checked));
            }
            (VolumeInspection::InUse, _) => {
                base::say!("larder: {}: a daemon uses it: stop that first", path.display());
            }
            (VolumeInspection::Failed(why), _) => base::say!("{why}"),
        }
    }
    finish(as_json, values, failed, "not every volume is sound")
}

/// Ends a report: prints its JSON object, or returns the failure.
fn finish(as_json: bool, values: Vec<Value>, failed: bool, why: &str) -> Result<(), String> {
    if as_json {
        base::show!("{}", json!({ "volumes": values }));
    }
    if failed { Err(format!("larder: {why}")) } else { Ok(()) }
}

fn empty(paths: &[PathBuf], yes: bool) -> Result<(), String> {
    let volumes: Vec<_> = paths.iter().map(|path| open(path)).collect::<Result<_, _>>()?;
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    if !yes {
        return Err(format!(
            "larder: this removes everything stored in {}: confirm with --yes",
            names.join(", ")
        ));
    }
    for (vfs, name) in volumes.iter().zip(names) {
        tools::empty(vfs).map_err(|error| match error {
            disk::Error::Locked { .. } => {
                format!("larder: {name}: a daemon uses it: stop that first")
            }
            error => format!("larder: {error}"),
        })?;
        base::show!("{name}: empty");
    }
    Ok(())
}
