//! Listeners and connection loops: they join the HTTP engines to `flow`.
//!
//! One pinned thread per core has its own runtime, listening sockets and connections; a connection
//! must never leave its core. Nothing here may decide about caching or policy, and no byte of a
//! client may be buffered without a charge to its account.
//!
//! `core` is the data that a core's connections share; `exchange`, generic over an engine, is one
//! request with its reply; the loops `h1` and `h2` must not know each other; `worker` accepts.
//!
//! Begin with [`Server::start`], then `worker::AdmittedConnection::serve`, and `h1::conn::Conn`,
//! whose comment describes the life of a connection.

mod account;
mod address_lock;
mod bound_listeners;
mod caller;
mod client_socket;
mod connection_control;
mod connection_counts;
mod connection_memory;
mod core;
mod diag;
mod exchange;
mod file;
mod guard;
mod h1;
mod h2;
mod handshake;
mod head;
mod heartbeat;
mod lingering_close;
mod listener;
mod log;
mod open_connections;
mod pace;
mod proxy_header;
mod rate;
mod restarts;
mod scratch;
mod segments;
mod stream;
mod syslog;
mod tunnel;
mod worker;

pub use crate::address_lock::Sharing;
pub use crate::bound_listeners::{BindError, BoundListeners, ListenerSettings, ListenerSockets};
pub use crate::heartbeat::Heartbeats;
pub use crate::listener::{InheritedSocket, ListenAddress};
pub use crate::log::{AccessLog, LogFormat, LogTarget, Opener};
pub use crate::restarts::run_with_restarts;
pub use crate::syslog::{Syslog, SyslogAt};
pub use crate::worker::{Server, Settings};

#[cfg(feature = "simulation")]
pub use crate::worker::simulation::Port as SimulatedPort;
