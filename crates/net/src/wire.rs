//! What a client's bytes come over: TCP, or a unix socket.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// A connected socket.
pub(crate) enum Wire {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Wire {
    /// This end's address; none over a unix socket.
    pub(crate) fn local_addr(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(tcp) => tcp.local_addr().ok(),
            Self::Unix(_) => None,
        }
    }

    /// Has the connection end with a reset. Unix sockets know none: there the cut answer's framing
    /// alone tells.
    pub(crate) fn reset_at_end(&self) {
        if let Self::Tcp(tcp) = self {
            _ = tcp.set_zero_linger();
        }
    }

    /// Has the kernel hold no more than `bytes` that have not left yet.
    pub(crate) fn hold_unsent(&self, bytes: u32) {
        if let Self::Tcp(tcp) = self {
            // Without it what is urgent only waits longer.
            _ = SockRef::from(tcp).set_tcp_notsent_lowat(bytes);
        }
    }

    /// Writes what goes out at once.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(tcp) => tcp.try_write(bytes),
            Self::Unix(unix) => unix.try_write(bytes),
        }
    }

    /// Writes what goes out at once.
    pub(crate) fn try_write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(tcp) => tcp.try_write_vectored(slices),
            Self::Unix(unix) => unix.try_write_vectored(slices),
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(tcp) => Pin::new(tcp).poll_read(cx, buf),
            Self::Unix(unix) => Pin::new(unix).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(tcp) => Pin::new(tcp).poll_write(cx, bytes),
            Self::Unix(unix) => Pin::new(unix).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(tcp) => Pin::new(tcp).poll_write_vectored(cx, slices),
            Self::Unix(unix) => Pin::new(unix).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(tcp) => Pin::new(tcp).poll_shutdown(cx),
            Self::Unix(unix) => Pin::new(unix).poll_shutdown(cx),
        }
    }
}
