//! A record request: which parts of a record to read, and the data that the read returns.

use std::ops::Range;

use bytes::Bytes;

use crate::error::Error;
use crate::layout::Header;
use crate::part_record::PartRecord;

/// The parts of a record to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordRequest {
    /// The head.
    pub head: bool,
    /// The range of the body. It may exceed the body's end.
    pub body: Range<u64>,
    /// The number of the part record, for a body in parts.
    pub(crate) part: Option<u64>,
    /// True to read only the bytes of the body that come with the head.
    pub(crate) is_opening: bool,
    pub(crate) known: Option<ReadContinuation>,
}

/// Facts from the beginning of a record that hold for the whole record. A further request with them
/// saves a read of the beginning. Without effect if the record has moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadContinuation {
    pub(crate) segment: u32,
    pub(crate) epoch: u64,
    pub(crate) offset: u32,
    pub(crate) header: Header,
    pub(crate) seed: u64,
}

impl RecordRequest {
    /// The head alone.
    pub fn head() -> Self {
        Self::beginning(0)
    }

    /// Head and body. For a body longer than [`crate::Config::read_bytes`], its beginning.
    pub fn whole() -> Self {
        Self::beginning(u64::MAX)
    }

    /// The head, and this many bytes of the body.
    pub fn beginning(bytes: u64) -> Self {
        Self { head: true, body: 0..bytes, part: None, is_opening: false, known: None }
    }

    /// The head, and the bytes of the body that one read of this size returns; none for a body in
    /// parts.
    pub fn opening(bytes: u64) -> Self {
        Self { is_opening: true, ..Self::beginning(bytes) }
    }

    /// Bytes of the body alone, after the head was read. A volume that pauses because it is slow
    /// still serves them.
    pub fn range(body: Range<u64>) -> Self {
        Self { head: false, body, part: None, is_opening: false, known: None }
    }

    /// This request, with the facts of a former answer.
    #[must_use]
    pub fn of(self, known: Option<ReadContinuation>) -> Self {
        Self { known, ..self }
    }

    /// This request, for at most this many bytes of the body.
    #[must_use]
    pub fn at_most(&self, bytes: u64) -> Self {
        let Range { start, end } = self.body;
        Self { body: start..end.min(start.saturating_add(bytes)), ..self.clone() }
    }

    /// Bytes of a part of a body that is still arriving, to be read at the part's address.
    pub fn part(part: &PartRecord, body: Range<u64>) -> Self {
        Self { head: false, body, part: Some(part.seq), is_opening: false, known: None }
    }
}

/// The requested parts of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordData {
    /// The newest ban that the record had passed when it was written.
    pub passed: u32,
    /// Invalidations with higher numbers have not been tested against it.
    pub order: u64,
    /// The time of expiry by the clock at the time of writing; `u64::MAX` for never.
    pub expires_ms: u64,
    /// The time of writing, by the same clock.
    pub written_ms: u64,
    /// Milliseconds by which the clock has gone back since.
    pub behind_ms: u64,
    /// Bytes of the whole body.
    pub length: u64,
    /// The head; empty if it was not requested.
    pub head: Bytes,
    /// Bytes of the body from the start of the requested range, in chunks. One read may return
    /// fewer than requested.
    pub body: Vec<Bytes>,
    /// For further requests; `None` for a record that waits to be written, and for one in parts.
    pub seal: Option<ReadContinuation>,
}

impl RecordData {
    pub(crate) fn of(header: &Header, behind_ms: u64) -> Self {
        Self {
            seal: None,
            behind_ms,
            passed: header.passed,
            order: header.order,
            expires_ms: header.expires_ms,
            written_ms: header.written_ms,
            length: header.total,
            head: Bytes::new(),
            body: Vec::new(),
        }
    }

    /// Bytes of the body in this answer.
    pub fn size(&self) -> u64 {
        self.body.iter().map(|piece| piece.len() as u64).sum()
    }
}

/// Receives the result of a read: called once, on any thread.
pub type ReadCallback = Box<dyn FnOnce(Result<RecordData, Error>) + Send>;
