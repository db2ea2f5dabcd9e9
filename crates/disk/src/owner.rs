//! The owner of a store: the interface by which the store reports records, moves and volumes to the
//! code that keeps the index.

use crate::record_address::RecordAddress;

/// A record found at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundRecord {
    /// The key's hash.
    pub hash: u64,
    /// Its place.
    pub place: RecordAddress,
    /// The time of expiry by the present wall clock, in milliseconds: earlier than written if the
    /// clock has gone back since. `u64::MAX` for never.
    pub expires_ms: u64,
    /// The newest ban that the record has passed.
    pub passed: u32,
    /// Invalidations with higher numbers have not been tested against it.
    pub order: u64,
}

/// The reason why a volume is out or pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Too many of its reads or writes failed.
    Errors,
    /// The disk is full.
    Full,
    /// Its operations are late.
    Slow,
    /// Invalidations cannot be written, or some have been lost.
    Journal,
    /// It is absent, or could not be opened.
    Start,
}

impl Reason {
    /// A description of the reason.
    pub fn about(self) -> &'static str {
        match self {
            Self::Errors => "too many reads or writes failed",
            Self::Full => "its file system is full",
            Self::Slow => "its reads are late",
            Self::Journal => "purges cannot be written to it",
            Self::Start => "it cannot be opened",
        }
    }

    /// The reason's name, as in metrics and files.
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

/// The condition of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VolumeCondition {
    /// In use.
    In,
    /// Accepting and reading nothing for a time, with its records kept.
    Pausing(Reason),
    /// Out of use, with its records lost.
    Out(Reason),
}

/// The owner of a store. The store's threads call it, and [`crate::Disk::read`] and
/// [`crate::Disk::read_now`] do if they find a damaged record, but never a put or a forget. It may
/// call the store, except to stop it.
pub trait Owner: Send + Sync + 'static {
    /// Reports records found at the start. The owner must forget those that it rejects.
    fn found(&self, records: &[FoundRecord]);
    /// Reports that a record has moved. Returns false if the owner has no entry for the old place.
    /// Reads of the old place fail from now on.
    fn moved(&self, hash: u64, old: RecordAddress, new: RecordAddress) -> bool;
    /// Reports that the record at this place is gone.
    fn dropped(&self, hash: u64, place: RecordAddress);
    /// Reports a new condition of a volume. On one that is [`VolumeCondition::Out`] all places are
    /// gone.
    fn changed(&self, volume: usize, condition: VolumeCondition);
}
