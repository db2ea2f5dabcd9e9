//! The log ring: its folder, and its creation.
//!
//! It belongs on a file system in memory. Beside the admin socket is mostly one (`/run`), but not
//! in many containers; `/dev/shm` always is one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use observe::ring::{InheritedLock, Options, Ring, folders};
use rustix::process::geteuid;

/// Types of file systems that never wait for a disk (`statfs(2)`).
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// Creates the rings of `cores` cores, which are to be published. On a failure the daemon logs it
/// and runs without.
pub(crate) fn start(
    config: &config::LogRing,
    folder: PathBuf,
    cores: usize,
    inherited: Option<InheritedLock>,
) -> Option<Arc<Ring>> {
    if !is_in_memory(&folder) {
        base::tell!(
            Warn,
            "larder: warning: the log ring in {} is not in memory, writing to it may wait for a \
             disk: `[log_ring] folder` names another place",
            folder.display()
        );
    }
    let options = Options {
        folder,
        cores,
        size: config.size,
        names: config.headers.clone(),
        pid: std::process::id(),
        uid: geteuid().as_raw(),
        started_unix_ms: rt::now().unix_ms,
    };
    match Ring::create(&options, inherited) {
        Ok(ring) => Some(Arc::new(ring)),
        Err(error) => {
            log_missing(&options.folder, &error);
            None
        }
    }
}

/// Lets readers find the rings.
pub(crate) fn publish(ring: &Ring) {
    if let Err(error) = ring.publish() {
        log_missing(ring.folder(), &error);
    }
}

fn log_missing(folder: &Path, error: &std::io::Error) {
    let folder = folder.display();
    base::tell!(Error, "larder: no log ring in {folder}, so nothing for `larder log`: {error}");
}

/// The default folder.
pub fn usual_folder(socket: &Path) -> PathBuf {
    let [beside, shared] = folders(socket, geteuid().as_raw());
    if !is_in_memory(&beside) && is_in_memory(&shared) { shared } else { beside }
}

/// Returns true if files in `folder`, which may still be missing, stay in memory.
fn is_in_memory(folder: &Path) -> bool {
    let existing = folder.ancestors().find(|path| path.exists());
    let found = existing.and_then(|path| rustix::fs::statfs(path).ok());
    found.is_some_and(|found| IN_MEMORY.contains(&(found.f_type as u64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_folder_will_be_on_is_reported_before_it_is_there() {
        assert!(!is_in_memory(Path::new("/proc/self/none/whatever")));
        assert!(is_in_memory(Path::new("/dev/shm/none/whatever")));
    }
}
