//! The cache, in memory and on disk: which objects are stored, for how long, in which form, and
//! what invalidates them.

#[path = "../support/mod.rs"]
mod support;

mod both_policies;
mod caching;
mod coalescing;
mod compression;
mod dictionaries;
mod disk;
mod disk_faults;
mod disk_slow;
mod disk_verb;
mod esi;
mod fragments;
mod freshness;
mod hits;
mod larger_than_memory;
mod page_cache;
mod purge;
mod purge_clients;
mod purge_races;
mod slices;
