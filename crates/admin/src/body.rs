//! Bodies of responses: owned bytes, bytes of the binary, or a stream of pieces.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::mpsc;

/// The body of a [response](crate::AdminResponse).
pub enum Body {
    /// Made for this response.
    Full(Bytes),
    /// Part of the binary.
    Static(&'static [u8]),
    /// Pieces in the order of sending; the body ends with the last sender. After the client has
    /// gone, sending fails.
    Stream(mpsc::Receiver<Bytes>),
}

impl Body {
    /// The bytes, unless the body is a stream.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Full(bytes) => Some(bytes),
            Self::Static(bytes) => Some(bytes),
            Self::Stream(_) => None,
        }
    }

    pub(crate) fn into_sent(self) -> OutgoingBody {
        match self {
            Self::Full(bytes) => OutgoingBody::Full(Full::new(bytes)),
            Self::Static(bytes) => OutgoingBody::Full(Full::new(Bytes::from_static(bytes))),
            Self::Stream(pieces) => OutgoingBody::Stream(pieces),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bytes() {
            Some(bytes) => write!(f, "Body({} bytes)", bytes.len()),
            None => f.write_str("Body(stream)"),
        }
    }
}

/// A body as hyper sends it.
pub(crate) enum OutgoingBody {
    Full(Full<Bytes>),
    Stream(mpsc::Receiver<Bytes>),
}

impl HttpBody for OutgoingBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Self::Full(full) => Pin::new(full).poll_frame(cx),
            Self::Stream(pieces) => {
                pieces.poll_recv(cx).map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Full(full) => full.is_end_stream(),
            Self::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(full) => full.size_hint(),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}
