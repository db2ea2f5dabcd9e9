//! A client's stream: plain TCP or a unix socket, or TLS over one.
//!
//! Only what goes over the wire differs; above, both are the same. A TLS stream keeps no buffer of
//! its own: what is received goes through the core's scratch memory, and what was sealed waits in
//! the session only as long as the client is slow to take it.

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

/// TLS over TCP, its handshake done.
pub(crate) struct TlsSocket {
    tcp: ClientSocket,
    session: Session,
    /// Plain bytes may be left in the session from the read before.
    unread: bool,
    /// The bytes written now are the last.
    last: bool,
    /// It ends with a reset.
    cut: bool,
    wire_bytes: u64,
    /// Bytes of the last batch that was sealed.
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

    /// This end's address; none over a unix socket.
    pub(crate) fn local_addr(&self) -> Option<SocketAddr> {
        self.wire().local_addr()
    }

    /// Has the kernel hold no more than `bytes` that have not left yet: what comes later and is
    /// more urgent does not wait behind them.
    pub(crate) fn hold_unsent(&self, bytes: u32) {
        self.wire().hold_unsent(bytes);
    }

    /// Bytes that were sent and that the client has not taken, as the kernel knows of TCP.
    pub(crate) fn held_by_kernel(&self) -> Option<u32> {
        diag::queued(self.wire()).ok()
    }

    /// The owner of the process at the other end of a unix socket.
    pub(crate) fn owner(&self) -> Option<Owner> {
        self.wire().owner()
    }

    /// Has programs work on the socket, if they do not yet.
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

    /// Reads what is there into `buf`, which is empty and [`crate::core::READ_BYTES`] large;
    /// nothing at the end. `sealed` is scratch memory.
    ///
    /// The end of a TLS stream that its peer did not announce is an error (truncation).
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

    /// Bytes that went over the wire; for plain streams 0, since there what is written says it.
    pub(crate) fn wire_bytes(&self) -> u64 {
        match self {
            Self::Plain(_) => 0,
            Self::Tls(secure) => secure.wire_bytes,
        }
    }

    /// Bytes that were sealed together and have not all left; 0 when nothing waits here.
    pub(crate) fn unsent(&self) -> usize {
        match self {
            Self::Tls(secure) if !secure.session.is_sent() => secure.sealed,
            Self::Plain(_) | Self::Tls(_) => 0,
        }
    }

    /// Bytes that one read must have room for.
    pub(crate) fn least_read(&self) -> usize {
        if self.is_tls() { crate::core::READ_BYTES } else { 1 }
    }

    /// Says that nothing follows what is written from now on, so that a TLS stream announces its
    /// end together with it.
    pub(crate) fn is_last(&mut self) {
        if let Self::Tls(secure) = self {
            secure.last = true;
        }
    }

    /// Ends the connection, announced where that is possible without waiting.
    pub(crate) fn close(mut self) {
        if let Self::Tls(secure) = &mut self
            && !secure.cut
        {
            secure.session.end();
            // A client that takes no more cannot be told.
            _ = secure.session.send(&mut ImmediateWriter(&secure.tcp));
        }
    }

    /// Has the connection end with a reset: the client must not take what it has for whole.
    pub(crate) fn cut(&mut self) {
        self.wire().reset_at_end();
        if let Self::Tls(secure) = self {
            secure.cut = true;
        }
    }

    /// Writes as much as goes out at once, and no more.
    pub(crate) fn write_now(&mut self, bytes: &[u8]) {
        match self {
            Self::Plain(tcp) => _ = tcp.try_write(bytes),
            Self::Tls(secure) => {
                secure.session.seal(&[IoSlice::new(bytes)]);
                _ = secure.session.send(&mut ImmediateWriter(&secure.tcp));
            }
        }
    }

    /// Reads and forgets what still comes, without looking into it.
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
                // An alert, or the answer to new keys: it leaves now, or with what is sent next.
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

    /// Seals what fits into one batch. It leaves with [`AsyncWrite::poll_flush`], or before the
    /// next batch.
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

/// A stream used from both sides of one exchange: the request's body still comes while the answer
/// leaves. One task polls both, one after the other.
pub(crate) type SharedStream<'a> = RefCell<&'a mut Stream>;

/// Writes what the socket takes at once, without asking to be woken.
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

/// A socket within one poll: what would block is pending, and the task will be woken.
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
