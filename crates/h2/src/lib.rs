//! HTTP/2 engine (RFC 9113, RFC 7541, RFC 9218) for servers, without I/O: bytes in, requests out;
//! responses in, bytes out.
//!
//! Received bytes must never be forwarded: a client's bytes become one canonical
//! [`message::Request`] or an error. The engine knows neither sockets nor a clock, and schedules
//! bytes only as far as the client's windows permit.
//!
//! Begin with [`Connection`], its [`Event`]s, and [`Connection::grant`], which selects the next
//! bytes to send.

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
