//! The line to one server of a neighbour: what it is still to be told.

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

/// One server of a neighbour.
pub(super) struct InvalidationQueue {
    pub(super) way: NeighbourChannel,
    pub(super) manner: NeighbourProfile,
    pub(super) counters: Arc<Counters>,
    pub(super) shared: Arc<SharedState>,
    pub(super) queue: Mutex<VecDeque<QueuedInvalidation>>,
    /// Parcels that wait, or are under way, or are about to take effect.
    pub(super) left: AtomicUsize,
    /// The last moment at which something was invalidated that it does not know of, in milliseconds
    /// of the monotonic clock; 0 for never.
    pub(super) untold_ms: AtomicU64,
    pub(super) bell: Notify,
    /// A configuration without it is in force.
    pub(super) is_over: AtomicBool,
    /// It has not taken the last one that it was told.
    pub(super) is_troubled: AtomicBool,
    /// Things for which its dialect has no word, as far as that was said.
    pub(super) unsaid: Mutex<Vec<UnsupportedPurge>>,
}

/// The way to a server that is told.
pub(super) enum NeighbourChannel {
    Http(ManagedOrigin),
    Htcp(SocketAddr),
}

/// One invalidation, as one neighbour is told.
pub(super) struct QueuedInvalidation {
    pub(super) messages: Vec<Message>,
    pub(super) made_ms: u64,
    /// Somebody waits for its fate.
    pub(super) fate: Option<oneshot::Sender<()>>,
}

impl fmt::Display for InvalidationQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.way {
            NeighbourChannel::Http(tended) => f.write_str(&tended.origin.config().name),
            NeighbourChannel::Htcp(address) => write!(f, "htcp {address}"),
        }
    }
}

impl InvalidationQueue {
    /// Puts a parcel into the place that was pledged to it.
    pub(super) fn add(&self, parcel: QueuedInvalidation) {
        let most = usize::try_from(self.shared.live().limits.neighbour_queue).unwrap_or(usize::MAX);
        let mut queue = self.queue.lock();
        if queue.len() >= most {
            drop(queue);
            self.counters.limit(Limit::NeighbourQueue);
            self.done(parcel, Counter::NeighboursLost);
            return;
        }
        queue.push_back(parcel);
        drop(queue);
        self.bell.notify_one();
    }

    /// Says what the neighbour is not told, each kind of thing once.
    pub(super) fn log_unsupported(&self, unsaid: UnsupportedPurge) {
        let mut known = self.unsaid.lock();
        if !known.contains(&unsaid) {
            known.push(unsaid);
            base::tell!(Warn, "larder: neighbour {self} is not told: {unsaid}");
        }
    }

    /// The next one to tell; `None` when it is over.
    pub(super) async fn next(&self) -> Option<QueuedInvalidation> {
        loop {
            let bell = self.bell.notified();
            if self.is_over.load(Ordering::Acquire) {
                return None;
            }
            let next = self.queue.lock().pop_front();
            match next {
                None => bell.await,
                parcel => return parcel,
            }
        }
    }

    /// Notes that something is invalidated that the neighbour does not know of, or may not.
    pub(super) fn mark_incomplete(&self) {
        self.untold_ms.fetch_max(rt::now().mono_ms.max(1), Ordering::AcqRel);
    }

    /// Notes the fate of a parcel.
    pub(super) fn done(&self, parcel: QueuedInvalidation, counter: Counter) {
        if counter != Counter::NeighboursTold {
            self.mark_incomplete();
        }
        // Whoever is told of it, or sees it counted, may count on it.
        self.left.fetch_sub(1, Ordering::AcqRel);
        self.counters.inc(counter);
        if counter == Counter::NeighboursTold
            && let Some(fate) = parcel.fate
        {
            // Whoever waited may have gone.
            _ = fate.send(());
        }
    }
}

/// The own end of a socket to `address`: any.
pub(super) fn own_address(address: SocketAddr) -> (IpAddr, u16) {
    match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED.into(), 0),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED.into(), 0),
    }
}
