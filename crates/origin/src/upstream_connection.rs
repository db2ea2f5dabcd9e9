//! One connection to a server.

use std::net::SocketAddr;

use crate::owner::OwnerHold;
use crate::stream::Stream;

/// A connection, and the address it was made to.
#[derive(Debug)]
pub(crate) struct UpstreamConnection {
    pub(crate) stream: Stream,
    pub(crate) peer: Option<SocketAddr>,
    /// The client connection that alone goes on with it; `None` if any may.
    pub(crate) hold: Option<OwnerHold>,
}

impl UpstreamConnection {
    /// A new connection, which any client may go on with.
    pub(crate) fn new(stream: Stream, peer: Option<SocketAddr>) -> Self {
        Self { stream, peer, hold: None }
    }

    /// The same for the calling core.
    pub(crate) fn into_this_core(self) -> Option<Self> {
        let stream = self.stream.moved().ok()?;
        Some(Self { stream, ..self })
    }
}
