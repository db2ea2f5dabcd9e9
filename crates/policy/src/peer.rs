//! The other end of a client's connection.

use std::fmt;
use std::net::IpAddr;

/// The other end of a client's connection, as far as the connection tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionPeer {
    /// A host at this address.
    Host(IpAddr),
    /// A process on this machine, over a unix socket.
    Local,
    /// Somebody behind the trusted proxy at this address, if it has one, which does not say who
    /// (UNKNOWN of the PROXY protocol). What such a client says of others is never believed, and no
    /// list of addresses has it.
    Unnamed(Option<IpAddr>),
}

impl ConnectionPeer {
    /// Its address, or that of the proxy in front of it; none over unix sockets.
    pub fn address(self) -> Option<IpAddr> {
        match self {
            Self::Host(address) => Some(address),
            Self::Local => None,
            Self::Unnamed(address) => address,
        }
    }
}

impl fmt::Display for ConnectionPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address() {
            Some(address) => address.fmt(f),
            // As nginx has it.
            None => f.write_str("unix:"),
        }
    }
}
