//! State that VMODs share between all programs, for the daemon's life. Its size is always limited.

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

/// State that VMODs keep for the daemon's life, whatever program is in use. Each
/// [`ProgramEnvironment`](crate::state::environment::ProgramEnvironment) has one.
#[derive(Debug)]
pub struct VmodState {
    /// Variables of `var.global_set`.
    pub(crate) globals: Globals,
    /// Buckets of `vsthrottle`.
    pub(crate) buckets: Buckets,
    /// Limiter of new hosts in `dynamic`.
    pub(crate) host_limiter: HostLimiter,
    /// Databases of `geoip2`.
    pub(crate) databases: Databases,
    /// Largest size of a database in bytes.
    geoip_bytes: AtomicU64,
    /// Most backends of a director.
    most_backends: AtomicUsize,
}

impl VmodState {
    /// Empty state with these limits.
    pub fn new(limits: &Limits) -> Self {
        Self {
            globals: Globals::new(limits.vcl_globals, limits.vcl_global_bytes),
            buckets: Buckets::new(limits.throttle_buckets as usize),
            host_limiter: HostLimiter::new(limits.director_new_hosts),
            databases: Databases::default(),
            geoip_bytes: AtomicU64::new(limits.geoip_bytes),
            most_backends: AtomicUsize::new(limits.director_backends as usize),
        }
    }

    /// Sets new limits. Existing entries stay.
    pub fn set_limits(&self, limits: &Limits) {
        self.globals.set_most(limits.vcl_globals, limits.vcl_global_bytes);
        self.buckets.set_most(limits.throttle_buckets as usize);
        self.host_limiter.set_most(limits.director_new_hosts);
        self.geoip_bytes.store(limits.geoip_bytes, Ordering::Relaxed);
        self.most_backends.store(limits.director_backends as usize, Ordering::Relaxed);
    }

    /// Largest size of a `geoip2` database in bytes.
    pub(crate) fn geoip_bytes(&self) -> u64 {
        self.geoip_bytes.load(Ordering::Relaxed)
    }

    /// Most backends of a director.
    pub(crate) fn most_backends(&self) -> usize {
        self.most_backends.load(Ordering::Relaxed)
    }
}

impl Default for VmodState {
    fn default() -> Self {
        Self::new(&Limits::default())
    }
}
