//! Tunnel: a connection whose server has switched protocols, as bytes in both directions.
//!
//! Must never return to the pool: it belongs to the client that asked for the switch.

use std::fmt;
use std::future::Future as _;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use base::Counter;
use rt::time::Sleep;

use crate::pool::{CorePoolState, Workspace};
use crate::server::Permit;
use crate::upstream_connection::UpstreamConnection;

/// A connection after a 101 (RFC 9110 7.8). Dropping it closes it.
///
/// Bytes that the server sent together with its 101 are read first.
pub struct Tunnel {
    link: UpstreamConnection,
    protocol: Vec<u8>,
    early: Vec<u8>,
    core: Rc<CorePoolState>,
    /// The time at which it ends, regardless of traffic.
    end: Option<Pin<Box<Sleep>>>,
    /// Counts the tunnel as an exchange in progress.
    _permit: Permit,
}

impl Tunnel {
    /// A tunnel over the connection of a 101, whose unread bytes in `work` come first. It releases
    /// its exchange slot, since tunnels have their own limit.
    pub(crate) fn new(
        link: UpstreamConnection,
        work: &Workspace,
        protocol: Vec<u8>,
        mut permit: Permit,
    ) -> Self {
        permit.make_room();
        let core = Rc::clone(work.core());
        Self { link, protocol, early: work.unread().to_vec(), core, end: None, _permit: permit }
    }

    /// Sets a timeout in milliseconds, after which reads fail.
    pub fn end_after(&mut self, ms: Option<u64>) {
        self.end = ms.map(|ms| Box::pin(rt::time::sleep(Duration::from_millis(ms))));
    }

    /// The protocol, spelt as it was requested.
    pub fn protocol(&self) -> &[u8] {
        &self.protocol
    }

    /// Reads into `buf`, which must not be empty; 0 if the server has ended its side.
    ///
    /// # Errors
    /// Those of the connection; over TLS also a missing closure alert (truncation).
    pub fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        if self.end.as_mut().is_some_and(|end| end.as_mut().poll(cx).is_ready()) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        if !self.early.is_empty() {
            let taken = self.early.len().min(buf.len());
            buf[..taken].copy_from_slice(&self.early[..taken]);
            self.early.drain(..taken);
            if self.early.is_empty() {
                self.early = Vec::new();
            }
            return Poll::Ready(Ok(taken));
        }
        let read = ready!(self.link.stream.poll_read(cx, buf))?;
        self.core.counters.add(Counter::OriginBytesIn, read as u64);
        Poll::Ready(Ok(read))
    }

    /// Writes as much of `bytes` as the socket takes.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.link.stream.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    /// Ready when no bytes wait to be sent. Over TLS, a write only encrypts.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.link.stream.poll_flush(cx)
    }

    /// Ends this side; bytes that the server still sends can be read.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.link.stream.poll_shutdown(cx)
    }

    /// Resets the connection: the server must not take the bytes sent for complete.
    pub fn cut(&self) {
        self.link.stream.cut();
    }
}

impl fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tunnel").field("link", &self.link).finish_non_exhaustive()
    }
}
