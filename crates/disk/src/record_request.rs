//! A question for a record, and its answer.

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
    /// Bytes of the body. What is beyond its end is not missed.
    pub body: Range<u64>,
    /// The number of the part that it is, of a body that is in parts.
    pub(crate) part: Option<u64>,
    /// No more is read for the body than comes with the head.
    pub(crate) is_opening: bool,
    pub(crate) known: Option<ReadContinuation>,
}

/// Facts read from the beginning of a record that hold for all of it: whoever asks for more with
/// this spares the disk the beginning. Of no effect where the record has moved.
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

    /// Head and body. Of one longer than [`crate::Config::read_bytes`], the beginning.
    pub fn whole() -> Self {
        Self::beginning(u64::MAX)
    }

    /// The head, and so many bytes of the body.
    pub fn beginning(bytes: u64) -> Self {
        Self { head: true, body: 0..bytes, part: None, is_opening: false, known: None }
    }

    /// The head, and what one read of so many bytes brings of the body: of one in parts nothing.
    pub fn opening(bytes: u64) -> Self {
        Self { is_opening: true, ..Self::beginning(bytes) }
    }

    /// Bytes of the body alone, whose head has been read: a volume that pauses as it is slow has
    /// them all the same.
    pub fn range(body: Range<u64>) -> Self {
        Self { head: false, body, part: None, is_opening: false, known: None }
    }

    /// The same of a record that is known from a former answer.
    #[must_use]
    pub fn of(self, known: Option<ReadContinuation>) -> Self {
        Self { known, ..self }
    }

    /// The same, of no more than so many bytes of the body.
    #[must_use]
    pub fn at_most(&self, bytes: u64) -> Self {
        let Range { start, end } = self.body;
        Self { body: start..end.min(start.saturating_add(bytes)), ..self.clone() }
    }

    /// Bytes of a part of a body that has not ended; to be asked for at the part's place.
    pub fn part(part: &PartRecord, body: Range<u64>) -> Self {
        Self { head: false, body, part: Some(part.seq), is_opening: false, known: None }
    }
}

/// A record, as much of it as was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordData {
    /// The ban that it had passed when it was written.
    pub passed: u32,
    /// Invalidations of higher numbers have not been tested against it.
    pub order: u64,
    /// When it expires by the clock that it was written with; `u64::MAX` for never.
    pub expires_ms: u64,
    /// When it was written, by the same clock.
    pub written_ms: u64,
    /// Milliseconds that the clock has gone back by since.
    pub behind_ms: u64,
    /// Bytes of the whole body.
    pub length: u64,
    /// The head; empty if it was not asked for.
    pub head: Bytes,
    /// Bytes of the body from where they were asked for, in pieces; fewer than were asked for if
    /// that is more than one read brings.
    pub body: Vec<Bytes>,
    /// For further questions; `None` of a record that waits to be written, and of one in parts.
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

    /// Bytes of the body that it has.
    pub fn size(&self) -> u64 {
        self.body.iter().map(|piece| piece.len() as u64).sum()
    }
}

/// The end of a read, which gets the answer; called once, on any thread.
pub type ReadCallback = Box<dyn FnOnce(Result<RecordData, Error>) + Send>;
