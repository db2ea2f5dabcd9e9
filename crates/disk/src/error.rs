//! Everything that goes wrong with a store. Where it goes wrong after the start, it means no more
//! than a miss.

use std::fmt;
use std::io;

/// Damage that a check found. Nothing of a damaged block has left the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Damage {
    /// There is no header, or it means more than there is.
    Header,
    /// The checksum of a block is not that of its bytes at this place.
    Sum,
    /// A whole record, and not the one that was asked for.
    Other,
    /// The file ends too early.
    Cut,
}

impl Damage {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Header, Self::Sum, Self::Other, Self::Cut];
}

/// A failure of the store.
#[derive(Debug)]
pub enum Error {
    /// Settings that cannot be.
    Config {
        /// The volume that they are of.
        volume: String,
        /// The reason, in words.
        why: String,
    },
    /// A volume in a format of another version of the program.
    Format {
        /// The volume's name.
        volume: String,
        /// The format found.
        found: u32,
        /// The format that this program writes.
        known: u32,
    },
    /// A directory with files that are no volume's.
    Foreign {
        /// The directory's name.
        volume: String,
    },
    /// A volume that another process has.
    Locked {
        /// The volume's name.
        volume: String,
    },
    /// The system refused something at the start, or for a tool.
    Io {
        /// The volume's name.
        volume: String,
        /// The doing that was refused.
        doing: &'static str,
        /// The system's word on it.
        error: io::Error,
    },
    /// No record is at this place any more.
    Gone,
    /// The record is damaged. It is not there any more.
    Damaged(Damage),
    /// The disk failed to read it.
    Unreadable,
    /// The deadline passed first.
    Late,
    /// More reads wait than may.
    Busy,
    /// The volume is taken out or pauses.
    Out,
    /// An invalidation could not be made durable on any volume.
    Journal {
        /// The reason, in words.
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
    /// A way to mend what the system refused, in words.
    pub fn remedy(&self) -> &'static str {
        let Self::Io { error, .. } = self else { return "" };
        match error.kind() {
            io::ErrorKind::PermissionDenied => "give the directory to the daemon's user",
            io::ErrorKind::ReadOnlyFilesystem => "mount its file system for writing",
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "make room there, or `size` smaller"
            }
            io::ErrorKind::NotFound => "make the directory above it, or mount its disk",
            io::ErrorKind::NotADirectory => "name a directory",
            _ => "the system's log may say more",
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
            Self::Gone => f.write_str("no record is there any more"),
            Self::Damaged(damage) => match damage {
                Damage::Header => f.write_str("damaged: no header of a record"),
                Damage::Sum => f.write_str("damaged: a wrong checksum"),
                Damage::Other => f.write_str("damaged: another record"),
                Damage::Cut => f.write_str("damaged: the file ends too early"),
            },
            Self::Unreadable => f.write_str("the disk failed to read"),
            Self::Late => f.write_str("the disk took too long"),
            Self::Busy => f.write_str("too many reads wait for the disk"),
            Self::Out => f.write_str("the volume is out of use"),
            Self::Journal { why } => write!(f, "the journal of the disk cache: {why}"),
        }
    }
}

impl std::error::Error for Error {}
