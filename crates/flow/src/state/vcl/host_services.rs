//! Services for programs that are no business of requests: files, names, the system's log.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use base::Limit;
use bytes::Bytes;
use vcl::backend::Leaf;

/// The world beyond requests. Nothing here waits for the network where a request does; whoever
/// implements it has its answer at hand, or says that it has no answer.
pub trait HostServices: Send + Sync {
    /// Writes a line to the system's log, at this priority.
    fn syslog(&self, priority: i64, text: &[u8]);

    /// An environment variable.
    fn env(&self, name: &str) -> Option<Bytes>;

    /// A file's content, kept once read; `None` if it cannot be read.
    fn file(&self, path: &str) -> Option<Bytes>;

    /// A file's content, read now. Only programs that start ask for it.
    ///
    /// # Errors
    /// The system's; `FileTooLarge` for one of more than `bytes_max` bytes.
    fn read(&self, path: &str, bytes_max: u64) -> io::Result<Bytes>;

    /// Returns true if a path leads to something now.
    fn exists(&self, path: &str) -> bool;

    /// Addresses of a host name, as far as they are known. For a program that starts (`starts`) it
    /// is looked up now, whatever that takes: no request waits then.
    ///
    /// # Errors
    /// No more names are remembered.
    fn resolve(&self, host: &str, port: &str, starts: bool) -> Result<Vec<SocketAddr>, Limit>;

    /// Bytes free in and used by a storage; `None` if no such name is known.
    fn storage(&self, name: &str) -> Option<(u64, u64)>;

    /// Connects a backend that was made while its program ran (`dynamic`).
    fn link(&self, leaf: &Arc<Leaf>);
}
