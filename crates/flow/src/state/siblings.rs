//! Caches that are asked whether they have something.

pub(crate) mod asking;
mod sibling;

pub use self::sibling::{Sibling, SiblingPort, SiblingQuestion, Siblings};
