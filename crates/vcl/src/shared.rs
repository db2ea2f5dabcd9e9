//! The state that VMODs keep for as long as the daemon runs.

pub(crate) mod buckets;
pub(crate) mod database;
pub(crate) mod globals;
pub(crate) mod host_limiter;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use base::Limits;
use buckets::Buckets;
use database::Databases;
use globals::Globals;
use host_limiter::HostLimiter;

/// State that VMODs keep for as long as the daemon runs, whatever program is in use. Every
/// [`World`](crate::state::world::World) has one.
#[derive(Debug)]
pub struct VmodState {
    /// The variables of `var.global_set`.
    pub(crate) globals: Globals,
    /// The buckets of `vsthrottle`.
    pub(crate) buckets: Buckets,
    /// Hosts that `dynamic` takes on.
    pub(crate) newcomers: HostLimiter,
    /// The databases of `geoip2`.
    pub(crate) databases: Databases,
    /// The most bytes that one of them may have.
    geoip_bytes: AtomicU64,
    /// The most backends that a director may have.
    most_backends: AtomicUsize,
}

impl VmodState {
    /// Nothing yet, with room as `limits` allow.
    pub fn new(limits: &Limits) -> Self {
        Self {
            globals: Globals::new(limits.vcl_globals, limits.vcl_global_bytes),
            buckets: Buckets::new(limits.throttle_buckets as usize),
            newcomers: HostLimiter::new(limits.director_new_hosts),
            databases: Databases::default(),
            geoip_bytes: AtomicU64::new(limits.geoip_bytes),
            most_backends: AtomicUsize::new(limits.director_backends as usize),
        }
    }

    /// Has room as `limits` allow from now on. What is there already stays.
    pub fn set_limits(&self, limits: &Limits) {
        self.globals.set_most(limits.vcl_globals, limits.vcl_global_bytes);
        self.buckets.set_most(limits.throttle_buckets as usize);
        self.newcomers.set_most(limits.director_new_hosts);
        self.geoip_bytes.store(limits.geoip_bytes, Ordering::Relaxed);
        self.most_backends.store(limits.director_backends as usize, Ordering::Relaxed);
    }

    /// The most bytes that a database of `geoip2` may have.
    pub(crate) fn geoip_bytes(&self) -> u64 {
        self.geoip_bytes.load(Ordering::Relaxed)
    }

    /// The most backends that a director may have.
    pub(crate) fn most_backends(&self) -> usize {
        self.most_backends.load(Ordering::Relaxed)
    }
}

impl Default for VmodState {
    fn default() -> Self {
        Self::new(&Limits::default())
    }
}
