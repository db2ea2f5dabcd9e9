//! Ports: the sockets for operators and their tools: `[admin]`, Varnish's CLI, HTCP, health and
//! metrics.
//!
//! A port that cannot be opened, as when another process holds it, is logged, counted as missing,
//! and tried again. Sockets of a former process are taken over.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use config::{Config, ListenSpec};
use parking_lot::Mutex;
use rt::time::timeout;
use rustix::net::netdevice::name_to_index;
use socket2::{Domain, InterfaceIndexOrAddress, Socket, Type};
use tokio::sync::Notify;

use crate::address_holders;

/// The pause before the second attempt; each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// A port: its address, and its socket or the reason why it has none.
pub(crate) struct Port {
    /// The name, as in `Varnish CLI listening on 127.0.0.1:6082`.
    what: &'static str,
    address: SocketAddr,
    kind: Type,
    /// The network interface of a multicast group.
    interface: Option<String>,
    socket: io::Result<Socket>,
}

/// The ports, bound while the daemon may: ports below 1024 are root's.
pub(crate) struct Ports {
    pub(crate) admin: Vec<Port>,
    pub(crate) health: Vec<Port>,
    pub(crate) metrics: Vec<Port>,
    pub(crate) varnish_cli: Vec<Port>,
    pub(crate) htcp: Vec<Port>,
}

impl Ports {
    /// Binds the configured ports, or takes them out of `inherited`.
    pub(crate) fn open(config: &Config, inherited: &mut Vec<PortSocket>) -> Self {
        let mut streams = |what, listen: Option<&ListenSpec>| {
            let addresses = listen.iter().flat_map(|listen| &listen.addresses);
            let mut open = |at: &SocketAddr| Port::open(what, *at, Type::STREAM, None, inherited);
            addresses.map(&mut open).collect()
        };
        let metrics = config.metrics.as_ref();
        let is_secure = metrics.is_some_and(|metrics| metrics.listen.tls);
        let metrics_name = if is_secure { "metrics (TLS)" } else { "metrics" };
        let admin = streams("admin", config.admin.listen.as_ref());
        let health = streams("health", config.health.listen.as_ref());
        let metrics = streams(metrics_name, metrics.map(|metrics| &metrics.listen));
        let cli = config.varnish_cli.as_ref().map(|cli| &cli.listen);
        let varnish_cli = streams("Varnish CLI", cli);
        let htcp = config.htcp.iter().flat_map(|htcp| {
            let interface = htcp.interface.as_deref();
            htcp.listen.addresses.iter().map(move |at| (*at, interface))
        });
        let mut open = |(at, interface)| Port::open("HTCP", at, Type::DGRAM, interface, inherited);
        let htcp = htcp.map(&mut open).collect();
        Self { admin, health, metrics, varnish_cli, htcp }
    }
}

/// An open port's socket, which one process hands to the next.
#[derive(Debug)]
pub(crate) struct PortSocket {
    /// The port's name, and its address in the configuration.
    pub(crate) name: String,
    pub(crate) socket: OwnedFd,
}

impl Port {
    fn open(
        what: &'static str,
        address: SocketAddr,
        kind: Type,
        interface: Option<&str>,
        inherited: &mut Vec<PortSocket>,
    ) -> Self {
        let interface = interface.map(str::to_owned);
        let name = named(what, address);
        let taken = inherited.iter().position(|own| own.name == name);
        let socket = match taken.map(|at| inherited.remove(at)) {
            Some(own) => Ok(Socket::from(own.socket)),
            None => bind(address, kind, interface.as_deref()),
        };
        Self { what, address, kind, interface, socket }
    }

    /// The address; with a socket, the one that the kernel assigned.
    pub(crate) fn address(&self) -> SocketAddr {
        let bound = self.socket.as_ref().ok().and_then(|socket| socket.local_addr().ok());
        bound.and_then(|bound| bound.as_socket()).unwrap_or(self.address)
    }

    /// Calls `begin` with the socket as soon as the port is open: at once, or when its holder is
    /// gone. Call within the helper runtime.
    pub(crate) fn hold(
        mut self,
        registry: &Arc<PortRegistry>,
        begin: impl FnOnce(Socket) -> io::Result<()> + Send + 'static,
    ) {
        let Some(lack) = self.missing_reason() else {
            return self.begin(registry, begin);
        };
        let (what, address) = (self.what, self.address);
        base::tell!(
            Error,
            "larder: {lack}\n  = help: the daemon retries until the port is free, and at each \
             reload"
        );
        registry.set(what, address, Some(lack));
        let registry = Arc::clone(registry);
        rt::spawn(async move {
            let mut pause = FIRST_PAUSE;
            while let Some(lack) = self.missing_reason() {
                registry.set(what, address, Some(lack));
                registry.wait(pause).await;
                if registry.is_left.load(Ordering::Relaxed) {
                    return;
                }
                pause = LONGEST_PAUSE.min(pause * 2);
                self.socket = bind(address, self.kind, self.interface.as_deref());
            }
            registry.set(what, address, None);
            self.begin(&registry, begin);
        });
    }

    /// The reason why it has no socket, and the holders of its address; `None` if it has one.
    fn missing_reason(&self) -> Option<Lack> {
        let error = self.socket.as_ref().err()?;
        let is_busy = error.kind() == io::ErrorKind::AddrInUse && self.kind == Type::STREAM;
        let holder = if is_busy { address_holders::of(self.address).named } else { None };
        let holder = holder.map_or_else(String::new, |who| format!(": {who} listens there"));
        Some(Lack { what: self.what, address: self.address, why: format!("{error}{holder}") })
    }

    fn begin(self, registry: &PortRegistry, begin: impl FnOnce(Socket) -> io::Result<()>) {
        let (what, address) = (self.what, self.address());
        let name = named(what, self.address);
        let begun = self.socket.and_then(|socket| {
            let socket_for_next = socket.try_clone()?.into();
            begin(socket).map(|()| PortSocket { name, socket: socket_for_next })
        });
        match begun {
            Ok(open) => {
                registry.open.lock().push(open);
                base::tell!(Info, "larder: {what} listening on {address}");
            }
            Err(error) => {
                let lack = Lack { what, address, why: error.to_string() };
                base::tell!(Error, "larder: {lack}");
                registry.set(what, address, Some(lack));
            }
        }
    }
}

/// The reason why a port is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Lack {
    what: &'static str,
    address: SocketAddr,
    why: String,
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot listen on {}: {}", self.what, self.address, self.why)
    }
}

/// The name of a port for the next process.
fn named(what: &str, address: SocketAddr) -> String {
    format!("{what} {address}")
}

/// The configured ports: those that are missing, and duplicates of the sockets of others.
#[derive(Debug, Default)]
pub(crate) struct PortRegistry {
    ports: Mutex<Vec<Lack>>,
    again: Notify,
    open: Mutex<Vec<PortSocket>>,
    /// Another process has the ports now.
    is_left: AtomicBool,
}

impl PortRegistry {
    fn set(&self, what: &str, address: SocketAddr, lack: Option<Lack>) {
        let mut ports = self.ports.lock();
        ports.retain(|other| (other.what, other.address) != (what, address));
        ports.extend(lack);
    }

    async fn wait(&self, longest: Duration) {
        // An early attempt is harmless.
        _ = timeout(longest, self.again.notified()).await;
    }

    /// Calls `show` with duplicates of the sockets of open ports.
    pub(crate) fn with_open<T>(&self, show: impl FnOnce(&[PortSocket]) -> T) -> T {
        show(&self.open.lock())
    }

    /// Closes the duplicates, since another process has the ports now.
    pub(crate) fn leave(&self) {
        self.is_left.store(true, Ordering::Relaxed);
        self.open.lock().clear();
    }

    /// Starts an attempt for each missing port now.
    pub(crate) fn try_again(&self) {
        self.again.notify_waiters();
    }

    /// The number of missing ports.
    pub(crate) fn count(&self) -> usize {
        self.ports.lock().len()
    }

    /// Returns true if `address` is missing.
    pub(crate) fn has(&self, address: SocketAddr) -> bool {
        self.ports.lock().iter().any(|lack| lack.address == address)
    }

    /// The reasons, one for each port.
    pub(crate) fn reasons(&self) -> Vec<String> {
        self.ports.lock().iter().map(Lack::to_string).collect()
    }
}

/// Binds one address, and an IPv6 one for IPv6 only: `:6082` is two addresses. A stream socket
/// listens, and a socket of a multicast group joins it.
fn bind(address: SocketAddr, kind: Type, interface: Option<&str>) -> io::Result<Socket> {
    /// As in the standard library.
    const BACKLOG: i32 = 128;
    let socket = Socket::new(Domain::for_address(address), kind, None)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // All processes of the machine may share a group's address.
    if kind == Type::STREAM || address.ip().is_multicast() {
        socket.set_reuse_address(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    if kind == Type::STREAM {
        socket.listen(BACKLOG)?;
    }
    join(&socket, address, interface)?;
    Ok(socket)
}

/// Joins the multicast group `address`, if it is one: through `interface`, or else through the
/// routed one.
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
