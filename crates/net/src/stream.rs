//! Stream of a client: plain TCP or a unix socket, or TLS over either; users of the type see no
//! difference.
//!
//! A TLS stream has no buffer of its own: received bytes go through the core's scratch memory, and
//! encrypted ones wait in the session only while the client is slow.

use std::cell::RefCell;
use std::io::{self, IoSlice, Write};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use flow::vcl::Owner;
use tls::Session;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::client_socket::ClientSocket;
use crate::connection_control::ProgramConnection;
use crate::diag;
use crate::file::Sink;

/// A client's stream.
pub(crate) enum Stream {
    Plain(ClientSocket),
    Tls(Box<TlsSocket>),
}

/// TLS over a socket, after its handshake.
pub(crate) struct TlsSocket {
    tcp: ClientSocket,
    session: Session,
    /// The session may hold decrypted bytes of the last read.
    unread: bool,
    /// The bytes written now are the last.
    last: bool,
    /// The connection ends with a reset.
    cut: bool,
    wire_bytes: u64,
    /// Plain bytes of the last encrypted batch.
    sealed: usize,
}

impl Stream {
    pub(crate) fn secure(tcp: ClientSocket, session: Session) -> Self {
        let secure = TlsSocket {
            tcp,
            session,
            unread: true,
            last: false,
            cut: false,
            wire_bytes: 0,
            sealed: 0,
        };
        Self::Tls(Box::new(secure))
    }

    pub(crate) fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// The local address; `None` for a unix socket.
    pub(crate) fn local_addr(&self) -> Option<SocketAddr> {
        self.wire().local_addr()
    }

    /// Limits the unsent bytes in the kernel's send buffer to `bytes`, so that urgent bytes written
    /// later need not wait behind them.
    pub(crate) fn hold_unsent(&self, bytes: u32) {
        self.wire().hold_unsent(bytes);
    }

    /// Sent bytes that the client has not acknowledged, as the kernel reports them for TCP.
    pub(crate) fn held_by_kernel(&self) -> Option<u32> {
        diag::queued(self.wire()).ok()
    }

    /// The owner of the peer process of a unix socket.
    pub(crate) fn owner(&self) -> Option<Owner> {
        self.wire().owner()
    }

    /// Gives programs access to the socket, unless they have it already.
    pub(crate) fn attach_to_programs(&mut self, known: &ProgramConnection) {
        if let Some(pace) = known.hold(|| self.wire().duplicate()) {
            match self {
                Self::Plain(wire) => wire.keep_pace(pace),
                Self::Tls(secure) => secure.tcp.keep_pace(pace),
            }
        }
    }

    fn wire(&self) -> &ClientSocket {
        match self {
            Self::Plain(tcp) => tcp,
            Self::Tls(secure) => &secure.tcp,
        }
    }

    /// Reads into `buf`, which is empty and [`crate::core::READ_BYTES`] large; it stays empty at
    /// the end of the stream. `sealed` is scratch memory.
    ///
    /// The end of a TLS stream without a closure alert is an error (truncation).
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
        sealed: &RefCell<Box<[u8]>>,
    ) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(tcp) => Pin::new(tcp).poll_read(cx, buf),
            Self::Tls(secure) => secure.poll_read(cx, buf, &mut sealed.borrow_mut()),
        }
    }

    /// Bytes sent by TLS, including its framing; 0 for plain streams, whose writes count
    /// themselves.
    pub(crate) fn wire_bytes(&self) -> u64 {
        match self {
            Self::Plain(_) => 0,
            Self::Tls(secure) => secure.wire_bytes,
        }
    }

    /// Bytes of an encrypted batch that has not left completely; 0 if none waits.
    pub(crate) fn unsent(&self) -> usize {
        match self {
            Self::Tls(secure) if !secure.session.is_sent() => secure.sealed,
            Self::Plain(_) | Self::Tls(_) => 0,
        }
    }

    /// The least buffer size of one read.
    pub(crate) fn least_read(&self) -> usize {
        if self.is_tls() { crate::core::READ_BYTES } else { 1 }
    }

    /// Marks the next write as the last, so that a TLS stream sends its closure alert together with
    /// it.
    pub(crate) fn is_last(&mut self) {
        if let Self::Tls(secure) = self {
            secure.last = true;
        }
    }

    /// Ends the connection, with a closure alert if that needs no waiting.
    pub(crate) fn close(mut self) {
        if let Self::Tls(secure) = &mut self
            && !secure.cut
        {
            secure.session.end();
            // A client whose receive buffer is full gets no alert.
            _ = secure.session.send(&mut ImmediateWriter(&secure.tcp));
        }
    }

    /// Lets the connection end with a reset: the client must not take a truncated reply for
    /// complete.
    pub(crate) fn cut(&mut self) {
        self.wire().reset_at_end();
        if let Self::Tls(secure) = self {
            secure.cut = true;
        }
    }

    /// Writes as much as the socket takes without blocking.
    pub(crate) fn write_now(&mut self, bytes: &[u8]) {
        match self {
            Self::Plain(tcp) => _ = tcp.try_write(bytes),
            Self::Tls(secure) => {
                secure.session.seal(&[IoSlice::new(bytes)]);
                _ = secure.session.send(&mut ImmediateWriter(&secure.tcp));
            }
        }
    }

    /// Reads and discards received bytes without parsing them.
    pub(crate) fn poll_discard(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(tcp) => Pin::new(tcp).poll_read(cx, buf),
            Self::Tls(secure) => Pin::new(&mut secure.tcp).poll_read(cx, buf),
        }
    }
}

impl TlsSocket {
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
        sealed: &mut [u8],
    ) -> Poll<io::Result<()>> {
        loop {
            if std::mem::take(&mut self.unread) {
                let taken = self.session.take(buf.initialize_unfilled())?;
                buf.advance(taken);
            }
            if !buf.filled().is_empty() || self.session.is_ended() {
                return Poll::Ready(Ok(()));
            }
            let mut received = ReadBuf::new(sealed);
            ready!(Pin::new(&mut self.tcp).poll_read(cx, &mut received))?;
            if received.filled().is_empty() {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
            let opened = self.session.open(received.filled(), buf.initialize_unfilled());
            if !self.session.is_sent() {
                // An alert, or the reply to a key update: it leaves now, or with the next bytes
                // sent.
                let sent = self.session.send(&mut ImmediateWriter(&self.tcp)).unwrap_or(0);
                self.wire_bytes += sent as u64;
            }
            buf.advance(opened?);
        }
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.session.is_sent() {
            let mut socket = Socket { tcp: &mut self.tcp, cx };
            match self.session.send(&mut socket) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(sent) => self.wire_bytes += sent as u64,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Encrypts one batch. It leaves with [`AsyncWrite::poll_flush`], or before the next batch.
    fn poll_seal(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_send(cx))?;
        self.sealed = self.session.seal(slices);
        Poll::Ready(Ok(self.sealed))
    }
}

impl Sink for Stream {
    fn socket(&self) -> Option<&TcpStream> {
        match self {
            Self::Plain(wire) => wire.tcp(),
            Self::Tls(_) => None,
        }
    }

    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(_) => Poll::Ready(Ok(())),
            Self::Tls(secure) => secure.poll_send(cx),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_write(cx, bytes),
            Self::Tls(secure) => secure.poll_seal(cx, &[IoSlice::new(bytes)]),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_write_vectored(cx, slices),
            Self::Tls(secure) => secure.poll_seal(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(_) => Poll::Ready(Ok(())),
            Self::Tls(secure) => {
                if secure.last {
                    secure.session.end();
                }
                secure.poll_send(cx)
            }
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_shutdown(cx),
            Self::Tls(secure) => {
                secure.session.end();
                ready!(secure.poll_send(cx))?;
                Pin::new(&mut secure.tcp).poll_shutdown(cx)
            }
        }
    }
}

/// A stream used by both directions of one exchange: the request's body is received while the reply
/// is sent. One task polls both, one after the other.
pub(crate) type SharedStream<'a> = RefCell<&'a mut Stream>;

/// Writes what the socket takes without blocking; never wakes the task.
pub(crate) struct ImmediateWriter<'a>(pub(crate) &'a ClientSocket);

impl Write for ImmediateWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A socket within one poll: an operation that would block is pending, and wakes the task later.
pub(crate) struct Socket<'a, 'b> {
    pub(crate) tcp: &'a mut ClientSocket,
    pub(crate) cx: &'a mut Context<'b>,
}

impl Socket<'_, '_> {
    fn done(poll: Poll<io::Result<usize>>) -> io::Result<usize> {
        match poll {
            Poll::Ready(done) => done,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

impl Write for Socket<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Self::done(Pin::new(&mut *self.tcp).poll_write(self.cx, bytes))
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        Self::done(Pin::new(&mut *self.tcp).poll_write_vectored(self.cx, slices))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
