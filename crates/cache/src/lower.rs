//! The interface to a lower tier. An evicted object may be demoted to it, and leaves a cold entry
//! in the index, by which the next fetch finds it. A variant has one response: in memory, in the
//! lower tier, or in both; an object with a copy below is evicted without a write. An invalidated,
//! superseded or expired object must be in neither tier.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use crate::object::Object;

/// A tier below memory. Its methods are called under the lock of a shard: they must be quick, and
/// must not call the cache.
pub trait Lower: fmt::Debug + Send + Sync + 'static {
    /// The address of a response in the tier, kept in the index. Eight bytes cost no more than an
    /// entry for an object in memory.
    type Place: Copy + Eq + fmt::Debug + Send + Sync + 'static;

    /// True if the tier ever stores anything.
    const KEEPS: bool = true;

    /// Returns false while the tier stores nothing and accepts nothing, so that the cache spends no
    /// time on it.
    fn is_open(&self) -> bool {
        true
    }

    /// Accepts `object`, which is evicted or copied, and returns its address; `None` if the tier
    /// rejects it. Its content may be whole or external. The object uses memory until the tier
    /// drops it.
    fn demote(&self, object: &Arc<Object>) -> Option<Self::Place>;

    /// Reports that the index has no entry for `place` any more.
    fn forget(&self, place: Self::Place);

    /// Discards the tier's responses whose keys have these 32 bits of hash and which it has not
    /// entered by [`crate::Cache::add_cold`] yet. For a tier that scans its store while the cache
    /// is in use.
    fn discard_hash(&self, _h32: u32) {}

    /// The newest ban that all its responses have passed; `None` if it has none. The cache keeps
    /// later bans for it, within their limit, and numbers its own bans from there.
    fn passed(&self) -> Option<u32>;
}

/// No lower tier. Its address type has no values, so the interface costs nothing.
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
