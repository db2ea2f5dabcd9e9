//! Ports: the sockets for operators and their tools: `[admin]`, Varnish's CLI, HTCP, health and
//! metrics.
//!
//! A port that cannot be opened, as when another process holds it, is logged, counted as missing,
//! and tried again.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
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
    /// Binds the configured ports.
    pub(crate) fn open(config: &Config) -> Self {
        let streams = |what, listen: Option<&ListenSpec>| {
            let addresses = listen.iter().flat_map(|listen| &listen.addresses);
            addresses.map(|address| Port::open(what, *address, Type::STREAM, None)).collect()
        };
        let htcp = config.htcp.iter().flat_map(|htcp| {
            let interface = htcp.interface.as_deref();
            let open = move |at: &SocketAddr| Port::open("HTCP", *at, Type::DGRAM, interface);
            htcp.listen.addresses.iter().map(open)
        });
        let metrics = config.metrics.as_ref();
        let is_secure = metrics.is_some_and(|metrics| metrics.listen.tls);
        let metrics_name = if is_secure { "metrics (TLS)" } else { "metrics" };
        Self {
            admin: streams("admin", config.admin.listen.as_ref()),
            health: streams("health", config.health.listen.as_ref()),
            metrics: streams(metrics_name, metrics.map(|metrics| &metrics.listen)),
            varnish_cli: streams("Varnish CLI", config.varnish_cli.as_ref().map(|cli| &cli.listen)),
            htcp: htcp.collect(),
        }
    }
}

impl Port {
    fn open(what: &'static str, address: SocketAddr, kind: Type, interface: Option<&str>) -> Self {
        let interface = interface.map(str::to_owned);
        let socket = bind(address, kind, interface.as_deref());
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
        missing: &Arc<MissingPorts>,
        begin: impl FnOnce(Socket) -> io::Result<()> + Send + 'static,
    ) {
        let Some(lack) = self.missing_reason() else {
            return self.begin(missing, begin);
        };
        let (what, address) = (self.what, self.address);
        base::tell!(
            Error,
            "larder: {lack}\n  = help: the daemon retries until the port is free, and at each \
             reload"
        );
        missing.set(what, address, Some(lack));
        let missing = Arc::clone(missing);
        rt::spawn(async move {
            let mut pause = FIRST_PAUSE;
            while let Some(lack) = self.missing_reason() {
                missing.set(what, address, Some(lack));
                missing.wait(pause).await;
                pause = LONGEST_PAUSE.min(pause * 2);
                self.socket = bind(address, self.kind, self.interface.as_deref());
            }
            missing.set(what, address, None);
            self.begin(&missing, begin);
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

    fn begin(self, missing: &MissingPorts, begin: impl FnOnce(Socket) -> io::Result<()>) {
        let (what, address) = (self.what, self.address());
        match self.socket.and_then(begin) {
            Ok(()) => base::tell!(Info, "larder: {what} listening on {address}"),
            Err(error) => {
                let lack = Lack { what, address, why: error.to_string() };
                base::tell!(Error, "larder: {lack}");
                missing.set(what, address, Some(lack));
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

/// The configured ports that are missing.
#[derive(Debug, Default)]
pub(crate) struct MissingPorts {
    ports: Mutex<Vec<Lack>>,
    again: Notify,
}

impl MissingPorts {
    fn set(&self, what: &str, address: SocketAddr, lack: Option<Lack>) {
        let mut ports = self.ports.lock();
        ports.retain(|other| (other.what, other.address) != (what, address));
        ports.extend(lack);
    }

    async fn wait(&self, longest: Duration) {
        // An early attempt is harmless.
        _ = timeout(longest, self.again.notified()).await;
    }

    /// Starts an attempt for each of them now.
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
