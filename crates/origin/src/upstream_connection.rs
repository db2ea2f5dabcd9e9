//! Upstream connection: one connection to a server.

use std::net::SocketAddr;

use crate::owner::OwnerHold;
use crate::stream::Stream;

/// A connection, and its server's address.
#[derive(Debug)]
pub(crate) struct UpstreamConnection {
    pub(crate) stream: Stream,
    pub(crate) peer: Option<SocketAddr>,
    /// The client connection that owns it; `None` if any client may use it.
    pub(crate) hold: Option<OwnerHold>,
}

impl UpstreamConnection {
    /// A new connection without an owner.
    pub(crate) fn new(stream: Stream, peer: Option<SocketAddr>) -> Self {
        Self { stream, peer, hold: None }
    }

    /// Moves the connection to the calling core; `None` if that is not possible.
    pub(crate) fn into_this_core(self) -> Option<Self> {
        let stream = self.stream.moved().ok()?;
        Some(Self { stream, ..self })
    }
}
