//! The daemon as a library: its state, its start, and its faces: the interfaces to operators and
//! their tools.
//!
//! Begin reading at [`run`], which starts a daemon, and at [`Daemon`], its state. The state must
//! know neither its callers nor how it was started; a face reads the state and knows no other way
//! in; the start makes both and joins them.
//!
//! A module uses only modules of lower floors, which a test here holds it to:
//!
//! ```text
//! start    13  serve
//! start    12  open_listeners
//! faces    11  api
//! faces    10  dashboard metrics varnish_cli webhooks
//! faces     9  explain htcp live otlp outages pressure readiness stats
//! faces     8  rollout
//! faces     7  canary summary volumes warm_sources
//! state     6  state
//! ground    5  ocsp_staples programs site_assembly
//! ground    4  material node source vcl
//! ground    3  neighbours secrets varnishd
//! ground    2  cli_certificates collector config_file crawlers error_log error_pages
//! ground    2  geoip_file machine_warnings records redirect_files users
//! ground    1  folder_ownership hot_list_file keeper key_directories ports versions
//! ground    0  account address_holders allocator certificate_orders config_bundle
//! ground    0  disk_store documents glob guard managed_origin process ring server_log servers
//! ground    0  service_manager sharing socket_activation url_request vsm
//! ```

mod account;
mod address_holders;
mod allocator;
mod api;
mod canary;
mod certificate_orders;
mod cli_certificates;
mod collector;
mod config_bundle;
mod config_file;
mod crawlers;
mod dashboard;
mod disk_store;
mod documents;
mod error_log;
mod error_pages;
mod explain;
#[cfg(test)]
mod floors;
mod folder_ownership;
mod geoip_file;
mod glob;
mod guard;
mod hot_list_file;
mod htcp;
mod keeper;
mod key_directories;
mod live;
mod machine_warnings;
mod managed_origin;
mod material;
mod metrics;
mod neighbours;
mod node;
mod ocsp_staples;
mod open_listeners;
mod otlp;
mod outages;
mod ports;
mod pressure;
mod process;
mod programs;
mod readiness;
mod records;
mod redirect_files;
mod ring;
mod rollout;
mod secrets;
mod serve;
mod server_log;
mod servers;
mod service_manager;
mod sharing;
mod site_assembly;
mod socket_activation;
mod source;
mod state;
mod stats;
mod summary;
mod url_request;
mod users;
mod varnish_cli;
mod varnishd;
mod vcl;
mod versions;
mod volumes;
mod vsm;
mod warm_sources;
mod webhooks;

pub use account::RunAs;
pub use config_bundle::ConfigBundle;
pub use config_file::{load, render};
pub use keeper::{KeeperArgs, run as keep};
pub use material::{Material, check_material};
pub use net::Sharing;
pub use programs::{check_programs, gather};
pub use ring::usual_folder;
pub use serve::{helper_runtime, listeners, run};
pub use socket_activation::Sockets;
pub use source::{ConfigSource, DaemonOptions};
pub use state::Daemon;
pub use varnish_cli::document;
pub use varnishd::{Flags, ProgramFlag, Storage, own_secret};
pub use vcl::{Code, compile};
