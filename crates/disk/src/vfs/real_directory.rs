//! A real directory and its files, which must not be readable by any other user.

use std::any::Any;
use std::io::{self, ErrorKind, IoSliceMut};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustix::fs::{self, AtFlags, FallocateFlags, FlockOperation, Gid, Mode, OFlags, Uid};
use rustix::io::{Errno, ReadWriteFlags, pread, preadv2, pwrite};
use rustix::process::geteuid;

use super::{File, Vfs};
use crate::layout::SUPERBLOCK;

/// The file that a process locks.
pub(super) const LOCK: &str = "lock";

/// A directory of the operating system.
#[derive(Debug)]
pub struct RealDirectory {
    path: PathBuf,
    /// Set once it has been opened.
    directory: OnceLock<OwnedFd>,
    /// A mount point that must be mounted before it is opened.
    mount: Option<PathBuf>,
    /// True if root may open a directory of another user.
    is_anyones: bool,
}

impl RealDirectory {
    /// Opens the directory, or creates it with mode 0700 in an existing one. An empty directory and
    /// a volume get that mode; any other is not changed.
    ///
    /// # Errors
    /// Those of the system.
    pub fn new(path: &Path) -> io::Result<Self> {
        let real = Self::at(path);
        real.directory()?;
        Ok(real)
    }

    /// The directory at `path`, opened at its first use as by [`RealDirectory::new`]. A failed
    /// opening is repeated at the next use.
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), directory: OnceLock::new(), mount: None, is_anyones: false }
    }

    /// Permits root to open a directory of another user, who then owns the new files.
    #[must_use]
    pub fn of_anyone(self) -> Self {
        Self { is_anyones: true, ..self }
    }

    /// Requires a mounted file system at `mount` before the directory is opened: without it the
    /// path is on another disk.
    #[must_use]
    pub fn below_mount(self, mount: PathBuf) -> Self {
        Self { mount: Some(mount), ..self }
    }

    /// The required mount point, if nothing is mounted there; otherwise `None`.
    pub fn unmounted(&self) -> Option<&Path> {
        self.mount.as_deref().filter(|mount| !is_mounted(mount))
    }

    fn directory(&self) -> io::Result<&OwnedFd> {
        if let Some(directory) = self.directory.get() {
            return Ok(directory);
        }
        if let Some(mount) = self.unmounted() {
            let why = format!("nothing is mounted at {}", mount.display());
            return Err(io::Error::new(ErrorKind::NotFound, why));
        }
        let private = Mode::RWXU;
        match fs::mkdir(&self.path, private) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = fs::open(&self.path, flags, Mode::empty())?;
        // Any other owner could forge files.
        let owner = Uid::from_raw(fs::fstat(&directory)?.st_uid);
        let is_trusted = owner.is_root() || self.is_anyones && geteuid().is_root();
        if owner != geteuid() && !is_trusted {
            return Err(io::Error::new(ErrorKind::PermissionDenied, "it is another user's"));
        }
        // An existing directory may be open to others, but may also be foreign.
        let names = names(&directory)?;
        if names.is_empty() || names.iter().any(|name| name == SUPERBLOCK) {
            fs::fchmod(&directory, private)?;
        }
        Ok(self.directory.get_or_init(|| directory))
    }

    fn file(&self, name: &str, make: bool) -> io::Result<OwnedFd> {
        let mut flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        if make {
            flags |= OFlags::CREATE;
        }
        let directory = self.directory()?;
        let file = fs::openat(directory, name, flags, Mode::RUSR | Mode::WUSR)?;
        if make && self.is_anyones {
            let (whole, own) = (fs::fstat(directory)?, fs::fstat(&file)?);
            if own.st_uid == geteuid().as_raw() && own.st_uid != whole.st_uid {
                let (uid, gid) = (Uid::from_raw(whole.st_uid), Gid::from_raw(whole.st_gid));
                fs::fchown(&file, Some(uid), Some(gid))?;
            }
        }
        Ok(file)
    }
}

impl Vfs for RealDirectory {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn open(&self, name: &str, make: bool) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(RealFile(self.file(name, make)?)))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        names(self.directory()?)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let directory = self.directory()?;
        Ok(fs::renameat(directory, from, directory, to)?)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        Ok(fs::unlinkat(self.directory()?, name, AtFlags::empty())?)
    }

    fn sync_names(&self) -> io::Result<()> {
        Ok(fs::fsync(self.directory()?)?)
    }

    fn lock(&self) -> io::Result<Box<dyn Any + Send + Sync>> {
        let file = self.file(LOCK, true)?;
        match fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Box::new(file)),
            Err(Errno::WOULDBLOCK) => Err(ErrorKind::WouldBlock.into()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns true if a file system is mounted at `point`, as far as the system reports it.
fn is_mounted(point: &Path) -> bool {
    let Ok(mounts) = std::fs::read_to_string("/proc/self/mountinfo") else { return true };
    let escaped = point.display().to_string().replace(' ', "\\040");
    mounts.lines().any(|line| line.split(' ').nth(4) == Some(&*escaped))
}

/// Names of the files in a directory, except the lock file.
pub(super) fn names(directory: impl AsFd) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::Dir::read_from(directory)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !matches!(&*name, "." | ".." | LOCK) {
            names.push(name);
        }
    }
    Ok(names)
}

/// A file of a [`RealDirectory`].
#[derive(Debug)]
struct RealFile(OwnedFd);

impl File for RealFile {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        Ok(pread(&self.0, into, at)?)
    }

    fn read_now_at(&self, into: &mut [u8], at: u64) -> io::Result<Option<usize>> {
        let into = &mut [IoSliceMut::new(into)];
        match preadv2(&self.0, into, at, ReadWriteFlags::NOWAIT) {
            Ok(bytes) => Ok(Some(bytes)),
            // Not in memory, or a file system without this call.
            Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<usize> {
        Ok(pwrite(&self.0, bytes, at)?)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(fs::fdatasync(&self.0)?)
    }

    fn preallocate(&self, bytes: u64) -> io::Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        match fs::fallocate(&self.0, FallocateFlags::empty(), 0, bytes) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) if self.size()? < bytes => self.truncate(bytes),
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn truncate(&self, bytes: u64) -> io::Result<()> {
        Ok(fs::ftruncate(&self.0, bytes)?)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(fs::fstat(&self.0)?.st_size.unsigned_abs())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, create_dir, remove_dir_all, set_permissions, write};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_a_directory_that_is_empty_or_a_volume_is_closed_to_others() {
        let name = format!("larder-disk-modes-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        for (files, mode) in [
            (&[][..], 0o700),
            (&["superblock", "data-0000"], 0o700),
            // Left by a start that was rejected.
            (&["lock"], 0o700),
            (&["photo.jpeg"], 0o755),
            (&["photo.jpeg", "lock"], 0o755),
        ] {
            create_dir(&path).unwrap();
            set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
            for file in files {
                write(path.join(file), "").unwrap();
            }
            let opened = RealDirectory::new(&path).map(drop);
            let is = path.metadata().unwrap().permissions().mode() & 0o777;
            remove_dir_all(&path).unwrap();
            assert!(opened.is_ok(), "{files:?}");
            assert_eq!(is, mode, "{files:?}");
        }
    }

    #[test]
    fn below_a_mount_point_with_nothing_mounted_nothing_is_made() {
        let name = format!("larder-disk-unmounted-{}", std::process::id());
        let point = std::env::temp_dir().join(name);
        create_dir(&point).unwrap();
        let unmounted = RealDirectory::at(&point.join("larder")).below_mount(point.clone());
        assert_eq!(unmounted.unmounted(), Some(&*point));
        let refused = unmounted.list().unwrap_err().to_string();
        let made = point.join("larder").exists();
        let mounted = RealDirectory::at(&point.join("larder")).below_mount("/".into());
        let names = mounted.list();
        remove_dir_all(&point).unwrap();
        assert!(refused.starts_with("nothing is mounted at "), "{refused}");
        assert!(!made && names.is_ok());
    }

    #[test]
    fn a_directory_of_another_user_is_not_taken() {
        if !geteuid().is_root() {
            return;
        }
        let name = format!("larder-disk-owner-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        create_dir(&path).unwrap();
        std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
        let refused = RealDirectory::new(&path).map(drop);
        remove_dir_all(&path).unwrap();
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_directory_that_cannot_be_opened_yet_is_opened_later() {
        let name = format!("larder-disk-later-{}", std::process::id());
        let above = std::env::temp_dir().join(name);
        let later = RealDirectory::at(&above.join("larder"));
        assert_eq!(later.list().unwrap_err().kind(), ErrorKind::NotFound);
        create_dir(&above).unwrap();
        let names = later.list();
        remove_dir_all(&above).unwrap();
        assert_eq!(names.unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_directory_that_is_made_is_closed_to_others() {
        let name = format!("larder-disk-made-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        RealDirectory::new(&path).unwrap();
        let mode = path.metadata().unwrap().permissions().mode() & 0o777;
        remove_dir_all(&path).unwrap();
        assert_eq!(mode, 0o700);
    }
}
