//! Access lists: sets of client addresses, written as CIDR blocks.
//!
//! Searched for every request of a site that has one: sorted disjoint ranges with a binary search,
//! so that a list of ten thousand networks costs a dozen comparisons.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use crate::peer::ConnectionPeer;

/// An entry of a list of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Net {
    /// A block of addresses.
    Block(IpNet),
    /// `unix:`, every process that may connect to a unix socket.
    Unix,
}

impl fmt::Display for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block(net) => net.fmt(f),
            Self::Unix => f.write_str("unix:"),
        }
    }
}

/// A set of addresses. An IPv4-mapped IPv6 address counts as the IPv4 address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CidrSet {
    v4: Vec<(Ipv4Addr, Ipv4Addr)>,
    v6: Vec<(Ipv6Addr, Ipv6Addr)>,
    unix: bool,
}

impl CidrSet {
    /// The union of `nets`.
    pub fn new(nets: &[Net]) -> Self {
        let mut set = Self::default();
        for net in nets {
            match net {
                Net::Unix => set.unix = true,
                Net::Block(IpNet::V4(net)) => set.v4.push((net.network(), net.broadcast())),
                Net::Block(IpNet::V6(net)) => match mapped(net) {
                    Some(range) => set.v4.push(range),
                    None => set.v6.push((net.network(), net.broadcast())),
                },
            }
        }
        merge(&mut set.v4);
        merge(&mut set.v6);
        set
    }

    /// Returns true if `address` is in the set.
    pub fn contains(&self, address: IpAddr) -> bool {
        match address.to_canonical() {
            IpAddr::V4(a) => within(&self.v4, a),
            IpAddr::V6(a) => within(&self.v6, a),
        }
    }

    /// Returns true if `peer` is in the set.
    pub fn has(&self, peer: ConnectionPeer) -> bool {
        match peer {
            ConnectionPeer::Host(address) => self.contains(address),
            ConnectionPeer::Local => self.unix,
            ConnectionPeer::Unnamed(_) => false,
        }
    }

    /// Returns true if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty() && !self.unix
    }
}

/// Parses a CIDR block (`10.0.0.0/8`, `2001:db8::/32`), a single address, or `unix:` (as in nginx's
/// `allow` and `set_real_ip_from`).
///
/// # Errors
/// The expected form, for any other text.
pub fn parse_net(text: &str) -> Result<Net, &'static str> {
    if text == "unix:" {
        return Ok(Net::Unix);
    }
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(Net::Block(IpNet::from(address)));
    }
    text.parse().map(Net::Block).map_err(|_| {
        // A prefix length that is too long gets a different message than an invalid text.
        let address = text.split_once('/').filter(|(_, length)| length.parse::<u32>().is_ok());
        match address.and_then(|(address, _)| address.parse().ok()) {
            Some(IpAddr::V4(_)) => "the length of a block of IPv4 addresses is 32 at most",
            Some(IpAddr::V6(_)) => "the length of a block of IPv6 addresses is 128 at most",
            None => "expected an address such as `192.0.2.1` or a block such as `10.0.0.0/8`",
        }
    })
}

/// The IPv4 range of a block within `::ffff:0:0/96`.
fn mapped(net: &ipnet::Ipv6Net) -> Option<(Ipv4Addr, Ipv4Addr)> {
    if net.prefix_len() < 96 {
        return None;
    }
    Some((net.network().to_ipv4_mapped()?, net.broadcast().to_ipv4_mapped()?))
}

fn merge<A: Ord + Copy>(ranges: &mut Vec<(A, A)>) {
    ranges.sort_unstable();
    ranges.dedup_by(|next, kept| {
        let overlaps = next.0 <= kept.1;
        if overlaps {
            kept.1 = kept.1.max(next.1);
        }
        overlaps
    });
}

fn within<A: Ord + Copy>(ranges: &[(A, A)], address: A) -> bool {
    let after = ranges.partition_point(|(first, _)| *first <= address);
    after.checked_sub(1).is_some_and(|at| address <= ranges[at].1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn set(nets: &[&str]) -> CidrSet {
        let nets: Vec<_> = nets.iter().map(|n| parse_net(n).expect("a block")).collect();
        CidrSet::new(&nets)
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn blocks_and_single_addresses_match() {
        let set = set(&["10.0.0.0/8", "192.0.2.7", "2001:db8::/32"]);
        for inside in ["10.0.0.0", "10.255.255.255", "192.0.2.7", "2001:db8::1"] {
            assert!(set.contains(ip(inside)), "{inside}");
        }
        for outside in ["9.255.255.255", "11.0.0.0", "192.0.2.8", "2001:db9::", "::a00:1"] {
            assert!(!set.contains(ip(outside)), "{outside}");
        }
        assert!(CidrSet::default().is_empty());
    }

    #[test]
    fn a_mapped_address_is_the_address_it_maps() {
        assert!(set(&["10.0.0.0/8"]).contains(ip("::ffff:10.1.2.3")));
        assert!(set(&["::ffff:10.0.0.0/104"]).contains(ip("10.1.2.3")));
        assert!(!set(&["::/0"]).contains(ip("10.1.2.3")));
    }

    #[test]
    fn processes_on_this_machine_are_in_a_set_that_says_so() {
        assert!(set(&["unix:"]).has(ConnectionPeer::Local) && !set(&["unix:"]).is_empty());
        assert!(!set(&["0.0.0.0/0", "::/0"]).has(ConnectionPeer::Local));
        let everyone = set(&["unix:", "0.0.0.0/0", "::/0"]);
        assert!(
            !everyone.has(ConnectionPeer::Unnamed(None))
                && !everyone.has(ConnectionPeer::Unnamed(Some(ip("::1"))))
        );
    }

    #[test]
    fn what_is_no_block_is_refused() {
        for text in ["", "10.0.0.0/33", "10.0.0", "localhost", "10.0.0.0/8 "] {
            assert!(parse_net(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn membership_is_that_of_any_block(
            nets in prop::collection::vec((any::<u32>(), 0u8..=32), 0..30),
            probes in prop::collection::vec(any::<u32>(), 0..30),
        ) {
            let nets: Vec<IpNet> = nets
                .into_iter()
                .map(|(a, len)| IpNet::new(IpAddr::V4(a.into()), len).expect("a valid length"))
                .collect();
            let blocks: Vec<_> = nets.iter().copied().map(Net::Block).collect();
            let set = CidrSet::new(&blocks);
            let edges = nets.iter().flat_map(|n| [n.network(), n.broadcast()]);
            for address in probes.into_iter().map(|a| IpAddr::V4(a.into())).chain(edges) {
                prop_assert_eq!(set.contains(address), nets.iter().any(|n| n.contains(&address)));
            }
        }
    }
}
