//! Sockets of the ports that others' tools speak to, kubelets and Prometheus among them.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use config::{Config, ListenSpec};
use rustix::net::netdevice::name_to_index;
use socket2::{Domain, InterfaceIndexOrAddress, Socket, Type};

/// A port's socket, or the reason why it could not be opened.
pub(crate) type Bound = (SocketAddr, io::Result<Socket>);

/// The ports, bound while the daemon may: those below 1024 are root's.
pub(crate) struct Ports {
    pub(crate) health: Vec<Bound>,
    pub(crate) metrics: Vec<Bound>,
    pub(crate) varnish_cli: Vec<Bound>,
    pub(crate) htcp: Vec<Bound>,
}

impl Ports {
    /// Binds those that the configuration names.
    pub(crate) fn open(config: &Config) -> Self {
        let bound = |addresses: &[SocketAddr], kind, interface: Option<&str>| {
            let one = |address: &SocketAddr| {
                let joined = |socket| join(&socket, *address, interface).map(|()| socket);
                (*address, bind(*address, kind).and_then(joined))
            };
            addresses.iter().map(one).collect()
        };
        let streams = |listen: Option<&ListenSpec>| {
            listen.map_or_else(Vec::new, |listen| bound(&listen.addresses, Type::STREAM, None))
        };
        let htcp = config.htcp.as_ref();
        Self {
            health: streams(config.health.listen.as_ref()),
            metrics: streams(config.metrics.as_ref().map(|metrics| &metrics.listen)),
            varnish_cli: streams(config.varnish_cli.as_ref().map(|cli| &cli.listen)),
            htcp: htcp.map_or_else(Vec::new, |htcp| {
                bound(&htcp.listen.addresses, Type::DGRAM, htcp.interface.as_deref())
            }),
        }
    }
}

/// Binds one address, and an IPv6 one for IPv6 only: `:6082` is two of them. What is a stream
/// listens.
fn bind(address: SocketAddr, kind: Type) -> io::Result<Socket> {
    /// As the standard library's.
    const BACKLOG: i32 = 128;
    let socket = Socket::new(Domain::for_address(address), kind, None)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // A group's address is every member's on this machine.
    if kind == Type::STREAM || address.ip().is_multicast() {
        socket.set_reuse_address(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    if kind == Type::STREAM {
        socket.listen(BACKLOG)?;
    }
    Ok(socket)
}

/// Joins the group that `address` is of, if it is one's: through `interface`, or else where the
/// routes say that it is.
fn join(socket: &Socket, address: SocketAddr, interface: Option<&str>) -> io::Result<()> {
    if !address.ip().is_multicast() {
        return Ok(());
    }
    let joined = || {
        let index = match interface {
            Some(name) => Some(name_to_index(socket, name)?),
            None => None,
        };
        match address.ip() {
            IpAddr::V4(group) => {
                let through = match index {
                    Some(index) => InterfaceIndexOrAddress::Index(index),
                    None => InterfaceIndexOrAddress::Address(Ipv4Addr::UNSPECIFIED),
                };
                socket.join_multicast_v4_n(&group, &through)
            }
            IpAddr::V6(group) => socket.join_multicast_v6(&group, index.unwrap_or(0)),
        }
    };
    joined().map_err(|e: io::Error| {
        let through = interface.map_or_else(String::new, |name| format!(" through {name}"));
        io::Error::new(e.kind(), format!("cannot join the multicast group{through}: {e}"))
    })
}
