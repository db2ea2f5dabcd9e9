//! Tests of the promises of README and guide: their blocks work, and the presets keep the rules of
//! their tables.

#[path = "../support/mod.rs"]
mod support;

mod pages;
mod presets;
