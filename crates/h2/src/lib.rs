//! HTTP/2 engine (RFC 9113, RFC 7541, RFC 9218) for servers: bytes in, requests out; answers in,
//! bytes out.
//!
//! Pure: no sockets, no clock, no globals. What it makes of a client's bytes is one canonical
//! [`message::Request`] or an error; received bytes are never forwarded.

mod decode;
mod encode;
pub mod fuzz;
mod huffman;
mod priority;
mod request;
mod table;

pub use decode::{Decoder, HpackError};
pub use encode::{Block, Encoder};
pub use request::{Malformed, RequestError};
