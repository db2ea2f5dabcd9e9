//! The inspection of a volume while no daemon uses it.

use std::path::Path;
use std::sync::Arc;

use base::clock::System;
use disk::Clock;
use disk::tools::{CheckReport, Summary};
use disk::vfs::{RealDirectory, Vfs};

/// The clocks of the system.
pub(super) fn clock() -> Clock {
    Arc::new(|| System.now())
}

/// Opens a volume's directory. Opening sets private permissions, so another directory must not be
/// opened.
pub(super) fn open(path: &Path) -> Result<Arc<dyn Vfs>, String> {
    let failed = |why: String| format!("larder: {}: {why}", path.display());
    let names = std::fs::read_dir(path).map_err(|error| failed(error.to_string()))?;
    let mut names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    // A volume that was never complete has data files only.
    if !names.any(|name| name == "superblock" || name == "data-0000") {
        return Err(failed("there is no volume here".to_owned()));
    }
    let real = RealDirectory::at(path).of_anyone();
    real.list().map_err(|error| failed(error.to_string()))?;
    Ok(Arc::new(real))
}

/// The result of inspecting a volume.
pub(super) enum VolumeInspection<T> {
    Free(T),
    /// A daemon uses the volume.
    InUse,
    /// The reason why it cannot be inspected.
    Failed(String),
}

impl<T> VolumeInspection<T> {
    /// Inspects the volume in `path`.
    pub(super) fn at(
        path: &Path,
        look: fn(&Arc<dyn Vfs>, &Clock) -> Result<T, disk::Error>,
    ) -> Self {
        let vfs = match open(path) {
            Ok(vfs) => vfs,
            Err(why) => return Self::Failed(why),
        };
        match look(&vfs, &clock()) {
            Ok(found) => Self::Free(found),
            Err(disk::Error::Locked { .. }) => Self::InUse,
            Err(error) => Self::Failed(format!("larder: {error}")),
        }
    }
}

/// Returns true if nothing is damaged. A segment without a table is left by a crash.
pub(super) fn is_sound(checked: &CheckReport) -> bool {
    let Summary { trusted, stats, .. } = &checked.summary;
    checked.flaws.is_empty() && *trusted && stats.damaged_snapshot == 0
}
