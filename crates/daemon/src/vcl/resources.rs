//! Resources of programs beyond requests: files, names, the environment, the system's log.

use std::collections::HashMap;
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use base::logging::Priority;
use base::{Limit, Limits};
use bytes::Bytes;
use flow::SharedState;
use flow::vcl::HostServices;
use origin::{AddressCache, LookupPace, ReservedAddresses, look_up};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use vcl::backend::{Backend, Leaf};

use super::link::{self, LinkSettings};

/// Largest file that `std.fileread` reads.
const FILE_BYTES: u64 = 16 << 20;
/// Files that are cached.
const FILES: usize = 1_000;

/// The daemon's resources, as programs use them.
pub(super) struct ProgramResources {
    pub(super) shared: std::sync::Weak<SharedState>,
    pub(super) reserved: Arc<ReservedAddresses>,
    pub(super) runtime: Handle,
    pub(super) names: AddressCache,
    /// The pace of lookups by `dynamic` directors.
    pub(super) pace: Arc<LookupPace>,
    pub(super) storages: Vec<String>,
    /// Cached files, which Varnish also keeps until its end.
    pub(super) files: Mutex<HashMap<String, Option<Bytes>>>,
}

impl HostServices for ProgramResources {
    fn syslog(&self, priority: i64, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        let line = format_args!("larder: VCL: {}", text.escape_debug());
        base::logging::tell(Priority::of_syslog(priority), line);
    }

    fn env(&self, name: &str) -> Option<Bytes> {
        use std::os::unix::ffi::OsStringExt as _;
        // No variable has these in its name (setenv(3)).
        if name.is_empty() || name.contains(['=', '\0']) {
            return None;
        }
        std::env::var_os(name).map(|value| Bytes::from(value.into_vec()))
    }

    fn exists(&self, path: &str) -> bool {
        Path::new(path).exists()
    }

    fn file(&self, path: &str) -> Option<Bytes> {
        let mut files = self.files.lock();
        if let Some(known) = files.get(path) {
            return known.clone();
        }
        let small = |meta: std::fs::Metadata| meta.is_file() && meta.len() <= FILE_BYTES;
        let readable = std::fs::metadata(Path::new(path)).is_ok_and(small);
        let text = readable.then(|| std::fs::read(path).ok().map(Bytes::from)).flatten();
        if files.len() < FILES {
            files.insert(path.to_owned(), text.clone());
        }
        text
    }

    fn read(&self, path: &str, bytes_max: u64) -> io::Result<Bytes> {
        // Reading what is no file may never end, or not begin.
        if !std::fs::metadata(path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file"));
        }
        let mut bytes = Vec::new();
        let most = bytes_max.saturating_add(1);
        std::fs::File::open(path)?.take(most).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > bytes_max {
            Err(io::ErrorKind::FileTooLarge.into())
        } else {
            Ok(bytes.into())
        }
    }

    fn resolve(&self, host: &str, port: &str, starts: bool) -> Result<Vec<SocketAddr>, Limit> {
        let port = match port {
            "" | "http" => 80,
            "https" => 443,
            digits => digits.parse().unwrap_or(0),
        };
        let ips = if starts {
            look_up(host).unwrap_or_default()
        } else {
            let Some(shared) = self.shared.upgrade() else { return Ok(Vec::new()) };
            self.names.get(host, shared.live().limits.vcl_names as usize)?
        };
        Ok(ips.into_iter().map(|ip| SocketAddr::new(ip, port)).collect())
    }

    fn storage(&self, name: &str) -> Option<(u64, u64)> {
        let shared = self.shared.upgrade()?;
        let stats = shared.cache.stats();
        // All storages share one memory.
        let known = self.storages.iter().any(|own| own == name);
        known.then(|| (stats.budget.saturating_sub(stats.bytes), stats.bytes))
    }

    fn link(&self, leaf: &Arc<Leaf>) {
        let Some(shared) = self.shared.upgrade() else { return };
        let live = shared.live();
        let limits: &Limits = &live.limits;
        self.pace.set(u32::try_from(limits.director_new_hosts).unwrap_or(u32::MAX));
        let settings = LinkSettings {
            params: &live.vcl.params,
            limits,
            reserved: &self.reserved,
            pace: Some(&self.pace),
        };
        match link::connect(leaf, &settings) {
            Ok(()) => {
                let leaf = [Backend::Leaf(Arc::clone(leaf))];
                link::warm(&leaf, &self.runtime, shared.shared_pool.journal());
            }
            Err(why) => base::tell!(Error, "larder: {why}"),
        }
    }
}
