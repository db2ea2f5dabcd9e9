//! Restarts of tasks that must always run, after a panic.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// Pause before a restart: a task that panics at once must not take all of the time.
const PAUSE: Duration = Duration::from_millis(100);

/// Runs a task to its end, and restarts it after each panic, which it reports to `noted`.
pub async fn run_with_restarts<F>(mut begin: impl FnMut() -> F, noted: impl Fn())
where
    F: Future<Output = ()>,
{
    while !run(begin()).await {
        noted();
        rt::time::sleep(PAUSE).await;
    }
}

/// Runs a task; true if it ended without a panic.
async fn run(task: impl Future<Output = ()>) -> bool {
    let mut task = pin!(task);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(cx))) {
        Ok(polled) => polled.map(|()| true),
        Err(_) => Poll::Ready(false),
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test]
    async fn a_task_that_panics_is_begun_anew_until_it_ends() {
        let (begun, noted) = (Cell::new(0), Cell::new(0));
        let begin = || async {
            begun.set(begun.get() + 1);
            rt::yield_now().await;
            assert!(begun.get() > 2, "a bug");
        };
        run_with_restarts(begin, || noted.set(noted.get() + 1)).await;
        assert_eq!((begun.get(), noted.get()), (3, 2));
    }
}
