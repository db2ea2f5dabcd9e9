//! Multiplexing: many exchanges at once over one connection (HTTP/2, RFC 9113).
//!
//! A connection belongs to the core that opened it. One task moves its bytes; an exchange reads
//! what the task has left for its stream. A stream that is dropped before its end must be reset,
//! and a response must never end cleanly if its stream did not.

mod attempt;
mod body;
mod connection;
mod driver;
mod failure;
mod liveness;
mod pool;
mod stream_memory;
mod upload;

pub(crate) use self::attempt::StreamResponse;
pub(crate) use self::body::{BodyProgress, BodyTimeouts, StreamBody};
pub(crate) use self::connection::MultiplexedConnection;
pub(crate) use self::driver::{MultiplexOpening, connect};
pub(crate) use self::pool::{Checkout, MultiplexPool, OpeningGuard};
