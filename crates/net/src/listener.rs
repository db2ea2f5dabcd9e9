//! Listening sockets: bound for every core, or one that the cores share.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use socket2::{Domain, Protocol, SockAddr, SockFilter, SockRef, Socket, Type};
use tokio::net::{TcpListener, UnixListener};

use crate::address_lock::{self, BACKLOG, Sharing};
use crate::client_socket::ClientSocket;

/// A packet filter (classic BPF) that drops what has SYN and not ACK: the first packets of
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

/// A listening socket that somebody else has opened and keeps open, as a service manager does.
#[derive(Debug)]
pub enum InheritedSocket {
    /// Of TCP.
    Tcp(std::net::TcpListener),
    /// A unix socket.
    Unix(std::os::unix::net::UnixListener),
}

impl InheritedSocket {
    /// One more handle of it. Asking for the same address with `SO_REUSEPORT` instead would divide
    /// connections between the new socket and the given one, which stays open.
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

/// Where to listen.
#[derive(Clone, Debug)]
pub enum ListenAddress {
    /// An address; port 0 takes a free one.
    Address(SocketAddr),
    /// A unix socket, and the permissions of its file.
    Path(PathBuf, u32),
    /// A socket that is there already.
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

/// A bound socket, before its core has taken it over. Nobody can connect before it listens.
#[derive(Debug)]
pub(crate) enum BoundSocket {
    Tcp(std::net::TcpListener),
    Unix(std::os::unix::net::UnixListener),
}

impl BoundSocket {
    /// Claims its address. Unix sockets and given ones need no claim: nobody else can have them.
    pub(crate) fn claim(&self) -> io::Result<()> {
        match self {
            Self::Tcp(socket) => address_lock::claim(socket),
            Self::Unix(_) => Ok(()),
        }
    }

    /// Has it listen. A given one does already, and is told again.
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
    /// Somebody else has it too, and keeps it open.
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

    /// Tells whether the file is still there, and no other in its place.
    pub(crate) fn is_there(&self) -> bool {
        let is_own =
            |meta: std::fs::Metadata| (meta.dev(), meta.ino()) == (self.device, self.inode);
        std::fs::symlink_metadata(&self.path).is_ok_and(is_own)
    }

    /// Removes it, unless another has taken its place.
    pub(crate) fn remove(&self) {
        if self.is_there() {
            _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Binds `at` for so many cores. Of an address each core gets a socket of its own
/// (`SO_REUSEPORT`), and the kernel spreads connections over them; unix sockets know nothing of the
/// kind, so the cores share one, and whoever is free first accepts. So they do with a given one.
pub(crate) fn bind(
    at: &mut ListenAddress,
    cores: usize,
) -> io::Result<(Vec<BoundSocket>, Option<SocketFile>)> {
    let mut bound = Vec::with_capacity(cores);
    match at {
        ListenAddress::Address(address) => {
            for _ in 0..cores {
                let listener = bind_address(*address, Sharing::Wanted)?;
                *address = listener.local_addr()?;
                bound.push(BoundSocket::Tcp(listener));
            }
            Ok((bound, None))
        }
        ListenAddress::Path(path, mode) => {
            let listener = bind_path(path, *mode)?;
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

/// Looks whether somebody listens on `address` already.
///
/// # Errors
/// [`io::ErrorKind::AddrInUse`] if so.
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
    // Accepted connections inherit this: no call per connection.
    socket.set_tcp_nodelay(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

fn bind_path(path: &Path, mode: u32) -> io::Result<std::os::unix::net::UnixListener> {
    if let Ok(meta) = std::fs::symlink_metadata(path) {
        use std::os::unix::fs::FileTypeExt;
        if !meta.file_type().is_socket() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "a file is there already"));
        }
        // A socket that nobody answers on was left behind by a daemon that did not end well.
        match UnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                std::fs::remove_file(path)?;
            }
            _ => return Err(io::Error::new(io::ErrorKind::AddrInUse, "somebody listens there")),
        }
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::unix(path)?)?;
    // Before it listens nobody can connect, whatever the file's permissions are.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    // At once: one that does not answer yet would be taken for one that was left behind.
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

    /// Has the kernel ignore whoever only now begins to connect, but let those finish who have
    /// begun. A client that is ignored tries again a second later, and then finds the listener of
    /// another process on the same port, or none. Were this one closed at once instead, everybody
    /// in the middle of connecting would be reset.
    /// False where that cannot be: then those few are reset, as with every other server.
    pub(crate) fn turn_away(&self) -> bool {
        match &self.socket {
            // A given one goes on without us, with whatever is done to it here.
            ListenerSocket::Tcp(listener) if !self.given => {
                SockRef::from(listener).attach_filter(&NO_SYN).is_ok()
            }
            _ => false,
        }
    }

    /// Closes it, once every connection that is queued was handed to `admit`. Those of a given one
    /// wait for whoever gets it next.
    pub(crate) fn close(self, mut admit: impl FnMut(ClientSocket, Option<SocketAddr>)) {
        // Asked directly: of connections that have just come the runtime does not know yet.
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

    /// The next connection, and the address it comes from; none over a unix socket.
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
