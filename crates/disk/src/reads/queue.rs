//! The reads that wait, and those that have not been answered.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use crate::error::Error;
use crate::place::Place;
use crate::read::{Answer, Ask};
use crate::sync::{Condvar, Mutex};

/// Whoever asked; called once, on any thread.
pub type Done = Box<dyn FnOnce(Result<Answer, Error>) + Send>;

/// A read that waits, or that a thread has begun.
pub(super) struct Request {
    pub(super) place: Place,
    pub(super) hash: u64,
    pub(super) ask: Ask,
    /// Of the monotonic clock, and a number that makes it unique.
    pub(super) key: (u64, u64),
    /// `None` when it has been answered.
    pub(super) done: Mutex<Option<Done>>,
}

#[derive(Default)]
pub(super) struct Requests {
    pub(super) waiting: VecDeque<Arc<Request>>,
    /// Those that have not been answered, by deadline.
    pub(super) open: BTreeMap<(u64, u64), Arc<Request>>,
    pub(super) last: u64,
}

/// The reads of a volume that wait.
#[derive(Default)]
pub(crate) struct ReadQueue {
    pub(super) requests: Mutex<Requests>,
    pub(super) wake: Condvar,
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

    pub(super) fn answer(&self, request: &Request, result: Result<Answer, Error>) -> bool {
        let done = request.done.lock().take();
        let Some(done) = done else { return false };
        self.requests.lock().open.remove(&request.key);
        done(result);
        true
    }
}
