//! The daemon as a library: its state, its start, and the faces that it shows to operators and
//! their tools.
//!
//! A module uses only modules of lower floors, which a test here holds it to:
//!
//! ```text
//! start    13  serve
//! start    12  opened
//! faces    11  api
//! faces    10  dashboard metrics varnish_cli
//! faces     9  explain htcp live otlp outages pressure readiness stats
//! faces     8  rollout
//! faces     7  summary trial volumes
//! state     6  state
//! ground    5  build programs stapled
//! ground    4  material node source vcl
//! ground    3  neighbours secrets varnishd
//! ground    2  collector error_log error_pages fits load records shelf users
//! ground    1  giving keeper ports versions
//! ground    0  account allocator below carried given guard holders journal
//! ground    0  like notify ordered process ring servers sharing tended vsm
//! ```
//!
//! The state knows neither who asks nor how it was started; a face reads the state and knows no
//! other way in; the start makes both and joins them.

mod account;
mod allocator;
mod api;
mod below;
mod build;
mod carried;
mod collector;
mod dashboard;
mod error_log;
mod error_pages;
mod explain;
mod fits;
#[cfg(test)]
mod floors;
mod given;
mod giving;
mod guard;
mod holders;
mod htcp;
mod journal;
mod keeper;
mod like;
mod live;
mod load;
mod material;
mod metrics;
mod neighbours;
mod node;
mod notify;
mod opened;
mod ordered;
mod otlp;
mod outages;
mod ports;
mod pressure;
mod process;
mod programs;
mod readiness;
mod records;
mod ring;
mod rollout;
mod secrets;
mod serve;
mod servers;
mod sharing;
mod shelf;
mod source;
mod stapled;
mod state;
mod stats;
mod summary;
mod tended;
mod trial;
mod users;
mod varnish_cli;
mod varnishd;
mod vcl;
mod versions;
mod volumes;
mod vsm;

pub use account::RunAs;
pub use carried::Carried;
pub use given::Sockets;
pub use keeper::{KeeperArgs, run as keep};
pub use load::{load, render};
pub use material::{Material, check_material};
pub use net::Sharing;
pub use programs::gather;
pub use ring::usual_folder;
pub use serve::{helper_runtime, listeners, run};
pub use source::{Settings, Source};
pub use state::Daemon;
pub use varnish_cli::document;
pub use varnishd::{Flags, Program, Storage, own_secret};
pub use vcl::{Code, compile};
