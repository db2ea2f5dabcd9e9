//! Calls for room.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::guard::EvictableConnections;

/// Calls for room to all cores: how many wait for an answer now.
#[derive(Debug, Default)]
pub(crate) struct ReclaimRequests {
    /// Newcomers.
    pub(crate) newcomers: AtomicU64,
    /// Connections that are in already.
    pub(crate) others: AtomicU64,
}

/// A call, until it is dropped: whoever has found room wants nobody to leave any more.
pub(crate) struct ReclaimRequest<'a>(&'a AtomicU64);

impl ReclaimRequests {
    pub(crate) fn call(&self, who: EvictableConnections) -> ReclaimRequest<'_> {
        let calls = if who == EvictableConnections::Any { &self.newcomers } else { &self.others };
        calls.fetch_add(1, Ordering::Relaxed);
        ReclaimRequest(calls)
    }
}

impl Drop for ReclaimRequest<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
