//! Places of fragments that are under way: as many as a page may have together.

use std::cell::Cell;
use std::rc::Rc;

use tokio::sync::Notify;

/// The places of one page, its fragments' fragments included.
#[derive(Debug)]
pub(super) struct Places {
    free: Cell<u64>,
    /// Told when there is a place again.
    freed: Notify,
}

/// One of them; it is free again when this is dropped.
#[derive(Debug)]
pub(super) struct OwnPlace(Rc<Places>);

impl Places {
    /// So many places, and at least one.
    pub(super) fn new(most: u64) -> Rc<Self> {
        Rc::new(Self { free: Cell::new(most.max(1)), freed: Notify::new() })
    }

    /// A place if one is free.
    pub(super) fn take(self: &Rc<Self>) -> Option<OwnPlace> {
        self.free.set(self.free.get().checked_sub(1)?);
        Some(OwnPlace(Rc::clone(self)))
    }

    /// Ready when one is free.
    pub(super) async fn some(&self) {
        while self.free.get() == 0 {
            self.freed.notified().await;
        }
    }
}

impl Drop for OwnPlace {
    fn drop(&mut self) {
        let free = self.0.free.get();
        self.0.free.set(free + 1);
        if free == 0 {
            self.0.freed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn a_place_is_taken_once_and_free_again_when_it_is_dropped() {
        let places = Places::new(2);
        let (first, second) = (places.take(), places.take());
        assert!(first.is_some() && second.is_some() && places.take().is_none());
        drop(first);
        assert!(places.take().is_some());
        assert!(Places::new(0).take().is_some(), "a page has one at least");
    }

    #[test]
    fn all_who_wait_are_told_and_one_that_comes_late_waits_on() {
        let places = Places::new(1);
        let mut cx = Context::from_waker(Waker::noop());
        let place = places.take();
        let (mut first, mut second) = (pin!(places.some()), pin!(places.some()));
        assert_eq!(first.as_mut().poll(&mut cx), Poll::Pending);
        assert_eq!(second.as_mut().poll(&mut cx), Poll::Pending);
        drop(place);
        assert_eq!(first.as_mut().poll(&mut cx), Poll::Ready(()));
        let place = places.take();
        assert_eq!(second.as_mut().poll(&mut cx), Poll::Pending);
        drop(place);
        assert_eq!(second.as_mut().poll(&mut cx), Poll::Ready(()));
    }
}
