//! The declared policy's side of a fetch.

mod confirm;
mod deliver;
mod fetch;
mod includes;
mod instead;
mod notes;
mod object;

pub(crate) use deliver::{fetched, is_negotiated, occasion, passing, stored, switched};
pub(crate) use fetch::{ByPolicy, refresh};
pub(crate) use includes::of_stored as dialect_of;
pub(crate) use instead::Instead;
