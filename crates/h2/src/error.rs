//! Why a connection or a stream ends.

use std::fmt;

use base::Limit;

use crate::decode::HpackError;

/// Error codes (RFC 9113 7) that this end sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Code {
    /// Nothing is wrong.
    None = 0,
    /// The protocol was broken.
    Protocol = 1,
    /// A fault of this end's.
    Internal = 2,
    /// More was sent than a window had room for.
    FlowControl = 3,
    /// A frame on a stream that is over.
    StreamClosed = 5,
    /// A frame of a length that its type does not have.
    FrameSize = 6,
    /// A stream that was not looked at: the request can be made again.
    RefusedStream = 7,
    /// A stream that is no longer wanted.
    Cancel = 8,
    /// A field block that cannot be read.
    Compression = 9,
    /// Too much of what costs work.
    EnhanceYourCalm = 11,
}

/// Why a connection must end; the code goes into its last GOAWAY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionError {
    /// The code that the client is told.
    pub code: Code,
    /// The limit that was reached, if it was one.
    pub limit: Option<Limit>,
    /// The fault, in words for logs.
    pub reason: &'static str,
}

impl ConnectionError {
    pub(crate) const fn new(code: Code, reason: &'static str) -> Self {
        Self { code, limit: None, reason }
    }

    pub(crate) const fn protocol(reason: &'static str) -> Self {
        Self::new(Code::Protocol, reason)
    }

    pub(crate) const fn limit(limit: Limit, reason: &'static str) -> Self {
        Self { code: Code::EnhanceYourCalm, limit: Some(limit), reason }
    }
}

impl From<HpackError> for ConnectionError {
    fn from(error: HpackError) -> Self {
        match error {
            HpackError::Enough => Self::limit(Limit::HeaderBytes, "a field list far too large"),
            _ => Self::new(Code::Compression, "a field block that cannot be read"),
        }
    }
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason)
    }
}

impl std::error::Error for ConnectionError {}
