//! The threads of a store: their start, and a bounded wait for their end.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::sync::{Builder, Condvar, Mutex};

/// The running threads, and the condition that wakes the sentinel.
#[derive(Default)]
pub(crate) struct Threads {
    running: Arc<Mutex<usize>>,
    gone: Arc<Condvar>,
    pub(crate) ending: Mutex<bool>,
    pub(crate) bell: Condvar,
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Threads").finish_non_exhaustive()
    }
}

/// Reports the end of a thread, also by a panic.
struct ThreadExitGuard {
    running: Arc<Mutex<usize>>,
    gone: Arc<Condvar>,
}

impl Drop for ThreadExitGuard {
    fn drop(&mut self) {
        *self.running.lock() -= 1;
        self.gone.notify_all();
    }
}

impl Threads {
    /// Wakes the sentinel.
    pub(crate) fn wake(&self) {
        // The sentinel holds the lock until it waits.
        drop(self.ending.lock());
        self.bell.notify_one();
    }

    /// Starts a thread, which repeats its work after a panic; `panicked` is called before.
    pub(crate) fn spawn(
        &self,
        name: &str,
        work: impl Fn() + Send + 'static,
        panicked: impl Fn() + Send + 'static,
    ) {
        let leaving =
            ThreadExitGuard { running: Arc::clone(&self.running), gone: Arc::clone(&self.gone) };
        *self.running.lock() += 1;
        let own_name = name.to_owned();
        let work = move || {
            let _leaving = leaving;
            // Dropped before the thread counts as ended, because a volume is locked until then.
            let (work, panicked) = (work, panicked);
            while catch_unwind(AssertUnwindSafe(&work)).is_err() {
                base::tell!(Error, "larder: disk: the thread {own_name} panicked and continues");
                panicked();
            }
        };
        // Without this thread the volume accepts what its queue holds and answers by deadlines.
        if let Err(error) = Builder::new().name(name.to_owned()).spawn(work) {
            base::tell!(Error, "larder: disk: the thread {name} cannot be started: {error}");
        }
    }

    /// Returns true if all threads are to end.
    pub(crate) fn is_ending(&self) -> bool {
        *self.ending.lock()
    }

    /// Waits until all threads have ended, for `most` at most.
    pub(crate) fn wait(&self, most: Duration) {
        let mut running = self.running.lock();
        while *running > 0 && !self.gone.wait_for(&mut running, most).timed_out() {}
    }
}
