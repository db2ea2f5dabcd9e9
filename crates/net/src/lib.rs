//! Listeners and connection loops: what joins the HTTP engines to `flow`.
//!
//! One pinned thread per core, each with its own runtime, its own listening sockets
//! (`SO_REUSEPORT`) and its own connections, which never leave it. Nothing here decides about
//! caching or policy.

mod account;
mod again;
mod claim;
mod conn;
mod core;
mod diag;
mod early;
mod exchange;
mod file;
mod grip;
mod guard;
mod h2;
mod handshake;
mod head;
mod last;
mod listener;
mod log;
mod pace;
mod peers;
mod proxied;
mod pulse;
mod rate;
mod room;
mod scratch;
mod segments;
mod stream;
mod syslog;
mod tunnel;
mod upload;
mod wait;
mod wire;
mod worker;

pub use crate::again::keep;
pub use crate::claim::Sharing;
pub use crate::listener::{At, Given};
pub use crate::log::{AccessLog, LogFormat, LogTarget, Opener};
pub use crate::pulse::Pulse;
pub use crate::syslog::{Syslog, SyslogAt};
pub use crate::worker::{BindError, Doors, Listen, Server, Settings};

#[cfg(feature = "simulation")]
pub use crate::worker::simulation::Port as SimulatedPort;
