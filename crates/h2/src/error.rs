//! Errors: the reasons why a connection or a stream ends.

use std::fmt;

use base::Limit;

use crate::decode::HpackError;

/// Error codes (RFC 9113 7) that this end sends or acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Code {
    /// No error.
    None = 0,
    /// The client has violated the protocol.
    Protocol = 1,
    /// An internal error of this end.
    Internal = 2,
    /// The client has exceeded a window.
    FlowControl = 3,
    /// A frame on a stream that has ended.
    StreamClosed = 5,
    /// A frame of an invalid length for its type.
    FrameSize = 6,
    /// A stream that was not processed: the request may be retried.
    RefusedStream = 7,
    /// A stream that is no longer needed.
    Cancel = 8,
    /// A malformed field block.
    Compression = 9,
    /// Too many frames that cost work.
    EnhanceYourCalm = 11,
    /// The request needs HTTP/1.1.
    Http11Required = 13,
}

impl Code {
    /// The name of a code in RFC 9113, if it is known.
    pub fn name(code: u32) -> Option<&'static str> {
        const NAMES: [&str; 14] = [
            "NO_ERROR",
            "PROTOCOL_ERROR",
            "INTERNAL_ERROR",
            "FLOW_CONTROL_ERROR",
            "SETTINGS_TIMEOUT",
            "STREAM_CLOSED",
            "FRAME_SIZE_ERROR",
            "REFUSED_STREAM",
            "CANCEL",
            "COMPRESSION_ERROR",
            "CONNECT_ERROR",
            "ENHANCE_YOUR_CALM",
            "INADEQUATE_SECURITY",
            "HTTP_1_1_REQUIRED",
        ];
        NAMES.get(usize::try_from(code).ok()?).copied()
    }
}

/// The reason why a connection must end; the code is sent in its last GOAWAY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionError {
    /// The code for the client.
    pub code: Code,
    /// The limit that was exceeded, if it was one.
    pub limit: Option<Limit>,
    /// The fault, as text for logs.
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
