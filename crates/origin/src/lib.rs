//! The client side: origins, their servers, and exchanges with them over HTTP/1.1, TCP and unix
//! sockets.
//!
//! [`Origin`] is what all cores share: settings, addresses, health, the retry budget. [`CorePool`]
//! is one core's: kept connections and buffers; it never leaves its thread. [`run_background`]
//! looks names up and probes servers, away from any request. An [`Exchange`] is one response being
//! read.
//!
//! What this crate must never do: send a request twice that may have been acted on and is not
//! idempotent; reuse a connection about which anything is in doubt; end a body cleanly that was
//! cut; wait without a bound. Framing is `h1`'s business alone.

mod attempt;
mod background;
mod balance;
mod budget;
mod config;
mod deadline;
mod error;
mod exchange;
mod health;
mod origin;
mod pool;
mod probe;
mod resolve;
mod send;
mod server;
mod stream;
mod upload;

pub use background::run_background;
pub use config::{
    Address, Balance, EjectConfig, OriginConfig, ProbeConfig, ServerConfig, ServerUrlError,
    Timeouts, parse_server,
};
pub use error::{Error, RequestBodyError, SourceError, Step};
pub use exchange::Exchange;
pub use health::Probed;
pub use origin::{Origin, ServerStatus};
pub use pool::CorePool;
pub use send::Events;
pub use upload::{BodySource, RequestBody};
