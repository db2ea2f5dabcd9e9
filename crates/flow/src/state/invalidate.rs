//! The door of invalidations to the store.

mod door;

pub(crate) use self::door::Haste;
pub use self::door::{Door, Outcome, Patience};
