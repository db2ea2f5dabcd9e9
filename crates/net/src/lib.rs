//! Listeners and connection loops: what joins the HTTP engines to `flow`.
//!
//! One pinned thread per core, each with its own runtime, its own listening sockets
//! (`SO_REUSEPORT`) and its own connections, which never leave it. Nothing here decides about
//! caching or policy.
//!
//! `core` is what the connections of a core share, as data. Above it stand the parts that every
//! engine needs (`account`, `stream`, `segments`, `tunnel`, `caller`, `ending`), and `exchange`,
//! the course of a request whose answer must be waited for. It is generic over what an engine does
//! there. Then come the two engines' loops, `h1` and `h2`, which do not know each other, and at the
//! top `worker`, which accepts connections and hands each to one of them.

mod account;
mod address_lock;
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
pub use crate::heartbeat::Heartbeats;
pub use crate::listener::{InheritedSocket, ListenAddress};
pub use crate::log::{AccessLog, LogFormat, LogTarget, Opener};
pub use crate::restarts::run_with_restarts;
pub use crate::syslog::{Syslog, SyslogAt};
pub use crate::worker::{BindError, BoundListeners, ListenerSettings, Server, Settings};

#[cfg(feature = "simulation")]
pub use crate::worker::simulation::Port as SimulatedPort;
