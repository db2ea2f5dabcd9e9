//! A connection's socket.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use socket2::SockRef;
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// A socket connected to a server.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    pub(crate) async fn connect_tcp(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        // Requests are written whole: waiting for more to fill a segment only delays them.
        stream.set_nodelay(true)?;
        Ok(Self::Tcp(stream))
    }

    pub(crate) async fn connect_unix(path: &Path) -> io::Result<Self> {
        UnixStream::connect(path).await.map(Self::Unix)
    }

    /// Reads what is there into `buf`; 0 at the end.
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut buf = ReadBuf::new(buf);
        let read = match self {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, &mut buf),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, &mut buf),
        };
        read.map_ok(|()| buf.filled().len())
    }

    pub(crate) fn poll_write_vectored(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    /// Writes a few last bytes if there is room for them at once.
    pub(crate) fn send_now(&self, bytes: &[u8]) {
        // The connection is given up whatever comes of it.
        _ = match self {
            Self::Tcp(stream) => stream.try_write(bytes),
            Self::Unix(stream) => stream.try_write(bytes),
        };
    }

    /// Whether an idle connection is still good: open, and not a byte to read.
    ///
    /// Asks the socket itself. The runtime's own idea of it is as old as its last look at its
    /// events, and a connection closed since then would cost a request.
    pub(crate) fn is_quiet(&self) -> bool {
        let mut byte = [MaybeUninit::uninit()];
        let read = match self {
            Self::Tcp(stream) => SockRef::from(stream).recv(&mut byte),
            Self::Unix(stream) => SockRef::from(stream).recv(&mut byte),
        };
        matches!(read, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }
}
