//! Tests of the store, in memory and on disk: what is stored, for how long, in which form, and how
//! it is removed.

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
mod overriding;
mod page_cache;
mod purge;
mod purge_clients;
mod purge_races;
mod slices;
mod vary;
mod verify;
mod warming;
mod webhook;
