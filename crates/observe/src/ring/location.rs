//! The location of a daemon's rings, which its writer and its readers derive from the admin socket.

use std::path::{Path, PathBuf};

/// The possible folders of the rings of the daemon with this admin socket, the preferred one first;
/// `uid` is the calling user.
pub fn folders(socket: &Path, uid: u32) -> [PathBuf; 2] {
    let socket = std::path::absolute(socket).unwrap_or_else(|_| socket.to_owned());
    let beside = socket.with_extension("ring");
    let hash = base::HashSeed::from_u64(0).hash(socket.as_os_str().as_encoded_bytes());
    let name = format!("larder-{uid}-{hash:016x}.ring");
    [beside, Path::new("/dev/shm").join(name)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_has_its_own_folder_by_its_socket() {
        let [beside, shared] = folders(Path::new("/run/larder/admin.sock"), 7);
        assert_eq!(beside, Path::new("/run/larder/admin.ring"));
        assert!(shared.starts_with("/dev/shm"));
        assert_ne!(shared, folders(Path::new("/run/other/admin.sock"), 7)[1]);
        assert_ne!(shared, folders(Path::new("/run/larder/admin.sock"), 8)[1]);
    }
}
