//! The test kit: faulty origins, raw clients and oracles, against which tests run Larder.
//!
//! It is a dev-dependency only. It must never use the engine, the cache or the flow: an oracle that
//! shares code with the tested program repeats its mistakes.
//!
//! Begin with [`larder::Daemon`], which runs the binary, [`origin::ScriptedOrigin`] and
//! [`client::RawClient`], which stand on both sides of it, and [`reference_reader`], which judges
//! the requests that reach an origin. [`differ`] compares Larder with Varnish.

pub mod client;
pub mod delay_line;
pub mod differ;
pub mod fastcgi;
pub mod faults;
pub mod framing_cases;
pub mod geoip;
pub mod h2;
pub mod larder;
pub mod large_file;
mod loopback;
pub mod origin;
pub mod reference_reader;
pub mod reply;
pub mod vclgen;
pub mod wire;
