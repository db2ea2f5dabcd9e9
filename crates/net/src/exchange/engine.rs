//! Engine: what HTTP/1 and a stream of HTTP/2 do for an exchange.

use std::io;
use std::task::{Context, Poll};

use bytes::Bytes;
use cache::{BodyDerivation, HeldTrailers};
use flow::{Reply, Tunnel};
use message::Response;

use crate::connection_counts::Entry;

/// The reason why an exchange did not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExchangeAbort {
    /// The client left before its reply was ready.
    Early,
    /// The body was truncated, or there was no memory for its rest: the client must be able to
    /// notice.
    Cut,
    /// The client left while its reply was sent, or took it too slowly.
    Late,
}

impl ExchangeAbort {
    /// The reason for a failed write.
    pub(crate) fn of(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::OutOfMemory => Self::Cut,
            _ => Self::Late,
        }
    }
}

/// The protocol's side of one exchange.
///
/// Interim responses may come first. Then comes the reply: as a [`whole`](Engine::whole), as a
/// [`tunnel`](Engine::tunnel), or by [`begin`](Engine::begin), any number of
/// [`piece`](Engine::piece)s and [`end`](Engine::end).
pub(crate) trait Engine {
    /// A reply that has begun.
    type Begun;

    /// Continues to receive the request's body, if nothing else does.
    fn poll_body(&self, _: &mut Context<'_>) {}

    /// The error page for a request whose body cannot be received further.
    fn refusal(&self) -> Option<Reply> {
        None
    }

    /// Continues to send interim responses; ready when the client has left, if nothing else ends
    /// the exchange then.
    fn poll_gone(&self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }

    /// Sends an interim response if the client supports it, or queues it.
    fn interim(&self, response: Response);

    /// Returns true if bytes of this derivation may be produced before the reply has begun.
    fn is_open(&self, _: BodyDerivation) -> bool {
        true
    }

    /// Begins a reply whose body follows in pieces; `length` is its size, if known.
    fn begin(&self, reply: Reply, length: Option<u64>, making: BodyDerivation) -> &Self::Begun;

    /// Ready when the client takes another piece.
    fn poll_room(&self, _: &Self::Begun, _: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    /// Sends a piece of the body, or collects it with the next ones.
    async fn piece(&self, begun: &Self::Begun, data: Bytes) -> Result<(), ExchangeAbort>;

    /// Sends the collected pieces, since the next one is not there yet.
    async fn flush(&self, _: &Self::Begun) -> Result<(), ExchangeAbort> {
        Ok(())
    }

    /// Ends a complete body, with optional trailers.
    async fn end(
        &self,
        begun: &Self::Begun,
        trailed: Option<Box<HeldTrailers>>,
    ) -> Result<(), ExchangeAbort>;

    /// Sends a reply whose body is at hand or in files.
    async fn whole(&self, reply: Reply) -> Result<(), ExchangeAbort>;

    /// Sends the switch of protocols, and carries the tunnel.
    async fn tunnel(
        &self,
        reply: Reply,
        origin: Box<Tunnel>,
        place: Option<Entry>,
    ) -> Result<(), ExchangeAbort>;
}
