//! Why coding or decoding stops.

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
    /// Its name in messages and counters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Size => "decoded_bytes",
            Self::Ratio => "decoded_ratio",
            Self::Window => "decoded_window",
        }
    }
}

/// Why a stream cannot be coded or decoded any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Error {
    /// The bytes are not a stream in their coding, or their checksum is wrong.
    Corrupt,
    /// The stream is not whole where its bytes end.
    Truncated,
    /// Something else follows the stream.
    Trailing,
    /// The stream is beyond a limit.
    Limit(DecodeLimit),
    /// There is no memory, or a library refuses what it has to do.
    Library,
    /// Nothing is left of the memory that coders may take, as whoever reserves it found.
    Memory,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Corrupt => f.write_str("coded content is malformed"),
            Self::Truncated => f.write_str("coded content ends too early"),
            Self::Trailing => f.write_str("coded content is followed by something else"),
            Self::Limit(limit) => write!(f, "coded content is beyond {}", limit.name()),
            Self::Library => f.write_str("a coder has failed"),
            Self::Memory => f.write_str("no memory is left for a coder"),
        }
    }
}

impl std::error::Error for Error {}
