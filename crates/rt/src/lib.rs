//! The runtime interface of everything above the pure crates: the clock, timers, tasks and blocking
//! work.
//!
//! In the daemon each of these is tokio's or the operating system's. With the feature `simulation`
//! the same code runs in virtual time, in an order that a seed decides. Code that runs in a
//! simulation must never use tokio's or the system's functions directly.
//!
//! Begin with [`now`], [`spawn_local`] and [`in_background`]; `simulation` has the virtual clock.

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

/// Microseconds of the monotonic clock, for measurements. All cores agree.
#[inline]
pub fn micros() -> u64 {
    #[cfg(feature = "simulation")]
    if let Some(micros) = simulation::micros() {
        return micros;
    }
    System.micros()
}

/// Spawns a task on this thread.
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

/// Spawns a task on any thread of the runtime.
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

/// Runs blocking work on another thread. The runtime limits the number of such threads.
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

/// Runs blocking work on another thread and waits for it. A panic of the work continues in the
/// waiting task.
///
/// # Panics
/// As the work does, and outside a runtime.
pub async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Pauses blocking work, to leave the processor to others.
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
    async fn a_panic_of_blocking_work_continues_in_the_waiting_task() {
        assert_eq!(run_blocking(|| 7).await, 7);
        let task = tokio::spawn(run_blocking(|| panic!("a bug")));
        assert!(task.await.expect_err("it has panicked").is_panic());
    }
}
