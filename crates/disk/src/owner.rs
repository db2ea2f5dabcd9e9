//! Words of the store to whoever uses it.

use crate::record_address::RecordAddress;

/// A record that was there at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundRecord {
    /// The key's hash.
    pub hash: u64,
    /// Its place.
    pub place: RecordAddress,
    /// When it expires, in milliseconds of the wall clock as it is now: earlier than it was written
    /// if the clock has gone back since. `u64::MAX` for never.
    pub expires_ms: u64,
    /// The ban that it had passed.
    pub passed: u32,
    /// Invalidations of higher numbers have not been tested against it.
    pub order: u64,
}

/// A reason to use a volume no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Too many of its reads or writes failed.
    Errors,
    /// There is no room for what is not preallocated.
    Full,
    /// It answers too late.
    Slow,
    /// Invalidations cannot be written, or some were lost.
    Journal,
    /// It could not be opened: it is not there, or cannot be used.
    Start,
}

impl Reason {
    /// The reason in words.
    pub fn about(self) -> &'static str {
        match self {
            Self::Errors => "too many reads or writes failed",
            Self::Full => "its file system is full",
            Self::Slow => "it answers too late",
            Self::Journal => "purges cannot be written to it",
            Self::Start => "it cannot be opened",
        }
    }

    /// The reason in a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Errors => "errors",
            Self::Full => "full",
            Self::Slow => "slow",
            Self::Journal => "journal",
            Self::Start => "start",
        }
    }
}

/// The state of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VolumeCondition {
    /// It is used.
    In,
    /// It takes nothing and answers nothing for a time, and keeps what it has.
    Pausing(Reason),
    /// It is not used, and what it had is lost.
    Out(Reason),
}

/// Whoever uses the store. It is called by threads of the store, and within [`crate::Disk::read`]
/// and [`crate::Disk::read_now`], which find that a record is damaged; never within a put or a
/// forget. It may call the store, but not stop it.
pub trait Owner: Send + Sync + 'static {
    /// Records that were found at the start. Those that are not wanted are to be forgotten.
    fn found(&self, records: &[FoundRecord]);
    /// A record has moved on; false if the owner has no entry for the old place any more. Reads of
    /// the old place fail from now on.
    fn moved(&self, hash: u64, old: RecordAddress, new: RecordAddress) -> bool;
    /// A record is gone from the place.
    fn dropped(&self, hash: u64, place: RecordAddress);
    /// A volume, by its number, has got into another state. All places on one that is
    /// [`Condition::Out`] are gone.
    fn changed(&self, volume: usize, condition: VolumeCondition);
}
