//! The disk store below the cache: opened before the first response, and closed last.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::units::DurationMs;
use config::{Admission, Config, DiskConfig, DiskVolume};
use disk::VolumeConfig;
use disk::vfs::RealDirectory;
use flow::SharedState;
use flow::tier::{self, Cache, DiskRules, OpenedDisk};

/// Opens the configured disk store.
///
/// # Errors
/// The volume that cannot be used, and the reason.
pub(crate) fn open(config: &Config, cache: &Arc<Cache>) -> Result<Option<OpenedDisk>, String> {
    let Some(disk) = &config.disk else { return Ok(None) };
    let told = |error: disk::Error| format!("larder: cannot start: {error}");
    let volumes = disk.volumes.iter().map(volume).collect();
    let admit_all = disk.admission == Admission::All;
    let rules = DiskRules { admit_all };
    tier::open(cache, settings(disk, volumes, config), rules).map(Some).map_err(told)
}

fn volume(volume: &DiskVolume) -> VolumeConfig {
    let vfs = Arc::new(directory(&volume.path));
    VolumeConfig { weight: volume.share(), ..VolumeConfig::new(vfs, volume.bytes) }
}

/// The directory of a volume, below its file system's mount point.
pub(crate) fn directory(path: &Path) -> RealDirectory {
    let fstab = fs::read_to_string("/etc/fstab").unwrap_or_default();
    let vfs = RealDirectory::at(path);
    match mount_point(&fstab, path) {
        Some(mount) => vfs.below_mount(mount),
        None => vfs,
    }
}

/// The mount point of `fstab` at `path` or above it.
fn mount_point(fstab: &str, path: &Path) -> Option<PathBuf> {
    let entries = fstab.lines().filter(|line| !line.trim_start().starts_with('#'));
    let points = entries.filter_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let (point, _, options) = (fields.nth(1)?, fields.next()?, fields.next().unwrap_or(""));
        let is_mounted = !options.split(',').any(|option| option == "noauto");
        let point = Path::new(point);
        let is_own = point.is_absolute() && point != Path::new("/");
        (is_mounted && is_own && path.starts_with(point)).then(|| point.to_owned())
    });
    points.max_by_key(|point| point.components().count())
}

fn settings(disk: &DiskConfig, volumes: Vec<VolumeConfig>, config: &Config) -> disk::Config {
    disk::Config {
        queue_bytes: config.limits.disk_queue_bytes,
        retry_ms: config.limits.disk_retry,
        append_waits: disk.durable_purges,
        erase: disk.erase,
        ..disk::Config::new(volumes)
    }
}

/// Attaches the disk to the cache, and logs its state.
pub(crate) fn attach_disk(shared: &Arc<SharedState>, config: &Config, below: OpenedDisk) {
    let taken = below.take_up(&shared.invalidator, rt::now());
    for (number, volume) in config.disk.iter().flat_map(|disk| disk.volumes.iter().enumerate()) {
        let path = volume.path.display();
        if taken.emptied.contains(&number) {
            base::tell!(Warn, "larder: the disk cache in {path} was incomplete, and is empty now");
        }
    }
    let every = DurationMs(config.limits.disk_retry);
    for (why, remedy) in &taken.failed {
        base::tell!(
            Error,
            "larder: the disk cache in {why}. Larder runs without it, and tries it again every \
             {every}: {remedy}"
        );
    }
    for why in &taken.not_done {
        base::tell!(
            Warn,
            "larder: a purge from before this start: {why}; responses older than it are not used"
        );
    }
}

/// Opens and attaches the disk that another process had, with the hashes of `seed`.
///
/// # Errors
/// The volume that cannot be used, and the reason.
pub(crate) fn take_over(
    shared: &Arc<SharedState>,
    config: &Config,
    seed: u64,
) -> Result<(), String> {
    let Some(below) = open(config, &shared.cache)? else { return Ok(()) };
    if below.seed_number() != seed {
        return Err("larder: cannot start: the disk cache is another one than before".to_owned());
    }
    attach_disk(shared, config, below);
    Ok(())
}

/// Copies memory to the disk for at most `most`, and closes the disk.
pub(crate) fn close(shared: &Arc<SharedState>, most: Duration) {
    copy(shared, most);
    shared.cache.lower().close();
}

/// Copies memory to the disk for at most `most`.
pub(crate) fn copy(shared: &Arc<SharedState>, most: Duration) {
    if let Some(resting) = shared.cache.lower().copy_all(&shared.cache, most)
        && resting.is_cut
    {
        base::tell!(
            Warn,
            "larder: not everything in memory was copied to disk: the time limit was reached"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_system_that_a_path_should_be_on_is_the_one_that_is_mounted_nearest() {
        let fstab = "# /dev/sdz /srv ext4 defaults 0 0\n\
                     UUID=1 / ext4 defaults 0 1\n\
                     UUID=2 none swap sw 0 0\n\
                     /dev/nvme0n1 /srv/nvme0 xfs noatime 0 2\n\
                     /dev/nvme1n1 /srv/nvme0/cold xfs\n\
                     /dev/sdb /mnt/usb ext4 noauto,user 0 0\n";
        for (path, point) in [
            ("/srv/nvme0", Some("/srv/nvme0")),
            ("/srv/nvme0/larder", Some("/srv/nvme0")),
            ("/srv/nvme0/cold/larder", Some("/srv/nvme0/cold")),
            ("/srv/nvme01/larder", None),
            ("/mnt/usb/larder", None),
            ("/var/cache/larder", None),
        ] {
            assert_eq!(mount_point(fstab, Path::new(path)).as_deref(), point.map(Path::new));
        }
    }
}
