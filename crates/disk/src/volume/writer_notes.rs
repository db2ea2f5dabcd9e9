//! The writer's notes on bytes that it has written but that are not durable.

use std::collections::BTreeMap;

use crate::record_address::RecordAddress;

/// The writer's own notes.
#[derive(Debug, Default)]
pub(crate) struct WriterNotes {
    /// Segments with bytes that are not durable, and the end of what is written.
    pub(crate) dirty: BTreeMap<u32, (u64, u32)>,
    /// Reclaimed segments that become free with the next commit.
    pub(crate) freeing: Vec<(u32, u64)>,
    /// Records that are dead once their copies are durable.
    pub(crate) moved: Vec<RecordAddress>,
    /// Those that wait now. Later ones are examined after them.
    pub(crate) obsolete: Option<ObsoleteInvalidations>,
    pub(crate) committed_ms: u64,
}

/// Invalidations that are obsolete once the segments that were being emptied are free: until then a
/// crash may bring their matches back.
#[derive(Debug)]
pub(crate) struct ObsoleteInvalidations {
    pub(crate) numbers: Vec<u64>,
    pub(crate) emptied: Vec<(u32, u64)>,
}
