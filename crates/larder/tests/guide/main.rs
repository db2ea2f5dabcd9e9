//! The guide's promises, and README's: their blocks run, and the presets behave as their tables
//! say.

#[path = "../support/mod.rs"]
mod support;

mod pages;
mod presets;
