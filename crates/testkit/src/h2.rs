//! HTTP/2 for tests: a client that sends any frames, and a judge of the frames that the server
//! sends.
//!
//! It is written from RFC 9113 and must never share code with crate `h2`. Requests use this
//! module's literal-only HPACK; responses are decoded by another library. Nothing here repairs,
//! retries or reconnects.

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
