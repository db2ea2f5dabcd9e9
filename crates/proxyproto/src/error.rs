//! Errors of a header.

use std::fmt;

/// The reason why a connection does not begin with a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// It begins with other bytes.
    Signature,
    /// A malformed version 1 line.
    Line,
    /// An unknown version, command, family or transport in version 2, or one that is not for
    /// streams.
    Kind,
    /// The header exceeds the limit.
    TooLong,
    /// The length does not match the content.
    Length,
    /// The checksum is wrong.
    Checksum,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Signature => "no PROXY protocol header",
            Self::Line => "a PROXY line that is not well-formed",
            Self::Kind => "a PROXY header of an unknown kind",
            Self::TooLong => "a PROXY header longer than is allowed",
            Self::Length => "a PROXY header whose length is wrong",
            Self::Checksum => "a PROXY header whose checksum is wrong",
        })
    }
}

impl std::error::Error for Error {}
