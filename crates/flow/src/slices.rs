//! Large bodies in slices: a stored response whose body is a set of objects, each with an aligned
//! part of it.
//!
//! The set is the body of an ordinary stored response; its slices are ordinary objects under keys
//! that nobody else can make. So a slice is fetched once for all who want it, weighed, and evicted
//! by itself. One validator binds them: what comes under another one ends the set, and no byte of
//! it is ever sent.

mod slice_fetch;
mod slicing;

pub(crate) use self::slicing::{SliceStart, cut, may_slice, shape_of};
