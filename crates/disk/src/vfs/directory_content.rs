//! The content of a directory that is to be a volume, examined before a start changes its owner.
//! Nothing is changed, and no link is followed.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsFd;

use rustix::fs::{FileType, Mode, OFlags, fstat, openat};

use super::real_directory::{LOCK, names};
use crate::layout::{SUPER_BYTES, SUPERBLOCK, Superblock, SuperblockCopy};

/// The content of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectoryContent {
    /// Empty, except for a lock file.
    Nothing,
    /// A volume, also of another format, damaged, or incomplete after a power failure.
    Volume,
    /// Other files.
    Other,
}

impl DirectoryContent {
    /// The content of an open `directory`.
    ///
    /// # Errors
    /// Those of the system.
    pub fn of(directory: impl AsFd) -> io::Result<Self> {
        let names = names(&directory)?;
        let has_own_only = names.iter().all(|name| is_volumes(name));
        if !names.iter().any(|name| name == SUPERBLOCK) {
            return Ok(match (names.is_empty(), has_own_only) {
                (true, _) => Self::Nothing,
                (false, true) => Self::Volume,
                (false, false) => Self::Other,
            });
        }
        let copies = superblocks(&directory)?;
        let is_one = copies.iter().any(|copy| {
            matches!(
                copy,
                SuperblockCopy::Sound(_) | SuperblockCopy::Format(_) | SuperblockCopy::Damaged
            )
        });
        // An empty superblock is a volume's only among a volume's files.
        let is_begun = copies.iter().all(|copy| *copy == SuperblockCopy::Empty) && has_own_only;
        Ok(if is_one || is_begun { Self::Volume } else { Self::Other })
    }
}

/// Returns true for the name of a volume's file, as in the table of the crate's head.
pub fn is_volumes(name: &str) -> bool {
    let name = name.strip_suffix(".new").unwrap_or(name);
    let numbered = |start: &str, digits: usize| {
        name.strip_prefix(start).is_some_and(|number| {
            number.len() >= digits && number.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
    };
    [SUPERBLOCK, LOCK, "out"].contains(&name)
        || numbered("data-", 4)
        || numbered("journal-", 16)
        || numbered("snapshot-", 16)
        // The cluster's files are kept in the same directory.
        || name.starts_with("cluster-")
}

/// Both copies of the superblock. The missing bytes of a truncated file are zeros.
fn superblocks(directory: impl AsFd) -> io::Result<[SuperblockCopy; 2]> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match openat(directory, SUPERBLOCK, flags, Mode::empty()) {
        Ok(file) => file,
        // A link.
        Err(rustix::io::Errno::LOOP) => {
            return Ok([SuperblockCopy::Foreign, SuperblockCopy::Foreign]);
        }
        Err(error) => return Err(error.into()),
    };
    if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
        return Ok([SuperblockCopy::Foreign, SuperblockCopy::Foreign]);
    }
    let mut bytes = Vec::with_capacity(2 * SUPER_BYTES);
    File::from(file).take(2 * SUPER_BYTES as u64).read_to_end(&mut bytes)?;
    bytes.resize(2 * SUPER_BYTES, 0);
    let (first, second) = bytes.split_at(SUPER_BYTES);
    Ok([Superblock::decode(first), Superblock::decode(second)])
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir, remove_dir_all, write};
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_volume_is_known_by_its_superblock_or_by_files_that_are_all_its_own() {
        let name = format!("larder-disk-holding-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let (magic, zeros) = (&b"LARDERVS and more"[..], &[0; 100][..]);
        for (files, expected) in [
            (&[][..], DirectoryContent::Nothing),
            (&[("lock", zeros)], DirectoryContent::Nothing),
            (&[("superblock", magic), ("data-0000", zeros)], DirectoryContent::Volume),
            // A note of the operator.
            (&[("superblock", magic), ("notes.txt", zeros)], DirectoryContent::Volume),
            (&[("superblock", zeros), ("data-0000", zeros)], DirectoryContent::Volume),
            (&[("data-0000", zeros), ("lock", zeros)], DirectoryContent::Volume),
            (&[("superblock", zeros), ("photo.jpeg", zeros)], DirectoryContent::Other),
            (&[("superblock", &b"another's"[..])], DirectoryContent::Other),
            (&[("photo.jpeg", magic)], DirectoryContent::Other),
            (&[("data-2026-11.csv", zeros)], DirectoryContent::Other),
        ] {
            create_dir(&path).unwrap();
            files.iter().for_each(|(file, bytes)| write(path.join(file), bytes).unwrap());
            let found = std::fs::File::open(&path).and_then(DirectoryContent::of);
            remove_dir_all(&path).unwrap();
            assert_eq!(found.unwrap(), expected, "{files:?}");
        }
        create_dir(&path).unwrap();
        write(path.join("data-0000"), magic).unwrap();
        symlink("data-0000", path.join("superblock")).unwrap();
        let found = std::fs::File::open(&path).and_then(DirectoryContent::of);
        remove_dir_all(&path).unwrap();
        assert_eq!(found.unwrap(), DirectoryContent::Other, "a link is no superblock");
    }
}
