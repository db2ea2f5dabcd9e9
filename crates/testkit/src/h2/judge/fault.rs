//! Faults of a server.

use std::fmt;

/// The first thing that a server did and may not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProtocolFault {
    /// The first frame is no SETTINGS (RFC 9113 3.4).
    FirstFrame(u8),
    /// A frame longer than the client allows (4.2).
    FrameBytes(usize),
    /// A frame on the connection that belongs to a stream, or the reverse (6).
    Stream {
        /// Its type.
        kind: u8,
        /// Where it came.
        stream: u32,
    },
    /// A frame on a stream that the client never opened (5.1).
    Idle {
        /// Its type.
        kind: u8,
        /// Where it came.
        stream: u32,
    },
    /// A frame after the answer's end or after a reset (5.1).
    AfterEnd {
        /// Its type.
        kind: u8,
        /// Where it came.
        stream: u32,
    },
    /// Another frame within a header block (6.10).
    Interrupted(u8),
    /// A CONTINUATION that continues nothing (6.10).
    LoneContinuation,
    /// A payload of the wrong length for its type (6).
    Length {
        /// The type.
        kind: u8,
    },
    /// More padding than payload (6.1).
    Padding,
    /// A header block that cannot be read (RFC 7541).
    Compression(String),
    /// No change of the table's size after the client made it smaller (RFC 7541 4.2).
    TableSize,
    /// A field name in upper case or with bytes that no token has (8.2.1).
    FieldName(String),
    /// A value with NUL, CR or LF, or with blanks around it (8.2.1).
    FieldValue(String),
    /// A field about the connection (8.2.2).
    ConnectionField(String),
    /// A pseudo-field that is unknown, repeated, misplaced or missing (8.3).
    PseudoField(String),
    /// A `:status` that is not three digits, or 101 (8.3.2, 8.6).
    Status(String),
    /// An interim response, or a head after the head, with or without an end where it cannot be
    /// (8.1).
    Order,
    /// DATA before a head, or where the method or the status allows none (8.1, RFC 9110 6.4.1).
    Body,
    /// A body longer or shorter than its Content-Length (8.1.1).
    ContentLength {
        /// The field's value.
        declared: String,
        /// Bytes that came.
        came: usize,
    },
    /// More DATA than the stream's window had, by so much (6.9.1).
    StreamWindow {
        /// The stream.
        stream: u32,
        /// Bytes too many.
        by: i64,
    },
    /// The same of the connection's window.
    ConnectionWindow(i64),
    /// An increment of nothing, or beyond the largest window (6.9).
    WindowIncrement,
    /// A setting with a value it cannot have (6.5.2).
    Setting {
        /// The setting.
        id: u16,
        /// Its value.
        value: u32,
    },
    /// An acknowledgement of what was never sent (6.5, 6.7).
    UnaskedAck,
    /// A GOAWAY with a higher stream than an earlier one (6.8).
    RaisedLastStream(u32),
    /// A push, which no client here takes (8.4).
    Push,
}

impl fmt::Display for ProtocolFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}
