//! Sibling state: caches that are asked before the origin.

mod sibling;
pub(crate) mod sibling_miss;

pub use self::sibling::{Sibling, SiblingPort, SiblingQuestion, Siblings};
