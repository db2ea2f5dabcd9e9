//! A new record: a record to be added to a volume.

use std::ops::Range;

use bytes::Bytes;

use crate::body::Body;
use crate::entry::Entry;

/// A record to be added.
pub(crate) struct NewRecord {
    pub(crate) flags: u16,
    pub(crate) hash: u64,
    pub(crate) passed: u32,
    pub(crate) expires_ms: u64,
    /// Its order, if it has one already.
    pub(crate) order: Option<u64>,
    pub(crate) head: Bytes,
    pub(crate) body: Body,
    pub(crate) range: Range<u64>,
    pub(crate) total: u64,
    /// True for a record that reclamation moves. It may take the last free segment, and ignores the
    /// limit of the queue.
    pub(crate) moves: bool,
}

impl NewRecord {
    /// The record of `entry`, with its whole body.
    pub(crate) fn of(entry: Entry) -> Self {
        let total = entry.body.size();
        Self {
            flags: 0,
            hash: entry.hash,
            passed: entry.passed,
            expires_ms: entry.expires_ms,
            order: entry.order,
            head: entry.head,
            body: entry.body,
            range: 0..total,
            total,
            moves: false,
        }
    }
}
