//! The disk below the cache: opened at the start, before its first response, and closed last.

use std::sync::Arc;
use std::time::Duration;

use config::{Admission, Config, DiskConfig, DiskVolume};
use disk::VolumeConfig;
use disk::vfs::Real;
use flow::Shared;
use flow::tier::{self, Cache, DiskRules, OpenedDisk};

/// Opens the disk that the configuration wants.
///
/// # Errors
/// The volume that cannot be used, and why.
pub(crate) fn open(config: &Config, cache: &Arc<Cache>) -> Result<Option<OpenedDisk>, String> {
    let Some(disk) = &config.disk else { return Ok(None) };
    let told = |error: disk::Error| format!("larder: cannot start: {error}");
    let volumes = disk.volumes.iter().map(volume).collect::<Result<_, _>>()?;
    let admit_all = disk.admission == Admission::All;
    let rules = DiskRules { admit_all };
    tier::open(cache, settings(disk, volumes, config), rules).map(Some).map_err(told)
}

fn volume(volume: &DiskVolume) -> Result<VolumeConfig, String> {
    let path = &volume.path;
    let vfs = Real::new(path).map_err(|error| {
        format!("larder: cannot start: the disk cache in {}: {error}", path.display())
    })?;
    Ok(VolumeConfig { weight: volume.share(), ..VolumeConfig::new(Arc::new(vfs), volume.bytes) })
}

fn settings(disk: &DiskConfig, volumes: Vec<VolumeConfig>, config: &Config) -> disk::Config {
    disk::Config {
        queue_bytes: config.limits.disk_queue_bytes,
        append_waits: disk.durable_purges,
        erase: disk.erase,
        ..disk::Config::new(volumes)
    }
}

/// Takes the disk up, and says what there is to say of it.
pub(crate) fn take_up(shared: &Arc<Shared>, config: &Config, below: OpenedDisk) {
    let taken = shared.take_up(below, rt::now());
    for (number, volume) in config.disk.iter().flat_map(|disk| disk.volumes.iter().enumerate()) {
        let path = volume.path.display();
        if taken.emptied.contains(&number) {
            base::tell!(Warn, "larder: the disk cache in {path} was not whole, and is empty now");
        }
    }
    for why in &taken.not_done {
        base::tell!(
            Warn,
            "larder: a purge of before this start: {why}; what is older stays unused"
        );
    }
}

/// Copies what is in memory to the disk, and closes it.
pub(crate) fn close(shared: &Arc<Shared>, most: Duration) {
    if let Some(resting) = shared.cache.lower().rest(&shared.cache, most)
        && resting.is_cut
    {
        base::tell!(
            Warn,
            "larder: not all that was in memory is on disk: that would have taken too long"
        );
    }
}
