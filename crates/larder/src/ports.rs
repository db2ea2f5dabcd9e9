//! Sockets of the ports that others' tools speak to.

use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Socket, Type};

/// Binds one address, and an IPv6 one for IPv6 only: `:6082` is two of them. What is a stream
/// listens.
pub(crate) fn bind(address: SocketAddr, kind: Type) -> io::Result<Socket> {
    /// As the standard library's.
    const BACKLOG: i32 = 128;
    let socket = Socket::new(Domain::for_address(address), kind, None)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    if kind == Type::STREAM {
        socket.set_reuse_address(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    if kind == Type::STREAM {
        socket.listen(BACKLOG)?;
    }
    Ok(socket)
}
