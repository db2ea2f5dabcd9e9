//! Invalidation state: the entry point of invalidations to the store.

mod invalidator;

pub(crate) use self::invalidator::{InvalidationMode, InvalidatorParts};
pub use self::invalidator::{InvalidationWait, Invalidator, Outcome};
