//! The reads that wait, and those that have not been answered.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use crate::ask::{Answer, Ask, Done};
use crate::error::Error;
use crate::place::Place;
use crate::sync::{Condvar, Mutex};

/// A read that waits, or that a thread has begun.
pub(crate) struct Request {
    pub(crate) place: Place,
    pub(crate) hash: u64,
    pub(crate) ask: Ask,
    /// Of the monotonic clock, and a number that makes it unique.
    pub(crate) key: (u64, u64),
    /// `None` when it has been answered.
    pub(crate) done: Mutex<Option<Done>>,
}

#[derive(Default)]
pub(crate) struct Requests {
    pub(crate) waiting: VecDeque<Arc<Request>>,
    /// Those that have not been answered, by deadline.
    pub(crate) open: BTreeMap<(u64, u64), Arc<Request>>,
    pub(crate) last: u64,
}

/// The reads of a volume that wait.
#[derive(Default)]
pub(crate) struct ReadQueue {
    pub(crate) requests: Mutex<Requests>,
    pub(crate) wake: Condvar,
}

impl fmt::Debug for ReadQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadQueue").finish_non_exhaustive()
    }
}

impl ReadQueue {
    /// Wakes a thread, or all of them at the end.
    pub(crate) fn wake_all(&self) {
        self.wake.notify_all();
    }

    /// The earliest deadline of those that are open.
    pub(crate) fn earliest(&self) -> Option<u64> {
        self.requests.lock().open.first_key_value().map(|((deadline, _), _)| *deadline)
    }

    pub(crate) fn answer(&self, request: &Request, result: Result<Answer, Error>) -> bool {
        let done = request.done.lock().take();
        let Some(done) = done else { return false };
        self.requests.lock().open.remove(&request.key);
        done(result);
        true
    }
}
