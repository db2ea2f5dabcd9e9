//! VCL: requests of sites with a program. These are Varnish's request and fetch state machines over
//! Larder's store and origins.
//!
//! Each step runs a subroutine and returns the next step. Must never wait in a step: only a fetch,
//! another request's fetch or a request's body makes a request wait, a hit does not.

mod acting_core;
mod backend_request;
pub(crate) mod call;
mod delivery;
pub(crate) mod extra;
pub(crate) mod extra_fetch;
mod fetch;
pub(crate) mod foretell;
mod job;
mod loop_detection;
mod pipe;
mod refresh;
pub(crate) mod start;
mod step;
mod steps;
mod storages;
mod store;
mod stored_object;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod wait;
mod world;

pub use crate::state::vcl::{HostServices, SharedVcl, VclConnection, Xids, link};
pub use vcl::ctx::{Connection, ConnectionTimeouts, PeerCredentials as Owner, TcpInfo, TlsFacts};
pub use vcl::trace::{LabelSwitch, LogLine as Logged, ProgramTrace, SubroutineRun};
pub use world::ProgramWorld;
