//! The declared policy's side of a fetch.

mod fetch;
mod notes;

pub(crate) use fetch::{ByPolicy, Instead, NamedFile, Switched, refresh};
