//! Tests of cooperating daemons: a cluster over NATS, shared stores, siblings, and neighbours of
//! other makes.

#[path = "../support/mod.rs"]
mod support;

mod cluster;
mod cluster_configuration;
mod cluster_credentials;
mod cluster_orders;
mod cluster_secrets;
mod cluster_strangers;
mod htcp;
mod neighbours;
mod share;
mod share_slices;
mod siblings;
