//! Reclaim requests: connections that wait for other cores to evict idle ones.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::guard::EvictableConnections;

/// The pending reclaim requests to all cores.
#[derive(Debug, Default)]
pub(crate) struct ReclaimRequests {
    /// Requests of new connections.
    pub(crate) newcomers: AtomicU64,
    /// Requests of open connections.
    pub(crate) others: AtomicU64,
}

/// A reclaim request; dropping it withdraws it, so that no more connections are evicted.
pub(crate) struct ReclaimRequest<'a>(&'a AtomicU64);

impl ReclaimRequests {
    pub(crate) fn call(&self, who: EvictableConnections) -> ReclaimRequest<'_> {
        let requests =
            if who == EvictableConnections::Any { &self.newcomers } else { &self.others };
        requests.fetch_add(1, Ordering::Relaxed);
        ReclaimRequest(requests)
    }
}

impl Drop for ReclaimRequest<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
