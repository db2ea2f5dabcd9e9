//! The record queue of a volume, shared by puts and the writer: the position of the next record,
//! and the jobs of the writer.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use hashbrown::HashMap;

use crate::body::Body;
use crate::layout::Header;
use crate::record_address::RecordAddress;

/// A record in the write queue.
#[derive(Debug)]
pub(crate) struct QueuedRecord {
    pub(crate) place: RecordAddress,
    pub(crate) epoch: u64,
    pub(crate) offset: u32,
    pub(crate) len: u32,
    pub(crate) header: Header,
    pub(crate) head: Bytes,
    pub(crate) body: Body,
    /// The part of `body` that belongs to this record.
    pub(crate) range: Range<u64>,
}

/// A job of the writer, in order.
#[derive(Debug)]
pub(crate) enum Job {
    /// A segment is opened.
    Open { segment: u32, epoch: u64 },
    /// A record.
    Record(Arc<QueuedRecord>),
    /// A segment is full, and gets its table.
    Seal { segment: u32, epoch: u64 },
    /// A record is to be overwritten.
    Erase { place: RecordAddress, epoch: u64, room: u32 },
    /// The record at this place has been written again by an earlier job.
    Moved { place: RecordAddress },
    /// All records moved from a segment are in earlier jobs.
    Release { segment: u32, epoch: u64 },
}

/// The position of the next record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor {
    pub(crate) segment: u32,
    pub(crate) epoch: u64,
    pub(super) offset: u32,
    pub(super) rows: u32,
}

/// The state that puts and the writer share.
#[derive(Debug, Default)]
pub(crate) struct RecordQueue {
    pub(crate) open: Option<Cursor>,
    pub(crate) free: BTreeSet<u32>,
    pub(crate) jobs: VecDeque<Job>,
    pub(crate) queued_bytes: u64,
    pub(crate) pending: HashMap<RecordAddress, Arc<QueuedRecord>>,
}
