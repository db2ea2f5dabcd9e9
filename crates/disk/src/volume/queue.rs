//! The read queue of a volume: the reads that wait, and those that have not been answered.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use crate::error::Error;
use crate::record_address::RecordAddress;
use crate::record_request::{ReadCallback, RecordData, RecordRequest};
use crate::sync::{Condvar, Mutex};

/// A read that waits or is being served.
pub(crate) struct PendingRead {
    pub(crate) place: RecordAddress,
    pub(crate) hash: u64,
    pub(crate) ask: RecordRequest,
    /// The deadline on the monotonic clock, and a number that makes it unique.
    pub(crate) key: (u64, u64),
    /// `None` once it has been answered.
    pub(crate) done: Mutex<Option<ReadCallback>>,
}

#[derive(Default)]
pub(crate) struct PendingReads {
    pub(crate) waiting: VecDeque<Arc<PendingRead>>,
    /// Unanswered reads, by deadline.
    pub(crate) open: BTreeMap<(u64, u64), Arc<PendingRead>>,
    pub(crate) last: u64,
    /// No further read is accepted.
    pub(crate) is_over: bool,
}

/// The waiting reads of a volume.
#[derive(Default)]
pub(crate) struct ReadQueue {
    pub(crate) requests: Mutex<PendingReads>,
    pub(crate) wake: Condvar,
}

impl fmt::Debug for ReadQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadQueue").finish_non_exhaustive()
    }
}

impl ReadQueue {
    /// Accepts no further read.
    pub(crate) fn end(&self) {
        self.requests.lock().is_over = true;
    }

    /// Wakes a thread, or all threads at the end.
    pub(crate) fn wake_all(&self) {
        self.wake.notify_all();
    }

    /// The earliest deadline of the unanswered reads.
    pub(crate) fn earliest(&self) -> Option<u64> {
        self.requests.lock().open.first_key_value().map(|((deadline, _), _)| *deadline)
    }

    pub(crate) fn answer(&self, request: &PendingRead, result: Result<RecordData, Error>) -> bool {
        let done = request.done.lock().take();
        let Some(done) = done else { return false };
        self.requests.lock().open.remove(&request.key);
        done(result);
        true
    }
}
