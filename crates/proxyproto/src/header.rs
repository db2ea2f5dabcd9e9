//! Header of either version, after parsing.

use std::net::SocketAddr;

/// The content of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// The connection is the balancer's own, such as a health check (LOCAL).
    Local,
    /// The client has no address, or it is not reported (UNKNOWN, AF_UNSPEC, AF_UNIX).
    Unnamed,
    /// The client has an address. Addresses are canonical: an IPv4 address is never written as
    /// IPv6.
    Proxied {
        /// Address of the client that connected to the balancer.
        source: SocketAddr,
        /// Address that the client connected to.
        destination: SocketAddr,
    },
}

/// The progress of reading a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderProgress {
    /// More bytes are needed.
    Partial,
    /// A complete header, and its length.
    Complete(Header, usize),
}

/// Returns true if one of the two is a prefix of the other.
pub(crate) fn agree(bytes: &[u8], with: &[u8]) -> bool {
    bytes.iter().zip(with).all(|(a, b)| a == b)
}

/// The canonical form of an address: an IPv4-mapped IPv6 address becomes IPv4.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
