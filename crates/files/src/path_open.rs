//! Path opening below a directory, without races: the kernel itself rejects every way out.

use std::ffi::OsStr;
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use base::descriptors::is_kept;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

/// The permitted depth of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Only names that the kernel has cached: no disk access.
    Cached,
    /// All names, however long that takes.
    Full,
}

/// The lookup needs the disk: it must be repeated with [`Depth::Full`], away from the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WouldBlock;

impl fmt::Display for WouldBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the disk would have to be accessed")
    }
}

impl std::error::Error for WouldBlock {}

/// The reason why no file was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenFailure {
    /// The file does not exist.
    Missing,
    /// The file may not be read.
    Forbidden,
    /// A link is in the path, which the caller may resolve.
    Link,
    /// No descriptor or no memory is left.
    Exhausted,
    /// The disk would have to be accessed.
    WouldBlock,
}

impl OpenFailure {
    fn of(errno: Errno) -> Self {
        match errno {
            Errno::LOOP | Errno::XDEV => Self::Link,
            Errno::ACCESS | Errno::PERM => Self::Forbidden,
            Errno::MFILE | Errno::NFILE | Errno::NOMEM => Self::Exhausted,
            // RESOLVE_CACHED's error if the lookup would have to wait, besides its usual meaning.
            Errno::AGAIN => Self::WouldBlock,
            // No such name, a file in the place of a directory, a socket, a name too long.
            _ => Self::Missing,
        }
    }
}

/// Without O_NONBLOCK, opening a FIFO would wait for its other end.
const READ: OFlags =
    OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
const PLACE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens the directory `path`, following links: it is the operator's.
pub(crate) fn directory(path: &Path, depth: Depth) -> Result<OwnedFd, OpenFailure> {
    let opened = match depth {
        Depth::Cached => openat2(CWD, path, PLACE, Mode::empty(), ResolveFlags::CACHED),
        Depth::Full => openat(CWD, path, PLACE, Mode::empty()),
    };
    opened.map_err(|errno| match errno {
        // A kernel without openat2, or a container that forbids it.
        Errno::NOSYS | Errno::PERM if depth == Depth::Cached => OpenFailure::WouldBlock,
        errno => OpenFailure::of(errno),
    })
}

/// Opens the file or directory at `path` below `directory`. `path` is relative and has neither
/// empty nor dot segments. No link is followed.
pub(crate) fn below(
    directory: &OwnedFd,
    path: &[u8],
    depth: Depth,
) -> Result<OwnedFd, OpenFailure> {
    let path = if path.is_empty() { b"." } else { path };
    let mut resolve =
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    if depth == Depth::Cached {
        resolve |= ResolveFlags::CACHED;
    }
    let opened = match openat2(directory, OsStr::from_bytes(path), READ, Mode::empty(), resolve) {
        Err(Errno::NOSYS | Errno::PERM) if depth == Depth::Cached => Err(OpenFailure::WouldBlock),
        Err(Errno::NOSYS | Errno::PERM) => walk(directory, path),
        opened => opened.map_err(OpenFailure::of),
    };
    opened.and_then(|file| if is_kept(&file) { Err(OpenFailure::Exhausted) } else { Ok(file) })
}

/// As [`below`], segment by segment, for kernels without openat2 (before Linux 5.6, gVisor).
fn walk(directory: &OwnedFd, path: &[u8]) -> Result<OwnedFd, OpenFailure> {
    let open = |at: BorrowedFd<'_>, name: &[u8], flags: OFlags| {
        let flags = flags | OFlags::NOFOLLOW;
        openat(at, OsStr::from_bytes(name), flags, Mode::empty()).map_err(|errno| match errno {
            // A link in the place of a directory; or a file, which the slow way distinguishes.
            Errno::NOTDIR => OpenFailure::Link,
            errno => OpenFailure::of(errno),
        })
    };
    let mut at: Option<OwnedFd> = None;
    let mut rest = path;
    loop {
        let place = at.as_ref().unwrap_or(directory).as_fd();
        match memchr::memchr(b'/', rest) {
            Some(slash) => {
                at = Some(open(place, &rest[..slash], PLACE)?);
                rest = &rest[slash + 1..];
            }
            None => return open(place, rest, READ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read as _;

    use super::*;
    use crate::folder::Folder;

    fn content(opened: Result<OwnedFd, OpenFailure>) -> Result<String, OpenFailure> {
        let mut text = String::new();
        fs::File::from(opened?).read_to_string(&mut text).expect("it can be read");
        Ok(text)
    }

    #[test]
    fn both_ways_follow_no_link_and_stay_below() {
        let folder = Folder::new("below");
        folder.file("root/a/b.txt", "b");
        folder.file("secret", "s");
        folder.link("../secret", "root/out");
        folder.link("a", "root/inner");
        folder.link("b.txt", "root/a/link");
        let root = directory(&folder.path("root"), Depth::Full).expect("a directory");
        for (path, expected) in [
            ("a/b.txt", Ok("b")),
            ("a/none", Err(OpenFailure::Missing)),
            ("out", Err(OpenFailure::Link)),
            ("inner/b.txt", Err(OpenFailure::Link)),
            ("a/link", Err(OpenFailure::Link)),
        ] {
            let expected = expected.map(str::to_owned);
            assert_eq!(content(below(&root, path.as_bytes(), Depth::Full)), expected, "{path}");
            assert_eq!(content(walk(&root, path.as_bytes())), expected, "{path}, walked");
        }
        let up = below(&root, b"../secret", Depth::Full);
        assert_eq!(up.map(drop), Err(OpenFailure::Link), "the kernel refuses it too");
    }

    #[test]
    fn a_fifo_does_not_hold_up_who_opens_it() {
        let folder = Folder::new("fifo");
        folder.fifo("pipe");
        let root = directory(&folder.path(""), Depth::Full).expect("a directory");
        assert!(below(&root, b"pipe", Depth::Full).is_ok());
        assert!(walk(&root, b"pipe").is_ok());
    }

    #[test]
    fn what_the_kernel_remembers_needs_no_disk() {
        let folder = Folder::new("remembered");
        folder.file("a", "x");
        let root = directory(&folder.path(""), Depth::Full).expect("a directory");
        assert!(below(&root, b"a", Depth::Full).is_ok());
        // Kernels without this feature report that they would block.
        match below(&root, b"a", Depth::Cached) {
            Ok(_) | Err(OpenFailure::WouldBlock) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
}
