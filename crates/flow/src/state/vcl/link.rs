//! Link between a program's backend and its origin, which the daemon makes from the backend's
//! declaration.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use origin::{Address, HealthOverride, Journal, Origin, OriginConfig, ServerConfig, ServerStatus};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use vcl::backend::{BackendLink, Leaf};

/// The origin of a backend, and its background work.
#[derive(Debug)]
pub struct BackendOrigin {
    /// The origin.
    pub origin: Arc<Origin>,
    /// Probes and name lookups, while the program is warm.
    work: Mutex<Option<JoinHandle<()>>>,
    /// Requests that were not sent because the backend is not healthy.
    turned_away: AtomicU64,
}

impl BackendOrigin {
    /// The origin of a cold program.
    pub fn new(config: OriginConfig) -> Self {
        Self { origin: Origin::new(config), work: Mutex::default(), turned_away: AtomicU64::new(0) }
    }

    /// Returns the origin of `leaf`; `None` if it is not connected.
    pub fn of(leaf: &Leaf) -> Option<&Self> {
        leaf.link()?.as_any().downcast_ref()
    }

    /// Returns the status of the backend's server.
    pub fn status(&self) -> Option<ServerStatus> {
        self.origin.servers().pop()
    }

    /// Counts a request that was not sent because the backend is not healthy.
    pub(crate) fn turn_away(&self) {
        self.turned_away.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of requests that the backend did not get because it is not healthy.
    pub fn turned_away(&self) -> u64 {
        self.turned_away.load(Ordering::Relaxed)
    }

    /// Returns an operator's order about the backend.
    pub fn order(&self) -> HealthOverride {
        self.status().map(|server| server.order).unwrap_or_default()
    }

    /// Sets an operator's order.
    pub fn set_order(&self, order: HealthOverride) {
        if let Some(server) = self.status() {
            self.origin.order(&server.name, order);
        }
    }

    /// Starts probes on `runtime`, and lookups of a name that is followed, unless they run. Known
    /// health stays.
    pub fn warm(&self, runtime: &Handle, journal: Option<Arc<dyn Journal>>) {
        let OriginConfig { probe, servers, .. } = self.origin.config();
        let follows = |server: &ServerConfig| matches!(server.address, Address::Tcp { .. });
        let mut work = self.work.lock();
        if work.is_none() && (probe.is_some() || servers.iter().any(follows)) {
            *work = Some(runtime.spawn(origin::run_background(Arc::clone(&self.origin), journal)));
        }
    }

    /// Stops the probes. Known addresses stay in use.
    pub fn cool(&self) {
        if let Some(work) = self.work.lock().take() {
            work.abort();
        }
    }
}

impl Drop for BackendOrigin {
    fn drop(&mut self) {
        self.cool();
    }
}

impl BackendLink for BackendOrigin {
    fn is_healthy(&self) -> bool {
        self.origin.is_healthy()
    }

    fn changed(&self) -> f64 {
        self.origin.changed_ms() as f64 / 1000.0
    }

    fn is_found(&self) -> Option<bool> {
        self.origin.is_found()
    }

    fn in_use(&self) -> u32 {
        self.origin.in_flight()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
