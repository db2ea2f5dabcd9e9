//! Peer of a client's connection.

use std::fmt;
use std::net::IpAddr;

/// The peer of a client's connection, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionPeer {
    /// A host at this address.
    Host(IpAddr),
    /// A process on this machine, over a unix socket.
    Local,
    /// An unnamed client of the trusted proxy at this address, if it has one (UNKNOWN in the PROXY
    /// protocol). Forwarding fields of such a client are never trusted, and it is in no list of
    /// addresses.
    Unnamed(Option<IpAddr>),
}

impl ConnectionPeer {
    /// Its address, or that of its proxy; `None` for unix sockets.
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
            // As in nginx.
            None => f.write_str("unix:"),
        }
    }
}
