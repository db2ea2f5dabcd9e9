//! Names that requests ask for: their addresses, for cores that must never wait for a name server.
//!
//! A name in the hosts file is answered at once. Others are resolved in the background: the first
//! request for a name gets no address, and later ones get the result.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use base::Limit;
use parking_lot::Mutex;
use rt::time::Instant;
use tokio::runtime::Handle;

use crate::resolution::{self, TIMEOUT};

/// The time for which a failed lookup is cached.
const FAILED: Duration = Duration::from_secs(30);

/// A cache of addresses, with the runtime that resolves names.
pub struct AddressCache {
    known: Arc<Mutex<HashMap<Box<str>, CachedAddresses>>>,
    runtime: Handle,
}

/// The known addresses of a name.
#[derive(Debug)]
struct CachedAddresses {
    ips: Vec<IpAddr>,
    /// The time at which it expires.
    until: Instant,
    /// A lookup is in progress.
    asked: bool,
}

impl AddressCache {
    /// An empty cache; `runtime` runs the lookups.
    pub fn new(runtime: Handle) -> Self {
        Self { known: Arc::default(), runtime }
    }

    /// The known addresses of `host`; empty during the first lookup. Never waits for the network.
    /// `most` names are cached.
    ///
    /// # Errors
    /// If the cache is full of names that are not expired: the limit `vcl_names`.
    pub fn get(&self, host: &str, most: usize) -> Result<Vec<IpAddr>, Limit> {
        let now = Instant::now();
        let mut known = self.known.lock();
        if let Some(entry) = known.get_mut(host) {
            if now >= entry.until && !std::mem::replace(&mut entry.asked, true) {
                self.ask(host.into());
            }
            return Ok(entry.ips.clone());
        }
        if known.len() >= most {
            known.retain(|_, entry| entry.asked || now < entry.until);
            if known.len() >= most {
                return Err(Limit::VclNames);
            }
        }
        let (ips, ttl) = resolution::listed(host);
        let asked = ips.is_empty();
        known.insert(host.into(), CachedAddresses { ips: ips.clone(), until: now + ttl, asked });
        drop(known);
        if asked {
            self.ask(host.into());
        }
        Ok(ips)
    }

    /// Resolves `host` in the background.
    fn ask(&self, host: Box<str>) {
        let known = Arc::clone(&self.known);
        self.runtime.spawn(async move {
            let looking = resolution::once(&host);
            let found = rt::time::timeout(TIMEOUT, looking).await.ok().and_then(Result::ok);
            let mut known = known.lock();
            let Some(entry) = known.get_mut(&host) else { return };
            let ttl = match found {
                Some((ips, ttl)) => {
                    entry.ips = ips;
                    ttl
                }
                // After a failed lookup, known addresses stay in use.
                None => FAILED,
            };
            (entry.until, entry.asked) = (Instant::now() + ttl, false);
        });
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[tokio::test]
    async fn what_the_hosts_file_has_is_known_at_once() {
        let names = AddressCache::new(Handle::current());
        let ips = names.get("localhost", 10).expect("there is room");
        assert!(ips.contains(&IpAddr::V4(Ipv4Addr::LOCALHOST)), "{ips:?}");
    }

    #[tokio::test]
    async fn a_name_that_is_none_is_nothing_and_is_looked_up_once() {
        let names = AddressCache::new(Handle::current());
        assert_eq!(names.get("a..b", 10), Ok(Vec::new()));
        assert_eq!(names.get("a..b", 10), Ok(Vec::new()));
        assert_eq!(names.known.lock().len(), 1);
        while names.known.lock()["a..b"].asked {
            rt::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(names.get("a..b", 10), Ok(Vec::new()));
        assert!(!names.known.lock()["a..b"].asked, "it was just looked up");
    }

    #[tokio::test]
    async fn no_more_names_are_remembered_than_allowed() {
        let names = AddressCache::new(Handle::current());
        assert!(names.get("localhost", 1).is_ok());
        assert_eq!(names.get("a..b", 1), Err(Limit::VclNames));
        // Expired entries are replaced.
        names.known.lock().values_mut().for_each(|known| known.until = Instant::now());
        assert!(names.get("a..b", 1).is_ok());
    }
}
