//! The differ: one VCL, one set of clients and origins, two servers; what is not the same is told.
//!
//! A [`scenario`] is a text that says what to do and never what must come of it: Varnish is asked
//! ([`peer`]), and Larder is to be no different. It must never share code with the engine, and
//! never forgive more than [`compare`] says.

pub mod cli;
mod client;
pub mod comparison;
mod counters;
mod origin;
pub mod peer;
pub mod scenario;
mod scenario_run;
pub mod suite;
