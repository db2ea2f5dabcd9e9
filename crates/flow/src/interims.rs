//! Interim responses (1xx) on their way from a fetch to the client that caused it.
//!
//! A fetch is a task, and its result arrives only with the final head; Early Hints (RFC 8297) are
//! useless by then. So interim responses pass through this queue one by one. Waiters of another
//! request's fetch get none. The queue holds at most the limit `interim_responses` for each try.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use message::Response;
use origin::Events;

/// A queue of interim responses. A fetch fills it, and a connection of the same core empties it.
#[derive(Debug, Default)]
pub struct Interims {
    inner: RefCell<InterimQueue>,
}

#[derive(Debug, Default)]
struct InterimQueue {
    waiting: VecDeque<Response>,
    taker: Option<Waker>,
}

impl Interims {
    pub(crate) fn put(&self, response: Response) {
        let taker = {
            let mut inner = self.inner.borrow_mut();
            inner.waiting.push_back(response);
            inner.taker.take()
        };
        if let Some(taker) = taker {
            taker.wake();
        }
    }

    /// The next interim response; without one the task is woken when one arrives.
    pub fn poll_take(&self, cx: &Context<'_>) -> Poll<Response> {
        let mut inner = self.inner.borrow_mut();
        if let Some(response) = inner.waiting.pop_front() {
            return Poll::Ready(response);
        }
        if !inner.taker.as_ref().is_some_and(|taker| taker.will_wake(cx.waker())) {
            inner.taker = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

/// Receiver of a fetch's events, which forwards interim responses to the queue if there is one.
pub(crate) struct Announcer<'a>(pub(crate) Option<&'a Interims>);

impl Events for Announcer<'_> {
    fn interim(&mut self, response: Response) {
        if let Some(interims) = self.0 {
            interims.put(response);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use message::Status;

    use super::*;

    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn they_come_in_order_and_wake_who_waits_once() {
        let woken = Arc::new(Count(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&woken));
        let cx = Context::from_waker(&waker);
        let interims = Interims::default();
        assert!(interims.poll_take(&cx).is_pending());
        for code in [103, 102] {
            interims.put(Response::new(Status::new(code).expect("three digits")));
        }
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
        let codes = [103, 102].map(|_| match interims.poll_take(&cx) {
            Poll::Ready(response) => response.status.code(),
            Poll::Pending => 0,
        });
        assert_eq!(codes, [103, 102]);
        assert!(interims.poll_take(&cx).is_pending());
    }
}
