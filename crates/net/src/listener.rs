//! Listeners: sockets bound for every core, or one that the cores share.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use socket2::{Domain, Protocol, SockAddr, SockFilter, SockRef, Socket, Type};
use tokio::net::{TcpListener, UnixListener};

use crate::address_lock::{self, BACKLOG, Sharing};
use crate::client_socket::ClientSocket;

/// A packet filter (classic BPF) that drops packets with SYN and without ACK: the first packets of
/// connections, and no others.
const NO_SYN: [SockFilter; 5] = [
    // The byte of flags, 13 bytes into the TCP header, where a filter of a TCP socket begins.
    SockFilter::new(LOAD_BYTE, 0, 0, 13),
    SockFilter::new(AND, 0, 0, ACK | SYN),
    SockFilter::new(JUMP_IF_EQUAL, 0, 1, SYN),
    SockFilter::new(RETURN, 0, 0, 0),
    SockFilter::new(RETURN, 0, 0, u32::MAX),
];
const SYN: u32 = 0x02;
const ACK: u32 = 0x10;
/// BPF_LD | BPF_B | BPF_ABS
const LOAD_BYTE: u16 = 0x30;
/// BPF_ALU | BPF_AND | BPF_K
const AND: u16 = 0x54;
/// BPF_JMP | BPF_JEQ | BPF_K
const JUMP_IF_EQUAL: u16 = 0x15;
/// BPF_RET | BPF_K
const RETURN: u16 = 0x06;

/// A listening socket that another process, such as a service manager, has opened and keeps open.
#[derive(Debug)]
pub enum InheritedSocket {
    /// A TCP socket.
    Tcp(std::net::TcpListener),
    /// A unix socket.
    Unix(std::os::unix::net::UnixListener),
}

impl InheritedSocket {
    /// A duplicate of the socket. A second socket on its address by `SO_REUSEPORT` would get only a
    /// part of the connections, since the inherited one stays open.
    fn bound(&self) -> io::Result<BoundSocket> {
        match self {
            Self::Tcp(listener) => {
                listener.set_nonblocking(true)?;
                SockRef::from(listener).set_tcp_nodelay(true)?;
                Ok(BoundSocket::Tcp(listener.try_clone()?))
            }
            Self::Unix(listener) => {
                listener.set_nonblocking(true)?;
                Ok(BoundSocket::Unix(listener.try_clone()?))
            }
        }
    }
}

/// The address of a listener.
#[derive(Clone, Debug)]
pub enum ListenAddress {
    /// A socket address; port 0 takes a free one.
    Address(SocketAddr),
    /// A unix socket, and the permissions of its file.
    Path(PathBuf, u32),
    /// A socket that exists already.
    Given(Arc<InheritedSocket>),
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Path(path, _) => write!(f, "unix:{}", path.display()),
            Self::Given(given) => match &**given {
                InheritedSocket::Tcp(listener) => match listener.local_addr() {
                    Ok(address) => address.fmt(f),
                    Err(error) => write!(f, "unknown: {error}"),
                },
                InheritedSocket::Unix(listener) => {
                    let address = listener.local_addr();
                    let path = address.as_ref().ok().and_then(|address| address.as_pathname());
                    write!(f, "unix:{}", path.unwrap_or_else(|| Path::new("")).display())
                }
            },
        }
    }
}

/// A bound socket, before its core has taken it over. No client can connect before it listens.
#[derive(Debug)]
pub(crate) enum BoundSocket {
    Tcp(std::net::TcpListener),
    Unix(std::os::unix::net::UnixListener),
}

impl BoundSocket {
    /// Locks its address. Unix sockets and inherited ones need no lock, since their addresses
    /// cannot be shared.
    pub(crate) fn claim(&self) -> io::Result<()> {
        match self {
            Self::Tcp(socket) => address_lock::claim(socket),
            Self::Unix(_) => Ok(()),
        }
    }

    /// A duplicate of the socket.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(crate) fn duplicate(&self) -> io::Result<OwnedFd> {
        Ok(match self {
            Self::Tcp(socket) => socket.try_clone()?.into(),
            Self::Unix(socket) => socket.try_clone()?.into(),
        })
    }

    /// Starts to listen. An inherited socket listens already; the call has no effect on it.
    pub(crate) fn listen(&self) -> io::Result<()> {
        match self {
            Self::Tcp(socket) => SockRef::from(socket).listen(BACKLOG),
            Self::Unix(socket) => SockRef::from(socket).listen(BACKLOG),
        }
    }
}

/// A listening socket on its core.
pub(crate) struct Listener {
    socket: ListenerSocket,
    /// Another process keeps the socket open, too.
    given: bool,
}

enum ListenerSocket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// The file of a unix socket that was bound here.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl SocketFile {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if the file still exists, and was not replaced.
    pub(crate) fn is_there(&self) -> bool {
        let is_own =
            |meta: std::fs::Metadata| (meta.dev(), meta.ino()) == (self.device, self.inode);
        std::fs::symlink_metadata(&self.path).is_ok_and(is_own)
    }

    /// Removes the file, unless it was replaced.
    pub(crate) fn remove(&self) {
        if self.is_there() {
            _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Binds `at` for a number of cores. Each core gets its own socket of an address (`SO_REUSEPORT`),
/// and the kernel spreads connections over them. Unix sockets and those of a service manager are
/// shared: the first free core accepts. Sockets `taken` over from a former process come first; of
/// an address there may be more of them than cores.
pub(crate) fn bind(
    at: &mut ListenAddress,
    cores: usize,
    taken: Vec<OwnedFd>,
) -> io::Result<(Vec<BoundSocket>, Option<SocketFile>)> {
    let mut bound = Vec::with_capacity(cores);
    match at {
        ListenAddress::Address(address) => {
            for socket in taken {
                let listener = std::net::TcpListener::from(socket);
                *address = listener.local_addr()?;
                bound.push(BoundSocket::Tcp(listener));
            }
            for _ in bound.len()..cores {
                let listener = bind_address(*address, Sharing::Wanted)?;
                *address = listener.local_addr()?;
                bound.push(BoundSocket::Tcp(listener));
            }
            Ok((bound, None))
        }
        ListenAddress::Path(path, mode) => {
            let listener = match taken.into_iter().next() {
                Some(socket) => socket.into(),
                None => bind_path(path, *mode)?,
            };
            let meta = std::fs::symlink_metadata(&*path)?;
            let file = SocketFile { path: path.clone(), device: meta.dev(), inode: meta.ino() };
            for _ in 0..cores {
                bound.push(BoundSocket::Unix(listener.try_clone()?));
            }
            Ok((bound, Some(file)))
        }
        ListenAddress::Given(given) => {
            for _ in 0..cores {
                bound.push(given.bound()?);
            }
            Ok((bound, None))
        }
    }
}

/// Checks that no other process listens on `address`.
///
/// # Errors
/// [`io::ErrorKind::AddrInUse`] if one does.
pub(crate) fn probe(address: SocketAddr) -> io::Result<()> {
    if address.port() == 0 {
        return Ok(());
    }
    bind_address(address, Sharing::Refused).map(drop)
}

pub(crate) fn bind_address(
    address: SocketAddr,
    sharing: Sharing,
) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(sharing == Sharing::Wanted)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // Accepted connections inherit this option, which saves a call per connection.
    socket.set_tcp_nodelay(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

fn bind_path(path: &Path, mode: u32) -> io::Result<std::os::unix::net::UnixListener> {
    if let Ok(meta) = std::fs::symlink_metadata(path) {
        use std::os::unix::fs::FileTypeExt;
        if !meta.file_type().is_socket() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the file already exists"));
        }
        // A socket that refuses connections was left behind by a daemon that crashed.
        match UnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                std::fs::remove_file(path)?;
            }
            _ => {
                return Err(io::Error::new(
                    io::ErrorKind::AddrInUse,
                    "another process listens on the socket",
                ));
            }
        }
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::unix(path)?)?;
    // Clients cannot connect before it listens, whatever the file's permissions are.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    // Listens at once: a socket that refuses connections would be taken for one left behind.
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

impl Listener {
    /// Takes the socket over. Call it on the core's own runtime.
    pub(crate) fn new(bound: BoundSocket, at: &ListenAddress) -> io::Result<Self> {
        let socket = match bound {
            BoundSocket::Tcp(listener) => ListenerSocket::Tcp(TcpListener::from_std(listener)?),
            BoundSocket::Unix(listener) => ListenerSocket::Unix(UnixListener::from_std(listener)?),
        };
        Ok(Self { socket, given: matches!(at, ListenAddress::Given(_)) })
    }

    /// Drops the first packets of new connections, while handshakes under way finish. A dropped
    /// client retries a second later, and then reaches another process on the port, or none.
    /// Closing the listener at once would reset every client in the middle of its handshake. False
    /// if the filter cannot be set; those clients are reset then, as by other servers.
    pub(crate) fn turn_away(&self) -> bool {
        match &self.socket {
            // An inherited socket continues without this process, so nothing may be changed on it.
            ListenerSocket::Tcp(listener) if !self.given => {
                SockRef::from(listener).attach_filter(&NO_SYN).is_ok()
            }
            _ => false,
        }
    }

    /// Leaves the socket, with its queued connections, to another process that has it, too.
    pub(crate) fn leave(self) -> Self {
        Self { given: true, ..self }
    }

    /// Closes it after each queued connection was passed to `admit`. Connections queued on an
    /// inherited socket are left to its next owner.
    pub(crate) fn close(self, mut admit: impl FnMut(ClientSocket, Option<SocketAddr>)) {
        // A direct accept: the runtime does not know connections that have just arrived.
        match self.socket {
            _ if self.given => {}
            ListenerSocket::Tcp(listener) => {
                let Ok(listener) = listener.into_std() else { return };
                while let Ok((stream, remote)) = listener.accept() {
                    let stream = stream
                        .set_nonblocking(true)
                        .and_then(|()| tokio::net::TcpStream::from_std(stream));
                    _ = stream.map(|stream| admit(ClientSocket::from(stream), Some(remote)));
                }
            }
            ListenerSocket::Unix(listener) => {
                let Ok(listener) = listener.into_std() else { return };
                while let Ok((stream, _)) = listener.accept() {
                    let stream = stream
                        .set_nonblocking(true)
                        .and_then(|()| tokio::net::UnixStream::from_std(stream));
                    _ = stream.map(|stream| admit(ClientSocket::from(stream), None));
                }
            }
        }
    }

    /// Accepts the next connection; its address is `None` over a unix socket.
    pub(crate) async fn accept(&self) -> io::Result<(ClientSocket, Option<SocketAddr>)> {
        match &self.socket {
            ListenerSocket::Tcp(listener) => {
                let (stream, remote) = listener.accept().await?;
                Ok((ClientSocket::from(stream), Some(remote)))
            }
            ListenerSocket::Unix(listener) => Ok((listener.accept().await?.0.into(), None)),
        }
    }
}
