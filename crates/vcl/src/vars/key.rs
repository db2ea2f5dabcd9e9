//! The key that a program makes with `hash_data`, and its digest.

use base::key_fields;
use bytes::Bytes;
use sha2::{Digest, Sha256};

/// The first field of every key that a program makes: it keeps them apart from all others. What
/// `hash_data` is given follows.
pub const KEY_MARK: &[u8] = b"vcl";

/// The SHA-256 of what `hash_data` was given, as Varnish has it: each string with a zero byte after
/// it.
pub(crate) fn digest(key: &[u8]) -> Bytes {
    let mut sum = Sha256::new();
    // The mark is ours.
    for field in key_fields(key).skip(1) {
        sum.update(field);
        sum.update([0]);
    }
    Bytes::copy_from_slice(&sum.finalize())
}
