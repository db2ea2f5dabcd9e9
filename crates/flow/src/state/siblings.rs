//! Caches that are asked whether they have something.

mod sibling;
pub(crate) mod sibling_miss;

pub use self::sibling::{Sibling, SiblingPort, SiblingQuestion, Siblings};
