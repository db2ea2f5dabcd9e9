//! Tests of guards before sites, and of attacks on the daemon itself.

#[path = "../support/mod.rs"]
mod support;

mod crawlers;
mod gates;
mod guarded;
mod guards_nginx;
mod h2_attacks;
mod memory_attacks;
mod rates;
mod signed_agents;
mod slow_clients;
