//! Declared policy: the judge of a fetch for sites without a program, and the delivery of
//! responses.

mod beside;
mod delivery;
mod fetch;
mod includes;
mod interception;
mod notes;
mod object;
mod revalidation;
mod sticky;
mod substitute;
mod unsafe_request;

pub(crate) use delivery::{dictionary_context, fetched, is_negotiated, passing, stored, switched};
pub(crate) use fetch::{PolicyJudge, refresh};
pub(crate) use includes::of_stored as dialect_of;
pub(crate) use interception::page_for;
pub(crate) use substitute::SubstituteAnswer;
