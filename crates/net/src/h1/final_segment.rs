//! Final segment of a connection: the last bytes share a segment with the FIN. It must be used only
//! if the stream is closed at once, since the kernel may hold these bytes back.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::net::{SendAncillaryBuffer, SendFlags, send, sendmsg};
use tokio::io::{AsyncWrite, Interest};
use tokio::net::TcpStream;

use crate::file::Sink;

/// A stream that is closed after this write. `MSG_MORE` holds the bytes back until the FIN, which
/// then travels in the same segment: one packet less to send and to acknowledge.
pub(crate) struct CorkedStream<'a>(pub(crate) &'a TcpStream);

const FLAGS: SendFlags = SendFlags::MORE.union(SendFlags::NOSIGNAL);

impl CorkedStream<'_> {
    fn poll_send(
        &self,
        cx: &mut Context<'_>,
        mut send: impl FnMut() -> rustix::io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_write_ready(cx))?;
            match self.0.try_io(Interest::WRITABLE, || Ok(send()?)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
    }
}

impl Sink for CorkedStream<'_> {
    fn socket(&self) -> Option<&TcpStream> {
        Some(self.0)
    }

    fn poll_room(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for CorkedStream<'_> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_send(cx, || send(self.0, bytes, FLAGS))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_send(cx, || sendmsg(self.0, slices, &mut SendAncillaryBuffer::default(), FLAGS))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The close flushes.
        Poll::Ready(Ok(()))
    }
}
