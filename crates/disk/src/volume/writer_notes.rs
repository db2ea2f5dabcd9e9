//! The writer's notes on the bytes that it has written.

use std::collections::BTreeMap;

use crate::record_address::RecordAddress;

/// The writer's own notes.
#[derive(Debug, Default)]
pub(crate) struct WriterNotes {
    /// Segments with bytes that are not durable, and up to where they are written.
    pub(crate) dirty: BTreeMap<u32, (u64, u32)>,
    /// Reclaimed segments that are free after the next commit.
    pub(crate) freeing: Vec<(u32, u64)>,
    /// Records that are dead when what they were written as anew is durable.
    pub(crate) moved: Vec<RecordAddress>,
    /// Those that wait at present; later ones are looked at after them.
    pub(crate) needless: Option<Needless>,
    pub(crate) committed_ms: u64,
}

/// Invalidations that are needed no more once the segments that were being emptied are free: what
/// they met may have been there, and until then a crash brings it back.
#[derive(Debug)]
pub(crate) struct Needless {
    pub(crate) numbers: Vec<u64>,
    pub(crate) emptied: Vec<(u32, u64)>,
}
