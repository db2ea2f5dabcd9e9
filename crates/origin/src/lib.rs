//! Client side: origins, their servers, and exchanges with them over HTTP/1.1, HTTP/2 and FastCGI,
//! TCP and unix sockets.
//!
//! This crate must never send a request twice that may have been acted on and is not idempotent,
//! reuse a connection whose state is uncertain, end a truncated body cleanly, or wait without a
//! bound. Framing is the task of `h1`, `h2` and `fastcgi` alone.
//!
//! Begin with [`Origin`], which all cores share (settings, addresses, health, retry budget),
//! [`CorePool`], which is one core's (idle connections and buffers), and [`Exchange`], a response
//! being read. [`run_background`] resolves names and probes servers, away from any request.

mod attempt;
mod background;
mod balance;
mod budget;
mod client_ends;
mod config;
mod deadline;
mod error;
mod events;
mod exchange;
mod exchange_slots;
mod fastcgi_exchange;
mod health;
mod journal;
mod multiplex;
mod names;
mod origin;
mod owner;
mod pace;
mod pool;
mod probe;
mod request_tries;
mod reserved_addresses;
mod resolution;
mod retry;
mod scripts;
mod server;
mod shared_pool;
mod socket_advice;
mod spool;
mod stream;
mod traffic_counters;
mod tunnel;
mod upload;
mod upstream_connection;

pub use background::run_background;
pub use client_ends::ClientEnds;
pub use config::{
    AccelConfig, Address, Balance, EjectConfig, HolddownTimes, HttpVersion, LookupTtl, Lookups,
    Opening, OriginConfig, ProbeConfig, Protocol, ProxyHeader, ScriptsConfig, ServerConfig,
    ServerUrlError, Timeouts, TlsConfig, parse_server,
};
pub use error::{Error, RequestBodyError, SourceError, TimeoutStep};
pub use events::Events;
pub use exchange::Exchange;
pub use fastcgi::params::AddedParameter;
pub use fastcgi::script::{ScriptRules, TryFilesEntry};
pub use fastcgi_exchange::OriginRequestContext;
pub use health::{HealthOverride, ProbeHistory, ProbeVerdict};
pub use journal::{HealthChange, Journal, ServerMessage};
pub use names::AddressCache;
pub use origin::{LikelyServer, Origin, ServerStatus};
pub use owner::{Owner, logs_in};
pub use pace::LookupPace;
pub use pool::CorePool;
pub use reserved_addresses::ReservedAddresses;
pub use resolution::{AddressNames, look_up};
pub use retry::{RetryOn, Statuses};
pub use shared_pool::SharedPool;
pub use socket_advice::socket_advice;
pub use traffic_counters::ServerTraffic;
pub use tunnel::Tunnel;
pub use upload::{BodySource, RequestBody};
