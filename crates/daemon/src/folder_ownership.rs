//! Folder ownership: gives folders and files that the daemon keeps to the user that it switches to,
//! while it is still root.
//!
//! Root must never follow a link that another user could have made. It gives away only what it has
//! open: regular files with one name, sockets and folders. A folder that holds anything but a cache
//! is never given to a cache's user.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use config::{Diagnostic, DiskVolume};
use disk::vfs::{DirectoryContent, is_volumes};
use rustix::fs::{
    AtFlags, Dir, FileType, Gid, Mode, OFlags, Stat, StatVfsMountFlags, Uid, chownat, fchmod,
    fstat, fstatvfs, mkdirat, open, openat, readlinkat,
};
use rustix::io::Errno;

use crate::account::{Account, Runner};
use crate::disk_store;

/// Nesting of folders that are given away.
const DEPTH: u32 = 8;

/// Links on the way to a folder, as many as the kernel follows (path_resolution(7)).
const LINKS_MAX: u32 = 40;

/// The sticky bit: every user may create files in the folder, only owners remove them.
const STICKY: u32 = 0o1000;
/// Users other than the owner may write.
const OTHERS_WRITE: u32 = 0o022;

/// The mode of created parent folders: every user may enter them.
const WAY_MODE: u32 = 0o755;
/// The mode of the folder itself: access for its owner only.
const OWN_MODE: u32 = 0o700;

/// Flags to inspect a path without opening it for reading; links are not followed.
const LOOK: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const LIST: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The reason why a folder is not given to a user, or not usable for it.
#[derive(Debug)]
pub(crate) enum FolderRefusal {
    /// The folder holds something other than a cache.
    ForeignContent,
    /// The folder is another user's, at a place where that user may have created it.
    ForeignOwner,
    /// A link on the way, which another user can change.
    Link(PathBuf),
    /// A mount point on the way without its file system.
    Unmounted(PathBuf),
    /// A folder on the way that the user may not enter.
    NotPermitted(PathBuf),
    /// The path, or a part of it, is no folder.
    NotAFolder(PathBuf),
    /// The system's error.
    System(io::Error),
}

impl From<Errno> for FolderRefusal {
    fn from(error: Errno) -> Self {
        Self::System(error.into())
    }
}

impl From<io::Error> for FolderRefusal {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl FolderRefusal {
    /// Returns true if it prevents the start. For other reasons the daemon runs without the volume
    /// and tries again.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self, Self::ForeignContent)
    }

    /// The diagnostic for the volume that the setting `name` names.
    pub(crate) fn diagnostic(&self, volume: &DiskVolume, name: &str) -> Diagnostic {
        let path = volume.path.display();
        let other = "name another directory: `[disk] path`";
        let (why, help) = match self {
            Self::ForeignContent => (
                format!("there are files that are not a cache's, so it is not given to {name}"),
                "name an empty directory: `[disk] path`; or empty this one".to_owned(),
            ),
            Self::ForeignOwner => (
                format!("it is another user's, who may have made it, so it is not given to {name}"),
                format!("if it is right: `chown {name} {path}`; or {other}"),
            ),
            Self::Link(link) => (
                format!("{} is a link that another user can change", link.display()),
                "name the directory that it leads to".to_owned(),
            ),
            Self::Unmounted(at) => (
                format!("nothing is mounted at {}", at.display()),
                "mount it: nothing is written to the file system below".to_owned(),
            ),
            Self::NotPermitted(folder) => {
                let folder = folder.display();
                (
                    format!("{name} may not enter {folder}"),
                    format!("let {name} in: `setfacl -m u:{name}:x {folder}`; or {other}"),
                )
            }
            Self::NotAFolder(path) => {
                (format!("{} is not a directory", path.display()), other.to_owned())
            }
            Self::System(error) => (
                format!("it cannot be given to {name}: {error}"),
                format!("as root: `install -d -o {name} -m 700 {path}`; or {other}"),
            ),
        };
        let mut told = volume.place.error(format!("the disk cache in {path}: {why}"));
        told.help = Some(help);
        told
    }
}

/// The existing part of the way to a path.
struct Walk {
    /// The last existing folder, and its path without links.
    at: OwnedFd,
    found: Stat,
    path: PathBuf,
    /// The missing names behind it.
    missing: Vec<OsString>,
    /// All folders before the last one can be changed by root only.
    is_closed: bool,
}

impl Walk {
    fn root() -> Result<Self, FolderRefusal> {
        let at = open("/", LOOK, Mode::empty())?;
        let found = fstat(&at)?;
        Ok(Self { at, found, path: "/".into(), missing: Vec::new(), is_closed: true })
    }

    fn to(path: &Path) -> Result<Self, FolderRefusal> {
        let mut rest: VecDeque<_> = names(&std::path::absolute(path)?).collect();
        let (mut way, mut links) = (Self::root()?, LINKS_MAX);
        while let Some(name) = rest.pop_front() {
            if !way.is_folder() {
                return Err(FolderRefusal::NotAFolder(way.path));
            }
            let at = match openat(&way.at, &name, LOOK, Mode::empty()) {
                Ok(at) => at,
                Err(Errno::NOENT) if !rest.iter().any(|name| name == "..") => {
                    way.missing = std::iter::once(name).chain(rest).collect();
                    return Ok(way);
                }
                Err(error) => return Err(error.into()),
            };
            let found = fstat(&at)?;
            if FileType::from_raw_mode(found.st_mode) == FileType::Symlink {
                if links == 0 || found.st_uid != 0 || !way.keeps_names() {
                    return Err(FolderRefusal::Link(way.path.join(name)));
                }
                links -= 1;
                let target = readlinkat(&at, "", Vec::new())?.into_bytes();
                let target = PathBuf::from(OsString::from_vec(target));
                names(&target).rev().for_each(|name| rest.push_front(name));
                way.is_closed &= way.is_roots_alone();
                if target.is_absolute() {
                    way = Self { is_closed: way.is_closed, ..Self::root()? };
                }
            } else {
                way.enter(&name, at, found);
            }
        }
        Ok(way)
    }

    fn enter(&mut self, name: &OsStr, at: OwnedFd, found: Stat) {
        self.is_closed &= self.is_roots_alone();
        match name == ".." {
            true => _ = self.path.pop(),
            false => self.path.push(name),
        }
        (self.at, self.found) = (at, found);
    }

    fn is_folder(&self) -> bool {
        FileType::from_raw_mode(self.found.st_mode) == FileType::Directory
    }

    /// Returns true if only root creates, removes and renames entries of the folder.
    fn is_roots_alone(&self) -> bool {
        self.found.st_uid == 0 && self.found.st_mode & OTHERS_WRITE == 0
    }

    /// Returns true if only root removes and renames root's entries of the folder.
    fn keeps_names(&self) -> bool {
        self.found.st_uid == 0 && (self.is_roots_alone() || self.found.st_mode & STICKY != 0)
    }

    /// Creates the missing folders, regardless of the umask.
    fn make(mut self) -> Result<Self, FolderRefusal> {
        let names = std::mem::take(&mut self.missing);
        for (number, name) in names.iter().enumerate() {
            let is_last = number + 1 == names.len();
            let mode = Mode::from_raw_mode(if is_last { OWN_MODE } else { WAY_MODE });
            match mkdirat(&self.at, name, mode) {
                // Another process creates it at the same time.
                Err(Errno::EXIST) if !is_last => {}
                made => made?,
            }
            let at = openat(&self.at, name, LIST | OFlags::NOFOLLOW, Mode::empty())?;
            let mut found = fstat(&at)?;
            if found.st_uid == 0 && found.st_mode & 0o777 & !mode.bits() == 0 {
                fchmod(&at, mode)?;
                found = fstat(&at)?;
            }
            self.enter(name, at, found);
        }
        Ok(self)
    }
}

/// The components of a path.
fn names(path: &Path) -> impl DoubleEndedIterator<Item = OsString> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    })
}

/// The way to a volume's folder, which may still be missing, if `user` may have it and can use it.
/// Nothing is changed.
fn volume(path: &Path, user: &Runner) -> Result<Walk, FolderRefusal> {
    if let Some(mount) = disk_store::directory(path).unmounted() {
        return Err(FolderRefusal::Unmounted(mount.to_owned()));
    }
    let way = Walk::to(path)?;
    let is_there = way.missing.is_empty();
    let entered = if is_there { way.path.parent() } else { Some(&*way.path) };
    if let Some(barred) = entered.and_then(|folder| user.barred(folder)) {
        return Err(FolderRefusal::NotPermitted(barred.to_owned()));
    }
    if !way.is_folder() {
        return Err(FolderRefusal::NotAFolder(way.path));
    }
    if fstatvfs(&way.at)?.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Err(Errno::ROFS.into());
    }
    if is_there {
        if DirectoryContent::of(openat(&way.at, ".", LIST, Mode::empty())?)?
            == DirectoryContent::Other
        {
            return Err(FolderRefusal::ForeignContent);
        }
        // Files that another user made could be served as responses.
        if ![0, user.uid].contains(&way.found.st_uid) && !way.is_closed {
            return Err(FolderRefusal::ForeignOwner);
        }
    }
    Ok(way)
}

/// Predicts whether a start as root would give a volume at `path` to `user`.
///
/// # Errors
/// The reason why it would not.
pub(crate) fn foresee(path: &Path, user: &Runner) -> Result<(), FolderRefusal> {
    volume(path, user).map(drop)
}

impl Account {
    /// Creates the folder of a volume, if it is missing, and gives it away with the volume's files.
    ///
    /// # Errors
    /// The reason why this user does not get it, or cannot use it.
    pub(crate) fn give_volume(&self, path: &Path) -> Result<(), FolderRefusal> {
        let way = volume(path, &self.runner)?.make()?;
        let folder = openat(&way.at, ".", LIST, Mode::empty())?;
        let before = way.found.st_uid;
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            if !entry.file_name().to_str().is_ok_and(is_volumes) {
                continue;
            }
            let Ok(file) = openat(&folder, entry.file_name(), LOOK, Mode::empty()) else {
                continue;
            };
            let found = fstat(&file)?;
            if is_sole(&found) && [0, before].contains(&found.st_uid) {
                self.own(&file, &found)?;
            }
        }
        // Last: until then only the former owner can create files in it.
        Ok(self.own(&folder, &way.found)?)
    }

    /// Creates a folder, if it is missing, and gives it away with its content.
    pub(crate) fn give_folder(&self, folder: &Path) {
        // The user of the folder reports a failure.
        if let Ok(way) = Walk::to(folder).and_then(Walk::make) {
            self.give_way(&way);
        }
    }

    /// Gives away a file or folder of root's, with its content. Links in it are neither followed
    /// nor given away: another user might have made them.
    pub(crate) fn give(&self, path: &Path) {
        if let Ok(way) = Walk::to(path)
            && way.missing.is_empty()
        {
            self.give_way(&way);
        }
    }

    /// Gives away a folder of root's that is empty but for `names`. The files of these names stay
    /// root's.
    pub(crate) fn give_if_holds_only(&self, folder: &Path, names: &[&OsStr]) {
        let Ok(way) = Walk::to(folder) else { return };
        if !way.missing.is_empty() || !way.is_roots_alone() {
            return;
        }
        let opened = openat(&way.at, ".", LIST, Mode::empty());
        let Ok(mut entries) = opened.and_then(Dir::read_from) else { return };
        let is_own = |name: &OsStr| name == "." || name == ".." || names.contains(&name);
        let is_ours = entries.all(|entry| {
            entry.is_ok_and(|entry| is_own(OsStr::from_bytes(entry.file_name().to_bytes())))
        });
        if is_ours {
            // A failure shows when the folder is written to.
            _ = self.own(&way.at, &way.found);
        }
    }

    fn give_way(&self, way: &Walk) {
        let before = way.found.st_uid;
        let is_left = way.is_closed && self.is_least(before);
        self.give_handle(&way.at, &[0, if is_left { before } else { 0 }], DEPTH);
    }

    /// Gives away the open file, and its content, where it belongs to one of `owners`.
    fn give_handle(&self, handle: &OwnedFd, owners: &[u32], depth: u32) {
        let Ok(found) = fstat(handle) else { return };
        let is_folder = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
        if owners.contains(&found.st_uid) && (is_sole(&found) || is_folder) {
            // A failure shows when the file is used.
            _ = self.own(handle, &found);
        }
        let is_ours = owners.contains(&found.st_uid) || found.st_uid == self.runner.uid;
        if !is_folder || !is_ours || depth == 0 {
            return;
        }
        let Ok(folder) = openat(handle, ".", LIST, Mode::empty()) else { return };
        let Ok(entries) = Dir::read_from(&folder) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if [&b"."[..], b".."].contains(&name.to_bytes()) {
                continue;
            }
            if let Ok(inner) = openat(&folder, name, LOOK, Mode::empty()) {
                self.give_handle(&inner, owners, depth - 1);
            }
        }
    }

    fn own(&self, handle: impl AsFd, found: &Stat) -> rustix::io::Result<()> {
        if found.st_uid == self.runner.uid {
            return Ok(());
        }
        let (uid, gid) = (Uid::from_raw(self.runner.uid), Gid::from_raw(self.gid().as_raw()));
        chownat(handle, "", Some(uid), Some(gid), AtFlags::EMPTY_PATH)
    }
}

/// Returns true for a file or socket with a single name: another name might be in another user's
/// folder.
fn is_sole(found: &Stat) -> bool {
    let kind = FileType::from_raw_mode(found.st_mode);
    found.st_nlink == 1 && matches!(kind, FileType::RegularFile | FileType::Socket)
}

#[cfg(test)]
mod tests;
