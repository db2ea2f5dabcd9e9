//! Faults of a header.

use std::fmt;

/// Why a connection does not begin with a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// It begins with something else.
    Signature,
    /// A version 1 line that is not as it must be.
    Line,
    /// A version, command, family or transport that version 2 does not know, or that is not for
    /// streams.
    Kind,
    /// The header is longer than is allowed.
    TooLong,
    /// The length is not that of what is in it.
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
