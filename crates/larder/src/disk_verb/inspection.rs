//! Volumes, looked at while no daemon has them.

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

/// Opens a volume's directory. Another one would become private by that, so it is not opened.
pub(super) fn open(path: &Path) -> Result<Arc<dyn Vfs>, String> {
    let failed = |why: String| format!("larder: {}: {why}", path.display());
    let names = std::fs::read_dir(path).map_err(|error| failed(error.to_string()))?;
    let mut names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    // One that was never whole has data alone.
    if !names.any(|name| name == "superblock" || name == "data-0000") {
        return Err(failed("there is no volume here".to_owned()));
    }
    let real = RealDirectory::at(path).of_anyone();
    real.list().map_err(|error| failed(error.to_string()))?;
    Ok(Arc::new(real))
}

/// The result of looking at a volume.
pub(super) enum VolumeInspection<T> {
    Free(T),
    /// A daemon has it.
    InUse,
    /// The reason why it cannot be looked at.
    Failed(String),
}

impl<T> VolumeInspection<T> {
    /// Looks at the volume in `path`.
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

/// Returns true if nothing is damaged. A segment without a table is what a crash leaves.
pub(super) fn is_sound(checked: &CheckReport) -> bool {
    let Summary { trusted, stats, .. } = &checked.summary;
    checked.flaws.is_empty() && *trusted && stats.damaged_snapshot == 0
}
