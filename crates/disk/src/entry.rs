//! A record as its owner puts it into the store.

use bytes::Bytes;

use crate::body::Body;

/// A record to be kept.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key's hash.
    pub hash: u64,
    /// The newest ban that it has passed.
    pub passed: u32,
    /// When it is of no use any more, in milliseconds of the wall clock; `u64::MAX` for never.
    pub expires_ms: u64,
    /// The number of an invalidation: newer ones have not been tested against it. `None` if it has
    /// been tested against all that have had their effect.
    pub order: Option<u64>,
    /// Bytes that are read with the body or alone.
    pub head: Bytes,
    /// The body.
    pub body: Body,
}
