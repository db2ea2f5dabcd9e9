//! Queue of passwords to be checked, bounded in number and time: a client with many addresses
//! delays other guesses, but no known user.
//!
//! Clients and users that were right lately come first, in order. Of the others the latest comes
//! first: under an attack the longest waiters are the attacker, and a new user's chance does not
//! shrink with the queue.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// The permits to check passwords, and the requests that wait for one.
#[derive(Debug)]
pub(crate) struct Queue(Mutex<CheckQueueState>);

#[derive(Debug)]
struct CheckQueueState {
    /// Free permits.
    free: usize,
    known: VecDeque<oneshot::Sender<CheckPermit>>,
    others: VecDeque<oneshot::Sender<CheckPermit>>,
}

/// The standing of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// The client, or this user with this password, was right lately.
    Known,
    /// Others.
    Other,
}

/// The reason for which there is no permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueRefusal {
    /// Too many requests wait.
    Full,
    /// No permit was free in time.
    Late,
}

/// Bounds of the wait for a permit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueBounds {
    /// Passwords that may wait.
    pub(crate) most: usize,
    /// The longest wait.
    pub(crate) wait: Duration,
}

/// A permit, passed to the next waiter on drop.
#[derive(Debug)]
pub(crate) struct CheckPermit(Option<Arc<Queue>>);

impl Queue {
    /// A queue for this number of permits.
    pub(crate) fn new(places: usize) -> Arc<Self> {
        let (known, others) = Default::default();
        Arc::new(Self(Mutex::new(CheckQueueState { free: places.max(1), known, others })))
    }

    /// Waits for a permit within `bounds`.
    ///
    /// # Errors
    /// The reason for which no permit is free.
    pub(crate) async fn place(
        self: &Arc<Self>,
        standing: Urgency,
        bounds: QueueBounds,
    ) -> Result<CheckPermit, QueueRefusal> {
        let coming = match self.join(standing, bounds.most)? {
            Ok(place) => return Ok(place),
            Err(coming) => coming,
        };
        match rt::time::timeout(bounds.wait, coming).await {
            Ok(Ok(place)) => Ok(place),
            // A later request took its place in the queue.
            Ok(Err(_)) => Err(QueueRefusal::Full),
            Err(_) => Err(QueueRefusal::Late),
        }
    }

    /// Takes a permit, or a place in the queue.
    fn join(
        self: &Arc<Self>,
        standing: Urgency,
        most: usize,
    ) -> Result<Result<CheckPermit, oneshot::Receiver<CheckPermit>>, QueueRefusal> {
        let mut waiting = self.0.lock();
        if waiting.free > 0 {
            waiting.free -= 1;
            return Ok(Ok(CheckPermit(Some(Arc::clone(self)))));
        }
        let (tell, coming) = oneshot::channel();
        if waiting.known.len() + waiting.others.len() >= most {
            waiting.known.retain(|one| !one.is_closed());
            // The longest waiter makes room.
            let longest = waiting.others.pop_front();
            if longest.is_none() && waiting.known.len() >= most {
                return Err(QueueRefusal::Full);
            }
        }
        match standing {
            Urgency::Known => waiting.known.push_back(tell),
            Urgency::Other => waiting.others.push_back(tell),
        }
        Ok(Err(coming))
    }

    /// Returns true if a new request would wait.
    pub(crate) fn is_busy(&self) -> bool {
        self.0.lock().free == 0
    }
}

impl CheckQueueState {
    /// The next waiter.
    fn next(&mut self) -> Option<oneshot::Sender<CheckPermit>> {
        self.known.pop_front().or_else(|| self.others.pop_back())
    }
}

impl Drop for CheckPermit {
    fn drop(&mut self) {
        let Some(queue) = self.0.take() else { return };
        loop {
            let mut waiting = queue.0.lock();
            let Some(next) = waiting.next() else {
                waiting.free += 1;
                return;
            };
            drop(waiting);
            match next.send(Self(Some(Arc::clone(&queue)))) {
                Ok(()) => return,
                // The waiter has left: its permit must not be released on drop, but goes to the
                // next one.
                Err(mut unwanted) => unwanted.0 = None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// Polls a future once.
    fn look<F: Future>(future: &mut Pin<Box<F>>) -> Poll<F::Output> {
        future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Bounds of a long wait with at most `most` waiters.
    const fn patient(most: usize) -> QueueBounds {
        QueueBounds { most, wait: Duration::from_secs(3600) }
    }

    /// The order in which permits are given, as each waiter releases its own.
    async fn order(queue: &Arc<Queue>, held: CheckPermit, all: &[(&str, Urgency)]) -> Vec<String> {
        let mut waiting: Vec<_> = all
            .iter()
            .map(|(name, standing)| (*name, Box::pin(queue.place(*standing, patient(10)))))
            .collect();
        for (name, one) in &mut waiting {
            assert!(look(one).is_pending(), "{name}");
        }
        let mut order = Vec::new();
        drop(held);
        while !waiting.is_empty() {
            for at in (0..waiting.len()).rev() {
                if let Poll::Ready(place) = look(&mut waiting[at].1) {
                    order.push(waiting.remove(at).0.to_owned());
                    drop(place.expect("a place"));
                }
            }
        }
        order
    }

    #[tokio::test]
    async fn who_was_right_comes_first_and_of_others_the_latest() {
        let queue = Queue::new(1);
        let held = queue.place(Urgency::Other, patient(10)).await.expect("a free place");
        assert!(queue.is_busy());
        let (known, other) = (Urgency::Known, Urgency::Other);
        let all = [("a", other), ("b", known), ("c", other), ("d", known)];
        assert_eq!(order(&queue, held, &all).await, ["b", "d", "c", "a"]);
        assert!(!queue.is_busy());
    }

    #[tokio::test]
    async fn a_full_queue_lets_the_one_go_that_has_waited_for_longest() {
        let queue = Queue::new(1);
        let held = queue.place(Urgency::Other, patient(2)).await.expect("a free place");
        let mut others: Vec<_> =
            (0..3).map(|_| Box::pin(queue.place(Urgency::Other, patient(2)))).collect();
        for other in &mut others[..2] {
            assert!(look(other).is_pending());
        }
        assert!(look(&mut others[2]).is_pending());
        assert!(matches!(look(&mut others[0]), Poll::Ready(Err(QueueRefusal::Full))));
        let mut known = Box::pin(queue.place(Urgency::Known, patient(2)));
        assert!(look(&mut known).is_pending());
        drop(held);
        assert!(matches!(look(&mut known), Poll::Ready(Ok(_))));
    }

    #[tokio::test]
    async fn a_wait_ends_and_who_has_left_takes_no_place() {
        let queue = Queue::new(1);
        let held = queue.place(Urgency::Other, patient(9)).await.expect("a free place");
        let late = queue.place(Urgency::Known, QueueBounds { most: 9, wait: Duration::ZERO }).await;
        assert!(matches!(late, Err(QueueRefusal::Late)));
        let mut gone = Box::pin(queue.place(Urgency::Known, patient(9)));
        assert!(look(&mut gone).is_pending());
        drop(gone);
        let mut next = Box::pin(queue.place(Urgency::Other, patient(9)));
        assert!(look(&mut next).is_pending());
        drop(held);
        assert!(matches!(look(&mut next), Poll::Ready(Ok(_))));
    }
}
