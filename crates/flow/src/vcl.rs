//! Requests of sites that have a VCL: Varnish's request and fetch state machines over our store and
//! our origins.
//!
//! Each step runs a subroutine and returns what comes next. Nothing here waits but where a fetch, a
//! waiting list or a request's body does; a hit does not.

mod acting_core;
mod backend_request;
pub(crate) mod call;
mod delivery;
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
