//! Errors of encoders and decoders. After one, the stream must not be used.

use std::fmt;

/// A limit of decoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DecodeLimit {
    /// [`crate::DecodeLimits::size_bytes`].
    Size,
    /// [`crate::DecodeLimits::ratio`].
    Ratio,
    /// [`crate::DecodeLimits::window_bits`].
    Window,
}

impl DecodeLimit {
    /// Name of the limit in messages and counters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Size => "decoded_bytes",
            Self::Ratio => "decoded_ratio",
            Self::Window => "decoded_window",
        }
    }
}

/// Error of an encoder or decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Error {
    /// The bytes are malformed in their coding, or the checksum is wrong.
    Corrupt,
    /// The stream is incomplete at the end of the input.
    Truncated,
    /// Other bytes follow the end of the stream.
    Trailing,
    /// The stream exceeds a limit.
    Limit(DecodeLimit),
    /// Memory is exhausted, or a library fails.
    Library,
    /// The caller could not reserve the memory for a coder.
    Memory,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Corrupt => f.write_str("coded content is malformed"),
            Self::Truncated => f.write_str("coded content ends too early"),
            Self::Trailing => f.write_str("coded content is followed by something else"),
            Self::Limit(limit) => write!(f, "coded content exceeds {}", limit.name()),
            Self::Library => f.write_str("a coder has failed"),
            Self::Memory => f.write_str("no memory is left for a coder"),
        }
    }
}

impl std::error::Error for Error {}
