//! Deadline of a step, with the timeout that it reports.

use std::future::Future as _;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rt::time::{Instant, Sleep, sleep_until};

use crate::error::TimeoutStep;

/// Replaces a timeout beyond the range of the clock.
const FOREVER: Duration = Duration::from_secs(30 * 365 * 86_400);

/// The end of a step's time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    pub(crate) at: Instant,
    pub(crate) step: TimeoutStep,
    pub(crate) after_ms: u64,
}

impl Deadline {
    pub(crate) fn new(step: TimeoutStep, from: Instant, after_ms: u64) -> Self {
        let at = from.checked_add(Duration::from_millis(after_ms)).unwrap_or(from + FOREVER);
        Self { at, step, after_ms }
    }

    /// Returns true if it has passed, or will within `time`.
    pub(crate) fn is_close(self, time: Duration) -> bool {
        self.at.saturating_duration_since(Instant::now()) <= time
    }

    /// The earlier of the two.
    pub(crate) fn or(self, other: Self) -> Self {
        if other.at < self.at { other } else { self }
    }

    /// Polls until `poll` is ready; `None` if the deadline passes first.
    ///
    /// A result that is ready at once, the usual case while bytes flow, needs no timer.
    pub(crate) async fn wait<T>(
        self,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Option<T> {
        let mut timer = pin!(None::<Sleep>);
        std::future::poll_fn(|cx| {
            if let Poll::Ready(value) = poll(cx) {
                return Poll::Ready(Some(value));
            }
            if timer.is_none() {
                timer.set(Some(sleep_until(self.at)));
            }
            let passed = timer.as_mut().as_pin_mut().is_some_and(|sleep| sleep.poll(cx).is_ready());
            if passed { Poll::Ready(None) } else { Poll::Pending }
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earlier_deadline_gives_its_name() {
        let now = Instant::now();
        let total = Deadline::new(TimeoutStep::Total, now, 1_000);
        let head = Deadline::new(TimeoutStep::FirstByte, now, 2_000);
        assert_eq!(head.or(total).step, TimeoutStep::Total);
        assert_eq!(total.or(head).after_ms, 1_000);
        assert!(Deadline::new(TimeoutStep::Total, now, u64::MAX).at > now);
    }

    #[tokio::test]
    async fn what_is_ready_needs_no_time() {
        let past = Deadline::new(TimeoutStep::Total, Instant::now(), 0);
        assert_eq!(past.wait(|_| Poll::Ready(7)).await, Some(7));
        assert_eq!(past.wait(|_| Poll::<u32>::Pending).await, None);
    }
}
