//! The door of invalidations to the store.

mod invalidator;

pub(crate) use self::invalidator::Haste;
pub use self::invalidator::{Invalidator, Outcome, Patience};
