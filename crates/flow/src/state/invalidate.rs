//! Invalidation state: the entry point of invalidations to the store.

mod invalidator;
mod recent_invalidations;

pub(crate) use self::invalidator::{InvalidationMode, InvalidatorParts};
pub use self::invalidator::{InvalidationWait, Invalidator, Outcome};
pub use self::recent_invalidations::RecentInvalidation;
