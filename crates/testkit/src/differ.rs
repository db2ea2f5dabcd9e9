//! The differ: one VCL, one set of clients and origins, two servers. It reports every difference.
//!
//! A [`scenario`] says what to do, and never what must come of it: Varnish ([`peer`]) is the
//! oracle, and Larder must do the same. The differ must never share code with the engine, and never
//! tolerate more than [`comparison`] says.

pub mod cli;
mod client;
pub mod comparison;
mod counters;
mod origin;
pub mod peer;
pub mod scenario;
mod scenario_run;
pub mod suite;
