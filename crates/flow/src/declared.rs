//! The declared policy's side of a fetch.

mod campaign;
mod confirm;
mod deliver;
mod fetch;
mod includes;
mod notes;
mod object;

pub(crate) use deliver::{fetched, is_negotiated, occasion, passing, shape, stored, switched};
pub(crate) use fetch::{ByPolicy, Instead, NamedFile, Switched, refresh};
pub(crate) use includes::of_stored as dialect_of;
pub(crate) use object::plan_by;
