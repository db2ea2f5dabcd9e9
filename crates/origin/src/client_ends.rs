//! Client ends: the two addresses of a client's connection.

use std::net::SocketAddr;

/// The addresses of a client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientEnds {
    /// The client's address.
    pub client: SocketAddr,
    /// The address that it connected to.
    pub own: SocketAddr,
}
