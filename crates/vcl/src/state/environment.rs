//! The world outside a program, as its runner lends it.

use std::io;
use std::net::SocketAddr;

use base::Limit;
use bytes::Bytes;
use message::HeaderBlock;

use crate::rules::lifetime::Lifetime;
use crate::shared::VmodState;
use crate::tag::Tag;

/// A hard or soft purge: of the object that was found, or of keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PurgeMode {
    /// At once.
    Hard,
    /// Its times shortened to these, in seconds; none to leave one as it is.
    Soft {
        /// From now.
        ttl: Option<f64>,
        /// Grace after it.
        grace: Option<f64>,
        /// Keep after that.
        keep: Option<f64>,
    },
}

impl PurgeMode {
    /// Returns the new time to live, grace and keep, in seconds; `None` for a time that stays.
    pub fn times(self) -> (Option<f64>, Option<f64>, Option<f64>) {
        match self {
            Self::Hard => (Some(0.0), Some(0.0), Some(0.0)),
            Self::Soft { ttl, grace, keep } => (ttl, grace, keep),
        }
    }
}

/// The world outside a program. Nothing here waits.
pub trait ProgramEnvironment {
    /// State that VMODs keep for as long as the daemon runs. All programs share it.
    fn shared(&self) -> &VmodState;

    /// Writes a line to the log.
    fn log(&self, tag: Tag, text: &[u8]);

    /// Writes a line to the system's log (`std.syslog`), at this priority.
    fn syslog(&self, priority: i64, text: &[u8]);

    /// Bans (`ban`, `std.ban`).
    ///
    /// # Errors
    /// A message that says what is wrong with the expression, or why nothing was banned.
    fn ban(&self, expression: &str) -> Result<(), String>;

    /// Purges every variant of this request's key (`purge.hard`, `purge.soft`); how many objects.
    ///
    /// # Errors
    /// Why nothing was purged.
    fn purge(&self, key: &[u8], how: PurgeMode) -> Result<u64, String>;

    /// Purges by surrogate keys (`xkey`); how many objects.
    ///
    /// # Errors
    /// Why nothing was purged.
    fn purge_keys(&self, keys: &[&[u8]], soft: bool) -> Result<u64, String>;

    /// The time at this moment, in seconds since 1970. It goes on while a subroutine runs.
    fn clock(&self) -> f64;

    /// A random number of at least 0 and less than 1.
    fn random(&self) -> f64;

    /// An environment variable.
    fn env(&self, name: &str) -> Option<Bytes>;

    /// A file's content (`std.fileread`), kept once read; `None` if it cannot be read.
    fn file(&self, path: &str) -> Option<Bytes>;

    /// A file's content, read now, for what a program needs while it starts (`geoip2`).
    ///
    /// # Errors
    /// The system's; `FileTooLarge` for one of more than `bytes_max` bytes.
    fn read(&self, path: &str, bytes_max: u64) -> io::Result<Bytes>;

    /// Returns true if a path leads to something (`std.file_exists`). Each call asks anew.
    fn exists(&self, path: &str) -> bool {
        self.file(path).is_some()
    }

    /// Addresses of a host name, for `std.ip` and ACLs; from memory or the system's own tables.
    fn resolve(&self, host: &str, port: &str) -> Vec<SocketAddr>;

    /// The request body, once it has been kept (`std.cache_req_body`); `None` if it has not.
    fn body(&self) -> Option<&[u8]>;

    /// Returns true if the request body could be kept in `bytes_max`.
    fn keep_body(&self, bytes_max: u64) -> bool;

    /// The times that a response of these fields has by itself, at `now` (seconds since 1970).
    fn lifetime(&self, status: u16, headers: &HeaderBlock, now: f64) -> Lifetime;

    /// A parameter's value by Varnish's name, in its base unit.
    fn param(&self, name: &str) -> Option<f64>;

    /// Returns true if `word` of the parameter `feature` is switched on.
    fn has_feature(&self, word: &str) -> bool;

    /// Bytes free in and used by a storage; `None` if no such name is known.
    fn storage(&self, name: &str) -> Option<(u64, u64)>;

    /// `server.hostname`
    fn hostname(&self) -> &str;

    /// `server.identity`
    fn identity(&self) -> &str;

    /// Counts that `limit` was reached.
    fn limit(&self, limit: Limit);
}
