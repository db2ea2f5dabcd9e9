//! HTTP/2 as a client that may do anything: frames byte by byte as told, and a judge of whatever
//! the server sends back.
//!
//! Written from RFC 9113 and never to share code with crate `h2`. Requests are written with this
//! module's own literal-only HPACK; answers are read with a decoder from elsewhere. Nothing here
//! repairs, retries or reconnects.

mod client;
pub mod downgrade;
mod fields;
pub mod frames;
mod judge;
mod request;

pub use client::{Client, ConnectionEvent, Farewell, Manners, RequestOutcome};
pub use fields::{FieldBlock, FieldList};
pub use frames::{Frame, PREFACE, error, flag, kind, setting};
pub use judge::{Exchange, Judge, ProtocolFault, SeenFrame};
pub use request::Request;
