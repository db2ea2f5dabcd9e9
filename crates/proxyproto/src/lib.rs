//! The PROXY protocol (HAProxy's `proxy-protocol.txt`), versions 1 and 2: what a balancer sends
//! before a connection's own bytes, to say on whose behalf it was opened.
//!
//! Pure: it never touches a socket, and never decides who may be believed.
//!
//! It is strict: what follows is taken for the client's own bytes, so a header that can be read in
//! two ways is refused. Additional values (TLVs) are held against the header's length, and their
//! checksum is verified where there is one; [`secured()`] reads those that tell of TLS.

mod crc;
mod secured;
#[cfg(test)]
mod tests;
mod v1;
mod v2;
mod write;

use std::fmt;
use std::net::SocketAddr;

pub use secured::{Secured, secured};
pub use write::{write_local, write_v1, write_v2, write_via};

/// The meaning of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// The connection is the balancer's own, a health check for instance (LOCAL).
    Local,
    /// It is somebody's who has no address, or whose address is not told (UNKNOWN, AF_UNSPEC,
    /// AF_UNIX).
    Unnamed,
    /// It is somebody's at an address. Addresses are canonical: no IPv4 address is written as IPv6.
    Proxied {
        /// Address of the client that connected to the balancer.
        source: SocketAddr,
        /// Address that the client connected to.
        destination: SocketAddr,
    },
}

/// The progress of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More is needed.
    Partial,
    /// A whole header, and how many bytes it is long.
    Complete(Header, usize),
}

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

/// Reads the header that `bytes`, a connection's first, begin with. Call it again with more of
/// them while it is [`Progress::Partial`]; what follows the header is left alone.
///
/// `max` bounds a version 2 header in bytes, additional values included. A version 1 line has at
/// most 107.
///
/// # Errors
/// As soon as the bytes cannot become a header.
pub fn read(bytes: &[u8], max: usize) -> Result<Progress, Error> {
    match bytes.first() {
        None => Ok(Progress::Partial),
        Some(b'P') => v1::read(bytes),
        Some(_) => v2::read(bytes, max),
    }
}

/// Tells whether one of the two begins with the other.
fn agree(bytes: &[u8], with: &[u8]) -> bool {
    bytes.iter().zip(with).all(|(a, b)| a == b)
}

/// The address that an IPv6 address stands for, when it maps an IPv4 one.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
