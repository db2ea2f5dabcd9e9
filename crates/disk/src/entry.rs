//! An entry: a record as its owner puts it into the store.

use bytes::Bytes;

use crate::body::Body;

/// A record to be stored.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key's hash.
    pub hash: u64,
    /// The newest ban that the record has passed.
    pub passed: u32,
    /// The time of expiry, in milliseconds of the wall clock; `u64::MAX` for never.
    pub expires_ms: u64,
    /// The number of the last invalidation that the record has been tested against; `None` if it
    /// has been tested against all that have been carried out.
    pub order: Option<u64>,
    /// Bytes that are read alone or with the body.
    pub head: Bytes,
    /// The body.
    pub body: Body,
}
