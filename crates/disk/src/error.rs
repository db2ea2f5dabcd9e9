//! The errors of a store. After the start, each of them means no more than a miss.

use std::fmt;
use std::io;

/// Damage found by a check. No byte of a damaged block leaves the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Damage {
    /// The header is missing, or describes more than there is.
    Header,
    /// The checksum of a block does not fit its bytes at this address.
    Sum,
    /// An intact record, but another one.
    Other,
    /// The file ends too early.
    Cut,
}

impl Damage {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Header, Self::Sum, Self::Other, Self::Cut];
}

/// An error of the store.
#[derive(Debug)]
pub enum Error {
    /// Invalid settings.
    Config {
        /// The volume of the settings.
        volume: String,
        /// The reason.
        why: String,
    },
    /// A volume in the format of another version.
    Format {
        /// The volume's name.
        volume: String,
        /// The format found.
        found: u32,
        /// The format that this program writes.
        known: u32,
    },
    /// A directory with files that belong to no volume.
    Foreign {
        /// The directory's name.
        volume: String,
    },
    /// A volume in use by another process.
    Locked {
        /// The volume's name.
        volume: String,
    },
    /// A failed operation of the system, at the start or in a tool.
    Io {
        /// The volume's name.
        volume: String,
        /// The operation, such as "opening".
        doing: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// The record is no longer at this place.
    Gone,
    /// The record is damaged, and has been removed.
    Damaged(Damage),
    /// The disk failed to read the record.
    Unreadable,
    /// The deadline passed first.
    Late,
    /// The queue of reads is full.
    Busy,
    /// The volume is out or pauses.
    Out,
    /// An invalidation could not be made durable on any volume.
    Journal {
        /// The reason.
        why: String,
    },
}

impl Error {
    pub(crate) fn io(volume: &str, doing: &'static str) -> impl Fn(io::Error) -> Self + use<> {
        let volume = volume.to_owned();
        move |error| Self::Io { volume: volume.clone(), doing, error }
    }
}

impl Error {
    /// A remedy for a failed operation of the system.
    pub fn remedy(&self) -> &'static str {
        let Self::Io { error, .. } = self else { return "" };
        match error.kind() {
            io::ErrorKind::PermissionDenied => "give the directory to the daemon's user",
            io::ErrorKind::ReadOnlyFilesystem => "mount its file system for writing",
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "free space there, or reduce `size`"
            }
            io::ErrorKind::NotFound => "create the parent directory, or mount its disk",
            io::ErrorKind::NotADirectory => "name a directory",
            _ => "see the system's log",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config { volume, why } => write!(f, "{volume}: {why}"),
            Self::Format { volume, found, known } => write!(
                f,
                "{volume}: format {found}, and this program knows {known}: empty the volume, or \
                 start the program that wrote it"
            ),
            Self::Foreign { volume } => write!(
                f,
                "{volume}: there are files that are not a cache's: name an empty directory, or \
                 empty this one"
            ),
            Self::Locked { volume } => write!(f, "{volume}: another process is using it"),
            Self::Io { volume, doing, error } => write!(f, "{volume}: {doing}: {error}"),
            Self::Gone => f.write_str("the record is no longer at this place"),
            Self::Damaged(damage) => match damage {
                Damage::Header => f.write_str("damaged: the header of the record is invalid"),
                Damage::Sum => f.write_str("damaged: a checksum is wrong"),
                Damage::Other => f.write_str("damaged: the place has another record"),
                Damage::Cut => f.write_str("damaged: the file ends too early"),
            },
            Self::Unreadable => f.write_str("the disk failed to read the record"),
            Self::Late => f.write_str("the read missed its deadline"),
            Self::Busy => f.write_str("the read queue of the disk is full"),
            Self::Out => f.write_str("the volume is out of use"),
            Self::Journal { why } => write!(f, "the journal of the disk cache: {why}"),
        }
    }
}

impl std::error::Error for Error {}
