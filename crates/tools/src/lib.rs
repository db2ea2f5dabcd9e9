//! Tools beside a running daemon: `top`, `hist`, `stat`, `log`, `logstat`, `explain`, `status`, and
//! the client of its admin socket.
//!
//! They are processes of their own: the daemon must never wait for them, and they write neither to
//! its log ring nor to its files.
//!
//! Begin with [`log()`], which follows the log ring through module `feed`, and with [`explain()`]
//! and [`purge()`], which are requests to the admin socket through module `client`. Module
//! `programs` runs verbs that other programs have.

// Some helpers are used by screens only.
#![cfg_attr(not(feature = "screens"), allow(dead_code, reason = "there are no screens"))]

mod client;
mod cluster;
mod dashboard;
mod explain;
mod feed;
#[cfg(feature = "screens")]
mod hist;
#[cfg(feature = "screens")]
mod live_view;
mod log;
mod logstat;
mod numbers;
mod output;
mod programs;
mod rollout;
#[cfg(feature = "screens")]
mod screen;
mod socket_help;
mod stat;
mod status;
mod tags;
#[cfg(feature = "screens")]
mod top;
mod warm;

pub use client::{AdminArgs, PurgeArgs, default_socket, purge, purge_all, reload};
pub use cluster::{ClusterOrderArgs, ClusterStatusArgs, ClusterVerb, cluster};
pub use dashboard::DashboardArgs;
pub use explain::{ExplainArgs, reasons};
pub use feed::read_ring;
#[cfg(feature = "screens")]
pub use hist::HistArgs;
#[cfg(feature = "screens")]
pub use live_view::{LiveView, MeasurementSnapshot};
pub use log::LogArgs;
pub use logstat::LogstatArgs;
pub use output::print;
pub use programs::{
    ExternalVerbArgs, Key, ProgramDescription, Section, SettingsReference, VerbDescription,
    exec_program, print_description, read_description,
};
pub use rollout::{ClusterRollBackArgs, ClusterRollOutArgs, ConfigurationLoader};
pub use stat::StatArgs;
pub use status::StatusArgs;
#[cfg(feature = "screens")]
pub use top::TopArgs;
pub use warm::WarmArgs;

pub use dashboard::run as dashboard;
pub use explain::run as explain;
#[cfg(feature = "screens")]
pub use hist::run as hist;
pub use log::run as log;
pub use logstat::run as logstat;
pub use stat::run as stat;
#[cfg(feature = "screens")]
pub use stat::run_moving as stat_moving;
pub use status::run as status;
#[cfg(feature = "screens")]
pub use top::run as top;
pub use warm::run as warm;
