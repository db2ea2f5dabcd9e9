//! The daemon as a library: its state, its start, and the faces that it shows to operators and
//! their tools.

mod account;
mod allocator;
mod api;
mod build;
mod dashboard;
mod explain;
mod given;
mod holders;
mod htcp;
mod journal;
mod keeper;
mod like;
mod live;
mod load;
mod material;
mod metrics;
mod notify;
mod opened;
mod ordered;
mod otlp;
mod ports;
mod pressure;
mod programs;
mod ring;
mod serve;
mod stapled;
mod stats;
mod varnish_cli;
mod varnishd;
mod vcl;

pub use account::Wanted;
pub use given::Sockets;
pub use keeper::{KeeperArgs, run as keep};
pub use load::{load, render};
pub use material::{Material, read_material};
pub use ring::usual_folder;
pub use serve::{Daemon, Settings, Source, helper_runtime, listeners, run};
pub use varnish_cli::document;
pub use varnishd::{Flags, Program, Storage, own_secret};
pub use vcl::{Code, compile};
