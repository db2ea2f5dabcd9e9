//! The connection limiter: keeps unauthenticated clients from locking out others.
//!
//! Unauthenticated connections have a limit of their own. At the limit, a new one evicts the
//! oldest.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// The connections of one listener.
#[derive(Debug, Default)]
pub struct ConnectionLimiter(Mutex<Inside>);

#[derive(Debug, Default)]
struct Inside {
    /// Unauthenticated connections, the oldest first. Dropping the sender lets a connection stay.
    strangers: VecDeque<(u64, oneshot::Sender<()>)>,
    known: u64,
    /// The number of the next connection.
    next: u64,
}

/// The permit of a connection, until it is dropped.
#[derive(Debug)]
pub struct ConnectionPermit {
    limiter: Arc<ConnectionLimiter>,
    number: u64,
    is_known: AtomicBool,
}

/// Notifies a connection of its eviction.
#[derive(Debug)]
pub struct EvictionNotice(oneshot::Receiver<()>);

impl EvictionNotice {
    /// Waits for the eviction.
    pub async fn evicted(self) {
        if self.0.await.is_err() {
            // The connection may stay.
            std::future::pending::<()>().await;
        }
    }
}

impl ConnectionLimiter {
    /// A limiter without connections.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Admits an unauthenticated connection; at most `most` stay. The third value is true if
    /// another one was evicted for it.
    pub fn enter(self: &Arc<Self>, most: u64) -> (ConnectionPermit, EvictionNotice, bool) {
        let (sender, receiver) = oneshot::channel();
        let mut inside = self.0.lock();
        let number = inside.next;
        inside.next += 1;
        let is_full = inside.strangers.len() as u64 >= most.max(1);
        let oldest = is_full.then(|| inside.strangers.pop_front()).flatten();
        inside.strangers.push_back((number, sender));
        drop(inside);
        if let Some((_, oldest)) = oldest {
            // A connection that has just ended does not listen.
            _ = oldest.send(());
        }
        let permit = ConnectionPermit {
            limiter: Arc::clone(self),
            number,
            is_known: AtomicBool::new(false),
        };
        (permit, EvictionNotice(receiver), is_full)
    }
}

impl ConnectionPermit {
    /// Marks the connection as authenticated. False if `most` are authenticated already, or if the
    /// connection was evicted.
    pub fn mark_authenticated(&self, most: u64) -> bool {
        if self.is_known.load(Ordering::Relaxed) {
            return true;
        }
        let mut inside = self.limiter.0.lock();
        let Some(at) = inside.position(self.number) else { return false };
        if inside.known >= most {
            return false;
        }
        inside.strangers.remove(at);
        inside.known += 1;
        self.is_known.store(true, Ordering::Relaxed);
        true
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut inside = self.limiter.0.lock();
        if self.is_known.load(Ordering::Relaxed) {
            inside.known -= 1;
        } else if let Some(at) = inside.position(self.number) {
            inside.strangers.remove(at);
        }
    }
}

impl Inside {
    fn position(&self, number: u64) -> Option<usize> {
        self.strangers.iter().position(|(other, _)| *other == number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_oldest_stranger_gives_way_and_nobody_who_is_known() {
        let limiter = ConnectionLimiter::new();
        let (known, stays, _) = limiter.enter(2);
        assert!(known.mark_authenticated(1) && known.mark_authenticated(1));
        let (one, leaves, _) = limiter.enter(2);
        let (two, _two, is_full) = limiter.enter(2);
        assert!(!is_full);
        let (three, _three, is_full) = limiter.enter(2);
        assert!(is_full);
        leaves.evicted().await;
        assert!(!one.mark_authenticated(9), "its place is another's");
        assert!(!two.mark_authenticated(1), "one is known already");
        drop((one, known));
        assert!(two.mark_authenticated(1));
        let (_four, _leave, is_full) = limiter.enter(2);
        assert!(!is_full, "one of the strangers is none any more");
        drop(three);
        let stays = rt::time::timeout(std::time::Duration::from_millis(1), stays.evicted());
        assert!(stays.await.is_err());
    }
}
