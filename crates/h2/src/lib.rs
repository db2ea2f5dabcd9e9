//! HTTP/2 engines (RFC 9113, RFC 7541, RFC 9218) for both sides, without I/O. For servers: bytes
//! in, requests out; responses in, bytes out. For clients the reverse.
//!
//! Received bytes must never be forwarded: a client's bytes become one canonical
//! [`message::Request`], and a server's one [`message::Response`], or an error. The engines know
//! neither sockets nor a clock, and send bytes only as far as the peer's windows permit.
//!
//! Begin with [`Connection`], its [`Event`]s, and [`Connection::grant`], which selects the next
//! bytes to send; for the client's side with [`ClientConnection`] and its [`ClientEvent`]s.

mod bodies;
mod budget;
mod client;
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
mod payload;
mod priority;
mod queue;
mod request;
mod responses;
mod streams;
mod table;
#[cfg(test)]
mod tests;

pub use client::{ClientConnection, ClientEvent, ClientSettings, ResponseError};
pub use connection::{Connection, Event, Settings, StreamHandle};
pub use decode::{Decoder, HpackError};
pub use encode::{EncodedFields, Encoder};
pub use error::{Code, ConnectionError};
pub use request::{Malformed, RequestError};
pub use responses::Grant;
