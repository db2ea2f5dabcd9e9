//! Origins that misbehave, raw clients and oracles: what tests hold against Larder.
//!
//! Only ever a dev-dependency. Nothing here may use the engine, the cache or the flow: a judge that
//! shares code with the accused repeats its mistakes.

pub mod client;
pub mod delay_line;
pub mod differ;
pub mod fastcgi;
pub mod faults;
pub mod framing_cases;
pub mod h2;
pub mod larder;
pub mod large_file;
mod loopback;
pub mod origin;
pub mod reference_reader;
pub mod reply;
pub mod vclgen;
pub mod wire;
