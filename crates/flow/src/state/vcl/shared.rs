//! Shared VCL state of all programs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arc_swap::ArcSwapOption;
use base::counters::Registry;
use base::{Counters, Limit};
use parking_lot::Mutex;
use vcl::counts;

use super::host_services::HostServices;
use super::random;
use super::xids::Xids;

/// The state that all programs share.
#[derive(Default)]
pub struct SharedVcl {
    /// The numbers of transactions.
    pub xids: Xids,
    /// Counters under Varnish's names.
    pub counts: counts::Registry,
    /// Memory of VMODs for the daemon's lifetime.
    pub memory: vcl::vmod::VmodState,
    pub(crate) random: random::Random,
    pub(crate) storages: StorageRotation,
    host_services: ArcSwapOption<Box<dyn HostServices>>,
    /// Counters of programs that run on no core. They are written under the lock.
    housekeeping: Mutex<Option<Arc<Counters>>>,
}

/// The rotation of storages.
#[derive(Debug, Default)]
pub(crate) struct StorageRotation(AtomicUsize);

impl StorageRotation {
    /// The next number.
    pub(crate) fn next(&self) -> usize {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

impl SharedVcl {
    /// Sets the host's services.
    pub fn set_host_services(&self, host_services: Box<dyn HostServices>) {
        self.host_services.store(Some(Arc::new(host_services)));
    }

    /// Counts that a program on no core (`vcl_init`) reached `limit`.
    pub(crate) fn limit(&self, registry: &Registry, limit: Limit) {
        let mut counters = self.housekeeping.lock();
        counters.get_or_insert_with(|| registry.register()).limit(limit);
    }

    pub(crate) fn host_services(&self) -> Option<Arc<Box<dyn HostServices>>> {
        self.host_services.load_full()
    }
}
