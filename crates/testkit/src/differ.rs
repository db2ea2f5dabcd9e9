//! The differ: one VCL, one set of clients and origins, two servers; what is not the same is told.
//!
//! A [`scenario`] is a text that says what to do and never what must come of it: Varnish is asked
//! ([`peer`]), and Larder is to be no different. It must never share code with the engine, and
//! never forgive more than [`compare`] says.

pub mod cli;
mod client;
pub mod compare;
mod counters;
mod origin;
pub mod peer;
mod play;
pub mod scenario;
pub mod suite;
