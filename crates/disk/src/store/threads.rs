//! Threads that run, and how they are waited for.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::sync::{Builder, Condvar, Mutex};

/// Threads that run, and the bell of the sentinel.
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

/// Tells that a thread has ended, however it did.
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
    /// Lets the sentinel look at once.
    pub(crate) fn wake(&self) {
        // The sentinel has the lock until it waits.
        drop(self.ending.lock());
        self.bell.notify_one();
    }

    /// Begins a thread, which does its work anew where that panics; `panicked` is called before.
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
            // It gives up what it works on before it counts as gone: a volume is locked until then.
            let (work, panicked) = (work, panicked);
            while catch_unwind(AssertUnwindSafe(&work)).is_err() {
                base::tell!(Error, "larder: disk: the thread {own_name} panicked, and goes on");
                panicked();
            }
        };
        // Without a thread the volume takes what its queue holds and answers by deadlines.
        if let Err(error) = Builder::new().name(name.to_owned()).spawn(work) {
            base::tell!(Error, "larder: disk: the thread {name} cannot be begun: {error}");
        }
    }

    /// Returns true if all threads are to end.
    pub(crate) fn is_ending(&self) -> bool {
        *self.ending.lock()
    }

    /// Waits until all threads have ended; one that hangs is left alone after `most`.
    pub(crate) fn wait(&self, most: Duration) {
        let mut running = self.running.lock();
        while *running > 0 && !self.gone.wait_for(&mut running, most).timed_out() {}
    }
}
