//! Streams to a server: over TCP or a unix socket, with or without TLS.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::HandshakeKind;

use super::failure::LoadFailure;
use crate::target::TargetServer;

/// A server's addresses and TLS settings.
pub(crate) struct Endpoint {
    place: EndpointAddress,
    tls: Option<(TlsConnector, tls::UpstreamPeer)>,
    http2: bool,
}

enum EndpointAddress {
    Addresses(Vec<SocketAddr>),
    Socket(PathBuf),
}

/// The times that opening a connection took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionTimes {
    /// Time of the TCP connect.
    pub(crate) connect: Duration,
    /// Time of the TLS handshake.
    pub(crate) tls: Option<Duration>,
    /// True if a TLS session was resumed.
    pub(crate) resumed: bool,
}

/// Bytes that a connection has transferred.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TransferCounts {
    /// Bytes sent to the server.
    pub(crate) sent: u64,
    /// Bytes received from it.
    pub(crate) received: u64,
}

impl Endpoint {
    /// Resolves `target`. `upstream` holds its TLS settings.
    pub(crate) fn new(
        target: &TargetServer,
        upstream: &tls::Upstream,
        http2: bool,
    ) -> Result<Self, String> {
        let place = match &target.unix_socket {
            Some(path) => EndpointAddress::Socket(path.clone()),
            None => EndpointAddress::Addresses(target.addresses()?),
        };
        let secured = if target.secure {
            let peer = upstream.peer(&target.host).ok_or_else(|| {
                format!("{target}: no certificate can be for the name {}", target.host)
            })?;
            Some((TlsConnector::from(peer.config()), peer))
        } else {
            None
        };
        Ok(Self { place, tls: secured, http2 })
    }

    /// Opens a connection.
    pub(crate) async fn connect(&self) -> Result<(Stream, ConnectionTimes), LoadFailure> {
        let start = Instant::now();
        let plain = self.plain().await.map_err(|error| LoadFailure::connecting(&error))?;
        let mut opened = ConnectionTimes { connect: start.elapsed(), tls: None, resumed: false };
        let Some((connector, peer)) = &self.tls else {
            return Ok((Stream::Plain(plain), opened));
        };
        let start = Instant::now();
        let stream = connector
            .connect(peer.name(), plain)
            .await
            .map_err(|error| LoadFailure::Tls(tls::explained(error).to_string()))?;
        opened.tls = Some(start.elapsed());
        let session = stream.get_ref().1;
        opened.resumed = session.handshake_kind() == Some(HandshakeKind::Resumed);
        if self.http2 && session.alpn_protocol() != Some(b"h2") {
            return Err(LoadFailure::Tls("the server does not offer HTTP/2".to_owned()));
        }
        Ok((Stream::Tls(Box::new(stream)), opened))
    }

    async fn plain(&self) -> io::Result<Plain> {
        match &self.place {
            EndpointAddress::Socket(path) => Ok(Plain::Unix(UnixStream::connect(path).await?)),
            EndpointAddress::Addresses(addresses) => {
                let stream = TcpStream::connect(addresses.as_slice()).await?;
                stream.set_nodelay(true)?;
                Ok(Plain::Tcp(stream))
            }
        }
    }
}

/// A connection without TLS.
pub(crate) enum Plain {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A connection.
pub(crate) enum Stream {
    Plain(Plain),
    Tls(Box<TlsStream<Plain>>),
}

macro_rules! with {
    ($self:ident, $stream:ident, $what:expr, $($kind:path),+) => {
        match $self.get_mut() {
            $($kind($stream) => $what,)+
        }
    };
}

impl AsyncRead for Plain {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        with!(self, stream, Pin::new(stream).poll_read(cx, buf), Self::Tcp, Self::Unix)
    }
}

impl AsyncWrite for Plain {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        with!(self, stream, Pin::new(stream).poll_write(cx, buf), Self::Tcp, Self::Unix)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        with!(self, stream, Pin::new(stream).poll_flush(cx), Self::Tcp, Self::Unix)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        with!(self, stream, Pin::new(stream).poll_shutdown(cx), Self::Tcp, Self::Unix)
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        with!(self, stream, Pin::new(stream).poll_read(cx, buf), Self::Plain, Self::Tls)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        with!(self, stream, Pin::new(stream).poll_write(cx, buf), Self::Plain, Self::Tls)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        with!(self, stream, Pin::new(stream).poll_flush(cx), Self::Plain, Self::Tls)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        with!(self, stream, Pin::new(stream).poll_shutdown(cx), Self::Plain, Self::Tls)
    }
}
