//! Client socket: the TCP or unix socket that carries a client's bytes.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use flow::vcl::Owner;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use crate::pace::SocketPace;

/// A connected socket.
pub(crate) struct ClientSocket {
    socket: ClientSocketKind,
    /// The rate at which a program lets the socket send.
    pace: Option<Rc<SocketPace>>,
}

enum ClientSocketKind {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl From<TcpStream> for ClientSocket {
    fn from(tcp: TcpStream) -> Self {
        Self { socket: ClientSocketKind::Tcp(tcp), pace: None }
    }
}

impl From<UnixStream> for ClientSocket {
    fn from(unix: UnixStream) -> Self {
        Self { socket: ClientSocketKind::Unix(unix), pace: None }
    }
}

impl AsFd for ClientSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            ClientSocketKind::Tcp(tcp) => tcp.as_fd(),
            ClientSocketKind::Unix(unix) => unix.as_fd(),
        }
    }
}

impl ClientSocket {
    /// The local address; `None` for a unix socket.
    pub(crate) fn local_addr(&self) -> Option<SocketAddr> {
        match &self.socket {
            ClientSocketKind::Tcp(tcp) => tcp.local_addr().ok(),
            ClientSocketKind::Unix(_) => None,
        }
    }

    /// The owner of the peer process of a unix socket.
    pub(crate) fn owner(&self) -> Option<Owner> {
        match &self.socket {
            ClientSocketKind::Tcp(_) => None,
            ClientSocketKind::Unix(unix) => {
                let cred = unix.peer_cred().ok()?;
                Some(Owner { uid: cred.uid(), gid: cred.gid() })
            }
        }
    }

    /// A second descriptor of the socket.
    ///
    /// # Errors
    /// The system's: no descriptor is left.
    pub(crate) fn duplicate(&self) -> io::Result<OwnedFd> {
        match &self.socket {
            ClientSocketKind::Tcp(tcp) => tcp.as_fd().try_clone_to_owned(),
            ClientSocketKind::Unix(unix) => unix.as_fd().try_clone_to_owned(),
        }
    }

    /// Limits the send rate to `pace`.
    pub(crate) fn keep_pace(&mut self, pace: Rc<SocketPace>) {
        self.pace = Some(pace);
    }

    /// The TCP socket, for callers that write to it directly; `None` if its rate is limited.
    pub(crate) fn tcp(&self) -> Option<&TcpStream> {
        match &self.socket {
            ClientSocketKind::Tcp(tcp) if self.pace.is_none() => Some(tcp),
            _ => None,
        }
    }

    /// Charges written bytes to the pace.
    fn wrote(&self, wrote: io::Result<usize>) -> io::Result<usize> {
        if let (Some(pace), Ok(bytes)) = (&self.pace, &wrote) {
            pace.sent(*bytes);
        }
        wrote
    }

    /// Lets the connection end with a reset. A unix socket has no reset: the client recognises a
    /// truncated reply by its framing alone.
    pub(crate) fn reset_at_end(&self) {
        if let ClientSocketKind::Tcp(tcp) = &self.socket {
            _ = tcp.set_zero_linger();
        }
    }

    /// Limits the unsent bytes in the kernel's send buffer to `bytes`.
    pub(crate) fn hold_unsent(&self, bytes: u32) {
        if let ClientSocketKind::Tcp(tcp) = &self.socket {
            // Without the limit, urgent bytes only wait longer.
            _ = SockRef::from(tcp).set_tcp_notsent_lowat(bytes);
        }
    }

    /// Writes what the socket takes without blocking.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.wrote(match &self.socket {
            ClientSocketKind::Tcp(tcp) => tcp.try_write(bytes),
            ClientSocketKind::Unix(unix) => unix.try_write(bytes),
        })
    }

    /// Writes what the socket takes without blocking.
    pub(crate) fn try_write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.wrote(match &self.socket {
            ClientSocketKind::Tcp(tcp) => tcp.try_write_vectored(slices),
            ClientSocketKind::Unix(unix) => unix.try_write_vectored(slices),
        })
    }
}

impl AsyncRead for ClientSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.get_mut().socket {
            ClientSocketKind::Tcp(tcp) => Pin::new(tcp).poll_read(cx, buf),
            ClientSocketKind::Unix(unix) => Pin::new(unix).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for ClientSocket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let bytes = match &this.pace {
            None => bytes,
            Some(pace) => &bytes[..ready!(pace.poll_allowed(cx, bytes.len()))],
        };
        let written = match &mut this.socket {
            ClientSocketKind::Tcp(tcp) => Pin::new(tcp).poll_write(cx, bytes),
            ClientSocketKind::Unix(unix) => Pin::new(unix).poll_write(cx, bytes),
        };
        written.map(|wrote| this.wrote(wrote))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.pace.is_some() {
            // Slice by slice: the pace may end within one.
            let first = slices.iter().find(|slice| !slice.is_empty());
            return self.poll_write(cx, first.map_or(&[], |slice| slice));
        }
        match &mut self.get_mut().socket {
            ClientSocketKind::Tcp(tcp) => Pin::new(tcp).poll_write_vectored(cx, slices),
            ClientSocketKind::Unix(unix) => Pin::new(unix).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().socket {
            ClientSocketKind::Tcp(tcp) => Pin::new(tcp).poll_shutdown(cx),
            ClientSocketKind::Unix(unix) => Pin::new(unix).poll_shutdown(cx),
        }
    }
}
