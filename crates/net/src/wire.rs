//! The socket that carries a client's bytes: TCP, or a unix socket.

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

use crate::pace::Pace;

/// A connected socket.
pub(crate) struct Wire {
    socket: WireSocket,
    /// The pace at which it sends, where a program may set one.
    pace: Option<Rc<Pace>>,
}

enum WireSocket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl From<TcpStream> for Wire {
    fn from(tcp: TcpStream) -> Self {
        Self { socket: WireSocket::Tcp(tcp), pace: None }
    }
}

impl From<UnixStream> for Wire {
    fn from(unix: UnixStream) -> Self {
        Self { socket: WireSocket::Unix(unix), pace: None }
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            WireSocket::Tcp(tcp) => tcp.as_fd(),
            WireSocket::Unix(unix) => unix.as_fd(),
        }
    }
}

impl Wire {
    /// This end's address; none over a unix socket.
    pub(crate) fn local_addr(&self) -> Option<SocketAddr> {
        match &self.socket {
            WireSocket::Tcp(tcp) => tcp.local_addr().ok(),
            WireSocket::Unix(_) => None,
        }
    }

    /// The owner of the process at the other end of a unix socket.
    pub(crate) fn owner(&self) -> Option<Owner> {
        match &self.socket {
            WireSocket::Tcp(_) => None,
            WireSocket::Unix(unix) => {
                let cred = unix.peer_cred().ok()?;
                Some(Owner { uid: cred.uid(), gid: cred.gid() })
            }
        }
    }

    /// A second descriptor of the same socket.
    ///
    /// # Errors
    /// The system's: none is left.
    pub(crate) fn second(&self) -> io::Result<OwnedFd> {
        match &self.socket {
            WireSocket::Tcp(tcp) => tcp.as_fd().try_clone_to_owned(),
            WireSocket::Unix(unix) => unix.as_fd().try_clone_to_owned(),
        }
    }

    /// Has it send no faster than `pace`.
    pub(crate) fn keep_pace(&mut self, pace: Rc<Pace>) {
        self.pace = Some(pace);
    }

    /// The TCP socket, for whoever writes to it by ways of its own; `None` where there is a pace to
    /// be kept.
    pub(crate) fn tcp(&self) -> Option<&TcpStream> {
        match &self.socket {
            WireSocket::Tcp(tcp) if self.pace.is_none() => Some(tcp),
            _ => None,
        }
    }

    /// Notes what has been written, whatever the pace.
    fn wrote(&self, wrote: io::Result<usize>) -> io::Result<usize> {
        if let (Some(pace), Ok(bytes)) = (&self.pace, &wrote) {
            pace.sent(*bytes);
        }
        wrote
    }

    /// Has the connection end with a reset. Unix sockets know none: there the cut answer's framing
    /// alone tells.
    pub(crate) fn reset_at_end(&self) {
        if let WireSocket::Tcp(tcp) = &self.socket {
            _ = tcp.set_zero_linger();
        }
    }

    /// Has the kernel hold no more than `bytes` that have not left yet.
    pub(crate) fn hold_unsent(&self, bytes: u32) {
        if let WireSocket::Tcp(tcp) = &self.socket {
            // Without it what is urgent only waits longer.
            _ = SockRef::from(tcp).set_tcp_notsent_lowat(bytes);
        }
    }

    /// Writes what goes out at once.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.wrote(match &self.socket {
            WireSocket::Tcp(tcp) => tcp.try_write(bytes),
            WireSocket::Unix(unix) => unix.try_write(bytes),
        })
    }

    /// Writes what goes out at once.
    pub(crate) fn try_write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.wrote(match &self.socket {
            WireSocket::Tcp(tcp) => tcp.try_write_vectored(slices),
            WireSocket::Unix(unix) => unix.try_write_vectored(slices),
        })
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.get_mut().socket {
            WireSocket::Tcp(tcp) => Pin::new(tcp).poll_read(cx, buf),
            WireSocket::Unix(unix) => Pin::new(unix).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Wire {
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
            WireSocket::Tcp(tcp) => Pin::new(tcp).poll_write(cx, bytes),
            WireSocket::Unix(unix) => Pin::new(unix).poll_write(cx, bytes),
        };
        written.map(|wrote| this.wrote(wrote))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.pace.is_some() {
            // One after the other: what the pace allows may end within one.
            let first = slices.iter().find(|slice| !slice.is_empty());
            return self.poll_write(cx, first.map_or(&[], |slice| slice));
        }
        match &mut self.get_mut().socket {
            WireSocket::Tcp(tcp) => Pin::new(tcp).poll_write_vectored(cx, slices),
            WireSocket::Unix(unix) => Pin::new(unix).poll_write_vectored(cx, slices),
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
            WireSocket::Tcp(tcp) => Pin::new(tcp).poll_shutdown(cx),
            WireSocket::Unix(unix) => Pin::new(unix).poll_shutdown(cx),
        }
    }
}
