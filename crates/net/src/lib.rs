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
mod again;
mod caller;
mod claim;
mod core;
mod diag;
mod ending;
mod exchange;
mod file;
mod grip;
mod guard;
mod h1;
mod h2;
mod handshake;
mod head;
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
