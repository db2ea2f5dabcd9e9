//! Key that a program builds with `hash_data`, and its digest. It never collides with keys of other
//! sites.

use base::key_fields;
use bytes::Bytes;
use sha2::{Digest, Sha256};

/// First field of every key made by a program, which separates it from other keys. The strings of
/// `hash_data` follow.
pub const KEY_MARK: &[u8] = b"vcl";

/// `req.hash`: as in Varnish, the SHA-256 of the strings of `hash_data`, each with a zero byte
/// behind it.
pub(crate) fn digest(key: &[u8]) -> Bytes {
    let mut sum = Sha256::new();
    // Varnish's digest does not include Larder's mark.
    for field in key_fields(key).skip(1) {
        sum.update(field);
        sum.update([0]);
    }
    Bytes::copy_from_slice(&sum.finalize())
}
