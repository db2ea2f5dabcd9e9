//! Failures of streams: the reasons, and the errors that they become.

use std::io;
use std::sync::Arc;

use h2::ConnectionError;

use crate::error::{Error, TimeoutStep};

/// The reason why a stream failed.
#[derive(Clone, Copy, Debug)]
pub(super) enum StreamFailure {
    /// The server has announced that it will not process the stream.
    Left,
    /// The connection ended.
    Closed,
    /// The connection failed.
    Io(io::ErrorKind),
    /// The server gave no sign of life.
    Silent,
    /// The server sent no settings in this time, in milliseconds.
    Unsettled(u64),
    /// The connection broke the protocol.
    Broken(ConnectionError),
    /// The server guarantees that it has not processed the stream.
    Refused,
    /// The server ended the stream, with this code.
    Reset(u32),
    /// The response is malformed or too large.
    Rejected(h2::ResponseError),
    /// Too many 1xx responses.
    TooManyInterim,
    /// The source of the request's body failed.
    Upload,
}

impl StreamFailure {
    /// Returns true if the server has certainly not processed the request.
    pub(super) fn is_unprocessed(self) -> bool {
        matches!(self, Self::Left | Self::Refused)
    }

    /// Returns true if the whole connection failed.
    pub(super) fn is_loss(self) -> bool {
        use StreamFailure::{Broken, Closed, Io, Silent, Unsettled};
        matches!(self, Closed | Io(_) | Silent | Unsettled(_) | Broken(_))
    }

    pub(super) fn error(self, server: &Arc<str>, in_body: bool) -> Error {
        let server = Arc::clone(server);
        match self {
            Self::Left | Self::Closed if !in_body => Error::ClosedBeforeHead { server },
            Self::Left | Self::Closed | Self::Upload => Error::Truncated { server },
            Self::Io(kind) => Error::Read { server, source: kind.into(), in_body },
            Self::Silent => Error::Read { server, source: io::ErrorKind::TimedOut.into(), in_body },
            Self::Unsettled(after_ms) => {
                Error::Timeout { server, step: TimeoutStep::Connect, after_ms }
            }
            Self::Broken(source) => Error::Frames { server, source },
            Self::Refused => Error::Refused { server },
            Self::Reset(code) => Error::Reset { server, code, in_body },
            Self::Rejected(source) => Error::Fields { server, source },
            Self::TooManyInterim => Error::TooManyInterim { server },
        }
    }
}
