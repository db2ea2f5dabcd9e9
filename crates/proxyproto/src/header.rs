//! Headers of both versions.

use std::net::SocketAddr;

/// The meaning of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// The connection is the balancer's own, a health check for instance (LOCAL).
    Local,
    /// It is somebody's who has no address, or whose address is not told (UNKNOWN, AF_UNSPEC,
    /// AF_UNIX).
    Unnamed,
    /// It is somebody's at an address. Addresses are canonical: no IPv4 address is written as IPv6.
    Proxied {
        /// Address of the client that connected to the balancer.
        source: SocketAddr,
        /// Address that the client connected to.
        destination: SocketAddr,
    },
}

/// The progress of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderProgress {
    /// More is needed.
    Partial,
    /// A whole header, and how many bytes it is long.
    Complete(Header, usize),
}

/// Tells whether one of the two begins with the other.
pub(crate) fn agree(bytes: &[u8], with: &[u8]) -> bool {
    bytes.iter().zip(with).all(|(a, b)| a == b)
}

/// The address that an IPv6 address stands for, when it maps an IPv4 one.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
