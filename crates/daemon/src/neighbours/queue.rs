//! The queue of invalidations for one server of a neighbour.

use std::collections::VecDeque;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use base::{Counter, Counters, Limit};
use flow::SharedState;
use flow::invalidate::neighbour::{Message, NeighbourProfile, UnsupportedPurge};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use crate::managed_origin::ManagedOrigin;

/// The queue to one server, and the state of that server.
pub(super) struct InvalidationQueue {
    pub(super) channel: NeighbourChannel,
    pub(super) profile: NeighbourProfile,
    pub(super) counters: Arc<Counters>,
    pub(super) shared: Arc<SharedState>,
    pub(super) queue: Mutex<VecDeque<QueuedInvalidation>>,
    /// Invalidations that wait, are being sent, or are about to take effect.
    pub(super) left: AtomicUsize,
    /// The last moment of an invalidation that the neighbour has missed, in milliseconds of the
    /// monotonic clock; 0 for never.
    pub(super) missed_ms: AtomicU64,
    pub(super) wakeup: Notify,
    /// The configuration in force no longer has the neighbour.
    pub(super) is_removed: AtomicBool,
    /// The last delivery failed.
    pub(super) is_failing: AtomicBool,
    /// Kinds of purges that its dialect cannot express, as far as they were logged.
    pub(super) unsupported: Mutex<Vec<UnsupportedPurge>>,
}

/// The way to the server.
pub(super) enum NeighbourChannel {
    Http(ManagedOrigin),
    Htcp(SocketAddr),
}

/// One invalidation, as messages for one neighbour.
pub(super) struct QueuedInvalidation {
    pub(super) messages: Vec<Message>,
    pub(super) made_ms: u64,
    /// A purge waits for the delivery.
    pub(super) delivered: Option<oneshot::Sender<()>>,
}

impl fmt::Display for InvalidationQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.channel {
            NeighbourChannel::Http(managed) => f.write_str(&managed.origin.config().name),
            NeighbourChannel::Htcp(address) => write!(f, "htcp {address}"),
        }
    }
}

impl InvalidationQueue {
    /// Queues an invalidation in its reserved place; drops and counts it if the queue is full.
    pub(super) fn add(&self, queued: QueuedInvalidation) {
        let most = usize::try_from(self.shared.live().limits.neighbour_queue).unwrap_or(usize::MAX);
        let mut queue = self.queue.lock();
        if queue.len() >= most {
            drop(queue);
            self.counters.limit(Limit::NeighbourQueue);
            self.done(queued, Counter::NeighboursLost);
            return;
        }
        queue.push_back(queued);
        drop(queue);
        self.wakeup.notify_one();
    }

    /// Logs what the neighbour is not sent, each kind once.
    pub(super) fn log_unsupported(&self, unsupported: UnsupportedPurge) {
        let mut known = self.unsupported.lock();
        if !known.contains(&unsupported) {
            known.push(unsupported);
            base::tell!(Warn, "larder: neighbour {self} is not sent a purge: {unsupported}");
        }
    }

    /// The next invalidation to send; `None` when the neighbour is no longer configured.
    pub(super) async fn next(&self) -> Option<QueuedInvalidation> {
        loop {
            let wakeup = self.wakeup.notified();
            if self.is_removed.load(Ordering::Acquire) {
                return None;
            }
            let next = self.queue.lock().pop_front();
            match next {
                None => wakeup.await,
                queued => return queued,
            }
        }
    }

    /// Notes that the neighbour missed an invalidation, or may have.
    pub(super) fn mark_incomplete(&self) {
        self.missed_ms.fetch_max(rt::now().mono_ms.max(1), Ordering::AcqRel);
    }

    /// Notes the outcome of a delivery.
    pub(super) fn done(&self, queued: QueuedInvalidation, counter: Counter) {
        if counter != Counter::NeighboursTold {
            self.mark_incomplete();
        }
        // A caller that sees the outcome, or the counter, may rely on `left`.
        self.left.fetch_sub(1, Ordering::AcqRel);
        self.counters.inc(counter);
        if counter == Counter::NeighboursTold
            && let Some(delivered) = queued.delivered
        {
            // The receiver may be gone.
            _ = delivered.send(());
        }
    }
}

/// The local end of a socket to `address`: any.
pub(super) fn own_address(address: SocketAddr) -> (IpAddr, u16) {
    match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED.into(), 0),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED.into(), 0),
    }
}
