//! The door of invalidations to the store.

mod door;

pub(crate) use self::door::{Door, Haste};
pub use self::door::{Outcome, Patience};
