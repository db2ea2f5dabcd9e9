//! Stored responses that serve as dictionaries, and the forms that are coded with them.

mod entry;
mod listed;
pub(crate) mod named;

pub(crate) use self::entry::{Birth, Dictionary, origin};
pub(crate) use self::listed::Dictionaries;
pub(crate) use self::named::{Named, form_with, had, is_readable, named};
