//! The engine's part in an exchange.

use std::io;
use std::task::{Context, Poll};

use bytes::Bytes;
use cache::{BodyDerivation, HeldTrailers};
use flow::{Reply, Tunnel};
use message::Response;

use crate::connection_counts::Entry;

/// Reason why an exchange did not come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExchangeAbort {
    /// The client left before its answer was there.
    Early,
    /// The body ended before its end, or no memory is left for its rest: the client must see that.
    Cut,
    /// The client left while its answer was sent, or took it too slowly.
    Late,
}

impl ExchangeAbort {
    /// The reason that a failed write tells of.
    pub(crate) fn of(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::OutOfMemory => Self::Cut,
            _ => Self::Late,
        }
    }
}

/// The part of HTTP/1, or of a stream of HTTP/2, in one exchange.
///
/// While the answer is awaited there may be interim responses. Then comes the reply: as a
/// [`whole`](Engine::whole), as a [`tunnel`](Engine::tunnel), or by [`begin`](Engine::begin), any
/// number of [`piece`](Engine::piece)s and [`end`](Engine::end).
pub(crate) trait Engine {
    /// A reply that is begun.
    type Begun;

    /// Moves on the request's body, where nothing else does.
    fn poll_body(&self, _: &mut Context<'_>) {}

    /// The page for a request whose body cannot be taken further, if it cannot.
    fn refusal(&self) -> Option<Reply> {
        None
    }

    /// Moves on what the client is sent meanwhile; ready when it has left, where nothing else ends
    /// the exchange then.
    fn poll_gone(&self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }

    /// Sends an interim response if the client knows any, or keeps it until it can leave.
    fn interim(&self, response: Response);

    /// Returns true if bytes that come so may be asked for before the reply has begun.
    fn is_open(&self, _: BodyDerivation) -> bool {
        true
    }

    /// Begins a reply whose body follows in pieces. It has `length` bytes, if that is known.
    fn begin(&self, reply: Reply, length: Option<u64>, making: BodyDerivation) -> &Self::Begun;

    /// Ready when the client takes another piece.
    fn poll_room(&self, _: &Self::Begun, _: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    /// Sends a piece of the body, or keeps it until the next ones have come.
    async fn piece(&self, begun: &Self::Begun, data: Bytes) -> Result<(), ExchangeAbort>;

    /// Sends what was kept: more is not there yet.
    async fn flush(&self, _: &Self::Begun) -> Result<(), ExchangeAbort> {
        Ok(())
    }

    /// The body is whole; trailers may follow it.
    async fn end(
        &self,
        begun: &Self::Begun,
        trailed: Option<Box<HeldTrailers>>,
    ) -> Result<(), ExchangeAbort>;

    /// Sends a reply whose body is all there, or in files.
    async fn whole(&self, reply: Reply) -> Result<(), ExchangeAbort>;

    /// Says that the protocol changes, and carries what is spoken from then on.
    async fn tunnel(
        &self,
        reply: Reply,
        origin: Box<Tunnel>,
        place: Option<Entry>,
    ) -> Result<(), ExchangeAbort>;
}
