//! Guards of sites, and attacks on the daemon.

#[path = "../support/mod.rs"]
mod support;

mod gates;
mod guarded;
mod guards_nginx;
mod h2_attacks;
mod memory_attacks;
mod rates;
mod slow_clients;
