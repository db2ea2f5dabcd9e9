//! Background work: one job after the other, on a thread of low priority. It must never delay
//! requests by more than its share of the processor.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use base::clock::System;
use rustix::process::{getpid, setpriority_process};
use rustix::thread::{sched_getaffinity, sched_setaffinity};
use tokio::sync::oneshot;

/// The thread's name.
const NAME: &str = "larder-behind";
/// The thread's priority: beside another busy thread it gets a tenth of the time. With the lowest
/// (19, a seventieth) a long job would delay all others on a busy machine.
const NICE: i32 = 10;

type BackgroundJob = Box<dyn FnOnce() + Send>;

/// Runs `work` on the background thread, and returns its result with its processor time in
/// microseconds. `None` if it panicked, or without the thread.
///
/// The caller limits the queue. Dropping the future drops only the result.
pub async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<(T, u64)> {
    #[cfg(feature = "simulation")]
    if crate::simulation::is_on() {
        let done = crate::simulation::unsteady(async { work() });
        return tokio::task::spawn_local(done).await.ok().map(|made| (made, 0));
    }
    let (tell, done) = oneshot::channel();
    let piece = move || {
        let began_us = System.thread_micros();
        let made = work();
        _ = tell.send((made, System.thread_micros().saturating_sub(began_us)));
    };
    queue()?.send(Box::new(piece)).ok()?;
    done.await.ok()
}

/// The sender of the thread's queue. The first job starts the thread.
fn queue() -> Option<&'static Sender<BackgroundJob>> {
    static QUEUE: OnceLock<Option<Sender<BackgroundJob>>> = OnceLock::new();
    let start = || {
        let (queue, pieces) = channel();
        let thread = thread::Builder::new().name(NAME.to_owned());
        thread.spawn(move || run(&pieces)).ok().map(|_| queue)
    };
    QUEUE.get_or_init(start).as_ref()
}

fn run(pieces: &Receiver<BackgroundJob>) {
    // On Linux this concerns the thread, not the process. Without it the work is done nevertheless.
    _ = setpriority_process(None, NICE);
    // The starting thread may be bound to one core; the process's first thread is not.
    if let Ok(all) = sched_getaffinity(Some(getpid())) {
        _ = sched_setaffinity(None, &all);
    }
    while let Ok(piece) = pieces.recv() {
        // A panic ends one job, whose caller gets `None`.
        _ = catch_unwind(AssertUnwindSafe(piece));
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::getpriority_process;

    use super::*;

    #[tokio::test]
    async fn work_is_done_at_low_priority_and_one_panic_ends_one_piece() {
        let own = getpriority_process(None).expect("a priority");
        let look = || (thread::current().name().map(str::to_owned), getpriority_process(None));
        let (seen, _) = in_background(look).await.expect("it is done");
        assert_eq!(seen, (Some(NAME.to_owned()), Ok(NICE)));
        assert_eq!(getpriority_process(None), Ok(own), "no other thread is meant");
        assert!(in_background(|| panic!("a bug")).await.is_none());
        assert_eq!(in_background(|| 7).await.map(|(made, _)| made), Some(7));
    }

    #[tokio::test]
    async fn time_is_that_of_the_work_alone() {
        let work = || {
            let (began_us, mut sum) = (System.thread_micros(), 0_u64);
            while System.thread_micros() - began_us < 2000 {
                sum = std::hint::black_box(sum + 1);
            }
            sum
        };
        let (_, used_us) = in_background(work).await.expect("it is done");
        assert!(used_us >= 2000, "{used_us}");
        let (_, idle_us) =
            in_background(|| thread::park_timeout(std::time::Duration::from_millis(50)))
                .await
                .expect("it is done");
        assert!(idle_us < 50_000, "{idle_us}: it slept");
    }
}
