//! HTTP/2 engine (RFC 9113, RFC 7541, RFC 9218) for servers: bytes in, requests out; answers in,
//! bytes out.
//!
//! Pure: no sockets, no clock, no globals. What it makes of a client's bytes is one canonical
//! [`message::Request`] or an error; received bytes are never forwarded.

mod bodies;
mod budget;
mod connection;
mod control;
mod decode;
mod encode;
mod error;
mod frame;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod heads;
mod huffman;
mod priority;
mod queue;
mod request;
mod responses;
mod streams;
mod table;
#[cfg(test)]
mod tests;

pub use connection::{Connection, Event, Settings, StreamHandle};
pub use decode::{Decoder, HpackError};
pub use encode::{EncodedFields, Encoder};
pub use error::{Code, ConnectionError};
pub use request::{Malformed, RequestError};
pub use responses::Grant;
