//! Fingerprints of response bodies, which tell if two responses are equal without keeping them, and
//! a masker for those that are equal apart from what may change at every request. Pure: bodies come
//! in pieces, and no cut of them may change a result.
//!
//! Begin with [`BodyHasher`]; [`Masker`] is for callers with a hash function of their own.

mod block_hash;
mod body_hasher;
mod masker;

pub use body_hasher::{BodyFingerprint, BodyHasher};
pub use masker::Masker;
