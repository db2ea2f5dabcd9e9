//! Requests of sites that have a VCL: Varnish's request and fetch state machines over our store and
//! our origins.
//!
//! Each step runs a subroutine and returns what comes next. Nothing here waits but where a fetch, a
//! waiting list or a request's body does; a hit does not.

mod acting;
pub(crate) mod call;
mod delivery;
mod fetch;
pub(crate) mod foretell;
mod found;
mod job;
mod loops;
mod pipe;
mod refresh;
mod send;
pub(crate) mod start;
mod step;
mod steps;
mod storages;
mod store;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod wait;
mod world;

pub use crate::state::vcl::{Common, Line, Outside, Xids, link};
pub use vcl::ctx::{Connection, Measured, Peer as Owner, Times, TlsFacts};
pub use vcl::told::{Line as Logged, Ran, Switched, Told};
pub use world::Sight;
