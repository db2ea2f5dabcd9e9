//! Host services for programs: files, names, environment and the system log.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use base::Limit;
use bytes::Bytes;
use vcl::backend::Leaf;

/// Services of the host. None waits for the network during a request: the implementation has the
/// answer at hand or returns none.
pub trait HostServices: Send + Sync {
    /// Writes a line of this priority to the system log.
    fn syslog(&self, priority: i64, text: &[u8]);

    /// An environment variable.
    fn env(&self, name: &str) -> Option<Bytes>;

    /// The content of a file, kept after the first read; `None` if it cannot be read.
    fn file(&self, path: &str) -> Option<Bytes>;

    /// The content of a file, read now. Only starting programs call it.
    ///
    /// # Errors
    /// The system's; `FileTooLarge` beyond `bytes_max` bytes.
    fn read(&self, path: &str, bytes_max: u64) -> io::Result<Bytes>;

    /// Returns true if the path exists now.
    fn exists(&self, path: &str) -> bool;

    /// The known addresses of a host name. For a starting program (`starts`) the name is looked up
    /// now, however long that takes: no request waits.
    ///
    /// # Errors
    /// No more names are remembered.
    fn resolve(&self, host: &str, port: &str, starts: bool) -> Result<Vec<SocketAddr>, Limit>;

    /// Free and used bytes of a storage; `None` for an unknown name.
    fn storage(&self, name: &str) -> Option<(u64, u64)>;

    /// Connects a backend that a running program made (`dynamic`).
    fn link(&self, leaf: &Arc<Leaf>);
}
