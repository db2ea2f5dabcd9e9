//! Tests of the daemon from an operator's view: start and end, privileges, admin socket and
//! dashboard, logs, figures, and tools.

#[path = "../support/mod.rs"]
mod support;

mod admin;
mod admin_purge;
mod advise;
mod bench;
mod dashboard;
mod evidence;
mod explain;
mod explain_causes;
mod import;
mod log_formats;
mod logged_routes;
mod logs;
mod observe;
mod observe_tools;
mod operations;
mod parts;
mod privileges;
mod second_daemon;
mod service_manager;
mod starting;
mod tracing;
