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
mod reader;
#[cfg(test)]
mod tests;
mod tls_values;
mod v1;
mod v2;
mod writer;

pub use error::Error;
pub use header::{Header, HeaderProgress};
pub use reader::read;
pub use tls_values::{TlsValues, secured};
pub use writer::{write_local, write_v1, write_v2, write_via};
