//! Clusters and neighbours: nodes over NATS, shared stores, siblings, and caches of other makes.

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
