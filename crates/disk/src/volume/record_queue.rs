//! The side of a volume that puts and the writer share: the place where the next record goes, and
//! what waits to be written.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use hashbrown::HashMap;

use crate::body::Body;
use crate::layout::Header;
use crate::record_address::RecordAddress;

/// A record that waits to be written.
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

/// Work for the writer, in its order.
#[derive(Debug)]
pub(crate) enum Job {
    /// A segment begins.
    Open { segment: u32, epoch: u64 },
    /// A record.
    Record(Arc<QueuedRecord>),
    /// A segment is full.
    Seal { segment: u32, epoch: u64 },
    /// A record is to be overwritten.
    Erase { place: RecordAddress, epoch: u64, room: u32 },
    /// The record at this place has been written anew before this.
    Moved { place: RecordAddress },
    /// All that moved on from a segment stands before this.
    Release { segment: u32, epoch: u64 },
}

/// Where the next record goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor {
    pub(crate) segment: u32,
    pub(crate) epoch: u64,
    pub(super) offset: u32,
    pub(super) rows: u32,
}

/// The side of the volume that puts and the writer share.
#[derive(Debug, Default)]
pub(crate) struct RecordQueue {
    pub(crate) open: Option<Cursor>,
    pub(crate) free: BTreeSet<u32>,
    pub(crate) jobs: VecDeque<Job>,
    pub(crate) queued_bytes: u64,
    pub(crate) pending: HashMap<RecordAddress, Arc<QueuedRecord>>,
}
