//! The seam to a tier below memory. An object that is evicted may sink into the tier. It leaves a
//! cold entry in the index, by which the next fetch finds it.
//!
//! For each variant of a key there is one response: in memory, in the tier, or in memory with a
//! copy in the tier, which has a cold entry of its own. Objects sink when they are evicted; what
//! has a copy leaves memory for nothing. An object that has been invalidated or superseded, or that
//! is over, is gone from both tiers.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use crate::object::Object;

/// A tier below memory. All of this is called under the lock of a shard: it must be quick, and must
/// not call the cache.
pub trait Lower: fmt::Debug + Send + Sync + 'static {
    /// The place of a response in the tier, as the index keeps it. Eight bytes cost the index no
    /// more than a response in memory does.
    type Place: Copy + Eq + fmt::Debug + Send + Sync + 'static;

    /// True if the tier ever keeps anything.
    const KEEPS: bool = true;

    /// False as long as the tier has kept nothing and takes nothing: nothing is spent on it then.
    fn is_open(&self) -> bool {
        true
    }

    /// `object` is being evicted, or is to be copied: its place, if the tier keeps it from now on.
    /// Its content may be whole or elsewhere. Until the tier has dropped it, memory is taken for
    /// it.
    fn demote(&self, object: &Arc<Object>) -> Option<Self::Place>;

    /// The index has no entry for what is at `place` any more.
    fn forget(&self, place: Self::Place);

    /// Whatever the tier has of keys of these 32 bits of hash, and has not told of yet
    /// ([`crate::Cache::add_cold`]), is not wanted any more. For a tier that finds what it has
    /// while the cache is in use.
    fn discard_hash(&self, _h32: u32) {}

    /// The newest ban that everything it keeps has passed; `None` where it keeps nothing. Later
    /// ones are remembered for it, as long as they are not too many, and a cache over a tier that
    /// has kept something numbers its bans from there.
    fn passed(&self) -> Option<u32>;
}

/// No tier below memory. It has no places, so that nothing is left of the seam.
#[derive(Debug)]
pub struct MemoryOnly;

impl Lower for MemoryOnly {
    type Place = Infallible;

    const KEEPS: bool = false;

    fn demote(&self, _: &Arc<Object>) -> Option<Infallible> {
        None
    }

    fn forget(&self, place: Infallible) {
        match place {}
    }

    fn passed(&self) -> Option<u32> {
        None
    }
}
