//! Caches that are asked whether they have something.

mod sibling;

pub use self::sibling::{Sibling, SiblingPort, SiblingQuestion, Siblings};
