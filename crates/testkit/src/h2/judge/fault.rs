//! Faults: violations of the protocol by a server.

use std::fmt;

/// The first violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProtocolFault {
    /// The first frame is no SETTINGS (RFC 9113 3.4).
    FirstFrame(u8),
    /// A frame longer than the client allows (4.2).
    FrameBytes(usize),
    /// A frame on the connection that belongs on a stream, or the reverse (6).
    Stream {
        /// The frame's type.
        kind: u8,
        /// The frame's stream.
        stream: u32,
    },
    /// A frame on a stream that the client did not open (5.1).
    Idle {
        /// The frame's type.
        kind: u8,
        /// The frame's stream.
        stream: u32,
    },
    /// A frame after the response's end or after a reset (5.1).
    AfterEnd {
        /// The frame's type.
        kind: u8,
        /// The frame's stream.
        stream: u32,
    },
    /// Another frame within a field block (6.10).
    Interrupted(u8),
    /// A CONTINUATION that continues nothing (6.10).
    LoneContinuation,
    /// A payload of the wrong length for its type (6).
    Length {
        /// The frame's type.
        kind: u8,
    },
    /// More padding than payload (6.1).
    Padding,
    /// A field block that cannot be decoded (RFC 7541).
    Compression(String),
    /// A missing change of the table's size after the client reduced it (RFC 7541 4.2).
    TableSize,
    /// A field name in upper case or with invalid bytes (8.2.1).
    FieldName(String),
    /// A value with NUL, CR or LF, or surrounded by blanks (8.2.1).
    FieldValue(String),
    /// A connection field (8.2.2).
    ConnectionField(String),
    /// A pseudo-field that is unknown, repeated, misplaced or missing (8.3).
    PseudoField(String),
    /// A `:status` that is not three digits, or 101 (8.3.2, 8.6).
    Status(String),
    /// A misplaced interim response or second head, or one that wrongly ends or does not end the
    /// stream (8.1).
    Order,
    /// DATA before a head, or where method or status forbid a body (8.1, RFC 9110 6.4.1).
    Body,
    /// A body whose length differs from Content-Length (8.1.1).
    ContentLength {
        /// The field's value.
        declared: String,
        /// Bytes received.
        came: usize,
    },
    /// DATA beyond the stream's window (6.9.1).
    StreamWindow {
        /// The stream.
        stream: u32,
        /// Bytes too many.
        by: i64,
    },
    /// DATA beyond the connection's window, with the excess in bytes (6.9.1).
    ConnectionWindow(i64),
    /// An increment of 0, or beyond the largest window (6.9).
    WindowIncrement,
    /// A setting with an invalid value (6.5.2).
    Setting {
        /// The setting.
        id: u16,
        /// The value.
        value: u32,
    },
    /// An acknowledgement without a SETTINGS or PING (6.5, 6.7).
    UnaskedAck,
    /// A GOAWAY with a higher stream than an earlier one (6.8).
    RaisedLastStream(u32),
    /// A push, which the client has disabled (8.4).
    Push,
}

impl fmt::Display for ProtocolFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}
