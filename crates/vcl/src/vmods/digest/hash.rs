//! Hashes that libraries provide, with libmhash's byte order.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Digest;

/// HMAC with SHA-256.
pub(super) type HmacSha256 = Hmac<sha2::Sha256>;
/// HMAC with SHA-1.
pub(super) type HmacSha1 = Hmac<sha1::Sha1>;
/// HMAC with MD5.
pub(super) type HmacMd5 = Hmac<md5::Md5>;

/// A hash that takes a key.
pub(super) trait KeyedHash: Mac + KeyInit {}
impl<H: Mac + KeyInit> KeyedHash for H {}

/// The hash of `message`.
pub(super) fn of<H: Digest>(message: &[u8]) -> Vec<u8> {
    H::digest(message).to_vec()
}

/// The hash of `message` under `key`.
pub(super) fn keyed<H: KeyedHash>(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut mac = <H as KeyInit>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(message);
    mac.finalize().into_bytes().to_vec()
}

/// Tiger with the high byte of each word first, as first published; later implementations write the
/// low byte first.
pub(super) fn tiger(message: &[u8]) -> Vec<u8> {
    let mut hash = of::<tiger::Tiger>(message);
    for word in hash.chunks_exact_mut(8) {
        word.reverse();
    }
    hash
}

/// The first `BYTES` of [`tiger()`].
pub(super) fn tiger_cut<const BYTES: usize>(message: &[u8]) -> Vec<u8> {
    let mut hash = tiger(message);
    hash.truncate(BYTES);
    hash
}

/// CRC-32 as in bzip2: gzip's with all bits reversed.
pub(super) fn crc32(message: &[u8]) -> Vec<u8> {
    let mut hasher = crc32fast::Hasher::new();
    let mut turned = [0; 1024];
    for part in message.chunks(turned.len()) {
        for (turned, byte) in turned.iter_mut().zip(part) {
            *turned = byte.reverse_bits();
        }
        hasher.update(&turned[..part.len()]);
    }
    hasher.finalize().reverse_bits().to_le_bytes().to_vec()
}

/// CRC-32 as in gzip.
pub(super) fn crc32b(message: &[u8]) -> Vec<u8> {
    crc32fast::hash(message).to_le_bytes().to_vec()
}

/// Adler-32.
pub(super) fn adler32(message: &[u8]) -> Vec<u8> {
    adler2::adler32_slice(message).to_le_bytes().to_vec()
}
