//! The open purpose: what the keeper opens a file for.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Permissions of a log that is created: it has data about people.
const LOG_MODE: u32 = 0o640;

/// The purpose for which a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenPurpose {
    /// To read it.
    Read,
    /// To append to it; it is created if missing.
    Append,
}

impl OpenPurpose {
    pub(super) fn letter(self) -> u8 {
        match self {
            Self::Read => b'r',
            Self::Append => b'a',
        }
    }

    pub(super) fn of(letter: u8) -> Option<Self> {
        [Self::Read, Self::Append].into_iter().find(|how| how.letter() == letter)
    }

    pub(super) fn open(self, path: &Path) -> io::Result<File> {
        match self {
            Self::Read => File::open(path),
            Self::Append => OpenOptions::new().append(true).create(true).mode(LOG_MODE).open(path),
        }
    }
}
