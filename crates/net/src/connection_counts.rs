//! Connection counts per client: one IPv4 address, or one IPv6 /64, is one client.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::ClientId;
use parking_lot::Mutex;

/// The number of connections on all cores.
#[derive(Debug, Default)]
pub(crate) struct ConnectionCounts {
    all: AtomicU64,
    by_client: Mutex<HashMap<ClientId, u32>>,
}

/// The entry of one connection; dropping it decrements the counts.
#[derive(Debug)]
pub(crate) struct Entry {
    peers: Arc<ConnectionCounts>,
    client: Option<ClientId>,
}

/// The reason for refusing a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionRefusal {
    /// The limit for all clients is reached.
    All,
    /// The limit for this client is reached.
    PerClient,
}

impl ConnectionCounts {
    /// Counts a connection, unless `max` are open already.
    pub(crate) fn enter(self: &Arc<Self>, max: u64) -> Result<Entry, ConnectionRefusal> {
        if self.all.fetch_add(1, Ordering::Relaxed) >= max {
            self.all.fetch_sub(1, Ordering::Relaxed);
            return Err(ConnectionRefusal::All);
        }
        Ok(Entry { peers: Arc::clone(self), client: None })
    }
}

impl Entry {
    /// Counts the connection for `ip`, unless `max_per_ip` of it are open already. Call it once.
    pub(crate) fn claim(&mut self, ip: IpAddr, max_per_ip: u64) -> Result<(), ConnectionRefusal> {
        if max_per_ip > 0 && !ip.to_canonical().is_loopback() {
            let client = ClientId::from(ip);
            let mut by_client = self.peers.by_client.lock();
            let count = by_client.entry(client).or_insert(0);
            if u64::from(*count) >= max_per_ip {
                return Err(ConnectionRefusal::PerClient);
            }
            *count += 1;
            drop(by_client);
            self.client = Some(client);
        }
        Ok(())
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.peers.all.fetch_sub(1, Ordering::Relaxed);
        if let Some(client) = self.client {
            let mut by_client = self.peers.by_client.lock();
            if let Some(count) = by_client.get_mut(&client) {
                *count -= 1;
                if *count == 0 {
                    by_client.remove(&client);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn enter(
        peers: &Arc<ConnectionCounts>,
        address: &str,
        max: u64,
        per_ip: u64,
    ) -> Result<Entry, ConnectionRefusal> {
        let mut entry = peers.enter(max)?;
        entry.claim(ip(address), per_ip).map(|()| entry)
    }

    #[test]
    fn a_v6_network_is_one_client_and_leaving_makes_room() {
        let peers = Arc::new(ConnectionCounts::default());
        let first = enter(&peers, "2001:db8::1", 10, 1).expect("room");
        let second = enter(&peers, "2001:db8::2", 10, 1);
        assert_eq!(second.err(), Some(ConnectionRefusal::PerClient));
        assert!(enter(&peers, "2001:db8:0:1::1", 10, 1).is_ok());
        drop(first);
        assert!(enter(&peers, "2001:db8::2", 10, 1).is_ok());
        assert!(peers.by_client.lock().is_empty());
    }

    #[test]
    fn the_total_holds_and_loopback_counts_only_there() {
        let peers = Arc::new(ConnectionCounts::default());
        let held: Vec<_> =
            (0..2).map(|_| enter(&peers, "127.0.0.1", 2, 1).expect("room")).collect();
        let third = enter(&peers, "127.0.0.1", 2, 1);
        assert_eq!(third.err(), Some(ConnectionRefusal::All));
        drop(held);
        assert_eq!(peers.all.load(Ordering::Relaxed), 0);
    }
}
