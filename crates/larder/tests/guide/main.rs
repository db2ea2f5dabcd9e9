//! Promises of README and guide: their blocks are done, and the presets hold what their tables say.

#[path = "../support/mod.rs"]
mod support;

mod pages;
mod presets;
