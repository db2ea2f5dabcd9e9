//! Stream to a server: plain TCP, TLS or a unix socket.

use std::ffi::OsStr;
use std::io::Write as _;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::{Shutdown, SocketAddr};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use base::descriptors::unkept;
use socket2::{Domain, SockAddr, SockRef, Socket, Type};
use tls::UpstreamPeer;
use tokio::io::{AsyncRead as _, AsyncWrite as _, Interest, ReadBuf};
use tokio::net::{TcpSocket, TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::config::TlsConfig;

/// The TLS settings for a server; `None` if `host` is not a name that a certificate can have.
/// `offered`: the protocols to offer instead of HTTP/1.1.
pub(crate) fn peer(config: &TlsConfig, host: &str, offered: &[&str]) -> Option<UpstreamPeer> {
    let name = config.name.as_deref().unwrap_or(host);
    match offered {
        [] => config.upstream.peer(name),
        offered => config.upstream.clone().offering(offered, true).peer(name),
    }
}

/// The check of an idle connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdleCheck {
    /// Uses the events that the runtime has already seen, without a system call: for requests that
    /// can be repeated.
    AsNoticed,
    /// Reads from the socket: a connection closed since would fail the request.
    Sure,
}

/// A socket connected to a server.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    /// A unix socket that is not registered with the runtime yet. It connects at once or not at
    /// all, so a short request is written before there is anything to wait for.
    Unwatched(Option<StdUnixStream>),
    Tls(Box<TlsStream<TcpStream>>),
}

async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    };
    unkept(socket?)?.connect(address).await
}

impl Stream {
    pub(crate) async fn connect_tcp(address: SocketAddr) -> io::Result<Self> {
        let stream = connect(address).await?;
        // Requests are written whole: waiting to fill a segment only delays them.
        stream.set_nodelay(true)?;
        Ok(Self::Tcp(stream))
    }

    /// As [`Stream::connect_tcp`], with a TLS handshake with `peer`.
    pub(crate) async fn connect_tls(address: SocketAddr, peer: &UpstreamPeer) -> io::Result<Self> {
        let stream = connect(address).await?;
        stream.set_nodelay(true)?;
        let connecting = TlsConnector::from(peer.config()).connect(peer.name(), stream);
        let stream = connecting.await.map_err(tls::explained)?;
        Ok(Self::Tls(Box::new(stream)))
    }

    /// Connects without waiting: a full backlog is an error (`WouldBlock`).
    pub(crate) fn connect_unix(path: &Path) -> io::Result<Self> {
        let socket = unkept(Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?)?;
        // An abstract socket's name is written behind an `@` (unix(7)).
        let address = match path.as_os_str().as_bytes().strip_prefix(b"@") {
            Some(name) => SockAddr::unix(OsStr::from_bytes(&[b"\0", name].concat()))?,
            None => SockAddr::unix(path)?,
        };
        socket.connect(&address)?;
        Ok(Self::Unwatched(Some(socket.into())))
    }

    /// Returns true if the server has chosen HTTP/2 (RFC 7301).
    pub(crate) fn chose_http2(&self) -> bool {
        matches!(self, Self::Tls(stream) if stream.get_ref().1.alpn_protocol() == Some(b"h2"))
    }

    /// Returns true if it can be registered with another core's runtime; a TLS session cannot.
    pub(crate) fn can_move(&self) -> bool {
        !matches!(self, Self::Tls(_))
    }

    /// Registers it with the calling core's runtime.
    pub(crate) fn moved(self) -> io::Result<Self> {
        Ok(match self {
            Self::Tcp(stream) => Self::Tcp(TcpStream::from_std(stream.into_std()?)?),
            Self::Unix(stream) => Self::Unix(UnixStream::from_std(stream.into_std()?)?),
            stream @ (Self::Unwatched(_) | Self::Tls(_)) => stream,
        })
    }

    /// Registers the socket with the runtime, if it is not yet.
    fn watch(&mut self) -> io::Result<()> {
        if let Self::Unwatched(stream) = self {
            let stream = stream.take().ok_or(io::ErrorKind::NotConnected)?;
            *self = Self::Unix(UnixStream::from_std(stream)?);
        }
        Ok(())
    }

    /// The local address, if there is one.
    pub(crate) fn local(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(stream) => stream.local_addr().ok(),
            Self::Tls(stream) => stream.get_ref().0.local_addr().ok(),
            Self::Unix(_) | Self::Unwatched(_) => None,
        }
    }

    /// Reads into `buf`; 0 at the end.
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut buf = ReadBuf::new(buf);
        self.watch()?;
        let read = match self {
            Self::Unwatched(_) => return Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, &mut buf),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, &mut buf),
            Self::Tls(stream) => {
                // Encrypted bytes must be sent first, or there is nothing to wait for.
                if let Poll::Ready(Err(error)) = Pin::new(&mut **stream).poll_flush(cx) {
                    return Poll::Ready(Err(error));
                }
                Pin::new(&mut **stream).poll_read(cx, &mut buf)
            }
        };
        read.map_ok(|()| buf.filled().len())
    }

    pub(crate) fn poll_write_vectored(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        // For one slice, `send` costs the kernel less than `writev`.
        let mut filled = bufs.iter().filter(|buf| !buf.is_empty());
        if let (Some(only), None) = (filled.next(), filled.next()) {
            match self {
                Self::Tcp(stream) => return Pin::new(stream).poll_write(cx, only),
                Self::Unix(stream) => return Pin::new(stream).poll_write(cx, only),
                Self::Unwatched(_) | Self::Tls(_) => {}
            }
        }
        if let Self::Unwatched(Some(stream)) = self {
            match stream.write_vectored(bufs) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.watch()?,
                wrote => return Poll::Ready(wrote),
            }
        }
        match self {
            Self::Unwatched(_) => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_write_vectored(cx, bufs),
        }
    }

    /// Ready when no bytes wait to be sent.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(_) | Self::Unix(_) | Self::Unwatched(_) => Poll::Ready(Ok(())),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_flush(cx),
        }
    }

    /// Ends the sending side.
    pub(crate) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unwatched(stream) => {
                let end = |stream: &StdUnixStream| stream.shutdown(Shutdown::Write);
                Poll::Ready(stream.as_ref().map_or(Ok(()), end))
            }
            Self::Tls(stream) => Pin::new(&mut **stream).poll_shutdown(cx),
        }
    }

    /// Lets the connection end with a reset, if it has one.
    pub(crate) fn cut(&self) {
        _ = match self {
            Self::Tcp(stream) => stream.set_zero_linger(),
            Self::Unix(_) | Self::Unwatched(_) => Ok(()),
            Self::Tls(stream) => stream.get_ref().0.set_zero_linger(),
        };
    }

    /// Writes a few last bytes if the socket takes them without blocking.
    pub(crate) fn send_now(&mut self, bytes: &[u8]) {
        // The connection is dropped afterwards in any case.
        let mut cx = Context::from_waker(Waker::noop());
        _ = self.poll_write_vectored(&mut cx, &[IoSlice::new(bytes)]);
    }

    /// Returns true if an idle connection is usable: open, and without a byte to read.
    pub(crate) fn is_quiet(&self, look: IdleCheck) -> bool {
        let mut byte = [MaybeUninit::uninit()];
        let read = match self {
            Self::Tcp(stream) if look == IdleCheck::AsNoticed => {
                stream.try_io(Interest::READABLE, || SockRef::from(stream).recv(&mut byte))
            }
            Self::Tcp(stream) => SockRef::from(stream).recv(&mut byte),
            Self::Unix(stream) if look == IdleCheck::AsNoticed => {
                stream.try_io(Interest::READABLE, || SockRef::from(stream).recv(&mut byte))
            }
            Self::Unix(stream) => SockRef::from(stream).recv(&mut byte),
            Self::Unwatched(Some(stream)) => SockRef::from(stream).recv(&mut byte),
            Self::Unwatched(None) => return false,
            Self::Tls(stream) => {
                let (socket, session) = stream.get_ref();
                // Unexpected bytes, or a closure alert.
                if !session.wants_read() {
                    return false;
                }
                SockRef::from(socket).recv(&mut byte)
            }
        };
        matches!(read, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }
}
