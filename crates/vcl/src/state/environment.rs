//! Environment of a program: the services of its runner. No method waits.

use std::io;
use std::net::SocketAddr;

use base::Limit;
use bytes::Bytes;
use message::HeaderBlock;

use crate::rules::lifetime::Lifetime;
use crate::shared::VmodState;
use crate::tag::Tag;

/// Hard or soft purge, of an object or of keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PurgeMode {
    /// Removes objects at once.
    Hard,
    /// Shortens lifetimes, in seconds; `None` leaves one unchanged.
    Soft {
        /// New TTL, from now.
        ttl: Option<f64>,
        /// New grace after the TTL.
        grace: Option<f64>,
        /// New keep after grace.
        keep: Option<f64>,
    },
}

impl PurgeMode {
    /// New TTL, grace and keep in seconds; `None` for one that stays.
    pub fn times(self) -> (Option<f64>, Option<f64>, Option<f64>) {
        match self {
            Self::Hard => (Some(0.0), Some(0.0), Some(0.0)),
            Self::Soft { ttl, grace, keep } => (ttl, grace, keep),
        }
    }
}

/// Services of the program's runner. No method waits.
pub trait ProgramEnvironment {
    /// State of VMODs for the daemon's life, shared by all programs.
    fn shared(&self) -> &VmodState;

    /// Writes a line to the log.
    fn log(&self, tag: Tag, text: &[u8]);

    /// Writes a line to the system log with this priority (`std.syslog`).
    fn syslog(&self, priority: i64, text: &[u8]);

    /// Makes a ban (`ban`, `std.ban`).
    ///
    /// # Errors
    /// The fault of the expression, or the reason why the ban was not made.
    fn ban(&self, expression: &str) -> Result<(), String>;

    /// Purges every variant of the current request's key (`purge.hard`, `purge.soft`). Returns the
    /// number of objects.
    ///
    /// # Errors
    /// The reason why the purge was not made.
    fn purge(&self, key: &[u8], mode: PurgeMode) -> Result<u64, String>;

    /// Purges by surrogate keys (`xkey`). Returns the number of objects.
    ///
    /// # Errors
    /// The reason why the purge was not made.
    fn purge_keys(&self, keys: &[&[u8]], soft: bool) -> Result<u64, String>;

    /// Current time in seconds since 1970. It advances while a subroutine runs.
    fn clock(&self) -> f64;

    /// A random number in [0, 1).
    fn random(&self) -> f64;

    /// An environment variable.
    fn env(&self, name: &str) -> Option<Bytes>;

    /// Content of a file (`std.fileread`), cached after the first read; `None` if it cannot be
    /// read.
    fn file(&self, path: &str) -> Option<Bytes>;

    /// Content of a file, read now, for a program that starts (`geoip2`).
    ///
    /// # Errors
    /// The system's error; `FileTooLarge` beyond `bytes_max` bytes.
    fn read(&self, path: &str, bytes_max: u64) -> io::Result<Bytes>;

    /// Returns true if a path exists (`std.file_exists`). The result is not cached.
    fn exists(&self, path: &str) -> bool {
        self.file(path).is_some()
    }

    /// Addresses of a host name, for `std.ip` and ACLs: from a cache or the system's tables.
    fn resolve(&self, host: &str, port: &str) -> Vec<SocketAddr>;

    /// The request body, if `std.cache_req_body` has cached it.
    fn body(&self) -> Option<&[u8]>;

    /// Caches the request body. Returns false if it exceeds `bytes_max`.
    fn keep_body(&self, bytes_max: u64) -> bool;

    /// Lifetime of a response by its fields, at `now` (seconds since 1970).
    fn lifetime(&self, status: u16, headers: &HeaderBlock, now: f64) -> Lifetime;

    /// Value of a parameter by Varnish's name, in its base unit.
    fn param(&self, name: &str) -> Option<f64>;

    /// Returns true if this flag of the parameter `feature` is on.
    fn has_feature(&self, flag: &str) -> bool;

    /// Free and used bytes of a storage; `None` for an unknown name.
    fn storage(&self, name: &str) -> Option<(u64, u64)>;

    /// `server.hostname`
    fn hostname(&self) -> &str;

    /// `server.identity`
    fn identity(&self) -> &str;

    /// Counts that `limit` was reached.
    fn limit(&self, limit: Limit);
}
