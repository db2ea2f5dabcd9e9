//! State that requests share: the configuration in force, the state of a core and of all cores,
//! what each feature keeps there, and requests and replies themselves.
//!
//! Must never use the steps of a request, which are layered above it.

pub(crate) mod assemble;
pub(crate) mod body;
pub(crate) mod client;
pub(crate) mod configuration_holder;
pub(crate) mod connections;
pub(crate) mod core;
pub(crate) mod crawlers;
pub(crate) mod dictionary;
pub(crate) mod downstream;
pub(crate) mod duty;
pub(crate) mod early_removal;
pub(crate) mod error_pages;
pub(crate) mod evidence;
pub(crate) mod finding_notices;
pub(crate) mod finish;
pub(crate) mod gate;
pub(crate) mod invalidate;
pub mod live_configuration;
pub(crate) mod mirror;
pub(crate) mod miss;
pub(crate) mod origin;
pub(crate) mod peers;
pub(crate) mod proxy_fields;
pub(crate) mod purges;
pub mod reply;
pub(crate) mod request_context;
pub(crate) mod shared;
pub(crate) mod siblings;
pub(crate) mod site;
pub(crate) mod site_context;
pub(crate) mod slices;
pub(crate) mod task_slots;
pub(crate) mod term;
pub(crate) mod tier;
pub(crate) mod trace;
pub(crate) mod unlogged_routes;
pub(crate) mod vcl;
pub(crate) mod verification;
pub(crate) mod warmth;
