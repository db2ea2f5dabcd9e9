//! PROXY protocol (HAProxy's `proxy-protocol.txt`), versions 1 and 2: the header in which a
//! balancer names the client of a connection.
//!
//! The crate has no I/O, and must never decide which peers are trusted. It is strict: the bytes
//! behind the header are taken for the client's own, so an ambiguous header is rejected, the
//! lengths of additional values (TLVs) are checked, and a checksum is verified.
//!
//! Begin with [`read`](crate::read()), which parses a header, and [`secured()`], which returns its
//! values about TLS.

mod crc;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
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
