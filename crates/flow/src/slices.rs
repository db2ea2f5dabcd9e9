//! Slices: large bodies stored as a set of objects, each an aligned part.
//!
//! The set is the body of an ordinary stored response. Its slices are ordinary objects under keys
//! that no request can make, so each is fetched once, weighed, and evicted alone. One validator
//! binds them: a part of another version ends the set, and no byte of it may ever be sent.

mod slice_fetch;
mod slicing;

pub(crate) use self::slicing::{SliceStart, cut, may_slice, shape_of};
