//! The client side: origins, their servers, and exchanges with them over HTTP/1.1 and FastCGI, TCP
//! and unix sockets.
//!
//! [`Origin`] is what all cores share: settings, addresses, health, the retry budget. [`CorePool`]
//! is one core's: kept connections and buffers; it never leaves its thread. [`run_background`]
//! looks names up and probes servers, away from any request. An [`Exchange`] is one response being
//! read.
//!
//! This crate must never send a request twice that may have been acted on and is not idempotent,
//! reuse a connection about which anything is in doubt, end a body cleanly that was cut, or wait
//! without a bound. Framing is the business of `h1` and `fastcgi` alone.

mod attempt;
mod background;
mod balance;
mod budget;
mod config;
mod deadline;
mod denied;
mod depot;
mod ends;
mod error;
mod events;
mod exchange;
mod health;
mod journal;
mod link;
mod names;
mod origin;
mod owner;
mod pace;
mod places;
mod pool;
mod probe;
mod reserved;
mod resolve;
mod retry;
mod scripts;
mod send;
mod server;
mod spool;
mod stream;
mod talk;
mod tally;
mod tunnel;
mod upload;

pub use background::run_background;
pub use config::{
    AccelConfig, Address, Balance, EjectConfig, Hold, LookupTtl, Lookups, Opening, OriginConfig,
    ProbeConfig, Protocol, ProxyHeader, ScriptsConfig, ServerConfig, ServerUrlError, Timeouts,
    TlsConfig, parse_server,
};
pub use denied::socket_advice;
pub use depot::Depot;
pub use ends::ClientEnds;
pub use error::{Error, RequestBodyError, SourceError, Step};
pub use events::Events;
pub use exchange::Exchange;
pub use fastcgi::script::{Rules as ScriptRules, Try};
pub use health::{Order, ProbeHistory, Probed};
pub use journal::{Journal, Said, Turn};
pub use names::Names;
pub use origin::{Origin, ServerStatus};
pub use owner::{Owner, logs_in};
pub use pace::Pace;
pub use pool::CorePool;
pub use reserved::Reserved;
pub use resolve::look_up;
pub use retry::{RetryOn, Statuses};
pub use talk::Caller;
pub use tally::Moved;
pub use tunnel::Tunnel;
pub use upload::{BodySource, RequestBody};
