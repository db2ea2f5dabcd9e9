//! Limiter of the new hosts that directors accept per second, in all and for each client. Each host
//! costs a DNS lookup, and clients can invent names without end.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;

/// A client's address: an IPv4 address, an IPv6 /64, or one connection on loopback.
type ClientAddress = SocketAddr;

/// Hosts that were accepted in the current second.
#[derive(Debug)]
pub(crate) struct HostLimiter {
    most: AtomicU32,
    second: Mutex<HostCounts>,
}

#[derive(Debug, Default)]
struct HostCounts {
    /// The current second, since 1970.
    number: i64,
    all: u32,
    /// Hosts of each client; at most `all` entries.
    of: HashMap<ClientAddress, u32>,
}

impl HostLimiter {
    /// A limiter of `most` hosts a second.
    pub(crate) fn new(most: u64) -> Self {
        let host_limiter = Self { most: AtomicU32::default(), second: Mutex::default() };
        host_limiter.set_most(most);
        host_limiter
    }

    /// Changes the limit to `most` hosts a second.
    pub(crate) fn set_most(&self, most: u64) {
        self.most.store(u32::try_from(most).unwrap_or(u32::MAX), Ordering::Relaxed);
    }

    /// Accepts one more host for `client` at `now` (seconds since 1970). Returns false beyond the
    /// limit.
    pub(crate) fn admit(&self, client: Option<SocketAddr>, now: f64) -> bool {
        let most = self.most.load(Ordering::Relaxed);
        let client = client.map(client_of);
        let mut second = self.second.lock();
        let number = now.floor() as i64;
        // Requests that began in an earlier second count in the current one. A clock that was set
        // back starts over.
        if number > second.number || second.number - number > 10 {
            *second = HostCounts { number, ..HostCounts::default() };
        }
        let held = client.and_then(|client| second.of.get(&client)).copied().unwrap_or(0);
        if second.all >= most || held >= most.div_ceil(2) {
            return false;
        }
        second.all += 1;
        if let Some(client) = client {
            second.of.insert(client, held + 1);
        }
        true
    }
}

fn client_of(client: SocketAddr) -> ClientAddress {
    match client.ip().to_canonical() {
        ip if ip.is_loopback() => client,
        IpAddr::V6(ip) => {
            let network = u128::from(ip) & !u128::from(u64::MAX);
            SocketAddr::new(IpAddr::V6(network.into()), 0)
        }
        ip => SocketAddr::new(ip, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Option<SocketAddr> {
        Some(text.parse().expect("an address"))
    }

    #[test]
    fn one_client_gets_half_of_a_seconds_places() {
        let host_limiter = HostLimiter::new(5);
        let one = |port: u16| at(&format!("192.0.2.1:{port}"));
        let taken = (1..=9).filter(|port| host_limiter.admit(one(*port), 7.5)).count();
        assert_eq!(taken, 3);
        let network = |n: u16| at(&format!("[2001:db8::{n}]:1"));
        let taken = (1..=9).filter(|n| host_limiter.admit(network(*n), 7.9)).count();
        assert_eq!(taken, 2, "what is left of all");
        assert!(!host_limiter.admit(None, 7.9));
    }

    #[test]
    fn every_second_begins_anew() {
        let host_limiter = HostLimiter::new(2);
        let one = at("192.0.2.1:1");
        assert!(host_limiter.admit(one, 7.0) && !host_limiter.admit(one, 7.9));
        assert!(host_limiter.admit(one, 8.0));
        assert!(!host_limiter.admit(one, 7.99), "it began a second ago");
        assert!(host_limiter.admit(one, -90.0), "the clock was set back");
        host_limiter.set_most(0);
        assert!(!host_limiter.admit(one, 9.0));
    }

    #[test]
    fn connections_from_this_machine_are_clients_of_their_own() {
        let host_limiter = HostLimiter::new(4);
        let taken = |port: u16| {
            let client = at(&format!("127.0.0.1:{port}"));
            (0..3).filter(|_| host_limiter.admit(client, 1.0)).count()
        };
        assert_eq!((taken(1), taken(2), taken(3)), (2, 2, 0));
    }
}
