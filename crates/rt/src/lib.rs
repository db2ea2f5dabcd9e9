//! The runtime as everything above the pure crates sees it: the clock, timers, tasks and work that
//! blocks.
//!
//! In the daemon each of these is tokio's, or the operating system's. With the feature
//! `simulation`, a test runs the same code in virtual time, in an order that a seed decides.

use std::future::Future;
use std::time::Duration;

use base::Now;
use base::clock::System;
use tokio::task::JoinHandle;

mod background;
#[cfg(feature = "simulation")]
pub mod simulation;
pub mod time;

pub use background::in_background;
pub use tokio::task::yield_now;

/// Reads both clocks, at tick resolution.
#[inline]
pub fn now() -> Now {
    #[cfg(feature = "simulation")]
    if let Some(now) = simulation::now() {
        return now;
    }
    System.now()
}

/// Microseconds of the monotonic clock, for measuring. The same on every core.
#[inline]
pub fn micros() -> u64 {
    #[cfg(feature = "simulation")]
    if let Some(micros) = simulation::micros() {
        return micros;
    }
    System.micros()
}

/// Begins a task on this thread.
///
/// # Panics
/// Outside a `LocalSet` or a runtime of one thread.
#[inline]
#[track_caller]
pub fn spawn_local<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    #[cfg(feature = "simulation")]
    if simulation::is_on() {
        return tokio::task::spawn_local(simulation::unsteady(future));
    }
    tokio::task::spawn_local(future)
}

/// Begins a task on any thread of the runtime.
///
/// # Panics
/// Outside a runtime.
#[inline]
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    #[cfg(feature = "simulation")]
    if simulation::is_on() {
        return tokio::task::spawn_local(simulation::unsteady(future));
    }
    tokio::spawn(future)
}

/// Does work that blocks on a thread of its own. The runtime bounds the number of such threads.
///
/// # Panics
/// Outside a runtime.
#[track_caller]
pub fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    #[cfg(feature = "simulation")]
    if simulation::is_on() {
        return tokio::task::spawn_local(simulation::unsteady(async { work() }));
    }
    tokio::task::spawn_blocking(work)
}

/// Does work that blocks on a thread of its own, and waits for it. A panic of the work goes on in
/// the task that waits, so that whoever keeps that task running knows of it.
///
/// # Panics
/// As the work does, and outside a runtime.
pub async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Has work that blocks leave the processor to others for a while.
pub fn pause(duration: Duration) {
    #[cfg(feature = "simulation")]
    if simulation::is_on() {
        return;
    }
    std::thread::sleep(duration);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_of_work_beside_goes_on_in_the_task_that_waits_for_it() {
        assert_eq!(run_blocking(|| 7).await, 7);
        let task = tokio::spawn(run_blocking(|| panic!("a bug")));
        assert!(task.await.expect_err("it has panicked").is_panic());
    }
}
