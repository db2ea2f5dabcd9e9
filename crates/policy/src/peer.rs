//! Who is at the other end of a client's connection.

use std::fmt;
use std::net::IpAddr;

/// Who is at the other end of a client's connection, as far as the connection tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A host at this address.
    Host(IpAddr),
    /// Somebody behind the trusted proxy at this address, which does not say who (UNKNOWN of the
    /// PROXY protocol). What such a client says of others is never believed, and no list of
    /// addresses has it.
    Unnamed(IpAddr),
}

impl Peer {
    /// Its address, or that of the proxy in front of it.
    pub fn address(self) -> IpAddr {
        match self {
            Self::Host(address) | Self::Unnamed(address) => address,
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address().fmt(f)
    }
}
