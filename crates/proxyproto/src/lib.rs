//! The PROXY protocol (HAProxy's `proxy-protocol.txt`), versions 1 and 2: what a balancer sends
//! before a connection's own bytes, to say on whose behalf it was opened.
//!
//! Pure: it never touches a socket, and never decides who may be believed.
//!
//! It is strict: what follows is taken for the client's own bytes, so a header that can be read in
//! two ways is refused. Additional values (TLVs) are held against the header's length, and their
//! checksum is verified where there is one; [`secured()`] reads those that tell of TLS.

mod crc;
mod error;
mod header;
mod read;
mod secured;
#[cfg(test)]
mod tests;
mod v1;
mod v2;
mod write;

pub use error::Error;
pub use header::{Header, Progress};
pub use read::read;
pub use secured::{Secured, secured};
pub use write::{write_local, write_v1, write_v2, write_via};
